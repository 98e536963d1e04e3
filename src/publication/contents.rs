//! A publication, and its cells before and after they are written.

use std::io::{self, Read};

use super::rule::{EnforcedBy, EnforcedRule};
use super::table::{MethodDetails, PublishedTable, TableName};
use crate::microdata::{Attr, AttrSet, Column};

/// The outcome of a method: the published tables and the reason each rule holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The published tables, in the order of their names.
    pub tables: Vec<PublishedTable>,
    /// The enforced rules, the submitted ones in their order.
    pub rules: Vec<EnforcedRule>,
    /// Details of the method.
    pub method_details: MethodDetails,
    /// Rows that appear in no table. Internal: never in a manifest.
    pub suppressed: u64,
}

impl Publication {
    /// The attributes that some rule or requirement protects; `names` are the published ones.
    #[must_use]
    pub fn protected(&self, names: &[String]) -> AttrSet {
        self.protected_by_rules().union(self.method_details.required(names))
    }

    /// The attributes that some rule protects.
    #[must_use]
    pub fn protected_by_rules(&self) -> AttrSet {
        self.rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()))
    }

    /// The attributes that a table protects: by its guards, or as the only table of a method.
    #[must_use]
    pub fn protected_by(&self, table: &TableName) -> AttrSet {
        let by_table =
            self.rules.iter().filter(|rule| matches!(&rule.enforced_by, EnforcedBy::Table(by) if by == table));
        let guards = self.tables.iter().filter(|of| of.name == *table).flat_map(|of| of.protection.guards());
        let protects = by_table.map(|rule| rule.protects).chain(guards.map(|guard| guard.protects));
        protects.fold(AttrSet::EMPTY, |all, protects| all.union(protects.attributes()))
    }
}

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

/// The rows of a part as its reader found them.
#[derive(Debug)]
pub struct ReadPart {
    /// The bucket of each row, from 0; none of a part without buckets.
    pub labels: Vec<u32>,
    /// The columns, by attribute in the order of the part.
    pub columns: Vec<ReadColumn>,
}

/// A column of a part as its reader found it.
#[derive(Debug)]
pub struct ReadColumn {
    /// Its attribute.
    pub attribute: Attr,
    /// Its cells; values that do not occur may be in the domain.
    pub column: Column,
}
