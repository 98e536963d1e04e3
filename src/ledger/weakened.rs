//! Rules that tables of earlier releases break by themselves, since a dependency became known after them.
//!
//! # Citations
//! docs/spec/dependencies.md#algorithm

use uuid::Uuid;

use super::linked::LinkedKnowledge;
use super::union::{EarlierRule, LedgerUnion, NewRelease};
use super::{EarlierDisclosures, RecordedDependency, TooManyAttributesError};
use crate::microdata::AttrSet;
use crate::privacy::TableSchema;
use crate::privacy::links::{KnownDependencies, KnownDependency};

/// Nothing new: what earlier releases do by themselves.
const NO_RELEASE: NewRelease<'static> = NewRelease { tables: &[], exclusive: &[], rules: &[] };

/// An active rule that no longer holds, since a dependency became known after the release of the rule.
///
/// Nothing can repair it. Its tables are safe from nothing: no release may share an attribute with them or the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeakenedRule {
    /// The release of the rule.
    pub release: Uuid,
    /// The pointer of the rule into its specification.
    pub pointer: Option<String>,
    /// The dependency that broke it; of several the last to become known.
    pub dependency: RecordedDependency,
    /// The attributes that tables and links connect with the protected one, by name.
    pub attributes: Vec<String>,
}

impl WeakenedRule {
    fn is_same_rule(&self, other: &Self) -> bool {
        (self.release, &self.pointer) == (other.release, &other.pointer)
    }
}

/// The rules that the tables and the dependencies of a ledger break.
///
/// # Errors
/// [`TooManyAttributesError`]
pub fn weakened_rules(earlier: &EarlierDisclosures) -> Result<Vec<WeakenedRule>, TooManyAttributesError> {
    let union = LedgerUnion::new(&[], earlier)?;
    Ok(union.weakened(&NO_RELEASE, &union.series.recorded))
}

impl LedgerUnion {
    /// The rules of earlier releases that still hold, and no longer will once the new release is recorded.
    #[must_use]
    pub fn newly_weakened(&self, release: &NewRelease<'_>) -> Vec<WeakenedRule> {
        let weakened = self.weakened(release, &self.series.once_recorded());
        let before = self.weakened(&NO_RELEASE, &self.series.recorded);
        weakened.into_iter().filter(|weakened| !before.iter().any(|before| before.is_same_rule(weakened))).collect()
    }

    /// The submitted rules that earlier tables alone violate beside known dependencies, and not without.
    fn weakened(&self, release: &NewRelease<'_>, known: &[KnownDependency]) -> Vec<WeakenedRule> {
        let visible = self.visible(release);
        let knowledge = LinkedKnowledge::new(KnownDependencies::new(known, &[]), visible);
        if !knowledge.has_links() {
            return Vec::new();
        }
        let rules = self.protection.iter().zip(&self.exclusions.rules).filter(|(rule, _)| rule.pointer.is_some());
        let weakened = |(rule, annotations): (&EarlierRule, _)| {
            let tables = self.exclusions.serving(&self.schemas, &rule.demand, annotations);
            let check = RuleCheck { rule, tables: &tables, visible };
            knowledge.judge(&tables, &rule.demand)?;
            let dependency = check.breaking(known)?;
            let connected = knowledge.component(rule.demand.protects, &tables);
            let mut attributes = self.places.named(connected);
            attributes.sort_unstable();
            Some(WeakenedRule {
                release: rule.release,
                pointer: rule.pointer.clone(),
                dependency: self.recorded_form(&dependency),
                attributes,
            })
        };
        rules.filter_map(weakened).collect()
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
