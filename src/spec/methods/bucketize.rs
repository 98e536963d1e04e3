//! The method `bucketize` [Wang et al. 2012]; `docs/spec/bucketize.md`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::common::CommonMembers;
use crate::microdata::Attr;
use crate::publication::{ExcludedValues, Protected, SizeCount, SubmittedRule, Thresholds};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{
    Array, ColumnName, Document, Int, Member, MemberContext, Names, SchemaMap, choice, document,
};
use crate::spec::grammar::known_and_sensitive::KnownAndSensitive;
use crate::spec::grammar::reader::FaultList;
use crate::spec::grammar::thresholds::MAX_TABLE_ROWS;

/// The largest bucket size of a search.
pub(in crate::spec) const MAX_BUCKET_SIZE: u64 = 10_000;

/// The most sizes that a document lists.
const MAX_LISTED_SIZES: usize = 100;

/// The most counterfeits of a bucket.
const MAX_COUNTERFEITS: u64 = 100;

/// The largest size of a search that states none.
pub(in crate::spec) const DEFAULT_MAX_SIZE: u64 = 50;

const SIZES: &str = "\"one\", \"two\", \"multi\", \"optimal\", or an array such as [{\"size\": 6, \"buckets\": 6}]";

/// Bucketization with a threshold for each sensitive value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketizeSpec {
    /// The quasi-identifiers and the sensitive attribute, at pointer `/method`; its guarantee names the thresholds.
    pub rule: SubmittedRule,
    /// The largest share of a bucket for each value.
    pub thresholds: Thresholds,
    /// Which buckets there are.
    pub sizes: BucketSizeChoice,
    /// The smallest size; `None`: the smallest that any value fits into.
    pub min_size: Option<u64>,
    /// The largest bucket size of the search.
    pub max_size: u64,
    /// The number of counterfeits in each bucket.
    pub counterfeits: Option<u32>,
}

/// Which buckets there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BucketSizeChoice {
    /// All buckets of one size.
    One,
    /// Buckets of two sizes, the best pair.
    Two,
    /// Of several sizes, found by halves or a linear program.
    Multi,
    /// Of the sizes that lose least.
    Optimal,
    /// Listed sizes, each with its number of buckets.
    Listed(Vec<SizeCount>),
}

document! {
    /// One sensitive attribute with a threshold for each of its values, and one table in two parts that are linked by buckets of
    /// several sizes.
    BucketizeMembers as "BucketizeMethod" tagged "bucketize" {
        /// What stays protected.
        required sensitive: ColumnName => "the name of the sensitive attribute",
        /// What may be known. When not given, every attribute that is marked with `publish`.
        optional quasi_identifiers: Names,
        required thresholds: Thresholds,
        /// Which buckets there are: found by a search, or listed. `multi` when not given.
        optional sizes: SizesMember,
        /// The smallest size that is searched. When not given, the smallest bucket that any value fits into. Not with listed sizes.
        optional min_size: Int<1, MAX_BUCKET_SIZE>,
        /// The largest size that is searched. 50 when not given. Not with listed sizes.
        optional max_size: Int<1, MAX_BUCKET_SIZE>,
        optional counterfeits: CounterfeitMembers,
        include common: CommonMembers,
    }
}

document! {
    /// Fake values in each bucket, for uniform thresholds: an adversary who knows all other rows of a bucket is not certain of the last
    /// one.
    CounterfeitMembers as "CounterfeitChoice" {
        /// How many stand in each bucket.
        required per_bucket: Int<1, MAX_COUNTERFEITS>,
    }
}

document! {
    /// Buckets of one size.
    BucketClassMembers as "BucketClass" {
        /// Rows in each bucket.
        required size: Int<1, MAX_TABLE_ROWS> => "an integer of at least 1",
        /// How many buckets there are.
        required buckets: Int<1, MAX_TABLE_ROWS> => "an integer of at least 1",
    }
}

choice! {
    /// `one`: all buckets of one size. `two`: of two, the best of these. `multi`: of many, by dividing two sizes again as long as that
    /// loses less, or by a linear program whose parts of buckets are made whole, whichever loses less. `optimal`: integer programming
    /// within bounds of work, for at most 3,000 pairs of a size and a value; the answer says how much any buckets must lose. A job is
    /// cancelled between two steps of it, not within one.
    pub(in crate::spec) enum SizeSearch as "SizeSearch" {
        /// All of one size.
        One = "one",
        /// Of two sizes.
        Two = "two",
        /// Of several sizes, found by halves or a linear program.
        Multi = "multi",
        /// Of the sizes that lose least.
        Optimal = "optimal",
    }
}

/// The member `sizes`.
#[derive(Clone, Debug)]
pub(in crate::spec) enum SizesMember {
    Search(SizeSearch),
    /// Sizes in ascending order, each with its number of buckets.
    Listed(BTreeMap<u64, u64>),
}

impl Member for SizesMember {
    fn allowed() -> String {
        SIZES.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        match value {
            Value::String(_) => SizeSearch::read(value, context).map(Self::Search),
            Value::Array(listed) if (1..=MAX_LISTED_SIZES).contains(&listed.len()) => read_listed(value, context),
            _ => context.refuse(),
        }
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        match self {
            Self::Search(search) => search.write(columns),
            Self::Listed(listed) => {
                listed.iter().map(|(size, buckets)| json!({"size": size, "buckets": buckets})).collect()
            }
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [SizeSearch::schema(), Array::<BucketClassMembers, 1, MAX_LISTED_SIZES>::schema()]})
    }

    fn define(schemas: &mut SchemaMap) {
        SizeSearch::define(schemas);
        BucketClassMembers::define(schemas);
    }
}

/// Reads the sizes of an array; none may occur twice.
fn read_listed(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<SizesMember> {
    let before = context.faults.len();
    let listed = Array::<BucketClassMembers>::read(value, context)?;
    let mut sizes = BTreeMap::new();
    for class in listed.values() {
        if let (Some(size), Some(buckets)) = (class.size.value, class.buckets.value)
            && sizes.insert(size.0, buckets.0).is_some()
        {
            context.faults.range(class.at("size"), "a size that is not in the array already");
        }
    }
    (context.faults.len() == before).then_some(SizesMember::Listed(sizes))
}

impl From<SizesMember> for BucketSizeChoice {
    fn from(sizes: SizesMember) -> Self {
        match sizes {
            SizesMember::Search(SizeSearch::One) => Self::One,
            SizesMember::Search(SizeSearch::Two) => Self::Two,
            SizesMember::Search(SizeSearch::Multi) => Self::Multi,
            SizesMember::Search(SizeSearch::Optimal) => Self::Optimal,
            SizesMember::Listed(sizes) => {
                Self::Listed(sizes.into_iter().map(|(size, buckets)| SizeCount { size, buckets }).collect())
            }
        }
    }
}

/// The method over columns of the dataset.
pub(in crate::spec) struct DraftBucketize {
    /// The document, with its defaults filled in.
    pub(in crate::spec) members: BucketizeMembers,
    /// Columns that may have been meant where a fault hides which.
    pub(in crate::spec) guessed: BTreeSet<usize>,
}

impl DraftBucketize {
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        self.members.quasi_identifiers.columns().iter().copied().chain(self.members.sensitive.column()).collect()
    }

    /// The method over attributes; `None` after faults.
    pub(in crate::spec) fn resolve(
        self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> Option<BucketizeSpec> {
        let members = self.members;
        let sensitive = members.sensitive.column().filter(|column| !columns.facts[*column].overflow)?;
        let known = members.quasi_identifiers.columns().iter().filter(|column| **column != sensitive);
        let known = known.map(|column| attrs[column]).collect();
        let thresholds = members.thresholds.value?;
        let rule = SubmittedRule {
            pointer: "/method".to_owned(),
            known,
            protects: Protected::Attribute(attrs[&sensitive]),
            guarantee: thresholds.guarantee(),
        };
        let per_bucket = members.counterfeits.value.and_then(|counterfeits| counterfeits.per_bucket.value);
        Some(BucketizeSpec {
            rule,
            thresholds,
            sizes: members.sizes.value?.into(),
            min_size: members.min_size.value.map(|size| size.0),
            max_size: members.max_size.value.map_or(DEFAULT_MAX_SIZE, |size| size.0),
            counterfeits: per_bucket.and_then(|number| u32::try_from(number.0).ok()),
        })
    }
}

impl BucketizeSpec {
    /// Whether the thresholds would ignore what insiders rule out: excluded values of the sensitive attribute.
    pub(in crate::spec) fn ignores(&self, excluded: &ExcludedValues) -> bool {
        self.rule.protects.attributes().contains(excluded.attribute)
    }
}

/// Reads the method.
pub(in crate::spec) fn read(
    mut members: BucketizeMembers,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftBucketize {
    let pointer = members.at("quasi_identifiers");
    let sides = KnownAndSensitive { known: &mut members.quasi_identifiers, pointer, sensitive: &members.sensitive };
    let guessed = sides.complete(columns, attributes, faults);
    check_sizes(&mut members, faults);
    check_counterfeits(&mut members, faults);
    DraftBucketize { members, guessed }
}

/// Fills in the sizes that the document does not state. Listed sizes have no bounds.
fn check_sizes(members: &mut BucketizeMembers, faults: &mut FaultList) {
    if !members.sizes.is_faulty && members.sizes.value.is_none() {
        members.sizes = SizesMember::Search(SizeSearch::Multi).into();
    }
    let is_listed = matches!(members.sizes.value, Some(SizesMember::Listed(_)));
    for (name, size) in [("min_size", members.min_size.value), ("max_size", members.max_size.value)] {
        if is_listed && size.is_some() {
            faults.range(members.at(name), "nothing, where sizes lists the buckets");
        }
    }
    let max_size = members.max_size.value.map_or(DEFAULT_MAX_SIZE, |size| size.0);
    if members.min_size.value.is_some_and(|least| least.0 > max_size) {
        faults.range(members.at("min_size"), "at most max_size");
    }
    if !is_listed {
        members.max_size.value = Some(Int(max_size));
    }
}

/// Counterfeits go with uniform thresholds.
fn check_counterfeits(members: &mut BucketizeMembers, faults: &mut FaultList) {
    let per_bucket = members.counterfeits.value.as_ref().and_then(|counterfeits| counterfeits.per_bucket.value);
    let vary = |thresholds: &Thresholds| !matches!(thresholds, Thresholds::Uniform { .. });
    if per_bucket.is_some() && members.thresholds.value.as_ref().is_some_and(vary) {
        let detail = "a counterfeit is one row, and hides no value that occurs in a bucket more than once: \
                      counterfeits are made for uniform thresholds alone";
        faults.unsupported(members.at("counterfeits"), detail);
    }
}
