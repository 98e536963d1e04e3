//! Joins of tables: two tables can be joined when they share an attribute, directly or by links; some must stand alone.

use crate::microdata::AttrSet;

/// Why no other table may share an attribute with an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StandsAlone {
    /// It is exclusive.
    Exclusive,
    /// A table with the missing rows would identify them.
    LacksRows,
    /// It is joined with an exclusive one, whose promise on the join no other table is part of.
    JoinedElsewhere,
}

impl StandsAlone {
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Exclusive => "is exclusive",
            Self::LacksRows => "lacks some rows",
            Self::JoinedElsewhere => "is joined with an exclusive one, which keeps its promise on that join alone,",
        }
    }
}

/// An earlier and a new table.
#[derive(Clone, Copy)]
pub(super) struct MeetingTables {
    /// Index of the earlier table.
    pub(super) earlier: usize,
    /// Index of the new table.
    pub(super) new: usize,
    /// The attributes of the new table that the earlier one has, or dependencies tie to it; `None` if they cannot be joined.
    pub(super) tied: Option<AttrSet>,
    /// Whether the earlier table joins with an exclusive one of another release.
    pub(super) is_bound: bool,
}

/// For each table, whether a chain of joins from `from` reaches it.
///
/// `tables` holds their attributes, with those that links tie to them.
pub(super) fn reached(tables: &[AttrSet], from: AttrSet) -> Vec<bool> {
    let (mut reached, mut known) = (vec![false; tables.len()], from);
    loop {
        let mut grew = false;
        for (reached, determined) in reached.iter_mut().zip(tables) {
            if !*reached && determined.meets(known) {
                (*reached, grew) = (true, true);
                known = known.union(*determined);
            }
        }
        if !grew {
            return reached;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Attr;

    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&attr| Attr(attr)).collect()
    }

    #[test]
    fn reached_over_other_tables_is_true() {
        let tables = [set(&[3, 4]), set(&[1, 2]), set(&[2, 3]), set(&[8, 9])];
        assert_eq!(reached(&tables, set(&[1])), [true, true, true, false]);
        assert_eq!(reached(&tables, set(&[5])), [false; 4]);
    }
}
