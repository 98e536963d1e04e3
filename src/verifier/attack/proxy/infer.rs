use std::cell::Cell;

use super::co_occurrence::CoOccurrence;
use super::distributions::RemainingDistribution;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Codes};
use crate::publication::{Guarantee, Protected, SubmittedRule};
use crate::verifier::attack::error::AttackError;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{ExternalPart, ExternalTable};

/// Maximal number of examined targets.
const MAX_TARGETS: usize = 20_000;

/// Maximal number of weighed pairs of values.
const MAX_WEIGHED_PAIRS: u64 = 1 << 28;

/// Standard deviations above the bound from which a breach is no coincidence.
const MIN_DEVIATIONS: f64 = 4.0;

/// Result of the attack for one rule and one proxy attribute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProxyFinding {
    /// The index of the rule.
    pub rule: usize,
    /// The proxy attribute.
    pub attribute: Attr,
    /// The index of the table that publishes the proxy.
    pub table: usize,
    /// Sum of the probabilities of the true values, over all targets.
    pub sum: f64,
    /// Number of targets.
    pub targets: u64,
    /// Whether the sum exceeds the bound of the rule.
    pub breach: bool,
}

/// Attacks every rule that protects one attribute, with every other published attribute as the proxy.
///
/// `hash` is secret; its lowest bit assigns each row of the original to a half.
///
/// # Errors
/// [`AttackError`]; `NotExact` also without an original.
pub fn infer_by_proxy(
    submission: &Submission<'_>,
    hash: &dyn Fn(usize) -> u64,
    control: &Control,
) -> Result<Vec<ProxyFinding>, AttackError> {
    let Some(original) = submission.original else { return Err(AttackError::NotExact) };
    let attack = ProxyAttack::new(submission, original, hash, control)?;
    let mut found = Vec::new();
    for (number, rule) in submission.rules.iter().enumerate() {
        if let Protected::Attribute(sensitive) = rule.protects {
            found.extend(attack.findings(number, rule, sensitive)?);
        }
    }
    Ok(found)
}

/// The original in two halves, and the work so far.
struct ProxyAttack<'a> {
    submission: &'a Submission<'a>,
    original: &'a ExternalPart,
    hashes: Vec<u64>,
    /// The examined rows of the half of the targets, rising.
    targets: Vec<usize>,
    weighed_pairs: Cell<u64>,
    control: &'a Control,
}

/// The table that locates a target by most known attributes.
struct LocatingTable {
    table: usize,
    /// Number of known attributes.
    known: usize,
}

/// Sums of probabilities over all targets.
#[derive(Default)]
struct TargetSums {
    /// Of the true values, given the proxy.
    true_values: f64,
    /// Of the likeliest values, from the tables alone.
    likeliest: f64,
}

impl<'a> ProxyAttack<'a> {
    fn new(
        submission: &'a Submission<'a>,
        original: &'a ExternalPart,
        hash: &dyn Fn(usize) -> u64,
        control: &'a Control,
    ) -> Result<Self, AttackError> {
        let mut hashes: Vec<u64> = Vec::with_capacity(original.rows);
        for row in 0..original.rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            hashes.push(hash(row));
        }
        let mut targets: Vec<usize> = (0..original.rows).filter(|&row| hashes[row] & 1 == 1).collect();
        // a sample that does not depend on the order of the rows
        targets.sort_unstable_by_key(|&row| (hashes[row], row));
        targets.truncate(MAX_TARGETS);
        targets.sort_unstable();
        Ok(Self { submission, original, hashes, targets, weighed_pairs: Cell::new(0), control })
    }

    /// Attacks one rule, with every other published attribute as the proxy.
    fn findings(&self, number: usize, rule: &SubmittedRule, sensitive: Attr) -> Result<Vec<ProxyFinding>, AttackError> {
        let mut found = Vec::new();
        let Some(true_values) = self.original.column(sensitive) else { return Ok(found) };
        let Some(LocatingTable { table, .. }) = self.locating(rule.known, sensitive) else { return Ok(found) };
        let of_sensitive = self.remaining(table, sensitive, rule.known)?;
        let published = self.submission.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(exact(table)));
        for attribute in published.minus(rule.known).without(sensitive).iter() {
            let Some(column) = self.original.column(attribute) else { continue };
            // without known attributes the table does not locate the target
            let located = self.locating(rule.known, attribute).filter(|located| located.known > 0);
            let Some(LocatingTable { table, .. }) = located else { continue };
            let of_attribute = self.remaining(table, attribute, rule.known)?;
            let together = CoOccurrence::new(true_values, column, &self.hashes, self.control)?;
            let sums = self.sums(&of_sensitive, &of_attribute, &together, &true_values.codes)?;
            let count = self.targets.len() as f64;
            let allowed = match rule.guarantee {
                Guarantee::LDiversity { l } => count / l.max(1) as f64,
                Guarantee::AlphaK { alpha, .. } => count * alpha.to_f64(),
                // guarantees without a bound on each value: compare with the tables alone
                _ => sums.likeliest,
            };
            let sum = sums.true_values;
            let breach = sum > MIN_DEVIATIONS.mul_add(allowed.sqrt(), allowed);
            let targets = self.targets.len() as u64;
            found.push(ProxyFinding { rule: number, attribute, table, sum, targets, breach });
        }
        Ok(found)
    }

    /// The table that holds an attribute and locates the target by most known attributes.
    fn locating(&self, known: AttrSet, attribute: Attr) -> Option<LocatingTable> {
        let tables = self.submission.tables.iter().enumerate();
        let holders = tables.filter(|(_, table)| exact(table).contains(attribute));
        let located = holders.map(|(at, table)| LocatingTable {
            table: at,
            known: exact(table).intersection(known).without(attribute).len(),
        });
        located.max_by_key(|located| (located.known, usize::MAX - located.table))
    }

    fn remaining(
        &self,
        table: usize,
        attribute: Attr,
        known: AttrSet,
    ) -> Result<RemainingDistribution<'a>, AttackError> {
        RemainingDistribution::new(&self.submission.tables[table], attribute, known, self.original, self.control)
    }

    /// Adds the probabilities of all targets.
    fn sums(
        &self,
        of_sensitive: &RemainingDistribution<'_>,
        of_attribute: &RemainingDistribution<'_>,
        together: &CoOccurrence,
        true_values: &Codes,
    ) -> Result<TargetSums, AttackError> {
        let mut sums = TargetSums::default();
        for (looked, &target) in self.targets.iter().enumerate() {
            if looked % 64 == 0 {
                self.control.check()?;
            }
            let sensitive = of_sensitive.of_row(target);
            let proxy = of_attribute.of_row(target);
            let (given, work) = together.weigh(&sensitive, &proxy, true_values.get(target));
            sums.true_values += given;
            sums.likeliest += sensitive.iter().map(|&(_, share)| share).fold(0.0, f64::max);
            let found = self.weighed_pairs.get() + work;
            self.weighed_pairs.set(found);
            if found > MAX_WEIGHED_PAIRS {
                return Err(AttackError::TooMany { what: "pairs of values", limit: MAX_WEIGHED_PAIRS, found });
            }
        }
        Ok(sums)
    }
}

/// The attributes whose cells are exact values.
fn exact(table: &ExternalTable) -> AttrSet {
    table.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(part.attributes().minus(part.opaque())))
}
