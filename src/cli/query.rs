//! `guardian query`: answers COUNT queries on a release in a folder.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::exit::CommandOutcome;
use super::folder::Folder;
use super::{input, interrupt, standard_output};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{EngineError, QuerySet};
use crate::telemetry;

/// The queries and the release.
#[derive(Args)]
pub struct QueryArguments {
    /// The folder of a release
    directory: PathBuf,
    /// The queries: the document of `POST /v1/releases/{id}/queries`
    #[arg(long)]
    queries: PathBuf,
}

pub(super) fn run(arguments: &QueryArguments) -> Result<CommandOutcome, CommandOutcome> {
    telemetry::start(LogFormat::Text);
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let folder = Folder::new(&arguments.directory);
    let manifest = folder.manifest().map_err(CommandOutcome::InputOutput)?;
    let document = input::document(&arguments.queries)?;
    let asked = QuerySet::new(&manifest, &document).map_err(|problem| CommandOutcome::Refused(Box::new(problem)))?;
    let answers = asked.answer(&folder, &control).map_err(|stopped| match stopped {
        EngineError::Failed { cause, .. } => {
            CommandOutcome::InputOutput(format!("{}: {cause}", arguments.directory.display()))
        }
        other => other.into(),
    })?;
    standard_output::print(&format!("{:#}\n", json!({ "answers": answers })))
}
