//! A taxonomy over the values of one column.

use std::collections::HashMap;
use std::sync::Arc;

use super::Taxonomy;
use crate::microdata::domain::Domain;
use crate::microdata::terrain::spelling;

/// A taxonomy of which every value of a column is a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundTaxonomy {
    tree: Arc<Taxonomy>,
    /// The leaf of each code.
    leaf_of: Arc<[u32]>,
}

/// Why a taxonomy does not fit a column. Counts, no values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{missing} values are no leaf, {twice} are several")]
pub struct Holes {
    /// How many distinct values of the column are no leaf.
    pub missing: u64,
    /// How many leaves are the same value as another one, such as 1.5 and 1.50 among decimals.
    pub twice: u64,
}

impl Taxonomy {
    /// The taxonomy over the values of a column. Leaves that do not occur do no harm.
    ///
    /// # Errors
    /// [`Holes`], where a value is no leaf.
    pub fn bind(self: &Arc<Self>, domain: &Domain) -> Result<BoundTaxonomy, Holes> {
        let spelled = |value: &[u8]| spelling(domain.kind(), value).into_owned();
        let mut leaves: HashMap<Option<Vec<u8>>, u32> = HashMap::with_capacity(self.leaves.len());
        let mut holes = Holes { missing: 0, twice: 0 };
        for &leaf in &self.leaves {
            let before = leaves.insert(self.label(leaf).map(|label| spelled(label.as_bytes())), leaf);
            holes.twice += u64::from(before.is_some());
        }
        let found: Vec<Option<u32>> = domain.iter().map(|value| leaves.get(&value.map(spelled)).copied()).collect();
        holes.missing = found.iter().filter(|leaf| leaf.is_none()).count() as u64;
        match found.into_iter().collect::<Option<Vec<u32>>>() {
            Some(leaf_of) if holes.twice == 0 => Ok(BoundTaxonomy { tree: Arc::clone(self), leaf_of: leaf_of.into() }),
            _ => Err(holes),
        }
    }
}

impl BoundTaxonomy {
    /// The tree.
    #[must_use]
    pub fn tree(&self) -> &Taxonomy {
        &self.tree
    }

    /// The leaf of a code.
    #[must_use]
    pub fn leaf(&self, code: u32) -> u32 {
        self.leaf_of[code as usize]
    }

    /// The place of each code in the order of leaves, for [`Axis::from_places`](crate::microdata::Axis::from_places).
    #[must_use]
    pub fn places(&self) -> Vec<u64> {
        self.leaf_of.iter().map(|leaf| u64::from(self.tree.leaf_range(*leaf).start)).collect()
    }

    /// The lowest node above all of `codes`; the root where there are none.
    #[must_use]
    pub fn lowest_above(&self, codes: &[u32]) -> u32 {
        let leaves = || codes.iter().map(|code| self.leaf(*code));
        match (leaves().min(), leaves().max()) {
            (Some(first), Some(last)) => self.tree.lowest_above(first, last),
            _ => 0,
        }
    }
}
