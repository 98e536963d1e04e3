//! The commands, each in a file of its own.

mod audit_log;
mod demo;
mod exit;
mod folder;
mod healthcheck;
mod input;
mod interrupt;
mod keys;
mod ledger;
mod migrate;
mod progress;
mod publish;
mod query;
mod rotate;
mod serve;
mod tenants;
mod verify;
mod worker;

use std::io::Write;
use std::panic;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Subcommand;

use crate::config::{Config, WorkerOptions};

pub use exit::CommandOutcome;

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Serves the HTTP interface, with workers in the same process
    Serve(Config),
    /// Runs workers without HTTP, beside other processes on one Postgres
    Worker(WorkerOptions),
    /// Asks a service whether it can serve: exit code 0 or 1
    Healthcheck(healthcheck::Arguments),
    /// Brings the tables of a store up to date and says their version
    Migrate(migrate::Arguments),
    /// Changes the master key of a store that no process has open: wraps its keys anew, and nothing else
    RotateKey(rotate::Arguments),
    /// Makes, lists and revokes the keys that callers of `serve --auth keys` send
    #[command(subcommand)]
    Keys(keys::Command),
    /// Decides what holds for a tenant, and lists tenants
    #[command(subcommand)]
    Tenants(tenants::Command),
    /// Writes the audit log of a tenant, newest first, as JSON, one object a line
    AuditLog(audit_log::Arguments),
    /// Carries the ledger of what was published from one store to another
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Serves, and publishes two example tables
    Demo(demo::Arguments),
    /// Publishes a table without a server: reads a CSV file and a specification, writes a verified release
    Publish(publish::Arguments),
    /// Answers COUNT queries over a release on disk
    Query(query::Arguments),
    /// Verifies a release on disk again
    Verify(verify::Arguments),
    /// Prints the OpenAPI document
    Openapi,
    /// Prints the catalogue of problems as a page
    Problems,
    /// Prints the table of metrics as a page
    Metrics,
}

/// Runs a command and says on standard error why it did not succeed.
#[must_use]
pub fn run(command: Command) -> CommandOutcome {
    // what a panic says may quote the data: neither the hook nor the message below repeats it
    crate::telemetry::install_panic_hook();
    let ended = panic::catch_unwind(AssertUnwindSafe(|| match command {
        Command::Publish(arguments) => publish::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Serve(config) => serve::run(&config),
        Command::Worker(options) => worker::run(&options),
        Command::Healthcheck(arguments) => healthcheck::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::RotateKey(arguments) => rotate::run(&arguments),
        Command::Keys(command) => keys::run(&command),
        Command::Tenants(command) => tenants::run(&command),
        Command::AuditLog(arguments) => audit_log::run(&arguments),
        Command::Ledger(command) => ledger::run(command),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Openapi => openapi(),
        Command::Problems => print(&crate::problem::page()),
        Command::Metrics => print(&crate::meter::page()),
    }));
    let ended = ended
        .unwrap_or_else(|_panicked| Err(CommandOutcome::Internal("stopped unexpectedly; this is a bug".to_owned())));
    let end = ended.unwrap_or_else(|end| end);
    let mut stderr = std::io::stderr().lock();
    // standard error that cannot be written leaves the exit code to speak
    let _ = match &end {
        CommandOutcome::Done | CommandOutcome::NotVerified => Ok(()),
        CommandOutcome::NotReady(message)
        | CommandOutcome::Usage(message)
        | CommandOutcome::InputOutput(message)
        | CommandOutcome::Internal(message) => {
            writeln!(stderr, "guardian: {message}")
        }
        CommandOutcome::Refused(problem) => {
            let instance = format!("urn:uuid:{}", uuid::Uuid::now_v7());
            writeln!(stderr, "{:#}", problem.to_json(&instance))
        }
    };
    end
}

fn openapi() -> Result<CommandOutcome, CommandOutcome> {
    let document = crate::api::openapi_document().map_err(|error| CommandOutcome::Internal(error.to_string()))?;
    print(&document)
}

fn print(text: &str) -> Result<CommandOutcome, CommandOutcome> {
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    written
        .map(|()| CommandOutcome::Done)
        .map_err(|error| CommandOutcome::InputOutput(format!("standard output: {error}")))
}

impl From<CommandOutcome> for ExitCode {
    fn from(end: CommandOutcome) -> Self {
        Self::from(match end {
            CommandOutcome::Done => 0,
            CommandOutcome::NotVerified | CommandOutcome::NotReady(_) => 1,
            CommandOutcome::Usage(_) => 2,
            CommandOutcome::Refused(_) => 3,
            CommandOutcome::InputOutput(_) => 4,
            CommandOutcome::Internal(_) => 5,
        })
    }
}
