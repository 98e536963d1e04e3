//! The command line: parses the arguments, runs a command and returns its exit code.

use std::process::ExitCode;

use guardian::cli;

fn main() -> ExitCode {
    cli::main().into()
}
