//! Why a sequential release cannot be made.

use crate::control::Cancelled;

/// Why a release cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SequentialError {
    /// The new release has no rows.
    #[error("the table has no rows")]
    EmptyTable,
    /// A requirement names what is not there, or tells nothing.
    #[error("requirement {requirement} refers to an attribute or release that is not there")]
    UnknownReference {
        /// Its index.
        requirement: usize,
    },
    /// An exclusion names what is not there, one release only, or nothing.
    #[error("exclusion {exclusion} is not between attributes of two releases")]
    UnknownExclusion {
        /// Its index.
        exclusion: usize,
    },
    /// An attribute stands on both sides.
    #[error("X and Y of requirement {requirement} have an attribute in common")]
    Overlap {
        /// Its index.
        requirement: usize,
    },
    /// k below 1, h not in (0, 1], or sensitive values of another length than Y.
    #[error("the bound of requirement {requirement} means nothing")]
    Threshold {
        /// Its index.
        requirement: usize,
    },
    /// No X has an attribute of the new release.
    #[error("no requirement has an attribute of the new release in X")]
    NothingToGeneralize,
    /// An attribute of the new release stands in X, but cannot be generalized.
    #[error("attribute {attribute} stands in X and is to be published as it is")]
    NoScale {
        /// The attribute.
        attribute: u32,
    },
    /// Gain is information, but there is no class.
    #[error("there is no class to gain information on")]
    ClassMissing,
    /// Not even the root of every attribute keeps a requirement.
    #[error("requirement {requirement} is broken even where everything is generalized")]
    InfeasibleRoot {
        /// Its index.
        requirement: usize,
        /// Whether this proves that no cut keeps it.
        proof: bool,
    },
    /// The earlier releases break a requirement, whatever is published now.
    #[error("earlier releases break requirement {requirement}")]
    PriorReleaseViolates {
        /// Its index.
        requirement: usize,
    },
    /// No row of one release matches any of the others. Cannot be where all have the same rows.
    #[error("the join of requirement {requirement} has no tuples")]
    EmptyJoin {
        /// Its index.
        requirement: usize,
    },
    /// There is too much to be told apart on X and Y of a requirement.
    #[error("the join of requirement {requirement} is too dense; fewer attributes on X and Y would help")]
    TooDense {
        /// Its index.
        requirement: usize,
    },
    /// There are too many releases that a join may or may not have.
    #[error("requirement {requirement} would have to be looked at in too many joins")]
    TooManyJoins {
        /// Its index.
        requirement: usize,
    },
    /// The job was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Why a join is not there.
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
