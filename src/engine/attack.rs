//! Attacks, played as audits.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::EngineError;
use super::earlier::JoinAttackResult;
use super::membership::MembershipSummary;
use super::verification::attribute_list;
use crate::audit::{self, AttackError, ProxyFinding, Submission};
use crate::control::Control;
use crate::problem::{Fault, Kind, Problem};
use crate::report::ManifestRatio;
use crate::spec::Attack;

/// How an attack went.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Attacked)]
pub struct AttackReport {
    /// Which one.
    pub attack: String,
    /// `parts` when it needs what is published alone, `original` when it needs the data.
    pub uses: String,
    /// Whether it learned more than a rule allows.
    pub breach: bool,
    /// The largest posterior of a sensitive value; null when nothing was learned of any.
    pub worst: Option<ManifestRatio>,
    /// What was learned beyond the rules.
    pub findings: AttackFindings,
    /// What `membership` found, table by table; of that attack alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<Vec<MembershipSummary>>,
    /// What requirements come to on the joins that count; of `join` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joins: Option<Vec<JoinAttackResult>>,
}

/// What an attack needs that needs the data.
pub(super) const NEEDS_ORIGINAL: &str = "original";

/// What an attack learned beyond the rules.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Findings)]
pub struct AttackFindings {
    /// How many there are.
    pub total: u64,
    /// At most ten, the most certain first.
    pub first: Vec<AttackFinding>,
}

/// Something learned beyond a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Finding)]
pub struct AttackFinding {
    /// The rule, by its pointer.
    pub rule: Option<String>,
    /// The table that tells it, where it is one.
    pub table: Option<String>,
    /// The published attribute by which it is told, for an attack by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// The bucket, where it is one.
    #[schema(value_type = Option<Object>)]
    pub bucket: Option<Value>,
    /// What is known of a person.
    #[schema(value_type = Object)]
    pub known: Map<String, Value>,
    /// What is learned of the person.
    #[schema(value_type = Object)]
    pub sensitive: Map<String, Value>,
    /// How certain that is; of an attack by an attribute, the mean over its targets of the probability given to the true value.
    pub posterior: ManifestRatio,
}

/// Plays an attack; false when the tables contradict each other. `hash` says of each row of the original in which half of it the row
/// is: for a release nobody can foretell it.
///
/// # Errors
/// [`EngineError::Cancelled`], or [`EngineError::Refused`] when it cannot be played on them.
pub(super) fn play(
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
            let detail = format!("{} is played on releases", attack.word());
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
    let mut told = audit::infer_by_proxy(submission, hash, control).map_err(|uncounted| match uncounted {
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
        attack: Attack::Proxy.word().to_owned(),
        uses: NEEDS_ORIGINAL.to_owned(),
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

/// So many findings are shown.
pub(super) const MAX_REPORTED_RESULTS: usize = 10;

/// `exact_posteriors`: by counting all worlds.
fn worlds(submission: &Submission<'_>, control: &Control) -> Result<(AttackReport, bool), EngineError> {
    let exposed = audit::count_worlds(submission, control).map_err(|uncounted| match uncounted {
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
        attack: Attack::ExactPosteriors.word().to_owned(),
        uses: "parts".to_owned(),
        breach: exposed.total > 0,
        worst: exposed.worst.map(ratio),
        findings: AttackFindings { total: exposed.total, first: first.collect() },
        membership: None,
        joins: None,
    };
    Ok((attacked, exposed.possible))
}
