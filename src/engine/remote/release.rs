//! One release of a table whose rows are in another engine: plan, write, audit, describe.

use super::counted::{CountedRelease, RemoteOrder, clearing, refuse};
use super::counts::RemoteCounts;
use super::limits::are_parts_read;
use super::port::{
    PublishedRemoteColumn, RemoteAudit, RemoteBuckets, RemoteCheck, RemoteTable, RemoteTablePlan, WrittenRemotePart,
};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::prepare::known_forms::DescribedDependencies;
use crate::engine::prepare::wording::method_name;
use crate::engine::prepare::{PreparedRelease, losses};
use crate::engine::read_back::exposures;
use crate::engine::read_back::exposures::{FigureReader, PublishedTables};
use crate::engine::read_back::figures::{achieved, bucket_sizes, closed, summary};
use crate::engine::release::ledger_entries::ledger_entries;
use crate::engine::release::run::declared_choices;
use crate::engine::release::write::PartStore;
use crate::ledger::{ActiveRule, Disclosure};
use crate::microdata::{Attr, AttrSet, AttributeType};
use crate::problem::{Fault, Kind};
use crate::publication::{
    CellContent, CheckName, Linkage, NoticeKind, Part, Publication, PublishedBytes, PublishedColumn, PublishedTable,
    RowMeaning, TableName, TableProtection,
};
use crate::publish::DesignedTable;
use crate::publish::ranked::{UseKey, contents, place_filled, plan_buckets};
use crate::report::{
    Manifest, ManifestExposures, ManifestInput, Provenance, SpecificationNotice, Utility, WritingEngine, WrittenPart,
    manifest,
};
use crate::verifier;
use crate::verifier::{Check, CountedTables, OriginalValues, TableContents, VerifierInput, VerifierReport};

/// Plans a release from counts, has its parts written and audited by the engine that has the rows, and describes it.
///
/// Nothing is left of the assignment of rows to buckets when it returns. The caller makes the release visible.
///
/// # Errors
/// [`EngineError`]: cancelled, refused, or failed. The parts written so far are then worthless.
pub fn release_remotely(
    order: &RemoteOrder<'_>,
    table: &mut dyn RemoteTable,
    output: RemoteOutput<'_>,
    control: &Control,
) -> Result<AuditedRelease, EngineError> {
    clearing(table, |table| {
        let counted = order.counted(table, control)?;
        refuse(counted.faults.clone())?;
        let planned = PlannedRemotely::new(order, counted)?;
        refuse(planned.faults(control)?)?;
        planned.made(table, output, control)
    })
}

/// What a release becomes.
pub struct RemoteOutput<'a> {
    /// Its identity and time.
    pub provenance: &'a Provenance,
    /// The engine, for the manifest.
    pub made_by: WritingEngine,
    /// Where its parts go.
    pub parts: RemoteParts<'a>,
}

/// Where the parts go that an engine writes.
pub enum RemoteParts<'a> {
    /// They stay where it writes them. Small ones that this machine reaches are read for what no rule prevents.
    Stay(Option<&'a dyn PublishedBytes>),
    /// Into a store, as those of any other release.
    Carried(&'a mut dyn PartStore),
}

/// A release that passed its audit, with what the ledger records of it.
#[derive(Clone, Debug)]
pub struct AuditedRelease {
    /// Its manifest.
    pub manifest: Manifest,
    /// The disclosures that the ledger records.
    pub disclosures: Vec<Disclosure>,
    /// The rules that later releases must satisfy.
    pub rules: Vec<ActiveRule>,
}

/// A release whose tables are planned.
pub(super) struct PlannedRemotely<'a> {
    order: &'a RemoteOrder<'a>,
    pub(super) prepared: PreparedRelease,
    pub(super) publication: Publication,
    plans: Vec<RemoteTablePlan>,
    kinds: Vec<AttributeType>,
    values: Vec<usize>,
    protected: Vec<OriginalValues>,
    rows: u64,
}

impl<'a> PlannedRemotely<'a> {
    /// Plans the tables of a release without faults.
    pub(super) fn new(order: &'a RemoteOrder<'a>, counted: CountedRelease) -> Result<Self, EngineError> {
        let CountedRelease { prepared, counts, protected, .. } = counted;
        let (plans, values) = order.plans(&prepared, &counts)?;
        let publication = order.publication(&prepared, counts.rows);
        let kinds = counts.columns.iter().map(|column| column.kind).collect();
        let protected = protected.iter().filter_map(|attr| counts.protected(attr)).collect();
        Ok(Self { order, prepared, publication, plans, kinds, values, protected, rows: counts.rows })
    }
}

impl RemoteOrder<'_> {
    /// The plan of each table, and how many values its sensitive attribute has.
    fn plans(
        &self,
        prepared: &PreparedRelease,
        counts: &RemoteCounts,
    ) -> Result<(Vec<RemoteTablePlan>, Vec<usize>), EngineError> {
        let published = |attr: Attr| PublishedRemoteColumn {
            column: self.specification.used[attr.index()],
            name: self.specification.published_names[attr.index()].clone(),
        };
        let (mut plans, mut values_of) = (Vec::new(), Vec::new());
        for (index, designed) in prepared.design.tables.iter().enumerate() {
            let name = TableName::at(index).0;
            let single = designed.bucketized().and_then(|bucketized| bucketized.single());
            let mut buckets = None;
            if let Some((attr, guarantees)) = single {
                let OriginalValues { values, rows, .. } = counts.protected(attr).ok_or_else(unknown_values)?;
                let plan = match designed.bucketized().and_then(|bucketized| bucketized.planned()) {
                    Some(planned) => place_filled(&planned.filled, self.key, &name),
                    None => plan_buckets(&rows, guarantees, self.key, &name)
                        .map_err(|error| EngineError::bug(error.to_string()))?,
                };
                values_of.push(values.len());
                buckets = Some(RemoteBuckets {
                    sensitive: published(attr),
                    values,
                    plan,
                    key: UseKey::of_ranks(self.key, &name),
                });
            } else {
                values_of.push(0);
            }
            let sensitive = single.map_or(AttrSet::EMPTY, |(attr, _)| AttrSet::one(attr));
            let known = designed.attributes.minus(sensitive).iter().map(published).collect();
            plans.push(RemoteTablePlan { name, known, buckets });
        }
        Ok((plans, values_of))
    }

    fn publication(&self, prepared: &PreparedRelease, rows: u64) -> Publication {
        let table = |(index, designed): (usize, &DesignedTable)| {
            let (sensitive, protection) = match designed.bucketized() {
                Some(bucketized) => (bucketized.sensitive(), TableProtection::Guarding(bucketized.guards.clone())),
                None => (AttrSet::EMPTY, TableProtection::Plain),
            };
            let known = designed.attributes.minus(sensitive);
            let parts = match sensitive.is_empty() {
                true => vec![self.part("rows", known, false, rows)],
                false => vec![self.part("qi", known, true, rows), self.part("sa", sensitive, true, rows)],
            };
            PublishedTable { name: TableName::at(index), parts, protection }
        };
        Publication {
            tables: prepared.design.tables.iter().enumerate().map(table).collect(),
            rules: prepared.design.protection(),
            method_details: prepared.design.details.clone(),
            suppressed: 0,
        }
    }

    fn part(&self, name: &str, attributes: AttrSet, bucketed: bool, rows: u64) -> Part {
        let column = |attribute: Attr| PublishedColumn {
            attribute,
            name: self.specification.published_names[attribute.index()].clone(),
            cells: CellContent::Exact,
        };
        let columns = attributes.iter().map(column).collect();
        Part { name: name.to_owned(), columns, rows: RowMeaning::Tuples, bucketed, len: rows, null: None }
    }
}

/// What was found of the parts of a release.
struct FoundRemotely<'a> {
    written: &'a [Vec<WrittenPart>],
    verification: &'a VerifierReport,
    exposures: Option<ManifestExposures>,
}

fn unknown_values() -> EngineError {
    EngineError::bug("the values of a protected attribute are not known")
}

/// Parts that cannot be opened here.
struct PartsElsewhere;

impl PublishedBytes for PartsElsewhere {
    fn open(&self, _: &str) -> std::io::Result<Box<dyn std::io::Read + '_>> {
        Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "the parts are in another engine"))
    }
}

impl PlannedRemotely<'_> {
    /// What breaks the claims by the verifier's definitions, before anything is written.
    pub(super) fn faults(&self, control: &Control) -> Result<Vec<Fault>, EngineError> {
        let planned = self.plans.iter().zip(&self.values).map(|(plan, &values)| {
            let buckets = plan.buckets.as_ref().map(|of| contents(&of.plan.segments)).unwrap_or_default();
            TableContents { buckets, values }
        });
        let report = self.judged(&planned.collect::<Vec<_>>(), control)?;
        let Some(broken) = report.checks.iter().find(|check| !check.passed) else { return Ok(Vec::new()) };
        match broken.check {
            CheckName::Dependencies | CheckName::Gnf => {
                let because = broken.detail.as_deref().unwrap_or_default();
                let detail = format!(
                    "with counts alone the tables do not keep every rule ({because}): publish the table from a file, or fewer attributes"
                );
                Ok(vec![Fault::new("/method", Kind::GuaranteeUnsupported, detail)])
            }
            _ => Err(EngineError::bug(format!("a plan breaks its claims: {:?}", broken.detail))),
        }
    }

    fn judged(&self, found: &[TableContents], control: &Control) -> Result<VerifierReport, EngineError> {
        let Self { order: RemoteOrder { specification, .. }, prepared, publication, .. } = self;
        let known = prepared.dependencies.all.iter().map(|of| (of.determinant, AttrSet::one(of.dependent)));
        let known: Vec<(AttrSet, AttrSet)> = known.collect();
        let names = prepared.dependencies.names(specification);
        let kinds: Vec<Option<AttributeType>> = self.kinds.iter().copied().map(Some).collect();
        let input = VerifierInput {
            publication,
            submitted: specification.method.rules(),
            dependencies: &known,
            dependency_search: None,
            parts: &PartsElsewhere,
            original: None,
            dropped: &[],
            witness: None,
            names: &names,
            kinds: &kinds,
            accounted: AttrSet::first(specification.names.len()),
            excludable: &specification.excludable,
            taxonomies: &specification.taxonomies,
            earlier_releases: None,
            thresholds: &specification.thresholds,
            closes: specification.method.closed_reason().is_some(),
        };
        let found = CountedTables { contents: found, protected: &self.protected };
        Ok(verifier::verify_contents(&input, found, control)?)
    }

    /// Has the tables written and audited; the manifest of what was found.
    fn made(
        self,
        table: &mut dyn RemoteTable,
        output: RemoteOutput<'_>,
        control: &Control,
    ) -> Result<AuditedRelease, EngineError> {
        let RemoteOutput { provenance, made_by, parts } = output;
        control.begin(Phase::Write, self.plans.len() as u64)?;
        let mut written = Vec::new();
        for plan in &self.plans {
            written.push(self.checked(plan, table.write(plan)?)?);
            control.advance(1)?;
        }
        control.begin(Phase::Verify, self.plans.len() as u64)?;
        let mut audits = Vec::new();
        for plan in &self.plans {
            audits.push(table.audit(plan)?);
            control.advance(1)?;
        }
        let verification = self.verified(audits, control)?;
        let (described, exposures) = match parts {
            RemoteParts::Stay(parts) => (self.staying(written), self.exposures(parts, control)?),
            RemoteParts::Carried(store) => {
                let carried = self.carried(table, &written, &mut *store, control)?;
                (carried, self.exposures(Some(&*store), control)?)
            }
        };
        let figures = FoundRemotely { written: &described, verification: &verification, exposures };
        let manifest = self.manifest(provenance, made_by, figures);
        let (disclosures, rules) = ledger_entries(self.order.specification, &self.prepared, &self.publication);
        Ok(AuditedRelease { manifest, disclosures, rules })
    }

    /// The types of the columns of a part.
    pub(super) fn kinds_of(&self, part: &Part) -> Vec<AttributeType> {
        part.columns.iter().map(|column| self.kinds[column.attribute.index()]).collect()
    }

    /// The written files as the parts of the release.
    fn staying(&self, written: Vec<Vec<WrittenRemotePart>>) -> Vec<Vec<WrittenPart>> {
        let tables = self.publication.tables.iter().zip(written);
        let described = |(part, written): (&Part, WrittenRemotePart)| WrittenPart {
            sha256: None,
            files: written.files,
            types: self.kinds_of(part),
        };
        tables.map(|(table, written)| table.parts.iter().zip(written).map(described).collect()).collect()
    }

    /// The files of a table, if they hold as many rows as the table.
    fn checked(
        &self,
        plan: &RemoteTablePlan,
        parts: Vec<WrittenRemotePart>,
    ) -> Result<Vec<WrittenRemotePart>, EngineError> {
        let expected: &[&str] = if plan.buckets.is_some() { &["qi", "sa"] } else { &["rows"] };
        if parts.iter().map(|part| part.name).ne(expected.iter().copied()) {
            return Err(EngineError::bug("the engine wrote other parts than were planned"));
        }
        match parts.iter().find(|part| part.files.iter().map(|file| file.rows).sum::<u64>() != self.rows) {
            None => Ok(parts),
            Some(part) => {
                let detail = format!("part {} of {} has other rows than the table", part.name, plan.name);
                Err(EngineError::bug(detail))
            }
        }
    }

    /// The checks of the written files: those of the engine that has the rows, and those of the contents that it counted.
    fn verified(&self, audits: Vec<RemoteAudit>, control: &Control) -> Result<VerifierReport, EngineError> {
        use RemoteCheck::{Buckets, Columns, Content, Linkage as Linked, Order, Place};
        let mut broken: Vec<(RemoteCheck, u64)> = Vec::new();
        for (plan, audit) in self.plans.iter().zip(&audits) {
            let needed: &[RemoteCheck] = match plan.buckets {
                Some(_) => &[Content, Buckets, Linked, Place, Columns, Order],
                None => &[Content, Place, Columns, Order],
            };
            // a check without an answer counts as broken
            broken.extend(needed.iter().map(|check| (*check, audit.broken.get(check).copied().unwrap_or(1))));
        }
        let found = audits.into_iter().zip(&self.values);
        let found = found.map(|(audit, &values)| TableContents { buckets: audit.contents, values });
        let mut report = self.judged(&found.collect::<Vec<_>>(), control)?;
        let of_engine = [
            (CheckName::Content, [Content, Linked].as_slice()),
            (CheckName::Buckets, &[Buckets, Place]),
            (CheckName::Order, &[Order]),
            (CheckName::Columns, &[Columns]),
        ];
        for (name, checks) in of_engine {
            let failed = broken.iter().filter(|(check, count)| checks.contains(check) && *count > 0).count();
            let detail = (failed > 0).then(|| format!("{failed} checks of the written files failed"));
            match report.checks.iter_mut().find(|check| check.check == name) {
                Some(check) if detail.is_some() => *check = Check { check: name, passed: false, detail },
                Some(_) => {}
                None => report.checks.push(Check { check: name, passed: detail.is_none(), detail }),
            }
        }
        report.checks.sort_by_key(|check| CheckName::OF_VERIFIER.iter().position(|name| *name == check.check));
        if !report.verified() {
            let failed = report.checks.iter().filter(|check| !check.passed);
            let failed: Vec<String> =
                failed.map(|check| format!("{}: {}", check.check, check.detail.as_deref().unwrap_or(""))).collect();
            return Err(EngineError::bug(format!("the audit of the written files failed: {}", failed.join("; "))));
        }
        report.linkage = Linkage::Checked;
        Ok(report)
    }

    /// What no rule prevents, as far as the parts are small and at hand.
    fn exposures(
        &self,
        parts: Option<&dyn PublishedBytes>,
        control: &Control,
    ) -> Result<Option<ManifestExposures>, EngineError> {
        let RemoteOrder { specification, .. } = self.order;
        let Some(parts) = parts.filter(|_| are_parts_read(self.rows)) else { return Ok(None) };
        let tables = PublishedTables {
            publication: &self.publication,
            names: &specification.published_names,
            taxonomies: &specification.taxonomies,
        };
        Ok(Some(exposures::of_parts(FigureReader::new(tables, control), parts)?.exposures))
    }

    fn manifest(&self, provenance: &Provenance, made_by: WritingEngine, found: FoundRemotely<'_>) -> Manifest {
        let Self { order: RemoteOrder { specification, .. }, prepared, publication, .. } = self;
        let FoundRemotely { written, verification, exposures } = found;
        let dependencies = &prepared.dependencies;
        let described = DescribedDependencies { dependencies, design: &prepared.design, specification };
        let mut warnings = declared_choices(specification);
        warnings.extend(described.notices());
        warnings.extend(losses::describe_losses(specification, &prepared.design));
        warnings.extend(exposures.is_none().then(|| SpecificationNotice {
            r#type: NoticeKind::ExposureNotComplete,
            pointer: None,
            detail: "how many rows are unique, and what columns reveal that no rule protects, was not counted: the parts are in another \
                     engine or have too many rows"
                .to_owned(),
        }));
        let rules = 0..publication.rules.len();
        manifest(ManifestInput {
            provenance,
            method: method_name(&specification.method, &prepared.design.decision),
            publication,
            names: &dependencies.names(specification),
            written,
            verification: summary(verification),
            utility: Utility::of_parts(bucket_sizes(verification, publication), Vec::new()),
            achieved: rules.clone().map(|rule| achieved(verification, publication, rule)).collect(),
            closed: rules.map(|rule| closed(verification, publication, rule)).collect(),
            exposures,
            made_by: Some(made_by),
            dependencies: described.in_json(),
            determined: described.determined(publication.rules.iter().map(|rule| rule.known)),
            declared: specification.declared_inputs(),
            warnings,
        })
    }
}
