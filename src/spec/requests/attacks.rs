//! Attacks, and requests to simulate one on a release.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::problem::Fault;
use crate::publication::PersonLink;
use crate::spec::grammar::document::{
    DatasetColumns, Document, Int, Member, MemberContext, SchemaMap, choice, define_as, document, one_of, reference,
};

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
    /// What all nights of a republished population leave possible of each person.
    Intersection,
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
    /// How the adversary recognizes a person of one night on another.
    pub persons: PersonLink,
}

impl Default for AttackOptions {
    fn default() -> Self {
        Self { lambda: 2, excluded: 1, corrupted: 1, persons: PersonLink::Keys }
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
            Self::Intersection => "intersection",
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
    /// Options of the attack: of `chain`, `exclusion`, `corruption` and `intersection`; others have none.
    AttackOptionsMembers as "AttackOptions" {
        /// A value counts as inferred when fewer values than this are possible. 2 when not given.
        optional lambda: Int<1, 1_000>,
        /// Of `exclusion`: the number of primary values that can be excluded. 1 when not given.
        optional excluded: Int<1, 10>,
        /// Of `corruption`: the number of known rows of a bucket. 1 when not given.
        optional corrupted: Int<1, 1_000_000>,
        /// Of `intersection`: how the adversary recognizes a person of one night on another. `keys` when not given.
        optional persons: PersonLink = PersonLink::Keys,
    }
}

choice! {
    /// By the keys in the tables of the nights, which need the scope `releases:internal` (`keys`), or by equal cells of the parts, which
    /// may be those of two persons (`cells`).
    existing PersonLink as "PersonLink" {
        Keys = "keys",
        Cells = "cells",
    }
}

/// An attack that a request names: one on tables of any publisher, or one on a release.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct NamedAttack<const ON_TABLES: bool>(pub(in crate::spec) Attack);

/// An attack on tables of any publisher.
pub(in crate::spec) type TableAttack = NamedAttack<true>;

/// An attack on a release.
type ReleaseAttack = NamedAttack<false>;

impl<const ON_TABLES: bool> NamedAttack<ON_TABLES> {
    /// The attacks that can be asked for.
    const KNOWN: &'static [Attack] = if ON_TABLES { &Attack::ALL } else { &RELEASE_ATTACKS };

    const NAME: &'static str = if ON_TABLES { "TableAttack" } else { "ReleaseAttack" };

    const ABOUT: &'static str = if ON_TABLES {
        "`exact_posteriors` needs the tables alone. It counts every world that they allow, one by one, for tables of at most 16 rows: \
         it learns more than a rule allows when the share of worlds in which a person has a sensitive value exceeds the bound. `proxy` \
         needs the original: how often the values of a published attribute go with the sensitive ones is counted in half of it, and \
         held, for people of the other half, against what the tables leave possible of both. It learns more than a rule allows when \
         the true value is given, on average, a higher probability than the bound, beyond what chance explains. `dependency` needs \
         the original and tables with buckets: of the sensitive values of a bucket it crosses out those that the original never has \
         together with the linked values of a row."
    } else {
        "An attack on a release. `exact_posteriors` as of any tables; `chain`, `exclusion`, `excludable` and `forced` on decomposed \
         ones; `corruption`, `negative_association` and `dependency` on bucketized ones; `join` on sequential ones; \
         `intersection` on nights of a population, with all nights before; `negative_association`, `dependency`, `proxy` and \
         `membership` need the original, and the scope `releases:internal`; so does \
         `join` against a table that was published elsewhere, for its rows, and `intersection` unless persons are linked by cells."
    };

    fn words() -> Vec<&'static str> {
        Self::KNOWN.iter().map(|attack| attack.as_str()).collect()
    }
}

impl<const ON_TABLES: bool> Member for NamedAttack<ON_TABLES> {
    fn allowed() -> String {
        one_of(&Self::words())
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        let attack = RELEASE_ATTACKS.into_iter().find(|attack| value == attack.as_str());
        match attack.filter(|attack| !Self::KNOWN.contains(attack)) {
            None => attack.map(Self).or_else(|| context.refuse()),
            Some(other) => {
                let detail = format!("{} is not played here; ask for {}", other.as_str(), Self::words().join(" or "));
                context.faults.unsupported(context.pointer.as_str(), detail);
                None
            }
        }
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.0.as_str().into()
    }

    fn schema() -> Value {
        reference(Self::NAME)
    }

    fn define(schemas: &mut SchemaMap) {
        let schema = json!({"type": "string", "enum": Self::words(), "description": Self::ABOUT});
        define_as(Self::NAME, schema, schemas);
    }
}

/// A request to simulate an attack on a release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttackRequest {
    /// The attack.
    pub attack: Attack,
    /// Its options.
    pub options: AttackOptions,
    /// The pointer of the rule; every rule when absent.
    pub rule: Option<String>,
}

/// Reads a request for an attack.
///
/// # Errors
/// Every fault.
pub fn read_attack_request(document: &Value) -> Result<AttackRequest, Vec<Fault>> {
    AttackRequestMembers::read_document(document, &DatasetColumns::default(), |request, _| {
        let (attack, options) = (request.attack.value?.0, request.options.into());
        Some(AttackRequest { attack, options, rule: request.rule.value })
    })
}

impl From<AttackOptionsMembers> for AttackOptions {
    /// Options of other attacks than the requested one have no effect.
    fn from(members: AttackOptionsMembers) -> Self {
        let default = Self::default();
        Self {
            lambda: members.lambda.value.map_or(default.lambda, Int::to_usize),
            excluded: members.excluded.value.map_or(default.excluded, Int::to_usize),
            corrupted: members.corrupted.value.map_or(default.corrupted, Int::to_usize),
            persons: members.persons,
        }
    }
}

/// The attacks on releases.
const RELEASE_ATTACKS: [Attack; 12] = [
    Attack::ExactPosteriors,
    Attack::Chain,
    Attack::Exclusion,
    Attack::Excludable,
    Attack::Forced,
    Attack::Corruption,
    Attack::NegativeAssociation,
    Attack::Dependency,
    Attack::Join,
    Attack::Intersection,
    Attack::Proxy,
    Attack::Membership,
];
