use serde_json::Map;

use super::report::{AttackFinding, AttackFindings, AttackReport, MAX_REPORTED_RESULTS};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::external::{VerificationMaterial, attribute_list};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{AttackInput, SubmittedRule};
use crate::report::{Manifest, ManifestRatio};
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::{AttackError, ProxyFinding, Submission};

/// Runs an attack on a submission; the second result is false when the tables contradict each other.
///
/// `hash` assigns each row of the original to one of its halves; for a release the assignment is secret.
///
/// # Errors
/// [`EngineError::Cancelled`], or [`EngineError::Refused`] when the attack does not apply to the tables.
pub(in crate::engine) fn play(
    attack: Attack,
    submission: &Submission<'_>,
    hash: &dyn Fn(usize) -> u64,
    control: &Control,
) -> Result<(AttackReport, bool), EngineError> {
    match attack {
        Attack::ExactPosteriors => possible_worlds(submission, control),
        Attack::Proxy => Ok((by_proxy(submission, hash, control)?, true)),
        Attack::Membership
        | Attack::Chain
        | Attack::Exclusion
        | Attack::Excludable
        | Attack::Forced
        | Attack::Corruption
        | Attack::NegativeAssociation
        | Attack::Join => {
            let detail = format!("{} is played on releases", attack.as_str());
            Err(EngineError::Refused(Problem::of_faults(vec![Fault::new(
                "/attacks",
                Kind::GuaranteeUnsupported,
                detail,
            )])))
        }
    }
}

/// The attack `proxy`: inference from the counts of half of the original.
fn by_proxy(
    submission: &Submission<'_>,
    hash: &dyn Fn(usize) -> u64,
    control: &Control,
) -> Result<AttackReport, EngineError> {
    if submission.original.is_none() {
        let detail =
            "proxy learns from one half of the original and is tested on the other half: send the original too";
        return Err(EngineError::Refused(Problem::of_faults(vec![Fault::new("/attacks", Kind::BadColumns, detail)])));
    }
    let mut inferences = verifier::infer_by_proxy(submission, hash, control).map_err(|uncounted| match uncounted {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            let detail = format!("the attack would count too many {what}");
            EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
        }
        AttackError::NotExact => {
            let detail = "proxy needs exact cells in the attributes that it learns from";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
        AttackError::Circle => {
            let detail = "parts of a table share attributes in a circle: they have no joint posterior of a person";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
    })?;
    // all have the same targets
    inferences.sort_by(|a, b| b.sum.total_cmp(&a.sum).then(a.rule.cmp(&b.rule)).then(a.attribute.cmp(&b.attribute)));
    let ratio = |inference: &ProxyFinding| ManifestRatio { count: inference.sum as u64, of: inference.targets };
    let breaches = || inferences.iter().filter(|inference| inference.breach);
    let finding = |inference: &ProxyFinding| AttackFinding {
        rule: Some(submission.rules[inference.rule].pointer.clone()).filter(|pointer| !pointer.is_empty()),
        table: Some(submission.tables[inference.table].name.clone()),
        attribute: Some(submission.names[inference.attribute.index()].clone()),
        bucket: None,
        known: Map::new(),
        sensitive: Map::new(),
        posterior: ratio(inference),
    };
    Ok(AttackReport {
        attack: Attack::Proxy,
        uses: AttackInput::Original,
        breach: breaches().next().is_some(),
        worst: inferences.first().filter(|inference| inference.targets > 0).map(ratio),
        findings: AttackFindings {
            total: breaches().count() as u64,
            first: breaches().take(MAX_REPORTED_RESULTS).map(finding).collect(),
        },
        membership: None,
        joins: None,
    })
}

/// The attack `exact_posteriors`: enumeration of all possible worlds.
fn possible_worlds(submission: &Submission<'_>, control: &Control) -> Result<(AttackReport, bool), EngineError> {
    let exposed = verifier::count_worlds(submission, control).map_err(|uncounted| match uncounted {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            let detail =
                format!("possible worlds are enumerated, which is only feasible for a few rows: too many {what}");
            EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
        }
        AttackError::NotExact | AttackError::Circle => {
            let detail =
                "exact_posteriors enumerates possible worlds of exact tuples; the tables hold other cells or rows";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
    })?;
    let ratio = |(count, of): (u64, u64)| ManifestRatio { count, of };
    let first = exposed.first.iter().map(|exposure| AttackFinding {
        rule: Some(submission.rules[exposure.rule].pointer.clone()).filter(|pointer| !pointer.is_empty()),
        table: None,
        attribute: None,
        bucket: None,
        known: attribute_list(submission.names, &exposure.known),
        sensitive: attribute_list(submission.names, &exposure.sensitive),
        posterior: ratio(exposure.posterior),
    });
    let attacked = AttackReport {
        attack: Attack::ExactPosteriors,
        uses: AttackInput::Parts,
        breach: exposed.total > 0,
        worst: exposed.worst.map(ratio),
        findings: AttackFindings { total: exposed.total, first: first.collect() },
        membership: None,
        joins: None,
    };
    Ok((attacked, exposed.possible))
}

/// Runs an attack on the parts of a release, and on its original where the material holds it. `hash` halves the original.
///
/// # Errors
/// [`EngineError::Cancelled`], or the refusal of an attack that does not apply.
pub fn attack_tables(
    material: &VerificationMaterial,
    attack: Attack,
    rules: &[SubmittedRule],
    hash: &dyn Fn(usize) -> u64,
    manifest: &Manifest,
    control: &Control,
) -> Result<super::report::AttackReport, EngineError> {
    control.begin(Phase::Verify, rules.len() as u64)?;
    let taxonomies =
        crate::engine::read_back::manifest::taxonomies_of(manifest, &material.names).map_err(EngineError::bug)?;
    let (tables, names, original) = (&material.tables, &material.names, material.original.as_ref());
    let thresholds = crate::engine::read_back::manifest::all_thresholds_in(manifest, &material.names);
    let (taxonomies, thresholds) = (&taxonomies[..], &thresholds[..]);
    let exact = material.exact;
    let submission = Submission { tables, names, rules, dependencies: &[], original, taxonomies, thresholds, exact };
    play(attack, &submission, hash, control).map(|(attacked, _)| attacked)
}
