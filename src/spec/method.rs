//! The `method` member.

use std::collections::BTreeSet;

use super::attributes::{AttributeOptions, DatasetColumns};
use super::bucketize::{self, DraftBucketize};
use super::decompose::{self, DraftDecompose};
use super::dependencies::{self, DraftDependency};
use super::generalize::{self, DraftGeneralize};
use super::guarantee::{ThresholdsByDigest, guarantee_of_rule};
use super::reader::{FaultList, ObjectReader, one_of};
use super::rules::{DefaultGuarantee, DraftRule, RuleReader};
use super::sequential::{self, DraftSequential};
use super::sides::KnownAndSensitive;
use super::slicing::{self, DraftSlicing};
use super::types::{Algorithm, CorrelatedPolicy, DecompositionScore, DocumentSource};
use crate::problem::{Fault, Kind};
use crate::publication::Guarantee;

/// The methods that jobs may have.
pub const METHOD_NAMES: &[&str] =
    &["versatile", "anatomy", "bucketize", "decompose", "generalize", "slicing", "sequential"];

/// A method over columns of the dataset.
pub(super) enum DraftMethod {
    Versatile(DraftVersatile),
    Anatomy(DraftAnatomy),
    Bucketize(DraftBucketize),
    Decompose(DraftDecompose),
    Generalize(DraftGeneralize),
    Sequential(DraftSequential),
    Slicing(DraftSlicing),
}

/// Versatile publishing.
pub(super) struct DraftVersatile {
    pub(super) rules: Vec<DraftRule>,
    pub(super) mentioned: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(super) guessed: BTreeSet<usize>,
    pub(super) declared: Vec<DraftDependency>,
    pub(super) assumed_unknown: Vec<DraftDependency>,
    pub(super) algorithm: Algorithm,
    pub(super) saturate: bool,
    pub(super) addback: bool,
    pub(super) try_all: bool,
    pub(super) fill: bool,
    pub(super) score: DecompositionScore,
    pub(super) correlated: CorrelatedPolicy,
    pub(super) no_rules: Option<String>,
    /// The thresholds that guarantees name.
    pub(super) thresholds: ThresholdsByDigest,
}

/// Anatomy; what could not be read is `None`.
pub(super) struct DraftAnatomy {
    pub(super) known: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides what was.
    pub(super) guessed: BTreeSet<usize>,
    pub(super) sensitive: Option<usize>,
    pub(super) guarantee: Option<Guarantee>,
    /// The thresholds that the guarantee names, where it does.
    pub(super) thresholds: ThresholdsByDigest,
}

impl DraftMethod {
    /// Whether the manifest states the entropy of the model unless something else is said: where tables are chosen by it.
    pub(super) fn states_entropy(&self) -> bool {
        matches!(self, Self::Versatile(draft) if matches!(draft.algorithm, Algorithm::Gd | Algorithm::Auto))
    }

    /// The columns that occur in a rule.
    pub(super) fn mentioned(&self) -> BTreeSet<usize> {
        match self {
            Self::Versatile(draft) => draft.mentioned.clone(),
            Self::Anatomy(draft) => draft.known.iter().copied().chain(draft.sensitive).collect(),
            Self::Bucketize(draft) => draft.known.iter().copied().chain(draft.sensitive).collect(),
            Self::Decompose(draft) => draft.mentioned(),
            Self::Generalize(draft) => draft.mentioned(),
            Self::Sequential(draft) => draft.mentioned(),
            Self::Slicing(draft) => draft.mentioned(),
        }
    }

    /// Columns that may occur in a rule: a fault hides which do, and is not reported as theirs again.
    pub(super) fn guessed(&self) -> &BTreeSet<usize> {
        match self {
            Self::Versatile(draft) => &draft.guessed,
            Self::Anatomy(draft) => &draft.guessed,
            Self::Bucketize(draft) => &draft.guessed,
            Self::Decompose(draft) => &draft.guessed,
            Self::Generalize(draft) => &draft.guessed,
            Self::Sequential(draft) => &draft.guessed,
            Self::Slicing(draft) => &draft.guessed,
        }
    }
}

/// Reads `method`; `None` when which one is meant cannot be read, or is not supported.
pub(super) fn read(
    document: &mut ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    origin: DocumentSource,
    faults: &mut FaultList,
) -> Option<DraftMethod> {
    let no_rules = document.text("no_rules", "a reason of 1 to 500 characters", faults, super::document::is_reason);
    let Some(value) = document.take("method") else {
        faults.range(document.at("method"), "an object with a type");
        return None;
    };
    let mut members = ObjectReader::open(value, document.at("method"), faults)?;
    let type_ = members.take("type").and_then(|value| value.as_str());
    let reads_no_rules = "stated only for versatile, and only when there are no rules";
    match type_ {
        Some("versatile") => {
            let draft = versatile(members, columns, no_rules, origin, faults);
            if no_rules.is_some() && !(draft.rules.is_empty() && draft.mentioned.is_empty()) {
                faults.range(document.at("no_rules"), reads_no_rules);
            }
            Some(DraftMethod::Versatile(draft))
        }
        Some(name @ ("anatomy" | "slicing")) => {
            if no_rules.is_some() {
                faults.range(document.at("no_rules"), reads_no_rules);
            }
            Some(match name {
                "slicing" => DraftMethod::Slicing(slicing::read(members, columns, faults)),
                _ => DraftMethod::Anatomy(anatomy(members, columns, stated, faults)),
            })
        }
        Some("bucketize") => {
            if no_rules.is_some() {
                faults.range(document.at("no_rules"), reads_no_rules);
            }
            Some(DraftMethod::Bucketize(bucketize::read(members, columns, stated, faults)))
        }
        Some("decompose") => {
            if no_rules.is_some() {
                faults.range(document.at("no_rules"), reads_no_rules);
            }
            Some(DraftMethod::Decompose(decompose::read(members, columns, stated, faults)))
        }
        Some("generalize") => {
            if no_rules.is_some() {
                faults.range(document.at("no_rules"), reads_no_rules);
            }
            Some(DraftMethod::Generalize(generalize::read(members, columns, stated, faults)))
        }
        Some("sequential") => {
            if no_rules.is_some() {
                faults.range(document.at("no_rules"), reads_no_rules);
            }
            Some(DraftMethod::Sequential(sequential::read(members, columns, stated, faults)))
        }
        _ => {
            faults.range(members.at("type"), &one_of(METHOD_NAMES));
            None
        }
    }
}

fn versatile(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    no_rules: Option<&str>,
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
    if rules.unwrap_or_default().is_empty() && no_rules.is_none() && faults.len() == before {
        let detail = "without a rule nothing is protected: state one, or why there is none in no_rules";
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
        no_rules: no_rules.map(str::to_owned),
    }
}

fn anatomy(
    mut members: ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftAnatomy {
    let KnownAndSensitive { known, guessed, sensitive } =
        KnownAndSensitive::read(&mut members, columns, stated, faults);
    let mut thresholds = ThresholdsByDigest::new();
    let guarantee = match members.take("guarantee") {
        Some(value) => guarantee_of_rule(value, &members.at("guarantee"), &mut thresholds, faults),
        None => {
            faults.range(members.at("guarantee"), "a guarantee such as {\"type\": \"l_diversity\", \"l\": 2}");
            None
        }
    };
    members.finish(faults);
    DraftAnatomy { known, guessed, sensitive, guarantee, thresholds }
}
