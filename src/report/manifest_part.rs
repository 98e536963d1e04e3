//! The parts of a release in its manifest, and the files that they are in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::microdata::{AttributeType, CellShape};
use crate::publication::RowKind;

/// One file of a release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestPart {
    /// `qi`, `sa`, `rows`, ...
    pub name: String,
    /// The columns after `bucket`.
    pub attributes: Vec<String>,
    /// The types of the attributes in typed formats.
    pub types: BTreeMap<String, AttributeType>,
    /// Whether the first column is `bucket`.
    pub bucketed: bool,
    /// The kind of its rows.
    pub row_meaning: RowKind,
    /// The number of counterfeits in each bucket; absent where buckets have different numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub counterfeits_per_bucket: Option<u32>,
    /// The columns whose cells are not exact values.
    pub cells: BTreeMap<String, CellShape>,
    /// The number of rows.
    pub rows: u64,
    /// The name of the CSV file; null where the part has `files`.
    pub file: Option<String>,
    /// SHA-256 of the CSV file, in hexadecimal; null where the part has `files`.
    pub sha256: Option<String>,
    /// The Parquet files of a part that another engine wrote, in the order in which they are read. Absent where it is one CSV file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PartFile>,
    /// The text of a missing value in a part of one column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub null: Option<String>,
}

/// One of the Parquet files of a part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct PartFile {
    /// Its name in the folder of the release, `PART/NUMBER.parquet`.
    pub file: String,
    /// The number of rows.
    pub rows: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

/// The engine that wrote the parts, where it is not this software.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct WritingEngine {
    /// The software: `spark`.
    pub engine: String,
    /// Its version.
    pub version: String,
}

/// The digests and types of a written part.
#[derive(Clone, Debug)]
pub struct WrittenPart {
    /// SHA-256 of its CSV file in hexadecimal; `None` where it has `files`.
    pub sha256: Option<String>,
    /// The files that another engine wrote.
    pub files: Vec<PartFile>,
    /// The type of each column.
    pub types: Vec<AttributeType>,
}

impl ManifestPart {
    /// The digest of its CSV file, or those of its files, each after a dot but the first.
    #[must_use]
    pub fn digest(&self) -> String {
        let of_files = || self.files.iter().map(|of| of.sha256.as_str()).collect::<Vec<_>>().join(".");
        self.sha256.clone().unwrap_or_else(of_files)
    }

    /// The name under which readers open its rows as CSV, also where it has other files.
    #[must_use]
    pub fn csv(&self) -> String {
        let folder = || self.files.first().and_then(|of| of.file.split('/').next()).unwrap_or(&self.name);
        self.file.clone().unwrap_or_else(|| format!("{}.csv", folder()))
    }

    /// The names of its files in the folder of the release.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        let whole = self.file.iter().map(String::as_str);
        whole.chain(self.files.iter().map(|of| of.file.as_str()))
    }

    /// The kind of values that the cells of a column hold.
    #[must_use]
    pub fn cell_shape(&self, column: &str) -> CellShape {
        self.cells.get(column).copied().unwrap_or_default()
    }
}
