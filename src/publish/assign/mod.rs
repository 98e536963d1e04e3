//! Assignment of rows to buckets, and the only place where bucket labels are made.

mod deal;
mod labels;
mod largest_l;
mod multi;
mod outside;
mod tied;
mod value_lists;
mod values;

pub use labels::Labels;
pub use largest_l::{BucketAssignment, largest_l};
pub use multi::{AttributeDiversity, SensitiveGrid, several};
pub use tied::{AttributeGuarantees, assign_tied};
pub use values::{ComparedRows, SensitiveCodes};

use crate::control::{Cancelled, Control};
use crate::privacy;
use crate::publication::Guarantee;
use crate::random::RandomStream;

/// Assigns rows to buckets that each keep all of `guarantees`.
///
/// Buckets have pairwise distinct values if this suffices and there are enough values. Otherwise they resemble the whole table.
///
/// The caller has checked eligibility: the whole table keeps the guarantees.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn assign<'a>(
    values: impl Into<SensitiveCodes<'a>>,
    guarantees: &[Guarantee],
    stream: &mut RandomStream,
    control: &Control,
) -> Result<BucketAssignment, Cancelled> {
    let distinct = |l: Option<u64>, guarantee: &Guarantee| Some(l?.max(privacy::distinct_rows(*guarantee)?));
    let distinct = guarantees.iter().fold(Some(1), distinct);
    let values = values.into();
    let dealt = |stream: &mut RandomStream| {
        let fewest = guarantees.iter().map(|&guarantee| privacy::fewest_rows(guarantee)).max().unwrap_or(1);
        deal::deal(&values, guarantees, fewest, stream, control)
    };
    if !values.annotations.excludable().is_empty() {
        let assigned = match distinct {
            Some(l) => outside::insider_proof(&values, guarantees, l, stream, control)?,
            None => None,
        };
        return assigned.map_or_else(|| dealt(stream), Ok);
    }
    let most = values.counts.iter().copied().max().unwrap_or(0);
    match distinct.filter(|&l| u128::from(most) * u128::from(l) <= values.codes.len() as u128) {
        Some(l) => largest_l(values, l, stream, control),
        None => dealt(stream),
    }
}
