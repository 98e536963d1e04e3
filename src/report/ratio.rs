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

    /// The ratio and its percentage, to one decimal.
    #[must_use]
    pub fn in_words(self) -> String {
        format!("{}/{} ({})", self.count, self.of, self.percent())
    }

    /// The percentage, to one decimal. Only nothing is 0.0%, and only everything 100.0%.
    #[must_use]
    pub fn percent(self) -> String {
        self.in_tenths(u128::from(self.count) * 1000 / u128::from(self.of.max(1)))
    }

    /// The percentage of what is exposed, to one decimal: rounded up, so that it is never said to be less.
    #[must_use]
    pub fn exposed_percent(self) -> String {
        match (u128::from(self.count) * 1000).div_ceil(u128::from(self.of.max(1))) {
            1000.. if self.count < self.of => ">99.9%".to_owned(),
            tenths => self.in_tenths(tenths),
        }
    }

    fn in_tenths(self, tenths: u128) -> String {
        let is_some = self.count > 0 && u128::from(self.count) * 1000 < u128::from(self.of);
        match tenths {
            _ if is_some => "<0.1%".to_owned(),
            tenths => format!("{}.{}%", tenths / 10, tenths % 10),
        }
    }

    /// The share as a number, for drawings.
    #[must_use]
    pub fn as_share(self) -> f64 {
        self.count as f64 / self.of.max(1) as f64
    }

    /// Whether it is larger than `other`.
    #[must_use]
    pub fn exceeds(self, other: Self) -> bool {
        u128::from(self.count) * u128::from(other.of) > u128::from(other.count) * u128::from(self.of)
    }
}
