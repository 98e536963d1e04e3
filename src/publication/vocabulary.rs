//! Closed vocabularies of documents: each enum holds the texts that manifests and plans may contain.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Kind of a published table, as documents name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// Exact tuples without buckets.
    Marginal,
    /// One part of known attributes, linked to sensitive parts by bucket.
    Bucketized,
    /// Columns of attributes, permuted within buckets.
    Sliced,
    /// Rows in classes whose quasi-identifier cells are equal.
    Generalized,
    /// Buckets of a decomposition: primary values, and sets of the other sensitive values.
    Decomposed,
    /// Joint sensitive values of a decomposition.
    Sensitive,
}

impl TableKind {
    /// Text of the kind in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Marginal => "marginal",
            Self::Bucketized => "bucketized",
            Self::Sliced => "sliced",
            Self::Generalized => "generalized",
            Self::Decomposed => "decomposed",
            Self::Sensitive => "sensitive",
        }
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of a release after its commit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseStatus {
    /// Recorded in the ledger; it waits for an approval.
    Held,
    /// Readable by every caller of its tenant.
    Published,
    /// Refused by an officer while it was held.
    Rejected,
    /// No longer served; its disclosures stay in the ledger.
    Withdrawn,
}

/// A text that names no [`ReleaseStatus`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an unknown status of a release")]
pub struct ReleaseStatusError;

impl ReleaseStatus {
    const ALL: [Self; 4] = [Self::Held, Self::Published, Self::Rejected, Self::Withdrawn];

    /// The text of the status in documents and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Published => "published",
            Self::Rejected => "rejected",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether callers may read the parts; those of a held release need the scope to approve it.
    #[must_use]
    pub const fn is_served(self) -> bool {
        matches!(self, Self::Held | Self::Published)
    }

    /// Whether `next` is a later status in the life of a release.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Held, Self::Published | Self::Rejected | Self::Withdrawn) | (Self::Published, Self::Withdrawn)
        )
    }
}

impl fmt::Display for ReleaseStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<&str> for ReleaseStatus {
    type Error = ReleaseStatusError;

    fn try_from(text: &str) -> Result<Self, ReleaseStatusError> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or(ReleaseStatusError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_kinds_are_written_as_their_texts() {
        let all = [
            TableKind::Marginal,
            TableKind::Bucketized,
            TableKind::Sliced,
            TableKind::Generalized,
            TableKind::Decomposed,
            TableKind::Sensitive,
        ];
        for kind in all {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert_eq!(serde_json::from_value::<TableKind>(kind.as_str().into()).unwrap(), kind);
        }
    }

    #[test]
    fn release_status_texts_read_back_equal() {
        for status in ReleaseStatus::ALL {
            assert_eq!(ReleaseStatus::try_from(status.as_str()), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert_eq!(ReleaseStatus::try_from("lost"), Err(ReleaseStatusError));
    }
}
