use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An exact ratio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ManifestRatio {
    /// The numerator.
    pub count: u64,
    /// The denominator.
    pub of: u64,
}
