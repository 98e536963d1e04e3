//! The method `bucketize`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::microdata::Attr;
use crate::publication::{ExcludedValues, Protected, SubmittedRule, Thresholds};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::known_and_sensitive::KnownAndSensitive;
use crate::spec::grammar::reader::{FaultList, ObjectReader, child, integer};
use crate::spec::grammar::thresholds::{MAX_TABLE_ROWS, THRESHOLDS, read_thresholds};

/// The largest bucket that is searched for.
const MAX_BUCKET_SIZE: i128 = 10_000;

/// So many sizes may be listed.
const MAX_LISTED_SIZES: usize = 100;

/// So many counterfeits may stand in a bucket.
const MAX_COUNTERFEITS: i128 = 100;

const SIZES: &str = "\"one\", \"two\", \"multi\", \"optimal\", or an array such as [{\"size\": 6, \"buckets\": 6}]";

/// Bucketization with a threshold for each sensitive value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketizeSpec {
    /// The quasi-identifiers and the sensitive attribute, at pointer `/method`; its guarantee names the thresholds.
    pub rule: SubmittedRule,
    /// How much of a bucket each value may take.
    pub thresholds: Thresholds,
    /// Which buckets there are.
    pub sizes: BucketSizeChoice,
    /// The smallest size; `None`: the smallest that any value fits into.
    pub min_size: Option<u64>,
    /// The largest size.
    pub max_size: u64,
    /// How many counterfeits stand in each bucket.
    pub counterfeits: Option<u32>,
}

/// Which buckets there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BucketSizeChoice {
    /// All of one size.
    One,
    /// Of two sizes.
    Two,
    /// Of as many as a search by halves or a linear program finds.
    Multi,
    /// Of as many as lose least.
    Optimal,
    /// Of these sizes, so many of each.
    Listed(Vec<(u64, u64)>),
}

/// The method over columns of the dataset; what could not be read is `None`.
pub(in crate::spec) struct DraftBucketize {
    pub(in crate::spec) known: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    pub(in crate::spec) sensitive: Option<usize>,
    thresholds: Option<Thresholds>,
    sizes: Option<BucketSizeChoice>,
    min_size: Option<u64>,
    max_size: u64,
    counterfeits: Option<u32>,
}

impl DraftBucketize {
    /// The method as it stands in a normalized document.
    pub(in crate::spec) fn normal(&self, columns: &DatasetColumns<'_>) -> Value {
        let sizes = match &self.sizes {
            Some(BucketSizeChoice::One) => json!("one"),
            Some(BucketSizeChoice::Multi) => json!("multi"),
            Some(BucketSizeChoice::Optimal) => json!("optimal"),
            Some(BucketSizeChoice::Listed(listed)) => {
                listed.iter().map(|(size, buckets)| json!({"size": size, "buckets": buckets})).collect()
            }
            Some(BucketSizeChoice::Two) | None => json!("two"),
        };
        let listed = matches!(self.sizes, Some(BucketSizeChoice::Listed(_)));
        json!({
            "type": "bucketize",
            "quasi_identifiers": self.known.iter().map(|column| columns.name(*column)).collect::<Vec<_>>(),
            "sensitive": self.sensitive.map(|column| columns.name(column)),
            "thresholds": self.thresholds,
            "sizes": sizes,
            "min_size": self.min_size,
            "max_size": (!listed).then_some(self.max_size),
            "counterfeits": self.counterfeits.map(|number| json!({"per_bucket": number})),
        })
    }

    /// The method over attributes; `None` after faults.
    pub(in crate::spec) fn resolve(
        self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> Option<BucketizeSpec> {
        let sensitive = self.sensitive.filter(|column| !columns.facts[*column].overflow)?;
        let known = self.known.iter().filter(|column| **column != sensitive);
        let thresholds = self.thresholds?;
        let rule = SubmittedRule {
            pointer: "/method".to_owned(),
            known: known.map(|column| attrs[column]).collect(),
            protects: Protected::Attribute(attrs[&sensitive]),
            guarantee: thresholds.guarantee(),
        };
        let Self { min_size, max_size, counterfeits, .. } = self;
        Some(BucketizeSpec { rule, thresholds, sizes: self.sizes?, min_size, max_size, counterfeits })
    }
}

impl BucketizeSpec {
    /// What insiders rule out is reckoned with by no threshold.
    pub(in crate::spec) fn unsaid(&self, stated: &ExcludedValues) -> bool {
        self.rule.protects.attributes().contains(stated.attribute)
    }
}

/// Reads the method.
pub(in crate::spec) fn read(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftBucketize {
    let KnownAndSensitive { known, guessed, sensitive } =
        KnownAndSensitive::read(&mut members, columns, stated, faults);
    let thresholds = match members.object("thresholds", faults) {
        Some(of) => read_thresholds(of, faults),
        None => {
            if members.take("thresholds").is_none() {
                faults.range(members.at("thresholds"), THRESHOLDS);
            }
            None
        }
    };
    let sizes = read_sizes(&mut members, faults);
    let listed = matches!(sizes, Some(BucketSizeChoice::Listed(_)));
    let bound = |name: &'static str, members: &mut ObjectReader<'_>, faults: &mut FaultList| {
        let read = members.integer(name, 1..=MAX_BUCKET_SIZE, "an integer from 1 to 10000", faults);
        if listed && read.is_some() {
            faults.range(members.at(name), "nothing, where sizes lists the buckets");
        }
        read.and_then(|size| u64::try_from(size).ok())
    };
    let min_size = bound("min_size", &mut members, faults);
    let max_size = bound("max_size", &mut members, faults).unwrap_or(50);
    if min_size.is_some_and(|least| least > max_size) {
        faults.range(members.at("min_size"), "at most max_size");
    }
    let counterfeits = members.object("counterfeits", faults).and_then(|mut of| {
        let pointer = of.at("per_bucket");
        let allowed = "an integer from 1 to 100";
        let read = of.take("per_bucket").and_then(integer).filter(|number| (1..=MAX_COUNTERFEITS).contains(number));
        if read.is_none() {
            faults.range(pointer, allowed);
        }
        of.finish(faults);
        read.and_then(|number| u32::try_from(number).ok())
    });
    if counterfeits.is_some() && thresholds.as_ref().is_some_and(|of| !matches!(of, Thresholds::Uniform { .. })) {
        let detail = "a counterfeit is one row, and hides no value that occurs in a bucket more than once: \
                      counterfeits are made for uniform thresholds alone";
        faults.unsupported(members.at("counterfeits"), detail);
    }
    members.finish(faults);
    DraftBucketize { known, guessed, sensitive, thresholds, sizes, min_size, max_size, counterfeits }
}

fn read_sizes(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Option<BucketSizeChoice> {
    let pointer = members.at("sizes");
    match members.take("sizes") {
        None => Some(BucketSizeChoice::Two),
        Some(Value::String(word)) => {
            let sizes = match word.as_str() {
                "one" => BucketSizeChoice::One,
                "two" => BucketSizeChoice::Two,
                "multi" => BucketSizeChoice::Multi,
                "optimal" => BucketSizeChoice::Optimal,
                _ => {
                    faults.range(pointer, SIZES);
                    return None;
                }
            };
            Some(sizes)
        }
        Some(Value::Array(listed)) if (1..=MAX_LISTED_SIZES).contains(&listed.len()) => {
            let before = faults.len();
            let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
            for (at, item) in listed.iter().enumerate() {
                let pointer = child(&pointer, &at.to_string());
                let Some(mut item) = ObjectReader::open(item, pointer.as_str(), faults) else { continue };
                let mut number = |name: &'static str| {
                    let read = item.take(name).and_then(integer).filter(|number| (1..=MAX_TABLE_ROWS).contains(number));
                    if read.is_none() {
                        faults.range(item.at(name), "an integer of at least 1");
                    }
                    read.and_then(|number| u64::try_from(number).ok())
                };
                let read = number("size").zip(number("buckets"));
                item.finish(faults);
                if let Some((size, buckets)) = read
                    && sizes.insert(size, buckets).is_some()
                {
                    faults.range(child(&pointer, "size"), "a size that is not in the array already");
                }
            }
            (faults.len() == before).then(|| BucketSizeChoice::Listed(sizes.into_iter().collect()))
        }
        Some(_) => {
            faults.range(pointer, SIZES);
            None
        }
    }
}
