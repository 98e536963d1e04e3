//! A series for readers: its disclosures, its active rules, and the pairs of attributes that it refuses.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::dependencies::DependencyForm;
use super::manifest::ManifestGuard;
use crate::publication::{DisclosureStatus, Guarantee, ProtectionKind};

/// The datasets about one set of data subjects, and everything published of them.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// The time of its first dataset or disclosure.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Its datasets with the purged ones, oldest first. What follows is of these, apart from external tables: of equal
    /// datasets, with the first one.
    pub datasets: Vec<Uuid>,
    /// All disclosed attributes.
    pub attributes: Vec<SeriesAttribute>,
    /// The published tables, oldest first. Only a rejected release that was never read leaves the list.
    pub disclosures: Vec<SeriesDisclosure>,
    /// The active rules: every later release of the same content must satisfy them.
    pub active_rules: Vec<SeriesRule>,
    /// The dependencies of which releases knew: their links count for all releases of the same content.
    pub dependencies: Vec<DependencyForm>,
    /// Active rules that no longer hold: a dependency became known after the tables that it breaks them through. Nothing repairs them.
    /// No release of the same content may share an attribute with those tables, or with the link.
    pub weakened: Vec<WeakenedRule>,
    /// Disclosures of the same content that share attributes.
    pub graph: Vec<SharedAttributes>,
    /// Pairs of disclosed attributes whose exact values cannot be published in one table; of the first 64 attributes of a content,
    /// by name. Only a plan considers dependencies in the data.
    #[schema(value_type = Vec<Vec<String>>)]
    pub refused_pairs: Vec<[String; 2]>,
}

/// A page of a series.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SeriesPage {
    /// The datasets of the page, and what was published of them.
    #[serde(flatten)]
    pub series: Series,
    /// The `cursor` of the next page; null on the last page.
    pub next: Option<String>,
}

/// An attribute with one meaning in all datasets of a series.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SeriesAttribute {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// The attributes that determine it.
    pub function_of: Option<Vec<String>>,
}

/// A published table, as the ledger records it.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SeriesDisclosure {
    /// The identifier of the disclosure.
    pub id: Uuid,
    /// The release; null for an external table.
    pub release: Option<Uuid>,
    /// The name of the table in the release.
    pub table: String,
    /// The attributes, by their names in the dataset.
    pub attributes: Vec<String>,
    /// The protection of the table.
    pub protection: ProtectionKind,
    /// The guarantees that every bucket or class keeps by itself.
    pub guards: Vec<ManifestGuard>,
    /// The published cut of each generalized attribute.
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
    /// The state of the disclosure; it counts in every state.
    pub status: DisclosureStatus,
    /// The time of its record.
    #[schema(format = DateTime)]
    pub recorded_at: String,
    /// The reason for publishing it without proof.
    pub unproven: Option<Unproven>,
}

/// The declaration of a caller who publishes without proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Unproven {
    /// The reason that the caller gives.
    pub reason: String,
}

/// A rule that a release promised.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SeriesRule {
    /// The release.
    pub release: Uuid,
    /// Its pointer in the specification; null for a rule that follows from a dependency.
    pub pointer: Option<String>,
    /// The attributes that the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes; of several, the joint value.
    pub sensitive: Vec<String>,
    /// The bound on the inference.
    pub guarantee: Guarantee,
}

/// An active rule that no longer holds now that more is known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct WeakenedRule {
    /// The rule.
    pub rule: WeakenedRuleReference,
    /// The dependency that broke it; of several the last to become known.
    pub dependency: DependencyForm,
    /// The attributes that tables and links connect with the protected one: no release may publish one of them again.
    pub attributes: Vec<String>,
}

/// The rule of a release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct WeakenedRuleReference {
    /// The release.
    pub release: Uuid,
    /// The pointer into its specification.
    pub pointer: Option<String>,
}

/// Two disclosures that can be joined.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ToSchema)]
pub struct SharedAttributes {
    /// The earlier one.
    pub a: Uuid,
    /// The later one.
    pub b: Uuid,
    /// The shared attributes.
    pub shared: Vec<String>,
}
