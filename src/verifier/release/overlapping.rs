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

use ahash::AHashMap;

use super::mixtures::MatchedColumns;
use super::posteriors::{count, posteriors, prior};
use crate::control::Control;
use crate::microdata::AttrSet;
use crate::publication::SlicedDiversity;
use crate::verifier::contract::checks::{CheckLog, CheckName, PosteriorSummary};
use crate::verifier::contract::claim::SlicingClaim;
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::read::columns_by_bucket::{ColumnsByBucket, MAX_SENSITIVE_COLUMNS, set, weights};
use crate::verifier::read::interner::ValueInterner;
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
    let columns = ColumnsByBucket::of_texts(read, claim.sensitive, &mut numbers).filter(|_| is_complete);
    let Some(columns) = columns else {
        log.fail(CheckName::Guarantee, "a sliced table could not be read completely");
        return Ok(None);
    };
    if !(0..columns.labels.len()).all(|bucket| columns.agree(bucket)) {
        log.fail(CheckName::Buckets, "columns do not agree on the attributes that they share");
    }
    let (with, _) = columns.sides();
    let trees = columns.trees();
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
        let matched = MatchedColumns::new(&columns, trees.as_deref(), control)?;
        let values = |attr| numbers.codes(attr, original.column(attr));
        matched.check(claim.l, original.rows(), values, control, log)?;
    }
    Ok(found)
}

/// Columns that share attributes, and the claim about them.
struct ClaimedColumns<'a> {
    columns: &'a ColumnsByBucket,
    claim: &'a SlicingClaim,
    control: &'a Control,
}

impl ClaimedColumns<'_> {
    /// Checks each bucket by itself, and gives the posteriors.
    fn check_buckets(&self, log: &mut CheckLog) -> Result<Option<PosteriorSummary>, VerifierError> {
        let Self { columns, claim, control } = *self;
        let (mut tallies, mut broken, mut smallest) = (AHashMap::new(), 0_u64, u64::MAX);
        let choices = columns.choices();
        for bucket in 0..columns.labels.len() {
            smallest = smallest.min(columns.size(bucket));
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
}
