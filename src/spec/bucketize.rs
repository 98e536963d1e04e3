//! The method `bucketize`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use super::attributes::{AttributeOptions, DatasetColumns};
use super::reader::{FaultList, ObjectReader, child, integer};
use super::sides::KnownAndSensitive;
use crate::microdata::Attr;
use crate::problem::{Fault, Kind};
use crate::publication::{ExcludedValues, Protected, Ratio, SubmittedRule, Thresholds};

/// The largest bucket that is searched for.
const MAX_BUCKET_SIZE: i128 = 10_000;
/// So many sizes may be listed.
const MAX_LISTED_SIZES: usize = 100;
/// So many values may have thresholds of their own.
const MAX_THRESHOLD_VALUES: usize = 100_000;
/// So many counterfeits may stand in a bucket.
const MAX_COUNTERFEITS: i128 = 100;
/// More rows than a table can have.
const MAX_TABLE_ROWS: i128 = 1 << 32;

const THRESHOLDS: &str = "one of {\"uniform\": {\"l\": 10}}, {\"linear\": {\"theta\": \"8\", \"c\": \"0.02\"}} and \
                          {\"explicit\": {\"HIV\": \"0.02\"}, \"otherwise\": \"0.6\"}";
const SHARE: &str = "a fraction above 0 and at most 1, as a text such as \"0.02\" or \"1/3\"";
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
pub(super) struct DraftBucketize {
    pub(super) known: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(super) guessed: BTreeSet<usize>,
    pub(super) sensitive: Option<usize>,
    thresholds: Option<Thresholds>,
    sizes: Option<BucketSizeChoice>,
    min_size: Option<u64>,
    max_size: u64,
    counterfeits: Option<u32>,
}

impl DraftBucketize {
    /// The method as it stands in a normalized document.
    pub(super) fn normal(&self, columns: &DatasetColumns<'_>) -> Value {
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
    pub(super) fn resolve(self, columns: &DatasetColumns<'_>, attrs: &HashMap<usize, Attr>) -> Option<BucketizeSpec> {
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
    pub(super) fn unsaid(&self, stated: &ExcludedValues) -> bool {
        self.rule.protects.attributes().contains(stated.attribute)
    }
}

/// Reads the method.
pub(super) fn read(
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

/// A threshold: exact, above 0 and at most 1.
fn share(value: &Value) -> Option<Ratio> {
    ratio(value).filter(|ratio| ratio.numerator() > 0 && *ratio <= Ratio::ONE)
}

fn ratio(value: &Value) -> Option<Ratio> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => integer(other).and_then(|whole| Ratio::new(u64::try_from(whole).ok()?, 1).ok()),
    }
}

/// Thresholds of single values. No value is repeated in a pointer of a fault: it may be one of the data.
fn of_values(
    members: &mut ObjectReader<'_>,
    name: &'static str,
    faults: &mut FaultList,
) -> Option<BTreeMap<String, Ratio>> {
    let pointer = members.at(name);
    let of = match members.take(name) {
        Some(Value::Object(of)) => of,
        Some(_) => {
            faults.range(pointer, "an object of thresholds by value");
            return None;
        }
        None => return Some(BTreeMap::new()),
    };
    if of.len() > MAX_THRESHOLD_VALUES {
        faults.range(pointer, "an object of at most 100000 values");
        return None;
    }
    let read: BTreeMap<String, Ratio> =
        of.iter().filter_map(|(value, stated)| Some((value.clone(), share(stated)?))).collect();
    if read.len() < of.len() {
        faults.range(pointer, SHARE);
        return None;
    }
    Some(read)
}

pub(super) fn read_thresholds(mut members: ObjectReader<'_>, faults: &mut FaultList) -> Option<Thresholds> {
    let before = faults.len();
    let pointer = members.pointer().to_owned();
    let uniform = members.object("uniform", faults).and_then(|mut of| {
        let l = of.take("l").and_then(integer).filter(|l| (1..=MAX_TABLE_ROWS).contains(l));
        if l.is_none() {
            faults.range(of.at("l"), "an integer of at least 2");
        }
        of.finish(faults);
        u64::try_from(l?).ok().map(|l| Thresholds::Uniform { l })
    });
    let linear = members.object("linear", faults).and_then(|of| read_linear(of, faults));
    let explicit = match members.take("explicit") {
        Some(_) => of_values(&mut members, "explicit", faults),
        None => None,
    };
    let otherwise = match members.take("otherwise") {
        Some(value) => {
            let read = share(value);
            if read.is_none() {
                faults.range(members.at("otherwise"), SHARE);
            } else if explicit.is_none() && faults.len() == before {
                faults.range(members.at("otherwise"), "nothing, but beside explicit thresholds");
            }
            read
        }
        None => None,
    };
    members.finish(faults);
    if faults.len() > before {
        return None;
    }
    let explicit = explicit.map(|values| Thresholds::Explicit { values, otherwise });
    let mut stated = [uniform, linear, explicit].into_iter().flatten();
    let (Some(thresholds), None) = (stated.next(), stated.next()) else {
        faults.range(pointer, THRESHOLDS);
        return None;
    };
    let all = match &thresholds {
        Thresholds::Uniform { l } => *l == 1,
        Thresholds::Linear { c, overrides, .. } => *c >= Ratio::ONE && overrides.values().all(|of| *of >= Ratio::ONE),
        Thresholds::Explicit { values, otherwise } => {
            let mut all = values.values().chain(otherwise);
            all.next().is_some_and(|first| *first >= Ratio::ONE) && all.all(|of| *of >= Ratio::ONE)
        }
    };
    if all {
        let detail = "every value may take all of a bucket: state a threshold below 1";
        faults.push(Fault::new(pointer, Kind::VacuousGuarantee, detail));
        return None;
    }
    Some(thresholds)
}

fn read_linear(mut members: ObjectReader<'_>, faults: &mut FaultList) -> Option<Thresholds> {
    let mut required = |name: &'static str| {
        let read = members.take(name).and_then(ratio);
        if read.is_none() {
            faults.range(members.at(name), "a fraction of at least 0, as a text such as \"8\" or \"0.02\"");
        }
        read
    };
    let (theta, c) = (required("theta"), required("c"));
    let overrides = of_values(&mut members, "overrides", faults);
    if theta.is_some_and(|theta| theta.numerator() == 0) && c.is_some_and(|c| c.numerator() == 0) {
        faults.range(members.at("theta"), "a number above 0, where c is 0");
    }
    members.finish(faults);
    Some(Thresholds::Linear { theta: theta?, c: c?, overrides: overrides? })
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
