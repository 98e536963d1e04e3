//! Guarantees that compare buckets with their stratum: measured against the rows that agree on the constant attributes.
//!
//! # Citations
//! docs/spec/dependencies.md#strata

use std::collections::BTreeMap;

use super::closed::StrataOfBuckets;
use crate::control::Control;
use crate::microdata::AttrSet;
use crate::publication::{Guarantee, SubmittedRule, TableGuard};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim::protections;
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::definition::guarantee::{BucketShares, at_least};
use crate::verifier::definition::measure::BucketMeasure;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::read::bucket_classes::BucketClasses;
use crate::verifier::read::row_keys::BucketOffsets;

/// Whether a guarantee compares buckets with their stratum.
pub(in crate::verifier) const fn is_relative(guarantee: &Guarantee) -> bool {
    !guarantee.reference().is_table()
}

/// The buckets of a guard, and what is asked of them.
pub(in crate::verifier) struct RelativeBuckets<'a> {
    pub(in crate::verifier) guard: &'a TableGuard,
    pub(in crate::verifier) classes: &'a BucketClasses<'a>,
    pub(in crate::verifier) buckets: &'a BucketOffsets,
    pub(in crate::verifier) declared: &'a DeclaredValues,
    /// The measured rules whose guarantees compare with strata.
    pub(in crate::verifier) measured: &'a [(usize, Guarantee)],
}

/// The number of buckets that break each relative guarantee of a guard, and the measures of the worst bucket.
pub(in crate::verifier) struct RelativeFigures {
    pub(in crate::verifier) broken: Vec<(Guarantee, u64)>,
    pub(in crate::verifier) measures: Vec<(usize, BucketMeasure)>,
}

impl RelativeBuckets<'_> {
    /// Compares each bucket with its stratum; `None` where the parts read so far do not show the strata.
    pub(in crate::verifier) fn compare(
        &self,
        strata: &StrataOfBuckets,
        control: &Control,
    ) -> Result<Option<RelativeFigures>, VerifierError> {
        let Self { guard, classes, buckets, declared, measured } = *self;
        let whole = classes.protected.counts();
        let mut of_stratum: BTreeMap<Vec<u32>, Vec<Vec<(u32, u64)>>> = BTreeMap::new();
        let occurring = (1..).zip(buckets.ranges()).filter(|(_, range)| !range.is_empty());
        let mut labels = occurring.map(|(label, _)| label);
        let mut is_shown = true;
        classes.each(|class| {
            let counts: Vec<(u32, u64)> = class.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
            match labels.next().and_then(|label| strata.of_bucket(guard.constant, label)) {
                Some(stratum) => of_stratum.entry(stratum).or_default().push(counts),
                None => is_shown = false,
            }
        });
        if !is_shown {
            return Ok(None);
        }
        let mut broken: Vec<(Guarantee, u64)> =
            guard.guarantees.iter().filter(|of| is_relative(of)).map(|of| (*of, 0)).collect();
        let mut worst: Vec<Option<BucketMeasure>> = vec![None; measured.len()];
        let mut is_first = true;
        for classes in of_stratum.into_values() {
            control.check()?;
            let mut overall = vec![0; whole.len()];
            classes.iter().flatten().for_each(|&(code, count)| overall[code as usize] += count);
            for counts in &classes {
                let shares = BucketShares::new(counts, &overall, declared);
                for (guarantee, number) in &mut broken {
                    *number += u64::from(!shares.satisfies(*guarantee));
                }
                for (worst, (_, guarantee)) in worst.iter_mut().zip(measured) {
                    let here = BucketMeasure::new(*guarantee, &shares);
                    *worst = if is_first { here } else { BucketMeasure::worse(*worst, here) };
                }
                is_first = false;
            }
        }
        let measures = measured.iter().zip(worst).filter_map(|((rule, _), worst)| Some((*rule, worst?))).collect();
        Ok(Some(RelativeFigures { broken, measures }))
    }
}

/// Checks that the known side of every rule says with which stratum its guarantee compares.
///
/// Otherwise the rows that fit what is known have several references, and a mixture of their bounds says nothing.
pub(in crate::verifier) fn check(input: &VerifierInput<'_>, log: &mut CheckLog) {
    let listed = input.publication.rules.iter().map(|rule| SubmittedRule {
        pointer: rule.pointer.clone().unwrap_or_default(),
        known: rule.known,
        protects: rule.protects,
        guarantee: rule.guarantee,
    });
    for rule in input.submitted.iter().cloned().chain(listed).filter(|rule| is_relative(&rule.guarantee)) {
        let determined = determined(rule.known, input.dependencies);
        let sides: Vec<AttrSet> = protections(input, rule.protects).map(|of| of.attributes()).collect();
        let guards = input.publication.tables.iter().flat_map(|table| table.protection.guards());
        let mut bounding = guards
            .filter(|guard| sides.contains(&guard.protects.attributes()))
            .filter(|guard| guard.guarantees.iter().any(|held| at_least(*held, rule.guarantee)))
            .peekable();
        if bounding.peek().is_some() && !bounding.any(|guard| guard.constant.is_subset(determined)) {
            let known = input.list(rule.known);
            let detail = format!("rule {}: {known} does not determine the strata of its reference", rule.pointer);
            log.fail(CheckName::Guards, detail);
        }
    }
}

/// The attributes that `known` determines, with itself.
fn determined(known: AttrSet, dependencies: &[(AttrSet, AttrSet)]) -> AttrSet {
    let mut all = known;
    loop {
        let more = dependencies.iter().filter(|(from, _)| from.is_subset(all));
        let wider = more.fold(all, |all, (_, to)| all.union(*to));
        if wider == all {
            return all;
        }
        all = wider;
    }
}
