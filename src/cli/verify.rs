//! `guardian verify`: the audit of bytes on disk.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::folder::Folder;
use super::progress::Shown;
use super::{End, input, interrupt};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{self, Claim};
use crate::report::AuditSummary;
use crate::spec::Origin;
use crate::telemetry;

/// What to verify.
#[derive(Args)]
pub struct Arguments {
    /// The folder of a release
    directory: PathBuf,
    /// The table it was made from
    #[arg(long)]
    original: Option<PathBuf>,
    /// Answers in JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<End, End> {
    telemetry::start(LogFormat::Text);
    let control = Control::default();
    interrupt::cancels(&control);
    let shown = Shown::begin(&control);
    let folder = Folder::new(&arguments.directory);
    let manifest = folder.manifest().map_err(End::InputOutput)?;
    // with the original at hand the rules are those of the specification, not those that the manifest lists
    let job = match &arguments.original {
        None => None,
        Some(path) => {
            let document = input::document(&arguments.directory.join("specification.json"))?;
            Some(input::job(path, &document, Origin::Reproduction, &control)?)
        }
    };
    let listed: Vec<String> = manifest.attributes().into_iter().map(|(name, _)| name).collect();
    let claim = Claim {
        manifest: &manifest,
        names: job.as_ref().map_or(&listed, |job| &job.specification.published_names),
        rules: job.as_ref().map(|job| job.specification.method.rules()),
        uninformative: job.as_ref().map(|job| job.specification.uninformative.as_slice()),
        original: job.as_ref().map(|job| &job.table),
    };
    let summary = engine::verify(&claim, &folder, &control).map_err(|stopped| match stopped {
        engine::Stopped::Failed { cause, .. } => {
            End::InputOutput(format!("{}: {cause}", arguments.directory.display()))
        }
        other => other.into(),
    })?;
    drop(shown);
    say(&summary, arguments.json).map_err(|error| End::InputOutput(format!("standard output: {error}")))?;
    Ok(if summary.verified { End::Done } else { End::NotVerified })
}

fn say(summary: &AuditSummary, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        return writeln!(out, "{}", serde_json::to_string_pretty(summary)?);
    }
    for check in &summary.checks {
        let verdict = if check.passed { "holds" } else { "FAILS" };
        writeln!(out, "{:10} {verdict} {}", check.check, check.detail.as_deref().unwrap_or_default())?;
    }
    let verdict = if summary.verified { "verified" } else { "NOT VERIFIED" };
    writeln!(out, "{verdict}; linkage {}", summary.linkage.replace('_', " "))
}
