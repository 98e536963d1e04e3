//! The details of a night of a republished table, as a manifest writes and a report words them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::publication::{
    BucketFill, BucketMerging, ChangedValues, NightDigest, PastNight, PreviousNight, RepublishDetails, RepublishFigures,
};

/// The terms of a night and what its parts show.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RepublishDetails)]
pub struct RepublishForm {
    /// The number of the night, from 1.
    pub night: u32,
    /// The night that it goes on from; absent on the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub previous: Option<PreviousNightForm>,
    /// What becomes of changed sensitive values.
    pub changes: ChangedValues,
    /// Which buckets are joined.
    pub merge: BucketMerging,
    /// Fewer newcomers wait for a later night.
    pub min_newcomers: u64,
    /// The number of last nights on which the other members of a single survivor were absent.
    pub grace: u32,
    /// The number of nights after which absent persons are forgotten, and then never published again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub forget_after: Option<u32>,
    /// The number of published persons.
    pub rows: u64,
    /// The number of rows of the sensitive part.
    pub slots: u64,
    /// The number of slots without a member.
    pub counterfeits: u64,
    /// The number of different signatures.
    pub signatures: u64,
    /// The number of buckets by size and counterfeits.
    pub buckets: Vec<BucketFillForm>,
    /// What the last nights before this one published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<PastNightForm>,
}

/// The night that a night goes on from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PreviousNight)]
pub struct PreviousNightForm {
    /// Its release, where a service keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub release: Option<Uuid>,
    /// What it and all nights before it published: SHA-256 of lines of text. The first is the digest of the night before it, or
    /// `first`; one for each part follows, its SHA-256, two spaces, and its file.
    pub digest: String,
}

/// What an earlier night published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PastNight)]
pub struct PastNightForm {
    /// Its number.
    pub night: u32,
    /// The number of published persons.
    pub rows: u64,
    /// The number of rows of the sensitive part; those above `rows` are counterfeits.
    pub slots: u64,
    /// The number of buckets.
    pub buckets: u64,
}

/// Buckets of one size with equally many counterfeits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BucketFill)]
pub struct BucketFillForm {
    /// The number of slots.
    pub size: u64,
    /// The number of slots without a member.
    pub counterfeits: u64,
    /// The number of such buckets.
    pub buckets: u64,
}

impl PreviousNightForm {
    fn read(&self) -> PreviousNight {
        PreviousNight { release: self.release, digest: NightDigest(self.digest.clone()) }
    }
}

impl RepublishForm {
    pub(super) fn from_details(details: &RepublishDetails) -> Self {
        let RepublishDetails { night, previous, changes, merge, min_newcomers, grace, forget_after, figures, earlier } =
            details;
        let form = |of: &PreviousNight| PreviousNightForm { release: of.release, digest: of.digest.0.clone() };
        let fill =
            |&BucketFill { size, counterfeits, buckets }: &BucketFill| BucketFillForm { size, counterfeits, buckets };
        Self {
            night: *night,
            previous: previous.as_ref().map(form),
            changes: *changes,
            merge: *merge,
            min_newcomers: *min_newcomers,
            grace: *grace,
            forget_after: *forget_after,
            rows: figures.rows,
            slots: figures.slots,
            counterfeits: figures.counterfeits(),
            signatures: figures.signatures,
            buckets: figures.buckets.iter().map(fill).collect(),
            earlier: earlier
                .iter()
                .map(|&PastNight { night, rows, slots, buckets }| PastNightForm { night, rows, slots, buckets })
                .collect(),
        }
    }

    /// The last nights and this one.
    pub(super) fn nights(&self) -> Vec<PastNight> {
        let details = self.read();
        let tonight = details.figures.of_night(details.night);
        details.earlier.into_iter().chain([tonight]).collect()
    }

    pub(super) fn read(&self) -> RepublishDetails {
        let fill = |&BucketFillForm { size, counterfeits, buckets }: &BucketFillForm| BucketFill {
            size,
            counterfeits,
            buckets,
        };
        RepublishDetails {
            night: self.night,
            previous: self.previous.as_ref().map(PreviousNightForm::read),
            changes: self.changes,
            merge: self.merge,
            min_newcomers: self.min_newcomers,
            grace: self.grace,
            forget_after: self.forget_after,
            figures: RepublishFigures {
                rows: self.rows,
                slots: self.slots,
                signatures: self.signatures,
                buckets: self.buckets.iter().map(fill).collect(),
            },
            earlier: self
                .earlier
                .iter()
                .map(|&PastNightForm { night, rows, slots, buckets }| PastNight { night, rows, slots, buckets })
                .collect(),
        }
    }

    /// What the nights together promise.
    pub(super) fn premises(&self) -> Vec<String> {
        let Self { night, changes, min_newcomers, counterfeits, .. } = self;
        let waiting = format!(
            "this is night {night} of a table that is published again and again; who links all nights learns of each person the share of \
             a value in the person's signature, which is the same on all nights, and no more. This assumes that newcomers of one night \
             are exchangeable, and that no night had {min_newcomers} newcomers or more who still waited"
        );
        let of_counterfeits =
            format!("{counterfeits} values belong to persons who are not in the release: their buckets keep them");
        let of_changes = match changes {
            ChangedValues::Withhold => "a person whose value changed is not published until it is the old one again",
            ChangedValues::Move => {
                "a person whose value changed moves to a bucket without any of the old values, if one can be made; for persons who \
                 moved, it is also assumed that the reader does not know which values follow which"
            }
            ChangedValues::Refuse => "no person's value differs from the one on the night before",
        };
        vec![waiting, of_counterfeits, of_changes.to_owned()]
    }

    /// What the nights together do not promise.
    pub(super) fn not_promised(&self) -> Vec<String> {
        let mut sentences = vec![
            "nothing is promised against readers who know how the value goes with how long a person stays in the table"
                .to_owned(),
            "that a person joined, left, waits or is withheld is not hidden".to_owned(),
        ];
        if self.merge == BucketMerging::Single {
            let detail = "against readers who know the values of other persons, buckets that were joined are checked by examples, not \
                          by a proof; merge never has the proof of a single release";
            sentences.push(detail.to_owned());
        }
        sentences
    }
}
