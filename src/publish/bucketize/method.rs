//! Plan of the method `bucketize`: one bucketized table whose buckets follow from value frequencies.

use std::sync::Arc;

use super::counterfeits::CounterfeitDraw;
use super::planned::{PlannedBuckets, counterfeits_label};
use super::planner::{SizePlanner, StratifiedPlanner};
use super::share;
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Domain};
use crate::privacy::IneligibilityReason;
use crate::privacy::links::Strata;
use crate::problem::Kind;
use crate::publish::anatomy;
use crate::publish::assign::SensitiveCodes;
use crate::publish::design::Design;
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::designed_table::{BucketPlan, Bucketized, DesignedTable, TableDesign};
use crate::publish::error::PlanError;
use crate::publish::input::{PlanInput, PlanRows};
use crate::publish::stratify::stratify;
use crate::spec::{BucketSizeChoice, BucketizeSpec};

const LISTED_SIZES_DETAIL: &str = "listed sizes are not supported where a dependency ties the sensitive attribute to a known one; let sizes be chosen";
const JOINED_COUNTERFEITS_DETAIL: &str =
    "counterfeits are not supported where an attribute stands beside the sensitive one; leave counterfeits out";

/// Plans one bucketized table, with the sizes and values of its buckets if the rows are known.
///
/// # Errors
/// [`PlanError`] on cancellation.
pub fn plan(spec: &BucketizeSpec, input: &PlanInput<'_>, control: &Control) -> Result<Design, PlanError> {
    let rule = anatomy::designed_rule(&spec.rule, input);
    // attributes that the rule does not name are published as known ones: buckets protect from them, too
    let attributes = AttrSet::first(input.counts.attributes());
    let bucketized = Bucketized::on(attributes, rule.rule.sensitive, vec![rule.rule.guarantee]);
    let table = DesignedTable::new(attributes, TableDesign::Bucketized(bucketized));
    let mut design = Design::new(vec![table], vec![rule]);
    design.judge();
    stratify(&mut design, input, None, control)?;
    if let Some(rows) = input.rows {
        size_buckets(spec, &mut design, rows, control)?;
    }
    Ok(design)
}

/// The values of a sensitive attribute with the rows of each, where the rows themselves are elsewhere.
#[derive(Clone, Copy)]
pub struct CountedDomain<'a> {
    /// The values.
    pub domain: &'a Domain,
    /// The rows of each.
    pub counts: &'a [u64],
}

/// Decides the sizes and values of the buckets of a design from counts alone, for a table without strata and counterfeits.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn size_by_counts(
    spec: &BucketizeSpec,
    design: &mut Design,
    CountedDomain { domain, counts }: CountedDomain<'_>,
    control: &Control,
) -> Result<(), Cancelled> {
    if design.rules.iter().any(leaves_unsized) {
        return Ok(());
    }
    let shares = share::shares(&spec.thresholds, domain, counts);
    settle(design, SizePlanner { spec, counts, control }.plan(shares)?);
    Ok(())
}

/// Whether no sizes help a rule.
fn leaves_unsized(rule: &DesignedRule) -> bool {
    rule.rejections.iter().any(|said| matches!(said, RuleRejection::Linked(_) | RuleRejection::Unproved(..)))
}

/// Puts planned buckets into their design.
fn settle(design: &mut Design, planned: PlannedBuckets) {
    let ([DesignedTable { design: TableDesign::Bucketized(bucketized), .. }], [rule]) =
        (&mut design.tables[..], &mut design.rules[..])
    else {
        return;
    };
    let ineligible = planned.faults.iter().any(|fault| fault.kind == Kind::RuleIneligible);
    if ineligible && rule.ineligibility().is_none() {
        let reason = IneligibilityReason { requested: rule.rule.guarantee, largest_l: rule.largest_l };
        rule.reject(RuleRejection::Ineligible(reason));
    }
    design.details = planned.method_details();
    bucketized.buckets = BucketPlan::Sized(Arc::new(planned));
}

/// Decides the sizes and values of the buckets of a design, in its strata.
fn size_buckets(
    spec: &BucketizeSpec,
    design: &mut Design,
    rows: PlanRows<'_>,
    control: &Control,
) -> Result<(), Cancelled> {
    let ([DesignedTable { design: TableDesign::Bucketized(bucketized), .. }], [rule]) =
        (&mut design.tables[..], &mut design.rules[..])
    else {
        return Ok(());
    };
    if let Some((detail, &dependency)) = unproved(spec, bucketized).zip(design.used_dependencies.first()) {
        rule.reject(RuleRejection::Unproved(dependency, detail));
    }
    if leaves_unsized(rule) {
        return Ok(());
    }
    let constant = bucketized.guards.first().map(|guard| guard.constant).unwrap_or_default();
    // the strata themselves keep the thresholds: a finer division would only cost buckets
    bucketized.strata = (!constant.is_empty()).then(|| Arc::new(Strata::new(rows.strata, constant)));
    let planned = planned_buckets(spec, rule, bucketized, rows, control)?;
    settle(design, planned);
    Ok(())
}

/// What of a specification is not proved in these strata, or beside an attribute that moved to the sensitive one.
fn unproved(spec: &BucketizeSpec, bucketized: &Bucketized) -> Option<&'static str> {
    let is_stratified = bucketized.guards.iter().any(|guard| !guard.constant.is_empty());
    let is_joined = bucketized.sensitive() != bucketized.protects();
    match &spec.sizes {
        BucketSizeChoice::Listed(_) if is_stratified => Some(LISTED_SIZES_DETAIL),
        _ if is_joined && spec.counterfeits.is_some() => Some(JOINED_COUNTERFEITS_DETAIL),
        _ => None,
    }
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
    let mut planned = match bucketized.strata.as_deref() {
        None => SizePlanner { spec, counts: &counts, control }.plan(shares)?,
        Some(strata) => StratifiedPlanner { spec, column, strata, control }.plan(&shares)?,
    };
    if let Some(number) = planned.counterfeits.filter(|_| planned.faults.is_empty()) {
        // the same streams as those of the release draw the same buckets and counterfeits
        let mut stream = rows.streams.stream(&bucketized.label());
        let values = SensitiveCodes::from(column);
        let buckets = planned.draw(&values, bucketized.strata.as_deref(), &mut stream, control)?;
        let mut stream = rows.streams.stream(&counterfeits_label(sensitive));
        let mut draw = CounterfeitDraw::new(rows.table, sensitive, &mut stream, control)?;
        draw.strata = bucketized.strata.as_deref();
        planned.seen_through = draw.draw(&buckets, number)?.seen_through;
    }
    Ok(planned)
}
