//! A rule of a design, and the reasons why no publication satisfies it.

use std::cmp::Reverse;

use super::input::PlanInput;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::{self, Dependency, IneligibilityReason, PrivacyRule, RuleDemand, RuleStatus};
use crate::problem::{Fault, Kind};
use crate::publication::{Guarantee, Protected, SubmittedRule};

/// Pointer of a rule that follows from a dependency and so has none of its own.
const RULES_POINTER: &str = "/method/rules";

/// A submitted rule, or one that follows from a dependency.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesignedRule {
    /// JSON pointer of the rule in the specification; `None` for a rule that follows.
    pub pointer: Option<String>,
    /// Protected attributes, as submitted.
    pub protects: Protected,
    /// The rule that tables are decided by. For a combination, its sensitive attribute protects or stands for the whole.
    pub rule: PrivacyRule,
    /// Protected attributes that tables are judged on: one, or a combination whose joint value alone can be protected.
    pub judged: Protected,
    /// The dependency that the rule follows from.
    pub follows_from: Option<Dependency>,
    /// Index of a rule that implies this one.
    pub implied_by: Option<usize>,
    /// Reasons why no publication satisfies the rule: at most one of a rank, ordered by rank.
    pub rejections: Vec<RuleRejection>,
    /// Largest diversity that the data allows for the sensitive attribute.
    pub largest_l: u64,
    /// Status of the rule in the tables of this design alone.
    pub status: RuleStatus,
}

/// Why no publication satisfies a rule. The variants stand in the order of their faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleRejection {
    /// By a dependency, known attributes determine the sensitive one.
    Determined(Dependency),
    /// By a dependency, an insider can rule out more values than are declared. The text says what to do.
    InsiderKnows(Dependency, &'static str),
    /// Dependencies tie the sensitive attribute to known ones, and no strata keep the guarantee.
    Linked(LinkedReason),
    /// The data does not satisfy the guarantee.
    Ineligible(IneligibilityReason),
    /// The method does not support the rule next to the others.
    Unsupported(&'static str),
    /// The method is not proved beside a dependency. The text says what to do.
    Unproved(Dependency, &'static str),
    /// Correlated attributes reveal the sensitive one.
    Correlated(&'static str),
}

/// Why dependencies leave a rule without a publication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkedReason {
    /// The dependency whose link ties the sensitive attribute.
    pub dependency: Option<Dependency>,
    /// The attributes of the strata that break the guarantee; empty where no strata help.
    pub strata: AttrSet,
    /// The largest diversity that every stratum has.
    pub largest_l: Option<u64>,
    /// The number of strata that break the guarantee, and of all strata; `None` where they were not tested.
    pub ineligible: Option<(usize, usize)>,
    /// Whether every published attribute counts as known, so that one leaves the known side only with the release.
    pub is_fixed: bool,
}

impl RuleRejection {
    /// Number of ranks; faults are listed rank by rank.
    pub(super) const RANKS: u8 = 7;

    /// Position of the variant.
    pub(super) const fn rank(self) -> u8 {
        match self {
            Self::Determined(_) => 0,
            Self::InsiderKnows(..) => 1,
            Self::Linked(_) => 2,
            Self::Ineligible(_) => 3,
            Self::Unsupported(_) => 4,
            Self::Unproved(..) => 5,
            Self::Correlated(_) => 6,
        }
    }

    /// The fault of a rule that has this rejection; `None` if another fault says it already.
    pub(super) fn fault(self, rule: &DesignedRule, names: &[String]) -> Option<Fault> {
        let pointer = rule.pointer.as_deref().unwrap_or(RULES_POINTER);
        match self {
            // a rule that follows is the fault of the rule that it follows from
            Self::Determined(dependency) => {
                let detail = "the known attributes determine the sensitive one";
                let fault = dependency_fault(rule.pointer.as_deref()?, Kind::RuleImpossible, dependency, detail, names);
                Some(fault.with("repairs", repairs_of_determined(rule, dependency, names)))
            }
            Self::InsiderKnows(dependency, detail) => {
                Some(dependency_fault(pointer, Kind::GuaranteeUnsupported, dependency, detail, names))
            }
            Self::Linked(reason) => Some(linked_fault(rule, reason, names)),
            Self::Ineligible(reason) => rule.implied_by.is_none().then(|| ineligible_fault(rule, reason)),
            Self::Unsupported(detail) => Some(Fault::new(pointer, Kind::GuaranteeUnsupported, detail)),
            Self::Unproved(dependency, detail) => {
                let fault = dependency_fault(pointer, Kind::GuaranteeUnsupported, dependency, detail, names);
                Some(fault.with("repairs", repairs_of_unproved(dependency, rule, names)))
            }
            Self::Correlated(detail) => {
                (!rule.is_unsupported()).then(|| Fault::new(pointer, Kind::RuleImpossible, detail))
            }
        }
    }
}

impl DesignedRule {
    /// A submitted rule, not yet judged in tables.
    #[must_use]
    pub fn submitted(submitted: &SubmittedRule, input: &PlanInput<'_>) -> Self {
        let demand = demand(submitted);
        Self::new(Some(submitted.pointer.clone()), &demand, &[], input)
    }

    /// A rule that is not yet judged in tables.
    ///
    /// Of a combination, an eligible attribute is protected that most of the `others` protect. Of several, it is the one whose most
    /// frequent value is rarest.
    pub(super) fn new(
        pointer: Option<String>,
        demand: &RuleDemand,
        others: &[RuleDemand],
        input: &PlanInput<'_>,
    ) -> Self {
        let judged = |sensitive: Attr| {
            let rule = PrivacyRule { known: demand.known, sensitive, guarantee: demand.guarantee };
            (rule, privacy::check_eligibility(&rule, input.counts).err())
        };
        let protected = |attr: Attr| others.iter().filter(|other| other.protects == AttrSet::one(attr)).count();
        let rank = |(rule, ineligible): &(PrivacyRule, Option<IneligibilityReason>)| {
            let largest = input.counts.largest(rule.sensitive);
            (ineligible.is_some(), Reverse(protected(rule.sensitive)), largest, rule.sensitive)
        };
        let mut candidates = demand.protects.iter().map(judged);
        // Unwrap safety: a rule protects at least one attribute, by its construction
        #[expect(clippy::unwrap_used)]
        let first = candidates.next().unwrap();
        let (rule, ineligible) = candidates.fold(first, |a, b| if rank(&b) < rank(&a) { b } else { a });
        let protects = match demand.protects.len() {
            1 => Protected::Attribute(rule.sensitive),
            _ => Protected::Joint(demand.protects),
        };
        Self {
            pointer,
            protects,
            judged: Protected::Attribute(rule.sensitive),
            rule,
            follows_from: None,
            implied_by: None,
            rejections: ineligible.into_iter().map(RuleRejection::Ineligible).collect(),
            largest_l: privacy::largest_l(input.counts, rule.sensitive),
            status: RuleStatus::Unreachable,
        }
    }

    /// Adds a rejection, in place of one of the same rank.
    pub(super) fn reject(&mut self, rejection: RuleRejection) {
        self.rejections.retain(|other| other.rank() != rejection.rank());
        self.rejections.push(rejection);
        self.rejections.sort_by_key(|rejection| rejection.rank());
    }

    /// Removes the reason of ineligibility.
    pub(super) fn take_ineligibility(&mut self) -> Option<IneligibilityReason> {
        let reason = self.ineligibility();
        self.rejections.retain(|rejection| !matches!(rejection, RuleRejection::Ineligible(_)));
        reason
    }

    /// Whether no publication satisfies the rule.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        !self.rejections.is_empty()
    }

    /// Whether the method does not support the rule next to the others.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.rejections.iter().any(|rejection| matches!(rejection, RuleRejection::Unsupported(_)))
    }

    /// The dependency by which known attributes determine the sensitive one.
    #[must_use]
    pub fn determined_by(&self) -> Option<Dependency> {
        self.rejections.iter().find_map(|rejection| match rejection {
            RuleRejection::Determined(dependency) => Some(*dependency),
            _ => None,
        })
    }

    /// Why the data does not satisfy the guarantee.
    #[must_use]
    pub fn ineligibility(&self) -> Option<IneligibilityReason> {
        self.rejections.iter().find_map(|rejection| match rejection {
            RuleRejection::Ineligible(reason) => Some(*reason),
            _ => None,
        })
    }

    /// The demand that tables are judged on.
    #[must_use]
    pub const fn demand(&self) -> RuleDemand {
        RuleDemand { known: self.rule.known, protects: self.judged.attributes(), guarantee: self.rule.guarantee }
    }
}

/// The demand of a submitted rule.
pub(super) fn demand(submitted: &SubmittedRule) -> RuleDemand {
    let SubmittedRule { known, protects, guarantee, .. } = submitted;
    RuleDemand { known: *known, protects: protects.attributes(), guarantee: *guarantee }
}

/// The fault of a rule that the data does not satisfy.
fn ineligible_fault(rule: &DesignedRule, reason: IneligibilityReason) -> Fault {
    let IneligibilityReason { requested, largest_l } = reason;
    let detail = match (requested, largest_l) {
        (Guarantee::LDiversity { l }, 0 | 1) => {
            format!("one value of the sensitive attribute is too frequent for any diversity; l = {l} was asked for")
        }
        (Guarantee::LDiversity { l }, _) => format!("the data allows l of at most {largest_l} here; {l} was asked for"),
        (Guarantee::Thresholds { .. }, _) => {
            "some values of the sensitive attribute are more frequent in the table than their thresholds allow"
                .to_owned()
        }
        _ => "the sensitive attribute itself, over the whole table, does not keep the guarantee".to_owned(),
    };
    let detail = match (rule.protects, rule.follows_from) {
        (Protected::Joint(_), _) => {
            format!("neither an attribute of the combination nor its joint value can be protected: {detail}")
        }
        (_, Some(_)) => format!("by a dependency the rules protect one more attribute: {detail}"),
        _ => detail,
    };
    let pointer = rule.pointer.as_deref().unwrap_or(RULES_POINTER);
    let fault = Fault::new(pointer, Kind::RuleIneligible, detail);
    fault.with("requested", requested_bound(requested)).with("largest_l", largest_l)
}

/// The fault of a rule whose sensitive attribute dependencies tie to known ones, with the repairs.
fn linked_fault(rule: &DesignedRule, reason: LinkedReason, names: &[String]) -> Fault {
    let named = |set: AttrSet| -> Vec<&str> {
        set.iter().map(|attr| names.get(attr.index()).map_or("a dropped attribute", String::as_str)).collect()
    };
    let sensitive = named(rule.protects.attributes()).join(" & ");
    let pointer = rule.pointer.as_deref().unwrap_or(RULES_POINTER);
    let known = reason.strata.intersection(rule.rule.known);
    let mut repairs = Vec::new();
    let detail = if reason.strata.is_empty() {
        format!("a chain of tables and dependencies leads from the known attributes to {sensitive}")
    } else {
        let strata = named(reason.strata).join(", ");
        format!(
            "an adversary who knows {strata} infers {sensitive} from the rows with the same {strata} alone, and some of these \
             groups do not keep the guarantee"
        )
    };
    if !known.is_empty() {
        repairs.push(serde_json::json!({ "leave_out_of_known": named(known) }));
    }
    match (rule.rule.guarantee, reason.largest_l) {
        (Guarantee::LDiversity { l }, Some(largest)) if largest > 1 && largest < l => {
            repairs.push(serde_json::json!({ "lower_l": largest }));
        }
        _ => {}
    }
    if (known.is_empty() || reason.is_fixed) && !reason.strata.is_empty() {
        repairs.push(serde_json::json!({ "drop": named(reason.strata) }));
    }
    if rule.rule.guarantee.compares() && rule.rule.guarantee.reference().is_table() {
        repairs.push(serde_json::json!({ "reference": "stratum" }));
    }
    if reason.ineligible.is_some() {
        repairs.push(serde_json::json!({ "ineligible_strata": "closed" }));
    }
    if let Some(Dependency { determinant, dependent }) = reason.dependency {
        let withdrawn =
            serde_json::json!({ "determinant": named(determinant), "dependent": named(AttrSet::one(dependent)) });
        repairs.push(serde_json::json!({ "assume_unknown": withdrawn }));
    }
    let mut fault = match reason.dependency {
        Some(dependency) => dependency_fault(pointer, Kind::RuleImpossible, dependency, &detail, names),
        None => Fault::new(pointer, Kind::RuleImpossible, detail),
    };
    if !reason.strata.is_empty() {
        let mut strata = serde_json::json!({ "attributes": named(reason.strata) });
        if let Some((ineligible, of)) = reason.ineligible {
            strata["ineligible"] = ineligible.into();
            strata["of"] = of.into();
        }
        fault = fault.with("strata", strata);
    }
    if let Some(largest_l) = reason.largest_l {
        fault = fault.with("largest_l", largest_l);
    }
    fault.with("repairs", repairs)
}

/// What may be done about a dependency that a method is not proved beside: other buckets, or an attribute of it is not
/// published.
fn repairs_of_unproved(dependency: Dependency, rule: &DesignedRule, names: &[String]) -> Vec<serde_json::Value> {
    let both = dependency.determinant.with(dependency.dependent).minus(rule.protects.attributes());
    let name = |attr: Attr| names.get(attr.index());
    let dropped = both.iter().filter_map(name).map(|name| serde_json::json!({ "drop": [name] }));
    let is_relative = !rule.rule.guarantee.reference().is_table();
    let table = is_relative.then(|| serde_json::json!({ "reference": "table" }));
    let chosen = [serde_json::json!({ "diversity": "bucket" }), serde_json::json!({ "sizes": "two" })];
    dropped.chain(table).chain(chosen).collect()
}

/// The repairs of a rule whose known attributes determine the sensitive one.
fn repairs_of_determined(rule: &DesignedRule, dependency: Dependency, names: &[String]) -> Vec<serde_json::Value> {
    let named = |set: AttrSet| -> Vec<&str> {
        set.iter().map(|attr| names.get(attr.index()).map_or("a dropped attribute", String::as_str)).collect()
    };
    let Dependency { determinant, dependent } = dependency;
    let known = determinant.intersection(rule.rule.known);
    let left_out = (!known.is_empty()).then(|| serde_json::json!({ "leave_out_of_known": named(known) }));
    let withdrawn =
        serde_json::json!({ "determinant": named(determinant), "dependent": named(AttrSet::one(dependent)) });
    left_out.into_iter().chain([serde_json::json!({ "assume_unknown": withdrawn })]).collect()
}

/// The bound of a guarantee, as the member `requested` of a fault.
fn requested_bound(requested: Guarantee) -> String {
    match requested {
        Guarantee::KAnonymity { k } => k.to_string(),
        Guarantee::LDiversity { l }
        | Guarantee::DistinctLDiversity { l }
        | Guarantee::RecursiveLDiversity { l, .. } => l.to_string(),
        Guarantee::EntropyLDiversity { l } => l.to_string(),
        Guarantee::AlphaK { alpha, .. } => alpha.to_string(),
        Guarantee::TCloseness { t, .. } => t.to_string(),
        Guarantee::Rho { rho2, .. } => rho2.to_string(),
        Guarantee::Delta { b, .. } => b.to_string(),
        Guarantee::Thresholds { .. } => "thresholds".to_owned(),
    }
}

/// A fault of a rule that a dependency causes. `names` are the dataset names of attributes.
pub(super) fn dependency_fault(
    pointer: &str,
    kind: Kind,
    dependency: Dependency,
    detail: &str,
    names: &[String],
) -> Fault {
    let named = |set: AttrSet| -> Vec<&str> {
        set.iter().map(|attr| names.get(attr.index()).map_or("a dropped attribute", String::as_str)).collect()
    };
    let (determinant, dependent) = (named(dependency.determinant), named(AttrSet::one(dependency.dependent)));
    let detail = format!("{detail}: {} determines {}", determinant.join(", "), dependent.join(", "));
    let member = serde_json::json!({ "determinant": determinant, "dependent": dependent });
    Fault::new(pointer, kind, detail).with("dependency", member)
}
