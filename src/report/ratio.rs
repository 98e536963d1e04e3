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

impl ManifestRatio {
    /// The ratio of two counts.
    #[must_use]
    pub const fn new(count: u64, of: u64) -> Self {
        Self { count, of }
    }

    /// Whether it is larger than `other`.
    #[must_use]
    pub fn exceeds(self, other: Self) -> bool {
        u128::from(self.count) * u128::from(other.of) > u128::from(other.count) * u128::from(self.of)
    }
}
