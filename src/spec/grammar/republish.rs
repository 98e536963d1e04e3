//! The member `republish`: the same table is published night after night.

use super::document::{Int, choice, document, scalar};
use super::reader::integer;
use crate::publication::{BucketMerging, ChangedValues};

document! {
    /// The table is published night after night, so that all nights together keep the guarantee. Needs a table with a person
    /// key; offered for `anatomy` and `bucketize`.
    RepublishMembers as "Republication" {
        /// `withhold` when not given.
        optional changes: ChangedValues = ChangedValues::Withhold,
        /// `single` when not given.
        optional merge: BucketMerging = BucketMerging::Single,
        /// Fewer newcomers wait for a later night, whatever their values are. `auto`, when not given, follows from what the night
        /// before shows. The first night ignores it.
        optional min_newcomers: LeastNewcomers = LeastNewcomers::Auto,
        /// A single survivor is joined with others if the other members of the bucket were absent on this number of last nights. 7
        /// when not given.
        optional grace: Int<0, 10_000> = Int(7),
        /// Persons who were absent on this number of nights are forgotten: they are never published again. Never when not given.
        optional forget_after: Int<1, 100_000>,
    }
}

choice! {
    /// What becomes of a person whose sensitive value is no longer the published one: the row is not published until the value is the
    /// published one again (`withhold`), moves to new buckets without the old values where some can be made (`move`), or the night is
    /// refused (`refuse`).
    existing ChangedValues as "ChangedValues" {
        Withhold = "withhold",
        Move = "move",
        Refuse = "refuse",
    }
}

choice! {
    /// Which buckets are joined, so that they need fewer counterfeits: those of one signature in which a single member is left
    /// (`single`), or none (`never`).
    existing BucketMerging as "BucketMerging" {
        Single = "single",
        Never = "never",
    }
}

/// The smallest cohort of newcomers that is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::spec) enum LeastNewcomers {
    /// It follows from what the night before shows.
    Auto,
    /// This many.
    Number(u64),
}

const MOST_NEWCOMERS: u64 = 1_000_000_000;

scalar! {
    LeastNewcomers as "LeastNewcomers": "auto, or an integer from 1 to 1000000000",
    |value| match value.as_str() {
        Some("auto") => Some(Self::Auto),
        _ => u64::try_from(integer(value)?).ok().filter(|number| (1..=MOST_NEWCOMERS).contains(number)).map(Self::Number),
    },
    |least| match least {
        LeastNewcomers::Auto => "auto".into(),
        LeastNewcomers::Number(number) => (*number).into(),
    },
    {
        "description": "`auto`, or the smallest number of newcomers that are published.",
        "oneOf": [
            {"type": "string", "const": "auto"},
            {"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
        ],
    }
}

/// The terms under which a table is published night after night.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepublishSpec {
    /// What becomes of changed sensitive values.
    pub changes: ChangedValues,
    /// Which buckets are joined.
    pub merge: BucketMerging,
    /// Smaller cohorts of newcomers wait; `None` where the number follows from the night before.
    pub min_newcomers: Option<u64>,
    /// The number of last nights on which the other members of a single survivor were absent.
    pub grace: u32,
    /// The number of nights after which absent persons are forgotten.
    pub forget_after: Option<u32>,
}

impl From<&RepublishMembers> for RepublishSpec {
    fn from(members: &RepublishMembers) -> Self {
        let RepublishMembers { changes, merge, min_newcomers, grace, forget_after, .. } = members;
        Self {
            changes: *changes,
            merge: *merge,
            min_newcomers: match min_newcomers {
                LeastNewcomers::Auto => None,
                LeastNewcomers::Number(number) => Some(*number),
            },
            // both are bounded
            grace: grace.0 as u32,
            forget_after: forget_after.value.map(|nights| nights.0 as u32),
        }
    }
}
