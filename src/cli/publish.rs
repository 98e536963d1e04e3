//! `guardian publish`: publishes a table without a server.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::exit::CommandOutcome;
use super::folder::FolderDraft;
use super::progress::ProgressBarGuard;
use super::{input, interrupt};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{self, ReleaseInput};
use crate::ledger::EarlierDisclosures;
use crate::publication::{CompositionMode, NoticeKind, Unit};
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{ManifestExposures, Provenance, SpecificationNotice, public_report};
use crate::spec::{DocumentSource, SpecWarning};
use crate::telemetry;

/// Options of the publication.
#[derive(Args)]
pub struct PublishArguments {
    /// The table: CSV, NDJSON, Parquet or Arrow IPC; plain, gzip or zstd
    #[arg(long)]
    input: PathBuf,
    /// The specification: the document of a job, without `dataset`
    #[arg(long)]
    spec: PathBuf,
    /// The folder of the release; must not exist, or be empty
    #[arg(long)]
    out: PathBuf,
    /// Uses this key (64 hexadecimal digits, or `identity`) instead of a new secret one. The release is only as secret
    /// as the key
    #[arg(long, value_parser = reproduced)]
    reproduce: Option<KeyOption>,
    /// Writes the internal report to this file, as `internal` of the specification requests. It is not for readers and must be outside
    /// the folder of the release
    #[arg(long, value_name = "FILE")]
    internal_report: Option<PathBuf>,
    /// The column that identifies data subjects with several rows; guarantees then hold for persons
    #[arg(long, value_name = "COLUMN", requires = "max_rows_per_subject")]
    subject: Option<String>,
    /// Maximum number of rows of a data subject; a table with more is refused
    #[arg(long, value_name = "ROWS", requires = "subject", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    max_rows_per_subject: Option<u64>,
}

impl PublishArguments {
    fn unit(&self) -> Unit {
        match (&self.subject, self.max_rows_per_subject) {
            (Some(attribute), Some(max_rows)) => Unit::Subject { attribute: attribute.clone(), max_rows },
            _ => Unit::Row,
        }
    }
}

#[derive(Clone)]
enum KeyOption {
    Bytes([u8; 32]),
    Identity,
}

fn reproduced(text: &str) -> Result<KeyOption, String> {
    if text == "identity" {
        return Ok(KeyOption::Identity);
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let digits: Option<Vec<u8>> = text.as_bytes().iter().map(digit).collect();
    let bytes: Option<Vec<u8>> =
        digits.map(|digits| digits.chunks(2).map(|pair| pair.iter().fold(0, |b, d| b << 4 | d)).collect());
    let key = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
    key.map(KeyOption::Bytes).ok_or_else(|| "the key must be 64 hexadecimal digits or `identity`".to_owned())
}

pub(super) fn run(arguments: &PublishArguments) -> Result<CommandOutcome, CommandOutcome> {
    telemetry::start(LogFormat::Text);
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let shown = ProgressBarGuard::begin(&control);
    let document = input::document(&arguments.spec)?;
    let mut draft = FolderDraft::begin(&arguments.out).map_err(|error| CommandOutcome::io(&arguments.out, &error))?;
    let origin = if arguments.reproduce.is_some() { DocumentSource::Reproduction } else { DocumentSource::CommandLine };
    let job = input::job(&arguments.input, &document, &arguments.unit(), origin, &control)?;
    if let Some(problem) = job.persons {
        return Err(CommandOutcome::Refused(Box::new(problem)));
    }
    let streams = match &arguments.reproduce {
        None => RandomStreams::Keyed(ReleaseKey::draw().map_err(|error| CommandOutcome::Internal(error.to_string()))?),
        Some(KeyOption::Bytes(bytes)) => RandomStreams::Keyed(ReleaseKey::from_bytes(*bytes)),
        Some(KeyOption::Identity) => RandomStreams::Identity,
    };
    let provenance = Provenance {
        id: None,
        series: None,
        created_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        composition: CompositionMode::None,
        identity: None,
        reproducible: arguments.reproduce.is_some(),
    };
    let order = ReleaseInput {
        specification: &job.specification,
        table: &job.table,
        streams: &streams,
        extra: None,
        earlier: &EarlierDisclosures::default(),
        provenance: &provenance,
    };
    let released = engine::release(&order, &mut draft, &control)?;
    drop(shown);

    warn(&job.specification.warnings, &released.manifest.warnings);
    let report = public_report(&released.manifest);
    let exposures = released.manifest.exposures.as_ref().map(ManifestExposures::summary);
    print_notices("premise", &report.premises);
    print_notices("not promised", &report.not_promised);
    print_notices("exposure", &exposures.unwrap_or_default());
    let specification = &job.specification.normalized;
    let io = |error: std::io::Error| CommandOutcome::io(&arguments.out, &error);
    draft.write("manifest.json", &pretty(&released.manifest)?).map_err(io)?;
    draft.write("report.json", &pretty(&report)?).map_err(io)?;
    draft.write("specification.json", &pretty(specification)?).map_err(io)?;
    draft.complete().map_err(io)?;
    if let Some(path) = &arguments.internal_report {
        std::fs::write(path, pretty(&released.internal)?).map_err(|error| CommandOutcome::io(path, &error))?;
    }
    Ok(CommandOutcome::Done)
}

/// Prints what deserves attention though it is permitted: a column that nearly identifies persons, an attribute that moved.
fn warn(warnings: &[SpecWarning], notices: &[SpecificationNotice]) {
    let of_specification = warnings.iter().map(|warning| (warning.type_, &warning.detail));
    let mut lines: Vec<(NoticeKind, &String)> = of_specification.collect();
    for notice in notices.iter().map(|notice| (notice.r#type, &notice.detail)) {
        if !lines.contains(&notice) {
            lines.push(notice);
        }
    }
    let mut stderr = std::io::stderr().lock();
    for (kind, detail) in lines {
        // a lost warning does not fail the command
        let _ = writeln!(stderr, "guardian: warning: {kind}: {detail}");
    }
}

/// The most sentences of one kind that are printed.
const MAX_PRINTED: usize = 8;

/// Prints what a release assumes, does not promise or exposes, in a few sentences; the report has all of them.
fn print_notices(kind: &str, sentences: &[String]) {
    let mut stderr = std::io::stderr().lock();
    for sentence in sentences.iter().take(MAX_PRINTED) {
        // a lost notice does not fail the command
        let _ = writeln!(stderr, "guardian: {kind}: {sentence}");
    }
    if let Some(more) = sentences.len().checked_sub(MAX_PRINTED).filter(|more| *more > 0) {
        let _ = writeln!(stderr, "guardian: {kind}: {more} more in report.json");
    }
}

fn pretty(value: &impl serde::Serialize) -> Result<Vec<u8>, CommandOutcome> {
    let mut json = serde_json::to_vec_pretty(value).map_err(|error| CommandOutcome::Internal(error.to_string()))?;
    json.push(b'\n');
    Ok(json)
}
