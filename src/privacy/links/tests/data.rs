//! Tables and dependencies for tests.

use std::sync::Arc;

use super::super::{KnownDependencies, KnownDependency, Link};
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain, Table};
use crate::privacy::Dependency;

pub(super) fn set(attrs: &[u8]) -> AttrSet {
    attrs.iter().map(|&attr| Attr(attr)).collect()
}

/// The attributes of the bits of a number.
pub(super) fn bits(bits: u8) -> AttrSet {
    (0..8).filter(|bit| bits >> bit & 1 == 1).map(Attr).collect()
}

pub(super) fn dependency(determinant: &[u8], dependent: u8) -> Dependency {
    Dependency { determinant: set(determinant), dependent: Attr(dependent) }
}

pub(super) fn known(dependencies: &[Dependency], is_exact: bool) -> KnownDependencies {
    let known: Vec<_> = dependencies.iter().map(|&dependency| KnownDependency { dependency, is_exact }).collect();
    KnownDependencies::new(&known, &[])
}

/// The links of all dependencies, idle ones among them.
pub(super) fn links(dependencies: &[Dependency]) -> Vec<Link> {
    dependencies.iter().map(|dependency| Link::from(*dependency)).collect()
}

/// A table of small numbers as text.
pub(super) fn table(rows: &[Vec<u32>]) -> Table {
    let width = rows.first().map_or(0, Vec::len);
    let column = |at: usize| {
        let mut values: Vec<String> = rows.iter().map(|row| row[at].to_string()).collect();
        values.sort();
        values.dedup();
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value.as_bytes()));
        let code = |row: &Vec<u32>| values.binary_search(&row[at].to_string()).unwrap() as u32;
        let codes = Codes::collect(values.len(), rows.iter().map(code));
        Column { domain: Arc::new(Domain::from_sorted(AttributeType::Text, false, arena)), codes }
    };
    Table::new((0..width).map(|at| at.to_string()).collect(), (0..width).map(column).collect())
}
