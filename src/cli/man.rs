//! `guardian man`: a manual page of each command.

use std::path::PathBuf;

use clap::Args;

use super::arguments::command;
use super::exit::CommandOutcome;

/// Where the pages go.
#[derive(Args)]
pub struct ManArguments {
    /// The folder for guardian.1 and the page of each command; created if it is absent
    folder: PathBuf,
}

pub(super) fn run(arguments: &ManArguments) -> Result<CommandOutcome, CommandOutcome> {
    let folder = &arguments.folder;
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command(), folder));
    written.map(|()| CommandOutcome::Done).map_err(|error| CommandOutcome::io(folder, &error))
}
