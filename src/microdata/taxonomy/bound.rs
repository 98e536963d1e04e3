//! A taxonomy over the values of one column.

use std::collections::HashMap;
use std::sync::Arc;

use super::spelling::spelling;
use super::tree::Taxonomy;
use crate::microdata::domain::Domain;

/// A taxonomy of which every value of a column is a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundTaxonomy {
    tree: Arc<Taxonomy>,
    /// The leaf of each code.
    leaf_of: Arc<[u32]>,
    /// The nodes that are above a value, or its leaf, parents before their children; the root first.
    branches: Arc<[TaxonomyNodeRef]>,
    /// The branch of each code's leaf.
    branch_of: Arc<[u32]>,
}

/// A node that is above a value of a column, or its leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaxonomyNodeRef {
    /// The branch above; its own place for the root.
    pub parent: u32,
    /// The height of the node in the whole tree.
    pub height: u32,
}

/// Why a taxonomy does not fit a column. Counts, no values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{missing} values are no leaf, {twice} are several")]
pub struct UncoveredValues {
    /// How many distinct values of the column are no leaf.
    pub missing: u64,
    /// How many leaves are the same value as another one, such as 1.5 and 1.50 among decimals.
    pub twice: u64,
}

impl Taxonomy {
    /// The taxonomy over the values of a column. Leaves that do not occur do no harm.
    ///
    /// # Errors
    /// [`UncoveredValues`], where a value is no leaf.
    pub fn bind(self: &Arc<Self>, domain: &Domain) -> Result<BoundTaxonomy, UncoveredValues> {
        let spelled = |value: &[u8]| spelling(domain.kind(), value).into_owned();
        let mut leaves: HashMap<Option<Vec<u8>>, u32> = HashMap::with_capacity(self.leaves.len());
        let mut holes = UncoveredValues { missing: 0, twice: 0 };
        for &leaf in &self.leaves {
            let before = leaves.insert(self.label(leaf).map(|label| spelled(label.as_bytes())), leaf);
            holes.twice += u64::from(before.is_some());
        }
        let found: Vec<Option<u32>> = domain.iter().map(|value| leaves.get(&value.map(spelled)).copied()).collect();
        holes.missing = found.iter().filter(|leaf| leaf.is_none()).count() as u64;
        match found.into_iter().collect::<Option<Vec<u32>>>() {
            Some(leaf_of) if holes.twice == 0 => Ok(BoundTaxonomy::new(Arc::clone(self), leaf_of)),
            _ => Err(holes),
        }
    }
}

impl BoundTaxonomy {
    fn new(tree: Arc<Taxonomy>, leaf_of: Vec<u32>) -> Self {
        let mut met = vec![false; tree.len()];
        met[0] = true;
        for &leaf in &leaf_of {
            let mut node = leaf;
            while !std::mem::replace(&mut met[node as usize], true) {
                node = tree.parent(node).unwrap_or(0);
            }
        }
        // parents have lower numbers than their children
        let (mut branches, mut at) = (Vec::new(), vec![0u32; tree.len()]);
        for node in (0..tree.len() as u32).filter(|node| met[*node as usize]) {
            at[node as usize] = branches.len() as u32;
            let parent = at[tree.parent(node).unwrap_or(0) as usize];
            branches.push(TaxonomyNodeRef { parent, height: tree.height(node) as u32 });
        }
        let branch_of: Vec<u32> = leaf_of.iter().map(|leaf| at[*leaf as usize]).collect();
        Self { tree, leaf_of: leaf_of.into(), branches: branches.into(), branch_of: branch_of.into() }
    }

    /// The nodes that are above a value, and the leaves of values, parents before their children; the root first.
    #[must_use]
    pub fn branches(&self) -> &[TaxonomyNodeRef] {
        &self.branches
    }

    /// The place of the leaf of a code among the branches.
    #[must_use]
    pub fn branch(&self, code: u32) -> u32 {
        self.branch_of[code as usize]
    }

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
