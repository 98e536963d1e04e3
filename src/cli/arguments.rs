//! The arguments of the command line: its commands, in the order of the help.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use super::examples::with_examples;
use super::{
    audit_log, backup, completions, demo, healthcheck, init, keys, ledger, man, migrate, nights, plan, populations,
    publish, query, report, rotate, tenants, verify,
};
use crate::config::{Config, WorkerOptions};

/// Publishes microdata tables under privacy rules, with verified releases and a ledger
#[derive(Parser)]
#[command(name = "guardian", version, about, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
    /// Prints results and refusals as JSON, on a terminal too
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// A TOML file of options that have environment variables; flags and the environment go before it
    #[arg(id = "config", long = "config", env = "GUARDIAN_CONFIG", value_name = "FILE", global = true)]
    pub(super) configuration: Option<PathBuf>,
}

/// The command line with its examples.
pub(super) fn command() -> clap::Command {
    with_examples(Arguments::command(), "")
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
    /// Copies the embedded store into a file, also while it is served
    Backup(backup::BackupArguments),
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
    /// Intersects what all nights of a republished table show of each person
    Nights(nights::NightsArguments),
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
