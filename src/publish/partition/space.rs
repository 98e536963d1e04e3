//! The space of a partition: one dimension per attribute.

use std::sync::Arc;

use super::annotations::TableAnnotations;
use super::weights::RowWeights;
use crate::microdata::{AttrSet, Axis, Codes, Table};
use crate::privacy::links::{Strata, StratumRows};
use crate::with_codes;

/// Dimensions along which rows are split, in the order of attributes.
pub struct SplitSpace {
    pub(super) dimensions: Vec<Dimension>,
    /// The rows that the first buckets hold; `None` for one bucket of all rows.
    pub(super) strata: Option<StratumRows>,
    pub(super) weights: RowWeights,
}

/// The smallest and the largest ordinal of some rows.
#[derive(Clone, Copy)]
pub(super) struct OrdinalRange {
    pub(super) low: u32,
    pub(super) high: u32,
}

/// One dimension: an attribute along its axis.
pub(super) struct Dimension {
    pub(super) axis: Axis,
    /// Ordinal of each row on the axis.
    pub(super) ordinals: Codes,
    /// The smallest and the largest ordinal of the table, and the width between them.
    pub(super) range: OrdinalRange,
    pub(super) span: u64,
}

impl SplitSpace {
    /// The space of `attributes`, one dimension each.
    #[must_use]
    pub fn new(table: &Table, attributes: AttrSet, annotations: &dyn TableAnnotations) -> Self {
        let dimension = |attr| {
            let column = table.column(attr);
            let axis = annotations.axis(attr).unwrap_or_else(|| Axis::from_domain(&column.domain));
            let of_code: Vec<u32> = (0..column.domain.len() as u32).map(|code| axis.ordinal(code)).collect();
            let (low, high) = range(&column.codes, &of_code);
            let most = of_code.iter().copied().max().map_or(0, |most| most as usize + 1);
            let ordinals = Codes::collect(most, column.codes.iter().map(|code| of_code[code as usize]));
            let span = if low < high { axis.width(low, high) } else { 0 };
            Dimension { axis, ordinals, range: OrdinalRange { low, high }, span }
        };
        Self { dimensions: attributes.iter().map(dimension).collect(), strata: None, weights: RowWeights::default() }
    }

    /// The same space, of which the first buckets are strata.
    #[must_use]
    pub fn within(self, strata: Option<&Arc<Strata>>) -> Self {
        Self { strata: strata.map(|strata| strata.split()), ..self }
    }

    /// The same space of rows that stand for several. Splits are strict then: what a row stands for stays together.
    #[must_use]
    pub fn weighted(self, weights: RowWeights) -> Self {
        Self { weights, ..self }
    }

    /// Renumbers rows: row `order[row]` becomes `row`.
    pub(super) fn reorder(&mut self, order: &[u32]) {
        self.weights = self.weights.gather(order);
        self.dimensions.iter_mut().for_each(|dimension| dimension.ordinals = dimension.ordinals.gather(order));
    }
}

/// Smallest and largest ordinal of the rows.
fn range(codes: &Codes, of_code: &[u32]) -> (u32, u32) {
    let mut occurs = vec![false; of_code.len()];
    with_codes!(codes, codes => codes.iter().for_each(|&code| occurs[code as usize] = true));
    let occurring = || of_code.iter().zip(&occurs).filter(|(_, occurs)| **occurs).map(|(ordinal, _)| *ordinal);
    (occurring().min().unwrap_or(0), occurring().max().unwrap_or(0))
}
