//! UAD, utility-aware decomposition: the tables partition the attributes.
//!
//! The graph of the rules is coloured. The largest colour class and the attribute it may guard become a table and are removed,
//! and so on.
//!
//! # Citations
//! - [Jin et al. 2010, Algorithm 2]
//! - [Brelaz 1979], the colouring.

use std::cmp::Reverse;

use super::dsatur::colour_classes;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::PrivacyRule;

/// A table that UAD selects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectedTable {
    /// All attributes of the table.
    pub attributes: AttrSet,
    /// The attribute that the table protects, if it guards any.
    pub sensitive: Option<Attr>,
    /// Attributes of the table from which a rule leads to the sensitive one: `V'max` of line 6.
    pub known: AttrSet,
}

/// Partitions `attributes` into tables in Guardian Normal Form for irreducible `rules`.
///
/// With `saturate`, each colour class is first extended to a maximal independent set, in the order of degree in the remaining
/// graph, then index. That gives fewer tables.
#[must_use]
pub fn decompose(attributes: AttrSet, rules: &[PrivacyRule], saturate: bool) -> Vec<SelectedTable> {
    let span = attributes.iter().map(|attr| attr.index() + 1).max().unwrap_or(0);
    let (mut leads_to, mut led_from) = (vec![AttrSet::EMPTY; span], vec![AttrSet::EMPTY; span]);
    for rule in rules {
        for attr in rule.known.iter() {
            leads_to[attr.index()] = leads_to[attr.index()].with(rule.sensitive);
        }
        led_from[rule.sensitive.index()] = led_from[rule.sensitive.index()].union(rule.known);
    }

    let mut remaining = attributes;
    let mut selected = Vec::new();
    while !remaining.is_empty() {
        let neighbours: Vec<AttrSet> =
            (0..span).map(|a| leads_to[a].union(led_from[a]).intersection(remaining).without(Attr::from(a))).collect();
        let mut class = largest(&colour_classes(remaining, &neighbours));
        if saturate {
            let mut others: Vec<Attr> = remaining.minus(class).iter().collect();
            others.sort_by_key(|attr| (neighbours[attr.index()].len(), attr.0));
            for attr in others {
                if !neighbours[attr.index()].meets(class) {
                    class = class.with(attr);
                }
            }
        }
        let guarded = remaining
            .minus(class)
            .iter()
            .filter(|attr| !leads_to[attr.index()].meets(class))
            .max_by_key(|attr| (led_from[attr.index()].intersection(class).len(), Reverse(attr.0)));
        let known = guarded.map_or(AttrSet::EMPTY, |attr| led_from[attr.index()].intersection(class));
        let attributes = guarded.map_or(class, |attr| class.with(attr));
        selected.push(SelectedTable { attributes, sensitive: guarded.filter(|_| !known.is_empty()), known });
        remaining = remaining.minus(attributes);
    }
    selected
}

/// The largest class; the lexicographically smallest of equal ones.
fn largest(classes: &[AttrSet]) -> AttrSet {
    let rank = |class: &AttrSet| {
        let members: Vec<u8> = class.iter().map(|attr| attr.0).collect();
        (class.len(), Reverse(members))
    };
    classes.iter().copied().max_by_key(rank).unwrap_or(AttrSet::EMPTY)
}
