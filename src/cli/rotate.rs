//! `guardian rotate-key`: replaces the master key of a store that no process has open.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime};
use super::standard_output::ended;
use crate::config::{NewKeyOptions, StoreOptions};
use crate::service;

/// The store and its new key.
#[derive(Args)]
pub struct RotateKeyArguments {
    /// The folder of the embedded store, and of its master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    data: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    new: NewKeyOptions,
}

pub(super) fn run(arguments: &RotateKeyArguments) -> Result<CommandOutcome, CommandOutcome> {
    runtime()?.block_on(async {
        let rotated =
            service::rotate(&arguments.store, &arguments.data, &arguments.new).await.map_err(not_started)?;
        let place = arguments.new.place().map_err(CommandOutcome::Usage)?;
        let said = format!(
            "the keys of {} datasets, {} chains and {} jobs are now wrapped under {place}\nstart every process with it; the old key opens \
             only older backups of this store",
            rotated.datasets, rotated.chains, rotated.jobs
        );
        ended(writeln!(std::io::stdout().lock(), "{said}"))?;
        Ok(CommandOutcome::Done)
    })
}
