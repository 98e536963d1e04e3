//! The commands of the command line, one file each.

mod arguments;
mod audit_log;
mod backup;
mod completions;
mod configuration_file;
mod contributions;
mod demo;
mod documents;
mod engine_options;
mod examples;
mod exit;
mod folder;
mod healthcheck;
mod init;
mod input;
mod interrupt;
mod job_files;
mod keys;
mod ledger;
mod man;
mod migrate;
mod nights;
mod object_access;
mod plan;
mod population;
mod populations;
mod progress;
mod publish;
mod publish_summary;
mod query;
mod refusal;
mod release_place;
mod report;
mod rotate;
mod serve;
#[cfg(feature = "spark")]
mod spark;
mod standard_output;
mod table_file;
mod tenants;
mod verify;
mod words;
mod worker;

use std::io::Write;
use std::panic;
use std::panic::AssertUnwindSafe;

use arguments::command;
pub use arguments::{Arguments, Command};
use clap::FromArgMatches;
use configuration_file::CommandLine;
pub use exit::CommandOutcome;

/// Runs the command of the arguments of this process.
#[must_use]
pub fn main() -> CommandOutcome {
    let line = CommandLine { command: command(), typed: std::env::args_os().collect() };
    let matches = match line.matches() {
        Ok(matches) => matches,
        Err(end) => return ended(end, false),
    };
    let parsed = Arguments::from_arg_matches(&matches);
    let Arguments { command, json, .. } = parsed.unwrap_or_else(|error| error.exit());
    let command = match (command, matches.subcommand()) {
        (Command::Demo(arguments), Some((_, matches))) => Command::Demo(arguments.noting(matches)),
        (command, _) => command,
    };
    run(command, json)
}

/// Runs a command and prints its error to standard error; with `json`, results and refusals are JSON on terminals too.
fn run(command: Command, json: bool) -> CommandOutcome {
    // a panic message may quote data: neither the hook nor the message below repeats it
    crate::telemetry::install_panic_hook();
    let ended = panic::catch_unwind(AssertUnwindSafe(|| match command {
        Command::Init(arguments) => init::run(&arguments, json),
        Command::Publish(arguments) => publish::run(&arguments, json),
        Command::Plan(arguments) => plan::run(&arguments, json),
        Command::Report(arguments) => report::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments, json),
        Command::Nights(arguments) => nights::run(&arguments, json),
        Command::Serve(config) => serve::run(&config),
        Command::Worker(options) => worker::run(&options),
        Command::Healthcheck(arguments) => healthcheck::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::RotateKey(arguments) => rotate::run(&arguments),
        Command::Keys(command) => keys::run(&command),
        Command::Tenants(command) => tenants::run(&command),
        Command::Populations(command) => populations::run(&command),
        Command::AuditLog(arguments) => audit_log::run(&arguments),
        Command::Ledger(command) => ledger::run(command),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        Command::Openapi => openapi(),
        Command::Problems => standard_output::print(&crate::problem::page()),
        Command::Metrics => standard_output::print(&crate::meter::page()),
    }));
    let ended = ended
        .unwrap_or_else(|_panicked| Err(CommandOutcome::Internal("stopped unexpectedly; this is a bug".to_owned())));
    self::ended(ended.unwrap_or_else(|end| end), json)
}

/// The outcome, after its message was printed.
fn ended(end: CommandOutcome, json: bool) -> CommandOutcome {
    // without standard error the exit code remains
    let _ = match &end {
        CommandOutcome::Done | CommandOutcome::NotVerified => Ok(()),
        CommandOutcome::NotReady(message)
        | CommandOutcome::Usage(message)
        | CommandOutcome::InputOutput(message)
        | CommandOutcome::Internal(message) => {
            writeln!(std::io::stderr().lock(), "guardian: {message}")
        }
        CommandOutcome::Refused(problem) => refusal::print(problem, json),
    };
    end
}

fn openapi() -> Result<CommandOutcome, CommandOutcome> {
    let document = crate::api::openapi_text().map_err(|error| CommandOutcome::Internal(error.to_string()))?;
    standard_output::print(&document)
}
