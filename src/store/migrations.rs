//! The tables' versions. A store is brought up to date when it is opened; one that a later version of the service has been at is
//! not touched, because this one does not know what its tables mean.
//!
//! It does if all that was done to them is to expand them: the file of such a migration is named `NUMBER_expand_WHAT.sql`. An earlier
//! process stays on the tables of Postgres, so that processes can be replaced one after the other.

use sqlx::migrate::{Migrate, MigrateError, Migrator};

use crate::ports::StoreError;

pub(super) static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
pub(super) static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

/// Applies what is missing and gives the version. On Postgres sqlx holds an advisory lock meanwhile; SQLite has one process.
pub(super) async fn apply<C: Migrate>(migrator: &Migrator, connection: &mut C) -> Result<i64, StoreError> {
    let known = latest(migrator);
    migrator.run_direct(None, connection, false).await.map_err(|error| match error {
        MigrateError::VersionMissing(found) if found > known => StoreError::Schema(format!(
            "its tables have version {found}, this guardian knows {known} at most; use a later guardian"
        )),
        MigrateError::VersionMissing(found) | MigrateError::VersionMismatch(found) => StoreError::Schema(format!(
            "its tables were made by another guardian: migration {found} is not the one that this guardian has"
        )),
        other => StoreError::Backend(Box::new(other)),
    })?;
    Ok(known)
}

/// The version of the tables of this guardian.
pub(super) fn latest(migrator: &Migrator) -> i64 {
    migrator.iter().map(|migration| migration.version).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The last migration that was written while one could lock several tables.
    const FORMER: i64 = 30;

    /// The tables that a migration locks against those who work on them: those that it changes and has not made itself.
    fn locked_tables(sql: &str) -> BTreeSet<String> {
        let code: String =
            sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join(" ");
        let (mut made, mut locked) = (BTreeSet::new(), BTreeSet::new());
        for statement in code.split(';') {
            let upper = statement.replace(['(', ')', ','], " ").to_uppercase();
            let words: Vec<&str> =
                upper.split_whitespace().filter(|word| !matches!(*word, "IF" | "NOT" | "EXISTS" | "ONLY")).collect();
            let after = |word: &str| words.iter().position(|of| *of == word).and_then(|at| words.get(at + 1)).copied();
            let lock = match words[..] {
                ["CREATE", "TABLE", table, ..] => {
                    made.insert(table.to_owned());
                    None
                }
                ["ALTER" | "DROP" | "LOCK", "TABLE", table, ..]
                | ["TRUNCATE" | "UPDATE", table, ..]
                | ["DELETE", "FROM", table, ..] => Some(table.to_owned()),
                ["CREATE", ..] => after("ON").map(str::to_owned),
                ["DROP", kind, name, ..] => Some(format!("{kind} {name}")),
                _ => None,
            };
            locked.extend(lock);
        }
        locked.difference(&made).cloned().collect()
    }

    /// One that has a table and waits for another meets those who have the other and wait for the first.
    #[test]
    fn a_migration_of_postgres_locks_one_table() {
        let locked = |version: i64| {
            let of = POSTGRES.iter().find(|migration| migration.version == version);
            of.map(|migration| locked_tables(migration.sql.as_str())).unwrap_or_default()
        };
        let of_keys = ["CHAIN_KEYS", "DATASET_KEYS", "DATASET_PERSONS", "JOB_KEYS", "PINS"];
        assert_eq!(locked(FORMER), of_keys.into_iter().map(str::to_owned).collect());
        for version in FORMER + 1..=latest(&POSTGRES) {
            let tables = locked(version);
            assert!(tables.len() <= 1, "migration {version} locks {tables:?}: make several of it");
        }
    }

    #[test]
    fn what_a_migration_makes_itself_is_not_locked() {
        let sql = "-- ALTER TABLE a\nCREATE TABLE IF NOT EXISTS b (x INT); CREATE INDEX i ON b (x);
                   CREATE UNIQUE INDEX k ON c (x); DROP INDEX j;";
        let expected = ["C", "INDEX J"].map(str::to_owned);
        assert_eq!(locked_tables(sql), BTreeSet::from(expected));
    }
}
