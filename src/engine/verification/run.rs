use super::report::{BrokenClass, BrokenClasses, Verification, VerifiedRule, VerifiedTable};
use crate::control::{Control, Phase};
use crate::engine::attack::play::play;
use crate::engine::attack::report::AttackReport;
use crate::engine::error::EngineError;
use crate::engine::read_back::external::VerificationMaterial;
use crate::engine::read_back::measures::{AchievedMeasures, TableMeasures};
use crate::engine::read_back::published_value::{NamedValues, PublishedValue, named_values};
use crate::microdata::AttrSet;
use crate::publication::{CheckName, Linkage, NoticeKind};
use crate::report::{CheckResult, ManifestEnforcedBy, SpecificationNotice};
use crate::spec::VerificationRules;
use crate::verifier;
use crate::verifier::{EvaluationReport, ExternalEnforcement, RuleOutcome, Submission};

/// A pseudorandom number of a row. It is public, because the caller of a verification has the original.
fn mixed(row: usize) -> u64 {
    let mut word = (row as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Verifies submitted tables against their rules.
///
/// # Errors
/// [`EngineError::Cancelled`], or the refusal of an attack that does not apply.
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
        let (attacked, any) = play(*attack, &submission, &mixed, control)?;
        attacks.push(attacked);
        possible &= any;
    }
    let mut found = to_verification(&submission, &verdict, attacks);
    if !possible {
        found.verified = false;
        let columns = found.checks.iter_mut().find(|check| check.check == CheckName::Columns && check.passed);
        if let Some(check) = columns {
            check.passed = false;
            check.detail = Some("the parts contradict each other: no table has them".to_owned());
        }
    }
    Ok(found)
}

fn to_verification(
    submission: &Submission<'_>,
    verdict: &EvaluationReport,
    attacks: Vec<AttackReport>,
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
        let class: NamedValues = named_values(submission.names, &found.class);
        BrokenClass {
            table: submission.tables[found.table].name.clone(),
            bucket: found.bucket.as_ref().map(PublishedValue::from),
            class: (found.bucket.is_none() || !class.is_empty()).then_some(class),
        }
    });
    BrokenClasses { total: judged.breaks.total, first: first.collect() }
}
