//! A series as people read it: what was disclosed, what was promised, and what that leaves no room for.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::manifest::ManifestGuard;
use crate::publication::{DisclosureStatus, Guarantee, ProtectionKind};

/// All that speaks of the same people, and what was published of it.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// When its first dataset was uploaded, or its first disclosure entered.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Its datasets, oldest first; also purged ones.
    pub datasets: Vec<Uuid>,
    /// All attributes that were disclosed.
    pub attributes: Vec<SeriesAttribute>,
    /// The published tables, oldest first. Entries are never removed, but for those of a rejected release that nobody read.
    pub disclosures: Vec<SeriesDisclosure>,
    /// The rules that every further release of the same content is held to.
    pub active_rules: Vec<SeriesRule>,
    /// Which disclosures of the same content share attributes.
    pub graph: Vec<SharedAttributes>,
    /// Pairs of disclosed attributes whose exact values cannot be published side by side any more; of the first 64 attributes of a
    /// content, by name. What follows from dependencies in the data is not looked at: a plan does that.
    #[schema(value_type = Vec<Vec<String>>)]
    pub refused_pairs: Vec<[String; 2]>,
}

/// An attribute that stays the same through the datasets of a series.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SeriesAttribute {
    /// Its name.
    pub name: String,
    /// Other names that it has.
    pub aliases: Vec<String>,
    /// The attributes that it is computed from.
    pub function_of: Option<Vec<String>>,
}

/// A published table, for ever.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SeriesDisclosure {
    /// Its own.
    pub id: Uuid,
    /// The release; null for what was published elsewhere.
    pub release: Option<Uuid>,
    /// The name of the table in the release.
    pub table: String,
    /// By the names of the dataset.
    pub attributes: Vec<String>,
    /// `plain`: exact tuples; `guarding`: it keeps its guards whatever else is published; `exclusive`: neither.
    pub protection: ProtectionKind,
    /// What every bucket or class holds alone.
    pub guards: Vec<ManifestGuard>,
    /// The published cut of each generalized attribute.
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
    /// `reserved` while the release is held, `published`, or `withdrawn`: it counts all the same.
    pub status: DisclosureStatus,
    /// When it was entered.
    #[schema(format = DateTime)]
    pub recorded_at: String,
    /// Why it was published without proof.
    pub unproven: Option<Unproven>,
}

/// A statement of who publishes without proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct Unproven {
    /// The statement.
    pub reason: String,
}

/// A rule that a release promised.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct SeriesRule {
    /// The release.
    pub release: Uuid,
    /// Where the specification stated it; null for one that follows from a dependency.
    pub pointer: Option<String>,
    /// What may be known.
    pub quasi_identifiers: Vec<String>,
    /// What stays protected; of several attributes, the joint value.
    pub sensitive: Vec<String>,
    /// The bound.
    pub guarantee: Guarantee,
}

/// Two disclosures that can be joined.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ToSchema)]
pub struct SharedAttributes {
    /// The earlier one.
    pub a: Uuid,
    /// The later one.
    pub b: Uuid,
    /// Through these attributes.
    pub shared: Vec<String>,
}
