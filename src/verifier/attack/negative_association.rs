//! Whoever knows that a value of a quasi-identifier hardly ever goes with a sensitive value crosses that one out of the bucket of
//! somebody who has the former (variable-sensitivity bucketing, section 9). What is left of the bucket is likelier by so much.
//!
//! A value a of an attribute excludes a sensitive value x when at least 30 rows of the original have a, and x has among them at
//! most a tenth of the share that it has in the whole. Of a bucket's values that occur once in it some may be counterfeits; one
//! that every row of the bucket excludes is taken for one. Nothing is made of what other rows of the bucket exclude beside that,
//! and nothing where a row excludes all that its bucket has.

use std::collections::{BTreeMap, BTreeSet};

use ahash::AHashMap;

use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Column};
use crate::publication::{Guarantee, Protected, SubmittedRule};
use crate::verifier::definition::fraction::{beyond, exceeds, lowest};
use crate::verifier::definition::thresholds::{ThresholdBounds, counterfeits};
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{CellText, ExternalPart, ExternalTable};

/// So many rows have a value that excludes another.
const MIN_SUPPORT_ROWS: u64 = 30;

/// And the other is so many times rarer among them than in the whole, or more.
const MIN_RARITY_FACTOR: u128 = 10;

/// The most pairs of a row and a value of its bucket that are looked at.
const MAX_PAIR_STEPS: u64 = 1 << 26;

/// So many findings are told.
const MAX_REPORTED_FINDINGS: usize = 10;

/// What is left of buckets for whoever crosses values out.
#[derive(Clone, Default, Debug)]
pub struct NegativeAssociationReport {
    /// The largest posterior of a value in a bucket for somebody for whom a value of it is crossed out, in lowest terms.
    pub worst: Option<(u64, u64)>,
    /// Of how many buckets and different rows a value is likelier than the rule allows.
    pub total: u64,
    /// Some of them, the most certain first.
    pub first: Vec<NegativeAssociationFinding>,
}

/// A bucket and a row of it of which more is told than the rule allows.
#[derive(Clone, Debug)]
pub struct NegativeAssociationFinding {
    /// The table, by its index.
    pub table: usize,
    /// The rule, by its index.
    pub rule: usize,
    /// The label of the bucket.
    pub bucket: CellText,
    /// What is known of the row.
    pub known: Vec<(Attr, CellText)>,
    /// The likeliest value of those that exceed the rule.
    pub sensitive: CellText,
    /// How likely it is, in lowest terms.
    pub posterior: (u64, u64),
}

/// Plays the attack on tables (by their index) against rules (by theirs) that protect one attribute, which one part of the table has
/// and what is known another.
///
/// # Errors
/// [`AttackError`]; `NotExact` also without an original, and when the table was not made from it.
pub fn find_negative_associations(
    submission: &Submission<'_>,
    asked: &[(usize, usize)],
    control: &Control,
) -> Result<NegativeAssociationReport, AttackError> {
    let Some(original) = submission.original else { return Err(AttackError::NotExact) };
    let mut read = Vec::with_capacity(asked.len());
    let mut steps = 0_u64;
    for &(table, rule) in asked {
        let asked = &submission.rules[rule];
        let Protected::Attribute(sensitive) = asked.protects else { return Err(AttackError::NotExact) };
        let buckets = CodedBuckets::new(&submission.tables[table], asked.known, sensitive, original, control)?;
        let pairs = buckets.all.values().map(|bucket| (bucket.rows.len() * bucket.values.len()) as u64);
        steps = pairs.fold(steps, u64::saturating_add);
        read.push((table, rule, sensitive, buckets));
    }
    if steps > MAX_PAIR_STEPS {
        return Err(AttackError::TooMany {
            what: "rows and values of their buckets",
            limit: MAX_PAIR_STEPS,
            found: steps,
        });
    }
    let mut crossed = NegativeAssociationReport::default();
    for (table, rule, sensitive, buckets) in &read {
        let column = original.column(*sensitive).ok_or(AttackError::NotExact)?;
        let associations: Vec<ObservedAssociations> = buckets
            .attributes
            .iter()
            .map(|attr| {
                ObservedAssociations::new(original.column(*attr).ok_or(AttackError::NotExact)?, column, control)
            })
            .collect::<Result<_, AttackError>>()?;
        let limit = RuleLimit::new(submission, &submission.rules[*rule], *sensitive, column);
        for (label, bucket) in &buckets.all {
            bucket.look((&associations, buckets.counterfeits, &limit), control, |row, told| {
                if crossed.worst.is_none_or(|worst| exceeds(told.most, worst)) {
                    crossed.worst = Some(told.most);
                }
                let Some((value, posterior)) = told.exceeding else { return };
                crossed.total += 1;
                let known = buckets.attributes.iter().zip(row).filter_map(|(attr, code)| {
                    let column = original.column(*attr)?;
                    Some((*attr, cell(column, *code)))
                });
                let known = known.collect();
                let (bucket, sensitive) = (buckets.labels[*label as usize].clone(), cell(column, value));
                crossed.first.push(NegativeAssociationFinding {
                    table: *table,
                    rule: *rule,
                    bucket,
                    known,
                    sensitive,
                    posterior,
                });
                // no more are held than are looked at
                if crossed.first.len() > 64 * MAX_REPORTED_FINDINGS {
                    most_certain(&mut crossed.first);
                }
            })?;
        }
    }
    most_certain(&mut crossed.first);
    Ok(crossed)
}

/// Keeps the most certain; of equal ones the first.
fn most_certain(found: &mut Vec<NegativeAssociationFinding>) {
    found.sort_by(|a, b| exceeds(b.posterior, a.posterior).cmp(&exceeds(a.posterior, b.posterior)));
    found.truncate(MAX_REPORTED_FINDINGS);
}

fn cell(column: &Column, code: u32) -> CellText {
    CellText { kind: column.domain.kind(), value: column.domain.value(code).map(<[u8]>::to_vec) }
}

/// How often the values of an attribute go with the sensitive ones, in the original.
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

    /// Whether whoever has the value `a` hardly ever has the sensitive value `x`.
    fn exclude(&self, a: u32, x: u32) -> bool {
        let (support, overall) = (self.support[a as usize], self.overall[x as usize]);
        let together = self.together.get(&(a, x)).copied().unwrap_or(0);
        // together / support <= (overall / rows) / RARER
        support >= MIN_SUPPORT_ROWS
            && u128::from(together) * MIN_RARITY_FACTOR * u128::from(self.rows)
                <= u128::from(overall) * u128::from(support)
    }
}

/// The buckets of a table, in the codes of the original.
struct CodedBuckets {
    labels: Vec<CellText>,
    /// What is known of a row.
    attributes: Vec<Attr>,
    all: BTreeMap<u32, CodedBucket>,
    /// So many of each bucket's values are of nobody.
    counterfeits: u64,
}

#[derive(Default)]
struct CodedBucket {
    /// Different rows, by what is known of them.
    rows: BTreeSet<Vec<u32>>,
    /// The sensitive values, and how often each occurs.
    values: BTreeMap<u32, u64>,
}

impl CodedBuckets {
    fn new(
        table: &ExternalTable,
        known: AttrSet,
        sensitive: Attr,
        original: &ExternalPart,
        control: &Control,
    ) -> Result<Self, AttackError> {
        let shown = |part: &ExternalPart| part.attributes().minus(part.opaque()).intersection(known).without(sensitive);
        let holder = table.holder(sensitive).filter(|part| !part.opaque().contains(sensitive));
        let of_rows = table.parts.iter().filter(|part| !part.attributes().contains(sensitive));
        // that which tells most of a row; of equal ones the first
        let of_rows = of_rows.rev().max_by_key(|part| shown(part).len());
        let holder = holder.ok_or(AttackError::NotExact)?;
        let counterfeits = counterfeits(holder.meaning);
        let Some(of_rows) = of_rows else {
            // a table of what is protected alone shows nothing of anybody
            return Ok(Self { labels: Vec::new(), attributes: Vec::new(), all: BTreeMap::new(), counterfeits });
        };
        let (Some(labels), Some(of_row)) = (&holder.bucket, &of_rows.bucket) else { return Err(AttackError::NotExact) };
        let numbers: AHashMap<Option<&[u8]>, u32> = labels.domain.iter().zip(0..).collect();
        let here: Option<Vec<u32>> = of_row.domain.iter().map(|label| numbers.get(&label).copied()).collect();
        let here = here.ok_or(AttackError::NotExact)?;
        let mut all: BTreeMap<u32, CodedBucket> = BTreeMap::new();
        let values = translated(holder, sensitive, original)?;
        let column = holder.column(sensitive).ok_or(AttackError::NotExact)?;
        for row in 0..holder.rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let value = values[column.codes.get(row) as usize];
            *all.entry(labels.codes.get(row)).or_default().values.entry(value).or_default() += 1;
        }
        let attributes: Vec<Attr> = shown(of_rows).iter().collect();
        let mut columns = Vec::with_capacity(attributes.len());
        for attr in &attributes {
            let column = of_rows.column(*attr).ok_or(AttackError::NotExact)?;
            columns.push((column, translated(of_rows, *attr, original)?));
        }
        for row in 0..of_rows.rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let known = columns.iter().map(|(column, codes)| codes[column.codes.get(row) as usize]).collect();
            all.entry(here[of_row.codes.get(row) as usize]).or_default().rows.insert(known);
        }
        let labels = (0..labels.domain.len() as u32).map(|label| cell(labels, label)).collect();
        Ok(Self { labels, attributes, all, counterfeits })
    }
}

/// Per code of a part's column, the code that the original has for the value.
fn translated(part: &ExternalPart, attr: Attr, original: &ExternalPart) -> Result<Vec<u32>, AttackError> {
    let (Some(column), Some(of)) = (part.column(attr), original.column(attr)) else {
        return Err(AttackError::NotExact);
    };
    let codes: AHashMap<Option<&[u8]>, u32> = of.domain.iter().zip(0..).collect();
    let known = column.domain.iter().map(|value| codes.get(&value).copied());
    known.collect::<Option<_>>().ok_or(AttackError::NotExact)
}

/// What is left of a bucket for a row.
struct RemainingValues {
    most: (u64, u64),
    exceeding: Option<(u32, (u64, u64))>,
}

impl CodedBucket {
    /// Tells of each row for which a value is crossed out what is left.
    fn look(
        &self,
        (associations, counterfeits, limit): (&[ObservedAssociations], u64, &RuleLimit),
        control: &Control,
        mut tell: impl FnMut(&[u32], RemainingValues),
    ) -> Result<(), AttackError> {
        let exclude = |row: &[u32], value: u32| {
            associations.iter().zip(row).any(|(associations, &known)| associations.exclude(known, value))
        };
        let once = |value: &u32| self.values.get(value) == Some(&1);
        let by_all = |value: &u32| self.rows.iter().all(|row| exclude(row, *value));
        let singles: Vec<u32> = self.values.keys().copied().filter(once).collect();
        let seen_through: BTreeSet<u32> = match counterfeits {
            0 => BTreeSet::new(),
            _ => singles.iter().copied().filter(by_all).collect(),
        };
        let singles = (singles.len() - seen_through.len()) as u64;
        let hidden = counterfeits.saturating_sub(seen_through.len() as u64);
        // of `singles` values each is as likely a counterfeit; shares are all multiplied by their number
        let weigh = |count: u64| match count {
            1 => u128::from(singles.saturating_sub(hidden)),
            count => u128::from(count) * u128::from(singles.max(1)),
        };
        for row in &self.rows {
            control.check()?;
            let left: Vec<(u32, u128)> = self
                .values
                .iter()
                .filter(|(value, _)| !seen_through.contains(value) && !exclude(row, **value))
                .map(|(value, count)| (*value, weigh(*count)))
                .collect();
            let all: u128 = left.iter().map(|(_, weight)| weight).sum();
            if all == 0 || left.len() == self.values.len() {
                continue;
            }
            let likeliest = left.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
            let exceeding = left.iter().filter(|(value, weight)| limit.is_exceeded(*value, *weight, all));
            let exceeding = exceeding.rev().max_by_key(|(_, weight)| *weight);
            let exceeding = exceeding.map(|(value, weight)| (*value, lowest(*weight, all)));
            tell(row, RemainingValues { most: lowest(likeliest, all), exceeding });
        }
        Ok(())
    }
}

/// What a rule allows of each value.
enum RuleLimit {
    /// One share for all.
    Share(u64, u64),
    /// A threshold for each, in an original that has each so often, and so many rows.
    Thresholds(Option<ThresholdBounds>, Vec<u64>, u64),
    /// No share is bounded.
    None,
}

impl RuleLimit {
    fn new(submission: &Submission<'_>, rule: &SubmittedRule, sensitive: Attr, column: &Column) -> Self {
        match rule.guarantee {
            Guarantee::LDiversity { l } => Self::Share(1, l),
            Guarantee::AlphaK { alpha, .. } => Self::Share(alpha.numerator(), alpha.denominator()),
            Guarantee::Thresholds { stated, .. } => {
                let of = submission.thresholds.iter().filter(|of| of.attribute == sensitive);
                let mut bounds =
                    of.map(|of| ThresholdBounds::new(&of.thresholds, Some(column.domain.kind()), column.domain.iter()));
                let mut overall = vec![0; column.domain.len()];
                column.codes.iter().for_each(|code| overall[code as usize] += 1);
                Self::Thresholds(bounds.find(|bound| bound.name() == stated), overall, column.codes.len() as u64)
            }
            _ => Self::None,
        }
    }

    fn is_exceeded(&self, value: u32, weight: u128, all: u128) -> bool {
        match self {
            Self::Share(numerator, denominator) => beyond(weight, all, *numerator, *denominator),
            Self::Thresholds(bound, overall, rows) => {
                let overall = (overall[value as usize], *rows);
                // where none is stated none is kept
                !bound.as_ref().is_some_and(|bound| bound.admits(value, lowest(weight, all), overall))
            }
            Self::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::RowMeaning;
    use crate::verifier::tests::fixture::{Cell as Text, column, rule};

    /// Rows of `(known, sensitive)`, with how often each occurs.
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

    /// A table of buckets: what is known of the rows of each, and its values, of which so many are of nobody.
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

    fn played(table: ExternalTable, original: &ExternalPart, l: u64) -> Result<NegativeAssociationReport, AttackError> {
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

    /// Forty of each; p never has x, q all three alike.
    fn negative() -> ExternalPart {
        original(&[("p", "y", 20), ("p", "z", 20), ("q", "x", 14), ("q", "y", 13), ("q", "z", 13)])
    }

    #[test]
    fn what_hardly_ever_goes_together_is_crossed_out() {
        let buckets: [(&[&str], &[&str]); 3] =
            [(&["p", "q", "q"], &["x", "y", "z"]), (&["p", "p"], &["y", "z"]), (&["p", "q"], &["x", "y"])];
        let found = played(given(&buckets, 0), &negative(), 2).expect("an answer");
        assert_eq!((found.worst, found.total), (Some((1, 1)), 1));
        let crossing = &found.first[0];
        assert_eq!(crossing.bucket.value.as_deref(), Some(&b"3"[..]));
        assert_eq!(crossing.known[0].1.value.as_deref(), Some(&b"p"[..]));
        assert_eq!((crossing.sensitive.value.as_deref(), crossing.posterior), (Some(&b"y"[..]), (1, 1)));
        // a half is more than a third
        let found = played(given(&buckets[..1], 0), &negative(), 3).expect("an answer");
        assert_eq!((found.worst, found.total), (Some((1, 2)), 1));
        // and of q nothing is crossed out
        assert_eq!(played(given(&buckets[1..2], 0), &negative(), 2).expect("an answer").worst, None);
    }

    #[test]
    fn it_takes_thirty_rows_and_a_tenth_of_the_share() {
        let buckets: [(&[&str], &[&str]); 1] = [(&["p", "q"], &["x", "y"])];
        let worst =
            |rows: &[(&str, &str, usize)]| played(given(&buckets, 0), &original(rows), 2).expect("an answer").worst;
        assert_eq!(worst(&[("p", "y", 30), ("q", "x", 30), ("q", "y", 30)]), Some((1, 1)));
        assert_eq!(worst(&[("p", "y", 29), ("q", "x", 30), ("q", "y", 30)]), None);
        // one of forty, where forty of 160 have it: a tenth of the share; of 39 it is more than that
        assert_eq!(worst(&[("p", "x", 1), ("p", "y", 39), ("q", "x", 39), ("q", "y", 81)]), Some((1, 1)));
        assert_eq!(worst(&[("p", "x", 1), ("p", "y", 39), ("q", "x", 38), ("q", "y", 82)]), None);
    }

    #[test]
    fn a_value_that_all_rows_exclude_is_a_counterfeit() {
        // x is of nobody: y and z are left, and of neither it is told
        let seen: [(&[&str], &[&str]); 1] = [(&["p", "p"], &["x", "y", "z"])];
        let found = played(given(&seen, 1), &negative(), 2).expect("an answer");
        assert_eq!((found.worst, found.total), (Some((1, 2)), 0));
        assert_eq!(played(given(&seen, 1), &negative(), 3).expect("an answer").total, 1);
        // it may be that of q: any of three is the counterfeit, and p has one of two
        let mixed: [(&[&str], &[&str]); 1] = [(&["p", "q"], &["x", "y", "z"])];
        assert_eq!(played(given(&mixed, 1), &negative(), 2).expect("an answer").worst, Some((1, 2)));
        // y is there twice, and so twice as likely as what may be of nobody, and more
        let twice: [(&[&str], &[&str]); 1] = [(&["p", "q", "q"], &["x", "y", "y", "z"])];
        assert_eq!(played(given(&twice, 1), &negative(), 2).expect("an answer").worst, Some((4, 5)));
        // a row whose values are all excluded tells that somebody is an exception, and no more
        let none: [(&[&str], &[&str]); 1] = [(&["p"], &["x"])];
        assert_eq!(played(given(&none, 0), &negative(), 2).expect("an answer").worst, None);
    }

    #[test]
    fn tables_of_other_rows_are_told() {
        let unknown: [(&[&str], &[&str]); 1] = [(&["r", "q"], &["x", "y"])];
        assert!(matches!(played(given(&unknown, 0), &negative(), 2), Err(AttackError::NotExact)));
    }
}
