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
            $(
                $(#[doc = $doc])*
                pub(in crate::spec) $member: $crate::spec::grammar::document::document!(@field $presence $type $(, $default)?),
            )*
        }

        const _: () = {
            use $crate::spec::grammar::document as doc;

            impl doc::Document for $name {
                const NAME: &'static str = $schema;
                const ABOUT: &'static [&'static str] = &[$($about),+];
                const TAG: Option<&'static str> = doc::document!(@tag $($tag)?);

                fn absent(pointer: &str) -> Self {
                    Self {
                        pointer: pointer.to_owned(),
                        $($member: doc::document!(@absent $presence $type, pointer $(, $default)?),)*
                    }
                }

                fn take_members(
                    members: &mut doc::ObjectReader<'_>,
                    columns: &doc::DatasetColumns<'_>,
                    faults: &mut doc::FaultList,
                ) -> Self {
                    let mut read = Self::absent(members.pointer());
                    $(doc::document!(
                        @read $presence read.$member, $member: $type $(= $default)?, &[$($allowed)?], members, columns, faults
                    );)*
                    read
                }

                fn write_into(&self, written: &mut doc::ObjectMap, columns: &doc::DatasetColumns<'_>) {
                    $(doc::document!(@write $presence self.$member, $member $(= $default)?, written, columns);)*
                }

                fn define_properties(properties: &mut doc::PropertyList) {
                    $(doc::document!(@property $presence $member: $type, properties, &[$($doc),*]);)*
                }

                fn define_members(schemas: &mut doc::SchemaMap) {
                    $(doc::document!(@define $presence $type, schemas);)*
                }

                fn pointer(&self) -> &str {
                    &self.pointer
                }
            }
        };
    };
    (@tag) => { None };
    (@tag $tag:literal) => { Some($tag) };
    (@field include $type:ty) => { $type };
    (@field $presence:ident $type:ty) => { $crate::spec::grammar::document::Given<$type> };
    (@field $presence:ident $type:ty, $default:expr) => { $type };
    (@absent include $type:ty, $pointer:ident) => { <$type as doc::Document>::absent($pointer) };
    (@absent $presence:ident $type:ty, $pointer:ident) => { doc::Given::absent() };
    (@absent $presence:ident $type:ty, $pointer:ident, $default:expr) => { $default };
    (@read include $place:expr, $member:ident: $type:ty, $allowed:expr, $members:ident, $columns:ident, $faults:ident) => {
        $place = <$type as doc::Document>::take_members($members, $columns, $faults)
    };
    (
        @read $presence:ident $place:expr, $member:ident: $type:ty $(= $default:expr)?, $allowed:expr,
        $members:ident, $columns:ident, $faults:ident
    ) => {{
        let allowed: &[&str] = $allowed;
        let declared = doc::MemberDeclaration {
            name: doc::member_name(stringify!($member)),
            presence: doc::Presence::$presence,
            allowed: allowed.first().copied(),
        };
        let given: doc::Given<$type> = declared.read($members, $columns, $faults);
        doc::document!(@store $place, given $(, $default)?);
    }};
    (@store $place:expr, $given:ident) => { $place = $given };
    (@store $place:expr, $given:ident, $default:expr) => { $given.value.into_iter().for_each(|value| $place = value) };
    (@write include $place:expr, $member:ident, $written:ident, $columns:ident) => {
        doc::Document::write_into(&$place, $written, $columns)
    };
    (@write $presence:ident $place:expr, $member:ident = $default:expr, $written:ident, $columns:ident) => {
        doc::write_member(doc::member_name(stringify!($member)), Some(&$place), $written, $columns)
    };
    (@write $presence:ident $place:expr, $member:ident, $written:ident, $columns:ident) => {
        doc::write_member(doc::member_name(stringify!($member)), $place.value.as_ref(), $written, $columns)
    };
    (@property include $member:ident: $type:ty, $properties:ident, $docs:expr) => {
        <$type as doc::Document>::define_properties($properties)
    };
    (@property $presence:ident $member:ident: $type:ty, $properties:ident, $docs:expr) => {
        $properties.add::<$type>(doc::member_name(stringify!($member)), doc::Presence::$presence, $docs)
    };
    (@define include $type:ty, $schemas:ident) => { <$type as doc::Document>::define_members($schemas) };
    (@define $presence:ident $type:ty, $schemas:ident) => { <$type as doc::Member>::define($schemas) };
}

/// Declares an object that is one of several documents, by its member `type`: an enum with its reader, normal form and schema. A
/// function after `checked` sees the types and the value first; `None` after a fault.
macro_rules! union {
    (
        $(#[doc = $about:literal])+
        $name:ident as $schema:literal $(checked $check:path)? { $($variant:ident($document:ty) = $tag:literal,)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug)]
        pub(in crate::spec) enum $name {
            $(#[doc = concat!("Of the type `", $tag, "`.")] $variant($document),)+
        }

        const _: () = {
            use $crate::spec::grammar::document as doc;

            impl $name {
                /// The documents.
                pub(in crate::spec) const VARIANTS: &'static [doc::UnionVariant] = &[$(doc::UnionVariant {
                    tag: $tag,
                    schema: <$document as doc::Document>::NAME,
                    define: <$document as doc::Member>::define,
                }),+];
            }

            impl doc::Member for $name {
                fn allowed() -> String {
                    "an object with a type".to_owned()
                }

                fn read(value: &serde_json::Value, context: &mut doc::MemberContext<'_, '_>) -> Option<Self> {
                    let tags: &[&'static str] = &[$($tag),+];
                    $($check(tags, value, context)?;)?
                    let (tag, members) = doc::open_union(value, tags, context)?;
                    match tag {
                        $($tag => Some(Self::$variant(
                            <$document as doc::Document>::read_members(members, context.columns, context.faults),
                        )),)+
                        _ => None,
                    }
                }

                fn write(&self, columns: &doc::DatasetColumns<'_>) -> serde_json::Value {
                    match self {
                        $(Self::$variant(members) => doc::Member::write(members, columns),)+
                    }
                }

                fn schema() -> serde_json::Value {
                    doc::reference($schema)
                }

                fn define(schemas: &mut doc::SchemaMap) {
                    doc::define_union($schema, &doc::description(&[$($about),+]), Self::VARIANTS, schemas);
                }
            }
        };
    };
}

/// Makes a type without parts a member: what it may be, its reader, its writer and its schema, which may have a name.
macro_rules! scalar {
    ($type:ty $(as $name:literal)?: $allowed:expr, $read:expr, $write:expr, $schema:tt) => {
        const _: () = {
            use $crate::spec::grammar::document as doc;

            impl doc::Member for $type {
                fn allowed() -> String {
                    $allowed.to_owned()
                }

                fn read(value: &serde_json::Value, context: &mut doc::MemberContext<'_, '_>) -> Option<Self> {
                    let read: fn(&serde_json::Value) -> Option<Self> = $read;
                    read(value).or_else(|| context.refuse())
                }

                fn write(&self, _columns: &doc::DatasetColumns<'_>) -> serde_json::Value {
                    let write: fn(&Self) -> serde_json::Value = $write;
                    write(self)
                }

                doc::scalar!(@schema $schema $($name)?);
            }
        };
    };
    (@schema $schema:tt) => {
        fn schema() -> serde_json::Value {
            serde_json::json!($schema)
        }
    };
    (@schema $schema:tt $name:literal) => {
        fn schema() -> serde_json::Value {
            doc::reference($name)
        }

        fn define(schemas: &mut doc::SchemaMap) {
            doc::define_as($name, serde_json::json!($schema), schemas);
        }
    };
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
        const _: () = {
            use $crate::spec::grammar::document as doc;

            impl doc::Member for $name {
                fn allowed() -> String {
                    doc::one_of(&[$($word),+])
                }

                fn read(value: &serde_json::Value, context: &mut doc::MemberContext<'_, '_>) -> Option<Self> {
                    match value.as_str() {
                        $(Some($word) => Some(Self::$variant),)+
                        _ => context.refuse(),
                    }
                }

                fn write(&self, _columns: &doc::DatasetColumns<'_>) -> serde_json::Value {
                    self.as_str().into()
                }

                fn schema() -> serde_json::Value {
                    doc::reference($schema)
                }

                fn define(schemas: &mut doc::SchemaMap) {
                    let about = doc::description(&[$($about),+]);
                    let schema = serde_json::json!({"type": "string", "enum": [$($word),+], "description": about});
                    doc::define_as($schema, schema, schemas);
                }
            }
        };
    };
}

pub(in crate::spec) use {choice, document, scalar, union};
