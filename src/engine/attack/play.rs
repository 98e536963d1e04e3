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

/// Plays an attack; false when the tables contradict each other. `hash` says of each row of the original in which half of it the row
/// is: for a release nobody can foretell it.
///
/// # Errors
/// [`EngineError::Cancelled`], or [`EngineError::Refused`] when it cannot be played on them.
pub(in crate::engine) fn play(
    attack: Attack,
    submission: &Submission<'_>,
    hash: &dyn Fn(usize) -> u64,
    control: &Control,
) -> Result<(AttackReport, bool), EngineError> {
    match attack {
        Attack::ExactPosteriors => worlds(submission, control),
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

/// `proxy`: by the counts of half of the original.
fn by_proxy(
    submission: &Submission<'_>,
    hash: &dyn Fn(usize) -> u64,
    control: &Control,
) -> Result<AttackReport, EngineError> {
    if submission.original.is_none() {
        let detail = "proxy learns from half of the original and is judged on the other half: send the original too";
        return Err(EngineError::Refused(Problem::of_faults(vec![Fault::new("/attacks", Kind::BadColumns, detail)])));
    }
    let mut told = verifier::infer_by_proxy(submission, hash, control).map_err(|uncounted| match uncounted {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            let detail = format!("the attack would weigh too many {what}");
            EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
        }
        AttackError::NotExact => {
            let detail = "proxy needs exact cells of what it learns from";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
        AttackError::Circle => {
            let detail =
                "parts of a table share attributes in a circle: what they say together of a person is not known";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
    })?;
    // all have the same targets
    told.sort_by(|a, b| b.sum.total_cmp(&a.sum).then(a.rule.cmp(&b.rule)).then(a.attribute.cmp(&b.attribute)));
    let ratio = |telling: &ProxyFinding| ManifestRatio { count: telling.sum as u64, of: telling.targets };
    let breaches = || told.iter().filter(|telling| telling.breach);
    let finding = |telling: &ProxyFinding| AttackFinding {
        rule: Some(submission.rules[telling.rule].pointer.clone()).filter(|pointer| !pointer.is_empty()),
        table: Some(submission.tables[telling.table].name.clone()),
        attribute: Some(submission.names[telling.attribute.index()].clone()),
        bucket: None,
        known: Map::new(),
        sensitive: Map::new(),
        posterior: ratio(telling),
    };
    Ok(AttackReport {
        attack: Attack::Proxy,
        uses: AttackInput::Original,
        breach: breaches().next().is_some(),
        worst: told.first().filter(|telling| telling.targets > 0).map(ratio),
        findings: AttackFindings {
            total: breaches().count() as u64,
            first: breaches().take(MAX_REPORTED_RESULTS).map(finding).collect(),
        },
        membership: None,
        joins: None,
    })
}

/// `exact_posteriors`: by counting all worlds.
fn worlds(submission: &Submission<'_>, control: &Control) -> Result<(AttackReport, bool), EngineError> {
    let exposed = verifier::count_worlds(submission, control).map_err(|uncounted| match uncounted {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            let detail =
                format!("all worlds are counted one by one, which is for tables of a few rows: too many {what}");
            EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
        }
        AttackError::NotExact | AttackError::Circle => {
            let detail = "exact_posteriors counts worlds of exact tuples; the tables hold other cells or rows";
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

/// Plays an attack on the parts of a release, and on its original where the material has it; `hash` parts the rows of that in two.
///
/// # Errors
/// [`EngineError::Cancelled`], or the refusal of an attack that cannot be played.
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
