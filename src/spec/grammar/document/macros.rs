/// Declares an object: a struct of its members with their reader, normal form and schema.
macro_rules! document {
    (
        $(#[doc = $about:literal])+
        $name:ident as $schema:literal $(tagged $tag:literal)? {
            $(
                $(#[doc = $doc:literal])*
                $presence:ident $member:ident: $type:ty $(= $default:expr)? $(=> $allowed:expr)?,
            )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub(in crate::spec) struct $name {
            /// Where the object stands.
            pub(in crate::spec) pointer: String,
            $($(#[doc = $doc])* pub(in crate::spec) $member: $crate::spec::grammar::document::document!(@field $type $(= $default)?),)*
        }

        impl $crate::spec::grammar::document::Document for $name {
            const NAME: &'static str = $schema;

            fn absent(pointer: &str) -> Self {
                Self {
                    pointer: pointer.to_owned(),
                    $($member: $crate::spec::grammar::document::document!(@absent $($default)?),)*
                }
            }

            fn read_members(
                mut members: $crate::spec::grammar::reader::ObjectReader<'_>,
                columns: &$crate::spec::grammar::attributes::DatasetColumns<'_>,
                faults: &mut $crate::spec::grammar::reader::FaultList,
            ) -> Self {
                use $crate::spec::grammar::document::{Given, Presence, member_name, read_member};
                let mut read = Self::absent(members.pointer());
                $(
                    let presence = Presence::$presence;
                    let allowed: &[&str] = &[$($allowed)?];
                    let declared = (member_name(stringify!($member)), presence, allowed.first().copied());
                    let given: Given<$type> = read_member(&mut members, declared, columns, faults);
                    $crate::spec::grammar::document::document!(@store read.$member, given $(, $default)?);
                )*
                members.finish(faults);
                read
            }

            fn write_members(&self, columns: &$crate::spec::grammar::attributes::DatasetColumns<'_>) -> serde_json::Value {
                use $crate::spec::grammar::document::{Member, member_name};
                let mut written = serde_json::Map::new();
                $(written.insert("type".to_owned(), $tag.into());)?
                $(
                    let value = $crate::spec::grammar::document::document!(@written self.$member, columns $(, $default)?);
                    written.insert(member_name(stringify!($member)).to_owned(), value);
                )*
                written.into()
            }

            fn definition() -> serde_json::Value {
                use $crate::spec::grammar::document::{Presence, description, member_name, member_schema};
                let mut properties = serde_json::Map::new();
                let mut required: Vec<&str> = Vec::new();
                $(
                    properties.insert("type".to_owned(), serde_json::json!({"type": "string", "const": $tag}));
                    required.push("type");
                )?
                $(
                    let schema = member_schema::<$type>(Presence::$presence, &[$($doc),*]);
                    properties.insert(member_name(stringify!($member)).to_owned(), schema);
                    if Presence::$presence != Presence::optional {
                        required.push(member_name(stringify!($member)));
                    }
                )*
                let mut schema = serde_json::json!({
                    "type": "object",
                    "title": $schema,
                    "description": description(&[$($about),+]),
                    "properties": properties,
                    "additionalProperties": false,
                });
                if !required.is_empty() {
                    schema["required"] = required.into();
                }
                schema
            }

            fn define_members(schemas: &mut $crate::spec::grammar::document::SchemaMap) {
                $(<$type as $crate::spec::grammar::document::Member>::define(schemas);)*
            }

            fn pointer(&self) -> &str {
                &self.pointer
            }
        }
    };
    (@field $type:ty) => { $crate::spec::grammar::document::Given<$type> };
    (@field $type:ty = $default:expr) => { $type };
    (@absent) => { $crate::spec::grammar::document::Given::absent() };
    (@absent $default:expr) => { $default };
    (@store $place:expr, $given:ident) => { $place = $given };
    (@store $place:expr, $given:ident, $default:expr) => {
        if let Some(value) = $given.value {
            $place = value;
        }
    };
    (@written $place:expr, $columns:ident) => {
        $place.value.as_ref().map_or(serde_json::Value::Null, |value| value.write($columns))
    };
    (@written $place:expr, $columns:ident, $default:expr) => { $place.write($columns) };
}

/// Declares a set of words: an enum with its reader and schema; after `existing`, reader and schema of an enum of another module,
/// which has a method `as_str`.
macro_rules! choice {
    (
        $(#[doc = $about:literal])+
        $vis:vis enum $name:ident as $schema:literal {
            $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The word that stands for it in documents.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        $crate::spec::grammar::document::choice! {
            $(#[doc = $about])+
            existing $name as $schema { $($variant = $word,)+ }
        }
    };
    (
        $(#[doc = $about:literal])+
        existing $name:ident as $schema:literal { $($variant:ident = $word:literal,)+ }
    ) => {
        impl $crate::spec::grammar::document::Member for $name {
            fn allowed() -> String {
                $crate::spec::grammar::reader::one_of(&[$($word),+])
            }

            fn read(
                value: &serde_json::Value,
                context: &mut $crate::spec::grammar::document::MemberContext<'_, '_>,
            ) -> Option<Self> {
                match value.as_str() {
                    $(Some($word) => Some(Self::$variant),)+
                    _ => context.refuse(),
                }
            }

            fn write(&self, _columns: &$crate::spec::grammar::attributes::DatasetColumns<'_>) -> serde_json::Value {
                self.as_str().into()
            }

            fn schema() -> serde_json::Value {
                $crate::spec::grammar::document::reference($schema)
            }

            fn define(schemas: &mut $crate::spec::grammar::document::SchemaMap) {
                let description = $crate::spec::grammar::document::description(&[$($about),+]);
                let schema = serde_json::json!({
                    "type": "string", "title": $schema, "enum": [$($word),+], "description": description,
                });
                schemas.insert($schema.to_owned(), schema);
            }
        }
    };
}

pub(in crate::spec) use {choice, document};
