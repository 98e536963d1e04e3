//! The members `utility` and `internal`: measures of the model for every reader, and against the original for its owner.

use serde_json::{Value, json};

use super::reader::{FaultList, ObjectReader, child};
use crate::publication::Ratio;

/// The most COUNT queries of a workload.
const MAX_WORKLOAD_QUERIES: i128 = 10_000;

const NUMBER: &str = "an integer from 1 to 10000";

const SHARE: &str = "a number above 0 and at most 1, as a text such as \"0.4\"";

const MEASURES: &str = "an array of measures";

/// The measures of the internal report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InternalUtility {
    /// How far the model is from the original.
    pub kl: bool,
    /// How far estimates of COUNT queries are from true counts.
    pub count_queries: Option<CountWorkload>,
}

/// Random COUNT queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountWorkload {
    /// The number of queries.
    pub number: u32,
    /// The number of attributes of each query.
    pub dimensions: u32,
    /// How many values of each attribute a query has.
    pub width: PredicateWidthChoice,
}

/// How many values a random predicate has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PredicateWidthChoice {
    /// This share of the attribute's values.
    ValueFraction(Ratio),
    /// The number of values that would leave this share of the rows, if attributes were independent and values equally frequent.
    Selectivity(Ratio),
}

impl InternalUtility {
    /// The member `internal` in normal form.
    pub(in crate::spec) fn normal(&self) -> Value {
        let kl = self.kl.then(|| json!("kl"));
        let count_queries = self.count_queries.map(|workload| {
            let (name, share) = match workload.width {
                PredicateWidthChoice::ValueFraction(share) => ("value_fraction", share),
                PredicateWidthChoice::Selectivity(share) => ("selectivity", share),
            };
            json!({"count_queries": {"number": workload.number, "dimensions": workload.dimensions, name: share}})
        });
        json!({"utility": kl.into_iter().chain(count_queries).collect::<Vec<_>>()})
    }
}

/// Reads `utility`: whether the entropy of the model is requested; `None` when it is absent.
pub(in crate::spec) fn read_public(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> Option<bool> {
    let pointer = members.at("utility");
    let measures = members.list("utility", MEASURES, faults)?;
    for (at, _) in measures.iter().enumerate().filter(|(_, measure)| **measure != "entropy") {
        faults.range(child(&pointer, &at.to_string()), "\"entropy\"");
    }
    Some(!measures.is_empty())
}

/// Reads `internal`.
pub(in crate::spec) fn read_internal(members: &mut ObjectReader<'_>, faults: &mut FaultList) -> InternalUtility {
    let mut utility = InternalUtility::default();
    let Some(mut internal) = members.object("internal", faults) else { return utility };
    let pointer = internal.at("utility");
    for (at, measure) in internal.list("utility", MEASURES, faults).unwrap_or_default().iter().enumerate() {
        let pointer = child(&pointer, &at.to_string());
        if measure == "kl" {
            utility.kl = true;
            continue;
        }
        if !measure.is_object() {
            faults.range(pointer, "\"kl\", or an object with count_queries");
            continue;
        }
        let Some(mut measure) = ObjectReader::open(measure, pointer, faults) else { continue };
        let before = faults.len();
        match measure.object("count_queries", faults) {
            Some(workload) => utility.count_queries = read_workload(workload, faults),
            None if faults.len() == before => faults.range(measure.at("count_queries"), "an object"),
            None => {}
        }
        measure.finish(faults);
    }
    internal.finish(faults);
    utility
}

fn read_workload(mut members: ObjectReader<'_>, faults: &mut FaultList) -> Option<CountWorkload> {
    let whole = |number: Option<i128>, default: u32| match number {
        Some(number) => u32::try_from(number).unwrap_or(default),
        None => default,
    };
    let number = members.integer("number", 1..=MAX_WORKLOAD_QUERIES, NUMBER, faults);
    let dimensions = members.integer("dimensions", 1..=128, "an integer from 1 to the number of attributes", faults);
    let before = faults.len();
    let mut share = |name: &'static str| {
        let text = members.text(name, SHARE, faults, |text| share_of(text).is_some());
        text.and_then(share_of)
    };
    let (fraction, selectivity) = (share("value_fraction"), share("selectivity"));
    let width = match (fraction, selectivity) {
        (Some(share), None) => Some(PredicateWidthChoice::ValueFraction(share)),
        (None, Some(share)) => Some(PredicateWidthChoice::Selectivity(share)),
        (Some(_), Some(_)) => {
            faults.range(members.at("selectivity"), "either value_fraction or selectivity");
            None
        }
        (None, None) if faults.len() == before => {
            faults.range(members.at("value_fraction"), "value_fraction or selectivity");
            None
        }
        (None, None) => None,
    };
    members.finish(faults);
    Some(CountWorkload { number: whole(number, 1000), dimensions: whole(dimensions, 1), width: width? })
}

fn share_of(text: &str) -> Option<Ratio> {
    text.parse::<Ratio>().ok().filter(|share| share.numerator() > 0 && *share <= Ratio::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Kind;

    fn read(document: &Value) -> (Option<bool>, InternalUtility, Vec<(String, Kind)>) {
        let mut faults = FaultList::new();
        let mut members = ObjectReader::open(document, "", &mut faults).unwrap();
        let (public, internal) = (read_public(&mut members, &mut faults), read_internal(&mut members, &mut faults));
        let faults = faults.into_sorted().into_iter().map(|fault| (fault.pointer, fault.kind)).collect();
        (public, internal, faults)
    }

    #[test]
    fn measures_are_asked_for_by_name() {
        assert_eq!(read(&json!({})), (None, InternalUtility::default(), vec![]));
        assert_eq!(read(&json!({"utility": []})).0, Some(false));
        assert_eq!(read(&json!({"utility": ["entropy"]})).0, Some(true));
        let queries = json!({"count_queries": {"number": 7, "dimensions": 3, "value_fraction": "0.4"}});
        let (_, internal, faults) = read(&json!({"internal": {"utility": ["kl", queries]}}));
        assert_eq!(faults, []);
        let width = PredicateWidthChoice::ValueFraction("2/5".parse().unwrap());
        let workload = CountWorkload { number: 7, dimensions: 3, width };
        assert_eq!(internal, InternalUtility { kl: true, count_queries: Some(workload) });
        // what it is written as is read as it
        assert_eq!(read(&json!({"internal": internal.normal()})).1, internal);
        let defaults = json!({"count_queries": {"selectivity": "1/20"}});
        let (_, internal, _) = read(&json!({"internal": {"utility": [defaults]}}));
        assert_eq!(read(&json!({"internal": internal.normal()})).1, internal);
        assert!(!internal.kl && internal.count_queries.unwrap().number == 1000);
    }

    #[test]
    fn faults_are_named() {
        let range = |pointer: &str| (pointer.to_owned(), Kind::ParameterRange);
        let document = json!({"utility": ["entropy", "kl"], "internal": {"utility": [
            "entropy", {"count_queries": {"number": 0, "value_fraction": 0.4}}, {"count_queries": 7},
            {"count_queries": {"dimensions": 200, "value_fraction": "1.5"}}, {"x": 1}, 7,
            {"count_queries": {"value_fraction": "1", "selectivity": "1"}}, {"count_queries": {}},
        ], "x": 1}});
        let expected = [
            range("/internal/utility/0"),
            range("/internal/utility/1/count_queries/number"),
            range("/internal/utility/1/count_queries/value_fraction"),
            range("/internal/utility/2/count_queries"),
            range("/internal/utility/3/count_queries/dimensions"),
            range("/internal/utility/3/count_queries/value_fraction"),
            range("/internal/utility/4/count_queries"),
            ("/internal/utility/4/x".to_owned(), Kind::UnknownField),
            range("/internal/utility/5"),
            range("/internal/utility/6/count_queries/selectivity"),
            range("/internal/utility/7/count_queries/value_fraction"),
            ("/internal/x".to_owned(), Kind::UnknownField),
            range("/utility/1"),
        ];
        assert_eq!(read(&document).2, expected);
    }
}
