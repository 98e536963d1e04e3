//! Labels of the rows of a part while they are read.

use std::sync::Arc;

/// Labels of rows. Parts of a table have the same labels in canonical order, so that one list is kept of them.
pub(super) enum RowLabels {
    /// The labels of the first rows of another part.
    Shared {
        /// All labels of the other part.
        with: Arc<Vec<u32>>,
        rows: usize,
        /// Rows that the part claims.
        expected: usize,
    },
    /// Labels that no other part has.
    Own(Vec<u32>),
}

impl RowLabels {
    /// No labels yet, of a part of about `expected` rows after a part with the labels `before`.
    pub(super) fn new(before: Option<&Arc<Vec<u32>>>, expected: usize) -> Self {
        match before {
            Some(with) => Self::Shared { with: Arc::clone(with), rows: 0, expected },
            None => Self::Own(Vec::with_capacity(expected)),
        }
    }

    /// Appends labels.
    pub(super) fn extend(&mut self, labels: &[u32]) {
        if let Self::Shared { with, rows, expected } = self {
            let end = *rows + labels.len();
            if with.get(*rows..end) == Some(labels) {
                *rows = end;
                return;
            }
            let mut own = Vec::with_capacity(*expected);
            own.extend_from_slice(&with[..*rows]);
            *self = Self::Own(own);
        }
        if let Self::Own(own) = self {
            own.extend_from_slice(labels);
        }
    }

    /// All labels.
    pub(super) fn finish(self) -> Arc<Vec<u32>> {
        match self {
            Self::Shared { with, rows, .. } if rows == with.len() => with,
            Self::Shared { with, rows, .. } => Arc::new(with[..rows].to_vec()),
            Self::Own(own) => Arc::new(own),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn labels_are_kept_once_if_another_part_has_them(
            before in prop::collection::vec(1u32..3, 0..20),
            kept in 0usize..20,
            more in prop::collection::vec(1u32..3, 0..3),
            block in 1usize..6,
        ) {
            let before = Arc::new(before);
            let labels: Vec<u32> = before.iter().take(kept).chain(&more).copied().collect();
            let mut read = RowLabels::new(Some(&before), labels.len());
            labels.chunks(block).for_each(|labels| read.extend(labels));
            let found = read.finish();
            prop_assert_eq!(Arc::ptr_eq(&found, &before), labels == *before);
            prop_assert_eq!(&*found, &labels);
        }
    }
}
