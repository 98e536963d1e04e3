//! `guardian publish`: publishes a table without a server.

use std::path::PathBuf;

use clap::Args;

use super::documents::{pretty, provenance};
use super::engine_options::{EngineJob, EngineOptions};
use super::exit::CommandOutcome;
use super::input::JobSource;
use super::job_files::JobFiles;
use super::population::OpenedPopulation;
use super::progress::ProgressBarGuard;
use super::publish_summary::PublishSummary;
use super::release_place::BegunRelease;
use super::{input, interrupt, population};
use crate::config::LogFormat;
use crate::control::Control;
use crate::engine::{self, ReleaseInput};
use crate::ledger::EarlierDisclosures;
use crate::random::{RandomStreams, ReleaseKey};
use crate::report::{ManifestExposures, SpecificationNotice};
use crate::spec::{DocumentSource, SpecWarning};
use crate::telemetry;

/// Options of the publication.
#[derive(Args)]
pub struct PublishArguments {
    #[command(flatten)]
    files: JobFiles,
    #[command(flatten)]
    engine: EngineOptions,
    /// The folder of the release, or its address in an object store, such as s3://bucket/prefix; must not exist, or be empty
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Uses this key (64 hexadecimal digits, or `identity`) instead of a new secret one. The release is only as secret
    /// as the key
    #[arg(long, value_name = "KEY", value_parser = reproduced)]
    reproduce: Option<KeyOption>,
    /// Writes the internal report to this file, as `internal` of the specification requests. It is not for readers and must be outside
    /// the folder of the release
    #[arg(long, value_name = "FILE", conflicts_with = "engine")]
    internal_report: Option<PathBuf>,
}

impl PublishArguments {
    /// The streams of a new secret key, or of the given one.
    fn streams(&self) -> Result<RandomStreams, CommandOutcome> {
        let drawn = || ReleaseKey::draw().map_err(|error| CommandOutcome::Internal(error.to_string()));
        Ok(match &self.reproduce {
            None => RandomStreams::Keyed(drawn()?),
            Some(KeyOption::Bytes(bytes)) => RandomStreams::Keyed(ReleaseKey::from_bytes(*bytes)),
            Some(KeyOption::Identity) => RandomStreams::Identity,
        })
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

pub(super) fn run(arguments: &PublishArguments, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    telemetry::start(LogFormat::Text);
    match &arguments.engine.engine {
        Some(url) => {
            let (streams, reproducible) = (arguments.streams()?, arguments.reproduce.is_some());
            let PublishArguments { files, out, engine: options, .. } = arguments;
            EngineJob { files, options, streams, reproducible }.publish(url, out, json)
        }
        None => publish_file(arguments, json),
    }
}

fn publish_file(arguments: &PublishArguments, json: bool) -> Result<CommandOutcome, CommandOutcome> {
    let control = Control::default();
    interrupt::cancel_on_signal(&control);
    let shown = ProgressBarGuard::begin(&control);
    let document = input::document(arguments.files.specification()?)?;
    let (table, unit) = (arguments.files.table()?, arguments.files.unit());
    let population = arguments.files.population().open()?;
    let mut begun = BegunRelease::begin(&arguments.out, population.as_ref())?;
    let origin = if arguments.reproduce.is_some() { DocumentSource::Reproduction } else { DocumentSource::CommandLine };
    let streams = arguments.streams()?;
    let source = JobSource {
        table,
        document: &document,
        unit: &unit,
        streams: &streams,
        persons: population.as_ref().map(OpenedPopulation::keys),
        origin,
    };
    let job = input::job(source, &control)?;
    OpenedPopulation::check(population.as_ref(), &job.specification)?;
    if let Some(problem) = job.persons {
        return Err(CommandOutcome::Refused(Box::new(problem)));
    }
    let order = ReleaseInput {
        specification: &job.specification,
        table: &job.table,
        streams: &streams,
        extra: None,
        dropped: &job.dropped.uploaded().collect::<Vec<_>>(),
        earlier: &EarlierDisclosures::default(),
        provenance: &provenance(arguments.reproduce.is_some()),
        contributions: job.contributions,
        republish: population.as_ref().map(|population| population.input(&job.republished)),
    };
    let mut released = engine::release(&order, &mut begun.draft, &control)?;
    drop(shown);
    let report = begun.describe(&released.manifest, &job.specification)?;
    let _locked = match (population, released.state.take()) {
        (Some(OpenedPopulation { file, .. }), Some(state)) => {
            // a night that the state does not know would be published once more; one that it knows is put in its place by the next run
            begun.draft.settle().map_err(|error| CommandOutcome::io(&arguments.out, &error))?;
            Some(file.replace(state).map_err(population::outcome)?)
        }
        _ => None,
    };
    begun.complete(&released.manifest, &control)?;
    if let Some(path) = &arguments.internal_report {
        std::fs::write(path, pretty(&released.internal)?).map_err(|error| CommandOutcome::io(path, &error))?;
    }
    let incomplete: Vec<_> = released.manifest.exposures.iter().filter_map(ManifestExposures::incomplete).collect();
    let notices = [&released.manifest.warnings[..], &released.internal.warnings, &incomplete];
    let undeclared = job.undeclared.into_iter();
    let warnings = undeclared.chain(warnings(&job.specification.warnings, notices)).collect();
    PublishSummary { folder: &arguments.out, manifest: &released.manifest, report: &report, warnings }.print(json)
}

/// What deserves attention though it is permitted, each once: a column that nearly identifies persons, an attribute that moved.
fn warnings(of_specification: &[SpecWarning], notices: [&[SpecificationNotice]; 3]) -> Vec<SpecificationNotice> {
    let of_specification = of_specification.iter().map(|SpecWarning { pointer, type_, detail }| SpecificationNotice {
        r#type: *type_,
        pointer: pointer.clone(),
        detail: detail.clone(),
    });
    let mut warnings: Vec<SpecificationNotice> = Vec::new();
    for notice in of_specification.chain(notices.concat()) {
        if warnings.iter().all(|known| (known.r#type, &known.detail) != (notice.r#type, &notice.detail)) {
            warnings.push(notice);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::NoticeKind;
    use crate::report::ManifestRatio;

    #[test]
    fn an_incomplete_search_is_a_warning() {
        let of = |tried| ManifestExposures { choices: ManifestRatio::new(tried, 820), ..ManifestExposures::default() };
        assert_eq!(of(820).incomplete(), None);
        let incomplete: Vec<_> = of(100).incomplete().into_iter().collect();
        let shown = warnings(&[], [&[], &[], &incomplete]);
        let [notice] = &shown[..] else { panic!("{shown:?}") };
        assert_eq!(notice.r#type, NoticeKind::ExposureNotComplete);
        assert!(notice.detail.contains("100 of 820 choices"), "{notice:?}");
    }
}
