//! `guardian verify`: verifies releases and other tables on disk.

mod anything;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::contributions::{self, OriginalRows};
use super::exit::CommandOutcome;
use super::folder::Folder;
use super::input::{InputJob, JobSource};
use super::object_access::{Location, ObjectAccess};
use super::progress::ProgressBarGuard;
use super::standard_output::ended;
use super::table_file::{TableFile, TableOptions, is_standard_input};
use super::{input, interrupt};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{self, VerificationInput, WholeOriginal};
use crate::publication::{CheckName, Unit};
use crate::random::RandomStreams;
use crate::report::{CheckResult, Manifest, VerificationSummary};
use crate::spec::{DocumentSource, Specification};
use crate::telemetry;

/// Options of the verification.
#[derive(Args)]
pub struct VerifyArguments {
    /// The folder of a release or its address in an object store, or with --rules a table (`-` for standard input): CSV, NDJSON, JSON,
    /// Parquet or Arrow; plain, gzip or zstd
    #[arg(required_unless_present = "request", conflicts_with = "request")]
    path: Option<PathBuf>,
    /// The original table, its address in an object store, or `-` for standard input
    #[arg(long, conflicts_with = "request", value_name = "TABLE")]
    original: Option<PathBuf>,
    /// A rule of the table such as "age, zip -> disease"; may be repeated
    #[arg(long = "rules", value_name = "RULE", requires = "guarantee")]
    rules: Vec<String>,
    /// The guarantee of the rules, in JSON: '{"type":"l_diversity","l":2}'
    #[arg(long, value_name = "JSON", requires = "rules")]
    guarantee: Option<String>,
    /// Verifies the tables of a verification document; its files are in the same folder
    #[arg(long, conflicts_with_all = ["rules", "guarantee"])]
    request: Option<PathBuf>,
    #[command(flatten)]
    options: TableOptions,
}

pub(super) fn run(arguments: &VerifyArguments, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    let path = match (&arguments.path, &arguments.request) {
        (_, Some(request)) => return anything::request(request, json),
        (Some(path), None) if !arguments.rules.is_empty() => return anything::table(path, arguments, json),
        (Some(path), None) => path,
        (None, None) => return Err(CommandOutcome::Usage("nothing to verify".to_owned())),
    };
    let location = Location::parse(path)?;
    if is_standard_input(path) || matches!(&location, Location::Local(path) if path.is_file()) {
        let detail = "to verify a table, give its rules: --rules \"age, zip -> disease\" --guarantee JSON";
        return Err(CommandOutcome::Usage(format!("{}: {detail}", path.display())));
    }
    telemetry::start(LogFormat::Text);
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let shown = ProgressBarGuard::begin(&control);
    let name = path.display().to_string();
    match location {
        Location::Local(directory) => release(&ReleaseFolder { directory, name }, arguments, &control, shown, json),
        Location::Object(address) => {
            let spool = ObjectAccess::new()?.spooled_release(&address, arguments.original.is_some(), &control)?;
            let folder = ReleaseFolder { directory: spool.path().to_owned(), name };
            release(&folder, arguments, &control, shown, json)
        }
    }
}

/// A release in a folder, which may hold a copy of what is elsewhere.
struct ReleaseFolder {
    directory: PathBuf,
    /// What messages call it.
    name: String,
}

fn release(
    ReleaseFolder { directory, name }: &ReleaseFolder,
    arguments: &VerifyArguments,
    control: &Control,
    shown: ProgressBarGuard,
    json: bool,
) -> Result<CommandOutcome, CommandOutcome> {
    let folder = Folder::named(directory, name.clone());
    let manifest = folder.manifest().map_err(CommandOutcome::InputOutput)?;
    let original = OriginalTable::read(directory, arguments, &manifest, control)?;
    let listed: Vec<String> = manifest.attributes().into_iter().map(|(name, _)| name).collect();
    // with the original, the rules come from the specification instead of the manifest
    let specification = original.specification();
    let dropped: Vec<_> = original.job.iter().flat_map(|job| job.dropped.uploaded()).collect();
    let claim = VerificationInput {
        manifest: &manifest,
        names: specification.map_or(&listed, |of| &of.published_names),
        rules: specification.map(|of| of.method.rules()),
        excludable: specification.map(|of| of.excludable.as_slice()),
        taxonomies: specification.map(|of| of.taxonomies.as_slice()),
        requirements: specification.map(|of| of.method.requirements()),
        thresholds: specification.map(|of| of.thresholds.as_slice()),
        closes: specification.map(|of| of.method.closed_reason().is_some()),
        original: original.job.as_ref().map(|job| &job.table),
        dropped: &dropped,
    };
    let failed = |stopped| match stopped {
        engine::EngineError::Failed { cause, .. } => CommandOutcome::InputOutput(format!("{name}: {cause}")),
        other => CommandOutcome::from(other),
    };
    let mut summary = engine::verify(&claim, &folder, control).map_err(failed)?;
    if let Some(OriginalRows { specification, table, persons, ranks }) = &original.whole {
        let names = &specification.published_names;
        let original = WholeOriginal { table, names, persons, ranks };
        let check = engine::verify_contributions(&manifest, &original, &folder, control).map_err(failed)?;
        summary.verified &= check.passed;
        summary.checks.push(check);
    }
    drop(shown);
    if let Some(job) = original.job.filter(|_| manifest.unit != Unit::Row) {
        // only the original shows whether the rows satisfy the unit of protection
        summary.verified &= job.persons.is_none();
        summary.checks.push(CheckResult {
            check: CheckName::Unit,
            passed: job.persons.is_none(),
            detail: job.persons.map(|problem| problem.detail),
        });
    }
    ended(say(&summary, json))?;
    Ok(if summary.verified { CommandOutcome::Done } else { CommandOutcome::NotVerified })
}

/// The original of a release, where it is given.
#[derive(Default)]
struct OriginalTable {
    /// With the rows that were published.
    job: Option<InputJob>,
    /// With all rows, where some were left out by a secret draw.
    whole: Option<OriginalRows>,
}

impl OriginalTable {
    fn read(
        directory: &Path,
        arguments: &VerifyArguments,
        manifest: &Manifest,
        control: &Control,
    ) -> Result<Self, CommandOutcome> {
        let Some(path) = &arguments.original else { return Ok(Self::default()) };
        let document = &input::document(&directory.join("specification.json"))?;
        let table = TableFile { path, format: None, options: arguments.options.parsed()? };
        let unit = &manifest.unit;
        if unit.kept().is_some() {
            let whole = contributions::original(&table, document, unit, control)?;
            return Ok(Self { job: None, whole: Some(whole) });
        }
        let (streams, origin) = (&RandomStreams::Identity, DocumentSource::Reproduction);
        let job = input::job(JobSource { table, document, unit, streams, persons: None, origin }, control)?;
        Ok(Self { job: Some(job), whole: None })
    }

    fn specification(&self) -> Option<&Specification> {
        let of_whole = self.whole.as_ref().map(|original| &original.specification);
        self.job.as_ref().map(|job| &job.specification).or(of_whole)
    }
}

fn say(summary: &VerificationSummary, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        return writeln!(out, "{}", serde_json::to_string_pretty(summary)?);
    }
    for check in &summary.checks {
        let verdict = if check.passed { "holds" } else { "FAILS" };
        let detail = check.detail.as_deref().map_or_else(String::new, |detail| format!(" {detail}"));
        writeln!(out, "{:10} {verdict}{detail}", check.check)?;
    }
    let verdict = if summary.verified { "verified" } else { "NOT VERIFIED" };
    writeln!(out, "{verdict}; linkage {}", summary.linkage.in_words())
}
