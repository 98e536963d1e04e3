//! Plan of the method `bucketize`: one bucketized table whose buckets follow from value frequencies.

use std::sync::Arc;

use super::counterfeits::CounterfeitDraw;
use super::planned::{PlannedBuckets, counterfeits_label};
use super::planner::SizePlanner;
use super::share;
use crate::control::{Cancelled, Control};
use crate::microdata::AttrSet;
use crate::privacy::IneligibilityReason;
use crate::problem::Kind;
use crate::publication::MethodDetails;
use crate::publish::anatomy;
use crate::publish::assign::SensitiveCodes;
use crate::publish::design::Design;
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::designed_table::{BucketPlan, Bucketized, DesignedTable, TableDesign};
use crate::publish::error::PlanError;
use crate::publish::input::{PlanInput, PlanRows};
use crate::spec::BucketizeSpec;

/// Plans one bucketized table, with the sizes and values of its buckets if the rows are known.
///
/// # Errors
/// [`PlanError`] on cancellation.
pub fn plan(spec: &BucketizeSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    let mut rule = anatomy::designed_rule(&spec.rule, input);
    // attributes that the rule does not name are published as known ones: buckets protect from them, too
    let attributes = AttrSet::first(input.counts.attributes());
    let mut bucketized = Bucketized::on(attributes, rule.rule.sensitive, vec![rule.rule.guarantee]);
    let mut details = MethodDetails::None;
    if let Some(rows) = input.rows {
        let planned = planned_buckets(spec, &rule, &bucketized, rows, control)?;
        let ineligible = planned.faults.iter().any(|fault| fault.kind == Kind::RuleIneligible);
        if ineligible && rule.ineligibility().is_none() {
            let reason = IneligibilityReason { requested: rule.rule.guarantee, largest_l: rule.largest_l };
            rule.reject(RuleRejection::Ineligible(reason));
        }
        details = planned.method_details();
        bucketized.buckets = BucketPlan::Sized(Arc::new(planned));
    }
    let table = DesignedTable::new(attributes, TableDesign::Bucketized(bucketized));
    let mut design = Design { details, ..Design::new(vec![table], vec![rule]) };
    design.judge();
    Ok(design)
}

/// The buckets, with the number of counterfeits that can be recognized.
fn planned_buckets(
    spec: &BucketizeSpec,
    rule: &DesignedRule,
    bucketized: &Bucketized,
    rows: PlanRows<'_>,
    control: &Control,
) -> Result<PlannedBuckets, Cancelled> {
    let sensitive = rule.rule.sensitive;
    let column = rows.table.column(sensitive);
    let counts = column.counts();
    let shares = share::shares(&spec.thresholds, &column.domain, &counts);
    let mut planned = SizePlanner { spec, counts: &counts, control }.plan(shares)?;
    planned.unknown_values = share::unknown_values(&spec.thresholds, &column.domain);
    if let Some(number) = planned.counterfeits.filter(|_| planned.faults.is_empty()) {
        // the same streams as those of the release draw the same buckets and counterfeits
        let mut stream = rows.streams.stream(&bucketized.label());
        let buckets = planned.draw(&SensitiveCodes::from(column), &mut stream, control)?;
        let mut stream = rows.streams.stream(&counterfeits_label(sensitive));
        let mut draw = CounterfeitDraw::new(rows.table, sensitive, &mut stream, control)?;
        planned.seen_through = draw.draw(&buckets, number)?.seen_through;
    }
    Ok(planned)
}
