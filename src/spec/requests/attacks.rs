//! Attacks, and requests to simulate one on a release.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Fault;
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
    pub const ALL: [Self; 2] = [Self::ExactPosteriors, Self::Proxy];

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
        matches!(self, Self::Proxy | Self::Membership | Self::NegativeAssociation)
    }
}

/// Reads a request for an attack: the attack, its options and the pointer of a rule.
///
/// # Errors
/// Every fault.
pub fn read_audit(document: &Value) -> Result<(Attack, AttackOptions, Option<String>), Vec<Fault>> {
    let mut faults = FaultList::new();
    let read = ObjectReader::open(document, "", &mut faults).and_then(|mut members| {
        let attack = match members.take("attack") {
            Some(value) => attack(value, &members.at("attack"), &RELEASE_ATTACKS, &mut faults),
            None => {
                faults.range(members.at("attack"), &one_of(&RELEASE_ATTACKS.map(Attack::as_str)));
                None
            }
        };
        let rule = members.text("rule", "the pointer of a rule, or null for all of them", &mut faults, |_| true);
        let mut asked = AttackOptions::default();
        if let Some(mut options) = members.object("options", &mut faults) {
            let mut whole = |name: &'static str, most: i128, allowed: &str| {
                let read = options.integer(name, 1..=most, allowed, &mut faults);
                read.and_then(|number| usize::try_from(number).ok())
            };
            // those of another attack than this one say nothing, and must be right all the same
            asked.lambda = whole("lambda", 1000, "an integer from 1 to 1000").unwrap_or(asked.lambda);
            asked.excluded = whole("excluded", 10, "an integer from 1 to 10").unwrap_or(asked.excluded);
            asked.corrupted = whole("corrupted", 1_000_000, "an integer from 1 to 1000000").unwrap_or(asked.corrupted);
            options.finish(&mut faults);
        }
        members.finish(&mut faults);
        Some((attack?, asked, rule.map(str::to_owned)))
    });
    read.filter(|_| faults.is_empty()).ok_or_else(|| faults.into_sorted())
}

/// The attacks on releases.
const RELEASE_ATTACKS: [Attack; 10] = [
    Attack::ExactPosteriors,
    Attack::Chain,
    Attack::Exclusion,
    Attack::Excludable,
    Attack::Forced,
    Attack::Corruption,
    Attack::NegativeAssociation,
    Attack::Join,
    Attack::Proxy,
    Attack::Membership,
];

pub(in crate::spec) const TABLE_ATTACKS: [Attack; 2] = [Attack::ExactPosteriors, Attack::Proxy];

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
