//! Guarantees: bounds on what an adversary may infer about sensitive values.
//!
//! # Citations
//! [Jin et al. 2010]; [Xiao and Tao 2006]; [Machanavajjhala et al. 2006]; [Wong et al. 2006]; [Li, Li and Venkatasubramanian
//! 2007]; [Evfimievski et al. 2003]; [Sweeney 2002]

use serde::{Deserialize, Serialize};

use super::ratio::Ratio;
use super::thresholds_name::ThresholdsDigest;
use super::vocabulary::vocabulary;

/// The bound of a rule on the posterior of a sensitive attribute.
///
/// `privacy` holds the predicates; the verifier has its own copy of each definition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Guarantee {
    /// Every class has at least k rows [Sweeney 2002]; sensitive values are not bounded.
    KAnonymity {
        /// The rows.
        #[schema(minimum = 2)]
        k: u64,
    },
    /// The share of each value in a bucket is at most 1/l [Jin et al. 2010, section 2], [Xiao and Tao 2006, Definition 3].
    LDiversity {
        /// The diversity, at least 2 in a specification.
        #[schema(minimum = 2)]
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
        /// The distance between values.
        #[serde(default)]
        distance: ValueDistance,
        /// The distribution to compare with.
        #[serde(default, skip_serializing_if = "Reference::is_table")]
        reference: Reference,
    },
    /// No event that is at most `rho1` likely in the table is more than `rho2` likely in a bucket.
    Rho {
        /// The largest prior of an unlikely event.
        rho1: Ratio,
        /// The largest posterior of an unlikely event.
        rho2: Ratio,
        /// The events that the bound covers.
        #[serde(default)]
        mode: RhoMode,
        /// The distribution of priors.
        #[serde(default, skip_serializing_if = "Reference::is_table")]
        reference: Reference,
    },
    /// The distribution of a bucket is within b of that of the table [Jin et al. 2010, Definition 1].
    Delta {
        /// The distance of distributions.
        distance: Divergence,
        /// The bound.
        b: Ratio,
        /// The distribution to compare with.
        #[serde(default)]
        prior: PriorDistribution,
        /// The rows whose distribution that is.
        #[serde(default, skip_serializing_if = "Reference::is_table")]
        reference: Reference,
    },
    /// The share of each value in a bucket is at most its threshold. The guarantee names the digest of the thresholds.
    Thresholds {
        /// The digest of the declared thresholds.
        #[serde(rename = "stated")]
        digest: ThresholdsDigest,
        /// The least threshold of any value.
        least: Ratio,
        /// The largest threshold of any value.
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

    /// Whether buckets are compared with a reference distribution.
    #[must_use]
    pub const fn compares(self) -> bool {
        matches!(self, Self::TCloseness { .. } | Self::Rho { .. } | Self::Delta { .. })
    }

    /// The distribution with which buckets are compared, where they are.
    #[must_use]
    pub const fn reference(self) -> Reference {
        match self {
            Self::TCloseness { reference, .. } | Self::Rho { reference, .. } | Self::Delta { reference, .. } => {
                reference
            }
            _ => Reference::Table,
        }
    }

    /// The guarantee with another reference; `None` where buckets are not compared.
    #[must_use]
    pub const fn against(self, reference: Reference) -> Option<Self> {
        Some(match self {
            Self::TCloseness { t, distance, .. } => Self::TCloseness { t, distance, reference },
            Self::Rho { rho1, rho2, mode, .. } => Self::Rho { rho1, rho2, mode, reference },
            Self::Delta { distance, b, prior, .. } => Self::Delta { distance, b, prior, reference },
            _ => return None,
        })
    }

    /// Whether a guarantee on one attribute bounds every combination with it [Jin et al. 2010, Corollary 3.1.1].
    ///
    /// Distances do not: a joint distribution is at least as far as the distributions of its attributes.
    #[must_use]
    pub const fn covers_combinations(self) -> bool {
        match self {
            Self::LDiversity { .. }
            | Self::DistinctLDiversity { .. }
            | Self::EntropyLDiversity { .. }
            | Self::RecursiveLDiversity { .. }
            | Self::AlphaK { .. } => true,
            // thresholds belong to values, and a combination has other values
            Self::KAnonymity { .. }
            | Self::TCloseness { .. }
            | Self::Rho { .. }
            | Self::Delta { .. }
            | Self::Thresholds { .. } => false,
        }
    }
}

vocabulary! {
    /// The rows whose distribution a guarantee compares buckets with.
    #[derive(Default)]
    Reference: "reference of a guarantee" {
        /// The whole table.
        #[default]
        Table = "table",
        /// The rows that agree with the bucket on the attributes in which buckets are constant, as the known side determines them: what
        /// the adversary has before the release.
        Stratum = "stratum",
    }
}

impl Reference {
    /// Whether it is the whole table.
    #[must_use]
    pub const fn is_table(&self) -> bool {
        matches!(self, Self::Table)
    }
}

vocabulary! {
    /// The distance between two values.
    #[derive(Default)]
    ValueDistance: "distance of values" {
        /// All values are equally distant.
        #[default]
        Equal = "equal",
        /// The number of values between them, in the order of values.
        Ordered = "ordered",
        /// The height of their lowest common node in the taxonomy, divided by the height of the tree.
        Hierarchical = "hierarchical",
    }
}

vocabulary! {
    /// The events that a bound on posteriors covers.
    #[derive(Default)]
    RhoMode: "events of a bound on posteriors" {
        /// Single values.
        Single = "single",
        /// Every set of values, for at most [`RhoMode::EXACT_VALUES`] values.
        Exact = "exact",
        /// Every set of values, by the sufficient bound rho2/rho1 on the gain of any value.
        #[default]
        Amplification = "amplification",
    }
}

impl RhoMode {
    /// The most values whose sets are enumerated.
    pub const EXACT_VALUES: usize = 16;
}

vocabulary! {
    /// A distance of two distributions.
    Divergence: "distance of distributions" {
        /// Half the sum of the absolute differences.
        TotalVariation = "total_variation",
        /// The largest difference.
        Max = "max",
        /// Kullback-Leibler divergence of the bucket from the table, in nats.
        Kl = "kl",
        /// Earth mover's distance over the order of values.
        Emd = "emd",
        /// The largest absolute logarithm of a quotient, in nats; infinite when a value is missing from a bucket.
        LogRatio = "log_ratio",
    }
}

impl Divergence {
    /// Whether no two distributions are farther apart than 1.
    #[must_use]
    pub const fn is_at_most_one(self) -> bool {
        matches!(self, Self::TotalVariation | Self::Max | Self::Emd)
    }
}

vocabulary! {
    /// The prior that a posterior is compared with.
    #[derive(Default)]
    PriorDistribution: "prior of a guarantee" {
        /// The distribution over the whole table.
        #[default]
        Global = "global",
    }
}
