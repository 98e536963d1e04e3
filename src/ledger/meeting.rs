//! Which tables can be joined: those that share an attribute, or of which one tells an attribute that the other has or tells.

use crate::microdata::AttrSet;
use crate::privacy::Dependency;

/// Some attributes, and all that whoever knows these dependencies knows of a row with them.
pub(super) fn told_by(attributes: AttrSet, dependencies: &[Dependency]) -> AttrSet {
    let mut told = attributes;
    loop {
        let more = dependencies.iter().filter(|dependency| dependency.determinant.is_subset(told));
        let wider = more.fold(told, |all, dependency| all.with(dependency.dependent));
        if wider == told {
            return told;
        }
        told = wider;
    }
}

/// The tables, by what each of them tells, that are joined by whoever begins with `from`, over others of them where need be.
pub(super) fn reached(tables: &[AttrSet], from: AttrSet) -> Vec<bool> {
    let (mut reached, mut known) = (vec![false; tables.len()], from);
    loop {
        let mut grew = false;
        for (reached, told) in reached.iter_mut().zip(tables) {
            if !*reached && told.meets(known) {
                (*reached, grew) = (true, true);
                known = known.union(*told);
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
    fn what_attributes_tell_is_followed_to_its_end() {
        let dependency = |determinant: &[u8], dependent: u8| Dependency {
            determinant: set(determinant),
            dependent: Attr(dependent),
        };
        let known = [dependency(&[2, 3], 4), dependency(&[1], 2)];
        assert_eq!(told_by(set(&[1]), &known), set(&[1, 2]));
        assert_eq!(told_by(set(&[1, 3]), &known), set(&[1, 2, 3, 4]));
        assert_eq!(told_by(set(&[4]), &known), set(&[4]));
    }

    #[test]
    fn tables_are_reached_over_others() {
        let tables = [set(&[3, 4]), set(&[1, 2]), set(&[2, 3]), set(&[8, 9])];
        assert_eq!(reached(&tables, set(&[1])), [true, true, true, false]);
        assert_eq!(reached(&tables, set(&[5])), [false; 4]);
    }
}
