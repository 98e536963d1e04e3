//! Checks of every submitted rule: it is eligible, holds by the verifier's search, and is listed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::dependencies::linked_tables;
use super::tables_report::TablesReport;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::publication::{
    EnforcedBy, EnforcedRule, Guarantee, Protected, PublishedTable, RuleDerivation, RuleOrigin, SubmittedRule,
};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::claim;
use crate::verifier::contract::claim::{ValueCounts, protections};
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::definition::dependencies::follow_dependencies;
use crate::verifier::definition::gnf;
use crate::verifier::definition::gnf::{LiteralStatus, LiteralTable};
use crate::verifier::definition::guarantee::{BucketShares, at_least};
use crate::verifier::definition::links::LinkedTables;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::read::joint_column::refine;

/// Checks the submitted rules and every listed rule.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    report: TablesReport,
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), Cancelled> {
    let TablesReport { counts, declared, combined, constant, .. } = report;
    let publication = input.publication;
    let search = RuleSearch {
        input,
        control,
        nodes: publication.tables.iter().map(LiteralTable::from_published).collect(),
        linked: linked_tables(input, &constant, input.dependencies),
        // with an original, parts show counts of persistent buckets alone
        declared: declared
            .into_iter()
            .zip(&counts)
            .enumerate()
            .map(|(index, (shown, counted))| match input.original {
                Some(original) if index < original.attributes().len() && counted.is_none() => {
                    let attr = Attr::from(index);
                    let domain = &original.column(attr).domain;
                    input.declared(attr, (0..domain.len() as u32).map(|code| domain.value(code)))
                }
                _ => shown,
            })
            .collect(),
        counts: counts
            .into_iter()
            .enumerate()
            .map(|(index, shown)| match input.original {
                Some(original) if index < original.attributes().len() && shown.is_none() => {
                    Some(original.column(Attr::from(index)).counts())
                }
                _ => shown,
            })
            .collect(),
        combined: RefCell::new(combined),
    };
    for rule in input.submitted {
        if let Err(detail) = search.submitted(rule) {
            log.fail(CheckName::Gnf, format!("rule {}: {detail}", rule.pointer));
        }
    }
    for protection in &publication.rules {
        let name = protection.pointer.as_deref().unwrap_or("from a dependency");
        if let Err(detail) = search.listed(protection) {
            log.fail(CheckName::Gnf, format!("rule {name}: {detail}"));
        }
    }
    // a combination that was not counted counts as not eligible
    control.check()
}

struct RuleSearch<'a> {
    input: &'a VerifierInput<'a>,
    control: &'a Control,
    nodes: Vec<LiteralTable<'a>>,
    /// The tables with the links of dependencies, where these constrain guards.
    linked: Option<LinkedTables>,
    counts: Vec<Option<ValueCounts>>,
    /// What the caller declares about the values of the counts.
    declared: Vec<DeclaredValues>,
    /// The counts of combinations computed so far.
    combined: RefCell<BTreeMap<AttrSet, ValueCounts>>,
}

impl RuleSearch<'_> {
    /// Checks that a submitted rule holds and is listed.
    fn submitted(&self, rule: &SubmittedRule) -> Result<(), String> {
        self.insiders(rule.protects.attributes())?;
        if let Guarantee::KAnonymity { .. } = rule.guarantee {
            claim::hides(self.input, rule.known)?;
        } else {
            self.holds(rule.known, rule.protects, rule.guarantee)?;
            // a rule that holds beside the links keeps what follows from them
            let kept =
                self.linked.as_ref().is_some_and(|linked| linked.hold(rule.known, rule.protects, rule.guarantee));
            let followed = match self.followed(rule) {
                Err(_) if kept => Vec::new(),
                // a decomposition does not link dependent sensitive values to rows
                Ok(_) if claim::DecompositionClaim::from_input(self.input).is_some() => Vec::new(),
                followed => followed?,
            };
            for follows in followed {
                self.insiders(follows)?;
                if kept {
                    continue;
                }
                let because =
                    |fault| format!("by a dependency {} must stay protected: {fault}", self.input.list(follows));
                self.holds(rule.known, Protected::Joint(follows), rule.guarantee).map_err(because)?;
            }
        }
        let listed = self.input.publication.rules.iter().any(|protection| same(rule, protection));
        if listed { Ok(()) } else { Err("it is not listed".to_owned()) }
    }

    /// Checks that excluded values imply declared exclusions of their determinants.
    ///
    /// An insider who excludes values of an attribute also excludes each value of a determinant that occurs with
    /// excluded values alone. Needs the original.
    fn insiders(&self, protected: AttrSet) -> Result<(), String> {
        let single = protected.iter().next().filter(|_| protected.len() == 1);
        let Some((original, attr)) = self.input.original.zip(single) else { return Ok(()) };
        let excluded = self.declared.get(attr.index()).map(|declared| &declared.excluded);
        let Some(excluded) = excluded.filter(|excluded| !excluded.is_empty()) else { return Ok(()) };
        for (determinant, dependent) in self.input.dependencies {
            if !dependent.contains(attr) || !determinant.is_subset(original.attributes()) {
                continue;
            }
            let mut is_informative: BTreeMap<Vec<u32>, bool> = BTreeMap::new();
            for row in 0..original.rows() {
                let values = determinant.iter().map(|of| original.column(of).codes.get(row)).collect();
                let value = original.column(attr).codes.get(row);
                *is_informative.entry(values).or_default() |= !excluded.contains(&value);
            }
            let is_declared = |values: &[u32]| match (determinant.iter().next(), values) {
                (Some(of), [value]) => self.declared[of.index()].excluded.contains(value),
                _ => false,
            };
            if is_informative.iter().any(|(values, is_informative)| !is_informative && !is_declared(values)) {
                let (from, to) = (self.input.list(*determinant), self.input.name(attr));
                return Err(format!(
                    "values of {from} occur only with excluded values of {to}, and are not declared excludable"
                ));
            }
        }
        Ok(())
    }

    fn followed(&self, rule: &SubmittedRule) -> Result<Vec<AttrSet>, String> {
        follow_dependencies(rule, self.input.dependencies).map_err(str::to_owned)
    }

    /// Checks that a rule holds [Jin et al. 2010, Theorem 4.1].
    ///
    /// One protected attribute or combination must be eligible and protected.
    fn holds(&self, known: AttrSet, protects: Protected, guarantee: Guarantee) -> Result<(), String> {
        let sensitive = protects.attributes();
        if sensitive.is_empty() || sensitive.meets(known) {
            return Err("its sides are empty or meet".to_owned());
        }
        if sensitive.len() > 1 && !guarantee.covers_combinations() {
            return Err("its guarantee says nothing of combinations".to_owned());
        }
        let mut fault = String::new();
        for part in protections(self.input, protects) {
            let names = self.input.list(part.attributes());
            fault = match self.status(known, part, guarantee) {
                LiteralStatus::Violated(reaching) => {
                    format!("{} reach {names} and no table guards it", self.input.list(reaching))
                }
                _ if !self.eligible(part, guarantee) => {
                    format!("{names} has a value too frequent for the guarantee")
                }
                LiteralStatus::Unreachable | LiteralStatus::Guarded(_) => return Ok(()),
            };
        }
        Err(fault)
    }

    fn status(&self, known: AttrSet, sensitive: Protected, guarantee: Guarantee) -> LiteralStatus {
        match sensitive {
            Protected::Attribute(attr) if claim::keeps_alone(self.input, known, attr, guarantee) => {
                LiteralStatus::Guarded(vec![(0, known)])
            }
            Protected::Attribute(attr)
                if claim::DecompositionClaim::from_input(self.input)
                    .is_some_and(|claim| claim.covers(known, attr, guarantee)) =>
            {
                LiteralStatus::Guarded(vec![(0, known)])
            }
            Protected::Attribute(attr) => match claim::SlicingClaim::from_input(self.input) {
                // the one table there is
                Some(claim) if claim.covers(known, attr, guarantee) => {
                    LiteralStatus::Guarded(vec![(0, known.intersection(claim.attributes()))])
                }
                _ => gnf::status(&self.nodes, known, attr, guarantee),
            },
            Protected::Joint(attrs) => gnf::joint_status(&self.nodes, known, attrs, guarantee),
            Protected::Rows => LiteralStatus::Violated(known),
        }
    }

    /// Whether the attribute or combination by itself satisfies the guarantee.
    ///
    /// Without counts, it does if no table claims any of the attributes.
    fn eligible(&self, sensitive: Protected, guarantee: Guarantee) -> bool {
        let is_eligible = |counts: &ValueCounts, declared: &DeclaredValues| {
            let whole: Vec<(u32, u64)> = (0..).zip(counts.iter().copied()).collect();
            BucketShares::new(&whole, counts, declared).satisfies(guarantee)
        };
        let attributes = sensitive.attributes();
        // a joint table that lacks rows does not show the counts of its values
        let claim = claim::DecompositionClaim::from_input(self.input).filter(|_| self.input.original.is_none());
        if claim.is_some_and(|claim| claim.leaves_out() && !self.shown(attributes)) {
            return true;
        }
        let found = match sensitive {
            Protected::Attribute(attr) => {
                let counts = self.counts.get(attr.index()).and_then(Option::as_ref);
                counts.map(|counts| is_eligible(counts, &self.declared[attr.index()]))
            }
            Protected::Joint(attrs) => {
                let mut combined = self.combined.borrow_mut();
                if let Some(original) = self.input.original.filter(|o| attrs.is_subset(o.attributes()))
                    && !combined.contains_key(&attrs)
                {
                    let Ok(counts) = joint_counts(original, attrs, self.control) else { return false };
                    combined.insert(attrs, counts);
                }
                combined.get(&attrs).map(|counts| is_eligible(counts, &DeclaredValues::default()))
            }
            Protected::Rows => None,
        };
        found.unwrap_or_else(|| !self.nodes.iter().any(|node| node.attributes.meets(attributes)))
    }

    /// Whether the parts show the counts of the attributes.
    fn shown(&self, attributes: AttrSet) -> bool {
        attributes.iter().all(|attr| self.counts.get(attr.index()).is_some_and(Option::is_some))
    }

    /// The submitted rules with a pointer.
    fn at<'s>(&'s self, pointer: &'s str) -> impl Iterator<Item = &'s SubmittedRule> {
        self.input.submitted.iter().filter(move |rule| rule.pointer == pointer)
    }

    /// Checks that a listed rule was submitted or follows from one, and holds for the claimed reason.
    fn listed(&self, protection: &EnforcedRule) -> Result<(), String> {
        match (&protection.pointer, protection.origin) {
            (Some(pointer), RuleOrigin::Submitted | RuleOrigin::ImpliedBy) => {
                if !self.at(pointer).any(|rule| same(rule, protection)) {
                    return Err("it is listed and was not submitted".to_owned());
                }
            }
            (None, RuleOrigin::FromDependency) => {
                let follows = |rule: &SubmittedRule| {
                    let protects = protection.protects.attributes();
                    rule.known == protection.known
                        && rule.guarantee == protection.guarantee
                        && self.followed(rule).is_ok_and(|followed| followed.contains(&protects))
                };
                if !self.input.submitted.iter().any(follows) {
                    return Err("it follows from no rule and no dependency".to_owned());
                }
            }
            _ => return Err("its origin and its pointer disagree".to_owned()),
        }
        if let Some(RuleDerivation::Rule(pointer)) = &protection.because {
            let implies = |rule: &SubmittedRule| {
                protection.known.is_subset(rule.known)
                    && rule.protects.attributes().is_subset(protection.protects.attributes())
                    && at_least(rule.guarantee, protection.guarantee)
            };
            if !self.at(pointer).any(implies) {
                return Err(format!("rule {pointer} does not imply it"));
            }
        }
        if let Guarantee::KAnonymity { .. } = protection.guarantee {
            let is_enforced_by =
                |table: &PublishedTable| protection.enforced_by == EnforcedBy::Table(table.name.clone());
            let listed =
                self.input.publication.tables.iter().any(|table| table.is_generalized() && is_enforced_by(table));
            return if listed { Ok(()) } else { Err("it is not enforced by the claimed table".to_owned()) };
        }
        self.holds(protection.known, protection.protects, protection.guarantee)?;
        let confirmed = protections(self.input, protection.protects).any(|part| {
            let status = self.status(protection.known, part, protection.guarantee);
            self.confirms(&status, &protection.enforced_by) && self.eligible(part, protection.guarantee)
        });
        if confirmed { Ok(()) } else { Err("it is not enforced for the claimed reason".to_owned()) }
    }

    fn confirms(&self, status: &LiteralStatus, enforced_by: &EnforcedBy) -> bool {
        let name = |index: usize| &self.input.publication.tables[index].name;
        match (status, enforced_by) {
            (LiteralStatus::Unreachable, EnforcedBy::Unreachable) => true,
            (LiteralStatus::Guarded(guardians), EnforcedBy::Guardian { table, known }) => {
                guardians.iter().any(|(index, entry)| name(*index) == table && entry == known)
            }
            (LiteralStatus::Guarded(guardians), EnforcedBy::Table(table)) => {
                guardians.iter().any(|(index, _)| name(*index) == table)
            }
            _ => false,
        }
    }
}

/// Number of rows of the original with each combination of values.
fn joint_counts(original: &Table, attributes: AttrSet, control: &Control) -> Result<ValueCounts, Cancelled> {
    let mut ids = vec![0; original.rows()];
    let mut size = 0;
    for attr in attributes.iter() {
        size = refine(&mut ids, &original.column(attr).codes, control)?;
    }
    let mut counts = vec![0; size as usize];
    ids.iter().for_each(|id| counts[*id as usize] += 1);
    Ok(counts)
}

fn same(rule: &SubmittedRule, protection: &EnforcedRule) -> bool {
    protection.pointer.as_ref() == Some(&rule.pointer)
        && protection.known == rule.known
        && protection.protects == rule.protects
        && protection.guarantee == rule.guarantee
}
