//! `guardian migrate`: migrates the schema of a store, as every start does, and prints its version.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime};
use super::standard_output::ended;
use crate::config::StoreOptions;
use crate::service;

/// The store to migrate.
#[derive(Args)]
pub struct MigrateArguments {
    /// The folder of the embedded store
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    data: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
}

pub(super) fn run(arguments: &MigrateArguments) -> Result<CommandOutcome, CommandOutcome> {
    runtime()?.block_on(async {
        let migrated = service::migrate(&arguments.store, &arguments.data).await.map_err(not_started)?;
        let service::MigratedStore { store, id, version } = migrated;
        ended(writeln!(std::io::stdout().lock(), "{store}: schema version {version}, store id {id}"))?;
        Ok(CommandOutcome::Done)
    })
}
