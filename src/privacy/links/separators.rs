//! Separators of the protected side from the known side, in the order in which they are tried.

use super::flow::{Network, UNBOUNDED};
use super::separation::connected;
use super::weights::AttributeWeights;
use crate::microdata::{Attr, AttrSet};

/// Two sides in a set of elements.
#[derive(Clone, Copy, Debug)]
pub struct SeparatedSides<'a> {
    /// The attributes to keep apart.
    pub protected: AttrSet,
    /// The attributes from which to keep them apart.
    pub known: AttrSet,
    /// The attribute sets of tables and links through which paths run.
    pub elements: &'a [AttrSet],
}

/// At most three separators, each once: of least weight, nearest to the known side, nearest to the protected side.
///
/// Of several with the least weight, the one with the smallest sorted list of attributes is taken. There is none if the
/// sides share an attribute.
///
/// # Citations
/// docs/spec/dependencies.md#separators
#[must_use]
pub fn separators(sides: &SeparatedSides<'_>, weights: &AttributeWeights) -> Vec<AttrSet> {
    if sides.protected.meets(sides.known) {
        return Vec::new();
    }
    let mut found: Vec<AttrSet> = Vec::with_capacity(3);
    for separator in [least(sides, weights), nearest_to_known(sides), nearest_to_protected(sides)] {
        if !found.contains(&separator) {
            found.push(separator);
        }
    }
    found
}

/// The known attributes in elements that the protected side reaches without passing the known side.
fn nearest_to_known(sides: &SeparatedSides<'_>) -> AttrSet {
    let inner: Vec<AttrSet> = sides.elements.iter().map(|element| element.minus(sides.known)).collect();
    neighbours(connected(sides.protected, &inner), sides.elements).intersection(sides.known)
}

/// The neighbours of the protected side that are connected with the known side without it.
fn nearest_to_protected(sides: &SeparatedSides<'_>) -> AttrSet {
    let outer: Vec<AttrSet> = sides.elements.iter().map(|element| element.minus(sides.protected)).collect();
    let around = neighbours(sides.protected, sides.elements).minus(sides.protected);
    around.intersection(connected(sides.known, &outer))
}

/// All attributes of elements that meet `attrs`.
fn neighbours(attrs: AttrSet, elements: &[AttrSet]) -> AttrSet {
    elements.iter().filter(|element| element.meets(attrs)).fold(AttrSet::EMPTY, |all, element| all.union(*element))
}

/// The separator of least weight: a minimal vertex cut.
///
/// Every maximal flow saturates every minimal cut, so only saturated attributes are tried, in rising order.
fn least(sides: &SeparatedSides<'_>, weights: &AttributeWeights) -> AttrSet {
    let whole = flow(sides, AttrSet::EMPTY, weights);
    let (mut least, mut rest) = (AttrSet::EMPTY, whole.amount);
    for attr in whole.saturated.iter() {
        if rest == 0 {
            break;
        }
        let without = flow(sides, least.with(attr), weights).amount;
        if without + weights.weight(attr) == rest {
            least = least.with(attr);
            rest = without;
        }
    }
    least
}

struct MaxFlow {
    amount: u64,
    /// The attributes through which nothing more can flow.
    saturated: AttrSet,
}

/// The maximal flow from the protected to the known side without the attributes `removed`.
///
/// An attribute passes at most its weight; an element passes everything.
fn flow(sides: &SeparatedSides<'_>, removed: AttrSet, weights: &AttributeWeights) -> MaxFlow {
    let elements: Vec<AttrSet> = sides.elements.iter().map(|element| element.minus(removed)).collect();
    let reached = connected(sides.protected, &elements);
    let mut used: Vec<AttrSet> = elements.into_iter().filter(|element| element.meets(reached)).collect();
    used.sort_unstable();
    used.dedup();
    let passable: Vec<Attr> = reached.minus(sides.protected).iter().collect();
    let (source, sink, first_element) = (0, 1, 2 + 2 * passable.len());
    let mut network = Network::new(first_element + used.len());
    for (at, _) in used.iter().enumerate().filter(|(_, element)| element.meets(sides.protected)) {
        network.connect(source, first_element + at, UNBOUNDED);
    }
    let mut passages = Vec::with_capacity(passable.len());
    for (at, &attr) in passable.iter().enumerate() {
        let (entry, exit) = (2 + 2 * at, 3 + 2 * at);
        passages.push(network.connect(entry, exit, weights.weight(attr)));
        for (index, _) in used.iter().enumerate().filter(|(_, element)| element.contains(attr)) {
            network.connect(first_element + index, entry, UNBOUNDED);
            network.connect(exit, first_element + index, UNBOUNDED);
        }
        if sides.known.contains(attr) {
            network.connect(exit, sink, UNBOUNDED);
        }
    }
    let amount = network.fill(source, sink);
    let saturated = passable.iter().zip(passages).filter(|(_, passage)| network.is_saturated(*passage));
    MaxFlow { amount, saturated: saturated.map(|(attr, _)| *attr).collect() }
}
