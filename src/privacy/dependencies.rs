//! Functional dependencies that hold exactly in the data: an adversary is taken to know them (`PRIVACY`, what the data gives
//! away anyway; versatile publishing, Theorem 3.2).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use ahash::RandomState;

use super::rule::Rule;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};

/// Rows per determinant value, on average, below which an exact dependency is taken for coincidence.
const ROWS_PER_VALUE: usize = 20;

/// `determinant` determines `dependent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// One or two attributes.
    pub determinant: AttrSet,
    /// The attribute they determine.
    pub dependent: Attr,
}

/// What a dependency does to a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// The known side determines the sensitive attribute: nothing can be published under the rule.
    Impossible(Dependency),
    /// The rule can hold only if the determinant is protected from the same known side too, which no rule does.
    Unprotected(Dependency),
}

/// The minimal dependencies with one or two determinants that hold exactly in `table`, with at least 20 rows per determinant
/// value on average and a dependent attribute that is not constant.
///
/// # Errors
/// [`Cancelled`] when told to stop.
pub fn discover(table: &Table, control: &Control) -> Result<Vec<Dependency>, Cancelled> {
    let attrs: Vec<Attr> = table.attributes().iter().collect();
    let singles = attrs.iter().map(|&a| AttrSet::one(a));
    let pairs =
        attrs.iter().enumerate().flat_map(|(i, &a)| attrs[i + 1..].iter().map(move |&b| AttrSet::one(a).with(b)));
    let mut found: Vec<Dependency> = Vec::new();
    for determinant in singles.chain(pairs) {
        control.check()?;
        for &dependent in &attrs {
            let minimal = !found.iter().any(|d| d.dependent == dependent && d.determinant.is_subset(determinant));
            let constant = table.column(dependent).domain.len() < 2;
            if !determinant.contains(dependent) && minimal && !constant && holds(table, determinant, dependent) {
                found.push(Dependency { determinant, dependent });
            }
        }
    }
    Ok(found)
}

/// Whether every value of the determinant occurs with one value of the dependent attribute, and is frequent enough. Ends at
/// the first counter-example.
fn holds(table: &Table, determinant: AttrSet, dependent: Attr) -> bool {
    let most_values = table.rows() / ROWS_PER_VALUE;
    let mut image: HashMap<u64, u32, RandomState> = HashMap::default();
    let codes = |attr: Attr| &table.column(attr).codes;
    let columns: Vec<_> = determinant.iter().map(codes).collect();
    for row in 0..table.rows() {
        let key = columns.iter().fold(0u64, |key, codes| key << 32 | u64::from(codes.get(row)));
        let value = codes(dependent).get(row);
        match image.entry(key) {
            Entry::Occupied(known) if *known.get() != value => return false,
            Entry::Occupied(_) => {}
            Entry::Vacant(new) => {
                new.insert(value);
                if image.len() > most_values {
                    return false;
                }
            }
        }
    }
    true
}

/// Everything that `known` determines, itself included.
fn closure(known: AttrSet, dependencies: &[Dependency]) -> AttrSet {
    let mut determined = known;
    loop {
        let wider = dependencies
            .iter()
            .filter(|dependency| dependency.determinant.is_subset(determined))
            .fold(determined, |all, dependency| all.with(dependency.dependent));
        if wider == determined {
            return determined;
        }
        determined = wider;
    }
}

/// What `dependencies` do to `rule`, given all `rules`: whoever may not learn S may not learn what determines S either.
#[must_use]
pub fn effect(rule: &Rule, rules: &[Rule], dependencies: &[Dependency]) -> Option<Effect> {
    let determines = || dependencies.iter().filter(|dependency| dependency.dependent == rule.sensitive);
    if closure(rule.known, dependencies).contains(rule.sensitive) {
        return determines().next().copied().map(Effect::Impossible);
    }
    determines()
        .find(|dependency| {
            // protecting one attribute of the determinant protects their combination
            let mut unknown = dependency.determinant.minus(rule.known).iter();
            !unknown.any(|sensitive| rules.iter().any(|other| other.implies(&Rule { sensitive, ..*rule })))
        })
        .copied()
        .map(Effect::Unprotected)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Codes, Column, Domain};
    use crate::publication::Guarantee;

    fn table(columns: &[&dyn Fn(u32) -> u32]) -> Table {
        let column = |f: &&dyn Fn(u32) -> u32| {
            let codes: Vec<u32> = (0..200).map(f).collect();
            let mut arena = Arena::default();
            let len = codes.iter().max().unwrap() + 1;
            (0..len).for_each(|value| arena.push(format!("{value:05}").as_bytes()));
            let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
            Column { domain, codes: Codes::collect(len as usize, codes.into_iter()) }
        };
        Table::new((0..columns.len()).map(|i| i.to_string()).collect(), columns.iter().map(column).collect())
    }

    fn dependency(determinant: &[u8], dependent: u8) -> Dependency {
        Dependency { determinant: determinant.iter().map(|&a| Attr(a)).collect(), dependent: Attr(dependent) }
    }

    #[test]
    fn exact_frequent_and_minimal_dependencies_are_found() {
        // 0: ten values; 1: a function of 0; 2: a key; 3: constant; 4: a function of 0 and 5 together
        let table =
            table(&[&|i| i % 10, &|i| i % 10 % 3, &|i| i, &|_| 0, &|i| (i % 10 + i / 10 % 2 * 7) % 4, &|i| i / 10 % 2]);
        let found = discover(&table, &Control::default()).unwrap();
        assert!(found.contains(&dependency(&[0], 1)));
        assert!(!found.iter().any(|d| d.determinant.contains(Attr(2)) || d.dependent == Attr(3)), "{found:?}");
        assert!(!found.contains(&dependency(&[0], 4)));
        assert!(!found.contains(&dependency(&[0, 5], 1)), "not minimal");
        // twenty combinations of 0 and 5 over 200 rows are ten rows each: too few
        assert!(!found.contains(&dependency(&[0, 5], 4)));
    }

    #[test]
    fn effects_on_rules() {
        let rule = |known: &[u8], sensitive| Rule {
            known: known.iter().map(|&a| Attr(a)).collect(),
            sensitive: Attr(sensitive),
            guarantee: Guarantee::LDiversity { l: 2 },
        };
        let dependencies = [dependency(&[0], 1), dependency(&[1, 2], 3)];
        let impossible = rule(&[0, 4], 1);
        assert_eq!(effect(&impossible, &[impossible], &dependencies), Some(Effect::Impossible(dependencies[0])));
        let through_a_chain = rule(&[0, 2], 3);
        assert!(matches!(effect(&through_a_chain, &[], &dependencies), Some(Effect::Impossible(_))));
        let open = rule(&[4], 1);
        assert_eq!(effect(&open, &[open], &dependencies), Some(Effect::Unprotected(dependencies[0])));
        assert_eq!(effect(&open, &[open, rule(&[4, 5], 0)], &dependencies), None);
        assert_eq!(effect(&rule(&[0], 4), &[], &dependencies), None);
    }
}
