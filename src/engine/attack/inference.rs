//! Attacks on decomposed releases: `chain`, `exclusion`, `excludable` and `forced`.
//!
//! # Citations
//! [Ye et al. 2009]; `docs/spec/decompose.md#attacks`

use serde_json::{Map, Value};

use super::report::{AttackFinding, AttackFindings, AttackReport};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::external::{VerificationMaterial, in_json};
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{AttackInput, MethodDetails, SubmittedRule};
use crate::report::{Manifest, ManifestRatio, publication_of};
use crate::spec::{Attack, AttackOptions};
use crate::verifier;
use crate::verifier::{AttackError, CellText, DecompositionView, InferenceQuestion, InferredValue};

/// Runs one of the attacks on the parts of a decomposed release.
///
/// # Errors
/// [`EngineError::Cancelled`], or the refusal of an attack that does not apply.
pub fn inference_attack(
    material: &VerificationMaterial,
    manifest: &Manifest,
    (attack, options): (Attack, AttackOptions),
    rules: &[SubmittedRule],
    control: &Control,
) -> Result<AttackReport, EngineError> {
    control.begin(Phase::Verify, 1)?;
    let word = attack.as_str();
    let not_played = || {
        let detail = format!("{word} is played on decomposed releases, of several sensitive attributes; this is none");
        EngineError::Refused(Problem::of_faults(vec![Fault::new("/attack", Kind::GuaranteeUnsupported, detail)]))
    };
    let question = match attack {
        Attack::Chain => InferenceQuestion::Chain { fewest: options.lambda },
        Attack::Exclusion => InferenceQuestion::Exclusion { fewest: options.lambda, excluded: options.excluded },
        Attack::Excludable => InferenceQuestion::Excludable,
        Attack::Forced => InferenceQuestion::Forced,
        Attack::ExactPosteriors
        | Attack::Proxy
        | Attack::Membership
        | Attack::Corruption
        | Attack::NegativeAssociation
        | Attack::Join => return Err(not_played()),
    };
    let publication = publication_of(manifest, material.names()).map_err(EngineError::bug)?;
    let MethodDetails::Decompose(said) = &publication.method_details else { return Err(not_played()) };
    let [buckets, joint] = material.tables() else { return Err(not_played()) };
    let asked = rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let others: Vec<(Attr, u64)> =
        said.l.iter().filter(|(attr, _)| **attr != said.primary).map(|(attr, l)| (*attr, *l)).collect();
    let given = DecompositionView { buckets, joint, primary: said.primary, others: &others, asked, noisy: said.noisy };
    let found = verifier::infer_values(&given, question, control).map_err(|uncounted| match uncounted {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            let detail = format!("the attack would look at too many {what}");
            EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
        }
        AttackError::NotExact | AttackError::Circle => {
            EngineError::bug("the parts of a decomposition are not what its manifest says")
        }
    })?;
    if !found.possible {
        return Err(EngineError::bug("the tables of a decomposition contradict each other"));
    }
    let names = material.names();
    let primary = &names[said.primary.index()];
    let cells = |cells: &[CellText]| -> Value {
        match cells {
            [one] => in_json(one),
            several => several.iter().map(in_json).collect(),
        }
    };
    let finding = |inferred: &InferredValue| {
        let mut known = Map::new();
        if !inferred.known.is_empty() {
            let of: Value = match attack {
                Attack::Exclusion => {
                    serde_json::json!({ "not": inferred.known.iter().map(in_json).collect::<Vec<_>>() })
                }
                _ => cells(&inferred.known),
            };
            known.insert(primary.clone(), of);
        }
        let of_attribute = AttrSet::one(inferred.attribute);
        let rule = rules.iter().find(|rule| rule.protects.attributes() == of_attribute);
        let (count, of) = inferred.posterior;
        AttackFinding {
            rule: rule.map(|rule| rule.pointer.clone()),
            table: Some(buckets.name.clone()),
            attribute: None,
            bucket: Some(inferred.bucket.into()),
            known,
            sensitive: Map::from_iter([(names[inferred.attribute.index()].clone(), cells(&inferred.values))]),
            posterior: ManifestRatio { count, of },
        }
    };
    let first: Vec<AttackFinding> = found.first.iter().map(finding).collect();
    Ok(AttackReport {
        attack,
        uses: AttackInput::Parts,
        breach: found.total > 0,
        // an excluded value has no posterior
        worst: first.first().map(|finding| finding.posterior).filter(|worst| worst.count > 0),
        findings: AttackFindings { total: found.total, first },
        membership: None,
        joins: None,
    })
}
