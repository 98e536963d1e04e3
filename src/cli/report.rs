//! `guardian report`: the report of a release in a folder, for people or programs.

use std::path::PathBuf;

use clap::Args;

use super::exit::CommandOutcome;
use super::folder::Folder;
use super::standard_output;
use super::table_file::is_standard_input;
use crate::report::{public_report, report_page};

/// The release and the form of its report.
#[derive(Args)]
pub struct ReportArguments {
    /// The folder of a release
    directory: PathBuf,
    /// Writes an HTML page, which prints well on paper, to this file, or to standard output without one (or with `-`); without
    /// `--html`, JSON is printed
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    html: Option<PathBuf>,
}

pub(super) fn run(arguments: &ReportArguments) -> Result<CommandOutcome, CommandOutcome> {
    let (manifest, file) = Folder::new(&arguments.directory).manifest_file().map_err(CommandOutcome::InputOutput)?;
    let report = public_report(&manifest).of_file(&file);
    let page = || report_page(&report, &manifest).map_err(|error| CommandOutcome::Internal(error.to_string()));
    match &arguments.html {
        None => {
            let json = serde_json::to_string_pretty(&report);
            standard_output::print(&(json.map_err(|error| CommandOutcome::Internal(error.to_string()))? + "\n"))
        }
        Some(path) if is_standard_input(path) => standard_output::print(&page()?),
        Some(path) => {
            let written = std::fs::write(path, page()?);
            written.map(|()| CommandOutcome::Done).map_err(|error| CommandOutcome::io(path, &error))
        }
    }
}
