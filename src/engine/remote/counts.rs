//! The counts of a table in another engine, as plans read them.

use super::port::{CountedValue, RemoteColumn};
use crate::control::{Cancelled, Control};
use crate::microdata::{Arena, Attr, AttributeCounts, ColumnProfile, Domain};
use crate::privacy::ValueFrequency;
use crate::publish::Design;
use crate::publish::bucketize::{CountedDomain, size_by_counts};
use crate::spec::BucketizeSpec;
use crate::verifier::OriginalValues;

/// The counts of the attributes of a release.
pub(super) struct RemoteCounts {
    pub(super) rows: u64,
    /// The columns of the attributes, in their order.
    pub(super) columns: Vec<RemoteColumn>,
    /// The values of those attributes that a rule protects.
    pub(super) values: Vec<Option<Vec<CountedValue>>>,
}

impl RemoteCounts {
    /// The values of an attribute that a rule protects.
    pub(super) fn protected(&self, attribute: Attr) -> Option<OriginalValues> {
        let (values, rows) = self.values[attribute.index()].iter().flatten().cloned().unzip();
        self.values[attribute.index()].as_ref().map(|_| OriginalValues { attribute, values, rows })
    }

    /// Decides the sizes of the buckets of a design with thresholds.
    pub(super) fn size_buckets(
        &self,
        spec: &BucketizeSpec,
        design: &mut Design,
        control: &Control,
    ) -> Result<(), Cancelled> {
        let sensitive = spec.rule.protects.attributes().iter().next();
        let Some(OriginalValues { attribute, values, rows }) = sensitive.and_then(|attr| self.protected(attr)) else {
            return Ok(());
        };
        let mut arena = Arena::default();
        values.iter().flatten().for_each(|value| arena.push(value.as_bytes()));
        let domain = Domain::from_sorted(self.columns[attribute.index()].kind, arena.len() < values.len(), arena);
        size_by_counts(spec, design, CountedDomain { domain: &domain, counts: &rows }, control)
    }
}

impl AttributeCounts for RemoteCounts {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn attributes(&self) -> usize {
        self.columns.len()
    }

    fn largest(&self, attr: Attr) -> u64 {
        self.columns[attr.index()].largest()
    }

    fn distinct(&self, attr: Attr) -> u64 {
        self.columns[attr.index()].distinct()
    }

    fn of_values(&self, attr: Attr) -> Option<Vec<u64>> {
        let values = self.values[attr.index()].as_ref()?;
        Some(values.iter().map(|(_, rows)| *rows).collect())
    }
}

impl RemoteColumn {
    /// The rows of the most frequent value.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.frequencies.first().map_or(0, |of| of.rows)
    }

    /// The number of values, a missing one counted as one.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.frequencies.iter().map(|of: &ValueFrequency| of.values).sum()
    }

    /// What a specification is read against.
    #[must_use]
    pub fn profile(&self, rows: u64) -> ColumnProfile {
        let distinct = self.distinct() - u64::from(self.missing > 0);
        ColumnProfile::of_counts(&self.name, self.kind, distinct, [rows, self.missing, self.largest()])
    }
}
