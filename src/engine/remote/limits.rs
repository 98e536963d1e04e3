//! What cannot be released where the rows are in another engine, with what to do.

use super::counts::RemoteCounts;
use crate::ledger::EarlierDisclosures;
use crate::microdata::MAX_ATTRIBUTES;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{Algorithm, Guarantee, SlicedDiversity, SubmittedRule, Unit};
use crate::publish::bucketize::FilledBuckets;
use crate::publish::{BucketPlan, Decision, Design, DesignedTable, TableDesign};
use crate::spec::{ClassSplit, InternalUtility, MethodSpec, PeopleChoice, SlicedColumns, Specification};

/// The most rows of parts that are read for what no rule prevents.
const MOST_READ_ROWS: u64 = 1 << 22;

/// Whether the parts of a table of this many rows are read for what no rule prevents, if this machine reaches them.
#[must_use]
pub const fn are_parts_read(rows: u64) -> bool {
    rows <= MOST_READ_ROWS
}

/// The largest number of values of a protected attribute.
pub(super) const MOST_VALUES: u64 = 1 << 16;

/// The most distinct rows of the attributes that classes are made of.
pub const MOST_DISTINCT_ROWS: u64 = 1 << 22;

/// The most columns of a table, dropped ones included: dependencies are searched among all of them.
pub(super) const MOST_COLUMNS: usize = MAX_ATTRIBUTES;

/// The most buckets of a table: labels are 32-bit integers.
const MOST_BUCKETS: u64 = i32::MAX as u64;

/// The most runs of ranks that a plan may send to the engine: one for each value in the buckets of each size.
const MOST_SEGMENTS: u64 = 1 << 17;

pub(super) fn unsupported(pointer: &str, detail: impl Into<String>) -> Fault {
    Fault::new(pointer, Kind::GuaranteeUnsupported, detail)
}

/// Why rows of which the ledger knows a release are not published again: how two releases stand together is found from rows.
pub fn remote_conflict(specification: &Specification, earlier: &EarlierDisclosures) -> Option<Problem> {
    let disclosed = earlier.disclosures.iter().map(|(release, _)| release);
    let release = disclosed.chain(earlier.rules.iter().map(|(release, _)| release)).next()?;
    let detail = format!(
        "the release or external table {release} is of the same rows; whether another release keeps the rules together with it is found \
         from rows, which are in the other engine: use that release, or upload the table"
    );
    let problem = Problem::new(Kind::CompositionUndecidable, detail).with("release", release.to_string());
    specification.unproven.is_none().then_some(problem)
}

/// What always works instead.
const WHOLE: &str = "upload the table, or publish it from a file";

/// The faults of a specification that asks for what the other engine does not do.
pub fn remote_faults(specification: &Specification) -> Vec<Fault> {
    let mut faults = faults_of_method(&specification.method);
    let mut fault = |applies: bool, pointer: &str, detail: &str| {
        if applies {
            faults.push(unsupported(pointer, detail));
        }
    };
    fault(specification.schema.is_some(), "/schema", "proposed tables are planned, not published");
    fault(specification.republish.is_some(), "/republish", &format!("nights are drawn from rows: {WHOLE}"));
    let chosen = specification.people != PeopleChoice::All;
    fault(chosen, "/people", &format!("rows of new people are chosen one by one: {WHOLE}"));
    fault(specification.unit != Unit::Row, "", &format!("rows of persons are counted from rows: {WHOLE}"));
    fault(!specification.excludable.is_empty(), "/attributes", &format!("excludable values need rows: {WHOLE}"));
    let is_bounded = !specification.thresholds.is_empty() && !matches!(specification.method, MethodSpec::Bucketize(_));
    let detail = format!("thresholds of values are kept there by the method bucketize alone: use it, or {WHOLE}");
    fault(is_bounded, "/method", &detail);
    fault(specification.entropy, "/utility", &format!("the entropy of the model needs rows: {WHOLE}"));
    let measured = specification.internal != InternalUtility::default();
    fault(measured, "/internal", &format!("figures of the original need rows: {WHOLE}"));
    let compares = |rule: &&SubmittedRule| needs_order(rule.guarantee);
    for rule in specification.method.rules().iter().filter(compares) {
        let detail = format!("distances along a taxonomy, and references other than the table, need rows: {WHOLE}");
        faults.push(unsupported(&rule.pointer, detail));
    }
    faults
}

/// The faults of a method.
fn faults_of_method(method: &MethodSpec) -> Vec<Fault> {
    const STRICT: &str = "relaxed splits part rows with equal values, which are in the other engine: use strict splits";
    let mut faults = Vec::new();
    let mut fault = |applies: bool, pointer: &str, detail: &str| {
        if applies {
            faults.push(unsupported(pointer, detail));
        }
    };
    match method {
        MethodSpec::Anatomy(_) => {}
        MethodSpec::Bucketize(spec) => {
            let detail = format!("which values a bucket may be given as counterfeits depends on its rows: {WHOLE}");
            fault(spec.counterfeits.is_some(), "/method/counterfeits", &detail);
        }
        MethodSpec::Versatile(spec) => {
            let by_rules = matches!(spec.algorithm, Algorithm::Uad | Algorithm::SingleAttribute);
            let detail = "the other engine plans from rules and counts: use the algorithm uad or single_attribute";
            fault(!by_rules, "/method/algorithm", detail);
            fault(spec.addback, "/method/addback", "what may be added depends on rows, which are in the other engine");
        }
        MethodSpec::Generalize(spec) => {
            fault(spec.split != ClassSplit::Strict, "/method/split", STRICT);
        }
        MethodSpec::Slicing(spec) => {
            fault(!spec.strict, "/method/split", STRICT);
            let detail = "mixtures over buckets are judged row by row, and rows are in the other engine: use the diversity bucket";
            fault(spec.diversity != SlicedDiversity::Bucket, "/method/diversity", detail);
            let is_chosen = !matches!(spec.columns, SlicedColumns::Explicit(_));
            let detail = "which attributes stand together is found from rows, which are in the other engine: list those of each column";
            fault(is_chosen, "/method/columns", detail);
            let detail =
                format!("columns that share attributes are judged row by row: let them share none, or {WHOLE}");
            fault(spec.overlaps(), "/method/columns", &detail);
            let detail = format!("the other engine does not generalize sliced columns: leave column_k out, or {WHOLE}");
            fault(spec.column_k.is_some(), "/method/column_k", &detail);
        }
        MethodSpec::Decompose(_) | MethodSpec::Sequential(_) => {
            let detail = format!(
                "rows are in the other engine, which does not run {}: use anatomy, bucketize, versatile, generalize or slicing, or {WHOLE}",
                method.name()
            );
            fault(true, "/method/type", &detail);
        }
    }
    faults
}

/// Whether a guarantee needs more than the counts of values.
fn needs_order(guarantee: Guarantee) -> bool {
    use crate::publication::ValueDistance::Hierarchical;
    let along = matches!(guarantee, Guarantee::TCloseness { distance: Hierarchical, .. });
    along || !guarantee.reference().is_table()
}

/// The faults of a design with a table that the other engine cannot make.
pub(super) fn faults_of_design(design: &Design, counts: &RemoteCounts) -> Vec<Fault> {
    let is_of_distinct_rows =
        |table: &DesignedTable| matches!(table.design, TableDesign::Generalized(_) | TableDesign::Sliced(_));
    if design.decision != Decision::ByRules && !design.tables.iter().all(is_of_distinct_rows) {
        return vec![unsupported("/method", "the tables cannot be chosen from rules and counts alone")];
    }
    let is_counted = |buckets: &BucketPlan| match buckets {
        BucketPlan::Drawn => true,
        BucketPlan::Sized(planned) => planned.counterfeits.is_none() && planned.in_strata.is_empty(),
        BucketPlan::Persistent(_) => false,
    };
    let is_made = |table: &TableDesign| match table {
        TableDesign::Plain => true,
        TableDesign::Bucketized(bucketized) => {
            bucketized.single().is_some()
                && bucketized.parts.len() == 1
                && bucketized.parts[0].len() == 1
                && is_counted(&bucketized.buckets)
                && bucketized.strata.is_none()
                && bucketized.closed.is_empty()
        }
        TableDesign::Generalized(generalized) => generalized.strata.is_none(),
        TableDesign::Sliced(sliced) => sliced.plan.strata.is_none(),
        TableDesign::Sequential(_) | TableDesign::Decomposed(_) => false,
    };
    let detail = "a table has several attributes in its sensitive part, which are dealt row by row: give each rule one sensitive \
                  attribute, and attributes that predict each other to one rule";
    let unmade = design.tables.iter().filter(|table| !is_made(&table.design)).map(|_| unsupported("/method", detail));
    // in a line of one cell nothing and an empty text look alike
    let is_bare = |table: &&DesignedTable| {
        let mut attributes = table.attributes.iter();
        let has_one_part = table.is_plain() || table.generalized().is_some();
        let only = attributes.next().filter(|_| has_one_part && attributes.next().is_none());
        only.is_some_and(|attr| counts.columns[attr.index()].missing > 0)
    };
    let detail = "a table of one attribute would have missing values, which this engine does not write: give the attribute to a rule, or drop it";
    let bare = design.tables.iter().filter(is_bare).map(|_| unsupported("/method", detail));
    let sized = design.tables.iter().filter_map(|table| match &table.design {
        TableDesign::Bucketized(made) => match &made.buckets {
            BucketPlan::Sized(planned) => Some(faults_of_sizes(&planned.filled)),
            BucketPlan::Drawn | BucketPlan::Persistent(_) => None,
        },
        _ => None,
    });
    unmade.chain(bare).chain(sized.flatten()).collect()
}

/// The faults of buckets of planned sizes that are too many, or hold too many values.
fn faults_of_sizes(filled: &[FilledBuckets]) -> Vec<Fault> {
    let buckets: u64 = filled.iter().map(|of| of.class.buckets).sum();
    let segments: usize = filled.iter().map(|of| of.counts.iter().filter(|&&rows| rows > 0).count()).sum();
    let bound = |found: u64, limit: u64, what: &str, repair: &str| {
        let detail = format!("there would be {found} {what}, of {limit} at most in the other engine: {repair}");
        (found > limit)
            .then(|| Fault::new("/method/sizes", Kind::WorkLimit, detail).with("limit", limit).with("found", found))
    };
    let fewer = "choose larger buckets, or publish the table in parts of other people";
    let buckets = bound(buckets, MOST_BUCKETS, "buckets", fewer);
    let values = "choose fewer sizes, or group the values of the protected attribute";
    let segments = bound(segments as u64, MOST_SEGMENTS, "pairs of a size and a value", values);
    buckets.into_iter().chain(segments).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::SizeCount;

    #[test]
    fn sizes_beyond_the_engine_are_named() {
        let of = |buckets: u64, values: usize| FilledBuckets {
            class: SizeCount { size: 2, buckets },
            counts: vec![1; values],
        };
        assert_eq!(faults_of_sizes(&[of(MOST_BUCKETS - 1, 1 << 16), of(1, 1 << 16)]), []);
        let faults = faults_of_sizes(&[of(MOST_BUCKETS, 1 << 16), of(1, (1 << 16) + 1)]);
        let found: Vec<_> = faults.iter().map(|fault| fault.detail.split(',').next().unwrap()).collect();
        assert_eq!(found, ["there would be 2147483648 buckets", "there would be 131073 pairs of a size and a value"]);
    }
}
