//! Whose persons a release is about: what was established, how, and by whose word.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::publication::{IdentityScope, PersonsKnown, PublishedPeople, StatementKind};

/// Whose persons a release is about. It has words and times, and no count of the data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestIdentity {
    /// The population; null of a dataset without one.
    pub population: Option<String>,
    /// By what the persons are known.
    pub persons: PersonsKnown,
    /// The key systems that identify them.
    pub key_systems: Vec<String>,
    /// Whether rows of persons were left out of whom something was published: `all` or `unpublished`.
    pub people: PublishedPeople,
    /// Among which releases persons were looked for.
    pub scope: IdentityScope,
    /// The statements that say that other releases are about other persons.
    pub statements: Vec<ManifestStatement>,
    /// Populations of which it is unknown whether they have persons of this release.
    pub unrelated: Vec<String>,
}

/// A statement that a release rests on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestStatement {
    /// Its id.
    pub id: Uuid,
    /// What it says.
    pub kind: StatementKind,
    /// Of which two populations or tables.
    pub of: Vec<String>,
    /// Why, in the words of its author.
    pub reason: String,
    /// When it was recorded, RFC 3339 UTC.
    pub recorded_at: String,
}

impl ManifestIdentity {
    /// What has to be true of persons, in sentences.
    #[must_use]
    pub fn premises(&self) -> Vec<String> {
        let keys = (!self.key_systems.is_empty())
            .then(|| format!("one person has one key of {} in all tables", self.key_systems.join(", ")));
        let declared = self.statements.iter().map(|statement| {
            let places = statement.of.join(" and ");
            let reason = &statement.reason;
            match statement.kind {
                StatementKind::Disjoint => format!("by declaration, {places} have no person in common: {reason}"),
                StatementKind::Others => {
                    format!("by declaration, {places} are about other persons though alike: {reason}")
                }
            }
        });
        keys.into_iter().chain(declared).collect()
    }

    /// What is not known of other populations, in a sentence.
    #[must_use]
    pub fn not_promised(&self) -> Option<String> {
        (!self.unrelated.is_empty()).then(|| unrelated_in_words(&self.unrelated))
    }
}

/// That it is unknown whether other populations have persons of a release.
#[must_use]
pub fn unrelated_in_words(populations: &[String]) -> String {
    format!(
        "it is unknown whether persons of {} are in this release, and nothing is promised against readers who join it with \
         releases of these",
        populations.join(", ")
    )
}
