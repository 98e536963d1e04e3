use crate::control::Cancelled;

/// Why worlds were not counted.
#[derive(Debug)]
pub enum AttackError {
    /// It was told to stop.
    Cancelled,
    /// There are too many rows, or too many steps: the limit and what was found, at least.
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The most there may be.
        limit: u64,
        /// What there is; at least so many.
        found: u64,
    },
    /// The tables hold something that is no exact tuple.
    NotExact,
    /// Parts of a table share attributes in a circle.
    Circle,
}

impl From<Cancelled> for AttackError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
