use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{Member, MemberContext, reference};
use super::reader::{FaultList, ObjectReader, integer};
use crate::problem::{Fault, Kind};
use crate::publication::{Ratio, Thresholds};

/// The most values with thresholds of their own.
const MAX_THRESHOLD_VALUES: usize = 100_000;

/// More rows than a table can have, as a bound of integers.
pub(in crate::spec) const MAX_TABLE_ROWS: u64 = 1 << 32;

const THRESHOLDS: &str = "one of {\"uniform\": {\"l\": 10}}, {\"linear\": {\"theta\": \"8\", \"c\": \"0.02\"}} and \
                          {\"explicit\": {\"HIV\": \"0.02\"}, \"otherwise\": \"0.6\"}";

const SHARE: &str = "a fraction above 0 and at most 1, as a text such as \"0.02\" or \"1/3\"";

impl Member for Thresholds {
    fn allowed() -> String {
        THRESHOLDS.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let members = ObjectReader::open(value, context.pointer.as_str(), context.faults)?;
        read_thresholds(members, context.faults)
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        json!(self)
    }

    fn schema() -> Value {
        reference("ThresholdsChoice")
    }
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
        of.iter().filter_map(|(value, threshold)| Some((value.clone(), share(threshold)?))).collect();
    if read.len() < of.len() {
        faults.range(pointer, SHARE);
        return None;
    }
    Some(read)
}

pub(in crate::spec) fn read_thresholds(mut members: ObjectReader<'_>, faults: &mut FaultList) -> Option<Thresholds> {
    let before = faults.len();
    let pointer = members.pointer().to_owned();
    let uniform = members.object("uniform", faults).and_then(|mut of| {
        let l = of.take("l").and_then(integer).filter(|l| (1..=i128::from(MAX_TABLE_ROWS)).contains(l));
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
    let mut given = [uniform, linear, explicit].into_iter().flatten();
    let (Some(thresholds), None) = (given.next(), given.next()) else {
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
