//! `guardian backup`: copies the embedded store into a file, also while it is served.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime};
use super::standard_output::ended;
use crate::config::StoreOptions;
use crate::service;

/// The store and its copy.
#[derive(Args)]
pub struct BackupArguments {
    /// The file of the copy; must not exist
    file: PathBuf,
    /// The folder of the embedded store
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    data: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
}

pub(super) fn run(arguments: &BackupArguments) -> Result<CommandOutcome, CommandOutcome> {
    let BackupArguments { file, data, store } = arguments;
    runtime()?.block_on(async {
        let id = service::back_up(store, data, file).await.map_err(not_started)?;
        let said = format!(
            "{}: a copy of store {id}, without the master key; to restore it, name it guardian.db in a folder of its own",
            file.display()
        );
        ended(writeln!(std::io::stdout().lock(), "{said}"))?;
        Ok(CommandOutcome::Done)
    })
}
