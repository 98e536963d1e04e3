//! Buckets that a plan decides before rows are dealt.

use std::collections::BTreeMap;

use super::counterfeits::{self, Counterfeit};
use super::filled::FilledBuckets;
use super::place::place;
use super::sizes::loss;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Table};
use crate::privacy::links::Strata;
use crate::problem::Fault;
use crate::publication::{MethodDetails, SizeCount, Thresholds};
use crate::publish::assign::{BucketAssignment, SensitiveCodes};
use crate::random::RandomStream;

/// Sizes of buckets and the values in them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedBuckets {
    /// Largest share of a bucket that each value may take.
    pub thresholds: Thresholds,
    /// Values in the buckets of each size, stratum by stratum; empty with faults.
    pub filled: Vec<FilledBuckets>,
    /// Number of the elements of `filled` in each stratum; empty for the whole table.
    pub in_strata: Vec<usize>,
    /// Proved lower bound of the loss, if one was requested.
    pub lower_bound: Option<u64>,
    /// Number of counterfeits of each bucket.
    pub counterfeits: Option<u32>,
    /// Why there are no buckets.
    pub faults: Vec<Fault>,
    /// Number of counterfeits that some row of their bucket makes unlikely.
    pub seen_through: u64,
}

impl PlannedBuckets {
    /// Number of buckets of each size, sizes rising.
    #[must_use]
    pub fn setting(&self) -> Vec<SizeCount> {
        let mut setting: BTreeMap<u64, u64> = BTreeMap::new();
        for FilledBuckets { class, .. } in &self.filled {
            *setting.entry(class.size).or_default() += class.buckets;
        }
        setting.into_iter().map(|(size, buckets)| SizeCount { size, buckets }).collect()
    }

    /// Details of the publication.
    #[must_use]
    pub fn method_details(&self) -> MethodDetails {
        let setting = self.setting();
        let loss = loss(&setting);
        MethodDetails::Bucketize { thresholds: self.thresholds.clone(), setting, loss, lower_bound: self.lower_bound }
    }

    /// Draws the bucket of each row.
    pub(in crate::publish) fn draw(
        &self,
        values: &SensitiveCodes<'_>,
        strata: Option<&Strata>,
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled> {
        let (codes, number) = (values.codes(), values.counts().len());
        let Some(strata) = strata else { return place(codes, number, &self.filled, stream, control) };
        let mut all = BucketAssignment { bucket_of: vec![BucketAssignment::NOWHERE; codes.len()], buckets: 0 };
        let mut rest = &self.filled[..];
        for (rows, &sizes) in strata.split().iter().zip(&self.in_strata) {
            let (filled, after) = rest.split_at(sizes);
            rest = after;
            let drawn = place(&codes.gather(rows), number, filled, stream, control)?;
            for (&row, bucket) in rows.iter().zip(drawn.bucket_of) {
                all.bucket_of[row as usize] = all.buckets + bucket;
            }
            all.buckets += drawn.buckets;
        }
        Ok(all)
    }

    /// Draws the counterfeits of each bucket; `None` if the plan asks for none.
    pub(in crate::publish) fn counterfeits(
        &self,
        table: &Table,
        sensitive: Attr,
        placed: PlacedRows<'_>,
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<Option<Vec<Counterfeit>>, Cancelled> {
        let Some(number) = self.counterfeits else { return Ok(None) };
        let mut draw = counterfeits::CounterfeitDraw::new(table, sensitive, stream, control)?;
        draw.strata = placed.strata;
        Ok(Some(draw.draw(placed.buckets, number)?.values))
    }
}

/// Rows in buckets, and the strata that these lie in.
#[derive(Clone, Copy)]
pub(in crate::publish) struct PlacedRows<'a> {
    pub(in crate::publish) buckets: &'a BucketAssignment,
    pub(in crate::publish) strata: Option<&'a Strata>,
}

/// Name of the random stream of the counterfeits of an attribute.
pub(in crate::publish) fn counterfeits_label(attr: Attr) -> String {
    format!("counterfeits/{}", attr.0)
}
