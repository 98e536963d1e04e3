//! The source of time: UTC in whole microseconds, the precision of every store.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};

/// A clock; clones of a settable clock share their time.
#[derive(Clone, Debug, Default)]
pub struct Clock(TimeSource);

#[derive(Clone, Debug, Default)]
enum TimeSource {
    #[default]
    System,
    Settable(Arc<AtomicI64>),
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self(TimeSource::System)
    }

    /// A clock with a fixed time until it is set, for tests.
    #[must_use]
    pub fn settable(at: DateTime<Utc>) -> Self {
        Self(TimeSource::Settable(Arc::new(AtomicI64::new(at.timestamp_micros()))))
    }

    /// The time in UTC, truncated to microseconds.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        match &self.0 {
            TimeSource::System => Utc::now().trunc_subsecs(6),
            TimeSource::Settable(micros) => {
                DateTime::from_timestamp_micros(micros.load(Ordering::Acquire)).unwrap_or(DateTime::UNIX_EPOCH)
            }
        }
    }

    /// Moves a settable clock forward; the system's clock cannot be moved.
    pub fn advance(&self, by: Duration) {
        if let TimeSource::Settable(micros) = &self.0 {
            micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(0), Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_has_whole_microseconds() {
        assert_eq!(Clock::system().now().timestamp_subsec_nanos() % 1000, 0);
    }

    #[test]
    fn clones_of_a_settable_clock_move_together() {
        let clock = Clock::settable(DateTime::UNIX_EPOCH);
        let other = clock.clone();
        clock.advance(Duration::from_micros(7));
        assert_eq!(other.now().timestamp_micros(), 7);
    }
}
