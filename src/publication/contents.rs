//! The cells of a publication, before they are written and after.

use std::io::{self, Read};

use crate::microdata::Column;

/// The cells of every part: table by table, part by part, as a [`super::Publication`] lists them.
#[derive(Debug)]
pub struct PublicationCells {
    /// Per table, per part.
    pub tables: Vec<Vec<PartContents>>,
}

/// The cells of one part, rows in canonical order.
#[derive(Debug)]
pub struct PartContents {
    /// The bucket of each row, in a bucketed part.
    pub buckets: Option<BucketColumn>,
    /// The attributes, as the part lists them.
    pub columns: Vec<Column>,
}

/// Bucket labels, one per row, each in `1..=B`, ascending.
///
/// Only `publish::assign::labels` makes them, from a secret permutation; a test checks that.
#[derive(Debug)]
pub struct BucketColumn(Vec<u32>);

impl BucketColumn {
    /// Labels in the canonical order of the part's rows.
    pub(crate) fn from_secret_labels(labels: Vec<u32>) -> Self {
        Self(labels)
    }

    /// The label of each row.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.0
    }
}

/// Written parts, read back as they are served: the CSV bytes of each file.
pub trait PublishedBytes {
    /// The bytes of a part from its beginning.
    ///
    /// # Errors
    /// When there is no such file or it cannot be read.
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>>;
}
