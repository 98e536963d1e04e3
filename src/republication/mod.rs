//! Republication: the same changing table of identified persons, published night after night.
//!
//! A person enters with a bucket of newcomers and keeps its multiset of sensitive values, the signature, for good. A
//! member who left leaves a counterfeit. The [`State`] remembers who is where; a [`Night`] makes the next state and the
//! buckets to publish. Pure: bytes and integers, no tables, no clock.
//!
//! # Citations
//! - [Xiao and Tao 2007], counterfeits and signatures; buckets are not split again here, and newcomers fill no gap.
//! - [He et al. 2011], the equivalence attack that new splits allow.
//! - [McNaughton 1959], the wrap-around rule.
//! - `docs/spec/republication.md`: definitions, what is proved and what is not.

mod bytes;
mod components;
mod division;
mod founding;
mod member_index;
mod merging;
mod minimum;
mod movers;
mod night;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub use bytes::StateError;
pub use founding::{CohortValue, Diversity, FoundingRule};
pub use minimum::least_newcomers;
pub use night::{Night, NightBucket, NightError, NightInput, NightTally};
pub use state::{PersonHash, PublishedSlots, SensitiveText, State};
pub use terms::NightTerms;
