//! Annotations of rules and guards: excluded values, and the taxonomy of hierarchical distances.
//!
//! They may differ between releases.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::microdata::{Attr, AttrSet};
use crate::privacy::{Guard, RuleDemand, TableSchema};
use crate::publication::{Guarantee, ValueDistance};

/// Annotations of the values of a protected attribute.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ExcludedBySpec {
    /// The excluded values; `None` is the missing value.
    pub(super) excluded: BTreeSet<Option<String>>,
    /// The digest of the taxonomy.
    pub(super) taxonomy: Option<String>,
    /// Whether strata that no publication bounds may be one bucket each.
    pub(super) closes: bool,
}

/// Whether a guarantee uses the taxonomy of the protected attribute.
pub(super) const fn uses_taxonomy(guarantee: Guarantee) -> bool {
    matches!(guarantee, Guarantee::TCloseness { distance: ValueDistance::Hierarchical, .. })
}

impl ExcludedBySpec {
    fn is_empty(&self) -> bool {
        self.states_nothing() && !self.closes
    }

    /// Whether nothing is declared of the values.
    fn states_nothing(&self) -> bool {
        self.excluded.is_empty() && self.taxonomy.is_none()
    }

    /// Whether the values are declared alike.
    fn states_the_same(&self, other: &Self) -> bool {
        self.excluded == other.excluded && self.taxonomy == other.taxonomy
    }

    /// The annotations that matter for a guarantee.
    pub(super) fn under(&self, guarantee: Guarantee) -> Self {
        let taxonomy = self.taxonomy.clone().filter(|_| uses_taxonomy(guarantee));
        Self { excluded: self.excluded.clone(), taxonomy, closes: self.closes }
    }
}

/// Annotations of all guards and rules of a union.
#[derive(Clone, Debug, Default)]
pub(super) struct UnionExclusions {
    /// By earlier table and guard.
    pub(super) guards: Vec<Vec<ExcludedBySpec>>,
    /// By active rule.
    pub(super) rules: Vec<ExcludedBySpec>,
    /// By annotations attribute of the new release.
    pub(super) new: BTreeMap<Attr, ExcludedBySpec>,
    /// Whether the new release closes strata.
    pub(super) new_closes: bool,
}

impl UnionExclusions {
    /// The annotations of the protected side of the new release; none for combinations.
    pub(super) fn of_new(&self, protects: AttrSet, guarantee: Guarantee) -> ExcludedBySpec {
        let single = protects.iter().next().filter(|_| protects.len() == 1);
        let declared = single.and_then(|attr| self.new.get(&attr)).map(|annotations| annotations.under(guarantee));
        ExcludedBySpec { closes: self.new_closes, ..declared.unwrap_or_default() }
    }

    /// The tables, new ones first, with the guards that can serve a rule with these annotations.
    ///
    /// A guard serves it with equal annotations. Without excluded values, any l-diversity guard serves it: the share
    /// of a value in a bucket is at most its share among the remaining rows. A guard that closes strata serves rules of
    /// releases that do.
    pub(super) fn serving<'a>(
        &self,
        tables: &'a [TableSchema],
        demand: &RuleDemand,
        annotations: &ExcludedBySpec,
    ) -> Cow<'a, [TableSchema]> {
        if self.new.is_empty()
            && !self.new_closes
            && annotations.is_empty()
            && self.guards.iter().flatten().all(ExcludedBySpec::is_empty)
        {
            return Cow::Borrowed(tables);
        }
        let first_earlier = tables.len() - self.guards.len();
        let serves = |guard: &Guard, other: &ExcludedBySpec| {
            guard.protects.attributes() != demand.protects
                || (annotations.closes || !guard.closes)
                    && (other.states_the_same(annotations)
                        || annotations.states_nothing() && matches!(guard.guarantee, Guarantee::LDiversity { .. }))
        };
        let seen = tables.iter().enumerate().map(|(index, table)| {
            let earlier = index.checked_sub(first_earlier).map(|index| &self.guards[index]);
            let of = |at: usize, guard: &Guard| {
                let new = || Cow::Owned(self.of_new(guard.protects.attributes(), guard.guarantee));
                earlier.map_or_else(new, |all| Cow::Borrowed(&all[at]))
            };
            let serving = |(at, guard): &(usize, &Guard)| serves(guard, &of(*at, guard));
            let (kept, others): (Vec<_>, Vec<_>) = table.guards.iter().enumerate().partition(serving);
            let guards: Vec<Guard> = kept.into_iter().map(|(_, guard)| *guard).collect();
            let constant = |all: AttrSet, guard: &Guard| all.union(guard.constant);
            // readers learn where buckets are constant, whatever rule they serve
            let shown = others.into_iter().fold(AttrSet::EMPTY, |all, (_, guard)| constant(all, guard));
            let shown = shown.minus(guards.iter().fold(AttrSet::EMPTY, constant));
            TableSchema { attributes: table.attributes.union(shown), guards }
        });
        Cow::Owned(seen.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::{Protected, Ratio};

    #[test]
    fn serving_guards_require_equal_excluded_values() {
        let values = |list: &[&str]| ExcludedBySpec {
            excluded: list.iter().map(|value| Some((*value).to_owned())).collect(),
            ..ExcludedBySpec::default()
        };
        let (known, sensitive) = (AttrSet::one(Attr(0)), Attr(1));
        let diverse = Guarantee::LDiversity { l: 2 };
        let entropy = Guarantee::EntropyLDiversity { l: Ratio::new(2, 1).unwrap() };
        let seen = |guarantee, guarded: &[&str], new: bool, asked: &[&str]| {
            let table = TableSchema {
                attributes: known.with(sensitive),
                guards: vec![Guard::new(known, Protected::Attribute(sensitive), guarantee)],
            };
            let mut union = UnionExclusions::default();
            match new {
                true => drop(union.new.insert(sensitive, values(guarded))),
                false => union.guards.push(vec![values(guarded)]),
            }
            let demand = RuleDemand { known, protects: AttrSet::one(sensitive), guarantee };
            !union.serving(&[table], &demand, &values(asked))[0].guards.is_empty()
        };
        for new in [false, true] {
            for guarantee in [diverse, entropy] {
                assert!(seen(guarantee, &[], new, &[]) && seen(guarantee, &["none", "x"], new, &["x", "none"]));
                assert!(!seen(guarantee, &[], new, &["none"]) && !seen(guarantee, &["none", "x"], new, &["x"]));
            }
            assert!(seen(diverse, &["none"], new, &[]) && !seen(entropy, &["none"], new, &[]));
        }
    }

    #[test]
    fn serving_guards_require_the_same_taxonomy() {
        let (known, sensitive) = (AttrSet::one(Attr(0)), Attr(1));
        let t = Ratio::new(1, 5).unwrap();
        let along = Guarantee::TCloseness { t, distance: ValueDistance::Hierarchical, reference: Default::default() };
        let annotations = |taxonomy: Option<&str>| ExcludedBySpec {
            taxonomy: taxonomy.map(str::to_owned),
            ..ExcludedBySpec::default()
        };
        let seen = |guarantee: Guarantee, guarded: Option<&str>, new: bool, asked: Option<&str>| {
            let table = TableSchema {
                attributes: known.with(sensitive),
                guards: vec![Guard::new(known, Protected::Attribute(sensitive), guarantee)],
            };
            let mut union = UnionExclusions::default();
            match new {
                true => drop(union.new.insert(sensitive, annotations(guarded))),
                false => union.guards.push(vec![annotations(guarded).under(guarantee)]),
            }
            let demand = RuleDemand { known, protects: AttrSet::one(sensitive), guarantee };
            !union.serving(&[table], &demand, &annotations(asked).under(guarantee))[0].guards.is_empty()
        };
        for new in [false, true] {
            assert!(seen(along, Some("x"), new, Some("x")));
            assert!(!seen(along, Some("x"), new, Some("y")) && !seen(along, None, new, Some("y")));
            // a guarantee without a taxonomy is the same under all
            let diverse = Guarantee::LDiversity { l: 2 };
            assert!(seen(diverse, Some("x"), new, Some("y")) && seen(diverse, None, new, Some("y")));
        }
    }

    #[test]
    fn closing_guards_serve_rules_of_closing_releases() {
        let (known, sensitive) = (AttrSet::one(Attr(0)), Attr(1));
        let guarantee = Guarantee::LDiversity { l: 2 };
        let serves = |guard_closes: bool, rule_closes: bool, new: bool| {
            let guard = Guard { closes: guard_closes, ..Guard::new(known, Protected::Attribute(sensitive), guarantee) };
            let table = TableSchema { attributes: known.with(sensitive), guards: vec![guard] };
            let of = |closes| ExcludedBySpec { closes, ..ExcludedBySpec::default() };
            let mut union = UnionExclusions::default();
            match new {
                true => union.new_closes = guard_closes,
                false => union.guards.push(vec![of(guard_closes)]),
            }
            let demand = RuleDemand { known, protects: AttrSet::one(sensitive), guarantee };
            !union.serving(&[table], &demand, &of(rule_closes))[0].guards.is_empty()
        };
        for new in [false, true] {
            assert!(serves(false, false, new) && serves(false, true, new) && serves(true, true, new));
            // the rule promises a bound to rows that have none behind the guard
            assert!(!serves(true, false, new));
        }
    }
}
