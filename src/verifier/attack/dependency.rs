//! Attack by dependencies.
//!
//! The adversary knows which values of linked attributes go together, and crosses out the others.
//!
//! A row of a bucket has the values k' of the linked attributes that stand on the row side or are known. A sensitive value
//! s of the bucket is possible for it if some row of the original has k' and s in each link. The remaining values of the
//! bucket become more probable. Of rows whose linked attributes stand in no part beside them, the original has the values;
//! a row that fits no value of its bucket stands in another one.
//!
//! # Citations
//! docs/spec/dependencies.md; [Wang and Liu 2011]

use std::collections::{BTreeMap, BTreeSet};

use ahash::{AHashMap, AHashSet};

use super::bucket::{BucketAttackFinding, BucketAttackReport, CodedBuckets, PairSteps, RuleLimit, cell};
use super::error::AttackError;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Codes};
use crate::publication::Protected;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{CellText, ExternalPart};

/// Attacks tables with rules, both given by index, by the dependencies of the submission.
///
/// A rule must protect one attribute. The attribute stands in one part of the table.
///
/// # Errors
/// [`AttackError`]; `NotExact` also without an original, and when the table was not made from it.
pub fn find_by_dependencies(
    submission: &Submission<'_>,
    asked: &[(usize, usize)],
    control: &Control,
) -> Result<BucketAttackReport, AttackError> {
    let original = submission.original.ok_or(AttackError::NotExact)?;
    let mut report = BucketAttackReport::default();
    let mut steps = PairSteps::default();
    for &(table, rule) in asked {
        let attack = LinkedBuckets::new(submission, original, table, rule, control)?;
        steps.add(&attack.buckets);
        steps.check()?;
        attack.attack(submission, original, &mut report, control)?;
    }
    report.keep_most_certain();
    Ok(report)
}

/// A table and a rule of an attack, both by their indexes, with what links tie to the sensitive attribute.
struct LinkedBuckets {
    table: usize,
    rule: usize,
    sensitive: Attr,
    buckets: CodedBuckets,
    /// The attributes that links tie to the sensitive one.
    linked: Vec<Attr>,
    /// For the known values of each row, the values of the linked attributes that occur with them.
    of_rows: AHashMap<Vec<u32>, BTreeSet<Vec<u32>>>,
    associations: Vec<LinkAssociations>,
}

/// The values of one link that occur together.
struct LinkAssociations {
    /// The places of the attributes of the link among all linked ones.
    places: Vec<usize>,
    together: AHashSet<(Vec<u32>, u32)>,
}

impl LinkedBuckets {
    fn new(
        submission: &Submission<'_>,
        original: &ExternalPart,
        table: usize,
        rule: usize,
        control: &Control,
    ) -> Result<Self, AttackError> {
        let asked = &submission.rules[rule];
        let Protected::Attribute(sensitive) = asked.protects else { return Err(AttackError::NotExact) };
        let given = &submission.tables[table];
        // what stands beside the sensitive attribute in its part is protected with it
        let behind = given.holder(sensitive).ok_or(AttackError::NotExact)?.attributes().minus(asked.known);
        let row_side = given.attributes().minus(behind);
        let buckets = CodedBuckets::new(given, row_side, sensitive, original, control)?;
        let ends = row_side.union(asked.known).intersection(original.attributes()).without(sensitive);
        let links = submission.dependencies.iter().map(|(from, to)| from.union(*to));
        let mut links: Vec<AttrSet> =
            links.filter(|link| link.contains(sensitive)).map(|link| link.intersection(ends)).collect();
        links.retain(|link| !link.is_empty());
        let linked: Vec<Attr> = links.iter().fold(AttrSet::EMPTY, |all, link| all.union(*link)).iter().collect();
        let (shown, columns) = (codes(original, &buckets.attributes)?, codes(original, &linked)?);
        let values = &original.column(sensitive).ok_or(AttackError::NotExact)?.codes;
        let place = |link: &AttrSet| (0..linked.len()).filter(|&at| link.contains(linked[at])).collect();
        let associations = links.iter().map(|link| LinkAssociations { places: place(link), together: AHashSet::new() });
        let mut associations: Vec<LinkAssociations> = associations.collect();
        let mut of_rows: AHashMap<Vec<u32>, BTreeSet<Vec<u32>>> = AHashMap::new();
        for row in 0..original.rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let tuple: Vec<u32> = columns.iter().map(|codes| codes.get(row)).collect();
            for link in &mut associations {
                let ends = link.places.iter().map(|&at| tuple[at]).collect();
                link.together.insert((ends, values.get(row)));
            }
            of_rows.entry(shown.iter().map(|codes| codes.get(row)).collect()).or_default().insert(tuple);
        }
        Ok(Self { table, rule, sensitive, buckets, linked, of_rows, associations })
    }

    /// Whether a sensitive value occurs with the linked values of a row in each link.
    fn fits(&self, tuple: &[u32], value: u32) -> bool {
        self.associations.iter().all(|link| {
            let ends = link.places.iter().map(|&at| tuple[at]).collect();
            link.together.contains(&(ends, value))
        })
    }

    fn attack(
        &self,
        submission: &Submission<'_>,
        original: &ExternalPart,
        report: &mut BucketAttackReport,
        control: &Control,
    ) -> Result<(), AttackError> {
        let column = original.column(self.sensitive).ok_or(AttackError::NotExact)?;
        let limit = RuleLimit::new(submission, &submission.rules[self.rule], self.sensitive, column);
        for (label, bucket) in &self.buckets.all {
            control.check()?;
            for row in &bucket.rows {
                for tuple in self.of_rows.get(row).ok_or(AttackError::NotExact)? {
                    let left = bucket.values.iter().filter(|(value, _)| self.fits(tuple, **value));
                    let left: BTreeMap<u32, u64> = left.map(|(value, count)| (*value, *count)).collect();
                    let all: u64 = left.values().sum();
                    let Some(&most) = left.values().max() else { continue };
                    report.look_at(ShareOfRows::lowest(most.into(), all.into()));
                    let exceeding = left
                        .iter()
                        .filter(|(value, count)| limit.is_exceeded(**value, u128::from(**count), u128::from(all)));
                    let Some((&above, &count)) = exceeding.max_by_key(|(_, count)| **count) else { continue };
                    report.add(BucketAttackFinding {
                        table: self.table,
                        rule: self.rule,
                        bucket: self.buckets.labels[*label as usize].clone(),
                        known: self.known(original, row, tuple),
                        sensitive: cell(column, above),
                        posterior: ShareOfRows::lowest(count.into(), all.into()),
                    });
                }
            }
        }
        Ok(())
    }

    /// The shown and the linked values of a row.
    fn known(&self, original: &ExternalPart, row: &[u32], tuple: &[u32]) -> Vec<(Attr, CellText)> {
        let shown = self.buckets.attributes.iter().zip(row);
        let hidden = self.linked.iter().zip(tuple).filter(|(attr, _)| !self.buckets.attributes.contains(attr));
        shown.chain(hidden).filter_map(|(attr, code)| Some((*attr, cell(original.column(*attr)?, *code)))).collect()
    }
}

/// The codes of columns of the original.
fn codes<'o>(original: &'o ExternalPart, attributes: &[Attr]) -> Result<Vec<&'o Codes>, AttackError> {
    let codes = attributes.iter().map(|attr| original.column(*attr).map(|column| &column.codes));
    codes.collect::<Option<_>>().ok_or(AttackError::NotExact)
}
