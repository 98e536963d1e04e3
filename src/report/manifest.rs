//! The manifest of a release: its tables, the reason each rule holds, and figures that follow from the parts.
//!
//! The parts determine every figure of the original in a manifest. Attributes have their published names.

use std::collections::BTreeMap;

use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::dependencies::{DependencyForm, ManifestDependencies, RuleDerivationForm};
use super::exposures::ManifestExposures;
use super::identity::ManifestIdentity;
use super::manifest_part::{ManifestPart, WritingEngine, WrittenPart};
use super::method_details::MethodDetailsForm;
use super::ratio::ManifestRatio;
use super::results::{Utility, VerificationSummary};
use crate::microdata::{AttrSet, AttributeType, CellShape, Taxonomy};
use crate::publication::{
    AdversaryModel, Algorithm, AssumedAssociations, CompositionMode, DeclaredInputs, DeclaredTaxonomy,
    DeclaredThresholds, DigestedThresholds, EnforcedBy, EnforcedRule, ExcludedValues, Guarantee, MethodDetails,
    MethodKind, NoticeKind, Part, Protected, ProtectionKind, Publication, PublishedTable, ReleaseStatus,
    RuleDerivation, RuleOrigin, TableGuard, TableKind, Thresholds, Unit, UnitGuarantees,
};

/// The manifest of a release.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Manifest {
    /// The release; null when it was made without a server.
    pub id: Option<Uuid>,
    /// The series of datasets about the same people; null when it was made without a server.
    pub series: Option<String>,
    /// When it was made, RFC 3339 UTC.
    pub created_at: String,
    /// The software and its version.
    pub software: String,
    /// The engine that wrote the parts, where it is not this software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub made_by: Option<WritingEngine>,
    /// The version of the contract.
    pub contract: u32,
    /// The unit of protection.
    pub unit: Unit,
    /// The method that made the tables.
    pub method: MethodName,
    /// The earlier releases it was checked against.
    pub composition: CompositionMode,
    /// Whose persons it is about; absent without a server, and in older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub identity: Option<ManifestIdentity>,
    /// The state of the release.
    pub status: ReleaseStatus,
    /// Whether the caller chose the key of the release, and so holds its secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reproducible: bool,
    /// Every rule, and the reason it holds.
    pub rules: Vec<ManifestRule>,
    /// The published tables.
    pub tables: Vec<ManifestTable>,
    /// The results of the verifier on the written parts.
    pub verification: VerificationSummary,
    /// Details of the method; null for methods without details.
    #[serde(serialize_with = "with_sorted_members")]
    pub method_details: Option<MethodDetailsForm>,
    /// Utility figures that follow from the parts.
    pub utility: Utility,
    /// What no rule prevents; absent in older releases, and where another engine wrote many rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub exposures: Option<ManifestExposures>,
    /// Dependencies that the adversary is assumed to know.
    pub dependencies: ManifestDependencies,
    /// Values of each attribute that an insider can exclude; the rules hold against insiders too. Null is the missing value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excludable: BTreeMap<String, Vec<Option<String>>>,
    /// The taxonomies of attributes, as trees over their values. Distances use them; a cell with a node stands for its leaves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Taxonomy>)]
    pub taxonomies: BTreeMap<String, Value>,
    /// The thresholds that guarantees of rules name, by attribute.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thresholds: BTreeMap<String, Vec<Thresholds>>,
    /// Notices on the choices of the specification.
    pub warnings: Vec<SpecificationNotice>,
}

impl ManifestRule {
    /// The guarantee of rows, also where the unit of protection has several.
    #[must_use]
    pub fn of_rows(&self) -> Guarantee {
        self.enforced.unwrap_or(self.guarantee)
    }
}

impl Manifest {
    /// The published attributes and their types, in the order in which the tables list them first.
    #[must_use]
    pub fn attributes(&self) -> Vec<(String, AttributeType)> {
        let mut attributes: Vec<(String, AttributeType)> = Vec::new();
        for name in self.tables.iter().flat_map(|table| &table.attributes) {
            if attributes.iter().all(|(known, _)| known != name) {
                let mut parts = self.tables.iter().flat_map(|table| &table.parts);
                let kind = parts.find_map(|part| part.types.get(name).copied());
                attributes.push((name.clone(), kind.unwrap_or(AttributeType::Text)));
            }
        }
        attributes
    }
}

/// The method of a release and its limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MethodName {
    /// The method.
    pub r#type: MethodKind,
    /// Its algorithm, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub algorithm: Option<Algorithm>,
    /// The limit on the adversary, where the data had a part in the choice of the tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub adversary: Option<AdversaryModel>,
}

/// A rule, and the reason it holds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestRule {
    /// Its pointer in the specification.
    pub pointer: Option<String>,
    /// Why it is listed.
    pub origin: RuleOrigin,
    /// The attributes that the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// The attributes that the known ones determine, by the dependencies that the adversary is assumed to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub determined: Vec<String>,
    /// The attributes in which the buckets that enforce the rule are constant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strata: Vec<String>,
    /// The associations that the adversary may know; of others the rule promises nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub knowledge: Option<AssumedAssociations>,
    /// Whether only the joint value of `sensitive` is protected.
    pub combination: bool,
    /// The declared guarantee, for each unit of protection.
    pub guarantee: Guarantee,
    /// The stricter guarantee of rows, where a unit may have several rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub enforced: Option<Guarantee>,
    /// Whether the guarantee holds for all rows. False where `closed` has some without a bound. In a decomposition: whether the
    /// posterior of each value is at most 1/l; if false, each bucket only lists at least l values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bounded: Option<bool>,
    /// The buckets that break the guarantee, as their strata do: the release adds nothing to what an adversary knows of their rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub closed: Option<ManifestClosed>,
    /// The rule that implies it, or the dependency that adds it.
    pub because: Option<RuleDerivationForm>,
    /// Why it holds.
    pub enforced_by: ManifestEnforcedBy,
    /// The figures of the table that enforces it, from the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub achieved: Option<ManifestAchieved>,
}

/// Why a rule holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ManifestEnforcedBy {
    /// No path of tables leads from known attributes to the sensitive ones.
    Unreachable {
        /// True in every document.
        unreachable: bool,
    },
    /// Every path passes a guarding table.
    Guardian {
        /// The table.
        guardian: String,
        /// Its attributes that the adversary may know or reach.
        known: Vec<String>,
    },
    /// The only table of the method enforces it.
    Table {
        /// The table.
        table: String,
    },
}

/// Figures of the buckets that enforce a rule.
///
/// The posterior of a bucket is the share of its most frequent sensitive value. Where values are `excludable`, it is the larger
/// of two shares: of another value among the rows without them, and of such a value among all rows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ManifestAchieved {
    /// The posterior if all rows of the table were one bucket: what is known before. Absent where a part lists distinct values or
    /// counterfeits, and in older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prior: Option<ManifestRatio>,
    /// The largest posterior of any bucket; absent where no attribute is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub worst_posterior: Option<ManifestRatio>,
    /// The median over buckets; of an even number, the larger of the two in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub median_posterior: Option<ManifestRatio>,
    /// The size of the smallest bucket or class.
    pub smallest_bucket: u64,
    /// The rows of the smallest class; for k-anonymity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub k: Option<u64>,
    /// The fewest values of a bucket; for distinct l-diversity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub distinct_values: Option<u64>,
    /// The least number of equally frequent values that have a bucket's entropy; for entropy l-diversity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub entropy_l: Option<f64>,
    /// The largest quotient of a bucket's most frequent value and all from the l-th on; for recursive l-diversity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub recursive_c: Option<f64>,
    /// The largest distance of a bucket from the whole table; for t-closeness and delta.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub distance: Option<f64>,
    /// How many times likelier a value is in a bucket than in the whole table, at most; for rho.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub gain: Option<f64>,
}

/// Buckets without a bound: each is a whole stratum that breaks the guarantee by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestClosed {
    /// The number of such buckets.
    pub buckets: u64,
    /// The rows of these buckets.
    pub rows: u64,
    /// The rows of the table.
    pub of: u64,
    /// The largest posterior in these buckets; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub worst_posterior: Option<ManifestRatio>,
}

/// A published table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestTable {
    /// `t1`, `t2`, ...
    pub name: String,
    /// What kind of table it is.
    pub kind: TableKind,
    /// The attributes of all parts, in the dataset's column order.
    pub attributes: Vec<String>,
    /// Its protection beside other tables.
    pub protection: ProtectionKind,
    /// The guarantees that the table keeps by itself.
    pub guards: Vec<ManifestGuard>,
    /// Its parts; only `bucket` links several parts.
    pub parts: Vec<ManifestPart>,
}

/// A guarantee that a guarding table keeps by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestGuard {
    /// The attributes that the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// The protected attributes.
    pub sensitive: Vec<String>,
    /// Whether only the joint value is protected.
    pub joint: bool,
    /// The guarantees of every bucket.
    pub guarantees: Vec<Guarantee>,
    /// The attributes in which every bucket is constant; associations with them reveal nothing more. Of a sliced table they may stand
    /// in the column of the sensitive attribute: then the rows of a bucket with equal values there keep the guarantee. Absent where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<String>,
    /// Whether buckets may break a guarantee that are all rows with their values of `constant`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

/// A notice on a choice of the specification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SpecificationNotice {
    /// Its subject.
    pub r#type: NoticeKind,
    /// The pointer of the choice in the specification.
    pub pointer: Option<String>,
    /// The notice in a sentence.
    pub detail: String,
}

/// The identity and time of a release.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The release.
    pub id: Option<Uuid>,
    /// Its series.
    pub series: Option<String>,
    /// RFC 3339 UTC.
    pub created_at: String,
    /// The earlier releases it was checked against.
    pub composition: CompositionMode,
    /// Whose persons it is about.
    pub identity: Option<ManifestIdentity>,
    /// Whether the caller chose the key.
    pub reproducible: bool,
}

/// Everything that a manifest is built from.
pub struct ManifestInput<'a> {
    /// Name and time of the release.
    pub provenance: &'a Provenance,
    /// The method.
    pub method: MethodName,
    /// The published tables and rules.
    pub publication: &'a Publication,
    /// The published names of the attributes.
    pub names: &'a [String],
    /// The written parts, in the order of the tables and parts of the publication.
    pub written: &'a [Vec<WrittenPart>],
    /// The result of the verifier.
    pub verification: VerificationSummary,
    /// The sizes of buckets, and what the cells of generalized and sliced tables say.
    pub utility: Utility,
    /// What the buckets that enforce a rule achieve, in the order of the rules.
    pub achieved: Vec<Option<ManifestAchieved>>,
    /// The buckets without a bound behind each rule that strata were closed for, in the order of the rules.
    pub closed: Vec<Option<ManifestClosed>>,
    /// What no rule prevents; `None` where the parts were not read.
    pub exposures: Option<ManifestExposures>,
    /// The engine that wrote the parts, where it is not this software.
    pub made_by: Option<WritingEngine>,
    /// The dependencies that the adversary is assumed to know.
    pub dependencies: ManifestDependencies,
    /// What the known attributes of each rule determine, in the order of the rules.
    pub determined: Vec<AttrSet>,
    /// What the caller declares of values and units.
    pub declared: DeclaredInputs<'a>,
    /// Notices for readers of the release.
    pub warnings: Vec<SpecificationNotice>,
}

/// Builds the manifest of a release.
#[must_use]
pub fn manifest(input: ManifestInput<'_>) -> Manifest {
    let ManifestInput { provenance, publication, names, declared, .. } = input;
    let ManifestInput { achieved, closed, determined, .. } = input;
    let writer = ManifestWriter { achieved, closed, determined, ..ManifestWriter::new(publication, names, declared) };
    let tables = publication.tables.iter().zip(input.written);
    Manifest {
        id: provenance.id,
        series: provenance.series.clone(),
        created_at: provenance.created_at.clone(),
        software: concat!("guardian ", env!("CARGO_PKG_VERSION")).to_owned(),
        made_by: input.made_by,
        contract: 2,
        unit: declared.unit.clone(),
        method: input.method,
        composition: provenance.composition,
        identity: provenance.identity.clone(),
        status: ReleaseStatus::Published,
        reproducible: provenance.reproducible,
        rules: publication.rules.iter().enumerate().map(|(index, rule)| writer.rule(index, rule)).collect(),
        tables: tables.map(|(table, parts)| writer.table(table, parts)).collect(),
        verification: input.verification,
        method_details: MethodDetailsForm::from_details(&publication.method_details, names),
        utility: input.utility,
        exposures: input.exposures,
        dependencies: input.dependencies,
        excludable: excludable_of(declared.excluded, names),
        taxonomies: taxonomies_of(declared.taxonomies, publication, names),
        thresholds: thresholds_of(declared.thresholds, names),
        warnings: input.warnings,
    }
}

/// Excludable values, by the name of their attribute.
fn excludable_of(excluded: &[ExcludedValues], names: &[String]) -> BTreeMap<String, Vec<Option<String>>> {
    excluded.iter().map(|of| (names[of.attribute.index()].clone(), of.values.clone())).collect()
}

/// The taxonomies of published attributes, by the name of the attribute.
fn taxonomies_of(
    taxonomies: &[DeclaredTaxonomy],
    publication: &Publication,
    names: &[String],
) -> BTreeMap<String, Value> {
    let published = publication.tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes()));
    let written = taxonomies.iter().filter(|declared| published.contains(declared.attribute));
    written.map(|declared| (names[declared.attribute.index()].clone(), declared.tree.written())).collect()
}

/// Serializes a form with its members in alphabetical order at every level, as manifests have always been written.
fn with_sorted_members<T: Serialize, S: Serializer>(form: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::to_value(form).map_err(S::Error::custom)?.serialize(serializer)
}

/// Thresholds, by the name of the attribute whose values they bound.
#[must_use]
pub fn thresholds_of(declared: &[DeclaredThresholds], names: &[String]) -> BTreeMap<String, Vec<Thresholds>> {
    let mut of: BTreeMap<String, Vec<Thresholds>> = BTreeMap::new();
    for DeclaredThresholds { attribute, thresholds } in declared {
        of.entry(names[attribute.index()].clone()).or_default().push(thresholds.declared().clone());
    }
    of
}

struct ManifestWriter<'a> {
    unit: &'a Unit,
    /// The guarantees of units behind the thresholds that rules name.
    promised: UnitGuarantees,
    names: &'a [String],
    achieved: Vec<Option<ManifestAchieved>>,
    closed: Vec<Option<ManifestClosed>>,
    determined: Vec<AttrSet>,
    tables: &'a [PublishedTable],
    /// The attributes whose posteriors a decomposition bounds; `None` for other methods.
    bounded: Option<AttrSet>,
    /// Whether the release is sequential: its table is exclusive, and of exact tuples where these satisfy every requirement.
    sequential: bool,
}

impl<'a> ManifestWriter<'a> {
    fn new(publication: &'a Publication, names: &'a [String], declared: DeclaredInputs<'a>) -> Self {
        let (mut bounded, mut of_method, mut sequential) = (None, None, false);
        match &publication.method_details {
            MethodDetails::Decompose(details) => bounded = Some(details.bounded),
            MethodDetails::Bucketize { thresholds, .. } => {
                of_method = Some(DigestedThresholds::from(thresholds.clone()))
            }
            MethodDetails::Sequential(_) => sequential = true,
            MethodDetails::None | MethodDetails::Slicing { .. } | MethodDetails::Republish(_) => {}
        }
        let of_rules = declared.thresholds.iter().map(|declared| &declared.thresholds);
        let promised = declared.unit.promised(of_rules.chain(&of_method));
        Self {
            unit: declared.unit,
            promised,
            names,
            achieved: Vec::new(),
            closed: Vec::new(),
            determined: Vec::new(),
            tables: &publication.tables,
            bounded,
            sequential,
        }
    }

    fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.names[attr.index()].clone()).collect()
    }

    /// The attributes in which the buckets that enforce a rule are constant.
    fn strata(&self, rule: &EnforcedRule) -> AttrSet {
        let enforcing = match &rule.enforced_by {
            EnforcedBy::Unreachable => return AttrSet::EMPTY,
            EnforcedBy::Guardian { table, .. } | EnforcedBy::Table(table) => table,
        };
        let tables = self.tables.iter().filter(|table| table.name == *enforcing);
        let guards = tables.flat_map(|table| table.protection.guards());
        let protecting = guards.filter(|guard| guard.protects.attributes().meets(rule.protects.attributes()));
        protecting.fold(AttrSet::EMPTY, |all, guard| all.union(guard.constant))
    }

    fn rule(&self, index: usize, rule: &EnforcedRule) -> ManifestRule {
        let because = rule.because.as_ref().map(|because| match because {
            RuleDerivation::Rule(pointer) => RuleDerivationForm::Rule { rule: pointer.clone() },
            RuleDerivation::Dependency { determinant, dependent } => RuleDerivationForm::Dependency(DependencyForm {
                dependent: self.named(*dependent),
                determinant: self.named(*determinant),
            }),
        });
        let enforced_by = match &rule.enforced_by {
            EnforcedBy::Unreachable => ManifestEnforcedBy::Unreachable { unreachable: true },
            EnforcedBy::Guardian { table, known } => {
                ManifestEnforcedBy::Guardian { guardian: table.0.clone(), known: self.named(*known) }
            }
            EnforcedBy::Table(table) => ManifestEnforcedBy::Table { table: table.0.clone() },
        };
        ManifestRule {
            pointer: rule.pointer.clone(),
            origin: rule.origin,
            quasi_identifiers: self.named(rule.known),
            sensitive: self.named(rule.protects.attributes()),
            determined: self.determined.get(index).map(|&set| self.named(set)).unwrap_or_default(),
            strata: self.named(self.strata(rule)),
            knowledge: Some(AssumedAssociations::InLinks),
            combination: matches!(rule.protects, Protected::Joint(_)),
            guarantee: self.unit.unit_guarantee(rule.guarantee, &self.promised),
            enforced: (self.unit.rows() > 1).then_some(rule.guarantee),
            bounded: match self.closed.get(index).copied().flatten() {
                Some(closed) => Some(closed.buckets == 0),
                None => self.bounded.map(|bounded| rule.protects.attributes().is_subset(bounded)),
            },
            closed: self.closed.get(index).copied().flatten(),
            because,
            enforced_by,
            achieved: self.achieved.get(index).copied().flatten(),
        }
    }

    fn table(&self, table: &PublishedTable, written: &[WrittenPart]) -> ManifestTable {
        let guard = |guard: &TableGuard| ManifestGuard {
            quasi_identifiers: self.named(guard.known),
            sensitive: self.named(guard.protects.attributes()),
            joint: matches!(guard.protects, Protected::Joint(_)),
            guarantees: guard.guarantees.clone(),
            constant: self.named(guard.constant),
            closed: guard.closes,
        };
        ManifestTable {
            name: table.name.0.clone(),
            kind: if self.sequential && !table.is_generalized() { TableKind::Marginal } else { table.kind() },
            attributes: self.named(table.attributes()),
            protection: table.protection.kind(),
            guards: table.protection.guards().iter().map(guard).collect(),
            parts: table.parts.iter().zip(written).map(|(part, written)| self.part(table, part, written)).collect(),
        }
    }

    fn part(&self, table: &PublishedTable, part: &Part, written: &WrittenPart) -> ManifestPart {
        let cells = part.columns.iter().filter_map(|column| {
            let shape = column.cells.shape();
            (shape != CellShape::Exact).then(|| (column.name.clone(), shape))
        });
        ManifestPart {
            name: part.name.clone(),
            attributes: part.columns.iter().map(|column| column.name.clone()).collect(),
            types: part.columns.iter().zip(&written.types).map(|(column, &kind)| (column.name.clone(), kind)).collect(),
            bucketed: part.bucketed,
            row_meaning: part.rows.kind(),
            counterfeits_per_bucket: part.rows.counterfeits_per_bucket(),
            cells: cells.collect(),
            rows: part.len,
            file: written.sha256.as_ref().map(|_| part.file(&table.name)),
            sha256: written.sha256.clone(),
            files: written.files.clone(),
            null: part.null.clone(),
        }
    }
}
