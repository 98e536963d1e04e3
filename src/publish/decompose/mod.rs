//! Decompose: buckets by a primary sensitive attribute, with sets of the other sensitive values, and a table of all sensitive tuples.
//!
//! In a bucket no primary value takes more than 1/l of the rows. The posterior of another attribute is bounded if no value occurs
//! twice in the bucket. Elsewhere a set hides frequencies only from readers who ignore the joint table. [`breaches`] lists what
//! readers of both tables can infer, before anything is published.
//!
//! # Citations
//! - [Ye et al. 2009], decomposition, noise and l-uniqueness.
//! - `docs/spec/decompose.md`: definitions, attacks and proofs.

mod alike;
mod attack;
mod codes;
mod cover;
mod designed;
mod fresh;
mod kinds;
mod listed;
mod made;
mod mask;
mod method;
mod noise;
mod possible;
mod repeats;

#[cfg(test)]
mod tests;

pub use attack::{InferredBreach, MAX_GROUP_PAIRS, PossibleTuples, breaches, excludable, pairs, unlinked};
pub use codes::{
    CodeSet, PublishedSets, RowsByGroup, SensitiveCodesByRow, groups_of, optimal_l, repeat_free, sets_of, tightest,
};
pub use designed::{DecomposedTable, DecompositionRole, SecretBuckets};
pub use fresh::{fresh_pick, fresh_swap};
pub use method::plan;
pub use noise::{NoiseError, NoiseValue, NoisySets, swap_noise};
pub use repeats::repeats;
