//! The command line: parses the arguments, runs a command and returns its exit code.

use std::process::ExitCode;

use clap::Parser;
use guardian::cli::{self, Command};

/// Publishes microdata tables under privacy rules, with verified releases and a ledger
#[derive(Parser)]
#[command(name = "guardian", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    cli::run(Arguments::parse().command).into()
}
