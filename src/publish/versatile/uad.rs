//! UAD, utility-aware decomposition: the tables partition the attributes.
//!
//! The graph of the rules is coloured. A colour class and the attribute it may guard become a table and are removed, and so on.
//!
//! # Citations
//! - [Jin et al. 2010, Algorithm 2]
//! - [Brelaz 1979], the colouring.

use std::cmp::Reverse;

use super::dsatur::colour_classes;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::PrivacyRule;
use crate::spec::{UadColoring, UadSettings};

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
pub fn decompose(attributes: AttrSet, rules: &[PrivacyRule], settings: UadSettings) -> Vec<SelectedTable> {
    let graph = RuleGraph::new(attributes, rules);
    let mut remaining = attributes;
    let mut selected = Vec::new();
    while !remaining.is_empty() {
        let table = graph.select(remaining, settings);
        remaining = remaining.minus(table.attributes);
        selected.push(table);
    }
    selected
}

/// The digraph of the rules: an edge from each known attribute to the sensitive one.
struct RuleGraph {
    leads_to: Vec<AttrSet>,
    led_from: Vec<AttrSet>,
}

impl RuleGraph {
    fn new(attributes: AttrSet, rules: &[PrivacyRule]) -> Self {
        let span = attributes.iter().map(|attr| attr.index() + 1).max().unwrap_or(0);
        let mut graph = Self { leads_to: vec![AttrSet::EMPTY; span], led_from: vec![AttrSet::EMPTY; span] };
        for rule in rules {
            for attr in rule.known.iter() {
                let leads_to = &mut graph.leads_to[attr.index()];
                *leads_to = leads_to.with(rule.sensitive);
            }
            let led_from = &mut graph.led_from[rule.sensitive.index()];
            *led_from = led_from.union(rule.known);
        }
        graph
    }

    /// The attributes of `remaining` that share an edge with each attribute.
    fn neighbours(&self, remaining: AttrSet) -> Vec<AttrSet> {
        let edges = self.leads_to.iter().zip(&self.led_from).enumerate();
        edges.map(|(a, (to, from))| to.union(*from).intersection(remaining).without(Attr::from(a))).collect()
    }

    /// The next table, of attributes of `remaining`.
    fn select(&self, remaining: AttrSet, settings: UadSettings) -> SelectedTable {
        let neighbours = self.neighbours(remaining);
        let is_free = |attr: &Attr| neighbours[attr.index()].is_empty();
        let free: AttrSet = match settings.coloring {
            UadColoring::FreeLast => remaining.iter().filter(is_free).collect(),
            UadColoring::Paper => AttrSet::EMPTY,
        };
        let classes = colour_classes(remaining.minus(free), &neighbours);
        let prefers_guards = settings.coloring == UadColoring::FreeLast;
        let rank = |class: &AttrSet| {
            let members: Vec<u8> = class.iter().map(|attr| attr.0).collect();
            let guards = prefers_guards && self.guarded(remaining, *class).is_some_and(|(_, known)| !known.is_empty());
            (guards, class.len(), Reverse(members))
        };
        let mut class = classes.into_iter().max_by_key(rank).unwrap_or(AttrSet::EMPTY).union(free);
        if settings.saturate {
            class = saturated(class, remaining, &neighbours);
        }
        match self.guarded(remaining, class) {
            Some((attr, known)) => SelectedTable {
                attributes: class.with(attr),
                sensitive: Some(attr).filter(|_| !known.is_empty()),
                known,
            },
            None => SelectedTable { attributes: class, sensitive: None, known: AttrSet::EMPTY },
        }
    }

    /// The attribute that joins a class, and the attributes of the class that lead to it. No edge leads from it into the class,
    /// and the most edges lead from the class to it.
    fn guarded(&self, remaining: AttrSet, class: AttrSet) -> Option<(Attr, AttrSet)> {
        let others = remaining.minus(class).iter().filter(|attr| !self.leads_to[attr.index()].meets(class));
        let known = |attr: Attr| self.led_from[attr.index()].intersection(class);
        others.map(|attr| (attr, known(attr))).max_by_key(|(attr, known)| (known.len(), Reverse(attr.0)))
    }
}

/// The class with each other attribute that shares no edge with it.
fn saturated(class: AttrSet, remaining: AttrSet, neighbours: &[AttrSet]) -> AttrSet {
    let mut others: Vec<Attr> = remaining.minus(class).iter().collect();
    others.sort_by_key(|attr| (neighbours[attr.index()].len(), attr.0));
    let join = |class: AttrSet, attr: Attr| match neighbours[attr.index()].meets(class) {
        true => class,
        false => class.with(attr),
    };
    others.into_iter().fold(class, join)
}
