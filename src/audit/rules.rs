//! Every submitted rule: eligible, held as this audit's own search finds, and listed so.

use super::gnf::{self, Node, Status};
use super::guarantee::{Shares, at_least};
use super::{CheckName, Evidence, Findings};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Because, Guarantee, HeldBy, Origin, Protected, RuleStanding, SubmittedRule};

/// So many combinations are looked at for one rule.
const MAX_FOLLOWED: usize = 10_000;

/// How often each value of a column occurs.
pub(super) type Counts = Vec<u64>;

/// Checks the submitted rules, and every rule that is listed. `counts` holds what the parts showed of each attribute.
pub(super) fn check(
    evidence: &Evidence<'_>,
    (counts, ruled_out): (Vec<Option<Counts>>, Vec<Vec<u32>>),
    findings: &mut Findings,
) {
    let publication = evidence.publication;
    let search = Search {
        evidence,
        nodes: publication.tables.iter().map(Node::of).collect(),
        ruled_out: ruled_out
            .into_iter()
            .enumerate()
            .map(|(index, shown)| match evidence.original {
                Some(original) if index < original.attributes().len() => {
                    let attr = Attr::from(index);
                    evidence.ruled_out(attr, original.column(attr).domain.iter())
                }
                _ => shown,
            })
            .collect(),
        counts: counts
            .into_iter()
            .enumerate()
            .map(|(index, shown)| match evidence.original {
                Some(original) if index < original.attributes().len() => {
                    Some(original.column(Attr::from(index)).counts())
                }
                _ => shown,
            })
            .collect(),
    };
    for rule in evidence.submitted {
        if let Err(detail) = search.submitted(rule) {
            findings.fail(CheckName::Gnf, format!("rule {}: {detail}", rule.pointer));
        }
    }
    for standing in &publication.rules {
        let name = standing.pointer.as_deref().unwrap_or("from a dependency");
        if let Err(detail) = search.listed(standing) {
            findings.fail(CheckName::Gnf, format!("rule {name}: {detail}"));
        }
    }
}

struct Search<'a> {
    evidence: &'a Evidence<'a>,
    nodes: Vec<Node<'a>>,
    counts: Vec<Option<Counts>>,
    /// The codes behind the counts that an insider can rule out.
    ruled_out: Vec<Vec<u32>>,
}

impl Search<'_> {
    /// A submitted rule holds and is listed.
    fn submitted(&self, rule: &SubmittedRule) -> Result<(), String> {
        self.holds(rule.known, rule.protects, rule.guarantee)?;
        for follows in self.followed(rule)? {
            let because =
                |fault| format!("by a dependency {} must stay protected: {fault}", self.evidence.list(follows));
            self.holds(rule.known, Protected::Joint(follows), rule.guarantee).map_err(because)?;
        }
        let listed = self.evidence.publication.rules.iter().any(|standing| same(rule, standing));
        if listed { Ok(()) } else { Err("it is not listed".to_owned()) }
    }

    /// What must stay protected beside what a rule protects, because it tells it: by Theorem 3.2 every X that determines what
    /// is protected, but for what is known of it.
    fn followed(&self, rule: &SubmittedRule) -> Result<Vec<AttrSet>, String> {
        let mut all = vec![rule.protects.attributes()];
        let mut next = 0;
        while next < all.len() {
            let protects = all[next];
            next += 1;
            for &(determinant, dependent) in self.evidence.dependencies {
                for told in protects.intersection(dependent).iter() {
                    let follows = protects.without(told).union(determinant).minus(rule.known);
                    if follows.is_empty() {
                        return Err("what is known determines what it protects".to_owned());
                    }
                    if !rule.guarantee.covers_combinations() {
                        return Err("its guarantee cannot be kept beside a dependency".to_owned());
                    }
                    // a set that holds another one of the list is protected with it
                    if !all.iter().any(|known| known.is_subset(follows)) {
                        all.push(follows);
                    }
                    if all.len() > MAX_FOLLOWED {
                        return Err("too much follows from the dependencies to be checked".to_owned());
                    }
                }
            }
        }
        Ok(all.split_off(1))
    }

    /// A rule holds: one of the attributes it protects is eligible and not told (versatile publishing, Theorem 4.1; for a
    /// combination any one suffices, since a joint value is no more likely than each of its values).
    fn holds(&self, known: AttrSet, protects: Protected, guarantee: Guarantee) -> Result<(), String> {
        let sensitive = protects.attributes();
        if sensitive.is_empty() || sensitive.meets(known) {
            return Err("its sides are empty or meet".to_owned());
        }
        let mut fault = String::new();
        for attr in sensitive.iter() {
            fault = match gnf::status(&self.nodes, known, attr, guarantee) {
                Status::Violated(reaching) => {
                    let (reaching, attr) = (self.evidence.list(reaching), self.evidence.name(attr));
                    format!("{reaching} reach {attr} and no table guards it")
                }
                _ if !self.eligible(attr, guarantee) => {
                    format!("{} has a value too frequent for the guarantee", self.evidence.name(attr))
                }
                Status::Unreachable | Status::Guarded(_) => return Ok(()),
            };
        }
        Err(fault)
    }

    /// Whether the attribute by itself keeps the guarantee. One that is neither in the original nor in a part that could
    /// be read is published nowhere only if no table claims it.
    fn eligible(&self, attr: Attr, guarantee: Guarantee) -> bool {
        match self.counts.get(attr.index()).and_then(Option::as_ref) {
            Some(counts) => {
                let whole: Vec<(u32, u64)> = (0..).zip(counts.iter().copied()).collect();
                Shares::of(&whole, counts, &self.ruled_out[attr.index()]).keep(guarantee)
            }
            None => !self.nodes.iter().any(|node| node.attributes.contains(attr)),
        }
    }

    /// The rules that were submitted at a pointer.
    fn at<'s>(&'s self, pointer: &'s str) -> impl Iterator<Item = &'s SubmittedRule> {
        self.evidence.submitted.iter().filter(move |rule| rule.pointer == pointer)
    }

    /// A listed rule was submitted or says why it was added, and is held by what it says.
    fn listed(&self, standing: &RuleStanding) -> Result<(), String> {
        match (&standing.pointer, standing.origin) {
            (Some(pointer), Origin::Submitted | Origin::ImpliedBy) => {
                if !self.at(pointer).any(|rule| same(rule, standing)) {
                    return Err("it is listed and was not submitted".to_owned());
                }
            }
            (None, Origin::FromDependency) => {
                let follows = |rule: &SubmittedRule| {
                    let protects = standing.protects.attributes();
                    rule.known == standing.known
                        && rule.guarantee == standing.guarantee
                        && self.followed(rule).is_ok_and(|followed| followed.contains(&protects))
                };
                if !self.evidence.submitted.iter().any(follows) {
                    return Err("it follows from no rule and no dependency".to_owned());
                }
            }
            _ => return Err("its origin and its pointer disagree".to_owned()),
        }
        if let Some(Because::Rule(pointer)) = &standing.because {
            let implies = |rule: &SubmittedRule| {
                standing.known.is_subset(rule.known)
                    && rule.protects.attributes().is_subset(standing.protects.attributes())
                    && at_least(rule.guarantee, standing.guarantee)
            };
            if !self.at(pointer).any(implies) {
                return Err(format!("rule {pointer} does not imply it"));
            }
        }
        self.holds(standing.known, standing.protects, standing.guarantee)?;
        let confirmed = standing.protects.attributes().iter().any(|attr| {
            let status = gnf::status(&self.nodes, standing.known, attr, standing.guarantee);
            self.eligible(attr, standing.guarantee) && self.confirms(&status, &standing.held_by)
        });
        if confirmed { Ok(()) } else { Err("it is not held by what it says".to_owned()) }
    }

    fn confirms(&self, status: &Status, held_by: &HeldBy) -> bool {
        let name = |index: usize| &self.evidence.publication.tables[index].name;
        match (status, held_by) {
            (Status::Unreachable, HeldBy::Unreachable) => true,
            (Status::Guarded(guardians), HeldBy::Guardian { table, known }) => {
                guardians.iter().any(|(index, entered)| name(*index) == table && entered == known)
            }
            (Status::Guarded(guardians), HeldBy::Table(table)) => {
                guardians.iter().any(|(index, _)| name(*index) == table)
            }
            _ => false,
        }
    }
}

fn same(rule: &SubmittedRule, standing: &RuleStanding) -> bool {
    standing.pointer.as_ref() == Some(&rule.pointer)
        && standing.known == rule.known
        && standing.protects == rule.protects
        && standing.guarantee == rule.guarantee
}
