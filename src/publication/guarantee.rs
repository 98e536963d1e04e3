//! Guarantees: how much an adversary may learn of a sensitive value.

use serde::{Deserialize, Serialize};

/// The bound a rule puts on the posterior of a sensitive attribute. The predicates stand in `privacy`, and again, literally,
/// in `audit`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Guarantee {
    /// No value takes more than 1/l of a bucket (the measure of versatile publishing, section 2; of anatomy, definition 3).
    LDiversity {
        /// The diversity, at least 2 in a specification.
        l: u64,
    },
}
