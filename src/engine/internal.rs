//! The internal report of a release: what the original says of it.

use super::query::{boxes_of, decomposition_of, model_of, read_of, unread};
use super::{Order, Stopped, notices_of};
use crate::control::Control;
use crate::microdata::{Attr, AttributeType, MAX_ATTRIBUTES};
use crate::model::{Boxes, Cells, Shape, parted};
use crate::publication::{Publication, PublishedBytes};
use crate::report::{CountReport, InternalReport, KlReport};
use crate::spec::{self, InternalUtility};
use crate::utility::{self, Workload};

/// Measures the written parts against the original, as far as the specification asks for it.
///
/// # Errors
/// [`Stopped`]
pub(super) fn report(
    order: &Order<'_>,
    publication: &Publication,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<InternalReport, Stopped> {
    let mut report = InternalReport {
        rows: order.table.rows() as u64,
        suppressed_rows: publication.suppressed,
        kl: None,
        count_queries: None,
        generalization: None,
        warnings: notices_of(order.specification),
    };
    let asked = &order.specification.internal;
    if *asked == InternalUtility::default() {
        return Ok(report);
    }
    let table = order.table;
    let mut kinds: Vec<_> = table.attributes().iter().map(|attr| Some(table.column(attr).domain.kind())).collect();
    // where parts share attributes the bucket is one more
    let label = Some(kinds.len()).filter(|number| *number < MAX_ATTRIBUTES).map(Attr::from);
    let several = label.and_then(|label| parted(publication, label));
    if several.is_some() {
        kinds.push(Some(AttributeType::Integer));
    }
    let publication = several.as_ref().unwrap_or(publication);
    let shape = Shape::of(publication);
    if let Some(boxed) = boxes_of(publication) {
        let trees = &order.specification.taxonomies;
        let read = Boxes::read(boxed, table.attributes(), &kinds, trees, parts, control);
        let boxes = read.map_err(unread)?;
        if asked.kl {
            let nats = utility::divergence_of_boxes(&boxes, table, control)?;
            report.kl = nats.map(|nats| KlReport::of(nats, utility::Made::ClosedForm.word()));
        }
        let Some(asked) = asked.count_queries else { return Ok(report) };
        let mut stream = order.streams.stream("workload");
        let mut below = |bound: u32| stream.below(bound);
        let errors = utility::errors_of_boxes(&boxes, table, &workload(asked), &mut below, control)?;
        report.count_queries = Some(CountReport::of(&errors.relative, errors.redrawn));
        return Ok(report);
    }
    if let (Some(said), Some(asked)) = (decomposition_of(publication), asked.count_queries) {
        let wanted = read_of(said, table.attributes());
        let cells = Cells::read(publication, |of| wanted[of], &kinds, parts, control).map_err(unread)?;
        let mut stream = order.streams.stream("workload");
        let mut below = |bound: u32| stream.below(bound);
        let model = model_of(said, &cells)?;
        let errors = utility::errors_of_decomposition(&model, &cells, table, &workload(asked), &mut below, control)?;
        report.count_queries = Some(CountReport::of(&errors.relative, errors.redrawn));
        return Ok(report);
    }
    let all = |of: usize| Some(shape.published[of].attributes());
    let cells = Cells::read(publication, all, &kinds, parts, control).map_err(unread)?;
    if asked.kl {
        let divergence = utility::divergence(&shape, &cells, table, control)?;
        report.kl = Some(KlReport::of(divergence.nats, divergence.made.word()));
    }
    if let Some(asked) = asked.count_queries {
        let mut stream = order.streams.stream("workload");
        let mut below = |bound: u32| stream.below(bound);
        let errors = utility::errors(&shape, &cells, table, &workload(asked), &mut below, control)?;
        report.count_queries = Some(CountReport::of(&errors.relative, errors.redrawn));
    }
    Ok(report)
}

fn workload(asked: spec::CountWorkload) -> Workload {
    let spec::CountWorkload { number, dimensions, width } = asked;
    let width = match width {
        spec::Width::ValueFraction(share) => utility::Width::ValueFraction(share.to_f64()),
        spec::Width::Selectivity(share) => utility::Width::Selectivity(share.to_f64()),
    };
    Workload { number, dimensions, width }
}
