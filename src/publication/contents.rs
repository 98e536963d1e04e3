//! A publication, and its cells before and after they are written.

use std::io::{self, Read};
use std::ops::Range;

use super::rule::{EnforcedBy, EnforcedRule};
use super::table::{MethodDetails, PublishedTable, TableName};
use crate::microdata::{Attr, AttrSet, Column, LabelledRows};

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

/// The bucket labels `1..=B` of the rows of a part, ascending.
///
/// Only `publish::assign::labels` makes them, from a secret permutation; a test checks that.
#[derive(Debug)]
pub struct BucketColumn {
    /// The row behind the last one of each label.
    ends: Vec<u32>,
}

impl BucketColumn {
    /// The labels of a part in canonical order, from the number of rows of each.
    pub(crate) fn from_secret_labels(sizes: impl Iterator<Item = usize>) -> Self {
        let end_of = |end: &mut u32, size: usize| {
            *end += size as u32;
            Some(*end)
        };
        Self { ends: sizes.scan(0, end_of).collect() }
    }

    /// The buckets of some rows, each with those of the rows that are in it.
    pub fn of_rows(&self, rows: Range<usize>) -> impl Iterator<Item = LabelledRows> {
        let first = self.ends.partition_point(|&end| end as usize <= rows.start);
        let labels = (first as u32 + 1..).zip(&self.ends[first..]);
        labels.scan(rows.start, move |start, (label, &end)| {
            let labelled = LabelledRows { label: Some(label), rows: *start..rows.end.min(end as usize) };
            *start = labelled.rows.end;
            (labelled.rows.start < rows.end).then_some(labelled)
        })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_in_the_bucket_of_their_label(
            sizes in prop::collection::vec(0usize..4, 0..9),
            (from, to) in (0usize..30, 0usize..30),
        ) {
            let each: Vec<u32> = (1..).zip(&sizes).flat_map(|(label, &rows)| vec![label; rows]).collect();
            let (from, to) = (from.min(each.len()), to.min(each.len()));
            let column = BucketColumn::from_secret_labels(sizes.into_iter());
            let of_rows = column.of_rows(from..to).flat_map(|of| of.rows.map(move |row| (row, of.label)));
            let expected: Vec<_> = (from..to).map(|row| (row, Some(each[row]))).collect();
            prop_assert_eq!(of_rows.collect::<Vec<_>>(), expected);
        }
    }
}
