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
