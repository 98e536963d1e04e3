use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::publication::RepublishDetails;
use crate::report::NightCounts;

/// What a night would publish, and what it costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PlannedNight {
    /// Its number, from 1.
    pub night: u32,
    /// Fewer newcomers would wait.
    pub min_newcomers: u64,
    /// Whether all newcomers would be published.
    pub admitted: bool,
    /// What would become of the rows.
    #[serde(flatten)]
    pub counts: NightCounts,
    /// The rows that would be published.
    pub rows: u64,
    /// The sensitive values that would be published.
    pub slots: u64,
    /// The sensitive values of persons who left, which their buckets keep.
    pub counterfeits: u64,
    /// Why there are counterfeits, in a sentence.
    pub because: String,
}

impl PlannedNight {
    pub(in crate::engine) fn new(details: &RepublishDetails, counts: &NightCounts) -> Self {
        let figures = &details.figures;
        let counterfeits = figures.counterfeits();
        let buckets: u64 = figures.buckets.iter().map(|fill| fill.buckets).sum();
        let filled: u64 = figures.buckets.iter().filter(|fill| fill.counterfeits == 0).map(|fill| fill.buckets).sum();
        let because = match counterfeits {
            0 => "all members of the published buckets are in the table".to_owned(),
            _ => format!(
                "{} of {buckets} buckets lack members: who left, waits or is withheld leaves a value behind, until a single survivor \
                 is joined with others; {} buckets would be joined tonight",
                buckets - filled,
                counts.merged
            ),
        };
        Self {
            night: details.night,
            min_newcomers: details.min_newcomers,
            admitted: counts.waiting == 0,
            counts: *counts,
            rows: figures.rows,
            slots: figures.slots,
            counterfeits,
            because,
        }
    }
}
