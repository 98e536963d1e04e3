//! The internal report of a release: utility figures that need the original.

use super::input::ReleaseInput;
use crate::control::{Cancelled, Control};
use crate::engine::error::EngineError;
use crate::engine::prepare::wording::notices_of;
use crate::engine::read_back::model::{boxes_of, decomposition_of, model_of, model_problem, read_of};
use crate::microdata::{Attr, AttributeType, MAX_ATTRIBUTES};
use crate::model::{Boxes, CellMeaning, ModelShape, PublishedRows, parted};
use crate::publication::{ModelKind, Publication, PublishedBytes};
use crate::publish::{Design, DesignedTable};
use crate::report::{Classification, CountReport, InternalReport, KlReport};
use crate::spec::{InternalUtility, MethodSpec};
use crate::utility::{Feature, Workload};
use crate::{model, spec, utility};

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
    let mut report = InternalReport {
        rows: order.table.rows() as u64,
        suppressed_rows: publication.suppressed,
        kl: None,
        count_queries: None,
        generalization: None,
        classification: None,
        practitioner: None,
        warnings: notices_of(order.specification),
    };
    let asked = &order.specification.internal;
    if *asked == InternalUtility::default() {
        return Ok(report);
    }
    let table = order.table;
    let mut kinds: Vec<_> = table.attributes().iter().map(|attr| Some(table.column(attr).domain.kind())).collect();
    // where parts share attributes, the bucket is one more attribute
    let label = Some(kinds.len()).filter(|number| *number < MAX_ATTRIBUTES).map(Attr::from);
    let several = label.and_then(|label| parted(publication, label));
    if let (true, [table]) = (asked.kl, &publication.tables[..])
        && model::shares(table)
    {
        let cells = PublishedRows::read(publication, |_| Some(table.attributes()), &kinds, parts, control)
            .map_err(model_problem)?;
        let nats = utility::divergence_of_columns(table, &cells, order.table, control)?;
        report.kl = nats.map(|nats| KlReport::new(nats, ModelKind::ClosedForm));
    }
    if several.is_some() {
        kinds.push(Some(AttributeType::Integer));
    }
    let publication = several.as_ref().unwrap_or(publication);
    let shape = ModelShape::from_publication(publication);
    if let Some(boxed) = boxes_of(publication) {
        let meaning = CellMeaning { kinds: &kinds, taxonomies: &order.specification.taxonomies };
        let boxes = Boxes::read(boxed, table.attributes(), meaning, parts, control).map_err(model_problem)?;
        if asked.kl {
            let nats = utility::divergence_of_boxes(&boxes, table, control)?;
            report.kl = nats.map(|nats| KlReport::new(nats, ModelKind::ClosedForm));
        }
        let Some(asked) = asked.count_queries else { return Ok(report) };
        let mut stream = order.streams.stream("workload");
        let mut below = |bound: u32| stream.below(bound);
        let errors = utility::errors_of_boxes(&boxes, table, &workload(asked), &mut below, control)?;
        report.count_queries = Some(CountReport::new(&errors.relative, errors.redrawn));
        return Ok(report);
    }
    if let (Some(said), Some(asked)) = (decomposition_of(publication), asked.count_queries) {
        let wanted = read_of(said, table.attributes());
        let cells = PublishedRows::read(publication, |of| wanted[of], &kinds, parts, control).map_err(model_problem)?;
        let mut stream = order.streams.stream("workload");
        let mut below = |bound: u32| stream.below(bound);
        let model = model_of(said, &cells)?;
        let errors = utility::errors_of_decomposition(&model, &cells, table, &workload(asked), &mut below, control)?;
        report.count_queries = Some(CountReport::new(&errors.relative, errors.redrawn));
        return Ok(report);
    }
    let all = |of: usize| Some(shape.published[of].attributes());
    let cells = PublishedRows::read(publication, all, &kinds, parts, control).map_err(model_problem)?;
    if asked.kl && several.is_none() {
        let divergence = utility::divergence(&shape, &cells, table, control)?;
        report.kl = Some(KlReport::new(divergence.nats, divergence.made));
    }
    if let Some(asked) = asked.count_queries {
        let mut stream = order.streams.stream("workload");
        let mut below = |bound: u32| stream.below(bound);
        let errors = utility::errors(&shape, &cells, table, &workload(asked), &mut below, control)?;
        report.count_queries = Some(CountReport::new(&errors.relative, errors.redrawn));
    }
    Ok(report)
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

fn workload(asked: spec::CountWorkload) -> Workload {
    let spec::CountWorkload { number, dimensions, width } = asked;
    let width = match width {
        spec::PredicateWidthChoice::ValueFraction(share) => utility::PredicateWidth::ValueFraction(share.to_f64()),
        spec::PredicateWidthChoice::Selectivity(share) => utility::PredicateWidth::Selectivity(share.to_f64()),
    };
    Workload { number, dimensions, width }
}
