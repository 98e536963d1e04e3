use super::co_occurrence::CoOccurrence;
use super::distributions::RemainingDistribution;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, Protected};
use crate::verifier::attack::error::AttackError;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::ExternalTable;

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
    let mut steps = 0;
    let mut found = Vec::new();
    for (rule, asked) in submission.rules.iter().enumerate() {
        let Protected::Attribute(sensitive) = asked.protects else { continue };
        let Some(true_values) = original.column(sensitive) else { continue };
        let holds = |attr: Attr| move |table: &&ExternalTable| exact(table).contains(attr);
        let shows = |attr: Attr| {
            // the table that locates the target by most known attributes
            let tables = submission.tables.iter().enumerate().filter(move |(_, table)| holds(attr)(table));
            let located = move |table: &ExternalTable| exact(table).intersection(asked.known).without(attr).len();
            tables.map(|(at, table)| (located(table), at)).max_by_key(|&(known, at)| (known, usize::MAX - at))
        };
        let Some((_, table)) = shows(sensitive) else { continue };
        let of_sensitive =
            RemainingDistribution::new(&submission.tables[table], sensitive, asked.known, original, control)?;
        let published = submission.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(exact(table)));
        for attribute in published.minus(asked.known).without(sensitive).iter() {
            let (Some(column), Some((known, table))) = (original.column(attribute), shows(attribute)) else { continue };
            if known == 0 {
                // without known attributes the table does not locate the target
                continue;
            }
            let of_attribute =
                RemainingDistribution::new(&submission.tables[table], attribute, asked.known, original, control)?;
            let together = CoOccurrence::new(true_values, column, &hashes, control)?;
            let (mut sum, mut alone) = (0.0, 0.0);
            for (looked, &target) in targets.iter().enumerate() {
                if looked % 64 == 0 {
                    control.check()?;
                }
                let sensitive = of_sensitive.of_row(target);
                let proxy = of_attribute.of_row(target);
                let (given, work) = together.weigh(&sensitive, &proxy, true_values.codes.get(target));
                sum += given;
                alone += sensitive.iter().map(|&(_, share)| share).fold(0.0, f64::max);
                steps += work;
                if steps > MAX_WEIGHED_PAIRS {
                    return Err(AttackError::TooMany {
                        what: "pairs of values",
                        limit: MAX_WEIGHED_PAIRS,
                        found: steps,
                    });
                }
            }
            let count = targets.len() as f64;
            let allowed = match asked.guarantee {
                Guarantee::LDiversity { l } => count / l.max(1) as f64,
                Guarantee::AlphaK { alpha, .. } => count * alpha.to_f64(),
                // guarantees without a bound on each value: compare with the tables alone
                _ => alone,
            };
            let breach = sum > MIN_DEVIATIONS.mul_add(allowed.sqrt(), allowed);
            found.push(ProxyFinding { rule, attribute, table, sum, targets: targets.len() as u64, breach });
        }
    }
    Ok(found)
}

/// The attributes whose cells are exact values.
fn exact(table: &ExternalTable) -> AttrSet {
    table.parts.iter().fold(AttrSet::EMPTY, |all, part| all.union(part.attributes().minus(part.opaque())))
}
