use std::collections::BTreeSet;

use super::types::{Algorithm, CorrelatedPolicy, DecompositionScore};
use crate::problem::{Fault, Kind};
use crate::spec::grammar::attributes::DatasetColumns;
use crate::spec::grammar::dependencies;
use crate::spec::grammar::dependencies::DraftDependency;
use crate::spec::grammar::guarantee::{ThresholdsByDigest, guarantee_of_rule};
use crate::spec::grammar::reader::{FaultList, ObjectReader};
use crate::spec::grammar::rules::{DefaultGuarantee, DraftRule, RuleReader};
use crate::spec::grammar::schema::DocumentSource;

/// Versatile publishing.
pub(in crate::spec) struct DraftVersatile {
    pub(in crate::spec) rules: Vec<DraftRule>,
    pub(in crate::spec) mentioned: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    pub(in crate::spec) declared: Vec<DraftDependency>,
    pub(in crate::spec) assumed_unknown: Vec<DraftDependency>,
    pub(in crate::spec) algorithm: Algorithm,
    pub(in crate::spec) saturate: bool,
    pub(in crate::spec) addback: bool,
    pub(in crate::spec) try_all: bool,
    pub(in crate::spec) fill: bool,
    pub(in crate::spec) score: DecompositionScore,
    pub(in crate::spec) correlated: CorrelatedPolicy,
    pub(in crate::spec) no_rules_reason: Option<String>,
    /// The thresholds that guarantees name.
    pub(in crate::spec) thresholds: ThresholdsByDigest,
}

pub(in crate::spec) fn versatile(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    no_rules_reason: Option<&str>,
    origin: DocumentSource,
    faults: &mut FaultList,
) -> DraftVersatile {
    let algorithm = match members.choice("algorithm", &["uad", "gd", "single_attribute", "multi_sa", "auto"], faults) {
        Some("gd") => Algorithm::Gd,
        Some("single_attribute") => Algorithm::SingleAttribute,
        Some("auto") => Algorithm::Auto,
        Some("multi_sa") => Algorithm::MultiSa,
        _ => Algorithm::Uad,
    };
    let mut thresholds = ThresholdsByDigest::new();
    let default = match members.take("default_guarantee") {
        None => DefaultGuarantee::Absent,
        Some(value) => guarantee_of_rule(value, &members.at("default_guarantee"), &mut thresholds, faults)
            .map_or(DefaultGuarantee::Faulty, DefaultGuarantee::Given),
    };
    let declared = dependencies::read(&mut members, "functional_dependencies", false, columns, faults);
    let assumed_unknown = dependencies::read(&mut members, "assume_unknown", true, columns, faults);
    let correlated = match members.choice("correlated", &["together", "separate"], faults) {
        Some("separate") => CorrelatedPolicy::Separate,
        _ => CorrelatedPolicy::Together,
    };
    let (saturate, addback) = members.object("uad", faults).map_or((None, None), |mut uad| {
        let flags = (uad.flag("saturate", faults), uad.flag("addback", faults));
        uad.finish(faults);
        flags
    });
    let (try_all, fill) = members.object("gd", faults).map_or((None, None), |mut gd| {
        let flags = (gd.flag("try_all", faults), gd.flag("fill", faults));
        gd.finish(faults);
        flags
    });
    let score = match members.choice("score", &["entropy", "kl"], faults) {
        Some("kl") => DecompositionScore::Kl,
        _ => DecompositionScore::Entropy,
    };
    if score == DecompositionScore::Kl && origin != DocumentSource::Reproduction {
        let detail = "a choice by the divergence from the original tells of the original: it is made by \
                      guardian publish --reproduce alone; use entropy";
        faults.unsupported(members.at("score"), detail);
    }

    let before = faults.len();
    let rules = members.list("rules", "an array of rules", faults);
    let guessed = if faults.len() > before { (0..columns.facts.len()).collect() } else { BTreeSet::new() };
    if rules.unwrap_or_default().is_empty() && no_rules_reason.is_none() && faults.len() == before {
        let detail = "without a rule nothing is protected: state one, or why there is none in no_rules_reason";
        faults.push(Fault::new(members.at("rules"), Kind::VacuousGuarantee, detail));
    }
    let pointer = members.at("rules");
    members.finish(faults);
    let mut reader = RuleReader { columns, default, faults, mentioned: BTreeSet::new(), guessed, thresholds };
    let rules = reader.read_all(rules.unwrap_or_default(), &pointer);
    DraftVersatile {
        rules,
        mentioned: reader.mentioned,
        guessed: reader.guessed,
        thresholds: reader.thresholds,
        declared,
        assumed_unknown,
        algorithm,
        saturate: saturate.unwrap_or(false),
        addback: addback.unwrap_or(false),
        try_all: try_all.unwrap_or(false),
        fill: fill.unwrap_or(false),
        score,
        correlated,
        no_rules_reason: no_rules_reason.map(str::to_owned),
    }
}
