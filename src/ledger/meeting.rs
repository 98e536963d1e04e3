//! Joins of tables: two tables can be joined when they share an attribute, directly or by links.

use crate::microdata::AttrSet;

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
