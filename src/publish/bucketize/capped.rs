//! Buckets of two sizes for guarantees that bound single values: small buckets where all values are rare.

use super::multi::fill_two;
use super::place::place;
use super::share::{ValueThreshold, kinds};
use super::sizes::{MAX_SEARCH_STEPS, Pruning, two_sizes, work};
use crate::control::{Cancelled, Control};
use crate::microdata::ExactFraction;
use crate::publication::Guarantee;
use crate::publish::assign::{BucketAssignment, SensitiveCodes};
use crate::random::RandomStream;

/// Largest sizes that are searched, one after the other.
const SEARCHED_SIZES: [u64; 3] = [50, 200, 800];

/// Draws buckets of two sizes that keep `guarantees`.
///
/// `None` if these bound more than single values, or if a bounded search finds no buckets.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(in crate::publish) fn capped(
    values: &SensitiveCodes<'_>,
    guarantees: &[Guarantee],
    stream: &mut RandomStream,
    control: &Control,
) -> Result<Option<BucketAssignment>, Cancelled> {
    let Some((shares, fewest)) = bounds(values, guarantees) else { return Ok(None) };
    let counts = values.counts();
    let kinds = kinds(counts, &shares);
    let smallest = kinds.iter().map(|kind| kind.share.smallest_bucket()).min().unwrap_or(1).max(fewest);
    let searched = |largest: &u64| *largest >= smallest && work(kinds.len(), smallest, *largest) <= MAX_SEARCH_STEPS;
    for largest in SEARCHED_SIZES.into_iter().filter(searched) {
        if let Some(two) = two_sizes(&kinds, smallest, largest, Pruning::Full, control)? {
            let filled = fill_two(counts, &shares, two);
            return place(values.codes(), counts.len(), &filled, stream, control).map(Some);
        }
    }
    Ok(None)
}

/// Threshold of each code, and the fewest rows of a bucket; `None` if the guarantees bound more than single values.
fn bounds(values: &SensitiveCodes<'_>, guarantees: &[Guarantee]) -> Option<(Vec<ValueThreshold>, u64)> {
    let by_value = |guarantee: &Guarantee| matches!(guarantee, Guarantee::Thresholds { .. });
    if !guarantees.iter().any(by_value) || !values.annotations().excludable().is_empty() {
        return None;
    }
    let mut shares = vec![ValueThreshold::ALL; values.counts().len()];
    let mut fewest = 1;
    for guarantee in guarantees {
        match *guarantee {
            Guarantee::LDiversity { l } => {
                let part = ValueThreshold::from_fraction(ExactFraction { numerator: 1, denominator: l.into() });
                lower(&mut shares, |_| Some(part))?;
            }
            Guarantee::AlphaK { alpha, k } => {
                fewest = fewest.max(k);
                lower(&mut shares, |_| Some(alpha.into()))?;
            }
            Guarantee::KAnonymity { k } => fewest = fewest.max(k),
            Guarantee::Thresholds { digest, .. } => {
                let limits = values.annotations().limits(digest.bytes())?;
                lower(&mut shares, |code| limits.get(code).copied().map(ValueThreshold::from_fraction))?;
            }
            _ => return None,
        }
    }
    Some((shares, fewest))
}

/// Lowers each threshold to another one; `None` if they are too large to compare.
fn lower(shares: &mut [ValueThreshold], other: impl Fn(usize) -> Option<ValueThreshold>) -> Option<()> {
    for (code, share) in shares.iter_mut().enumerate() {
        let other = other(code)?;
        if other.is_less(*share)? {
            *share = other;
        }
    }
    Some(())
}
