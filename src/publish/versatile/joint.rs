//! Combinations that only their joint value can protect, as each attribute has too frequent a value.
//!
//! Such a combination is one attribute while tables are decided. An adversary who knows part of it is assumed to know all of it.
//! The resulting tables hold all attributes in place of the one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::super::assign::SensitiveCodes;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, AttributeCounts};
use crate::privacy::{self, IneligibilityReason, PrivacyRule};
use crate::publication::{Protected, TableGuard};
use crate::publish::designed_rule::{DesignedRule, RuleRejection};
use crate::publish::designed_table::{Bucketized, DesignedTable};
use crate::publish::input::PlanInput;

const OVERLAPPING_COMBINATION_DETAIL: &str = "some of the combination is protected by another rule too, alone or in another combination; where no \
                        attribute of a combination is rare enough by itself, no other rule can protect one of them";

const NO_RARE_ATTRIBUTE_DETAIL: &str = "no attribute of the combination is rare enough by itself; its joint value is protected by uad without \
                     addback alone";

/// Judges a combination that another rule implies on what that rule protects: tables are decided for that one.
pub(super) fn follow_implying(rules: &mut [DesignedRule]) {
    for index in 0..rules.len() {
        let Some(by) = rules[index].implied_by.map(|by| &rules[by]) else { continue };
        let (sensitive, judged) = (by.rule.sensitive, by.judged);
        let implied = &mut rules[index];
        if judged.attributes().is_subset(implied.protects.attributes()) {
            implied.rule.sensitive = sensitive;
            implied.judged = judged;
        }
    }
}

/// Decides which combinations are protected by their joint value, and rejects rules that conflict with these.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn settle(rules: &mut [DesignedRule], input: &PlanInput<'_>, control: &Control) -> Result<(), Cancelled> {
    let mut joints = JointCountCache { input, control, known: HashMap::new() };
    let combination = |rule: &DesignedRule| match rule.protects {
        Protected::Joint(attrs) if rule.determined_by().is_none() => Some(attrs),
        _ => None,
    };
    let mut lacking: Vec<(AttrSet, usize)> = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.ineligibility().is_some() && rule.implied_by.is_none())
        .filter_map(|(index, rule)| Some((combination(rule)?, index)))
        .collect();
    // protection of a smaller combination protects the larger one
    lacking.sort_by_key(|&(attrs, index)| (attrs.len(), index));
    let mut chosen: Vec<AttrSet> = Vec::new();
    for (attrs, index) in lacking {
        match joints.within(&chosen, attrs, &rules[index].rule)? {
            Some(_) => {}
            None => match joints.judge(attrs, &rules[index].rule)? {
                Ok(_) if !chosen.contains(&attrs) => chosen.push(attrs),
                Ok(_) => {}
                Err(ineligible) => {
                    rules[index].largest_l = ineligible.largest_l;
                    rules[index].reject(RuleRejection::Ineligible(ineligible));
                }
            },
        }
    }
    if chosen.is_empty() {
        return Ok(());
    }
    for rule in rules.iter_mut() {
        let Some(attrs) = combination(rule) else { continue };
        if let Some((joint, largest_l)) = joints.within(&chosen, attrs, &rule.rule)? {
            rule.judged = Protected::Joint(joint);
            rule.rule.sensitive = first(joint);
            rule.largest_l = largest_l;
            rule.take_ineligibility();
        }
    }
    for rule in rules.iter_mut().filter(|rule| rule.implied_by.is_none() && !rule.is_refused()) {
        let other = |joint: &&AttrSet| rule.judged != Protected::Joint(**joint);
        let judged = rule.judged.attributes();
        if chosen.iter().filter(other).any(|joint| joint.meets(judged)) {
            rule.reject(RuleRejection::Unsupported(OVERLAPPING_COMBINATION_DETAIL));
        }
    }
    Ok(())
}

/// Rejects combinations that need their joint value, for algorithms that separate or repeat attributes.
pub(super) fn refuse_combinations(rules: &mut [DesignedRule]) {
    for rule in rules.iter_mut().filter(|rule| matches!(rule.judged, Protected::Joint(_))) {
        rule.reject(RuleRejection::Unsupported(NO_RARE_ATTRIBUTE_DETAIL));
    }
}

/// The attribute that represents a combination.
fn first(joint: AttrSet) -> Attr {
    joint.iter().next().unwrap_or(Attr(0))
}

/// Counts of joint values, each computed once.
struct JointCountCache<'a> {
    input: &'a PlanInput<'a>,
    control: &'a Control,
    known: HashMap<AttrSet, JointCounts>,
}

/// Counts of the joint values of a combination. Without rows, bounds that follow from single attributes.
struct JointCounts {
    rows: u64,
    largest: u64,
    distinct: u64,
    values: Option<Vec<u64>>,
}

impl AttributeCounts for JointCounts {
    fn rows(&self) -> u64 {
        self.rows
    }
    fn attributes(&self) -> usize {
        1
    }
    fn largest(&self, _: Attr) -> u64 {
        self.largest
    }
    fn distinct(&self, _: Attr) -> u64 {
        self.distinct
    }
    fn of_values(&self, _: Attr) -> Option<Vec<u64>> {
        self.values.clone()
    }
}

impl JointCountCache<'_> {
    /// A chosen combination within another whose joint value keeps the guarantee of the rule, with its largest diversity.
    fn within(
        &mut self,
        chosen: &[AttrSet],
        attrs: AttrSet,
        rule: &PrivacyRule,
    ) -> Result<Option<(AttrSet, u64)>, Cancelled> {
        for &joint in chosen.iter().filter(|joint| joint.is_subset(attrs)) {
            if let Ok(largest_l) = self.judge(joint, rule)? {
                return Ok(Some((joint, largest_l)));
            }
        }
        Ok(None)
    }

    /// Largest diversity of a joint value, or why it does not keep the guarantee over the whole table.
    fn judge(&mut self, joint: AttrSet, rule: &PrivacyRule) -> Result<Result<u64, IneligibilityReason>, Cancelled> {
        let counts = match self.known.entry(joint) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(JointCounts::new(joint, self.input, self.control)?),
        };
        Ok(privacy::check_eligibility(rule, counts).map(|()| counts.rows / counts.largest.max(1)))
    }
}

impl JointCounts {
    fn new(joint: AttrSet, input: &PlanInput<'_>, control: &Control) -> Result<Self, Cancelled> {
        let rows = input.counts.rows();
        if let Some(data) = input.rows {
            let values = SensitiveCodes::new(data.table, joint, control)?.counts().to_vec();
            let largest = values.iter().copied().max().unwrap_or(0);
            return Ok(Self { rows, largest, distinct: values.len() as u64, values: Some(values) });
        }
        let product = |all: u64, attr| all.saturating_mul(input.counts.distinct(attr).max(1));
        let distinct = joint.iter().fold(1_u64, product).min(rows);
        // lower bounds: rows with the most frequent value of every attribute, and the average number of rows of a joint value
        let others = |attr| rows - input.counts.largest(attr).min(rows);
        let together = rows.saturating_sub(joint.iter().map(others).sum());
        let largest = together.max(rows.div_ceil(distinct.max(1)));
        Ok(Self { rows, largest, distinct, values: None })
    }
}

/// Combinations represented by single attributes.
#[derive(Default)]
pub(super) struct CombinationContraction(Vec<AttrSet>);

impl CombinationContraction {
    /// The combinations that rules protect by their joint value. They are disjoint if no rule is rejected.
    pub(super) fn from_rules(rules: &[DesignedRule]) -> Self {
        let mut joints: Vec<AttrSet> = Vec::new();
        for rule in rules {
            if let Protected::Joint(joint) = rule.judged
                && !joints.iter().any(|other| other.meets(joint))
            {
                joints.push(joint);
            }
        }
        Self(joints)
    }

    /// The attributes, with one in place of each combination that they meet.
    pub(super) fn contract(&self, attributes: AttrSet) -> AttrSet {
        let met = self.0.iter().filter(|joint| joint.meets(attributes));
        met.fold(attributes, |set, joint| set.minus(*joint).with(first(*joint)))
    }

    fn expand(&self, attributes: AttrSet) -> AttrSet {
        let met = self.0.iter().filter(|joint| joint.meets(attributes));
        met.fold(attributes, |set, joint| set.union(*joint))
    }

    /// The rule among contracted attributes.
    pub(super) fn rule(&self, rule: &PrivacyRule) -> PrivacyRule {
        PrivacyRule { known: self.contract(rule.known), ..*rule }
    }

    /// Whether the attribute belongs to a combination.
    pub(super) fn holds(&self, attr: Attr) -> bool {
        self.0.iter().any(|joint| joint.contains(attr))
    }

    /// A table that was decided among contracted attributes, with all attributes of each combination.
    pub(super) fn table(&self, attributes: AttrSet, bucketized: Option<Bucketized>) -> DesignedTable {
        let bucketized = bucketized.map(|bucketized| Bucketized {
            parts: bucketized.parts.into_iter().map(|part| self.expand(part)).collect(),
            guards: bucketized.guards.into_iter().map(|guard| self.guard(guard)).collect(),
            buckets: bucketized.buckets,
            strata: bucketized.strata,
            closed: bucketized.closed,
        });
        DesignedTable::new(self.expand(attributes), bucketized)
    }

    fn guard(&self, guard: TableGuard) -> TableGuard {
        let protects = match guard.protects {
            Protected::Attribute(attr) => {
                let joint = self.0.iter().find(|joint| joint.contains(attr));
                joint.map_or(guard.protects, |joint| Protected::Joint(*joint))
            }
            Protected::Joint(_) | Protected::Rows => guard.protects,
        };
        TableGuard { known: self.expand(guard.known), protects, ..guard }
    }
}
