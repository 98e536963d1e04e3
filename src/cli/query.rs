//! `guardian query`: COUNT queries over a release on disk.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::folder::Folder;
use super::{End, input, interrupt};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{Asked, Stopped};
use crate::telemetry;

/// What to count and in what.
#[derive(Args)]
pub struct Arguments {
    /// The folder of a release
    directory: PathBuf,
    /// The queries: the document that `POST /v1/releases/{id}/queries` takes
    #[arg(long)]
    queries: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<End, End> {
    telemetry::start(LogFormat::Text);
    let control = Control::default();
    interrupt::cancels(&control);
    let folder = Folder::new(&arguments.directory);
    let manifest = folder.manifest().map_err(End::InputOutput)?;
    let document = input::document(&arguments.queries)?;
    let asked = Asked::of(&manifest, &document).map_err(|problem| End::Refused(Box::new(problem)))?;
    let answers = asked.answer(&folder, &control).map_err(|stopped| match stopped {
        Stopped::Failed { cause, .. } => End::InputOutput(format!("{}: {cause}", arguments.directory.display())),
        other => other.into(),
    })?;
    let written = writeln!(std::io::stdout().lock(), "{:#}", json!({ "answers": answers }));
    written.map(|()| End::Done).map_err(|error| End::InputOutput(format!("standard output: {error}")))
}
