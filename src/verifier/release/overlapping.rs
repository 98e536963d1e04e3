//! Checks of columns that share attributes [docs/spec/overlapping-slicing.md#diversity].
//!
//! The join of a bucket has all combinations of one row of each column that agree on shared attributes. Among
//! combinations with equal unprotected attributes, no value may have a share above 1/l. Where several columns hold
//! the sensitive attribute, a second weighting must satisfy the same bound: the expected rows when the rows of a
//! column are matched at random with agreeing rows of the others. Both bounds hold for every choice of the columns
//! with the sensitive attribute, since an adversary may ignore others.
//!
//! Over all buckets together, the bound holds for the rows of the original, with each bucket weighted by its
//! combinations.

use ahash::{AHashMap, AHashSet};

use super::posteriors::{count, posteriors, prior};
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, Table};
use crate::publication::SlicedDiversity;
use crate::verifier::contract::checks::{CheckLog, CheckName, PosteriorSummary};
use crate::verifier::contract::claim::SlicingClaim;
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::read::interner::ValueInterner;
use crate::verifier::read::overlapping_columns::weights;
use crate::verifier::read::overlapping_columns::{ExactWeight, MAX_SENSITIVE_COLUMNS, OverlappingColumns, set};
use crate::verifier::read::part::ParsedPart;

/// Checks the claim of a table whose columns share attributes, from all its parts.
///
/// Gives the posteriors of the sensitive attribute, where all buckets could be read.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    claim: &SlicingClaim,
    read: &[ParsedPart],
    control: &Control,
    log: &mut CheckLog,
) -> Result<Option<PosteriorSummary>, VerifierError> {
    let mut numbers = ValueInterner::default();
    let is_complete = input.publication.tables.first().is_some_and(|table| table.parts.len() == read.len());
    let columns = OverlappingColumns::new(read, claim.sensitive, &mut numbers).filter(|_| is_complete);
    let Some(columns) = columns else {
        log.fail(CheckName::Guarantee, "a sliced table could not be read completely");
        return Ok(None);
    };
    if !columns.buckets.values().all(|bucket| columns.agree(bucket)) {
        log.fail(CheckName::Buckets, "columns do not agree on the attributes that they share");
    }
    let (with, without) = columns.sides();
    let ordered = |chosen: &Vec<usize>| columns.order(&[&without[..], chosen].concat());
    let trees: Option<Vec<_>> = columns.choices().iter().map(ordered).collect();
    let needed = match claim.diversity {
        SlicedDiversity::Bucket => with.len() > 1,
        SlicedDiversity::Mixture => false,
        SlicedDiversity::MixtureWeighted => true,
    };
    if with.len() > MAX_SENSITIVE_COLUMNS || (needed && trees.is_none()) {
        log.fail(CheckName::Guarantee, "what the columns say together is not known");
        return Ok(None);
    }
    let claimed = ClaimedColumns { columns: &columns, claim, control };
    let mut found = claimed.check_buckets(log)?;
    let mut sensitive = read.iter().flat_map(|part| &part.columns).filter(|column| column.attribute == claim.sensitive);
    if let (Some(found), Some(column)) = (&mut found, sensitive.next()) {
        found.prior = Some(prior(&count(column), &[]));
    }
    if let (Some(original), true) = (input.original, claim.diversity != SlicedDiversity::Bucket) {
        let trees = trees.filter(|_| needed);
        claimed.check_mixtures(original, &mut numbers, trees.as_deref(), log)?;
    }
    Ok(found)
}

/// Columns that share attributes, and the claim about them.
struct ClaimedColumns<'a> {
    columns: &'a OverlappingColumns,
    claim: &'a SlicingClaim,
    control: &'a Control,
}

impl ClaimedColumns<'_> {
    /// Checks each bucket by itself, and gives the posteriors.
    fn check_buckets(&self, log: &mut CheckLog) -> Result<Option<PosteriorSummary>, VerifierError> {
        let Self { columns, claim, control } = *self;
        let (mut tallies, mut broken, mut smallest) = (AHashMap::new(), 0_u64, u64::MAX);
        let choices = columns.choices();
        for bucket in columns.buckets.values() {
            smallest = smallest.min(bucket.rows);
            let mut kept = true;
            for chosen in &choices {
                // without a join tree, combinations alone are weighted
                let order = columns.order(chosen);
                let divided = order.is_some() && chosen.len() > 1;
                let order = order.unwrap_or_else(|| columns.in_given_order(chosen));
                let all = chosen.iter().fold(AttrSet::EMPTY, |all, of| all.union(set(&columns.columns[*of])));
                let Some((_, known)) = columns.known(bucket, &order, all) else {
                    log.fail(CheckName::Guarantee, "a bucket has too many combinations of rows to be looked at");
                    return Ok(None);
                };
                for (looked, weighed) in known.values().enumerate() {
                    if looked % 256 == 0 {
                        control.check()?;
                    }
                    for is_divided in if divided { &[false, true][..] } else { &[false] } {
                        let weights = weights(weighed, *is_divided);
                        *tallies.entry(columns.largest(&weights)).or_default() += 1;
                        kept &= columns.keeps(claim.l, &weights);
                    }
                }
            }
            broken += u64::from(!kept);
        }
        if broken > 0 && claim.diversity == SlicedDiversity::Bucket {
            let detail = format!("{broken} buckets do not keep l for an adversary who joins columns");
            log.fail(CheckName::Guarantee, detail);
        }
        Ok(posteriors(tallies, smallest, None))
    }

    /// Checks the claim for the rows of the original, over all buckets with a matching combination.
    fn check_mixtures(
        &self,
        original: &Table,
        numbers: &mut ValueInterner,
        trees: Option<&[Vec<(usize, AttrSet)>]>,
        log: &mut CheckLog,
    ) -> Result<(), VerifierError> {
        let Self { columns, claim, control } = *self;
        let (_, without) = columns.sides();
        let attrs: Vec<Attr> = claim.attributes().without(claim.sensitive).iter().collect();
        let domains: Vec<Vec<u32>> = attrs
            .iter()
            .map(|&attr| original.column(attr).domain.iter().map(|value| numbers.code(attr, value)).collect())
            .collect();
        let places = TuplePlaces::new(columns);
        let (mut seen, mut broken) = (AHashSet::new(), 0_u64);
        for row in 0..original.rows() {
            if row % 256 == 0 {
                control.check()?;
            }
            let codes =
                attrs.iter().zip(&domains).map(|(&attr, domain)| domain[original.column(attr).codes.get(row) as usize]);
            let identity: Vec<u32> = codes.collect();
            let known: AHashMap<Attr, u32> = attrs.iter().copied().zip(identity.iter().copied()).collect();
            if !seen.insert(identity) {
                continue;
            }
            let mut kept = true;
            for (number, chosen) in columns.choices().into_iter().enumerate() {
                let used = [&without[..], &chosen].concat();
                let matching = used.iter().map(|&column| places.labels(columns, column, &known));
                let fewest = matching.min_by_key(|labels| labels.len()).unwrap_or_default();
                // combinations as shares of their bucket, and expected rows
                for tree in std::iter::once(None).chain(trees.map(|trees| Some(&trees[number][..]))) {
                    let mut weights: Vec<ExactWeight> = Vec::new();
                    for bucket in fewest.iter().filter_map(|label| columns.buckets.get(label)) {
                        columns.weigh(&known, bucket, &used, tree, &mut weights);
                    }
                    kept &= columns.keeps(claim.l, &weights);
                }
            }
            broken += u64::from(!kept);
        }
        if broken > 0 {
            let detail = format!("{broken} kinds of rows do not keep l over the buckets that match them");
            log.fail(CheckName::Guarantee, detail);
        }
        Ok(())
    }
}

/// The labels of the buckets of each tuple, by column; tuples are without the sensitive attribute.
struct TuplePlaces(Vec<AHashMap<Vec<u32>, Vec<u32>>>);

impl TuplePlaces {
    fn new(columns: &OverlappingColumns) -> Self {
        let mut places: Vec<AHashMap<Vec<u32>, Vec<u32>>> = columns.columns.iter().map(|_| AHashMap::new()).collect();
        for (&label, bucket) in &columns.buckets {
            for ((column, tuples), places) in columns.columns.iter().zip(&bucket.columns).zip(&mut places) {
                let width = column.len() - usize::from(column.contains(&columns.sensitive));
                for tuple in tuples.keys() {
                    let labels = places.entry(tuple[..width].to_vec()).or_default();
                    if labels.last() != Some(&label) {
                        labels.push(label);
                    }
                }
            }
        }
        Self(places)
    }

    /// The buckets in which a column has the known values.
    fn labels(&self, columns: &OverlappingColumns, column: usize, known: &AHashMap<Attr, u32>) -> &[u32] {
        let tuple: Vec<u32> = columns.columns[column].iter().filter_map(|attr| known.get(attr).copied()).collect();
        self.0[column].get(&tuple).map_or(&[], Vec::as_slice)
    }
}
