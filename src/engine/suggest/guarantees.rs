//! What may be promised of a sensitive column, the strongest first.

use serde_json::{Value, json};

/// No larger diversity is suggested: it costs utility, and few registers can hold it.
const LARGEST_L: u64 = 5;

/// A distribution within this distance of that of the table.
const T: &str = "0.2";

/// The largest shares of a value, in percent; the smallest above its share of the table is taken.
const ALPHAS: [u64; 8] = [50, 60, 70, 80, 90, 95, 98, 99];

/// The rows of a class of `alpha_k` and `k_anonymity`.
pub(super) const K: u64 = 5;

/// A guarantee of a sensitive column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OfferedGuarantee {
    Diversity { l: u64 },
    Closeness,
    Share { alpha_percent: u64, k: u64 },
}

impl OfferedGuarantee {
    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Diversity { l } => json!({"type": "l_diversity", "l": l}),
            Self::Closeness => json!({"type": "t_closeness", "t": T}),
            Self::Share { alpha_percent, k } => {
                let alpha = format!("0.{alpha_percent}");
                json!({"type": "alpha_k", "alpha": alpha.trim_end_matches('0'), "k": k})
            }
        }
    }

    /// The promise in words.
    pub(super) fn promise(self) -> String {
        match self {
            Self::Diversity { l } => format!("no value is inferred with a probability above 1/{l}"),
            Self::Closeness => format!("its distribution in each bucket stays within {T} of that of the table"),
            Self::Share { alpha_percent, .. } => {
                format!("no value is inferred with a probability above {alpha_percent}%")
            }
        }
    }
}

/// The guarantees to try for a column whose most frequent value is in `top` of `rows` rows, where a person has at most `per_person`
/// rows. They follow from one another: eligible first by counts, weaker ones for what only rows show.
pub(super) fn offered(top: u64, rows: u64, per_person: u64) -> Vec<OfferedGuarantee> {
    let largest = rows / top.saturating_mul(per_person).max(1);
    let mut offered: Vec<OfferedGuarantee> =
        (2..=largest.min(LARGEST_L)).rev().map(|l| OfferedGuarantee::Diversity { l }).collect();
    if per_person == 1 {
        // of persons with several rows there is no such distance
        offered.push(OfferedGuarantee::Closeness);
    }
    let holds = |alpha: &&u64| u128::from(**alpha) * u128::from(rows) >= u128::from(top) * u128::from(per_person) * 100;
    let shares =
        ALPHAS.iter().filter(holds).map(|&alpha_percent| OfferedGuarantee::Share { alpha_percent, k: K.min(rows) });
    offered.extend(shares);
    offered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_diversity_comes_first_and_shares_last() {
        use OfferedGuarantee::{Closeness, Diversity, Share};
        let first = |top, rows, persons| offered(top, rows, persons).first().copied();
        assert_eq!(first(1, 100, 1), Some(Diversity { l: 5 }));
        assert_eq!(first(33, 100, 1), Some(Diversity { l: 3 }));
        assert_eq!(first(50, 100, 1), Some(Diversity { l: 2 }));
        assert_eq!(first(51, 100, 1), Some(Closeness));
        assert_eq!(first(20, 100, 2), Some(Diversity { l: 2 }), "half of it for persons of two rows");
        assert_eq!(first(30, 100, 2), Some(Share { alpha_percent: 60, k: 5 }), "no distance of persons");
        assert_eq!(first(60, 100, 2), None);
        assert_eq!(offered(97, 100, 1).len(), 3);
        assert_eq!(offered(1, 3, 1).last(), Some(&Share { alpha_percent: 99, k: 3 }));
    }

    #[test]
    fn guarantees_are_written_as_documents_take_them() {
        assert_eq!(OfferedGuarantee::Diversity { l: 3 }.to_json(), json!({"type": "l_diversity", "l": 3}));
        let share = OfferedGuarantee::Share { alpha_percent: 60, k: 5 };
        assert_eq!(share.to_json(), json!({"type": "alpha_k", "alpha": "0.6", "k": 5}));
        assert!(share.promise().contains("60%"));
    }
}
