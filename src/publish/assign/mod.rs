//! Row to bucket: the assignments that methods share, and the one place where bucket labels are made.

mod deal;
mod labels;
mod largest_l;
mod outside;

pub use labels::Labels;
pub use largest_l::{Assignment, largest_l};

use crate::control::{Cancelled, Control};
use crate::microdata::{Column, Terrain};
use crate::privacy;
use crate::publication::Guarantee;
use crate::random::Stream;

/// Assigns rows to buckets that each keep all of `guarantees`: buckets of pairwise distinct values where these suffice and the
/// column allows them, else buckets that resemble the whole. `terrain` is what is stated of the column's values.
///
/// The caller has checked eligibility: the whole column keeps the guarantees.
///
/// # Errors
/// [`Cancelled`] when told to stop.
pub fn assign(
    column: &Column,
    terrain: &Terrain,
    guarantees: &[Guarantee],
    stream: &mut Stream,
    control: &Control,
) -> Result<Assignment, Cancelled> {
    let distinct = |l: Option<u64>, guarantee: &Guarantee| Some(l?.max(privacy::distinct_rows(*guarantee)?));
    let distinct = guarantees.iter().fold(Some(1), distinct);
    let dealt = |stream: &mut Stream| {
        let fewest = guarantees.iter().map(|&guarantee| privacy::fewest_rows(guarantee)).max().unwrap_or(1);
        deal::deal(column, terrain, guarantees, fewest, stream, control)
    };
    if !terrain.uninformative().is_empty() {
        let assigned = match distinct {
            Some(l) => outside::outside(column, terrain, guarantees, l, stream, control)?,
            None => None,
        };
        return assigned.map_or_else(|| dealt(stream), Ok);
    }
    let most = column.counts().into_iter().max().unwrap_or(0);
    match distinct.filter(|&l| u128::from(most) * u128::from(l) <= column.codes.len() as u128) {
        Some(l) => largest_l(column, l, stream, control),
        None => dealt(stream),
    }
}
