//! Attacks, and requests to simulate one on a release.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Fault;
use crate::spec::grammar::attributes::DatasetColumns;
use crate::spec::grammar::document::{Document, Int, Member, MemberContext, document, reference};
use crate::spec::grammar::reader::{FaultList, ObjectReader, one_of};

/// An attack that can be simulated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attack {
    /// Every possible world of the tables, one by one.
    ExactPosteriors,
    /// Frequencies of sensitive values given other attributes, learned from half of the original and tested on the other half.
    Proxy,
    /// The tuples that a release may contain in addition to those of the original.
    Membership,
    /// Sensitive values that follow from a primary one, in a decomposition.
    Chain,
    /// Sensitive values that follow when primary values are excluded.
    Exclusion,
    /// Listed values of a bucket that can be ruled out.
    Excludable,
    /// Values that certainly belong to more rows of a bucket than they may.
    Forced,
    /// Inferences about rows of a bucket from the known values of other rows.
    Corruption,
    /// Sensitive values of a bucket that hardly ever occur with the known attributes of a row.
    NegativeAssociation,
    /// Sensitive values of a bucket that do not occur with the linked attributes of a row, by known dependencies.
    Dependency,
    /// The join of a release with the earlier ones that it was made against.
    Join,
}

/// Options of the simulated adversary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttackOptions {
    /// A value counts as inferred when fewer values than this are possible.
    pub lambda: usize,
    /// The number of primary values that the adversary can exclude.
    pub excluded: usize,
    /// The number of rows of a bucket that the adversary knows.
    pub corrupted: usize,
}

impl Default for AttackOptions {
    fn default() -> Self {
        Self { lambda: 2, excluded: 1, corrupted: 1 }
    }
}

impl Attack {
    /// The attacks on tables of any publisher.
    pub const ALL: [Self; 3] = [Self::ExactPosteriors, Self::Proxy, Self::Dependency];

    /// The name used in the contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExactPosteriors => "exact_posteriors",
            Self::Proxy => "proxy",
            Self::Membership => "membership",
            Self::Chain => "chain",
            Self::Exclusion => "exclusion",
            Self::Excludable => "excludable",
            Self::Forced => "forced",
            Self::Corruption => "corruption",
            Self::NegativeAssociation => "negative_association",
            Self::Dependency => "dependency",
            Self::Join => "join",
        }
    }

    /// Whether it is simulated on decompositions.
    #[must_use]
    pub const fn of_decompositions(self) -> bool {
        matches!(self, Self::Chain | Self::Exclusion | Self::Excludable | Self::Forced)
    }

    /// Whether it needs the original.
    #[must_use]
    pub const fn uses_original(self) -> bool {
        matches!(self, Self::Proxy | Self::Membership | Self::NegativeAssociation | Self::Dependency)
    }
}

document! {
    /// Which attack is simulated, against which rule.
    AttackRequestMembers as "AttackRequest" {
        required attack: ReleaseAttack,
        /// The rule, by its pointer in the manifest; every rule when null.
        optional rule: String => "the pointer of a rule, or null for all of them",
        optional options: AttackOptionsMembers = AttackOptionsMembers::absent("/options"),
    }
}

document! {
    /// Options of the attack: of `chain`, `exclusion` and `corruption`; others have none.
    AttackOptionsMembers as "AttackOptions" {
        /// A value counts as inferred when fewer values than this are possible. 2 when not given.
        optional lambda: Int<1, 1_000>,
        /// Of `exclusion`: the number of primary values that can be excluded. 1 when not given.
        optional excluded: Int<1, 10>,
        /// Of `corruption`: the number of known rows of a bucket. 1 when not given.
        optional corrupted: Int<1, 1_000_000>,
    }
}

/// The member `attack` of a request for a release.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct ReleaseAttack(Attack);

impl Member for ReleaseAttack {
    fn allowed() -> String {
        one_of(&RELEASE_ATTACKS.map(Attack::as_str))
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        attack(value, &context.pointer, &RELEASE_ATTACKS, context.faults).map(Self)
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.as_str().into()
    }

    fn schema() -> Value {
        reference("ReleaseAttack")
    }
}

/// Reads a request for an attack: the attack, its options and the pointer of a rule.
///
/// # Errors
/// Every fault.
pub fn read_audit(document: &Value) -> Result<(Attack, AttackOptions, Option<String>), Vec<Fault>> {
    let mut faults = FaultList::new();
    let read = ObjectReader::open(document, "", &mut faults).and_then(|members| {
        let request = AttackRequestMembers::read_members(members, &DatasetColumns::default(), &mut faults);
        Some((request.attack.value?.0, request.options.into(), request.rule.value))
    });
    read.filter(|_| faults.is_empty()).ok_or_else(|| faults.into_sorted())
}

impl From<AttackOptionsMembers> for AttackOptions {
    /// Options of other attacks than the requested one have no effect.
    fn from(members: AttackOptionsMembers) -> Self {
        let default = Self::default();
        Self {
            lambda: members.lambda.value.map_or(default.lambda, Int::to_usize),
            excluded: members.excluded.value.map_or(default.excluded, Int::to_usize),
            corrupted: members.corrupted.value.map_or(default.corrupted, Int::to_usize),
        }
    }
}

/// The attacks on releases.
const RELEASE_ATTACKS: [Attack; 11] = [
    Attack::ExactPosteriors,
    Attack::Chain,
    Attack::Exclusion,
    Attack::Excludable,
    Attack::Forced,
    Attack::Corruption,
    Attack::NegativeAssociation,
    Attack::Dependency,
    Attack::Join,
    Attack::Proxy,
    Attack::Membership,
];

pub(in crate::spec) const TABLE_ATTACKS: [Attack; 3] = Attack::ALL;

/// Reads the name of an attack that is one of `known`.
pub(in crate::spec) fn attack(
    value: &Value,
    pointer: &str,
    known: &[Attack],
    faults: &mut FaultList,
) -> Option<Attack> {
    let words: Vec<&str> = known.iter().map(|attack| attack.as_str()).collect();
    let found = |attack: &&Attack| value == attack.as_str();
    match (known.iter().find(found), value.as_str()) {
        (Some(attack), _) => return Some(*attack),
        (None, Some(name)) if RELEASE_ATTACKS.iter().any(|attack| attack.as_str() == name) => {
            faults.unsupported(pointer, format!("{name} is not played here; ask for {}", words.join(" or ")));
        }
        (None, _) => faults.range(pointer, &one_of(&words)),
    }
    None
}
