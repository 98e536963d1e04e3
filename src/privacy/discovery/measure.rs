//! The evidence of one dependency in all rows.

use super::super::dependencies::Dependency;
use super::super::links::Strata;
use super::logarithm::FactorialLogarithms;
use super::search::DiscoveredDependency;
use super::significance::{CountFrequency, Savings};
use crate::microdata::Table;

/// The evidence of a dependency that was not searched for; `None` where the table lacks one of its columns.
#[must_use]
pub fn measure_dependency(table: &Table, dependency: Dependency) -> Option<DiscoveredDependency> {
    let Dependency { determinant, dependent } = dependency;
    let both = determinant.with(dependent);
    if !both.is_subset(table.attributes()) {
        return None;
    }
    let (groups, cells) = (Strata::new(table, determinant), Strata::new(table, both));
    // the most frequent value of each group is right
    let mut right = vec![0; groups.len()];
    for (&group, &cell) in groups.of_row().iter().zip(cells.of_row()) {
        let most: &mut u32 = &mut right[group as usize];
        *most = (*most).max(cells.sizes()[cell as usize]);
    }
    let right: usize = right.iter().map(|&rows| rows as usize).sum();
    let errors = table.rows() - right;
    let factorials = FactorialLogarithms::new(table.rows());
    let counts = CountFrequency::collect(table.column(dependent).counts().into_iter());
    let saved = Savings::new(&factorials, &counts).saved(groups.len(), errors);
    Some(DiscoveredDependency { dependency, groups: groups.len(), errors, saved })
}
