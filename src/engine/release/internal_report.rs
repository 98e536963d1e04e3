//! The internal report of a release: utility figures that need the original.

use super::input::ReleaseInput;
use crate::control::{Cancelled, Control};
use crate::engine::error::EngineError;
use crate::engine::prepare::wording::notices_of;
use crate::engine::read_back::model::{boxes_of, decomposition_of, model_of, model_problem, read_of};
use crate::microdata::{Attr, AttrSet, AttributeCounts, AttributeType, MAX_ATTRIBUTES};
use crate::model::{BoxMeaning, Boxes, ModelShape, PublishedRows, parted};
use crate::publication::{DecompositionDetails, ModelKind, Publication, PublishedBytes, PublishedTable};
use crate::publish::{Design, DesignedTable};
use crate::report::{Classification, CountReport, InternalReport, KlReport, OriginalColumn};
use crate::spec::{CountWorkload, InternalUtility, MethodSpec, PredicateWidthChoice};
use crate::utility::{CountErrors, Feature, PredicateWidth, Workload, WorkloadRun};
use crate::{model, utility};

/// Compares the written parts with the original, as far as the specification asks for it.
///
/// # Errors
/// [`EngineError`]
pub(in crate::engine) fn report(
    order: &ReleaseInput<'_>,
    publication: &Publication,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<InternalReport, EngineError> {
    let figures = figures(order, publication, parts, control)?;
    Ok(InternalReport {
        rows: order.table.rows() as u64,
        suppressed_rows: publication.suppressed,
        contributions: order.contributions,
        kl: figures.kl,
        count_queries: figures.count_queries,
        generalization: None,
        classification: None,
        practitioner: None,
        columns: original_columns(order, publication),
        night: None,
        warnings: notices_of(order.specification),
    })
}

/// The published attributes in the original.
fn original_columns(order: &ReleaseInput<'_>, publication: &Publication) -> Vec<OriginalColumn> {
    let published = publication.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes()));
    let names = &order.specification.published_names;
    let column = |attr: Attr| OriginalColumn {
        attribute: names[attr.index()].clone(),
        distinct: AttributeCounts::distinct(order.table, attr),
    };
    published.iter().map(column).collect()
}

/// How far the readers' model is from the original.
#[derive(Default)]
struct ModelFigures {
    kl: Option<KlReport>,
    count_queries: Option<CountReport>,
}

fn figures(
    order: &ReleaseInput<'_>,
    publication: &Publication,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<ModelFigures, EngineError> {
    let asked = &order.specification.internal;
    if *asked == InternalUtility::default() {
        return Ok(ModelFigures::default());
    }
    let table = order.table;
    let mut kinds: Vec<_> = table.attributes().iter().map(|attr| Some(table.column(attr).domain.kind())).collect();
    let mut kl = None;
    if let (true, [published]) = (asked.kl, &publication.tables[..])
        && model::shares(published)
    {
        let all = |_| Some(table.attributes());
        let cells = PublishedRows::read(publication, all, &kinds, parts, control).map_err(model_problem)?;
        let nats = utility::divergence_of_columns(published, &cells, table, control)?;
        kl = nats.map(|nats| KlReport::new(nats, ModelKind::ClosedForm));
    }
    // where parts share attributes, the bucket is one more attribute
    let label = Some(kinds.len()).filter(|number| *number < MAX_ATTRIBUTES).map(Attr::from);
    let several = label.and_then(|label| parted(publication, label));
    if several.is_some() {
        kinds.push(Some(AttributeType::Integer));
    }
    let publication = several.as_ref().unwrap_or(publication);
    let model = MeasuredModel { order, publication, kinds: &kinds, parts, control };
    if let Some(boxed) = boxes_of(publication) {
        return model.of_boxes(boxed);
    }
    if let (Some(details), Some(workload)) = (decomposition_of(publication), asked.count_queries) {
        return Ok(ModelFigures { kl, count_queries: Some(model.of_decomposition(details, workload)?) });
    }
    let found = model.of_tables(asked.kl && several.is_none())?;
    Ok(ModelFigures { kl: found.kl.or(kl), ..found })
}

/// The readers' model of a publication, which is measured against the original.
struct MeasuredModel<'a> {
    order: &'a ReleaseInput<'a>,
    publication: &'a Publication,
    kinds: &'a [Option<AttributeType>],
    parts: &'a dyn PublishedBytes,
    control: &'a Control,
}

impl MeasuredModel<'_> {
    fn of_boxes(&self, boxed: &PublishedTable) -> Result<ModelFigures, EngineError> {
        let (table, asked) = (self.order.table, &self.order.specification.internal);
        let meaning = BoxMeaning { kinds: self.kinds, taxonomies: &self.order.specification.taxonomies };
        let boxes = Boxes::read(boxed, table.attributes(), meaning, self.parts, self.control).map_err(model_problem)?;
        let nats = if asked.kl { utility::divergence_of_boxes(&boxes, table, self.control)? } else { None };
        let counted = asked.count_queries.map(|workload| self.counted(workload, |run| run.of_boxes(&boxes)));
        Ok(ModelFigures {
            kl: nats.map(|nats| KlReport::new(nats, ModelKind::ClosedForm)),
            count_queries: counted.transpose()?,
        })
    }

    fn of_decomposition(
        &self,
        details: &DecompositionDetails,
        workload: CountWorkload,
    ) -> Result<CountReport, EngineError> {
        let wanted = read_of(details, self.order.table.attributes());
        let cells = self.read(|of| wanted[of])?;
        let model = model_of(details, &cells)?;
        Ok(self.counted(workload, |run| run.of_decomposition(&model, &cells))?)
    }

    fn of_tables(&self, measures_kl: bool) -> Result<ModelFigures, EngineError> {
        let shape = ModelShape::from_publication(self.publication);
        let cells = self.read(|of| Some(shape.published[of].attributes()))?;
        let mut figures = ModelFigures::default();
        if measures_kl {
            let divergence = utility::divergence(&shape, &cells, self.order.table, self.control)?;
            figures.kl = Some(KlReport::new(divergence.nats, divergence.made));
        }
        if let Some(workload) = self.order.specification.internal.count_queries {
            figures.count_queries = Some(self.counted(workload, |run| run.of_tables(&shape, &cells))?);
        }
        Ok(figures)
    }

    fn read(&self, wanted: impl Fn(usize) -> Option<AttrSet>) -> Result<PublishedRows, EngineError> {
        PublishedRows::read(self.publication, wanted, self.kinds, self.parts, self.control).map_err(model_problem)
    }

    /// The errors of the estimates that `run` makes.
    fn counted(
        &self,
        asked: CountWorkload,
        run: impl FnOnce(WorkloadRun<'_>) -> Result<CountErrors, Cancelled>,
    ) -> Result<CountReport, Cancelled> {
        let mut stream = self.order.streams.stream("workload");
        let mut below = |bound: u32| stream.below(bound);
        let (original, control) = (self.order.table, self.control);
        let errors = run(WorkloadRun { workload: workload(asked), original, below: &mut below, control })?;
        Ok(CountReport::new(&errors.relative, errors.redrawn))
    }
}

/// The accuracy of a classifier on a sequential release; `None` where it has no class.
///
/// # Errors
/// [`Cancelled`]
pub(in crate::engine) fn classification(
    order: &ReleaseInput<'_>,
    design: &Design,
    control: &Control,
) -> Result<Option<Classification>, Cancelled> {
    let MethodSpec::Sequential(spec) = &order.specification.method else { return Ok(None) };
    let cut = design.tables.iter().find_map(DesignedTable::sequential);
    let (Some(class), Some(cut)) = (spec.class, cut) else { return Ok(None) };
    let table = order.table;
    // the choice of test rows reveals nothing: only the holder of the original sees the report
    let drawn = order.streams.stream("classification").permutation(table.rows() as u32);
    let tested: Vec<bool> = drawn.iter().map(|place| place % 3 == 0).collect();
    let of = |attr: Attr, labels| Feature { codes: &table.column(attr).codes, labels };
    let features = || table.attributes().iter().filter(|attr| *attr != class);
    let published: Vec<Feature<'_>> = features().map(|attr| of(attr, cut.labels_of(attr))).collect();
    let original: Vec<Feature<'_>> = features().map(|attr| of(attr, None)).collect();
    let codes = &table.column(class).codes;
    let found = utility::classify(&published, codes, &tested, control)?;
    let before = utility::classify(&original, codes, &tested, control)?;
    let share = |rows: u64| rows as f64 / found.tested.max(1) as f64;
    Ok(Some(Classification {
        class: table.name(class).to_owned(),
        trained_rows: found.trained,
        tested_rows: found.tested,
        error: share(found.wrong),
        error_of_original: share(before.wrong),
        error_of_most_frequent: share(found.others),
    }))
}

fn workload(asked: CountWorkload) -> Workload {
    let CountWorkload { number, dimensions, width } = asked;
    let width = match width {
        PredicateWidthChoice::ValueFraction(share) => PredicateWidth::ValueFraction(share.to_f64()),
        PredicateWidthChoice::Selectivity(share) => PredicateWidth::Selectivity(share.to_f64()),
    };
    Workload { number, dimensions, width }
}
