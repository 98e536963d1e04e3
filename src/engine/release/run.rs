use std::sync::Arc;

use super::input::{ReleaseInput, VerifiedRelease};
use super::internal_report;
use super::ledger_entries::ledger_entries;
use super::night::{DrawnNight, NightOrder, WrittenNight};
use super::write::{PartStore, PartWriter};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::practitioner::PublishedAttributes;
use crate::engine::prepare::annotations::annotate;
use crate::engine::prepare::cross_dependencies::{EarlierColumns, ExtendedTable};
use crate::engine::prepare::known::{JobDependencies, attribute_names, discovery_options};
use crate::engine::prepare::known_forms::DescribedDependencies;
use crate::engine::prepare::losses;
use crate::engine::prepare::repairs::RepairTrials;
use crate::engine::prepare::unpublished::{OtherColumns, UnpublishedLinks};
use crate::engine::prepare::unused_thresholds::Inspection;
use crate::engine::prepare::wording::{self, composition_problem, method_name};
use crate::engine::prepare::{PrepareInput, PreparedRelease, feasible, ledger_union, prepare, secret_order};
use crate::engine::read_back::exposures::{FigureReader, FiguresOfParts, PublishedTables};
use crate::engine::read_back::figures::{achieved, bucket_sizes, closed, summary};
use crate::engine::read_back::{entropy, exposures};
use crate::microdata::{AttrSet, Table};
use crate::privacy::{Dependency, DiscoveryScope};
use crate::publication::{Linkage, NoticeKind, Publication, PublishedBytes, Witness};
use crate::publish::{Decision, DesignedTable, PlanError, PlanRefusal, PlanRows, Published, SecretRows};
use crate::report::{
    Generalization, InternalReport, Manifest, ManifestInput, SpecificationNotice, Utility, WrittenPart, manifest,
};
use crate::spec::Specification;
use crate::verifier::{DeclaredSearch, ShownSignatures, SignatureReader, VerifierInput, VerifierReport};
use crate::{publish, verifier};

/// Plans, publishes, writes and verifies a release. The result has passed the verifier; the caller makes it visible.
///
/// # Errors
/// [`EngineError`]: cancelled, refused, or failed. The parts written so far are then worthless.
pub fn release(
    order: &ReleaseInput<'_>,
    store: &mut dyn PartStore,
    control: &Control,
) -> Result<VerifiedRelease, EngineError> {
    control.begin(Phase::Plan, 1)?;
    let union = ledger_union(order.specification, order.earlier)?;
    let unpublished = UnpublishedLinks::find(order.specification, order.table, &others(order), &union, control)?;
    let order = &ReleaseInput { specification: &unpublished.specification, ..order.clone() };
    let PlannedRelease { prepared, permuted, secret_order, mut night } = plan_release(order, &unpublished, control)?;
    let rows = SecretRows { upload: order.table, permuted: &permuted, order: &secret_order };
    let published = publish_rows(order, &prepared, rows, control)?;
    drop((permuted, secret_order));
    let WrittenRelease { publication, witness, parts, losses } = write_parts(order, published, store, control)?;
    let described = DescribedRelease { order, prepared: &prepared, publication: &publication, losses: &losses };
    let state = night.as_mut().map(|night| night.take_state(&publication, &parts));
    let after = night.as_ref().zip(state.as_deref());
    let verification = described.verify(&witness, after, &*store, control)?;
    let manifest = described.manifest(&parts, verification, &*store, control)?;
    let mut internal = described.internal_report(&*store, control)?;
    let (disclosures, rules) = ledger_entries(order.specification, &prepared, &publication);
    if let Some(night) = &night {
        internal.night = Some(night.counts);
        internal.warnings.extend(night.counts.notices());
    }
    Ok(VerifiedRelease { internal, manifest, disclosures, rules, state })
}

/// A feasible design, the rows that it was made for, and their secret order.
struct PlannedRelease {
    prepared: PreparedRelease,
    permuted: Table,
    secret_order: Arc<[u32]>,
    /// The night, where it is one.
    night: Option<DrawnNight>,
}

/// The columns of the upload that a release does not publish.
fn others<'a>(order: &ReleaseInput<'a>) -> OtherColumns<'a> {
    OtherColumns::new(order.specification, order.dropped, order.extra)
}

/// Plans the tables of a release, and checks the rules together with earlier releases.
fn plan_release(
    order: &ReleaseInput<'_>,
    unpublished: &UnpublishedLinks<'_>,
    control: &Control,
) -> Result<PlannedRelease, EngineError> {
    let ReleaseInput { specification, table, .. } = order;
    let mut dependencies = JobDependencies::new(specification, table, control)?;
    let order_of_rows = secret_order(table, order.streams);
    let (permuted, unknown) = annotate(specification, table.permuted(&order_of_rows), Inspection::Denied);
    if !unknown.is_empty() {
        return Err(PlanRefusal(unknown).into());
    }
    let union = ledger_union(specification, order.earlier)?;
    unpublished.add_to(&mut dependencies, &union);
    let strata = unpublished.strata(&others(order), &permuted, &order_of_rows);
    let columns = EarlierColumns { extra: order.extra, union: &union };
    let extended = ExtendedTable::new(specification, table, columns, &dependencies, control)?;
    let prepare_again = |specification: &Specification, dependencies: JobDependencies, dropped: AttrSet| {
        let input = PrepareInput {
            counts: &permuted,
            rows: Some(PlanRows::new(&permuted, &strata, order.streams)),
            union: ledger_union(specification, order.earlier)?,
            joined: &order.earlier.releases,
            dependencies,
            extended: Some(&extended),
            dropped,
        };
        prepare(specification, input, control)
    };
    let trials = RepairTrials { specification, dependencies: &dependencies, prepare: &prepare_again };
    let mut prepared = match prepare_again(specification, dependencies.clone(), AttrSet::EMPTY) {
        Ok(prepared) => prepared,
        Err(PlanError::Refused(PlanRefusal(faults))) => return Err(PlanRefusal(trials.tried(faults)?).into()),
        Err(PlanError::Cancelled(cancelled)) => return Err(cancelled.into()),
    };
    if let Err(PlanRefusal(faults)) = feasible(&prepared, specification) {
        return Err(PlanRefusal(trials.tried(faults)?).into());
    }
    drop((extended, strata));
    if prepared.design.decision == Decision::Undecided {
        return Err(EngineError::bug("no tables were chosen though the rows are known"));
    }
    if specification.unproven.is_none() {
        prepared.compose().map_err(|violations| EngineError::Refused(composition_problem(&violations)))?;
    }
    let rows = SecretRows { upload: table, permuted: &permuted, order: &order_of_rows };
    let night = NightOrder::new(order)?.map(|night| night.draw(&mut prepared.design, rows, control)).transpose()?;
    Ok(PlannedRelease { prepared, permuted, secret_order: order_of_rows, night })
}

/// A release whose parts are written, to be verified and described by its documents.
#[derive(Clone, Copy)]
struct DescribedRelease<'a> {
    order: &'a ReleaseInput<'a>,
    prepared: &'a PreparedRelease,
    publication: &'a Publication,
    losses: &'a [SpecificationNotice],
}

/// What the verification found, and what it read.
struct VerifiedParts<'a> {
    report: VerifierReport,
    figures: FigureReader<'a>,
    /// What the sensitive part of a night shows.
    signatures: Option<ShownSignatures>,
}

impl<'a> DescribedRelease<'a> {
    const fn dependencies(self) -> DescribedDependencies<'a> {
        let PreparedRelease { dependencies, design, .. } = self.prepared;
        DescribedDependencies { dependencies, design, specification: self.order.specification }
    }

    /// Verifies the written parts against the original and the witness.
    fn verify(
        self,
        witness: &Witness,
        night: Option<(&DrawnNight, &[u8])>,
        parts: &dyn PublishedBytes,
        control: &'a Control,
    ) -> Result<VerifiedParts<'a>, EngineError> {
        let mut verified = self.verify_parts(witness, parts, control)?;
        if let Some((night, state)) = night {
            let signatures = verified.signatures.take();
            let written = WrittenNight { publication: self.publication, witness, state, signatures };
            verified.report.checks.push(night.audit(self.order, written, parts, control)?);
        }
        if verified.report.verified() && verified.report.linkage == Linkage::Checked {
            return Ok(verified);
        }
        let failed: Vec<String> = summary(&verified.report)
            .checks
            .into_iter()
            .filter(|check| !check.passed)
            .map(|check| format!("{}: {}", check.check, check.detail.unwrap_or_default()))
            .collect();
        Err(EngineError::bug(format!("the verification of the written parts failed: {}", failed.join("; "))))
    }

    fn verify_parts(
        self,
        witness: &Witness,
        parts: &dyn PublishedBytes,
        control: &'a Control,
    ) -> Result<VerifiedParts<'a>, EngineError> {
        let Self { order, prepared, publication, .. } = self;
        let ReleaseInput { specification, table, .. } = order;
        control.begin(Phase::Verify, publication.tables.iter().flat_map(|t| &t.parts).map(|p| p.len).sum())?;
        let sides = |of: &Dependency| (of.determinant, AttrSet::one(of.dependent));
        let own = prepared.dependencies.all.iter();
        // a release without proof is verified as the first of its series
        let of_series = match specification.unproven {
            Some(_) => Vec::new(),
            None => prepared.union.assumed_dependencies(),
        };
        let of_others = of_series.iter().filter(|of| !prepared.dependencies.all.contains(of));
        let known: Vec<(AttrSet, AttrSet)> = own.chain(of_others).map(sides).collect();
        let mut names = attribute_names(specification);
        names.extend_from_slice(prepared.union.attribute_names().get(names.len()..).unwrap_or_default());
        let found: Vec<(AttrSet, AttrSet)> = prepared.dependencies.found().iter().map(sides).collect();
        let withdrawn = specification.assumed_unknown().iter().map(|unknown| unknown.dependency);
        let withdrawn: Vec<(AttrSet, AttrSet)> = withdrawn.map(|of| (of.determinant, of.dependent)).collect();
        let (searched, unpublished) = (discovery_options(specification), others(order));
        let input = VerifierInput {
            publication,
            submitted: specification.method.rules(),
            dependencies: &known,
            // without a search, the adversary is assumed to know no dependency of the data
            dependency_search: (searched.scope != DiscoveryScope::None).then_some(DeclaredSearch {
                found: &found,
                withdrawn: &withdrawn,
                tolerance: searched.tolerance,
                lists_all: true,
            }),
            parts,
            original: Some(table),
            dropped: unpublished.all(),
            witness: Some(witness),
            names: &names,
            kinds: &[],
            accounted: AttrSet::first(specification.names.len()),
            excludable: &specification.excludable,
            taxonomies: &specification.taxonomies,
            earlier_releases: Some(&order.earlier.releases),
            thresholds: &specification.thresholds,
            closes: specification.method.closed_reason().is_some(),
        };
        self.verify_and_read(&input, control)
    }

    /// Verifies parts, and keeps what other steps ask of them.
    fn verify_and_read(
        self,
        input: &VerifierInput<'_>,
        control: &'a Control,
    ) -> Result<VerifiedParts<'a>, EngineError> {
        let Self { order: ReleaseInput { specification, republish, .. }, publication, .. } = self;
        let published = PublishedTables {
            publication,
            names: &specification.published_names,
            taxonomies: &specification.taxonomies,
        };
        let mut figures = FigureReader::new(published, control);
        if republish.is_none() {
            let report = verifier::verify_and_read(input, Some(&mut figures), control)?;
            return Ok(VerifiedParts { report, figures, signatures: None });
        }
        let mut signatures = SignatureReader::new(&mut figures);
        let report = verifier::verify_and_read(input, Some(&mut signatures), control)?;
        let signatures = signatures.finish();
        Ok(VerifiedParts { report, figures, signatures })
    }

    fn manifest(
        self,
        written: &[Vec<WrittenPart>],
        VerifiedParts { report: verification, figures, .. }: VerifiedParts<'_>,
        parts: &dyn PublishedBytes,
        control: &Control,
    ) -> Result<Manifest, EngineError> {
        let Self { order: ReleaseInput { specification, table, provenance, .. }, prepared, publication, .. } = self;
        let design = &prepared.design;
        let mut warnings = declared_choices(specification);
        warnings.extend(self.dependencies().notices());
        warnings.extend(wording::describe_unbounded(design, &specification.published_names));
        warnings.extend(wording::describe_exactness(specification, design));
        warnings.extend(losses::describe_losses(specification, design));
        warnings.extend(self.losses.iter().cloned());
        warnings.extend(wording::choice_for_readers(&design.decision));
        let rules = 0..publication.rules.len();
        let FiguresOfParts { exposures, columns } = exposures::of_parts(figures, parts)?;
        let mut manifest = manifest(ManifestInput {
            provenance,
            method: method_name(&specification.method, &design.decision),
            publication,
            // a rule may follow from a dependency on an attribute that is not published
            names: &prepared.dependencies.names(specification),
            written,
            verification: summary(&verification),
            utility: Utility::of_parts(bucket_sizes(&verification, publication), columns),
            achieved: rules.clone().map(|rule| achieved(&verification, publication, rule)).collect(),
            closed: rules.map(|rule| closed(&verification, publication, rule)).collect(),
            exposures: Some(exposures),
            made_by: None,
            dependencies: self.dependencies().in_json(),
            determined: self.dependencies().determined(publication.rules.iter().map(|rule| rule.known)),
            declared: specification.declared_inputs(),
            warnings,
        });
        if specification.entropy {
            let kinds: Vec<_> = table.attributes().iter().map(|attr| Some(table.column(attr).domain.kind())).collect();
            let (nats, method) = entropy::of_parts(publication, &kinds, parts, control)?;
            manifest.utility.model_entropy_nats = Some(nats);
            manifest.utility.entropy_method = Some(method);
        }
        Ok(manifest)
    }

    fn internal_report(self, parts: &dyn PublishedBytes, control: &Control) -> Result<InternalReport, EngineError> {
        let Self { order, prepared, publication, .. } = self;
        let mut internal = internal_report::report(order, publication, parts, control)?;
        internal.generalization = prepared.design.tables.iter().find_map(|designed| {
            let (cut, rows) = (designed.sequential()?, order.table.rows().max(1) as f64);
            let (levels, values) = (cut.distortion as f64 / rows, cut.changed as f64 / rows);
            Some(Generalization { levels_per_row: levels, values_per_row: values })
        });
        internal.classification = internal_report::classification(order, &prepared.design, control)?;
        let published = publication.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes()));
        let names = &order.specification.published_names;
        let attributes = PublishedAttributes { published, protected: publication.protected(names), names };
        internal.practitioner = Some(attributes.practitioner(order.table, control)?);
        internal.warnings.extend(prepared.design.planned().filter_map(wording::describe_inference));
        internal.warnings.extend(self.dependencies().failing(order.table.rows()));
        internal.warnings.extend(losses::describe_remarks(order.specification, &prepared.design));
        internal.warnings.extend(losses::describe_values(order.specification, order.table));
        internal.warnings.extend(prepared.weakened().iter().map(wording::describe_weakened));
        Ok(internal)
    }
}

/// The publication of a release, and what is known of its parts once they are written.
struct WrittenRelease {
    publication: Publication,
    /// The assignment of rows to buckets and classes, rows as they were uploaded.
    witness: Witness,
    parts: Vec<Vec<WrittenPart>>,
    /// Notices on what the finished tables lose.
    losses: Vec<SpecificationNotice>,
}

/// Runs the method.
fn publish_rows(
    order: &ReleaseInput<'_>,
    prepared: &PreparedRelease,
    rows: SecretRows<'_>,
    control: &Control,
) -> Result<Published, EngineError> {
    let cells_of_work = prepared.design.tables.iter().map(DesignedTable::passes);
    control.begin(Phase::Publish, cells_of_work.sum::<u64>() * rows.upload.rows() as u64)?;
    let names = &order.specification.published_names;
    Ok(publish::execute(&prepared.design, names, rows, order.streams, control)?)
}

/// Writes every part.
fn write_parts(
    order: &ReleaseInput<'_>,
    published: Published,
    store: &mut dyn PartStore,
    control: &Control,
) -> Result<WrittenRelease, EngineError> {
    let ReleaseInput { specification, table: original, .. } = order;
    let parts = || published.publication.tables.iter().flat_map(|table| &table.parts);
    control.begin(Phase::Write, parts().map(|part| part.len).sum())?;
    let (mut written, mut writer) = (Vec::new(), PartWriter::new(original, store, control));
    for (table, cells) in published.publication.tables.iter().zip(&published.contents.tables) {
        let mut parts = Vec::new();
        for (part, cells) in table.parts.iter().zip(cells) {
            parts.push(writer.write(&table.name, part, cells)?);
        }
        written.push(parts);
    }
    let mut losses = losses::describe_made(specification, &published, original);
    losses.extend(losses::describe_formulas(specification, losses::written_columns(&published)));
    Ok(WrittenRelease { publication: published.publication, witness: published.witness, parts: written, losses })
}

/// Notices for readers of the release on the declarations of its specification; they reveal nothing of the data.
pub(in crate::engine) fn declared_choices(specification: &Specification) -> Vec<SpecificationNotice> {
    let overridden = specification.overridden_identifiers.iter().map(|attr| SpecificationNotice {
        r#type: NoticeKind::IdentifierOverridden,
        pointer: None,
        detail: format!(
            "{} is published on the caller's declaration that it identifies no data subject",
            specification.published_names[attr.index()]
        ),
    });
    overridden.chain(wording::exclusive_by_choice(specification)).collect()
}
