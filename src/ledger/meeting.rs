//! Joins of tables: two tables can be joined when they share an attribute, directly or by dependencies.

use crate::microdata::AttrSet;
use crate::privacy::Dependency;

/// The closure of attributes under dependencies.
pub(super) fn determined_by(attributes: AttrSet, dependencies: &[Dependency]) -> AttrSet {
    let mut determined = attributes;
    loop {
        let more = dependencies.iter().filter(|dependency| dependency.determinant.is_subset(determined));
        let larger = more.fold(determined, |all, dependency| all.with(dependency.dependent));
        if larger == determined {
            return determined;
        }
        determined = larger;
    }
}

/// For each table, whether a chain of joins from `from` reaches it.
///
/// `tables` holds the closures of their attributes.
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
    fn determined_by_chained_dependencies_is_the_closure() {
        let dependency = |determinant: &[u8], dependent: u8| Dependency {
            determinant: set(determinant),
            dependent: Attr(dependent),
        };
        let known = [dependency(&[2, 3], 4), dependency(&[1], 2)];
        assert_eq!(determined_by(set(&[1]), &known), set(&[1, 2]));
        assert_eq!(determined_by(set(&[1, 3]), &known), set(&[1, 2, 3, 4]));
        assert_eq!(determined_by(set(&[4]), &known), set(&[4]));
    }

    #[test]
    fn reached_over_other_tables_is_true() {
        let tables = [set(&[3, 4]), set(&[1, 2]), set(&[2, 3]), set(&[8, 9])];
        assert_eq!(reached(&tables, set(&[1])), [true, true, true, false]);
        assert_eq!(reached(&tables, set(&[5])), [false; 4]);
    }
}
