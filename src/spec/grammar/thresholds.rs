use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{
    Document, Fraction, Int, Member, MemberContext, SchemaMap, Share, define_as, document, reference,
};
use super::reader::FaultList;
use crate::problem::{Fault, Kind};
use crate::publication::{Ratio, Thresholds};

/// The most values with thresholds of their own.
const MAX_THRESHOLD_VALUES: usize = 100_000;

/// More rows than a table can have, as a bound of integers.
pub(in crate::spec) const MAX_TABLE_ROWS: u64 = 1 << 32;

const THRESHOLDS: &str = "one of {\"uniform\": {\"l\": 10}}, {\"linear\": {\"theta\": \"8\", \"c\": \"0.02\"}} and \
                          {\"explicit\": {\"HIV\": \"0.02\"}, \"otherwise\": \"0.6\"}";

document! {
    /// How much of a bucket each value may take at most: one of `uniform`, `linear` and `explicit`. Fractions are exact: integers, or
    /// texts such as `0.02` and `1/3`.
    ThresholdsMembers as "ThresholdsChoice" {
        optional uniform: UniformMembers,
        optional linear: LinearMembers,
        optional explicit: ThresholdsByValue,
        /// Beside `explicit`: the threshold of all other values, and of the missing one. Without it every value that occurs needs one.
        optional otherwise: Share,
    }
}

document! {
    /// No value takes more of a bucket than its threshold: one of `uniform`, `linear` and `explicit`.
    ThresholdsGuarantee as "StatedThresholdsGuarantee" tagged "thresholds" {
        include thresholds: ThresholdsMembers,
    }
}

document! {
    /// 1/l for every value: l-diversity.
    UniformMembers as "UniformThresholds" {
        /// The diversity.
        required l: Int<1, MAX_TABLE_ROWS, 2> => "an integer of at least 2",
    }
}

document! {
    /// `theta` times the value's share of the table, plus `c`; at most 1.
    LinearMembers as "LinearThresholds" {
        required theta: Fraction,
        required c: Fraction,
        optional overrides: ThresholdsByValue = ThresholdsByValue::default(),
    }
}

/// Thresholds of single values. No value is repeated in a pointer of a fault: it may be one of the data.
#[derive(Clone, Default, Debug)]
pub(in crate::spec) struct ThresholdsByValue(BTreeMap<String, Ratio>);

impl Member for ThresholdsByValue {
    fn allowed() -> String {
        "an object of thresholds by value".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let Some(of) = value.as_object() else { return context.refuse() };
        if of.len() > MAX_THRESHOLD_VALUES {
            context.allowed = "an object of at most 100000 values".to_owned();
            return context.refuse();
        }
        let read: Option<BTreeMap<String, Ratio>> =
            of.iter().map(|(value, threshold)| Some((value.clone(), Share::parse(threshold)?.0))).collect();
        context.allowed = Share::allowed();
        read.map(Self).or_else(|| context.refuse())
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        json!(self.0)
    }

    fn schema() -> Value {
        reference("ThresholdsByValue")
    }

    fn define(schemas: &mut SchemaMap) {
        Share::define(schemas);
        let schema = json!({
            "type": "object",
            "description": "Thresholds of single values, above 0 and at most 1.",
            "maxProperties": MAX_THRESHOLD_VALUES,
            "additionalProperties": Share::schema(),
        });
        define_as("ThresholdsByValue", schema, schemas);
    }
}

impl Member for Thresholds {
    fn allowed() -> String {
        THRESHOLDS.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let before = context.faults.len();
        let members = ThresholdsMembers::read(value, context)?;
        members.checked(context.faults, before)
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        json!(self)
    }

    fn schema() -> Value {
        ThresholdsMembers::schema()
    }

    fn define(schemas: &mut SchemaMap) {
        ThresholdsMembers::define(schemas);
    }
}

impl ThresholdsMembers {
    /// The thresholds; `None` when there is a fault after the first `before` ones.
    pub(in crate::spec) fn checked(self, faults: &mut FaultList, before: usize) -> Option<Thresholds> {
        let linear = self.linear.value.as_ref().and_then(|linear| Some((linear, linear.theta.value?, linear.c.value?)));
        if let Some((linear, Fraction(theta), Fraction(c))) = linear
            && theta.numerator() == 0
            && c.numerator() == 0
        {
            faults.range(linear.at("theta"), "a number above 0, where c is 0");
        } else if self.otherwise.value.is_some() && self.explicit.value.is_none() && !self.is_faulty() {
            faults.range(self.at("otherwise"), "nothing, but beside explicit thresholds");
        }
        if faults.len() > before {
            return None;
        }
        let uniform = self.uniform.value.as_ref().and_then(|uniform| uniform.l.value);
        let uniform = uniform.map(|l| Thresholds::Uniform { l: l.0 });
        let linear = linear.map(|(linear, theta, c)| Thresholds::Linear {
            theta: theta.0,
            c: c.0,
            overrides: linear.overrides.0.clone(),
        });
        let otherwise = self.otherwise.value.map(|share| share.0);
        let explicit =
            self.explicit.value.as_ref().map(|values| Thresholds::Explicit { values: values.0.clone(), otherwise });
        let mut given = [uniform, linear, explicit].into_iter().flatten();
        let (Some(thresholds), None) = (given.next(), given.next()) else {
            faults.range(self.pointer, THRESHOLDS);
            return None;
        };
        if is_vacuous(&thresholds) {
            let detail = "every value may take all of a bucket: state a threshold below 1";
            faults.push(Fault::new(self.pointer, Kind::VacuousGuarantee, detail));
            return None;
        }
        Some(thresholds)
    }

    /// Whether there is a fault in one of the forms.
    fn is_faulty(&self) -> bool {
        self.uniform.is_faulty || self.linear.is_faulty || self.explicit.is_faulty
    }
}

/// Whether every value may take all of a bucket.
fn is_vacuous(thresholds: &Thresholds) -> bool {
    match thresholds {
        Thresholds::Uniform { l } => *l == 1,
        Thresholds::Linear { c, overrides, .. } => *c >= Ratio::ONE && overrides.values().all(|of| *of >= Ratio::ONE),
        Thresholds::Explicit { values, otherwise } => {
            let mut all = values.values().chain(otherwise);
            all.next().is_some_and(|first| *first >= Ratio::ONE) && all.all(|of| *of >= Ratio::ONE)
        }
    }
}
