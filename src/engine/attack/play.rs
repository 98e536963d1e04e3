use super::dependency::attack_submission;
use super::report::{AttackFinding, AttackFindings, AttackReport, MAX_REPORTED_RESULTS};
use super::target::{AttackTarget, unsupported, work_limit};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::manifest::{all_thresholds_in, taxonomies_of};
use crate::engine::read_back::published_value::named_values;
use crate::problem::{Fault, Kind, Problem};
use crate::publication::AttackInput;
use crate::report::ManifestRatio;
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
        Attack::Dependency => Ok((attack_submission(submission, control)?, true)),
        Attack::Membership
        | Attack::Chain
        | Attack::Exclusion
        | Attack::Excludable
        | Attack::Forced
        | Attack::Corruption
        | Attack::NegativeAssociation
        | Attack::Join
        | Attack::Intersection => Err(unsupported("/attacks", format!("{} is played on releases", attack.as_str()))),
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
            work_limit(format!("the attack would count too many {what}"), limit, found)
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
    let breaches = || inferences.iter().filter(|inference| inference.breach);
    let finding = |inference: &ProxyFinding| {
        let (rule, table) = (&submission.rules[inference.rule], &submission.tables[inference.table]);
        AttackFinding {
            attribute: Some(submission.names[inference.attribute.index()].clone()),
            ..AttackFinding::new(&rule.pointer, Some(&table.name), posterior(inference))
        }
    };
    let worst = inferences.first().filter(|inference| inference.targets > 0).map(posterior);
    let first = breaches().take(MAX_REPORTED_RESULTS).map(finding).collect();
    let findings = AttackFindings { total: breaches().count() as u64, first };
    Ok(AttackReport::new(Attack::Proxy, AttackInput::Original, worst, findings))
}

/// The mean probability of the true values of the targets.
const fn posterior(inference: &ProxyFinding) -> ManifestRatio {
    ManifestRatio { count: inference.sum as u64, of: inference.targets }
}

/// The attack `exact_posteriors`: enumeration of all possible worlds.
fn possible_worlds(submission: &Submission<'_>, control: &Control) -> Result<(AttackReport, bool), EngineError> {
    let exposed = verifier::count_worlds(submission, control).map_err(|uncounted| match uncounted {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            let detail =
                format!("possible worlds are enumerated, which is only feasible for a few rows: too many {what}");
            work_limit(detail, limit, found)
        }
        AttackError::NotExact | AttackError::Circle => {
            let detail =
                "exact_posteriors enumerates possible worlds of exact tuples; the tables hold other cells or rows";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
    })?;
    let first = exposed.first.iter().map(|exposure| AttackFinding {
        known: named_values(submission.names, &exposure.known),
        sensitive: named_values(submission.names, &exposure.sensitive),
        ..AttackFinding::new(&submission.rules[exposure.rule].pointer, None, exposure.posterior.into())
    });
    let findings = AttackFindings { total: exposed.total, first: first.collect() };
    let worst = exposed.worst.map(ManifestRatio::from);
    let attacked = AttackReport::new(Attack::ExactPosteriors, AttackInput::Parts, worst, findings);
    Ok((attacked, exposed.possible))
}

/// Runs an attack on the parts of a release, and on its original where the material holds it. `hash` halves the original.
///
/// # Errors
/// [`EngineError::Cancelled`], or the refusal of an attack that does not apply.
pub fn attack_tables(
    target: AttackTarget<'_>,
    attack: Attack,
    hash: &dyn Fn(usize) -> u64,
    control: &Control,
) -> Result<AttackReport, EngineError> {
    let AttackTarget { manifest, material, rules } = target;
    control.begin(Phase::Verify, rules.len() as u64)?;
    let submission = Submission {
        tables: &material.tables,
        names: &material.names,
        rules,
        dependencies: &target.dependencies(),
        original: material.original.as_ref(),
        taxonomies: &taxonomies_of(manifest, &material.names).map_err(EngineError::bug)?,
        thresholds: &all_thresholds_in(manifest, &material.names),
        exact: material.exact,
    };
    play(attack, &submission, hash, control).map(|(attacked, _)| attacked)
}
