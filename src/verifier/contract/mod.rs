//! What the verifier is given and what it answers.

pub(super) mod checks;
pub(super) mod claim;
pub(super) mod input;
