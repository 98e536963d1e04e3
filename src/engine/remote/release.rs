//! One release of a table whose rows are in another engine: plan, write, audit, describe.

use super::counted::{CountedRelease, RemoteOrder, clearing, refuse};
use super::counts::RemoteCounts;
use super::limits::are_parts_read;
use super::planned_tables::PlannedTable;
use super::port::{RemoteAudit, RemoteCheck, RemoteForm, RemoteTable, RemoteTablePlan, WrittenRemotePart};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::prepare::known_forms::DescribedDependencies;
use crate::engine::prepare::wording::method_name;
use crate::engine::prepare::{PreparedRelease, losses, wording};
use crate::engine::read_back::entropy;
use crate::engine::read_back::exposures;
use crate::engine::read_back::exposures::{FigureReader, FiguresOfParts, PublishedTables};
use crate::engine::read_back::figures::{achieved, bucket_sizes, closed, summary};
use crate::engine::release::ledger_entries::ledger_entries;
use crate::engine::release::run::declared_choices;
use crate::engine::release::write::PartStore;
use crate::ledger::{ActiveRule, Disclosure};
use crate::microdata::{Attr, AttrSet, AttributeType};
use crate::problem::{Fault, Kind};
use crate::publication::{
    CellContent, CheckName, Linkage, ModelKind, NoticeKind, Part, Publication, PublishedBytes, PublishedColumn,
    PublishedTable, RowMeaning, TableName, TableProtection,
};
use crate::publish::{DesignedTable, TableDesign};
use crate::report::{
    Manifest, ManifestInput, Provenance, SpecificationNotice, Utility, WritingEngine, WrittenPart, manifest,
};
use crate::verifier;
use crate::verifier::{
    AttributeContents, Check, CountedTables, CoveredColumn, OriginalValues, TableContents, VerifierInput,
    VerifierReport,
};

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
        let mut counted = order.counted(table, control)?;
        refuse(counted.faults.clone())?;
        let tables = order.tables(&mut counted, table, control)??;
        let planned = PlannedRemotely::new(order, counted, tables);
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
    tables: Vec<PlannedTable>,
    counts: RemoteCounts,
    protected: Vec<OriginalValues>,
}

impl<'a> PlannedRemotely<'a> {
    pub(super) fn new(order: &'a RemoteOrder<'a>, counted: CountedRelease, tables: Vec<PlannedTable>) -> Self {
        let CountedRelease { prepared, counts, protected, .. } = counted;
        let publication = order.publication(&prepared, &tables, counts.rows);
        let protected = protected.iter().filter_map(|attr| counts.protected(attr)).collect();
        Self { order, prepared, publication, tables, counts, protected }
    }

    fn plans(&self) -> impl ExactSizeIterator<Item = &RemoteTablePlan> {
        self.tables.iter().map(|table| &table.plan)
    }
}

impl RemoteOrder<'_> {
    fn publication(&self, prepared: &PreparedRelease, planned: &[PlannedTable], rows: u64) -> Publication {
        let table = |(index, designed): (usize, &DesignedTable)| {
            if let Some(generalized) = designed.generalized() {
                let columns = planned[index].shared.clone();
                let protection = match generalized.guarding {
                    true => TableProtection::Guarding(generalized.keeps.clone()),
                    false => TableProtection::Exclusive,
                };
                return PublishedTable {
                    name: TableName::at(index),
                    parts: vec![part("rows", columns, rows)],
                    protection,
                };
            }
            if let TableDesign::Sliced(sliced) = &designed.design {
                let of_column = |(column, number): (&AttrSet, u32)| Part {
                    bucketed: true,
                    ..part(&format!("c{number}"), self.exact(*column), rows)
                };
                return PublishedTable {
                    name: TableName::at(index),
                    parts: sliced.columns.iter().zip(1..).map(of_column).collect(),
                    protection: TableProtection::Guarding(sliced.guards.clone()),
                };
            }
            let (sensitive, protection) = match designed.bucketized() {
                Some(bucketized) => (bucketized.sensitive(), TableProtection::Guarding(bucketized.guards.clone())),
                None => (AttrSet::EMPTY, TableProtection::Plain),
            };
            let known = designed.attributes.minus(sensitive);
            let parts = match sensitive.is_empty() {
                true => vec![part("rows", self.exact(known), rows)],
                false => [("qi", known), ("sa", sensitive)]
                    .map(|(name, of)| Part { bucketed: true, ..part(name, self.exact(of), rows) })
                    .into(),
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

    /// The columns of attributes that are published as they are.
    fn exact(&self, attributes: AttrSet) -> Vec<PublishedColumn> {
        let column = |attribute: Attr| PublishedColumn {
            attribute,
            name: self.specification.published_names[attribute.index()].clone(),
            cells: CellContent::Exact,
        };
        attributes.iter().map(column).collect()
    }
}

/// A part without buckets.
fn part(name: &str, columns: Vec<PublishedColumn>, rows: u64) -> Part {
    Part { name: name.to_owned(), columns, rows: RowMeaning::Tuples, bucketed: false, len: rows, null: None }
}

/// What was found of the parts of a release.
struct FoundRemotely<'a> {
    written: &'a [Vec<WrittenPart>],
    verification: &'a VerifierReport,
    /// What the parts say by themselves, as far as they were read.
    figures: Option<FiguresOfParts>,
    /// The entropy of the model, with its kind, where it is asked for and the parts were read.
    entropy: Option<(f64, ModelKind)>,
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
        let planned: Vec<TableContents> = self.tables.iter().map(|table| table.contents.clone()).collect();
        let report = self.judged(&planned, None, control)?;
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

    /// What the verifier says of the contents of buckets and classes, and of the values behind cells once they are written.
    fn judged(
        &self,
        found: &[TableContents],
        covered: Option<&[Vec<CoveredColumn>]>,
        control: &Control,
    ) -> Result<VerifierReport, EngineError> {
        let Self { order: RemoteOrder { specification, .. }, prepared, publication, .. } = self;
        let known = prepared.dependencies.all.iter().map(|of| (of.determinant, AttrSet::one(of.dependent)));
        let known: Vec<(AttrSet, AttrSet)> = known.collect();
        let names = prepared.dependencies.names(specification);
        let kinds: Vec<Option<AttributeType>> = self.counts.columns.iter().map(|column| Some(column.kind)).collect();
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
        let found = CountedTables { contents: found, protected: &self.protected, covered };
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
        control.begin(Phase::Write, self.tables.len() as u64)?;
        let mut written = Vec::new();
        for plan in self.plans() {
            written.push(self.checked(plan, table.write(plan)?)?);
            control.advance(1)?;
        }
        control.begin(Phase::Verify, self.tables.len() as u64)?;
        let mut audits = Vec::new();
        for plan in self.plans() {
            audits.push(table.audit(plan)?);
            control.advance(1)?;
        }
        let verification = self.verified(audits, control)?;
        let carried;
        let (described, at_hand): (_, Option<&dyn PublishedBytes>) = match parts {
            RemoteParts::Stay(parts) => (self.staying(written), parts),
            RemoteParts::Carried(store) => {
                carried = store;
                (self.carried(table, &written, &mut *carried, control)?, Some(&*carried))
            }
        };
        let read = at_hand.filter(|_| are_parts_read(self.counts.rows));
        let figures = read.map(|parts| self.figures(parts, control)).transpose()?;
        let entropy = read.filter(|_| self.order.specification.entropy);
        let entropy = entropy.map(|parts| self.entropy(parts, control)).transpose()?;
        let found = FoundRemotely { written: &described, verification: &verification, figures, entropy };
        let manifest = self.manifest(provenance, made_by, found);
        let (disclosures, rules) = ledger_entries(self.order.specification, &self.prepared, &self.publication);
        Ok(AuditedRelease { manifest, disclosures, rules })
    }

    /// The types of the attributes of a part.
    pub(super) fn types_of(&self, part: &Part) -> Vec<AttributeType> {
        part.columns.iter().map(|column| self.counts.columns[column.attribute.index()].kind).collect()
    }

    /// The types of the cells of a part: those that stand for several values are texts.
    pub(super) fn kinds_of(&self, part: &Part) -> Vec<AttributeType> {
        let cells = part.columns.iter().map(|column| &column.cells);
        let kind = |(cells, kind): (&CellContent, AttributeType)| match cells {
            CellContent::Exact => kind,
            _ => AttributeType::Text,
        };
        cells.zip(self.types_of(part)).map(kind).collect()
    }

    /// The written files as the parts of the release.
    fn staying(&self, written: Vec<Vec<WrittenRemotePart>>) -> Vec<Vec<WrittenPart>> {
        let tables = self.publication.tables.iter().zip(written);
        let described = |(part, written): (&Part, WrittenRemotePart)| WrittenPart {
            sha256: None,
            files: written.files,
            types: self.types_of(part),
        };
        tables.map(|(table, written)| table.parts.iter().zip(written).map(described).collect()).collect()
    }

    /// The files of a table, if they hold as many rows as the table.
    fn checked(
        &self,
        plan: &RemoteTablePlan,
        parts: Vec<WrittenRemotePart>,
    ) -> Result<Vec<WrittenRemotePart>, EngineError> {
        if !parts.iter().map(|part| &part.name).eq(plan.parts().iter().map(|part| &part.name)) {
            return Err(EngineError::bug("the engine wrote other parts than were planned"));
        }
        match parts.iter().find(|part| part.files.iter().map(|file| file.rows).sum::<u64>() != self.counts.rows) {
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
        for (plan, audit) in self.plans().zip(&audits) {
            let needed: &[RemoteCheck] = match plan.form {
                RemoteForm::Bucketized(_) | RemoteForm::Generalized(_) | RemoteForm::Sliced(_) => {
                    &[Content, Buckets, Linked, Place, Columns, Order]
                }
                RemoteForm::Plain => &[Content, Place, Columns, Order],
            };
            // a check without an answer counts as broken
            broken.extend(needed.iter().map(|check| (*check, audit.broken.get(check).copied().unwrap_or(1))));
        }
        let (mut found, mut covered) = (Vec::new(), Vec::new());
        for ((planned, designed), audit) in self.tables.iter().zip(&self.prepared.design.tables).zip(audits) {
            let mut counted = audit.contents.into_iter();
            // an attribute of which nothing was counted has no content, and its rows are missed
            let of = |planned: &AttributeContents| AttributeContents {
                buckets: counted.next().unwrap_or_default(),
                ..planned.clone()
            };
            let attributes = planned.contents.attributes.iter().map(of).collect();
            found.push(TableContents { attributes, sizes: planned.plan.slices().map(|_| audit.sizes) });
            let known = designed.generalized().map_or(AttrSet::EMPTY, |of| of.quasi_identifiers);
            covered.push(audit.covered.of_columns(known.iter(), |attr| self.counts.columns[attr.index()].kind));
        }
        let mut report = self.judged(&found, Some(&covered), control)?;
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

    /// What no rule prevents, and what cells say.
    fn figures(&self, parts: &dyn PublishedBytes, control: &Control) -> Result<FiguresOfParts, EngineError> {
        let RemoteOrder { specification, .. } = self.order;
        let tables = PublishedTables {
            publication: &self.publication,
            names: &specification.published_names,
            taxonomies: &specification.taxonomies,
        };
        exposures::of_parts(FigureReader::new(tables, control), parts)
    }

    /// The entropy of the readers' model, with the kind of the model.
    fn entropy(&self, parts: &dyn PublishedBytes, control: &Control) -> Result<(f64, ModelKind), EngineError> {
        let kinds: Vec<Option<AttributeType>> = self.counts.columns.iter().map(|column| Some(column.kind)).collect();
        entropy::of_parts(&self.publication, &kinds, parts, control)
    }

    fn manifest(&self, provenance: &Provenance, made_by: WritingEngine, found: FoundRemotely<'_>) -> Manifest {
        let Self { order: RemoteOrder { specification, .. }, prepared, publication, .. } = self;
        let FoundRemotely { written, verification, figures, entropy } = found;
        let (exposures, columns) = figures.map(|of| (of.exposures, of.columns)).unzip();
        let dependencies = &prepared.dependencies;
        let described = DescribedDependencies { dependencies, design: &prepared.design, specification };
        let mut warnings = declared_choices(specification);
        warnings.extend(described.notices());
        warnings.extend(losses::describe_losses(specification, &prepared.design));
        warnings.extend(wording::choice_for_readers(&prepared.design.decision));
        warnings.extend(exposures.is_none().then(|| SpecificationNotice {
            r#type: NoticeKind::ExposureNotComplete,
            pointer: None,
            detail: "how many rows are unique, and what columns reveal that no rule protects, was not counted: the parts are in another \
                     engine or have too many rows"
                .to_owned(),
        }));
        let rules = 0..publication.rules.len();
        let mut utility = Utility::of_parts(bucket_sizes(verification, publication), columns.unwrap_or_default());
        (utility.model_entropy_nats, utility.entropy_method) = entropy.unzip();
        manifest(ManifestInput {
            provenance,
            method: method_name(&specification.method, &prepared.design.decision),
            publication,
            names: &dependencies.names(specification),
            written,
            verification: summary(verification),
            utility,
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
