//! The members `utility` and `internal`: measures of the model for every reader, and against the original for its owner.

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{Array, Document, Int, Member, MemberContext, SchemaMap, Share, choice, document};
use super::reader::FaultList;
use crate::publication::Ratio;

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

document! {
    /// What only the holder of the original learns.
    InternalMembers as "InternalReportChoice" {
        /// `kl`: how far the readers' model is from the original, in nats. `count_queries`: how far estimates of random COUNT queries are
        /// from the true counts.
        optional utility: Array<InternalMeasure> => "an array of measures",
    }
}

choice! {
    /// A measure that every reader can recompute.
    pub(in crate::spec) enum PublicMeasure as "PublicMeasure" {
        /// The entropy of the readers' model.
        Entropy = "entropy",
    }
}

choice! {
    /// A measure against the original.
    pub(in crate::spec) enum DivergenceMeasure as "InternalMeasure" {
        /// How far the model is from the original.
        Kl = "kl",
    }
}

/// An element of the internal report.
#[derive(Clone, Debug)]
pub(in crate::spec) enum InternalMeasure {
    Divergence(DivergenceMeasure),
    CountQueries(CountWorkloadChoice),
}

document! {
    /// Random COUNT queries.
    CountWorkloadChoice as "CountWorkloadChoice" {
        required count_queries: CountWorkloadMembers,
    }
}

const SHARE: &str = "a number above 0 and at most 1, as a text such as \"0.4\"";

document! {
    /// How many random queries, and what they are like. State either `value_fraction` or `selectivity`.
    CountWorkloadMembers as "CountWorkload" {
        /// How many queries. 1000 when not given.
        optional number: Int<1, 10_000> = Int(1_000),
        /// How many attributes a query has, at most as many as are published. 1 when not given.
        optional dimensions: Int<1, 128> = Int(1) => "an integer from 1 to the number of attributes",
        /// The share of an attribute's values that a query has: above 0, at most 1, such as `0.4`.
        optional value_fraction: Share => SHARE,
        /// The share of rows that a query would have if attributes were independent and values equally frequent: above 0, at most 1.
        optional selectivity: Share => SHARE,
    }
}

impl Member for InternalMeasure {
    fn allowed() -> String {
        "\"kl\", or an object with count_queries".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        if !value.is_object() {
            return DivergenceMeasure::read(value, context).map(Self::Divergence);
        }
        let choice = CountWorkloadChoice::read(value, context)?;
        if let Some(workload) = &choice.count_queries.value {
            workload.check(context.faults);
        }
        Some(Self::CountQueries(choice))
    }

    fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        match self {
            Self::Divergence(measure) => measure.write(columns),
            Self::CountQueries(choice) => choice.write(columns),
        }
    }

    fn schema() -> Value {
        json!({"anyOf": [DivergenceMeasure::schema(), CountWorkloadChoice::schema()]})
    }

    fn define(schemas: &mut SchemaMap) {
        DivergenceMeasure::define(schemas);
        CountWorkloadChoice::define(schemas);
    }
}

impl CountWorkloadMembers {
    /// Exactly one of the shares is given.
    fn check(&self, faults: &mut FaultList) {
        let (fraction, selectivity) = (&self.value_fraction, &self.selectivity);
        if fraction.value.is_some() && selectivity.value.is_some() {
            faults.range(self.at("selectivity"), "either value_fraction or selectivity");
        } else if self.workload().is_none() && !fraction.is_faulty && !selectivity.is_faulty {
            faults.range(self.at("value_fraction"), "value_fraction or selectivity");
        }
    }

    /// The workload; `None` after faults.
    fn workload(&self) -> Option<CountWorkload> {
        let width = match (self.value_fraction.value, self.selectivity.value) {
            (Some(share), None) => PredicateWidthChoice::ValueFraction(share.0),
            (None, Some(share)) => PredicateWidthChoice::Selectivity(share.0),
            _ => return None,
        };
        let (number, dimensions) = (u32::try_from(self.number.0).ok()?, u32::try_from(self.dimensions.0).ok()?);
        Some(CountWorkload { number, dimensions, width })
    }
}

impl From<&InternalMembers> for InternalUtility {
    /// Of several workloads the last counts.
    fn from(members: &InternalMembers) -> Self {
        let mut utility = Self::default();
        for measure in members.utility.value.iter().flat_map(Array::values) {
            match measure {
                InternalMeasure::Divergence(DivergenceMeasure::Kl) => utility.kl = true,
                InternalMeasure::CountQueries(choice) => {
                    utility.count_queries =
                        choice.count_queries.value.as_ref().and_then(CountWorkloadMembers::workload);
                }
            }
        }
        utility
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Kind;
    use crate::spec::grammar::general::GeneralMembers;
    use crate::spec::grammar::reader::ObjectReader;

    fn read(document: &Value) -> (Option<bool>, InternalUtility, Vec<(String, Kind)>) {
        let mut faults = FaultList::new();
        let members = ObjectReader::open(document, "", &mut faults).unwrap();
        let general = GeneralMembers::read_members(members, &DatasetColumns::default(), &mut faults);
        let (public, internal) = (general.entropy(), InternalUtility::from(&general.internal));
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
            "entropy", {"count_queries": {"number": 0, "value_fraction": 0.412_345_678_9}}, {"count_queries": 7},
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
