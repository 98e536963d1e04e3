//! The engines whose tables a service publishes, and the tables that callers may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::RemoteEngine;
use crate::ports::EngineTable;
use crate::problem::{Kind, Problem};

/// The segment of an entry that stands for the name of the caller's tenant.
const TENANT: &str = "{tenant}";

/// Engines by their names.
pub type NamedEngines = BTreeMap<String, Arc<dyn RemoteEngine>>;

/// The engines of a service.
#[derive(Clone, Default)]
pub struct Engines {
    engines: Arc<NamedEngines>,
    tables: Arc<EngineTableList>,
}

impl Engines {
    /// Engines with the tables that callers may name.
    #[must_use]
    pub fn new(engines: NamedEngines, tables: EngineTableList) -> Self {
        Self { engines: Arc::new(engines), tables: Arc::new(tables) }
    }

    /// Whether the engine of a table is one of these.
    #[must_use]
    pub fn has(&self, place: &EngineTable) -> bool {
        self.engines.contains_key(&place.engine)
    }

    /// The engine of a table that callers of a tenant may name.
    ///
    /// # Errors
    /// `source-refused`: the engine's credentials are those of the service, so that callers read no more than is listed.
    pub fn find(&self, tenant: &str, place: &EngineTable) -> Result<Arc<dyn RemoteEngine>, Problem> {
        let listed = self.engines.get(&place.engine).filter(|_| self.tables.allows(tenant, place));
        listed.cloned().ok_or_else(|| {
            let detail =
                "the operator does not list this table of this engine; what it lists, it sets with --engine-tables";
            Problem::new(Kind::SourceRefused, detail)
        })
    }
}

/// The tables that an operator allows; none unless listed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EngineTableList(Vec<EngineTable>);

impl EngineTableList {
    /// Reads a list of `ENGINE=TABLE`, separated by commas. A last part `*` of a name or path stands for all below it, and a part
    /// `{tenant}` for the name of the caller's tenant.
    ///
    /// # Errors
    /// The position of an entry, with what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entry = |(entry, number): (&str, u32)| {
            let wrong = |text: &str| format!("table {number}: {text}");
            let (engine, table) = entry.split_once('=').ok_or_else(|| wrong("write ENGINE=TABLE"))?;
            let path = TablePath::parse(table).ok_or_else(|| {
                wrong("write a name such as catalog.db.table, or a path such as /lake/table, without empty parts")
            })?;
            match path.parts.iter().rev().skip(1).any(|part| *part == "*") {
                true => Err(wrong("* is the last part or none")),
                false => Ok(EngineTable { engine: engine.to_owned(), table: table.to_owned() }),
            }
        };
        Ok(Self(written.zip(1..).map(entry).collect::<Result<_, String>>()?))
    }

    /// The names of the engines of the list.
    pub fn engines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|entry| entry.engine.as_str())
    }

    /// Whether an entry contains the table, for a caller of this tenant.
    #[must_use]
    pub fn allows(&self, tenant: &str, place: &EngineTable) -> bool {
        let Some(named) = TablePath::parse(&place.table) else { return false };
        let contains = |entry: &EngineTable| {
            entry.engine == place.engine && TablePath::parse(&entry.table).is_some_and(|of| of.contains(&named, tenant))
        };
        self.0.iter().any(contains)
    }
}

/// The parts of the name or the path of a table.
#[derive(PartialEq, Eq, Debug)]
struct TablePath<'a> {
    /// What is before the parts: a slash, or a scheme; nothing of a name.
    root: &'a str,
    parts: Vec<&'a str>,
}

impl<'a> TablePath<'a> {
    /// `None` of what has empty parts, or such as stand for another folder.
    fn parse(text: &'a str) -> Option<Self> {
        let (root, rest, separator) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme, rest, '/'),
            None if text.starts_with('/') => ("/", &text[1..], '/'),
            None if text.contains('/') => return None,
            None => ("", text, '.'),
        };
        let parts: Vec<&str> = rest.split(separator).collect();
        let is_plain = parts.iter().all(|part| !matches!(*part, "" | "." | ".."));
        is_plain.then_some(Self { root, parts })
    }

    fn contains(&self, named: &TablePath<'_>, tenant: &str) -> bool {
        let expected = |part: &&'a str| if *part == TENANT { tenant.to_owned() } else { (*part).to_owned() };
        let (fixed, is_open) = match self.parts.split_last() {
            Some((&"*", fixed)) => (fixed, true),
            _ => (&self.parts[..], false),
        };
        let begins = named.parts.iter().zip(fixed).all(|(part, of)| *part == expected(of));
        let has_length = match is_open {
            true => named.parts.len() > fixed.len(),
            false => named.parts.len() == fixed.len(),
        };
        self.root == named.root && has_length && begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(table: &str) -> EngineTable {
        EngineTable { engine: "lake".to_owned(), table: table.to_owned() }
    }

    #[test]
    fn only_listed_tables_are_allowed() {
        let list =
            EngineTableList::parse("lake=hive.db.visits, lake=hive.open.*,lake=/lake/a/*, lake=s3a://b/t/*").unwrap();
        for table in ["hive.db.visits", "hive.open.x", "/lake/a/t", "/lake/a/b/t", "s3a://b/t/x"] {
            assert!(list.allows("t", &place(table)), "{table}");
        }
        for table in [
            "hive.db.other",
            "hive.db",
            "hive.open",
            "hive.opener.x",
            "db.visits",
            "/lake/a",
            "/lake/a/../b/t",
            "/lake/a/./t",
            "/lake/a//t",
            "/lake/ab/t",
            "lake/a/t",
            "lake.a.t",
            "s3://b/t/x",
            "s3a://b/u/x",
            "",
        ] {
            assert!(!list.allows("t", &place(table)), "{table}");
        }
        assert!(!list.allows("t", &EngineTable { engine: "other".to_owned(), table: "hive.open.x".to_owned() }));
        assert!(!EngineTableList::default().allows("t", &place("hive.open.x")));
    }

    #[test]
    fn tenants_have_tables_of_their_own() {
        let list = EngineTableList::parse("lake=/lake/{tenant}/*,lake=hive.{tenant}.t").unwrap();
        assert!(list.allows("a", &place("/lake/a/t")) && list.allows("a", &place("hive.a.t")));
        for (tenant, table) in
            [("b", "/lake/a/t"), ("a", "/lake/{tenant}/t"), ("a/b", "/lake/a/b/t"), ("b", "hive.a.t")]
        {
            assert!(!list.allows(tenant, &place(table)), "{tenant} {table}");
        }
    }

    #[test]
    fn entries_are_checked() {
        for list in ["hive.db.t", "lake=", "lake=a..b", "lake=*.t", "lake=/a/*/b", "lake=a/b", "lake=/a/../b"] {
            assert!(EngineTableList::parse(list).unwrap_err().starts_with("table 1: "), "{list}");
        }
        assert_eq!(EngineTableList::parse(" ").unwrap(), EngineTableList::default());
    }
}
