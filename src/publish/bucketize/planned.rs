//! Buckets that a plan decides before rows are dealt.

use std::collections::BTreeMap;

use super::counterfeits::{self, Counterfeit};
use super::filled::FilledBuckets;
use super::place::place;
use super::sizes::{SizeCount, loss};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Table};
use crate::problem::Fault;
use crate::publication::{MethodDetails, Thresholds};
use crate::publish::assign::{BucketAssignment, SensitiveCodes};
use crate::random::RandomStream;

/// Sizes of buckets and the values in them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedBuckets {
    /// Largest share of a bucket that each value may take.
    pub thresholds: Thresholds,
    /// Values in the buckets of each size; empty with faults.
    pub filled: Vec<FilledBuckets>,
    /// Proved lower bound of the loss, if one was requested.
    pub lower_bound: Option<u64>,
    /// Number of counterfeits of each bucket.
    pub counterfeits: Option<u32>,
    /// Why there are no buckets.
    pub faults: Vec<Fault>,
    /// Number of values with a threshold of their own that do not occur.
    pub unknown_values: usize,
    /// Number of counterfeits that some row of their bucket makes unlikely.
    pub seen_through: u64,
}

impl PlannedBuckets {
    /// Number of buckets of each size, sizes rising.
    #[must_use]
    pub fn setting(&self) -> Vec<SizeCount> {
        let mut setting: BTreeMap<u64, u64> = BTreeMap::new();
        for FilledBuckets { class: (size, buckets), .. } in &self.filled {
            *setting.entry(*size).or_default() += buckets;
        }
        setting.into_iter().collect()
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
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<BucketAssignment, Cancelled> {
        place(values.codes(), values.counts().len(), &self.filled, stream, control)
    }

    /// Draws the counterfeits of each bucket; `None` if the plan asks for none.
    pub(in crate::publish) fn counterfeits(
        &self,
        table: &Table,
        sensitive: Attr,
        buckets: &BucketAssignment,
        stream: &mut RandomStream,
        control: &Control,
    ) -> Result<Option<Vec<Counterfeit>>, Cancelled> {
        let Some(number) = self.counterfeits else { return Ok(None) };
        let mut draw = counterfeits::CounterfeitDraw::new(table, sensitive, stream, control)?;
        Ok(Some(draw.draw(buckets, number)?.values))
    }
}

/// Name of the random stream of the counterfeits of an attribute.
pub(in crate::publish) fn counterfeits_label(attr: Attr) -> String {
    format!("counterfeits/{}", attr.0)
}
