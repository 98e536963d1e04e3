//! What may be promised of a sensitive column, the strongest first.

use crate::spec::{OFFERED_K, OFFERED_PERCENTS, OFFERED_T, OfferedGuarantee};

/// No larger diversity is suggested: it costs utility, and few registers can hold it.
const LARGEST_L: u64 = 5;

impl OfferedGuarantee {
    /// The promise in words.
    pub(super) fn promise(self) -> String {
        match self {
            Self::Diversity { l } => format!("no value is inferred with a probability above 1/{l}"),
            Self::Closeness => format!("its distribution in each bucket stays within {OFFERED_T} of that of the table"),
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
    let shares = OFFERED_PERCENTS
        .iter()
        .filter(holds)
        .map(|&alpha_percent| OfferedGuarantee::Share { alpha_percent, k: OFFERED_K.min(rows) });
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
    fn promises_name_the_share() {
        let share = OfferedGuarantee::Share { alpha_percent: 60, k: 5 };
        assert!(share.promise().contains("60%"));
    }
}
