use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::vocabulary::vocabulary;

vocabulary! {
    /// What becomes of a person whose sensitive value is no longer the published one.
    #[derive(Default)]
    ChangedValues: "treatment of changed values" {
        /// The row is not published until the value is the published one again.
        #[default]
        Withhold = "withhold",
        /// The row moves to a new bucket whose signature shares no value with the old one, where such a bucket can be made.
        Move = "move",
        /// The night is refused.
        Refuse = "refuse",
    }
}

vocabulary! {
    /// Which persistent buckets are joined.
    #[derive(Default)]
    BucketMerging: "merging of buckets" {
        /// Buckets of one signature in which a single member is left.
        #[default]
        Single = "single",
        /// None.
        Never = "never",
    }
}

/// The terms and figures of a night of a republished table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepublishDetails {
    /// The number of the night, from 1.
    pub night: u32,
    /// The night that it goes on from; none of the first.
    pub previous: Option<PreviousNight>,
    /// What becomes of changed sensitive values.
    pub changes: ChangedValues,
    /// Which buckets are joined.
    pub merge: BucketMerging,
    /// Smaller cohorts of newcomers wait.
    pub min_newcomers: u64,
    /// The number of last nights on which the other members of a single survivor were absent.
    pub grace: u32,
    /// The number of nights after which absent persons are forgotten, and then never published again.
    pub forget_after: Option<u32>,
    /// What the parts show.
    pub figures: RepublishFigures,
    /// The last nights before this one, rising: at most [`PastNight::KEPT`].
    pub earlier: Vec<PastNight>,
}

/// The night that a night goes on from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreviousNight {
    /// Its release, where a service keeps it.
    pub release: Option<Uuid>,
    /// What it published.
    pub digest: NightDigest,
}

/// What a night and all nights before it published: SHA-256 in hexadecimal digits, of lines of text. The first line is the digest of
/// the night before, or `first`; one line for each part follows, its SHA-256, two spaces, and its file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NightDigest(pub String);

impl NightDigest {
    /// The number of its digits.
    pub const DIGITS: usize = 64;

    /// The digest of a night. `parts` are files, each with its SHA-256 in hexadecimal digits.
    pub fn new<'a>(previous: Option<&Self>, parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut lines = previous.map_or_else(|| "first\n".to_owned(), |Self(digits)| format!("{digits}\n"));
        for (file, sha256) in parts {
            lines.push_str(&format!("{sha256}  {file}\n"));
        }
        let digest = Sha256::digest(lines.as_bytes());
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// What a night published, as later nights say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PastNight {
    /// Its number.
    pub night: u32,
    /// The number of published persons.
    pub rows: u64,
    /// The number of rows of the sensitive part.
    pub slots: u64,
    /// The number of buckets.
    pub buckets: u64,
}

impl PastNight {
    /// The number of nights that a population remembers.
    pub const KEPT: usize = 60;

    /// The number of counterfeits.
    #[must_use]
    pub const fn counterfeits(self) -> u64 {
        self.slots.saturating_sub(self.rows)
    }
}

/// What the parts of a night show.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RepublishFigures {
    /// The number of published persons.
    pub rows: u64,
    /// The number of rows of the sensitive part.
    pub slots: u64,
    /// The number of different signatures.
    pub signatures: u64,
    /// The number of buckets by signature size and counterfeits, rising.
    pub buckets: Vec<BucketFill>,
}

impl RepublishFigures {
    /// The number of counterfeits.
    #[must_use]
    pub const fn counterfeits(&self) -> u64 {
        self.slots.saturating_sub(self.rows)
    }

    /// The night as later nights say it.
    #[must_use]
    pub fn of_night(&self, night: u32) -> PastNight {
        let buckets = self.buckets.iter().fold(0_u64, |all, fill| all.saturating_add(fill.buckets));
        PastNight { night, rows: self.rows, slots: self.slots, buckets }
    }
}

/// Buckets of one signature size with equally many counterfeits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BucketFill {
    /// The number of slots of the signature.
    pub size: u64,
    /// The number of slots without a member.
    pub counterfeits: u64,
    /// The number of such buckets.
    pub buckets: u64,
}
