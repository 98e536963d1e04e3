use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::common::CommonMembers;
use super::types::{
    Algorithm, AutoGoal, CorrelatedPolicy, DecompositionScore, UadColoring, UadSettings, VersatileSpec,
};
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind};
use crate::publication::{Protected, SubmittedRule};
use crate::spec::grammar::attributes::DatasetColumns;
use crate::spec::grammar::document::{Document, Member, document};
use crate::spec::grammar::guarantee::{RuleGuarantee, ThresholdsByDigest};
use crate::spec::grammar::ineligible_strata::IneligibleStrata;
use crate::spec::grammar::reader::FaultList;
use crate::spec::grammar::rules::{DraftRule, RuleList, RuleMembers, RuleReader};
use crate::spec::grammar::schema::DocumentSource;

document! {
    /// Versatile publishing: many rules at once, and as many tables as they need.
    VersatileMembers as "VersatileMethod" tagged "versatile" {
        optional algorithm: Algorithm = Algorithm::Uad,
        /// The guarantee of rules that state none.
        optional default_guarantee: RuleGuarantee,
        include common: CommonMembers,
        /// What becomes of strata that break a guarantee by themselves. `refuse` when not given.
        optional ineligible_strata: IneligibleStrata = IneligibleStrata::default(),
        optional correlated: CorrelatedPolicy = CorrelatedPolicy::Together,
        optional uad: UadMembers = UadMembers::absent("/method/uad"),
        optional gd: GdMembers = GdMembers::absent("/method/gd"),
        optional score: DecompositionScore = DecompositionScore::Entropy,
        optional goal: AutoGoal = AutoGoal::Entropy,
        /// What must stay protected. Without a rule, `no_rules_reason` says why.
        optional rules: RuleList,
    }
}

document! {
    /// Options of the algorithm `uad`.
    UadMembers as "UadOptions" {
        /// Whether sub-tables take up attributes that break no rule.
        optional saturate: bool = false,
        optional coloring: UadColoring = UadColoring::FreeLast,
        /// Whether attributes are added to other tables where that breaks no rule and adds information. Looks at the data.
        optional addback: bool = false,
    }
}

document! {
    /// Options of the algorithm `gd`.
    GdMembers as "GdOptions" {
        /// Whether it begins once with each protected attribute and keeps the best, in place of beginning with the first.
        optional try_all: bool = false,
        /// Whether it goes on adding attributes to tables where that adds no information.
        optional fill: bool = false,
    }
}

/// Versatile publishing over columns of the dataset.
pub(in crate::spec) struct DraftVersatile {
    /// The document, with its rules read.
    pub(in crate::spec) members: VersatileMembers,
    pub(in crate::spec) mentioned: BTreeSet<usize>,
    /// Columns that may have been meant where a fault hides which.
    pub(in crate::spec) guessed: BTreeSet<usize>,
    pub(in crate::spec) no_rules_reason: Option<String>,
}

pub(in crate::spec) fn read(
    mut members: VersatileMembers,
    columns: &DatasetColumns<'_>,
    no_rules_reason: Option<String>,
    faults: &mut FaultList,
) -> DraftVersatile {
    if members.score == DecompositionScore::Kl && columns.origin != DocumentSource::Reproduction {
        let detail = "a choice by the divergence from the original tells of the original: it is made by \
                      guardian publish --reproduce alone; use entropy";
        faults.unsupported(members.at("score"), detail);
    }
    if members.goal != AutoGoal::Entropy && members.algorithm != Algorithm::Auto {
        faults.range(members.at("goal"), "entropy, unless algorithm is auto: no other algorithm decides by a goal");
    }
    let mut list = members.rules.value.take().unwrap_or_default();
    if list.documents.is_empty() && no_rules_reason.is_none() && !members.rules.is_faulty {
        let detail = "without a rule nothing is protected: state one, or why there is none in no_rules_reason";
        faults.push(Fault::new(members.at("rules"), Kind::VacuousGuarantee, detail));
    }
    let mut reader = RuleReader::new(columns, &members.default_guarantee, faults);
    if members.rules.is_faulty {
        reader.guessed = columns.all();
    }
    list.rules = reader.read_all::<RuleMembers>(&list.documents, &members.at("rules"));
    list.thresholds = reader.thresholds;
    let (mentioned, guessed) = (reader.mentioned, reader.guessed);
    members.rules = list.into();
    DraftVersatile { members, mentioned, guessed, no_rules_reason }
}

impl DraftVersatile {
    pub(in crate::spec) fn rules(&self) -> &[DraftRule] {
        self.members.rules.value.as_ref().map_or(&[], |list| &list.rules)
    }

    /// The thresholds that guarantees name.
    pub(in crate::spec) fn thresholds(&self) -> ThresholdsByDigest {
        self.members.rules.value.as_ref().map(|list| list.thresholds.clone()).unwrap_or_default()
    }

    /// The normal form: each rule has its guarantee, so that there is no default.
    pub(in crate::spec) fn write(&self, columns: &DatasetColumns<'_>) -> Value {
        let mut written = self.members.write(columns);
        if let Some(members) = written.as_object_mut() {
            members.remove("default_guarantee");
        }
        written
    }

    /// The method over attributes.
    pub(in crate::spec) fn resolve(self, columns: &DatasetColumns<'_>, attrs: &HashMap<usize, Attr>) -> VersatileSpec {
        VersatileSpec {
            rules: self.rules().iter().flat_map(|rule| submitted(rule, columns, attrs)).collect(),
            algorithm: self.members.algorithm,
            uad: UadSettings { saturate: self.members.uad.saturate, coloring: self.members.uad.coloring },
            addback: self.members.uad.addback,
            try_all: self.members.gd.try_all,
            fill: self.members.gd.fill,
            score: self.members.score,
            goal: self.members.goal,
            correlated: self.members.correlated,
            closed: self.members.ineligible_strata.closed,
            no_rules_reason: self.no_rules_reason,
        }
    }
}

fn attributes_of(columns: &BTreeSet<usize>, attrs: &HashMap<usize, Attr>) -> AttrSet {
    columns.iter().map(|column| attrs[column]).collect()
}

/// The rules over attributes that a rule of the document gives: one for each sensitive attribute, or one for all of them together.
fn submitted(rule: &DraftRule, columns: &DatasetColumns<'_>, attrs: &HashMap<usize, Attr>) -> Vec<SubmittedRule> {
    let submitted = |protects: Protected| SubmittedRule {
        pointer: rule.pointer.clone(),
        known: attributes_of(&rule.known, attrs),
        protects,
        guarantee: rule.guarantee,
    };
    // the counts of a column that overflows are not there to be judged
    let is_counted = |column: &usize| !columns.facts[*column].overflow;
    if !rule.joint {
        let sensitive = rule.sensitive.iter().filter(|column| is_counted(column));
        return sensitive.map(|column| submitted(Protected::Attribute(attrs[column]))).collect();
    }
    match rule.sensitive.iter().all(is_counted) {
        true => vec![submitted(Protected::Joint(attributes_of(&rule.sensitive, attrs)))],
        false => Vec::new(),
    }
}
