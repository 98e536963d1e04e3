//! What rules and guards of several releases have stated of values: which of them insiders can rule out, and along which taxonomy
//! distances go. They may differ from release to release.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::microdata::{Attr, AttrSet};
use crate::privacy::{Guard, RuleDemand, TableSchema};
use crate::publication::{Guarantee, ValueDistance};

/// What is stated of values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ExcludedBySpec {
    /// Those that can be ruled out; `None` is the missing one.
    pub(super) excluded: BTreeSet<Option<String>>,
    /// The digest of the taxonomy.
    pub(super) taxonomy: Option<String>,
}

/// Whether a guarantee goes by the taxonomy of what it protects.
pub(super) const fn uses_taxonomy(guarantee: Guarantee) -> bool {
    matches!(guarantee, Guarantee::TCloseness { distance: ValueDistance::Hierarchical, .. })
}

impl ExcludedBySpec {
    fn is_empty(&self) -> bool {
        self.excluded.is_empty() && self.taxonomy.is_none()
    }

    /// What of it counts under a guarantee.
    pub(super) fn under(&self, guarantee: Guarantee) -> Self {
        let taxonomy = self.taxonomy.clone().filter(|_| uses_taxonomy(guarantee));
        Self { excluded: self.excluded.clone(), taxonomy }
    }
}

/// What can be ruled out, beside the tables and rules it belongs to.
#[derive(Clone, Debug, Default)]
pub(super) struct UnionExclusions {
    /// Per earlier table, per guard.
    pub(super) guards: Vec<Vec<ExcludedBySpec>>,
    /// Per protection rule.
    pub(super) rules: Vec<ExcludedBySpec>,
    /// Per attribute of the new release that has such values.
    pub(super) new: BTreeMap<Attr, ExcludedBySpec>,
}

impl UnionExclusions {
    /// What is stated of what is protected in the new release; nothing of combinations.
    pub(super) fn of_new(&self, protects: AttrSet, guarantee: Guarantee) -> ExcludedBySpec {
        let single = protects.iter().next().filter(|_| protects.len() == 1);
        single.and_then(|attr| self.new.get(&attr)).map(|stated| stated.under(guarantee)).unwrap_or_default()
    }

    /// The tables, new ones first, with the guards that can serve a rule under which `aside` can be ruled out: those that reckon
    /// with the same. Of the others l-diversity serves a rule under which nothing is ruled out, since a value takes no larger part
    /// of a bucket than of what is left of it.
    pub(super) fn seen<'a>(
        &self,
        tables: &'a [TableSchema],
        demand: &RuleDemand,
        aside: &ExcludedBySpec,
    ) -> Cow<'a, [TableSchema]> {
        if self.new.is_empty() && aside.is_empty() && self.guards.iter().flatten().all(ExcludedBySpec::is_empty) {
            return Cow::Borrowed(tables);
        }
        let first_earlier = tables.len() - self.guards.len();
        let serves = |guard: &Guard, other: &ExcludedBySpec| {
            guard.protects.attributes() != demand.protects
                || other == aside
                || (aside.is_empty() && matches!(guard.guarantee, Guarantee::LDiversity { .. }))
        };
        let seen = tables.iter().enumerate().map(|(index, table)| {
            let earlier = index.checked_sub(first_earlier).map(|index| &self.guards[index]);
            let of = |at: usize, guard: &Guard| {
                let new = || Cow::Owned(self.of_new(guard.protects.attributes(), guard.guarantee));
                earlier.map_or_else(new, |all| Cow::Borrowed(&all[at]))
            };
            let guards = table.guards.iter().enumerate().filter(|(at, guard)| serves(guard, &of(*at, guard)));
            TableSchema { attributes: table.attributes, guards: guards.map(|(_, guard)| *guard).collect() }
        });
        Cow::Owned(seen.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::{Protected, Ratio};

    #[test]
    fn guards_serve_rules_under_which_as_much_can_be_ruled_out() {
        let values = |list: &[&str]| ExcludedBySpec {
            excluded: list.iter().map(|value| Some((*value).to_owned())).collect(),
            taxonomy: None,
        };
        let (known, sensitive) = (AttrSet::one(Attr(0)), Attr(1));
        let diverse = Guarantee::LDiversity { l: 2 };
        let entropy = Guarantee::EntropyLDiversity { l: Ratio::new(2, 1).unwrap() };
        let seen = |guarantee, guarded: &[&str], new: bool, asked: &[&str]| {
            let table = TableSchema {
                attributes: known.with(sensitive),
                guards: vec![Guard { known, protects: Protected::Attribute(sensitive), guarantee }],
            };
            let mut aside = UnionExclusions::default();
            match new {
                true => drop(aside.new.insert(sensitive, values(guarded))),
                false => aside.guards.push(vec![values(guarded)]),
            }
            let demand = RuleDemand { known, protects: AttrSet::one(sensitive), guarantee };
            !aside.seen(&[table], &demand, &values(asked))[0].guards.is_empty()
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
    fn guards_serve_rules_along_the_same_taxonomy() {
        let (known, sensitive) = (AttrSet::one(Attr(0)), Attr(1));
        let t = Ratio::new(1, 5).unwrap();
        let along = Guarantee::TCloseness { t, distance: ValueDistance::Hierarchical };
        let stated = |taxonomy: Option<&str>| ExcludedBySpec {
            taxonomy: taxonomy.map(str::to_owned),
            ..ExcludedBySpec::default()
        };
        let seen = |guarantee: Guarantee, guarded: Option<&str>, new: bool, asked: Option<&str>| {
            let table = TableSchema {
                attributes: known.with(sensitive),
                guards: vec![Guard { known, protects: Protected::Attribute(sensitive), guarantee }],
            };
            let mut aside = UnionExclusions::default();
            match new {
                true => drop(aside.new.insert(sensitive, stated(guarded))),
                false => aside.guards.push(vec![stated(guarded).under(guarantee)]),
            }
            let demand = RuleDemand { known, protects: AttrSet::one(sensitive), guarantee };
            !aside.seen(&[table], &demand, &stated(asked).under(guarantee))[0].guards.is_empty()
        };
        for new in [false, true] {
            assert!(seen(along, Some("x"), new, Some("x")));
            assert!(!seen(along, Some("x"), new, Some("y")) && !seen(along, None, new, Some("y")));
            // what goes by no taxonomy is the same under all
            let diverse = Guarantee::LDiversity { l: 2 };
            assert!(seen(diverse, Some("x"), new, Some("y")) && seen(diverse, None, new, Some("y")));
        }
    }
}
