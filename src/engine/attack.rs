//! Attacks, played as audits.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Stopped;
use super::membership::Membership;
use super::verification::named;
use crate::audit::{self, Submission, Uncounted};
use crate::control::Control;
use crate::problem::{Kind, Problem};
use crate::report::Ratio;
use crate::spec::Attack;

/// How an attack went.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Attacked {
    /// Which one.
    pub attack: String,
    /// `parts` when it needs what is published alone, `original` when it needs the data.
    pub uses: String,
    /// Whether it learned more than a rule allows.
    pub breach: bool,
    /// The largest posterior of a sensitive value; null when nothing was learned of any.
    pub worst: Option<Ratio>,
    /// What was learned beyond the rules.
    pub findings: Findings,
    /// What `membership` found, table by table; of that attack alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<Vec<Membership>>,
}

/// What an attack needs that needs the data.
pub(super) const ORIGINAL: &str = "original";

/// What an attack learned beyond the rules.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Findings {
    /// How many there are.
    pub total: u64,
    /// At most ten, the most certain first.
    pub first: Vec<Finding>,
}

/// Something learned beyond a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Finding {
    /// The rule, by its pointer.
    pub rule: Option<String>,
    /// The table that tells it, where it is one.
    pub table: Option<String>,
    /// The bucket, where it is one.
    #[schema(value_type = Option<Object>)]
    pub bucket: Option<Value>,
    /// What is known of a person.
    #[schema(value_type = Object)]
    pub known: Map<String, Value>,
    /// What is learned of the person.
    #[schema(value_type = Object)]
    pub sensitive: Map<String, Value>,
    /// How certain that is.
    pub posterior: Ratio,
}

/// Plays an attack that needs the tables alone; false when they contradict each other.
///
/// # Errors
/// [`Stopped::Cancelled`], or [`Stopped::Refused`] when it cannot be played on them.
pub(super) fn play(
    attack: Attack,
    submission: &Submission<'_>,
    control: &Control,
) -> Result<(Attacked, bool), Stopped> {
    let exposed = audit::expose(submission, control).map_err(|uncounted| match uncounted {
        Uncounted::Cancelled => Stopped::Cancelled,
        Uncounted::TooMany { what, limit, found } => {
            let detail =
                format!("all worlds are counted one by one, which is for tables of a few rows: too many {what}");
            Stopped::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
        }
        Uncounted::NotExact => {
            let detail = "exact_posteriors counts worlds of exact tuples; the tables hold other cells or rows";
            Stopped::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
    })?;
    let ratio = |(count, of): (u64, u64)| Ratio { count, of };
    let first = exposed.first.iter().map(|exposure| Finding {
        rule: Some(submission.rules[exposure.rule].pointer.clone()).filter(|pointer| !pointer.is_empty()),
        table: None,
        bucket: None,
        known: named(submission.names, &exposure.known),
        sensitive: named(submission.names, &exposure.sensitive),
        posterior: ratio(exposure.posterior),
    });
    let attacked = Attacked {
        attack: attack.word().to_owned(),
        uses: "parts".to_owned(),
        breach: exposed.total > 0,
        worst: exposed.worst.map(ratio),
        findings: Findings { total: exposed.total, first: first.collect() },
        membership: None,
    };
    Ok((attacked, exposed.possible))
}
