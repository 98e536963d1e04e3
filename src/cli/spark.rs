//! `--engine` of `guardian publish` and `guardian plan`: a table is published where it is, in Apache Spark.

use std::path::{Path, PathBuf};

use super::documents::provenance;
use super::engine_options::{EngineJob, EngineOptions};
use super::exit::CommandOutcome;
use super::progress::ProgressBarGuard;
use super::publish_summary::PublishSummary;
use super::release_place::BegunRelease;
use super::{input, interrupt};
use crate::control::Control;
use crate::engine;
use crate::engine::{EngineError, Plan, RemoteOrder, RemoteOutput, RemoteParts, RemoteTable};
use crate::ledger::EarlierDisclosures;
use crate::problem::Problem;
use crate::publication::Unit;
use crate::random::RandomStreams;
use crate::report::{Manifest, ManifestExposures, SpecificationNotice, WritingEngine};
use crate::spark::{
    ConnectSession, EngineAddress, EngineAddressError, EngineEncryption, SharedFolders, SparkSource, SparkTable,
    SqlSession,
};
use crate::spec::{ColumnFacts, DatasetSchema, DocumentSource, ParsedDocument, Specification};

impl EngineOptions {
    /// The address with its token, which is never shown.
    fn address(&self, url: &str) -> Result<String, CommandOutcome> {
        let address = EngineAddress::new(url, self.engine_token_file.clone());
        address.and_then(|address| address.with_token()).map_err(|error| match error {
            EngineAddressError::Io(path, error) => CommandOutcome::io(&path, &error),
            other => usage(&other.to_string()),
        })
    }
}

impl EngineJob<'_> {
    /// Publishes the table and prints what the release is.
    pub(super) fn publish(&self, url: &str, out: &Path, json: bool) -> Result<CommandOutcome, CommandOutcome> {
        let control = Control::default();
        interrupt::cancel_on_signal(&control);
        let shown = ProgressBarGuard::begin(&control);
        let (begun, folders) = BegunRelease::begin_shared(out, &self.scratch())?;
        let mut opened = self.opened(url, folders, &control)?;
        let provenance = &provenance(self.reproducible);
        let made_by = WritingEngine { engine: "spark".to_owned(), version: opened.version.clone() };
        let output = RemoteOutput { provenance, made_by, parts: RemoteParts::Stay(Some(&begun.draft)) };
        let release =
            self.ordered(&mut opened, |order, table| engine::release_remotely(order, table, output, &control))?;
        // the session ends before the release is visible
        drop((shown, opened.table));
        let Manifest { exposures, warnings, .. } = &release.manifest;
        let incomplete = exposures.as_ref().and_then(ManifestExposures::incomplete);
        let warnings = opened.undeclared.into_iter().chain(warnings.iter().cloned()).chain(incomplete).collect();
        let report = begun.describe(&release.manifest, &opened.specification)?;
        begun.complete(&release.manifest, &control)?;
        PublishSummary { folder: out, manifest: &release.manifest, report: &report, warnings }.print(json)
    }

    /// What a publication would do.
    pub(super) fn plan(&self, url: &str, control: &Control) -> Result<Plan, CommandOutcome> {
        let scratch = self.scratch();
        let folders = SharedFolders::from_scratch(&scratch).map_err(|error| CommandOutcome::io(&scratch, &error))?;
        let mut opened = self.opened(url, folders, control)?;
        let mut plan = self.ordered(&mut opened, |order, table| engine::plan_remotely(order, table, control))?;
        plan.warnings.extend(opened.undeclared);
        Ok(plan)
    }

    fn scratch(&self) -> PathBuf {
        self.options.scratch.clone().unwrap_or_default()
    }

    /// Counts the table and reads the specification against it.
    fn opened(&self, url: &str, folders: SharedFolders, control: &Control) -> Result<OpenedJob, CommandOutcome> {
        let document = input::document(self.files.specification()?)?;
        let name = self.files.table()?.path.display().to_string();
        let source = SparkSource::parse(&name).map_err(|error| usage(&error.to_string()))?;
        if self.files.population().open()?.is_some() {
            return Err(usage("nights are drawn from rows, which are in the engine: publish a file"));
        }
        let address = self.options.address(url)?;
        let encryption = EngineEncryption::from_option(self.options.engine_require_encryption);
        let session = ConnectSession::connect(&address, encryption, control);
        let mut session = session.map_err(EngineError::from)?;
        let version = session.version().map_err(EngineError::from)?;
        let table = SparkTable::open(session, &source, folders).map_err(EngineError::from)?;
        let origin = if self.reproducible { DocumentSource::Reproduction } else { DocumentSource::CommandLine };
        let unit = self.files.unit();
        let specification = read(&document, &unit, origin, &table)?;
        let profiles = || table.columns().iter().map(|column| column.profile(table.rows())).collect::<Vec<_>>();
        let undeclared = match unit {
            Unit::Row => engine::undeclared_subject(&profiles(), table.rows()),
            Unit::Subject { .. } => None,
        };
        Ok(OpenedJob { table, specification, version, undeclared })
    }

    fn ordered<T>(
        &self,
        OpenedJob { table, specification, .. }: &mut OpenedJob,
        run: impl FnOnce(&RemoteOrder<'_>, &mut dyn RemoteTable) -> Result<T, EngineError>,
    ) -> Result<T, CommandOutcome> {
        let RandomStreams::Keyed(key) = &self.streams else {
            return Err(usage("the engine needs a key: `identity` is for files"));
        };
        Ok(run(&RemoteOrder { specification, key, earlier: &EarlierDisclosures::default() }, table)?)
    }
}

/// A counted table with the specification of its release.
struct OpenedJob {
    table: SparkTable<ConnectSession>,
    specification: Specification,
    /// The version of the engine.
    version: String,
    /// That persons seem to have several rows, and nothing is said of persons.
    undeclared: Option<SpecificationNotice>,
}

fn usage(message: &str) -> CommandOutcome {
    CommandOutcome::Usage(message.to_owned())
}

/// The specification, read against the columns of the table.
fn read(
    document: &serde_json::Value,
    unit: &Unit,
    origin: DocumentSource,
    table: &impl RemoteTable,
) -> Result<Specification, CommandOutcome> {
    let facts = table.columns().iter().map(|of| ColumnFacts::new(&of.profile(table.rows()), table.rows()));
    let facts: Vec<ColumnFacts> = facts.collect();
    let schema = DatasetSchema { columns: &facts, keys: &[], unit };
    let ParsedDocument { specification, faults } = crate::spec::read(document, &schema, origin);
    let refused = || CommandOutcome::Refused(Box::new(Problem::of_faults(faults.clone())));
    specification.filter(|_| faults.is_empty()).ok_or_else(refused)
}
