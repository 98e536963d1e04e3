//! Checks of buckets that break a guarantee: each must be a whole stratum.
//!
//! Such a stratum breaks the guarantee whatever its buckets are, so its rows have the posteriors that an adversary has
//! without the release. Where some buckets of a stratum are sound, or two strata share a bucket, the claim is false.
//!
//! # Citations
//! docs/spec/dependencies.md#strata

use std::collections::BTreeMap;

use ahash::AHashMap;

use super::reference::is_relative;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Protected, PublishedTable, TableGuard};
use crate::verifier::contract::checks::{CheckLog, CheckName, ClosedBuckets};
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::read::bucket_classes::BucketClasses;
use crate::verifier::read::part::ParsedPart;
use crate::verifier::read::row_keys::BucketOffsets;

/// The value of each bucket in the attributes in which buckets are constant, as the parts show them.
#[derive(Default)]
pub(in crate::verifier) struct StrataOfBuckets(BTreeMap<Attr, AHashMap<u32, u32>>);

impl StrataOfBuckets {
    /// The values of a bucket in `constant`; `None` where no part shows some of them.
    pub(in crate::verifier) fn of_bucket(&self, constant: AttrSet, label: u32) -> Option<Vec<u32>> {
        constant.iter().map(|attr| self.0.get(&attr)?.get(&label).copied()).collect()
    }
}

/// What the parts of a table show of its strata, and of those that may be closed.
#[derive(Default)]
pub(in crate::verifier) struct ClosedStrata {
    pub(in crate::verifier) values: StrataOfBuckets,
    /// The buckets that break a guarantee of a guard, by protected attributes.
    broken: BTreeMap<AttrSet, Vec<BrokenBucket>>,
}

/// A bucket that breaks a guarantee.
struct BrokenBucket {
    label: u32,
    rows: u64,
    /// How many of these rows have the most frequent protected value of the bucket.
    most: u64,
}

impl ClosedStrata {
    /// Reads the values of each bucket in which guards that need strata claim it to be constant.
    pub(in crate::verifier) fn read_constants(&mut self, table: &PublishedTable, part: &ParsedPart) {
        let compares = |guard: &&TableGuard| guard.closes || guard.guarantees.iter().any(is_relative);
        let constant = table
            .protection
            .guards()
            .iter()
            .filter(compares)
            .fold(AttrSet::EMPTY, |all, guard| all.union(guard.constant));
        let Some(labels) = part.labels.as_ref().filter(|_| !constant.is_empty()) else { return };
        for column in part.columns.iter().filter(|column| constant.contains(column.attribute)) {
            let of_bucket = self.values.0.entry(column.attribute).or_default();
            for (&label, code) in labels.iter().zip(column.codes.iter()) {
                of_bucket.entry(label).or_insert(code);
            }
        }
    }

    /// Reads the buckets of a part that break a guarantee of a guard that closes strata.
    pub(in crate::verifier) fn read_buckets(
        &mut self,
        guard: &TableGuard,
        classes: &BucketClasses<'_>,
        buckets: &BucketOffsets,
        declared: &DeclaredValues,
        control: &Control,
    ) -> Result<(), VerifierError> {
        control.check()?;
        let overall = classes.protected.counts();
        let occurring = (1..).zip(buckets.ranges()).filter(|(_, range)| !range.is_empty());
        let mut labels = occurring.map(|(label, _)| label);
        let broken = self.broken.entry(guard.protects.attributes()).or_default();
        classes.each(|class| {
            let counts: Vec<(u32, u64)> = class.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
            let shares = BucketShares::new(&counts, &overall, declared);
            // a class of some rows of a bucket has no label here, and is no stratum
            let label = labels.next().unwrap_or(u32::MAX);
            // a stratum is at no distance from itself
            let mut absolute = guard.guarantees.iter().filter(|guarantee| !is_relative(guarantee));
            if !absolute.all(|guarantee| shares.satisfies(*guarantee)) {
                let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0);
                broken.push(BrokenBucket { label, rows: class.len() as u64, most });
            }
        });
        Ok(())
    }

    /// Checks that each bucket that breaks a guarantee is a whole stratum, and gives the figures of these buckets.
    pub(in crate::verifier) fn check(
        &self,
        input: &VerifierInput<'_>,
        table: &PublishedTable,
        log: &mut CheckLog,
    ) -> BTreeMap<AttrSet, ClosedBuckets> {
        let mut figures = BTreeMap::new();
        for guard in table.protection.guards().iter().filter(|guard| guard.closes) {
            let protects = guard.protects.attributes();
            let broken = self.broken.get(&protects).map_or(&[][..], Vec::as_slice);
            if let Err(detail) = self.whole_strata(input, guard, broken) {
                let names = input.list(protects);
                log.fail(CheckName::Guarantee, format!("table {}: the guard of {names} {detail}", table.name));
            }
            let shares = broken.iter().map(|bucket| ShareOfRows::new(bucket.most, bucket.rows));
            let closed = ClosedBuckets {
                buckets: broken.len() as u64,
                rows: broken.iter().map(|bucket| bucket.rows).sum(),
                worst: shares.reduce(|a, b| if b.exceeds(a) { b } else { a }),
            };
            figures.insert(protects, closed);
        }
        figures
    }

    /// Whether each of these buckets holds all rows with its values of the constant attributes.
    fn whole_strata(
        &self,
        input: &VerifierInput<'_>,
        guard: &TableGuard,
        broken: &[BrokenBucket],
    ) -> Result<(), String> {
        if !input.closes {
            return Err("closes strata, which was not asked for".to_owned());
        }
        if guard.constant.is_empty() || guard.protects == Protected::Rows {
            return Err("closes strata of no attribute".to_owned());
        }
        let mut values = Vec::new();
        for attr in guard.constant.iter() {
            let of_bucket = self.values.0.get(&attr);
            values.push(of_bucket.ok_or_else(|| format!("closes strata of {}, not shown", input.name(attr)))?);
        }
        let mut buckets: AHashMap<Vec<Option<u32>>, u64> = AHashMap::new();
        let key = |label: u32| values.iter().map(|of| of.get(&label).copied()).collect::<Vec<_>>();
        for &label in values.iter().take(1).flat_map(|of_bucket| of_bucket.keys()) {
            *buckets.entry(key(label)).or_default() += 1;
        }
        match broken.iter().filter(|bucket| buckets.get(&key(bucket.label)) != Some(&1)).count() {
            0 => Ok(()),
            parts => Err(format!("is broken by {parts} buckets that are no whole strata")),
        }
    }
}
