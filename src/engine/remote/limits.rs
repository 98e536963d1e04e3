//! What cannot be released where the rows are in another engine, with what to do.

use super::counts::RemoteCounts;
use super::port::RemoteColumn;
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

/// The most rows that are held here: those by which tables are chosen, and those of a release that the other engine does not make.
pub const MOST_HELD_ROWS: u64 = 1 << 24;

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

/// Whether the other engine does not make a release, which needs the rows here: for what is asked, or for what the ledger has of the rows.
#[must_use]
pub fn needs_rows_here(specification: &Specification, earlier: &EarlierDisclosures, rows: u64) -> bool {
    remote_conflict(specification, earlier).is_some() || !remote_faults(specification, rows).is_empty()
}

/// Whether some of these faults are limits of the other engine: the release may be possible where the rows can be read.
#[must_use]
pub fn are_limits_there(faults: &[Fault]) -> bool {
    let is_limit =
        |fault: &Fault| matches!(fault.kind, Kind::GuaranteeUnsupported | Kind::WorkLimit | Kind::TooManyAttributes);
    faults.iter().any(is_limit)
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

/// Why the rows contradict what the specification takes for a person.
pub(super) fn subject_problem(unit: &Unit, columns: &[RemoteColumn]) -> Option<Problem> {
    let Unit::Subject { attribute, max_rows, .. } = unit else { return None };
    let detail = match columns.iter().find(|column| column.name == *attribute) {
        None => "the table has no such column of subjects".to_owned(),
        Some(column) if column.missing > 0 => "a row has no subject".to_owned(),
        Some(column) if column.largest() > *max_rows => format!("a subject has more than {max_rows} rows"),
        Some(_) => return None,
    };
    Some(Problem::new(Kind::UploadMalformed, detail).with("column", attribute.as_str()))
}

/// Whether the tables of a method are chosen by the rows.
#[must_use]
pub const fn chooses_by_rows(method: &MethodSpec) -> bool {
    matches!(method, MethodSpec::Versatile(spec) if spec.looks_at_data())
}

/// The fault of rows that are too many to choose tables by.
fn too_many_to_rank(rows: u64) -> Option<Fault> {
    let detail = format!(
        "the tables would be chosen by {rows} rows, of {MOST_HELD_ROWS} at most in the other engine: use the algorithm uad or \
         single_attribute, which look at the rules alone"
    );
    let fault = || Fault::new("/method/algorithm", Kind::WorkLimit, detail);
    (rows > MOST_HELD_ROWS).then(|| fault().with("limit", MOST_HELD_ROWS).with("found", rows))
}

/// What always works instead.
const WHOLE: &str = "upload the table, or publish it from a file";

/// The faults of a specification that asks for what the other engine does not do with a table of this many rows.
pub fn remote_faults(specification: &Specification, rows: u64) -> Vec<Fault> {
    let mut faults = faults_of_method(&specification.method);
    faults.extend(too_many_to_rank(rows).filter(|_| chooses_by_rows(&specification.method)));
    let mut fault = |applies: bool, pointer: &str, detail: &str| {
        if applies {
            faults.push(unsupported(pointer, detail));
        }
    };
    fault(specification.schema.is_some(), "/schema", "proposed tables are planned, not published");
    fault(specification.republish.is_some(), "/republish", &format!("nights are drawn from rows: {WHOLE}"));
    let chosen = specification.people != PeopleChoice::All;
    fault(chosen, "/people", &format!("rows of new people are chosen one by one: {WHOLE}"));
    let leaves_out = specification.unit.kept().is_some();
    fault(leaves_out, "", &format!("which rows of a person are kept is drawn row by row: {WHOLE}"));
    fault(!specification.excludable.is_empty(), "/attributes", &format!("excludable values need rows: {WHOLE}"));
    let is_bounded = !specification.thresholds.is_empty() && !matches!(specification.method, MethodSpec::Bucketize(_));
    let detail = format!("thresholds of values are kept there by the method bucketize alone: use it, or {WHOLE}");
    fault(is_bounded, "/method", &detail);
    let unread = specification.entropy && !are_parts_read(rows);
    let detail = format!(
        "the entropy of the model is read from the parts of at most {MOST_READ_ROWS} rows: ask for no figures, with an empty list"
    );
    fault(unread, "/utility", &detail);
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
            let detail = "the other engine makes buckets of one attribute: use another algorithm than multi_sa";
            fault(spec.algorithm == Algorithm::MultiSa, "/method/algorithm", detail);
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
    let is_chosen = matches!(design.decision, Decision::ByRules | Decision::ByData(_));
    if !is_chosen && !design.tables.iter().all(is_of_distinct_rows) {
        return vec![unsupported("/method", "the tables cannot be chosen from rules and counts")];
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
    use crate::microdata::AttributeType;
    use crate::privacy::ValueFrequency;
    use crate::publication::SizeCount;

    #[test]
    fn subjects_have_at_most_the_rows_they_are_said_to() {
        let of = |rows: u64, missing: u64| RemoteColumn {
            name: "patient".to_owned(),
            kind: AttributeType::Text,
            missing,
            frequencies: vec![ValueFrequency { rows, values: 1 }, ValueFrequency { rows: 1, values: 7 }],
        };
        let unit = |attribute: &str| Unit::Subject { attribute: attribute.to_owned(), max_rows: 2, kept: None };
        let said = |unit: &Unit, column: RemoteColumn| subject_problem(unit, &[column]).map(|problem| problem.detail);
        assert_eq!(said(&Unit::Row, of(3, 1)), None);
        assert_eq!(said(&unit("patient"), of(2, 0)), None);
        assert_eq!(said(&unit("patient"), of(3, 0)).unwrap(), "a subject has more than 2 rows");
        assert_eq!(said(&unit("patient"), of(2, 1)).unwrap(), "a row has no subject");
        assert_eq!(said(&unit("person"), of(2, 0)).unwrap(), "the table has no such column of subjects");
    }

    #[test]
    fn rows_to_choose_tables_by_are_bounded() {
        assert_eq!(too_many_to_rank(MOST_HELD_ROWS), None);
        let fault = too_many_to_rank(MOST_HELD_ROWS + 1).unwrap();
        assert!(fault.detail.contains("16777217 rows, of 16777216 at most"), "{}", fault.detail);
    }

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
