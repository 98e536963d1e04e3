//! The ledger: all disclosures and active rules, and the composition check of a new release.
//!
//! Pure, without I/O.
//!
//! The ledger keeps a [`Disclosure`] for every published table and every promised rule. A new release is checked
//! together with all of them. The union must be in Guardian Normal Form for every active and every new rule, with the
//! guards of all tables (docs/security/threat-model.md#composition). Dataset names identify attributes; published
//! names do not.

mod conflicting_tables;
mod disclosure;
mod exclusions;
mod identity;
mod linked;
mod meeting;
mod overview;
mod record;
mod series;
mod union;
mod violation;
mod weakened;

#[cfg(test)]
mod tests;

pub use disclosure::{
    ActiveRule, Disclosure, EarlierDisclosures, ExternalRowsRef, RecordedDependency, RecordedGuard, RecordedProtection,
};
pub use identity::{AttributeIdentities, IdentityError};
pub use linked::DependencyOrigin;
pub use overview::{conflicting_pairs, shared_attributes};
pub use record::{disclosures, taxonomy_of};
pub use series::ReleaseDependencies;
pub use union::{CandidateRelease, ExclusiveTable, LedgerUnion, NewRule};
pub use violation::{CompositionViolation, JoinStep, TooManyAttributesError, ViolatedRule};
pub use weakened::{RuleWeakening, weakened_rules};
