//! Verification of tables that anybody published: what was read and asked, judged by the verifier, in words.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::error::EngineError;
use super::read_back::external::{VerificationMaterial, attribute_list, in_json};
use super::read_back::measures::{AchievedMeasures, TableMeasures};
use crate::control::{Control, Phase};
use crate::microdata::AttrSet;
use crate::publication::{CheckName, Linkage, NoticeKind};
use crate::report::{CheckResult, ManifestEnforcedBy, SpecificationNotice};
use crate::spec::VerificationRules;
use crate::verifier;
use crate::verifier::{EvaluationReport, ExternalEnforcement, RuleOutcome, Submission};

/// Whether tables keep rules, and what they achieve.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Verification {
    /// Whether every rule holds and every check passed.
    pub verified: bool,
    /// `not_checked`: who stands in which bucket is known to the publisher alone.
    pub linkage: Linkage,
    /// The rules, in their order; one that protects several attributes each is there once for each.
    pub rules: Vec<VerifiedRule>,
    /// The tables.
    pub tables: Vec<VerifiedTable>,
    /// What was checked. `content` only with an original.
    pub checks: Vec<CheckResult>,
    /// The attacks that were asked for.
    pub attacks: Vec<super::attack::report::AttackReport>,
    /// What a reader should know.
    pub warnings: Vec<SpecificationNotice>,
}

/// A rule and how it stands.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct VerifiedRule {
    /// Where the request states it.
    pub pointer: String,
    /// What may be known.
    pub quasi_identifiers: Vec<String>,
    /// What stays protected.
    pub sensitive: Vec<String>,
    /// Whether it is only the combination of `sensitive` that stays protected.
    pub combination: bool,
    /// Whether it holds.
    pub holds: bool,
    /// Why it holds.
    pub enforced_by: Option<ManifestEnforcedBy>,
    /// The known attributes that reach what is sensitive, when it does not hold.
    pub violated_by: Option<Vec<String>>,
    /// What the classes show of the table that holds it, or of those that ought to; null where no class bears on it.
    pub achieved: Option<AchievedMeasures>,
    /// The classes that break it.
    pub breaks: BrokenClasses,
    /// Why it does not hold, in words.
    pub detail: Option<String>,
}

/// Classes that break a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BrokenClasses {
    /// How many there are.
    pub total: u64,
    /// At most ten, the worst first.
    pub first: Vec<BrokenClass>,
}

/// A class that breaks a rule: a bucket, or what its rows have in common, or both. Values are those of the submitted part.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BrokenClass {
    /// The table.
    pub table: String,
    /// The label of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub bucket: Option<Value>,
    /// The values that its rows have in common; empty when a whole table breaks the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub class: Option<Map<String, Value>>,
}

/// A table and what it shows.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct VerifiedTable {
    /// Its name.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// How many buckets; 0 without.
    pub buckets: u64,
    /// What its classes show of each attribute that a rule protects.
    pub measures: Vec<TableMeasures>,
}

/// A number of a row that has nothing to do with its neighbours'. For originals of the request: there is nothing to hide of the
/// halves from who has them.
fn mixed(row: usize) -> u64 {
    let mut word = (row as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Holds tables against rules.
///
/// # Errors
/// [`EngineError::Cancelled`], or the refusal of an attack that cannot be played.
pub fn verify_tables(
    material: &VerificationMaterial,
    asked: &VerificationRules,
    control: &Control,
) -> Result<Verification, EngineError> {
    control.begin(Phase::Verify, asked.rules.len() as u64)?;
    let submission = Submission {
        tables: &material.tables,
        names: &asked.names,
        rules: &asked.rules,
        dependencies: &asked.dependencies,
        original: material.original.as_ref(),
        taxonomies: &asked.taxonomies,
        thresholds: &asked.thresholds,
        exact: material.exact,
    };
    let verdict = verifier::evaluate(&submission, control)?;
    let (mut attacks, mut possible) = (Vec::new(), true);
    for attack in &asked.attacks {
        let (attacked, any) = super::attack::play::play(*attack, &submission, &mixed, control)?;
        attacks.push(attacked);
        possible &= any;
    }
    let mut found = to_verification(&submission, &verdict, attacks);
    if !possible {
        found.verified = false;
        let columns = found.checks.iter_mut().find(|check| check.check == CheckName::Columns && check.passed);
        if let Some(check) = columns {
            check.passed = false;
            check.detail = Some("no table can have been made into these parts: they contradict each other".to_owned());
        }
    }
    Ok(found)
}

fn to_verification(
    submission: &Submission<'_>,
    verdict: &EvaluationReport,
    attacks: Vec<super::attack::report::AttackReport>,
) -> Verification {
    let names =
        |set: AttrSet| -> Vec<String> { set.iter().map(|attr| submission.names[attr.index()].clone()).collect() };
    let rules = submission.rules.iter().zip(&verdict.rules).map(|(rule, judged)| VerifiedRule {
        pointer: rule.pointer.clone(),
        quasi_identifiers: names(rule.known),
        sensitive: names(rule.protects.attributes()),
        combination: matches!(rule.protects, crate::publication::Protected::Joint(_)),
        holds: judged.held.is_some(),
        enforced_by: judged.held.map(|held| match held {
            ExternalEnforcement::Unreachable => ManifestEnforcedBy::Unreachable { unreachable: true },
            ExternalEnforcement::Guardian(at, _) if submission.tables.len() == 1 => {
                ManifestEnforcedBy::Table { table: submission.tables[at].name.clone() }
            }
            ExternalEnforcement::Guardian(at, known) => {
                ManifestEnforcedBy::Guardian { guardian: submission.tables[at].name.clone(), known: names(known) }
            }
        }),
        violated_by: judged.held.is_none().then(|| names(judged.violated_by)),
        achieved: judged.achieved.as_ref().map(AchievedMeasures::from_classes),
        breaks: broken(submission, judged),
        detail: judged.detail.clone(),
    });
    let tables = submission.tables.iter().zip(&verdict.tables).map(|(table, figures)| VerifiedTable {
        name: table.name.clone(),
        rows: figures.rows,
        buckets: figures.buckets,
        measures: figures
            .measures
            .iter()
            .map(|(target, by, measured)| TableMeasures::new(&names(*target), names(*by), measured))
            .collect(),
    });
    let check = |check: &verifier::Check| CheckResult {
        check: check.check,
        passed: check.passed,
        detail: check.detail.clone(),
    };
    let notice = |(kind, detail): &(NoticeKind, String)| SpecificationNotice {
        r#type: *kind,
        pointer: None,
        detail: detail.clone(),
    };
    Verification {
        verified: verdict.verified(),
        linkage: Linkage::NotChecked,
        rules: rules.collect(),
        tables: tables.collect(),
        checks: verdict.checks.iter().map(check).collect(),
        attacks,
        warnings: verdict.remarks.iter().map(notice).collect(),
    }
}

fn broken(submission: &Submission<'_>, judged: &RuleOutcome) -> BrokenClasses {
    let first = judged.breaks.first.iter().map(|found| {
        let class: BTreeMap<String, Value> = attribute_list(submission.names, &found.class);
        BrokenClass {
            table: submission.tables[found.table].name.clone(),
            bucket: found.bucket.as_ref().map(in_json),
            class: (found.bucket.is_none() || !class.is_empty()).then(|| class.into_iter().collect()),
        }
    });
    BrokenClasses { total: judged.breaks.total, first: first.collect() }
}
