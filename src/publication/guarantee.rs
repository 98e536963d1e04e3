//! Guarantees: how much an adversary may learn of a sensitive value.

use serde::{Deserialize, Serialize};

use super::ratio::Ratio;
use super::thresholds_name::ThresholdsDigest;

/// The bound a rule puts on the posterior of a sensitive attribute. The predicates stand in `privacy`, and again, literally,
/// in `audit`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Guarantee {
    /// Every class has at least k rows: nobody is singled out by what is known. Says nothing of sensitive values.
    KAnonymity {
        /// The rows.
        k: u64,
    },
    /// No value takes more than 1/l of a bucket (the measure of versatile publishing, section 2; of anatomy, definition 3).
    LDiversity {
        /// The diversity, at least 2 in a specification.
        l: u64,
    },
    /// At least l values occur in a bucket.
    DistinctLDiversity {
        /// The number of values.
        l: u64,
    },
    /// The entropy of a bucket is at least that of l equally frequent values.
    EntropyLDiversity {
        /// The number of values.
        l: Ratio,
    },
    /// The most frequent value of a bucket occurs less than c times as often as all from the l-th most frequent on together.
    RecursiveLDiversity {
        /// The factor.
        c: Ratio,
        /// The rank.
        l: u64,
    },
    /// No value takes more than alpha of a bucket, which has at least k rows.
    AlphaK {
        /// The share.
        alpha: Ratio,
        /// The rows.
        k: u64,
    },
    /// The distribution of a bucket is no farther than t from that of the table, by earth mover's distance.
    TCloseness {
        /// The distance.
        t: Ratio,
        /// How far values are from each other.
        #[serde(default)]
        distance: ValueDistance,
    },
    /// No event that is at most `rho1` likely in the table is more than `rho2` likely in a bucket.
    Rho {
        /// What counts as unlikely beforehand.
        rho1: Ratio,
        /// What must not be exceeded afterwards.
        rho2: Ratio,
        /// Which events.
        #[serde(default)]
        mode: RhoMode,
    },
    /// The distribution of a bucket is within b of that of the table (versatile publishing, Definition 1).
    Delta {
        /// The distance of distributions.
        distance: Divergence,
        /// The bound.
        b: Ratio,
        /// Against what.
        #[serde(default)]
        prior: PriorDistribution,
    },
    /// No value takes more of a bucket than its threshold. The thresholds are kept beside the guarantee, which names them.
    Thresholds {
        /// The name of the thresholds as they are stated.
        stated: ThresholdsDigest,
        /// No value has a threshold below this.
        least: Ratio,
        /// Nor one above this.
        most: Ratio,
    },
}

impl Guarantee {
    /// The name used in the contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KAnonymity { .. } => "k_anonymity",
            Self::LDiversity { .. } => "l_diversity",
            Self::DistinctLDiversity { .. } => "distinct_l_diversity",
            Self::EntropyLDiversity { .. } => "entropy_l_diversity",
            Self::RecursiveLDiversity { .. } => "recursive_l_diversity",
            Self::AlphaK { .. } => "alpha_k",
            Self::TCloseness { .. } => "t_closeness",
            Self::Rho { .. } => "rho",
            Self::Delta { .. } => "delta",
            Self::Thresholds { .. } => "thresholds",
        }
    }

    /// Whether, kept for one attribute, it bounds every combination that holds the attribute (versatile publishing, Corollary
    /// 3.1.1). Distances do not: a joint distribution is at least as far as those of its attributes.
    #[must_use]
    pub const fn covers_combinations(self) -> bool {
        match self {
            Self::LDiversity { .. }
            | Self::DistinctLDiversity { .. }
            | Self::EntropyLDiversity { .. }
            | Self::RecursiveLDiversity { .. }
            | Self::AlphaK { .. } => true,
            // thresholds are of values, and a combination has others
            Self::KAnonymity { .. }
            | Self::TCloseness { .. }
            | Self::Rho { .. }
            | Self::Delta { .. }
            | Self::Thresholds { .. } => false,
        }
    }
}

/// How far two values are from each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValueDistance {
    /// All values are equally far.
    #[default]
    Equal,
    /// By the number of values between, in the order of values.
    Ordered,
    /// By how high the lowest node above both is in the taxonomy of the attribute, as a part of the height of the whole tree.
    Hierarchical,
}

/// Which events a bound on posteriors covers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RhoMode {
    /// Single values.
    Single,
    /// Every set of values; for at most [`RhoMode::EXACT_VALUES`] of them.
    Exact,
    /// Every set of values, by bounding how much likelier any value becomes by rho2/rho1: sufficient.
    #[default]
    Amplification,
}

impl RhoMode {
    /// The most values whose sets are looked at one by one.
    pub const EXACT_VALUES: usize = 16;
}

/// A distance of two distributions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Divergence {
    /// Half the sum of the differences.
    TotalVariation,
    /// The largest difference.
    Max,
    /// Kullback and Leibler's, of the bucket from the table, in nats.
    Kl,
    /// The earth mover's, over the order of values.
    Emd,
    /// The largest absolute logarithm of a quotient, in nats; infinite when a value is missing from a bucket.
    LogRatio,
}

impl Divergence {
    /// Whether no two distributions are farther apart than 1.
    #[must_use]
    pub const fn is_at_most_one(self) -> bool {
        matches!(self, Self::TotalVariation | Self::Max | Self::Emd)
    }
}

/// What a posterior is held against.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriorDistribution {
    /// The distribution over the whole table.
    #[default]
    Global,
}
