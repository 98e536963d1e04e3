//! `guardian completions`: a script that completes the command line in a shell.

use clap::Args;
use clap_complete::Shell;

use super::arguments::command;
use super::exit::CommandOutcome;
use super::standard_output;

/// The shell.
#[derive(Args)]
pub struct CompletionArguments {
    /// The shell that reads the script
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionArguments) -> Result<CommandOutcome, CommandOutcome> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command(), "guardian", &mut script);
    standard_output::print(&String::from_utf8_lossy(&script))
}
