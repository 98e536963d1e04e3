//! `guardian ledger`: carries what was published, without the parts, from one store to another.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime};
use crate::config::StoreOptions;
use crate::service::ledger::{self, LedgerError};

/// What to do with the ledger.
#[derive(Subcommand)]
pub enum Command {
    /// Writes the ledger to standard output: releases, what they disclosed and promised, whom datasets
    /// speak of in keyed hashes, and what was stated of series; without parts or rows
    Export(Export),
    /// Enters the ledger that a file holds, all of it or nothing; what it disclosed counts here from then on
    Import(Import),
}

/// Which store. While a service has the embedded one open, no other process can.
#[derive(Args)]
struct LedgerStoreLocation {
    /// The folder of the embedded store and of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    data: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
}

/// Which ledger to write.
#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    place: LedgerStoreLocation,
    /// Only this tenant's
    #[arg(long)]
    tenant: Option<String>,
}

/// Which ledger to enter.
#[derive(Args)]
pub struct Import {
    #[command(flatten)]
    place: LedgerStoreLocation,
    /// What `guardian ledger export` wrote
    file: PathBuf,
}

pub(super) fn run(command: Command) -> Result<CommandOutcome, CommandOutcome> {
    match command {
        Command::Export(Export { place, tenant }) => {
            let out = std::io::BufWriter::new(std::io::stdout().lock());
            runtime()?.block_on(ledger::export(&place.store, &place.data, tenant, out)).map_err(end)?;
            Ok(CommandOutcome::Done)
        }
        Command::Import(Import { place, file }) => {
            let opened = rereadable(&file).map_err(|error| CommandOutcome::io(&file, &error))?;
            let done = runtime()?.block_on(ledger::import(&place.store, &place.data, opened)).map_err(end)?;
            say(&format!(
                "entered {} releases with {} disclosures and {} rules, the people of {} datasets, and {} statements; {} known releases \
                 have another status now\n",
                done.releases, done.disclosures, done.rules, done.datasets, done.statements, done.advanced
            ))
        }
    }
}

/// A file, which is read in part twice; what comes through a pipe is kept in one without a name.
fn rereadable(file: &Path) -> io::Result<File> {
    let mut opened = File::open(file)?;
    if opened.metadata()?.is_file() {
        return Ok(opened);
    }
    let mut kept = tempfile::tempfile()?;
    io::copy(&mut opened, &mut kept)?;
    kept.rewind()?;
    Ok(kept)
}

fn end(error: LedgerError) -> CommandOutcome {
    match error {
        LedgerError::Start(error) => not_started(error),
        other => CommandOutcome::InputOutput(other.to_string()),
    }
}

fn say(text: &str) -> Result<CommandOutcome, CommandOutcome> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written
        .map(|()| CommandOutcome::Done)
        .map_err(|error| CommandOutcome::InputOutput(format!("standard output: {error}")))
}
