//! Values that labels stand for, and compatibility of labels.

use std::cmp::Ordering;
use std::sync::Arc;

use ahash::AHashMap;

use crate::microdata::{AttributeType, Taxonomy};

/// The values that a label may stand for.
pub(in crate::verifier) enum LabelMeaning {
    /// The path of a taxonomy node to the root.
    Path(Vec<u32>),
    /// The values of a range, which may lack its start, and the missing value if `missing`.
    Range { missing: bool, values: Option<(Option<Vec<u8>>, Vec<u8>)> },
    /// The value itself.
    Text(Option<Vec<u8>>),
    /// The values of any of these.
    Among(Vec<LabelMeaning>),
    /// Any value.
    Anything,
}

/// A taxonomy with its nodes by label.
pub(in crate::verifier) struct LabelTree {
    pub(in crate::verifier) tree: Arc<Taxonomy>,
    pub(in crate::verifier) by_label: AHashMap<Option<Vec<u8>>, u32>,
}

impl LabelTree {
    pub(in crate::verifier) fn from_taxonomy(tree: &Arc<Taxonomy>) -> Self {
        let label = |node: u32| tree.label(node).map(|label| label.as_bytes().to_vec());
        Self { by_label: (0..tree.len() as u32).map(|node| (label(node), node)).collect(), tree: Arc::clone(tree) }
    }

    /// The path from the node of a label to the root.
    ///
    /// A number can have several spellings.
    pub(in crate::verifier) fn path(&self, kind: AttributeType, label: Option<&[u8]>) -> Option<Vec<u32>> {
        let of_text = self.by_label.get(&label.map(<[u8]>::to_vec)).copied();
        let node = of_text.or_else(|| {
            let number = label.filter(|label| kind.has_spellings() && kind.admits(label))?;
            let of = |node: &u32| self.tree.label(*node).map(str::as_bytes).filter(|label| kind.admits(label));
            (0..self.tree.len() as u32)
                .find(|node| of(node).is_some_and(|of| kind.compare_by_value(of, number).is_eq()))
        });
        Some(std::iter::successors(Some(node?), |node| self.tree.parent(*node)).collect())
    }
}

/// Whether two values are equal.
pub(in crate::verifier) fn same(kind: AttributeType, a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if kind.is_number() && kind.admits(a) && kind.admits(b) => {
            kind.compare_by_value(a, b) == Ordering::Equal
        }
        _ => a == b,
    }
}

/// Whether two labels are compatible: one value may stand behind both.
pub(in crate::verifier) fn is_compatible(a: &LabelMeaning, b: &LabelMeaning, kind: AttributeType) -> bool {
    match (a, b) {
        (LabelMeaning::Anything, _) | (_, LabelMeaning::Anything) => true,
        (LabelMeaning::Among(each), other) | (other, LabelMeaning::Among(each)) => {
            each.iter().any(|one| is_compatible(one, other, kind))
        }
        // one of two nodes is an ancestor of the other, or they are equal
        (LabelMeaning::Path(a), LabelMeaning::Path(b)) => {
            a.first().is_some_and(|node| b.contains(node)) || b.first().is_some_and(|node| a.contains(node))
        }
        (LabelMeaning::Text(a), LabelMeaning::Text(b)) => same(kind, a.as_deref(), b.as_deref()),
        (LabelMeaning::Range { missing, values }, LabelMeaning::Text(text))
        | (LabelMeaning::Text(text), LabelMeaning::Range { missing, values }) => match (text, values) {
            (None, _) => *missing,
            (Some(_), None) => false,
            (Some(text), Some((from, to))) => {
                from.as_ref().is_none_or(|from| kind.compare_by_value(from, text).is_le())
                    && kind.compare_by_value(text, to).is_le()
            }
        },
        (LabelMeaning::Range { missing: a, values: of_a }, LabelMeaning::Range { missing: b, values: of_b }) => {
            let overlap = match (of_a, of_b) {
                (Some((from_a, to_a)), Some((from_b, to_b))) => {
                    let before = |from: &Option<Vec<u8>>, to: &[u8]| {
                        from.as_ref().is_none_or(|from| kind.compare_by_value(from, to).is_le())
                    };
                    before(from_a, to_b) && before(from_b, to_a)
                }
                _ => false,
            };
            *a && *b || overlap
        }
        (LabelMeaning::Path(_), _) | (_, LabelMeaning::Path(_)) => false,
    }
}
