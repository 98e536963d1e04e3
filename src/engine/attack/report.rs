use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::intersection::IntersectionReport;
use crate::engine::read_back::published_value::PublishedValue;
use crate::publication::AttackInput;
use crate::report::{ManifestRatio, ManifestTable};
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::MembershipReport;

/// The result of an attack.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttackReport {
    /// The attack.
    pub attack: Attack,
    /// The data that it reads.
    pub uses: AttackInput,
    /// Whether some posterior exceeds a rule.
    pub breach: bool,
    /// The largest posterior of a sensitive value; null when the attack infers none.
    pub worst: Option<ManifestRatio>,
    /// The inferences that exceed a rule.
    pub findings: AttackFindings,
    /// The results of `membership` for each table; absent for other attacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub membership: Option<Vec<MembershipSummary>>,
    /// The results of `join` for each requirement and join; absent for other attacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub joins: Option<Vec<JoinAttackResult>>,
    /// The results of `intersection`; absent for other attacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub intersection: Option<IntersectionReport>,
}

/// The inferences of an attack that exceed a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttackFindings {
    /// The number of findings.
    pub total: u64,
    /// At most ten, the most certain first.
    pub first: Vec<AttackFinding>,
}

/// One inference that exceeds a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttackFinding {
    /// The pointer of the rule.
    pub rule: Option<String>,
    /// The table that reveals it, where it is a single one.
    pub table: Option<String>,
    /// The published attribute that reveals it, for `proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attribute: Option<String>,
    /// The bucket, where it is a single one.
    #[schema(nullable = false, required)]
    pub bucket: Option<PublishedValue>,
    /// The values that the adversary knows of a person.
    pub known: BTreeMap<String, FindingValue>,
    /// The inferred values of the person.
    pub sensitive: BTreeMap<String, FindingValue>,
    /// The posterior; for `proxy` the mean, over its targets, of the probability of the true value.
    pub posterior: ManifestRatio,
}

/// What a finding says of an attribute of a person.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum FindingValue {
    /// Its value.
    Value(PublishedValue),
    /// The values that it may have.
    AnyOf(Vec<PublishedValue>),
    /// The values that it does not have.
    Excluded(RuledOutValues),
}

/// Values that are known not to be those of a person.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[schema(as = ExcludedValues)]
pub struct RuledOutValues {
    /// The values.
    pub not: Vec<PublishedValue>,
}

impl From<PublishedValue> for FindingValue {
    fn from(value: PublishedValue) -> Self {
        Self::Value(value)
    }
}

/// The most findings in a report.
pub(in crate::engine) const MAX_REPORTED_RESULTS: usize = 10;

/// The measure of a requirement on a join: one of its members.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct JoinAttackMeasure {
    /// The least number of values on y in a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub k: Option<u64>,
    /// The largest share of a value on y in a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub h: Option<ManifestRatio>,
}

/// The result of a requirement on a join.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct JoinAttackResult {
    /// The pointer of the requirement.
    pub requirement: String,
    /// The earlier release that promised it; null for a requirement of the release itself.
    pub promised_by: Option<String>,
    /// The joined releases.
    pub releases: Vec<String>,
    /// The measured value.
    pub achieved: JoinAttackMeasure,
    /// Whether it satisfies the requirement.
    pub holds: bool,
    /// The labels on x of a group with this value.
    pub group: BTreeMap<String, Option<String>>,
    /// The labels on y with the largest share; empty for `k`.
    #[serde(rename = "told")]
    pub values: BTreeMap<String, Option<String>>,
}

/// The membership disclosure of a bucketed table.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MembershipSummary {
    /// The table.
    pub table: String,
    /// Tuples of all attributes that some bucket matches in every part, but no row of the original has.
    pub fake_full: TupleCount,
    /// Such tuples of the attributes that are not protected.
    pub fake_qi: TupleCount,
    /// Rows and tuples by the number of buckets that match all attributes.
    pub histogram: Vec<MembershipClass>,
}

/// Tuples by their number of matching buckets.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MembershipClass {
    /// `1..10`, `11..20` or `21..`.
    pub buckets: String,
    /// Rows of the original.
    pub rows: u64,
    /// Distinct rows of the original.
    pub originals: u64,
    /// Tuples that no row of the original has.
    pub fakes: TupleCount,
}

/// A number of tuples, or an estimate of it.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct TupleCount {
    /// The number of tuples.
    pub value: f64,
    /// The standard error of an estimate; 0 for a count.
    pub standard_error: f64,
    /// Whether they were counted; large numbers are estimated from a sample.
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
