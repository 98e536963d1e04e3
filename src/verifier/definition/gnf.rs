//! Guardian Normal Form by literal path search on the attributes [Jin et al. 2010, Definitions 3 to 5].

use super::guarantee::at_least;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, Protected, PublishedTable, TableGuard, TableProtection};

/// A published table in the terms of the definitions: its attributes and its guards.
pub(in crate::verifier) struct LiteralTable<'a> {
    pub(in crate::verifier) attributes: AttrSet,
    pub(in crate::verifier) guards: &'a [TableGuard],
}

impl<'a> LiteralTable<'a> {
    pub(in crate::verifier) fn from_published(table: &'a PublishedTable) -> Self {
        let guards = match &table.protection {
            TableProtection::Guarding(guards) => guards.as_slice(),
            TableProtection::Plain | TableProtection::Exclusive => &[],
        };
        let columns = table.parts.iter().flat_map(|part| &part.columns);
        Self { attributes: columns.map(|column| column.attribute).collect(), guards }
    }

    /// Whether a guard bounds the inference of `sensitive` from `known`.
    pub(in crate::verifier) fn holds(&self, known: AttrSet, sensitive: Protected, guarantee: Guarantee) -> bool {
        self.guards.iter().any(|guard| {
            guard.protects == sensitive
                && known.is_subset(guard.known)
                && guard.guarantees.iter().any(|&held| at_least(held, guarantee))
        })
    }
}

/// Status of a rule in a set of tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::verifier) enum LiteralStatus {
    /// No path leads from a known attribute to the sensitive one.
    Unreachable,
    /// The guardian tables by index, each with its entry attributes `W`.
    Guarded(Vec<(usize, AttrSet)>),
    /// These known attributes reach the sensitive one, and no table is a guardian.
    Violated(AttrSet),
}

/// The status of the rule `known -> sensitive`.
pub(in crate::verifier) fn status(
    tables: &[LiteralTable<'_>],
    known: AttrSet,
    sensitive: Attr,
    guarantee: Guarantee,
) -> LiteralStatus {
    let all: Vec<AttrSet> = tables.iter().map(|table| table.attributes).collect();
    let reaching = reaching(&all, known, sensitive);
    if reaching.is_empty() {
        return LiteralStatus::Unreachable;
    }
    let guardians: Vec<(usize, AttrSet)> = (0..tables.len())
        .filter_map(|table| guardian(tables, table, known, sensitive, guarantee).map(|entry| (table, entry)))
        .collect();
    if guardians.is_empty() { LiteralStatus::Violated(reaching) } else { LiteralStatus::Guarded(guardians) }
}

/// The status of a rule that protects the joint value of several attributes.
///
/// The joint value counts as one attribute. One table alone may hold any of the attributes, and it must hold all of
/// them: otherwise the definitions do not cover what the tables reveal together.
pub(in crate::verifier) fn joint_status(
    tables: &[LiteralTable<'_>],
    known: AttrSet,
    joint: AttrSet,
    guarantee: Guarantee,
) -> LiteralStatus {
    let mut showing = tables.iter().enumerate().filter(|(_, table)| table.attributes.meets(joint));
    let Some((index, table)) = showing.next() else { return LiteralStatus::Unreachable };
    if showing.next().is_some() || !joint.is_subset(table.attributes) {
        return LiteralStatus::Violated(known);
    }
    let others = table.attributes.minus(joint);
    let mut rest: Vec<AttrSet> = tables.iter().map(|table| table.attributes).collect();
    rest.remove(index);
    // the last step of every path enters the joint value from this table, since no other table holds any of it
    let enters = |attr: &Attr| known.contains(*attr) || known.iter().any(|from| connected(from, *attr, &rest));
    let entry: AttrSet = others.iter().filter(enters).collect();
    if entry.is_empty() {
        return LiteralStatus::Unreachable;
    }
    if table.holds(entry, Protected::Joint(joint), guarantee) {
        return LiteralStatus::Guarded(vec![(index, entry)]);
    }
    let reaches = |attr: &Attr| others.iter().any(|into| into == *attr || connected(*attr, into, &rest));
    LiteralStatus::Violated(known.iter().filter(reaches).collect())
}

/// The entry attributes `W` of a table that is a guardian of the rule [Jin et al. 2010, Definition 4].
fn guardian(
    tables: &[LiteralTable<'_>],
    index: usize,
    known: AttrSet,
    sensitive: Attr,
    guarantee: Guarantee,
) -> Option<AttrSet> {
    let all: Vec<AttrSet> = tables.iter().map(|table| table.attributes).collect();
    let entry = entrance(&all, index, known, sensitive)?;
    // (ii) the table protects the sensitive attribute from its entry attributes
    let holds = entry.is_empty() || tables[index].holds(entry, Protected::Attribute(sensitive), guarantee);
    holds.then_some(entry)
}

/// The entry attributes `W` of a table that satisfies conditions (i) and (iii) of a guardian.
pub(in crate::verifier) fn entrance(
    tables: &[AttrSet],
    index: usize,
    known: AttrSet,
    sensitive: Attr,
) -> Option<AttrSet> {
    let table = tables[index];
    // (i) the table holds the sensitive attribute
    if !table.contains(sensitive) {
        return None;
    }
    let others = |(other, &attributes): (usize, &AttrSet)| (other != index).then_some(attributes);
    let mut rest: Vec<AttrSet> = tables.iter().enumerate().filter_map(others).collect();
    let enters = |attr: Attr| known.contains(attr) || known.iter().any(|from| connected(from, attr, &rest));
    let entry: AttrSet = table.without(sensitive).iter().filter(|&attr| enters(attr)).collect();
    // (iii) without the sensitive column of this table no path reaches the sensitive attribute
    rest.push(table.without(sensitive));
    let reached = known.iter().any(|from| connected(from, sensitive, &rest));
    (!reached).then_some(entry)
}

/// The known attributes with a path to the sensitive one.
pub(in crate::verifier) fn reaching(tables: &[AttrSet], known: AttrSet, sensitive: Attr) -> AttrSet {
    known.iter().filter(|&attr| connected(attr, sensitive, tables)).collect()
}

/// Whether a chain of tables connects two attributes [Jin et al. 2010, Definition 3].
///
/// An attribute that no table holds is connected to none.
pub(in crate::verifier) fn connected(from: Attr, to: Attr, tables: &[AttrSet]) -> bool {
    let published = |attr: Attr| tables.iter().any(|table| table.contains(attr));
    if !published(from) || !published(to) {
        return false;
    }
    let mut seen = AttrSet::one(from);
    let mut paths = vec![from];
    while let Some(end) = paths.pop() {
        if end == to {
            return true;
        }
        for table in tables.iter().filter(|table| table.contains(end)) {
            for next in table.minus(seen).iter() {
                seen = seen.with(next);
                paths.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn attributes(list: &Value) -> AttrSet {
        let list = list.as_array().expect("a list of attributes");
        list.iter().map(|name| Attr(name.as_str().expect("a name").as_bytes()[0] - b'A')).collect()
    }

    fn only(list: &Value) -> Attr {
        attributes(list).iter().next().expect("one attribute")
    }

    /// Compares statuses and guardians with those that the reference implementation computed for random schemas.
    #[test]
    fn status_random_schemas_matches_reference_vectors() {
        let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/gnf.json")).expect("vectors");
        let guarantee = Guarantee::LDiversity { l: 2 };
        let mut seen = [0; 3];
        for (number, case) in vectors["gnf"].as_array().expect("cases").iter().enumerate() {
            let guards: Vec<(AttrSet, Vec<TableGuard>)> = case["tables"]
                .as_array()
                .expect("tables")
                .iter()
                .map(|table| {
                    let guarding = table["sa"].as_str().map(|name| {
                        TableGuard::new(
                            attributes(&table["x"]),
                            Protected::Attribute(Attr(name.as_bytes()[0] - b'A')),
                            vec![guarantee],
                        )
                    });
                    (attributes(&table["attrs"]), guarding.into_iter().collect())
                })
                .collect();
            let tables: Vec<LiteralTable<'_>> =
                guards.iter().map(|(attributes, guards)| LiteralTable { attributes: *attributes, guards }).collect();
            for (rule, expected) in case["rules"].as_array().expect("rules").iter().enumerate() {
                let (known, sensitive) = (attributes(&expected["lhs"]), only(&expected["rhs"]));
                let found = status(&tables, known, sensitive, guarantee);
                let (name, guardian) = match &found {
                    LiteralStatus::Unreachable => ("unreachable", None),
                    LiteralStatus::Guarded(guardians) => ("guardian", Some(guardians[0].0 as u64)),
                    LiteralStatus::Violated(_) => ("violated", None),
                };
                seen[["unreachable", "guardian", "violated"].iter().position(|n| *n == name).expect("a name")] += 1;
                assert_eq!(Some(name), case["status"][rule].as_str(), "case {number}, rule {rule}");
                assert_eq!(guardian, case["guardian"][rule].as_u64(), "case {number}, rule {rule}");
                if let LiteralStatus::Guarded(guardians) = found {
                    assert_eq!(guardians.len(), 1, "case {number}, rule {rule}: the guardian is unique");
                }
            }
        }
        assert!(seen.iter().all(|&times| times > 10), "{seen:?}");
    }

    #[test]
    fn status_weaker_guard_is_violated() {
        let guard = |l| {
            let protects = Protected::Attribute(Attr(1));
            vec![TableGuard::new(AttrSet::one(Attr(0)), protects, vec![Guarantee::LDiversity { l }])]
        };
        for (l, holds) in [(2, false), (3, true), (4, true)] {
            let guards = guard(l);
            let tables = [LiteralTable { attributes: AttrSet::first(2), guards: &guards }];
            let found = status(&tables, AttrSet::one(Attr(0)), Attr(1), Guarantee::LDiversity { l: 3 });
            assert_eq!(found == LiteralStatus::Guarded(vec![(0, AttrSet::one(Attr(0)))]), holds, "l = {l}");
            assert_eq!(found == LiteralStatus::Violated(AttrSet::one(Attr(0))), !holds, "l = {l}");
        }
    }
}
