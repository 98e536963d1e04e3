//! `guardian ledger`: exports the ledger of a store and imports it into another.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime};
use crate::config::StoreOptions;
use crate::service::ledger::{self, LedgerError};

/// An operation on the ledger.
#[derive(Subcommand)]
pub enum LedgerCommand {
    /// Writes the ledger to standard output: releases with disclosures and active rules, datasets, statements,
    /// populations and coverages (keyed hashes); without parts and rows
    Export(Export),
    /// Imports the ledger of a file completely or not at all; its disclosures count from then on
    Import(Import),
}

/// The store. Only one process can open the embedded store at a time.
#[derive(Args)]
struct LedgerStoreLocation {
    /// The folder of the embedded store and of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    data: PathBuf,
    #[command(flatten)]
    store: StoreOptions,
}

/// Filter of the exported ledger.
#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    place: LedgerStoreLocation,
    /// Only the ledger of this tenant
    #[arg(long)]
    tenant: Option<String>,
}

/// The ledger to import.
#[derive(Args)]
pub struct Import {
    #[command(flatten)]
    place: LedgerStoreLocation,
    /// The file of `guardian ledger export`
    file: PathBuf,
}

pub(super) fn run(command: LedgerCommand) -> Result<CommandOutcome, CommandOutcome> {
    match command {
        LedgerCommand::Export(Export { place, tenant }) => {
            let out = std::io::BufWriter::new(std::io::stdout().lock());
            runtime()?.block_on(ledger::export(&place.store, &place.data, tenant, out)).map_err(end)?;
            Ok(CommandOutcome::Done)
        }
        LedgerCommand::Import(Import { place, file }) => {
            let opened = rereadable(&file).map_err(|error| CommandOutcome::io(&file, &error))?;
            let done = runtime()?.block_on(ledger::import(&place.store, &place.data, opened)).map_err(end)?;
            say(&format!(
                "imported {} releases with {} disclosures and {} rules, {} datasets, {} statements, {} populations, {} \
                 coverages and {} chains; {} known releases have another status now\n",
                done.releases,
                done.disclosures,
                done.rules,
                done.datasets,
                done.statements,
                done.populations,
                done.coverages,
                done.chains,
                done.advanced
            ))
        }
    }
}

/// A seekable file; input from a pipe is copied to an unnamed temporary file.
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
    // a ledger that was cut is no ledger: a closed pipe is an error
    written
        .map(|()| CommandOutcome::Done)
        .map_err(|error| CommandOutcome::InputOutput(format!("standard output: {error}")))
}
