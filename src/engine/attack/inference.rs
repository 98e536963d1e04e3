//! Attacks on decomposed releases: `chain`, `exclusion`, `excludable` and `forced`.
//!
//! # Citations
//! [Ye et al. 2009]; `docs/spec/decompose.md#attacks`

use std::collections::BTreeMap;

use super::report::{AttackFinding, AttackFindings, AttackReport, FindingValue, RuledOutValues};
use super::target::{AttackTarget, release_problem, unsupported};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::published_value::PublishedValue;
use crate::microdata::{Attr, AttrSet};
use crate::publication::{AttackInput, DecompositionDetails, MethodDetails};
use crate::report::publication_of;
use crate::spec::{Attack, AttackOptions};
use crate::verifier;
use crate::verifier::{CellText, DecompositionView, InferenceQuestion, InferenceReport, InferredValue};

/// Runs one of the attacks on the parts of a decomposed release.
///
/// # Errors
/// [`EngineError::Cancelled`], or the refusal of an attack that does not apply.
pub fn inference_attack(
    target: AttackTarget<'_>,
    attack: Attack,
    options: AttackOptions,
    control: &Control,
) -> Result<AttackReport, EngineError> {
    control.begin(Phase::Verify, 1)?;
    let names = target.material.names();
    let publication = publication_of(target.manifest, names).map_err(EngineError::bug)?;
    let (Some(question), MethodDetails::Decompose(details), [buckets, _]) =
        (question(attack, options), &publication.method_details, target.material.tables())
    else {
        let word = attack.as_str();
        let detail = format!("{word} is played on decomposed releases, of several sensitive attributes; this is none");
        return Err(unsupported("/attack", detail));
    };
    let found = infer(target, details, question, control)?;
    if !found.possible {
        return Err(EngineError::bug("the tables of a decomposition contradict each other"));
    }
    let (primary, table) = (&names[details.primary.index()], &buckets.name);
    let first: Vec<AttackFinding> =
        found.first.iter().map(|inferred| finding(target, attack, table, primary, inferred)).collect();
    // an excluded value has no posterior
    let worst = first.first().map(|finding| finding.posterior).filter(|worst| worst.count > 0);
    Ok(AttackReport::new(attack, AttackInput::Parts, worst, AttackFindings { total: found.total, first }))
}

/// The question of an attack; `None` for attacks on other releases.
fn question(attack: Attack, options: AttackOptions) -> Option<InferenceQuestion> {
    match attack {
        Attack::Chain => Some(InferenceQuestion::Chain { fewest: options.lambda }),
        Attack::Exclusion => Some(InferenceQuestion::Exclusion { fewest: options.lambda, excluded: options.excluded }),
        Attack::Excludable => Some(InferenceQuestion::Excludable),
        Attack::Forced => Some(InferenceQuestion::Forced),
        Attack::ExactPosteriors
        | Attack::Proxy
        | Attack::Membership
        | Attack::Corruption
        | Attack::NegativeAssociation
        | Attack::Dependency
        | Attack::Join
        | Attack::Intersection => None,
    }
}

fn infer(
    target: AttackTarget<'_>,
    details: &DecompositionDetails,
    question: InferenceQuestion,
    control: &Control,
) -> Result<InferenceReport, EngineError> {
    let contradiction = "the parts of a decomposition are not what its manifest says";
    let [buckets, joint] = target.material.tables() else { return Err(EngineError::bug(contradiction)) };
    let primary = details.primary;
    let others: Vec<(Attr, u64)> =
        details.l.iter().filter(|(attr, _)| **attr != primary).map(|(attr, l)| (*attr, *l)).collect();
    let asked = target.rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let view = DecompositionView { buckets, joint, primary, others: &others, asked, noisy: details.noisy };
    verifier::infer_values(&view, question, control).map_err(|error| release_problem(error, contradiction))
}

fn finding(
    target: AttackTarget<'_>,
    attack: Attack,
    table: &str,
    primary: &str,
    inferred: &InferredValue,
) -> AttackFinding {
    let mut known = BTreeMap::new();
    if !inferred.known.is_empty() {
        let values = match attack {
            Attack::Exclusion => FindingValue::Excluded(RuledOutValues { not: published(&inferred.known) }),
            _ => cells(&inferred.known),
        };
        known.insert(primary.to_owned(), values);
    }
    let of_attribute = AttrSet::one(inferred.attribute);
    let rule = target.rules.iter().find(|rule| rule.protects.attributes() == of_attribute);
    let name = target.material.names()[inferred.attribute.index()].clone();
    AttackFinding {
        rule: rule.map(|rule| rule.pointer.clone()),
        bucket: Some(PublishedValue(inferred.bucket.into())),
        known,
        sensitive: BTreeMap::from([(name, cells(&inferred.values))]),
        ..AttackFinding::new("", Some(table), inferred.posterior.into())
    }
}

fn cells(cells: &[CellText]) -> FindingValue {
    match cells {
        [one] => FindingValue::Value(one.into()),
        several => FindingValue::AnyOf(published(several)),
    }
}

fn published(cells: &[CellText]) -> Vec<PublishedValue> {
    cells.iter().map(PublishedValue::from).collect()
}
