//! What is computed from written parts: verification, figures, linked views, COUNT answers.

pub(super) mod contributions;
pub(super) mod entropy;
pub(super) mod exposures;
pub(super) mod external;
pub(super) mod figures;
pub(super) mod hex;
pub(super) mod linked;
pub(super) mod manifest;
pub(super) mod measures;
pub(super) mod model;
pub(super) mod night;
pub(super) mod published_value;
pub(super) mod query;
pub(crate) mod verify;
