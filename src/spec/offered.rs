//! Guarantees that are offered where a document names none, or one that the data cannot keep.

use serde_json::{Value, json};

/// A distribution within this distance of that of the table.
pub const OFFERED_T: &str = "0.2";

/// The largest shares of a value, in percent; the smallest above its share of the table is taken.
pub const OFFERED_PERCENTS: [u64; 8] = [50, 60, 70, 80, 90, 95, 98, 99];

/// The rows of a class of `alpha_k` and `k_anonymity`.
pub const OFFERED_K: u64 = 5;

/// A guarantee of a sensitive column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OfferedGuarantee {
    /// `l_diversity`.
    Diversity {
        /// The diversity.
        l: u64,
    },
    /// `t_closeness` within [`OFFERED_T`].
    Closeness,
    /// `alpha_k`.
    Share {
        /// The largest share of a value, in percent.
        alpha_percent: u64,
        /// The fewest rows of a bucket.
        k: u64,
    },
}

impl OfferedGuarantee {
    /// The guarantee as documents take it.
    #[must_use]
    pub fn to_json(self) -> Value {
        match self {
            Self::Diversity { l } => json!({"type": "l_diversity", "l": l}),
            Self::Closeness => json!({"type": "t_closeness", "t": OFFERED_T}),
            Self::Share { alpha_percent, k } => {
                let alpha = format!("0.{alpha_percent}");
                json!({"type": "alpha_k", "alpha": alpha.trim_end_matches('0'), "k": k})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarantees_are_written_as_documents_take_them() {
        assert_eq!(OfferedGuarantee::Diversity { l: 3 }.to_json(), json!({"type": "l_diversity", "l": 3}));
        let share = OfferedGuarantee::Share { alpha_percent: 60, k: 5 };
        assert_eq!(share.to_json(), json!({"type": "alpha_k", "alpha": "0.6", "k": 5}));
    }
}
