//! The attack `negative_association`: excludes sensitive values that rarely occur with the known values of a row.
//!
//! Its results reveal figures of the original, so only holders of the original may run it.
//!
//! # Citations
//! [Wang et al. 2012, section 6]

use serde_json::Map;

use super::report::{AttackFinding, AttackFindings, AttackReport};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::external::{VerificationMaterial, attribute_list, in_json};
use crate::microdata::AttrSet;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{
    AttackInput, Guarantee, Protected, PublishedTable, SubmittedRule, TableKind, TableProtection,
};
use crate::report::{Manifest, ManifestRatio, publication_of};
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::{AttackError, NegativeAssociationFinding, Submission};

/// Runs the attack on every bucketized table, against the rules that it enforces.
///
/// `material` holds the release with its counterfeits, and its original.
///
/// # Errors
/// [`EngineError`]: cancelled, refused where no rule bounds values of a bucketized table or there are too many to look at, or failed where
/// the parts are not made from the original.
pub fn negative_association(
    manifest: &Manifest,
    material: &VerificationMaterial,
    rules: &[SubmittedRule],
    control: &Control,
) -> Result<AttackReport, EngineError> {
    control.begin(Phase::Verify, 1)?;
    let names = material.names();
    let publication = publication_of(manifest, names).map_err(EngineError::bug)?;
    let protects = |table: &PublishedTable, protected: Protected| match &table.protection {
        TableProtection::Guarding(guards) => {
            table.kind() == TableKind::Bucketized && guards.iter().any(|guard| guard.protects == protected)
        }
        TableProtection::Plain | TableProtection::Exclusive => false,
    };
    // generalized cells show no exact value
    let exact = |table: usize| material.tables()[table].parts.iter().all(|part| part.cells.is_empty());
    let bounds = |guarantee: Guarantee| {
        matches!(guarantee, Guarantee::LDiversity { .. } | Guarantee::AlphaK { .. } | Guarantee::Thresholds { .. })
    };
    let mut asked: Vec<(usize, usize)> = Vec::new();
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| bounds(rule.guarantee)) {
        let tables = publication.tables.iter().enumerate();
        let tables = tables
            .filter(|(_, table)| matches!(rule.protects, Protected::Attribute(_)) && protects(table, rule.protects));
        asked.extend(tables.map(|(table, _)| table).filter(|table| exact(*table)).map(|table| (table, index)));
    }
    if asked.is_empty() {
        let detail = "negative_association is played on bucketized tables of exact values, against rules that bound the \
                      share of each sensitive value";
        let fault = Fault::new("/attack", Kind::GuaranteeUnsupported, detail);
        return Err(EngineError::Refused(Problem::of_faults(vec![fault])));
    }
    let thresholds = crate::engine::read_back::manifest::all_thresholds_in(manifest, names);
    let submission = Submission {
        tables: material.tables(),
        names,
        rules,
        dependencies: &[],
        original: material.original(),
        taxonomies: &[],
        thresholds: &thresholds,
        exact: AttrSet::EMPTY,
    };
    let crossed =
        verifier::find_negative_associations(&submission, &asked, control).map_err(|uncounted| match uncounted {
            AttackError::Cancelled => EngineError::Cancelled,
            AttackError::TooMany { what, limit, found } => {
                let detail = format!("the attack would look at too many {what}");
                EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
            }
            AttackError::NotExact | AttackError::Circle => EngineError::bug("a release is not made from its original"),
        })?;
    let ratio = |(count, of): (u64, u64)| ManifestRatio { count, of };
    let finding = |crossing: &NegativeAssociationFinding| {
        let rule = &rules[crossing.rule];
        let sensitive = rule.protects.attributes().iter().map(|attr| (attr, crossing.sensitive.clone()));
        AttackFinding {
            rule: Some(rule.pointer.clone()).filter(|pointer| !pointer.is_empty()),
            table: Some(submission.tables[crossing.table].name.clone()),
            attribute: None,
            bucket: Some(in_json(&crossing.bucket)),
            known: attribute_list(names, &crossing.known),
            sensitive: attribute_list::<Map<_, _>>(names, &sensitive.collect::<Vec<_>>()),
            posterior: ratio(crossing.posterior),
        }
    };
    Ok(AttackReport {
        attack: Attack::NegativeAssociation,
        uses: AttackInput::Original,
        breach: crossed.total > 0,
        worst: crossed.worst.map(ratio),
        findings: AttackFindings { total: crossed.total, first: crossed.first.iter().map(finding).collect() },
        membership: None,
        joins: None,
    })
}
