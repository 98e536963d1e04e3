//! `guardian migrate`: brings the tables of a store up to date, as every start does, and says their version.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::End;
use super::serve::{not_started, runtime};
use crate::config::StoreOptions;
use crate::store::OpenStore;

/// Which store.
#[derive(Args)]
pub struct Arguments {
    /// The folder of the embedded store
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    data: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
}

pub(super) fn run(arguments: &Arguments) -> Result<End, End> {
    let database = arguments.store.database().map_err(End::Usage)?;
    runtime()?.block_on(async {
        let opened = OpenStore::open(database, &arguments.data).await;
        let store = opened.map_err(|error| not_started(error.into()))?;
        let version = store.schema_version();
        let said = match store.database() {
            Some(database) => writeln!(std::io::stdout().lock(), "{database}: schema version {version}"),
            None => writeln!(std::io::stdout().lock(), "{}: schema version {version}", arguments.data.display()),
        };
        store.close().await;
        said.map(|()| End::Done).map_err(|error| End::InputOutput(format!("standard output: {error}")))
    })
}
