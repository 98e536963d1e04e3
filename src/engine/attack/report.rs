use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::publication::AttackInput;
use crate::report::{ManifestRatio, ManifestTable};
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::MembershipReport;

/// How an attack went.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttackReport {
    /// Which one.
    pub attack: Attack,
    /// The data that it reads.
    pub uses: AttackInput,
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

/// What an attack learned beyond the rules.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttackFindings {
    /// How many there are.
    pub total: u64,
    /// At most ten, the most certain first.
    pub first: Vec<AttackFinding>,
}

/// Something learned beyond a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
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

/// So many findings are shown.
pub(in crate::engine) const MAX_REPORTED_RESULTS: usize = 10;

/// What a requirement comes to on a join: one of both.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct JoinAttackMeasure {
    /// The fewest values on y of any group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u64>,
    /// The largest share of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub h: Option<ManifestRatio>,
}

/// What a requirement comes to on a join, by who made it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JoinAttackResult {
    /// The requirement, by its pointer.
    pub requirement: String,
    /// The earlier release that promised it; null of the release's own.
    pub promised_by: Option<String>,
    /// The releases that were joined.
    pub releases: Vec<String>,
    /// What it comes to.
    pub achieved: JoinAttackMeasure,
    /// Whether that is what was asked for.
    pub holds: bool,
    /// A group that has it: its labels on x.
    #[schema(value_type = std::collections::BTreeMap<String, Option<String>>)]
    pub group: Map<String, Value>,
    /// The labels on y that take the share; none for `k`.
    #[schema(value_type = std::collections::BTreeMap<String, Option<String>>)]
    pub told: Map<String, Value>,
}

/// How well a table that is tied by bucket hides who is in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MembershipSummary {
    /// The table.
    pub table: String,
    /// Tuples of all attributes that some bucket matches in every part, and that no row of the original is.
    pub fake_full: TupleCount,
    /// The same of the attributes that are not protected.
    pub fake_qi: TupleCount,
    /// By how many buckets match all attributes.
    pub histogram: Vec<MembershipClass>,
}

/// Tuples that so many buckets match.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MembershipClass {
    /// `1..10`, `11..20` or `21..`.
    pub buckets: String,
    /// Rows of the original.
    pub rows: u64,
    /// Different rows of the original.
    pub originals: u64,
    /// Tuples that are no row of the original.
    pub fakes: TupleCount,
}

/// A number of tuples, or an estimate of it.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct TupleCount {
    /// How many.
    pub value: f64,
    /// The standard error of an estimate; 0 of a count.
    pub standard_error: f64,
    /// Whether they were counted; where there are too many they are estimated from a sample.
    pub exact: bool,
}

impl From<verifier::TupleEstimate> for TupleCount {
    fn from(tuples: verifier::TupleEstimate) -> Self {
        let verifier::TupleEstimate { value, standard_error, exact } = tuples;
        Self { value, standard_error, exact }
    }
}

impl MembershipSummary {
    pub(super) fn new(table: &ManifestTable, members: &MembershipReport) -> Self {
        let class = |(at, name): (usize, &&str)| MembershipClass {
            buckets: (*name).to_owned(),
            rows: members.rows[at],
            originals: members.originals[at],
            fakes: members.fakes[at].into(),
        };
        Self {
            table: table.name.clone(),
            fake_full: members.fake_full.into(),
            fake_qi: members.fake_qi.into(),
            histogram: ["1..10", "11..20", "21.."].iter().enumerate().map(class).collect(),
        }
    }
}
