//! What an adversary knows of each person before any release: which values of dependent columns go together.
//! Literal on purpose: nothing here is taken from the library.

use std::collections::BTreeSet;

use super::planted::{Dependency, Planted};

/// A set of values of a column, as bits by their place in [`Knowledge::values`].
pub(crate) type Values = u32;

/// Which values a person may have together.
pub(crate) struct Knowledge {
    /// The values of each column, in order.
    values: Vec<Vec<String>>,
    /// Of each dependency, the columns that it ties, and what stands in them together in some row.
    together: Vec<(Vec<usize>, BTreeSet<Vec<Values>>)>,
}

impl Knowledge {
    /// The knowledge of some dependencies of a table: of each, the tuples that occur. Those of an exact one are its function.
    pub(crate) fn new<'d>(data: &Planted, dependencies: impl IntoIterator<Item = &'d Dependency>) -> Self {
        let column = |at: usize| data.rows.iter().map(|row| row[at].clone()).collect::<BTreeSet<_>>();
        let values = (0..data.names.len()).map(|at| column(at).into_iter().collect()).collect();
        let mut knowledge = Self { values, together: Vec::new() };
        for dependency in dependencies {
            let columns: Vec<usize> = dependency.from.iter().copied().chain([dependency.to]).collect();
            let tuple = |row: &Vec<String>| columns.iter().map(|&at| knowledge.one(at, &row[at])).collect();
            let tuples = data.rows.iter().map(tuple).collect();
            knowledge.together.push((columns, tuples));
        }
        knowledge
    }

    /// The values of a column.
    pub(crate) fn values(&self, column: usize) -> &[String] {
        &self.values[column]
    }

    /// One value of a column.
    pub(crate) fn one(&self, column: usize, value: &str) -> Values {
        1 << self.values[column].iter().position(|other| other == value).unwrap()
    }

    /// Any value of each column.
    pub(crate) fn anything(&self) -> Vec<Values> {
        self.values.iter().map(|values| (1 << values.len()) - 1).collect()
    }

    /// Whether somebody may have one of the values of each column.
    pub(crate) fn allows(&self, person: &[Values]) -> bool {
        Self::completes(person, &self.together)
    }

    fn completes(person: &[Values], together: &[(Vec<usize>, BTreeSet<Vec<Values>>)]) -> bool {
        if person.contains(&0) {
            return false;
        }
        let Some(((columns, tuples), others)) = together.split_first() else { return true };
        tuples.iter().any(|tuple| {
            let mut narrowed = person.to_vec();
            columns.iter().zip(tuple).for_each(|(&at, value)| narrowed[at] &= value);
            Self::completes(&narrowed, others)
        })
    }
}

#[test]
fn knowledge_excludes_what_occurs_in_no_row() {
    let dependencies = || vec![Dependency::new(&[0], 1), Dependency::new(&[1], 2)];
    let data = Planted::new(vec!["a", "b", "c"], &[vec![0, 0, 0], vec![1, 1, 0], vec![2, 1, 0]], dependencies());
    let knowledge = Knowledge::new(&data, &data.dependencies);
    let mut person = knowledge.anything();
    assert!(knowledge.allows(&person));
    person[1] = knowledge.one(1, "b1");
    assert!(knowledge.allows(&person));
    person[0] = knowledge.one(0, "a0");
    assert!(!knowledge.allows(&person));
    assert!(Knowledge::new(&data, []).allows(&person));
}
