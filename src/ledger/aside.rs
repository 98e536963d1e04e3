//! Values that insiders can rule out, as rules and seals of several releases have them. They may differ from release to release.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::microdata::{Attr, AttrSet};
use crate::privacy::{Demand, Guard, Schema};
use crate::publication::Guarantee;

/// Values that can be ruled out; `None` is the missing one.
pub(super) type Values = BTreeSet<Option<String>>;

/// What can be ruled out, beside the tables and rules it belongs to.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    /// Per earlier table, per guard.
    pub(super) guards: Vec<Vec<Values>>,
    /// Per standing rule.
    pub(super) rules: Vec<Values>,
    /// Per attribute of the new release that has such values.
    pub(super) new: BTreeMap<Attr, Values>,
}

static NOTHING: Values = Values::new();

impl Aside {
    /// What can be ruled out of what is protected in the new release; nothing of combinations.
    pub(super) fn of_new(&self, protects: AttrSet) -> &Values {
        let single = protects.iter().next().filter(|_| protects.len() == 1);
        single.and_then(|attr| self.new.get(&attr)).unwrap_or(&NOTHING)
    }

    /// The tables, new ones first, with the guards that can serve a rule under which `aside` can be ruled out: those that reckon
    /// with the same. Of the others l-diversity serves a rule under which nothing is ruled out, since a value takes no larger part
    /// of a bucket than of what is left of it.
    pub(super) fn seen<'a>(&self, tables: &'a [Schema], demand: &Demand, aside: &Values) -> Cow<'a, [Schema]> {
        if self.new.is_empty() && aside.is_empty() && self.guards.iter().flatten().all(Values::is_empty) {
            return Cow::Borrowed(tables);
        }
        let first_earlier = tables.len() - self.guards.len();
        let serves = |guard: &Guard, other: &Values| {
            guard.protects.attributes() != demand.protects
                || other == aside
                || (aside.is_empty() && matches!(guard.guarantee, Guarantee::LDiversity { .. }))
        };
        let seen = tables.iter().enumerate().map(|(index, table)| {
            let earlier = index.checked_sub(first_earlier).map(|index| &self.guards[index]);
            let of = |at: usize, guard: &Guard| {
                earlier.map_or_else(|| self.of_new(guard.protects.attributes()), |all| &all[at])
            };
            let guards = table.guards.iter().enumerate().filter(|(at, guard)| serves(guard, of(*at, guard)));
            Schema { attributes: table.attributes, guards: guards.map(|(_, guard)| *guard).collect() }
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
        let values = |list: &[&str]| list.iter().map(|value| Some((*value).to_owned())).collect::<Values>();
        let (known, sensitive) = (AttrSet::one(Attr(0)), Attr(1));
        let diverse = Guarantee::LDiversity { l: 2 };
        let entropy = Guarantee::EntropyLDiversity { l: Ratio::new(2, 1).unwrap() };
        let seen = |guarantee, guarded: &[&str], new: bool, asked: &[&str]| {
            let table = Schema {
                attributes: known.with(sensitive),
                guards: vec![Guard { known, protects: Protected::Attribute(sensitive), guarantee }],
            };
            let mut aside = Aside::default();
            match new {
                true => drop(aside.new.insert(sensitive, values(guarded))),
                false => aside.guards.push(vec![values(guarded)]),
            }
            let demand = Demand { known, protects: AttrSet::one(sensitive), guarantee };
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
}
