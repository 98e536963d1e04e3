//! Rules that tables of earlier releases break by themselves, since a dependency became known after them.
//!
//! # Citations
//! docs/spec/dependencies.md#algorithm

use uuid::Uuid;

use super::exclusions::ExcludedBySpec;
use super::linked::LinkedKnowledge;
use super::union::{CandidateRelease, EarlierRule, LedgerUnion};
use super::{AttributeIdentities, EarlierDisclosures, RecordedDependency, TooManyAttributesError};
use crate::microdata::AttrSet;
use crate::privacy::TableSchema;
use crate::privacy::links::{KnownDependencies, KnownDependency, Link};

/// Nothing new: what earlier releases do by themselves.
const NO_RELEASE: CandidateRelease<'static> = CandidateRelease { tables: &[], exclusive: &[], rules: &[] };

/// An active rule that no longer holds, since a dependency became known after the release of the rule.
///
/// Nothing can repair it. Its tables are safe from nothing: no release may share an attribute with them or the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleWeakening {
    /// The release of the rule.
    pub release: Uuid,
    /// The pointer of the rule into its specification.
    pub pointer: Option<String>,
    /// The dependency that broke it; of several the last to become known.
    pub dependency: RecordedDependency,
    /// The attributes that tables and links connect with the protected one, by name.
    pub attributes: Vec<String>,
}

/// What names a rule in a series.
type RuleName<'a> = (Uuid, Option<&'a str>);

impl RuleWeakening {
    fn rule(&self) -> RuleName<'_> {
        (self.release, self.pointer.as_deref())
    }
}

fn name_of(rule: &EarlierRule) -> RuleName<'_> {
    (rule.release, rule.pointer.as_deref())
}

/// The rules that the tables of a ledger break beside its dependencies and statements, and not without.
///
/// # Errors
/// [`TooManyAttributesError`]
pub fn weakened_rules(earlier: &EarlierDisclosures) -> Result<Vec<RuleWeakening>, TooManyAttributesError> {
    let undeclared = EarlierDisclosures { identities: AttributeIdentities::default(), ..earlier.clone() };
    let (union, undeclared) = (LedgerUnion::new(&[], earlier)?, LedgerUnion::new(&[], &undeclared)?);
    let mut weakened = undeclared.weakened(&NO_RELEASE, &undeclared.series.recorded);
    let broken_anyway = undeclared.broken(&[]);
    for (rule, attributes) in union.broken(&union.series.recorded) {
        let is_known = weakened.iter().any(|weakened| weakened.rule() == name_of(rule));
        if is_known || broken_anyway.iter().any(|(broken, _)| name_of(broken) == name_of(rule)) {
            continue;
        }
        // a statement ties the attributes
        let ties = |known: &&KnownDependency| Link::from(known.dependency).attributes.meets(attributes);
        let declared = union.series.recorded.iter().rev().find(ties);
        weakened.extend(declared.map(|declared| union.weakened_rule(rule, declared, attributes)));
    }
    Ok(weakened)
}

impl LedgerUnion {
    /// The rules of earlier releases that still hold, and no longer will once the new release is recorded.
    #[must_use]
    pub fn newly_weakened(&self, release: &CandidateRelease<'_>) -> Vec<RuleWeakening> {
        let weakened = self.weakened(release, &self.series.once_recorded());
        let before = self.weakened(&NO_RELEASE, &self.series.recorded);
        weakened.into_iter().filter(|weakened| before.iter().all(|before| before.rule() != weakened.rule())).collect()
    }

    /// The submitted rules that earlier tables alone violate beside known dependencies, and not without.
    fn weakened(&self, release: &CandidateRelease<'_>, known: &[KnownDependency]) -> Vec<RuleWeakening> {
        let visible = self.visible(release);
        let knowledge = LinkedKnowledge::new(KnownDependencies::new(known, &[]), visible);
        if !knowledge.has_links() {
            return Vec::new();
        }
        let weakened = |(rule, annotations): (&EarlierRule, _)| {
            let tables = self.exclusions.serving(&self.schemas, &rule.demand, annotations);
            knowledge.judge(&tables, &rule.demand)?;
            let dependency = RuleCheck { rule, tables: &tables, visible }.breaking(known)?;
            Some(self.weakened_rule(rule, &dependency, knowledge.component(rule.demand.protects, &tables)))
        };
        self.submitted().filter_map(weakened).collect()
    }

    /// The submitted rules that earlier tables violate, each with the attributes that are connected with its protected one.
    fn broken(&self, known: &[KnownDependency]) -> Vec<(&EarlierRule, AttrSet)> {
        let knowledge = LinkedKnowledge::new(KnownDependencies::new(known, &[]), self.visible(&NO_RELEASE));
        let broken = |(rule, annotations): (&'_ EarlierRule, &ExcludedBySpec)| {
            let tables = self.exclusions.serving(&self.schemas, &rule.demand, annotations);
            let is_broken = knowledge.judge(&tables, &rule.demand).is_some();
            is_broken.then(|| knowledge.component(rule.demand.protects, &tables))
        };
        self.submitted().filter_map(|(rule, annotations)| Some((rule, broken((rule, annotations))?))).collect()
    }

    /// The active rules with their annotations, without those that follow from a dependency.
    fn submitted(&self) -> impl Iterator<Item = (&EarlierRule, &ExcludedBySpec)> {
        self.protection.iter().zip(&self.exclusions.rules).filter(|(rule, _)| rule.pointer.is_some())
    }

    fn weakened_rule(&self, rule: &EarlierRule, dependency: &KnownDependency, connected: AttrSet) -> RuleWeakening {
        let mut attributes = self.places.named(connected);
        attributes.sort_unstable();
        RuleWeakening {
            release: rule.release,
            pointer: rule.pointer.clone(),
            dependency: self.recorded_form(dependency),
            attributes,
        }
    }
}

/// A rule beside the tables that may break it.
struct RuleCheck<'a> {
    rule: &'a EarlierRule,
    tables: &'a [TableSchema],
    visible: AttrSet,
}

impl RuleCheck<'_> {
    /// Whether the tables violate the rule beside known dependencies.
    fn is_broken_by(&self, known: &[KnownDependency]) -> bool {
        let knowledge = LinkedKnowledge::new(KnownDependencies::new(known, &[]), self.visible);
        knowledge.judge(self.tables, &self.rule.demand).is_some()
    }

    /// The first dependency with which, and with those before it, the rule is violated; none if it is without any.
    fn breaking(&self, known: &[KnownDependency]) -> Option<KnownDependency> {
        let first = (0..=known.len()).find(|&so_far| self.is_broken_by(&known[..so_far]))?;
        first.checked_sub(1).map(|last| known[last])
    }
}
