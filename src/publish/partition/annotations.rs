//! Annotations that a partition needs of a table.

use crate::microdata::{Attr, AttributeType, Axis, ColumnAnnotations, Table};

/// Declared orders and excluded values of the attributes of a table.
pub trait TableAnnotations {
    /// Axis of an attribute with a declared order, or with the order of the leaves of its taxonomy. Default: that of the domain.
    fn axis(&self, _: Attr) -> Option<Axis> {
        None
    }

    /// Annotations of a sensitive attribute: the values that an insider can rule out.
    fn annotations(&self, _: Attr) -> ColumnAnnotations {
        ColumnAnnotations::default()
    }
}

/// Annotations that the specification declares. Values that are not numeric stand in the order of the leaves of their taxonomy.
impl TableAnnotations for Table {
    fn axis(&self, attr: Attr) -> Option<Axis> {
        let is_numeric = !matches!(self.column(attr).domain.kind(), AttributeType::Text | AttributeType::Boolean);
        Self::annotations(self, attr).taxonomy().filter(|_| !is_numeric).map(|tree| Axis::from_places(&tree.places()))
    }

    fn annotations(&self, attr: Attr) -> ColumnAnnotations {
        Self::annotations(self, attr).clone()
    }
}

/// A table without declared orders and excluded values.
pub struct NoAnnotations;

impl TableAnnotations for NoAnnotations {}
