//! The attributes in which the buckets of a table are constant.

use super::super::dependencies::Dependency;
use super::super::rule::RuleDemand;
use super::eligibility::{StrataEligibility, StrataTests};
use super::known::KnownDependencies;
use super::link::Link;
use super::separators::{SeparatedSides, separators};
use super::weights::AttributeWeights;
use crate::control::Cancelled;
use crate::microdata::AttrSet;

/// What the adversary knows of the attributes.
#[derive(Clone, Copy, Debug)]
pub struct LinkContext<'a> {
    /// The known dependencies.
    pub dependencies: &'a KnownDependencies,
    /// Their links that are not idle.
    pub links: &'a [Link],
    /// The weights of attributes in separators.
    pub weights: &'a AttributeWeights,
}

/// The sides of one table, and the other tables of its release.
#[derive(Clone, Copy, Debug)]
pub struct TableSides<'a> {
    /// The attributes on the row side.
    pub row_side: AttrSet,
    /// The protected part.
    pub protected: AttrSet,
    /// The known sides of all rules that the table guards.
    pub known: AttrSet,
    /// What readers learn from each other table of the release: its attributes, and those in which its buckets are constant.
    pub other_tables: &'a [AttrSet],
    /// The attributes that the release publishes; others can only make strata.
    pub published: AttrSet,
    /// Attributes of which alone strata may be made: those that every guarded rule determines, where distances compare
    /// with the stratum; `None` for any.
    pub within: Option<AttrSet>,
}

/// No strata keep the guarantees of a rule or of a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StratificationError {
    /// The known side determines the protected side.
    #[error("the known side determines the protected side")]
    Determined {
        /// The last dependency of the derivation.
        dependency: Dependency,
    },
    /// Separators exist, and each has a stratum that breaks a guarantee by itself.
    #[error("{} of {} strata break a guarantee by themselves", strata.ineligible.len(), strata.of)]
    Ineligible {
        /// The link by which the protected side is tied; `None` where the table itself breaks a guarantee.
        link: Option<Link>,
        /// The strata of the first separator.
        strata: Box<StrataEligibility>,
    },
    /// Readers do not see the attributes of any separator in the table.
    #[error("no separator of the protected part is visible in the table")]
    Hidden {
        /// The link by which the protected part is tied.
        link: Option<Link>,
        /// The first separator; `None` where the sides share an attribute.
        separator: Option<AttrSet>,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl From<Cancelled> for StratificationError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl TableSides<'_> {
    /// The row side together with the published attributes of a separator that other tables show.
    ///
    /// The buckets show these attributes anyway.
    pub(super) fn row_side_with(&self, separator: AttrSet) -> AttrSet {
        let elsewhere = self.other_tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(*table));
        self.row_side.union(separator.intersection(elsewhere).intersection(self.published))
    }

    /// Whether readers see that buckets are constant in `separator`, and its attributes may make strata.
    fn shows(&self, separator: AttrSet, dependencies: &KnownDependencies) -> bool {
        if self.within.is_some_and(|within| !separator.is_subset(within)) {
            return false;
        }
        let seen = separator.intersection(self.row_side_with(separator)).union(self.protected);
        separator.is_subset(dependencies.exact_closure(seen))
    }
}

impl LinkContext<'_> {
    /// The first of the separators of which every stratum satisfies the demands.
    fn first_eligible(
        &self,
        found: &[AttrSet],
        protected: AttrSet,
        tests: &mut StrataTests<'_>,
    ) -> Result<AttrSet, StratificationError> {
        let mut ineligible = None;
        for &separator in found {
            let strata = tests.test(separator)?;
            if strata.is_eligible() {
                return Ok(separator);
            }
            ineligible.get_or_insert_with(|| strata.clone());
        }
        Err(match ineligible {
            Some(strata) => StratificationError::Ineligible {
                link: self.tying(protected, strata.attributes),
                strata: Box::new(strata),
            },
            None => StratificationError::Hidden { link: None, separator: None },
        })
    }

    /// A link that ties `protected`, if possible to `separator`; `None` for the empty separator.
    fn tying(&self, protected: AttrSet, separator: AttrSet) -> Option<Link> {
        if separator.is_empty() {
            return None;
        }
        let leads_out = |link: &&&Link| link.attributes.meets(protected) && !link.attributes.is_subset(protected);
        let mut tying = self.links.iter().filter(|link| leads_out(&link));
        let direct = tying.clone().find(|link| link.attributes.meets(separator));
        direct.or_else(|| tying.next()).copied()
    }
}

/// The strata that bound a rule whatever is published: the first separator of its sides in the links alone of which every
/// stratum satisfies the demands.
///
/// Without such strata no publication of the protected side satisfies the rule.
///
/// # Errors
/// [`StratificationError`], with what the repairs need to know.
///
/// # Citations
/// docs/spec/dependencies.md#strata
pub fn stratify_rule(
    rule: &RuleDemand,
    context: &LinkContext<'_>,
    tests: &mut StrataTests<'_>,
) -> Result<AttrSet, StratificationError> {
    let determined = context.dependencies.closure(rule.known);
    if rule.protects.is_subset(determined) {
        let leads_in = |dependency: &&Dependency| {
            rule.protects.contains(dependency.dependent) && dependency.determinant.is_subset(determined)
        };
        if let Some(dependency) = context.dependencies.all().iter().find(leads_in) {
            return Err(StratificationError::Determined { dependency: *dependency });
        }
    }
    let elements: Vec<AttrSet> = context.links.iter().map(|link| link.attributes).collect();
    let sides = SeparatedSides { protected: rule.protects, known: rule.known, elements: &elements };
    context.first_eligible(&separators(&sides, context.weights), rule.protects, tests)
}

/// The attributes in which the buckets of a table are constant.
///
/// It is the first separator of the protected part from the known and the row side that readers see, and of which every
/// stratum satisfies the demands.
///
/// # Errors
/// [`StratificationError`], with what the repairs need to know.
///
/// # Citations
/// docs/spec/dependencies.md#algorithm
pub fn stratify(
    sides: &TableSides<'_>,
    context: &LinkContext<'_>,
    tests: &mut StrataTests<'_>,
) -> Result<AttrSet, StratificationError> {
    let found = separators_of(sides, context);
    let visible: Vec<AttrSet> =
        found.iter().copied().filter(|separator| sides.shows(*separator, context.dependencies)).collect();
    if visible.is_empty() {
        let separator = found.first().copied();
        let known = sides.known.union(sides.row_side);
        let link = context.tying(sides.protected, separator.unwrap_or(known));
        return Err(StratificationError::Hidden { link, separator });
    }
    context.first_eligible(&visible, sides.protected, tests)
}

/// The separators of a table that readers see, in the order in which they are tried.
pub(super) fn visible_separators(sides: &TableSides<'_>, context: &LinkContext<'_>) -> Vec<AttrSet> {
    let is_visible = |separator: &AttrSet| sides.shows(*separator, context.dependencies);
    separators_of(sides, context).into_iter().filter(is_visible).collect()
}

/// The separators of the protected part of a table from its known and its row side.
fn separators_of(sides: &TableSides<'_>, context: &LinkContext<'_>) -> Vec<AttrSet> {
    let links = context.links.iter().map(|link| link.attributes);
    let elements: Vec<AttrSet> = sides.other_tables.iter().copied().chain(links).collect();
    let known = sides.known.union(sides.row_side);
    separators(&SeparatedSides { protected: sides.protected, known, elements: &elements }, context.weights)
}
