use crate::control::Cancelled;

/// Reason why an attack has no result.
#[derive(Debug)]
pub enum AttackError {
    /// The caller cancelled the attack.
    Cancelled,
    /// The rows or steps exceed a limit.
    TooMany {
        /// The quantity that exceeds its limit.
        what: &'static str,
        /// The largest permitted number.
        limit: u64,
        /// A lower bound of the number that is needed.
        found: u64,
    },
    /// A table holds cells that are not exact values.
    NotExact,
    /// The parts of a table share attributes in a cycle.
    Circle,
}

impl From<Cancelled> for AttackError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
