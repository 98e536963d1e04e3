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
}
