//! The strength order of guarantees and their predicate on counts.

use crate::publication::Guarantee;

/// Whether everything that satisfies `stronger` satisfies `weaker` (the order in which rules imply each other and guards
/// serve rules).
#[must_use]
pub const fn implies(stronger: Guarantee, weaker: Guarantee) -> bool {
    match (stronger, weaker) {
        (Guarantee::LDiversity { l: strong }, Guarantee::LDiversity { l: weak }) => strong >= weak,
    }
}
