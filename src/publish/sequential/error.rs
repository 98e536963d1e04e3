//! Why a sequential release cannot be made.

use super::share::MeasureValue;
use crate::control::Cancelled;

/// Why a sequential release cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SequentialError {
    /// The new release has no rows.
    #[error("the table has no rows")]
    EmptyTable,
    /// A requirement names a missing attribute or release, or has no Y.
    #[error("requirement {requirement} refers to an attribute or release that is not there")]
    UnknownReference {
        /// Index of the requirement.
        requirement: usize,
    },
    /// An exclusion names a missing attribute, one release only, or nothing.
    #[error("exclusion {exclusion} is not between attributes of two releases")]
    UnknownExclusion {
        /// Index of the exclusion.
        exclusion: usize,
    },
    /// An attribute stands in both X and Y.
    #[error("X and Y of requirement {requirement} have an attribute in common")]
    Overlap {
        /// Index of the requirement.
        requirement: usize,
    },
    /// k below 1, h not in (0, 1], or sensitive values of another length than Y.
    #[error("the bound of requirement {requirement} means nothing")]
    Threshold {
        /// Index of the requirement.
        requirement: usize,
    },
    /// No X has an attribute of the new release.
    #[error("no requirement has an attribute of the new release in X")]
    NothingToGeneralize,
    /// An attribute of the new release stands in X, but cannot be generalized.
    #[error("attribute {attribute} stands in X and is to be published as it is")]
    NoScale {
        /// The attribute in X.
        attribute: u32,
    },
    /// The gain is information, but there is no class.
    #[error("there is no class to gain information on")]
    ClassMissing,
    /// Even the root of every attribute breaks a requirement.
    #[error("requirement {requirement} is broken even where everything is generalized")]
    InfeasibleRoot {
        /// Index of the requirement.
        requirement: usize,
        /// Whether this proves that no cut keeps it.
        proof: bool,
        /// What the root keeps.
        root: MeasureValue,
    },
    /// The earlier releases break a requirement, whatever is published now.
    #[error("earlier releases break requirement {requirement}")]
    PriorReleaseViolates {
        /// Index of the requirement.
        requirement: usize,
    },
    /// No row of one release matches any of the others. Impossible if all have the same rows.
    #[error("the join of requirement {requirement} has no tuples")]
    EmptyJoin {
        /// Index of the requirement.
        requirement: usize,
    },
    /// The join has too many tuples or links to be examined.
    #[error("the join of requirement {requirement} is too dense; fewer attributes on X and Y would help")]
    TooDense {
        /// Index of the requirement.
        requirement: usize,
    },
    /// The joins in scope are too many.
    #[error("requirement {requirement} would have to be looked at in too many joins")]
    TooManyJoins {
        /// Index of the requirement.
        requirement: usize,
    },
    /// The job was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Why a join is not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SequentialJoinError {
    TooDense,
    Cancelled(Cancelled),
}

impl From<Cancelled> for SequentialJoinError {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}

impl SequentialJoinError {
    pub(super) const fn at_requirement(self, requirement: usize) -> SequentialError {
        match self {
            Self::TooDense => SequentialError::TooDense { requirement },
            Self::Cancelled(cancelled) => SequentialError::Cancelled(cancelled),
        }
    }
}
