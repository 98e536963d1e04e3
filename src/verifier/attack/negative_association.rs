//! Attack by negative association.
//!
//! The adversary crosses out values that hardly ever occur with a known value.
//!
//! A value a of an attribute excludes a sensitive value x when at least 30 rows of the original have a, and the share
//! of x among them is at most a tenth of its share in the original. The remaining values of a bucket become more
//! probable. A value that occurs once may be a counterfeit; one that every row of the bucket excludes counts as a
//! counterfeit. The attack uses no other exclusions by other rows, and skips a row that excludes all values of its
//! bucket.
//!
//! # Citations
//! [Wang et al. 2012, section 6]

use std::collections::BTreeSet;

use ahash::AHashMap;

use super::bucket::{BucketAttackFinding, BucketAttackReport, CodedBucket, CodedBuckets, PairSteps, RuleLimit, cell};
use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, Column};
use crate::publication::Protected;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::ExternalPart;

/// Minimal number of rows with an excluding value.
const MIN_SUPPORT_ROWS: u64 = 30;

/// Minimal factor by which the excluded value is rarer among these rows than in the original.
const MIN_RARITY_FACTOR: u128 = 10;

/// Attacks tables with rules, both given by index.
///
/// A rule must protect one attribute. The attribute stands in one part of the table and the known attributes in
/// another.
///
/// # Errors
/// [`AttackError`]; `NotExact` also without an original, and when the table was not made from it.
pub fn find_negative_associations(
    submission: &Submission<'_>,
    asked: &[(usize, usize)],
    control: &Control,
) -> Result<BucketAttackReport, AttackError> {
    let Some(original) = submission.original else { return Err(AttackError::NotExact) };
    let mut attacked = Vec::with_capacity(asked.len());
    let mut steps = PairSteps::default();
    for &(table, rule) in asked {
        let table = AttackedTable::new(submission, original, table, rule, control)?;
        steps.add(&table.buckets);
        attacked.push(table);
    }
    steps.check()?;
    let mut report = BucketAttackReport::default();
    for table in &attacked {
        table.attack(submission, original, &mut report, control)?;
    }
    report.keep_most_certain();
    Ok(report)
}

/// A table and a rule of an attack, both by their indexes, with the buckets of the table.
struct AttackedTable {
    table: usize,
    rule: usize,
    sensitive: Attr,
    buckets: CodedBuckets,
}

impl AttackedTable {
    fn new(
        submission: &Submission<'_>,
        original: &ExternalPart,
        table: usize,
        rule: usize,
        control: &Control,
    ) -> Result<Self, AttackError> {
        let asked = &submission.rules[rule];
        let Protected::Attribute(sensitive) = asked.protects else { return Err(AttackError::NotExact) };
        let buckets = CodedBuckets::new(&submission.tables[table], asked.known, sensitive, original, control)?;
        Ok(Self { table, rule, sensitive, buckets })
    }

    fn attack(
        &self,
        submission: &Submission<'_>,
        original: &ExternalPart,
        report: &mut BucketAttackReport,
        control: &Control,
    ) -> Result<(), AttackError> {
        let buckets = &self.buckets;
        let column = original.column(self.sensitive).ok_or(AttackError::NotExact)?;
        let mut associations = Vec::with_capacity(buckets.attributes.len());
        for attr in &buckets.attributes {
            let known = original.column(*attr).ok_or(AttackError::NotExact)?;
            associations.push(ObservedAssociations::new(known, column, control)?);
        }
        let limit = RuleLimit::new(submission, &submission.rules[self.rule], self.sensitive, column);
        let adversary =
            BucketAdversary { associations: &associations, counterfeits: buckets.counterfeits, limit: &limit };
        for (label, bucket) in &buckets.all {
            bucket.look(&adversary, control, |row, remaining| {
                report.look_at(remaining.most);
                let Some((value, posterior)) = remaining.exceeding else { return };
                let known = buckets.attributes.iter().zip(row).filter_map(|(attr, code)| {
                    let column = original.column(*attr)?;
                    Some((*attr, cell(column, *code)))
                });
                report.add(BucketAttackFinding {
                    table: self.table,
                    rule: self.rule,
                    bucket: buckets.labels[*label as usize].clone(),
                    known: known.collect(),
                    sensitive: cell(column, value),
                    posterior,
                });
            })?;
        }
        Ok(())
    }
}

/// Knowledge of the adversary about the rows of a bucket.
struct BucketAdversary<'a> {
    /// One for each known attribute, in their order.
    associations: &'a [ObservedAssociations],
    counterfeits: u64,
    limit: &'a RuleLimit,
}

/// Joint counts of an attribute and the sensitive attribute in the original.
struct ObservedAssociations {
    support: Vec<u64>,
    overall: Vec<u64>,
    together: AHashMap<(u32, u32), u64>,
    rows: u64,
}

impl ObservedAssociations {
    fn new(column: &Column, sensitive: &Column, control: &Control) -> Result<Self, AttackError> {
        let (mut support, mut overall) = (vec![0; column.domain.len()], vec![0; sensitive.domain.len()]);
        let mut together = AHashMap::new();
        let rows = sensitive.codes.len();
        for row in 0..rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let (a, x) = (column.codes.get(row), sensitive.codes.get(row));
            support[a as usize] += 1;
            overall[x as usize] += 1;
            *together.entry((a, x)).or_default() += 1;
        }
        Ok(Self { support, overall, together, rows: rows as u64 })
    }

    /// Whether rows with the value `a` hardly ever have the sensitive value `x`.
    fn excludes(&self, a: u32, x: u32) -> bool {
        let (support, overall) = (self.support[a as usize], self.overall[x as usize]);
        let together = self.together.get(&(a, x)).copied().unwrap_or(0);
        // together / support <= (overall / rows) / MIN_RARITY_FACTOR
        support >= MIN_SUPPORT_ROWS
            && u128::from(together) * MIN_RARITY_FACTOR * u128::from(self.rows)
                <= u128::from(overall) * u128::from(support)
    }
}

/// Posterior of a row after the exclusions.
struct RemainingValues {
    most: ShareOfRows,
    exceeding: Option<(u32, ShareOfRows)>,
}

impl CodedBucket {
    /// Reports the posterior of each row with an excluded value in the bucket.
    fn look(
        &self,
        adversary: &BucketAdversary<'_>,
        control: &Control,
        mut report: impl FnMut(&[u32], RemainingValues),
    ) -> Result<(), AttackError> {
        let exclude = |row: &[u32], value: u32| {
            let associations = adversary.associations.iter().zip(row);
            associations.into_iter().any(|(association, &known)| association.excludes(known, value))
        };
        let once = |value: &u32| self.values.get(value) == Some(&1);
        let by_all = |value: &u32| self.rows.iter().all(|row| exclude(row, *value));
        let singles: Vec<u32> = self.values.keys().copied().filter(once).collect();
        let exposed: BTreeSet<u32> = match adversary.counterfeits {
            0 => BTreeSet::new(),
            _ => singles.iter().copied().filter(by_all).collect(),
        };
        let singles = (singles.len() - exposed.len()) as u64;
        let hidden = adversary.counterfeits.saturating_sub(exposed.len() as u64);
        // each of the `singles` values is equally likely a counterfeit; all shares are multiplied by `singles`
        let weigh = |count: u64| match count {
            1 => u128::from(singles.saturating_sub(hidden)),
            count => u128::from(count) * u128::from(singles.max(1)),
        };
        for row in &self.rows {
            control.check()?;
            let left: Vec<(u32, u128)> = self
                .values
                .iter()
                .filter(|(value, _)| !exposed.contains(value) && !exclude(row, **value))
                .map(|(value, count)| (*value, weigh(*count)))
                .collect();
            let all: u128 = left.iter().map(|(_, weight)| weight).sum();
            if all == 0 || left.len() == self.values.len() {
                continue;
            }
            let likeliest = left.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
            let exceeding = left.iter().filter(|(value, weight)| adversary.limit.is_exceeded(*value, *weight, all));
            let exceeding = exceeding.rev().max_by_key(|(_, weight)| *weight);
            let exceeding = exceeding.map(|(value, weight)| (*value, ShareOfRows::lowest(*weight, all)));
            report(row, RemainingValues { most: ShareOfRows::lowest(likeliest, all), exceeding });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn share(count: u64, of: u64) -> Option<ShareOfRows> {
        Some(ShareOfRows::new(count, of))
    }
    use crate::microdata::AttrSet;
    use crate::publication::RowMeaning;
    use crate::verifier::external::table::ExternalTable;
    use crate::verifier::tests::fixture::{Cell as Text, column, rule};

    /// The rows `(known, sensitive, count)` as an original.
    fn original(rows: &[(&str, &str, usize)]) -> ExternalPart {
        let all = || rows.iter().flat_map(|(a, x, count)| std::iter::repeat_n((*a, *x), *count));
        let known: Vec<Text> = all().map(|(a, _)| Some(a.to_owned())).collect();
        let sensitive: Vec<Text> = all().map(|(_, x)| Some(x.to_owned())).collect();
        part("original", None, vec![(0, known), (1, sensitive)], RowMeaning::Tuples)
    }

    fn part(name: &str, labels: Option<Vec<Text>>, columns: Vec<(u8, Vec<Text>)>, meaning: RowMeaning) -> ExternalPart {
        ExternalPart {
            name: name.to_owned(),
            meaning,
            rows: columns[0].1.len(),
            bucket: labels.map(|labels| column(&labels)),
            columns: columns.iter().map(|(attr, cells)| (Attr(*attr), column(cells))).collect(),
            cells: BTreeMap::new(),
        }
    }

    /// A table with buckets of known and sensitive values, and counterfeits in each bucket.
    fn given(buckets: &[(&[&str], &[&str])], per_bucket: u32) -> ExternalTable {
        let cells = |second: bool| -> (Vec<Text>, Vec<Text>) {
            let of = |(rows, values): &(&[&str], &[&str])| -> Vec<String> {
                (if second { values } else { rows }).iter().map(|&text| text.to_owned()).collect()
            };
            let all =
                (1..).zip(buckets).flat_map(|(label, bucket)| of(bucket).into_iter().map(move |text| (label, text)));
            all.map(|(label, text): (u32, String)| (Some(label.to_string()), Some(text))).unzip()
        };
        let ((of_rows, rows), (of_values, values)) = (cells(false), cells(true));
        let meaning =
            if per_bucket > 0 { RowMeaning::TuplesAndCounterfeits { per_bucket } } else { RowMeaning::Tuples };
        let parts = vec![
            part("qi", Some(of_rows), vec![(0, rows)], RowMeaning::Tuples),
            part("sa", Some(of_values), vec![(1, values)], meaning),
        ];
        ExternalTable { name: "t1".to_owned(), parts }
    }

    fn played(table: ExternalTable, original: &ExternalPart, l: u64) -> Result<BucketAttackReport, AttackError> {
        let (tables, names, rules) = ([table], ["a".to_owned(), "s".to_owned()], [rule(0, &[0], 1, l)]);
        let submission = Submission {
            tables: &tables,
            names: &names,
            rules: &rules,
            dependencies: &[],
            original: Some(original),
            taxonomies: &[],
            thresholds: &[],
            exact: AttrSet::EMPTY,
        };
        find_negative_associations(&submission, &[(0, 0)], &Control::default())
    }

    /// Forty rows each; p never has x, and q has all three values.
    fn negative() -> ExternalPart {
        original(&[("p", "y", 20), ("p", "z", 20), ("q", "x", 14), ("q", "y", 13), ("q", "z", 13)])
    }

    #[test]
    fn value_rare_for_known_value_is_crossed_out() {
        let buckets: [(&[&str], &[&str]); 3] =
            [(&["p", "q", "q"], &["x", "y", "z"]), (&["p", "p"], &["y", "z"]), (&["p", "q"], &["x", "y"])];
        let found = played(given(&buckets, 0), &negative(), 2).expect("an answer");
        assert_eq!((found.worst, found.total), (share(1, 1), 1));
        let crossing = &found.first[0];
        assert_eq!(crossing.bucket.value.as_deref(), Some(&b"3"[..]));
        assert_eq!(crossing.known[0].1.value.as_deref(), Some(&b"p"[..]));
        assert_eq!(
            (crossing.sensitive.value.as_deref(), crossing.posterior),
            (Some(&b"y"[..]), ShareOfRows::new(1, 1))
        );
        // 1/2 exceeds 1/3
        let found = played(given(&buckets[..1], 0), &negative(), 3).expect("an answer");
        assert_eq!((found.worst, found.total), (share(1, 2), 1));
        // q excludes no value
        assert_eq!(played(given(&buckets[1..2], 0), &negative(), 2).expect("an answer").worst, None);
    }

    #[test]
    fn exclusion_requires_thirty_rows_and_a_tenth_of_the_share() {
        let buckets: [(&[&str], &[&str]); 1] = [(&["p", "q"], &["x", "y"])];
        let worst =
            |rows: &[(&str, &str, usize)]| played(given(&buckets, 0), &original(rows), 2).expect("an answer").worst;
        assert_eq!(worst(&[("p", "y", 30), ("q", "x", 30), ("q", "y", 30)]), share(1, 1));
        assert_eq!(worst(&[("p", "y", 29), ("q", "x", 30), ("q", "y", 30)]), None);
        // 1 of 40 rows, with a share of 40/160: exactly a tenth; 39/160 exceeds a tenth
        assert_eq!(worst(&[("p", "x", 1), ("p", "y", 39), ("q", "x", 39), ("q", "y", 81)]), share(1, 1));
        assert_eq!(worst(&[("p", "x", 1), ("p", "y", 39), ("q", "x", 38), ("q", "y", 82)]), None);
    }

    #[test]
    fn value_excluded_by_all_rows_is_a_counterfeit() {
        // x is fake: y and z remain, and no row excludes them
        let seen: [(&[&str], &[&str]); 1] = [(&["p", "p"], &["x", "y", "z"])];
        let found = played(given(&seen, 1), &negative(), 2).expect("an answer");
        assert_eq!((found.worst, found.total), (share(1, 2), 0));
        assert_eq!(played(given(&seen, 1), &negative(), 3).expect("an answer").total, 1);
        // x may belong to q: any of the three is the counterfeit, and p has one of two
        let mixed: [(&[&str], &[&str]); 1] = [(&["p", "q"], &["x", "y", "z"])];
        assert_eq!(played(given(&mixed, 1), &negative(), 2).expect("an answer").worst, share(1, 2));
        // y occurs twice: more than twice as likely as a value that may be fake
        let twice: [(&[&str], &[&str]); 1] = [(&["p", "q", "q"], &["x", "y", "y", "z"])];
        assert_eq!(played(given(&twice, 1), &negative(), 2).expect("an answer").worst, share(4, 5));
        // a row that excludes all values of its bucket is an exception, and reveals no more
        let none: [(&[&str], &[&str]); 1] = [(&["p"], &["x"])];
        assert_eq!(played(given(&none, 0), &negative(), 2).expect("an answer").worst, None);
    }

    #[test]
    fn table_of_other_rows_is_not_exact() {
        let unknown: [(&[&str], &[&str]); 1] = [(&["r", "q"], &["x", "y"])];
        assert!(matches!(played(given(&unknown, 0), &negative(), 2), Err(AttackError::NotExact)));
    }
}
