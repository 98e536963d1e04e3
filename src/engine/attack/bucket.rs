//! Attacks on the rows of buckets: the rules that they are made against, and the form of their findings.

use super::report::{AttackFinding, AttackFindings, AttackReport};
use super::target::{AttackTarget, guards};
use crate::engine::error::EngineError;
use crate::engine::read_back::published_value::named_values;
use crate::publication::{AttackInput, Guarantee, Protected};
use crate::report::{ManifestRatio, publication_of};
use crate::spec::Attack;
use crate::verifier::{BucketAttackFinding, BucketAttackReport, Submission};

/// The report of an attack on buckets that reads the original.
pub(super) fn bucket_report(attack: Attack, submission: &Submission<'_>, found: &BucketAttackReport) -> AttackReport {
    let first = found.first.iter().map(|found| finding(submission, found)).collect();
    let (worst, findings) = (found.worst.map(ManifestRatio::from), AttackFindings { total: found.total, first });
    AttackReport::new(attack, AttackInput::Original, worst, findings)
}

/// The pairs of a table and a rule that it enforces, by index.
pub(super) fn guarded_rules(target: AttackTarget<'_>) -> Result<Vec<(usize, usize)>, EngineError> {
    let publication = publication_of(target.manifest, target.material.names()).map_err(EngineError::bug)?;
    // generalized cells show no exact value
    let is_exact = |table: usize| target.material.tables()[table].parts.iter().all(|part| part.cells.is_empty());
    let mut asked = Vec::new();
    for (index, rule) in target.rules.iter().enumerate().filter(|(_, rule)| bounds_values(rule.guarantee)) {
        let Protected::Attribute(_) = rule.protects else { continue };
        let tables = publication.tables.iter().enumerate();
        let tables = tables.filter(|(number, table)| guards(table, rule.protects) && is_exact(*number));
        asked.extend(tables.map(|(number, _)| (number, index)));
    }
    Ok(asked)
}

/// Whether an attack on buckets can exceed a guarantee.
pub(super) const fn bounds_values(guarantee: Guarantee) -> bool {
    matches!(guarantee, Guarantee::LDiversity { .. } | Guarantee::AlphaK { .. } | Guarantee::Thresholds { .. })
}

fn finding(submission: &Submission<'_>, found: &BucketAttackFinding) -> AttackFinding {
    let rule = &submission.rules[found.rule];
    let sensitive: Vec<_> = rule.protects.attributes().iter().map(|attr| (attr, found.sensitive.clone())).collect();
    let table = &submission.tables[found.table].name;
    AttackFinding {
        bucket: Some((&found.bucket).into()),
        known: named_values(submission.names, &found.known),
        sensitive: named_values(submission.names, &sensitive),
        ..AttackFinding::new(&rule.pointer, Some(table), found.posterior.into())
    }
}
