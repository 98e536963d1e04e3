//! The commands of the command line, one file each.

mod audit_log;
mod completions;
mod demo;
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
mod plan;
mod populations;
mod progress;
mod publish;
mod publish_summary;
mod query;
mod refusal;
mod report;
mod rotate;
mod serve;
mod standard_output;
mod table_file;
mod tenants;
mod verify;
mod words;
mod worker;

use std::io::Write;
use std::panic;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{Config, WorkerOptions};

pub use exit::CommandOutcome;

/// Publishes microdata tables under privacy rules, with verified releases and a ledger
#[derive(Parser)]
#[command(name = "guardian", version, about, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Prints results and refusals as JSON, on a terminal too
    #[arg(long, global = true)]
    json: bool,
}

/// The command line with its examples.
fn command() -> clap::Command {
    examples::with_examples(Arguments::command(), "")
}

/// Runs the command of the arguments of this process.
#[must_use]
pub fn main() -> CommandOutcome {
    let parsed = Arguments::from_arg_matches(&command().get_matches());
    let Arguments { command, json } = parsed.unwrap_or_else(|error| error.exit());
    run(command, json)
}

/// A command of the command line.
#[derive(Subcommand)]
pub enum Command {
    /// Serves the HTTP interface, with workers in the same process
    Serve(Config),
    /// Runs workers without HTTP on a Postgres store that processes share
    Worker(WorkerOptions),
    /// Checks whether a service is ready: exit code 0 or 1
    Healthcheck(healthcheck::HealthcheckArguments),
    /// Migrates the schema of a store and prints its version
    Migrate(migrate::MigrateArguments),
    /// Replaces the master key of a store that no process has open
    RotateKey(rotate::RotateKeyArguments),
    /// Creates, lists and revokes keys for callers of `serve --auth keys`
    #[command(subcommand)]
    Keys(keys::KeyCommand),
    /// Sets the options of a tenant and lists tenants
    #[command(subcommand)]
    Tenants(tenants::TenantCommand),
    /// Lists the populations of a tenant and relates them
    #[command(subcommand)]
    Populations(populations::PopulationCommand),
    /// Prints the audit log of a tenant, newest first, as one JSON object per line
    AuditLog(audit_log::AuditLogArguments),
    /// Exports and imports the ledger of a store
    #[command(subcommand)]
    Ledger(ledger::LedgerCommand),
    /// Runs a service and publishes two example tables
    Demo(demo::DemoArguments),
    /// Suggests a specification for a table and writes it to a file
    Init(init::InitArguments),
    /// Publishes a table without a server: reads a table and a specification, writes a verified release
    Publish(publish::PublishArguments),
    /// Says what a publication would do: tables, rules and why each holds, exposures; publishes nothing
    Plan(plan::PlanArguments),
    /// Writes the report of a release in a folder, as HTML or JSON
    Report(report::ReportArguments),
    /// Answers COUNT queries on a release in a folder
    Query(query::QueryArguments),
    /// Verifies a release in a folder or other tables
    Verify(verify::VerifyArguments),
    /// Prints a script that completes the command line in a shell
    Completions(completions::CompletionArguments),
    /// Writes a manual page of each command
    Man(man::ManArguments),
    /// Prints the OpenAPI document
    Openapi,
    /// Prints the catalogue of problems as Markdown
    Problems,
    /// Prints the table of metrics as Markdown
    Metrics,
}

/// Runs a command and prints its error to standard error; with `json`, results and refusals are JSON on terminals too.
fn run(command: Command, json: bool) -> CommandOutcome {
    // a panic message may quote data: neither the hook nor the message below repeats it
    crate::telemetry::install_panic_hook();
    let ended = panic::catch_unwind(AssertUnwindSafe(|| match command {
        Command::Init(arguments) => init::run(&arguments),
        Command::Publish(arguments) => publish::run(&arguments, json),
        Command::Plan(arguments) => plan::run(&arguments, json),
        Command::Report(arguments) => report::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments, json),
        Command::Serve(config) => serve::run(&config),
        Command::Worker(options) => worker::run(&options),
        Command::Healthcheck(arguments) => healthcheck::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
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
    let end = ended.unwrap_or_else(|end| end);
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
    let document = crate::api::openapi_document().map_err(|error| CommandOutcome::Internal(error.to_string()))?;
    standard_output::print(&document)
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
