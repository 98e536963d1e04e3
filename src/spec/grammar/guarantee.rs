//! Guarantees of documents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::attributes::DatasetColumns;
use super::document::{
    Document, Fraction, Given, Int, Member, MemberContext, PositiveFraction, SchemaMap, Share, choice, define_union,
    document, one_of, reference, union,
};
use super::reader::{FaultList, child};
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
    THRESHOLDS,
];

const THRESHOLDS: &str = "thresholds";

const AT_LEAST_ONE: &str = "an integer of at least 1";

const AT_LEAST_TWO: &str = "an integer of at least 2";

/// A number of rows or values; 1 asks for nothing, which is a fault of its own.
type Count = Int<1, { u64::MAX }, 2>;

/// The thresholds that the guarantees of a document name.
pub(in crate::spec) type ThresholdsByDigest = BTreeMap<ThresholdsDigest, DigestedThresholds>;

choice! {
    /// The distance between two values. `equal` when not given.
    existing ValueDistance as "ValueDistance" {
        Equal = "equal",
        Ordered = "ordered",
        Hierarchical = "hierarchical",
    }
}

choice! {
    /// The rows whose distribution a guarantee compares buckets with. `table` when not given.
    existing Reference as "Reference" {
        Table = "table",
        Stratum = "stratum",
    }
}

choice! {
    /// The events that a bound on posteriors covers. `amplification` when not given.
    existing RhoMode as "RhoMode" {
        Single = "single",
        Exact = "exact",
        Amplification = "amplification",
    }
}

choice! {
    /// A distance of two distributions.
    existing Divergence as "Divergence" {
        TotalVariation = "total_variation",
        Max = "max",
        Kl = "kl",
        Emd = "emd",
        LogRatio = "log_ratio",
    }
}

choice! {
    /// The prior that a posterior is compared with. `global` when not given.
    existing PriorDistribution as "PriorDistribution" {
        Global = "global",
    }
}

document! {
    /// Every class has at least k rows [Sweeney 2002]; sensitive values are not bounded.
    KAnonymityMembers as "RequestedKAnonymity" tagged "k_anonymity" {
        /// The rows.
        required k: Count => AT_LEAST_TWO,
    }
}

document! {
    /// The share of each value in a bucket is at most 1/l [Jin et al. 2010, section 2], [Xiao and Tao 2006, Definition 3].
    LDiversityMembers as "RequestedLDiversity" tagged "l_diversity" {
        /// The diversity.
        required l: Count => AT_LEAST_TWO,
    }
}

document! {
    /// At least l values occur in a bucket.
    DistinctLDiversityMembers as "RequestedDistinctLDiversity" tagged "distinct_l_diversity" {
        /// The number of values.
        required l: Count => AT_LEAST_TWO,
    }
}

document! {
    /// The entropy of a bucket is at least that of l equally frequent values.
    EntropyLDiversityMembers as "RequestedEntropyLDiversity" tagged "entropy_l_diversity" {
        /// The number of values, above 1.
        required l: PositiveFraction => "a number above 1, such as \"2.5\"",
    }
}

document! {
    /// The most frequent value of a bucket occurs less than c times as often as all from the l-th most frequent on together.
    RecursiveLDiversityMembers as "RequestedRecursiveLDiversity" tagged "recursive_l_diversity" {
        /// The factor.
        required c: PositiveFraction => "a number above 0, such as \"1.5\"",
        /// The rank.
        required l: Count => AT_LEAST_TWO,
    }
}

document! {
    /// No value takes more than alpha of a bucket, which has at least k rows.
    AlphaKMembers as "RequestedAlphaK" tagged "alpha_k" {
        /// The share.
        required alpha: Share => "a number above 0 and at most 1, such as \"0.3\"",
        /// The rows.
        required k: Int<1, { u64::MAX }> => AT_LEAST_ONE,
    }
}

document! {
    /// The distribution of a bucket is no farther than t from that of the table, by earth mover's distance.
    TClosenessMembers as "RequestedTCloseness" tagged "t_closeness" {
        /// The distance, below 1.
        required t: Fraction => "a number of at least 0, such as \"0.2\"",
        optional distance: ValueDistance = ValueDistance::Equal,
        optional reference: Reference = Reference::Table,
    }
}

document! {
    /// No event that is at most `rho1` likely in the table is more than `rho2` likely in a bucket.
    RhoMembers as "RequestedRho" tagged "rho" {
        /// The largest prior of an unlikely event, below `rho2`.
        required rho1: Share => "a number above 0 and below rho2",
        /// The largest posterior of an unlikely event, below 1.
        required rho2: Share => RHO2,
        optional mode: RhoMode = RhoMode::Amplification,
        optional reference: Reference = Reference::Table,
    }
}

const RHO2: &str = "a number above rho1 and at most 1";

document! {
    /// The distribution of a bucket is within b of that of the table [Jin et al. 2010, Definition 1].
    DeltaMembers as "RequestedDelta" tagged "delta" {
        required distance: Divergence,
        /// The bound.
        required b: Fraction => "a number of at least 0, such as \"0.3\"",
        optional prior: PriorDistribution = PriorDistribution::Global,
        optional reference: Reference = Reference::Table,
    }
}

union! {
    /// How much may be learned of a sensitive value, or how few rows a class may have; thresholds are given whole.
    GuaranteeMembers as "VerificationGuarantee" {
        KAnonymity(KAnonymityMembers) = "k_anonymity",
        LDiversity(LDiversityMembers) = "l_diversity",
        DistinctLDiversity(DistinctLDiversityMembers) = "distinct_l_diversity",
        EntropyLDiversity(EntropyLDiversityMembers) = "entropy_l_diversity",
        RecursiveLDiversity(RecursiveLDiversityMembers) = "recursive_l_diversity",
        AlphaK(AlphaKMembers) = "alpha_k",
        TCloseness(TClosenessMembers) = "t_closeness",
        Rho(RhoMembers) = "rho",
        Delta(DeltaMembers) = "delta",
        Thresholds(ThresholdsGuarantee) = "thresholds",
    }
}

/// Reports a guarantee that every table satisfies, which protects nothing.
fn vacuous<T>(pointer: String, detail: &str, faults: &mut FaultList) -> Option<T> {
    faults.push(Fault::new(pointer, Kind::VacuousGuarantee, detail));
    None
}

/// A count that asks for something.
fn above_one(count: &Given<Count>, pointer: String, detail: &str, faults: &mut FaultList) -> Option<u64> {
    match count.value? {
        Int(1) => vacuous(pointer, detail, faults),
        Int(count) => Some(count),
    }
}

impl KAnonymityMembers {
    fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let k = above_one(&self.k, self.at("k"), "every class has a row: ask for k of at least 2", faults)?;
        Some(Guarantee::KAnonymity { k })
    }
}

impl LDiversityMembers {
    fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let l = above_one(&self.l, self.at("l"), "every table is 1-diverse: ask for l of at least 2", faults)?;
        Some(Guarantee::LDiversity { l })
    }
}

impl DistinctLDiversityMembers {
    /// The guarantee; `None` after a fault.
    pub(in crate::spec) fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let l = above_one(&self.l, self.at("l"), "every table is 1-diverse: ask for l of at least 2", faults)?;
        Some(Guarantee::DistinctLDiversity { l })
    }
}

impl EntropyLDiversityMembers {
    /// The guarantee; `None` after a fault.
    pub(in crate::spec) fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let PositiveFraction(l) = self.l.value?;
        if l <= Ratio::ONE {
            return vacuous(self.at("l"), "every table has the entropy of one value: ask for l above 1", faults);
        }
        Some(Guarantee::EntropyLDiversity { l })
    }
}

impl RecursiveLDiversityMembers {
    /// The guarantee; `None` after a fault.
    pub(in crate::spec) fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let detail = "from the first value on stand all: ask for l of at least 2";
        let l = above_one(&self.l, self.at("l"), detail, faults)?;
        Some(Guarantee::RecursiveLDiversity { c: self.c.value?.0, l })
    }
}

impl AlphaKMembers {
    fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let (Share(alpha), Int(k)) = (self.alpha.value?, self.k.value?);
        if alpha == Ratio::ONE && k == 1 {
            let detail = "every table keeps alpha = 1 and k = 1: ask for less than 1, or for more rows";
            return vacuous(self.at("alpha"), detail, faults);
        }
        Some(Guarantee::AlphaK { alpha, k })
    }
}

impl TClosenessMembers {
    fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let Fraction(t) = self.t.value?;
        if t >= Ratio::ONE {
            return vacuous(self.at("t"), "no bucket is farther than 1 from the table: ask for less", faults);
        }
        Some(Guarantee::TCloseness { t, distance: self.distance, reference: self.reference })
    }
}

impl RhoMembers {
    fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let (Share(rho1), Share(rho2)) = (self.rho1.value?, self.rho2.value?);
        if rho2 == Ratio::ONE {
            return vacuous(self.at("rho2"), "nothing is more than certain: ask for less than 1", faults);
        }
        if rho1 >= rho2 {
            faults.range(self.at("rho2"), RHO2);
            return None;
        }
        Some(Guarantee::Rho { rho1, rho2, mode: self.mode, reference: self.reference })
    }
}

impl DeltaMembers {
    fn checked(&self, faults: &mut FaultList) -> Option<Guarantee> {
        let (distance, Fraction(b)) = (self.distance.value?, self.b.value?);
        if distance.is_at_most_one() && b >= Ratio::ONE {
            return vacuous(self.at("b"), "no two distributions are farther apart than 1: ask for less", faults);
        }
        Some(Guarantee::Delta { distance, b, prior: self.prior, reference: self.reference })
    }
}

impl GuaranteeMembers {
    /// The guarantee; thresholds are added to `named`. `None` when there is a fault after the first `before` ones.
    fn checked(self, before: usize, named: &mut ThresholdsByDigest, faults: &mut FaultList) -> Option<Guarantee> {
        match self {
            Self::KAnonymity(members) => members.checked(faults),
            Self::LDiversity(members) => members.checked(faults),
            Self::DistinctLDiversity(members) => members.checked(faults),
            Self::EntropyLDiversity(members) => members.checked(faults),
            Self::RecursiveLDiversity(members) => members.checked(faults),
            Self::AlphaK(members) => members.checked(faults),
            Self::TCloseness(members) => members.checked(faults),
            Self::Rho(members) => members.checked(faults),
            Self::Delta(members) => members.checked(faults),
            Self::Thresholds(members) => {
                let thresholds = DigestedThresholds::from(members.thresholds.checked(faults, before)?);
                let guarantee = thresholds.guarantee();
                if let Guarantee::Thresholds { digest, .. } = guarantee {
                    named.insert(digest, thresholds);
                }
                Some(guarantee)
            }
        }
    }

    /// Reads a guarantee of one of these types; thresholds are added to `named`. `None` after a fault.
    pub(in crate::spec) fn read_among(
        types: &[&str],
        value: &Value,
        named: &mut ThresholdsByDigest,
        context: &mut MemberContext<'_, '_>,
    ) -> Option<Guarantee> {
        let before = context.faults.len();
        check_type(types, value, context)?;
        let guarantee = Self::read(value, context)?.checked(before, named, context.faults);
        guarantee.filter(|_| context.faults.len() == before)
    }

    /// Adds the schema of a guarantee of one of these types.
    pub(in crate::spec) fn define_among(name: &'static str, about: &str, types: &[&str], schemas: &mut SchemaMap) {
        let variants = Self::VARIANTS.iter().filter(|variant| types.contains(&variant.tag));
        define_union(name, about, variants, schemas);
    }
}

/// Reports a guarantee whose type is none of these, which are those that a method takes.
pub(in crate::spec) fn check_type(types: &[&str], value: &Value, context: &mut MemberContext<'_, '_>) -> Option<()> {
    let of_other_methods = |name: &&str| GuaranteeMembers::VARIANTS.iter().any(|variant| variant.tag == *name);
    let pointer = child(&context.pointer, "type");
    match value["type"].as_str() {
        Some(name) if types.contains(&name) => return Some(()),
        Some(name) if of_other_methods(&name) => {
            let detail = format!("{name} is no guarantee of this method; it takes {}", types.join(", "));
            context.faults.unsupported(pointer, detail);
        }
        _ if value.is_object() => context.faults.range(pointer, &one_of(types)),
        _ => context.faults.range(context.pointer.as_str(), "an object"),
    }
    None
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
        let guarantee = GuaranteeMembers::read_among(RULE_GUARANTEES, value, &mut thresholds, context)?;
        Some(Self { guarantee, thresholds })
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        guarantee_to_json(&self.guarantee, &self.thresholds)
    }

    fn schema() -> Value {
        reference("RuleGuarantee")
    }

    fn define(schemas: &mut SchemaMap) {
        let about = "How much may be learned of a sensitive value; thresholds are given whole.";
        GuaranteeMembers::define_among("RuleGuarantee", about, RULE_GUARANTEES, schemas);
    }
}
