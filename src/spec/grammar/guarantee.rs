//! Guarantees of documents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{Document, Member, MemberContext, SchemaMap, reference};
use super::reader::{FaultList, ObjectReader, ratio};
use super::thresholds::ThresholdsGuarantee;
use crate::problem::{Fault, Kind};
use crate::publication::{
    DigestedThresholds, Divergence, Guarantee, PriorDistribution, Ratio, Reference, RhoMode, ThresholdsDigest,
    ValueDistance,
};

/// Guarantees of rules over quasi-identifiers and a sensitive attribute.
const RULE_GUARANTEES: &[&str] = &[
    "l_diversity",
    "distinct_l_diversity",
    "entropy_l_diversity",
    "recursive_l_diversity",
    "alpha_k",
    "t_closeness",
    "rho",
    "delta",
];

const THRESHOLDS: &str = "thresholds";

/// Guarantees that belong to other methods.
const OTHER_METHOD_GUARANTEES: &[&str] = &["k_anonymity", "thresholds"];

const DIVERSITY: &str = "an integer of at least 2";

const POSITIVE_U64: std::ops::RangeInclusive<i128> = 1..=u64::MAX as i128;

/// The thresholds that the guarantees of a document name.
pub(in crate::spec) type ThresholdsByDigest = BTreeMap<ThresholdsDigest, DigestedThresholds>;

/// Reads a guarantee; `None` after a fault.
pub fn guarantee(value: &Value, pointer: &str, faults: &mut FaultList) -> Option<Guarantee> {
    guarantee_among(RULE_GUARANTEES, value, pointer, faults)
}

/// Reads the guarantee of a rule, which may be thresholds; they are added to `named`. `None` after a fault.
pub(in crate::spec) fn guarantee_of_rule(
    value: &Value,
    pointer: &str,
    named: &mut ThresholdsByDigest,
    faults: &mut FaultList,
) -> Option<Guarantee> {
    if value["type"] != THRESHOLDS {
        let supported: Vec<&str> = RULE_GUARANTEES.iter().copied().chain([THRESHOLDS]).collect();
        return guarantee_among(&supported, value, pointer, faults);
    }
    let mut members = ObjectReader::open(value, pointer, faults)?;
    members.take("type");
    let before = faults.len();
    let members = ThresholdsGuarantee::read_members(members, &DatasetColumns::default(), faults).thresholds;
    let thresholds = DigestedThresholds::from(members.checked(faults, before)?);
    let guarantee = thresholds.guarantee();
    if let Guarantee::Thresholds { digest, .. } = guarantee {
        named.insert(digest, thresholds);
    }
    Some(guarantee)
}

/// A guarantee in normal form; thresholds that it names are in `named`.
pub(in crate::spec) fn guarantee_to_json(guarantee: &Guarantee, named: &ThresholdsByDigest) -> Value {
    let found = match guarantee {
        Guarantee::Thresholds { digest, .. } => named.get(digest),
        _ => None,
    };
    let Some(thresholds) = found else { return json!(guarantee) };
    let mut written = json!(thresholds.declared());
    written["type"] = THRESHOLDS.into();
    written
}

/// The guarantee of a rule, with the thresholds that it names.
#[derive(Clone, Debug)]
pub(in crate::spec) struct RuleGuarantee {
    pub(in crate::spec) guarantee: Guarantee,
    pub(in crate::spec) thresholds: ThresholdsByDigest,
}

impl Member for RuleGuarantee {
    fn allowed() -> String {
        "a guarantee such as {\"type\": \"l_diversity\", \"l\": 2}".to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let mut thresholds = ThresholdsByDigest::new();
        let guarantee = guarantee_of_rule(value, &context.pointer, &mut thresholds, context.faults)?;
        Some(Self { guarantee, thresholds })
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        guarantee_to_json(&self.guarantee, &self.thresholds)
    }

    fn schema() -> Value {
        reference("RuleGuarantee")
    }

    fn define(schemas: &mut SchemaMap) {
        ThresholdsGuarantee::define(schemas);
        let schema = json!({
            "anyOf": [reference("Guarantee"), ThresholdsGuarantee::schema()],
            "description": "How much may be learned of a sensitive value; thresholds are given whole.",
        });
        schemas.insert("RuleGuarantee".to_owned(), schema);
    }
}

/// Reads one of the guarantees that a method takes; `None` after a fault.
pub(in crate::spec) fn guarantee_among(
    supported: &[&str],
    value: &Value,
    pointer: &str,
    faults: &mut FaultList,
) -> Option<Guarantee> {
    let members = ObjectReader::open(value, pointer, faults)?;
    let mut reader = GuaranteeReader { members, faults };
    let read = match reader.members.take("type").map(Value::as_str) {
        Some(Some(name))
            if !supported.contains(&name)
                && (RULE_GUARANTEES.contains(&name) || OTHER_METHOD_GUARANTEES.contains(&name)) =>
        {
            let detail = format!("{name} is no guarantee of this method; it takes {}", supported.join(", "));
            faults_at(&mut reader, "type", |faults, pointer| faults.unsupported(pointer, detail));
            return None;
        }
        Some(Some("k_anonymity")) => reader.k_anonymity(),
        Some(Some("l_diversity")) => reader.diversity().map(|l| Guarantee::LDiversity { l }),
        Some(Some("distinct_l_diversity")) => reader.diversity().map(|l| Guarantee::DistinctLDiversity { l }),
        Some(Some("entropy_l_diversity")) => reader.entropy(),
        Some(Some("recursive_l_diversity")) => reader.recursive(),
        Some(Some("alpha_k")) => reader.alpha_k(),
        Some(Some("t_closeness")) => reader.t_closeness(),
        Some(Some("rho")) => reader.rho(),
        Some(Some("delta")) => reader.delta(),
        _ => {
            let allowed = super::reader::one_of(supported);
            faults_at(&mut reader, "type", |faults, pointer| faults.range(pointer, &allowed));
            return None;
        }
    };
    let GuaranteeReader { members, faults } = reader;
    members.finish(faults);
    read
}

fn faults_at(reader: &mut GuaranteeReader<'_, '_>, member: &str, report: impl FnOnce(&mut FaultList, String)) {
    let pointer = reader.members.at(member);
    report(reader.faults, pointer);
}

struct GuaranteeReader<'a, 'f> {
    members: ObjectReader<'a>,
    faults: &'f mut FaultList,
}

impl GuaranteeReader<'_, '_> {
    /// Reports a guarantee that every table satisfies, which protects nothing.
    fn vacuous(&mut self, member: &str, detail: &str) {
        self.faults.push(Fault::new(self.members.at(member), Kind::VacuousGuarantee, detail));
    }

    /// A required fraction in a range.
    fn ratio(&mut self, member: &'static str, allowed: &str, accept: impl Fn(Ratio) -> bool) -> Option<Ratio> {
        let read = self.members.take(member).and_then(ratio).filter(|ratio| accept(*ratio));
        if read.is_none() {
            self.faults.range(self.members.at(member), allowed);
        }
        read
    }

    /// A required whole number of at least 1.
    fn whole(&mut self, member: &'static str, allowed: &str) -> Option<u64> {
        match self.members.take(member) {
            Some(_) => {
                let read = self.members.integer(member, POSITIVE_U64, allowed, self.faults)?;
                u64::try_from(read).ok()
            }
            None => {
                self.faults.range(self.members.at(member), allowed);
                None
            }
        }
    }

    fn k_anonymity(&mut self) -> Option<Guarantee> {
        let k = self.whole("k", DIVERSITY)?;
        if k == 1 {
            self.vacuous("k", "every class has a row: ask for k of at least 2");
            return None;
        }
        Some(Guarantee::KAnonymity { k })
    }

    fn diversity(&mut self) -> Option<u64> {
        let l = self.whole("l", DIVERSITY)?;
        if l == 1 {
            self.vacuous("l", "every table is 1-diverse: ask for l of at least 2");
            return None;
        }
        Some(l)
    }

    fn entropy(&mut self) -> Option<Guarantee> {
        let l = self.ratio("l", "a number above 1, such as \"2.5\"", |l| l.numerator() > 0)?;
        if l <= Ratio::ONE {
            self.vacuous("l", "every table has the entropy of one value: ask for l above 1");
            return None;
        }
        Some(Guarantee::EntropyLDiversity { l })
    }

    fn recursive(&mut self) -> Option<Guarantee> {
        let c = self.ratio("c", "a number above 0, such as \"1.5\"", |c| c.numerator() > 0);
        let l = self.whole("l", DIVERSITY);
        if l == Some(1) {
            self.vacuous("l", "from the first value on stand all: ask for l of at least 2");
            return None;
        }
        Some(Guarantee::RecursiveLDiversity { c: c?, l: l? })
    }

    fn alpha_k(&mut self) -> Option<Guarantee> {
        let is_share = |alpha: Ratio| alpha.numerator() > 0 && alpha <= Ratio::ONE;
        let alpha = self.ratio("alpha", "a number above 0 and at most 1, such as \"0.3\"", is_share);
        let k = self.whole("k", "an integer of at least 1");
        let (alpha, k) = (alpha?, k?);
        if alpha == Ratio::ONE && k == 1 {
            self.vacuous("alpha", "every table keeps alpha = 1 and k = 1: ask for less than 1, or for more rows");
            return None;
        }
        Some(Guarantee::AlphaK { alpha, k })
    }

    fn t_closeness(&mut self) -> Option<Guarantee> {
        let t = self.ratio("t", "a number of at least 0, such as \"0.2\"", |_| true);
        let ground = self.members.choice("distance", &["equal", "ordered", "hierarchical"], self.faults);
        let distance = match (ground, self.members.take("distance")) {
            (Some("ordered"), _) => ValueDistance::Ordered,
            (Some("hierarchical"), _) => ValueDistance::Hierarchical,
            (Some(_), _) => ValueDistance::Equal,
            (None, None) => ValueDistance::Equal,
            (None, Some(_)) => return None,
        };
        let reference = self.reference()?;
        let t = t?;
        if t >= Ratio::ONE {
            self.vacuous("t", "no bucket is farther than 1 from the table: ask for less");
            return None;
        }
        Some(Guarantee::TCloseness { t, distance, reference })
    }

    /// The rows that buckets are compared with; the whole table when not given. `None` after a fault.
    fn reference(&mut self) -> Option<Reference> {
        let chosen = self.members.choice("reference", &["table", "stratum"], self.faults);
        match (chosen, self.members.take("reference")) {
            (Some("stratum"), _) => Some(Reference::Stratum),
            (Some(_), _) | (None, None) => Some(Reference::Table),
            (None, Some(_)) => None,
        }
    }

    fn rho(&mut self) -> Option<Guarantee> {
        let is_share = |rho: Ratio| rho <= Ratio::ONE;
        let rho1 = self.ratio("rho1", "a number above 0 and below rho2", |rho| rho.numerator() > 0 && is_share(rho));
        let rho2 = self.ratio("rho2", "a number above rho1 and at most 1", is_share);
        let mode = self.members.choice("mode", &["single", "exact", "amplification"], self.faults);
        let mode = match (mode, self.members.take("mode")) {
            (Some("single"), _) => RhoMode::Single,
            (Some("exact"), _) => RhoMode::Exact,
            (Some(_), _) | (None, None) => RhoMode::Amplification,
            (None, Some(_)) => return None,
        };
        let reference = self.reference()?;
        let (rho1, rho2) = (rho1?, rho2?);
        if rho2 == Ratio::ONE {
            self.vacuous("rho2", "nothing is more than certain: ask for less than 1");
            return None;
        }
        if rho1 >= rho2 {
            let pointer = self.members.at("rho2");
            self.faults.range(pointer, "a number above rho1 and at most 1");
            return None;
        }
        Some(Guarantee::Rho { rho1, rho2, mode, reference })
    }

    fn delta(&mut self) -> Option<Guarantee> {
        let words = ["total_variation", "max", "kl", "emd", "log_ratio"];
        let distance = self.members.choice("distance", &words, self.faults);
        let b = self.ratio("b", "a number of at least 0, such as \"0.3\"", |_| true);
        let prior = self.members.choice("prior", &["global"], self.faults);
        if prior.is_none() && self.members.take("prior").is_some() {
            return None;
        }
        let reference = self.reference()?;
        let distance = match distance {
            Some("total_variation") => Divergence::TotalVariation,
            Some("max") => Divergence::Max,
            Some("kl") => Divergence::Kl,
            Some("emd") => Divergence::Emd,
            Some(_) => Divergence::LogRatio,
            None => {
                if self.members.take("distance").is_none() {
                    let pointer = self.members.at("distance");
                    self.faults.range(pointer, &super::reader::one_of(&words));
                }
                return None;
            }
        };
        let b = b?;
        if distance.is_at_most_one() && b >= Ratio::ONE {
            self.vacuous("b", "no two distributions are farther apart than 1: ask for less");
            return None;
        }
        Some(Guarantee::Delta { distance, b, prior: PriorDistribution::Global, reference })
    }
}
