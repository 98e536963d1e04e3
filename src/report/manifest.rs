//! The manifest: what a release is, why its rules hold, and figures that anyone can recompute from the parts.
//!
//! Nothing here depends on the original beyond what the parts show. Attributes appear under their published names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::ratio::ManifestRatio;
use crate::microdata::{AttrSet, AttributeType, CellShape};
use crate::publication::{
    CellContent, DeclaredTaxonomy, DeclaredThresholds, DigestedThresholds, EnforcedBy, EnforcedRule, ExcludedValues,
    Guarantee, MethodDetails, Part, Protected, Publication, PublishedTable, RowMeaning, RuleDerivation, RuleOrigin,
    TableGuard, TableKind, TableProtection, Thresholds, Unit, UnitGuarantees,
};

/// The manifest of a release.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Manifest {
    /// The release; null when it was made without a server.
    pub id: Option<Uuid>,
    /// All that speaks of the same people; null when it was made without a server.
    pub series: Option<String>,
    /// When it was made, RFC 3339 UTC.
    pub created_at: String,
    /// What made it.
    pub software: String,
    /// The version of the contract.
    pub contract: u32,
    /// What one unit of protection is.
    pub unit: Unit,
    /// How it was made.
    pub method: MethodName,
    /// What it was judged against: `enforced` (all that was published of the same people), `unproven` (nothing had to hold beside it), or
    /// `none` without a server; `same_dataset_only` in releases from before people were remembered.
    pub composition: String,
    /// `published`.
    pub status: String,
    /// True when the caller chose the key of the release: its secrets are then the caller's to keep.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reproducible: bool,
    /// Every submitted rule and how it stands.
    pub rules: Vec<ManifestRule>,
    /// The published tables.
    pub tables: Vec<ManifestTable>,
    /// What the verifier of the written parts found.
    pub verification: VerificationSummary,
    /// What only some methods have to say.
    #[schema(value_type = Option<Object>)]
    pub method_details: Option<Value>,
    /// Public utility.
    pub utility: Utility,
    /// Dependencies that the adversary is taken to know.
    pub dependencies: ManifestDependencies,
    /// Values that an insider can rule out, per attribute: what is protected is protected from whoever does so, too. Null is the missing
    /// value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub excludable: BTreeMap<String, Vec<Option<String>>>,
    /// The taxonomies of attributes, as trees over their values: distances go by them, and cells that are nodes stand for the
    /// leaves below them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Object>)]
    pub taxonomies: BTreeMap<String, Value>,
    /// The thresholds that guarantees of rules name, per attribute on whose values they are put.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub thresholds: BTreeMap<String, Vec<Thresholds>>,
    /// What a reader should know about the choices of the specification.
    pub warnings: Vec<SpecificationNotice>,
}

impl ManifestRule {
    /// What rows keep.
    #[must_use]
    pub fn of_rows(&self) -> Guarantee {
        self.enforced.unwrap_or(self.guarantee)
    }
}

impl ManifestPart {
    /// What the cells of a column hold, as they are written.
    #[must_use]
    pub fn shape(&self, column: &str) -> CellShape {
        match self.cells.get(column).map(String::as_str) {
            Some("interval") => CellShape::Interval,
            Some("set") => CellShape::Set,
            Some("node") => CellShape::Node,
            Some("suppressed") => CellShape::Suppressed,
            _ => CellShape::Exact,
        }
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

/// How a release was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MethodName {
    /// The method.
    pub r#type: String,
    /// Its algorithm, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// `without minimality` where the data had a part in the choice of tables: what that choice says of the data to one who asks
    /// why it was made is not reckoned with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adversary: Option<String>,
}

/// A rule and how it stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestRule {
    /// Where the specification states it.
    pub pointer: Option<String>,
    /// `submitted`, `implied_by` or `from_dependency`.
    pub origin: String,
    /// What the adversary may know.
    pub quasi_identifiers: Vec<String>,
    /// What stays protected.
    pub sensitive: Vec<String>,
    /// Whether only the joint value of `sensitive` is protected.
    pub combination: bool,
    /// The guarantee that was asked for, of each unit of protection.
    pub guarantee: Guarantee,
    /// What rows keep so that it holds, where a unit may have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<Guarantee>,
    /// Of a decomposition: whether no value can have more than the share 1/l of a bucket, whatever is concluded from the release.
    /// Where it is false, at least l values are listed of each bucket, and no more is promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded: Option<bool>,
    /// What made it implied or added.
    #[schema(value_type = Option<Object>)]
    pub because: Option<Value>,
    /// Why it holds.
    pub enforced_by: ManifestEnforcedBy,
    /// What the buckets of its guardian achieve, from the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved: Option<ManifestAchieved>,
}

/// Why a rule holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ManifestEnforcedBy {
    /// No published path leads from what is known to what is sensitive.
    Unreachable {
        /// Always true.
        unreachable: bool,
    },
    /// A guardian table stands between.
    Guardian {
        /// The table.
        guardian: String,
        /// Its attributes that the adversary may know or reach.
        known: Vec<String>,
    },
    /// The one table of the method.
    Table {
        /// The table.
        table: String,
    },
}

/// What buckets achieve. A bucket's posterior is the share of its most frequent sensitive value. Where values are `excludable`, it is
/// what the guarantee bounds: the largest share of another value in the rows that are left without them, or of such a value in all rows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ManifestAchieved {
    /// The largest posterior of any bucket; absent where no attribute is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_posterior: Option<ManifestRatio>,
    /// The median over buckets; of an even number, the larger of the two in the middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_posterior: Option<ManifestRatio>,
    /// The size of the smallest bucket or class.
    pub smallest_bucket: u64,
    /// The rows of the smallest class; for k-anonymity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u64>,
    /// The fewest values of a bucket; for distinct l-diversity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct_values: Option<u64>,
    /// The least number of equally frequent values that have a bucket's entropy; for entropy l-diversity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_l: Option<f64>,
    /// The largest quotient of a bucket's most frequent value and all from the l-th on; for recursive l-diversity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursive_c: Option<f64>,
    /// The largest distance of a bucket from the whole table; for t-closeness and delta.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// How many times likelier a value is in a bucket than in the whole table, at most; for rho.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
}

/// A published table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestTable {
    /// `t1`, `t2`, ...
    pub name: String,
    /// A word for readers: marginal, bucketized, ...
    pub kind: String,
    /// The attributes of all parts, in the dataset's column order.
    pub attributes: Vec<String>,
    /// `plain`, `guarding` or `exclusive`.
    pub protection: String,
    /// What the table guarantees by itself.
    pub guards: Vec<ManifestGuard>,
    /// Its parts; several are tied by `bucket`.
    pub parts: Vec<ManifestPart>,
}

/// What a guarding table guarantees by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestGuard {
    /// What may be known.
    pub quasi_identifiers: Vec<String>,
    /// What stays protected.
    pub sensitive: Vec<String>,
    /// Whether only the joint value is protected.
    pub joint: bool,
    /// What holds in every bucket.
    pub guarantees: Vec<Guarantee>,
}

/// One file of a release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ManifestPart {
    /// `qi`, `sa`, `rows`, ...
    pub name: String,
    /// The columns behind `bucket`.
    pub attributes: Vec<String>,
    /// The types of the attributes, as typed formats give them.
    pub types: BTreeMap<String, AttributeType>,
    /// Whether the first column is `bucket`.
    pub bucketed: bool,
    /// What a row stands for.
    pub row_meaning: String,
    /// How many rows of each bucket are counterfeits, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterfeits_per_bucket: Option<u32>,
    /// The columns whose cells are not exact values.
    #[schema(value_type = BTreeMap<String, String>)]
    pub cells: BTreeMap<String, String>,
    /// How many rows there are.
    pub rows: u64,
    /// The name of the CSV file.
    pub file: String,
    /// SHA-256 of the CSV file, in hexadecimal.
    pub sha256: String,
    /// The text of a missing value, in a one-column part that has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null: Option<String>,
}

/// What the verifier found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct VerificationSummary {
    /// Whether every check passed.
    pub verified: bool,
    /// `checked` when each part was compared with the secret assignment, else `not_checked`.
    pub linkage: String,
    /// The checks.
    pub checks: Vec<CheckResult>,
}

/// One check of the verifier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct CheckResult {
    /// Its name.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// What did not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Public utility of a release.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct Utility {
    /// How many buckets of each size each bucketized table has.
    pub bucket_sizes: Vec<BucketSizes>,
    /// The entropy of the model that the parts allow, in nats: how much they leave open. Where the specification asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_entropy_nats: Option<f64>,
    /// How the model is made: `closed_form` of all tables, or, where they form no tree, `acyclic_subset`, of some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_method: Option<String>,
}

/// Buckets of one size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BucketSizes {
    /// The table.
    pub table: String,
    /// Rows in each bucket.
    pub size: u64,
    /// How many there are.
    pub buckets: u64,
}

/// Functional dependencies.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ManifestDependencies {
    /// Stated by the caller.
    #[schema(value_type = Vec<Object>)]
    pub declared: Vec<Value>,
    /// Found in the data, where one changed a rule.
    #[schema(value_type = Vec<Object>)]
    pub discovered: Vec<Value>,
    /// Withdrawn by the caller, with a reason.
    #[schema(value_type = Vec<Object>)]
    pub assumed_unknown: Vec<Value>,
}

/// A remark on a choice of the specification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SpecificationNotice {
    /// A stable name.
    pub r#type: String,
    /// Where the specification makes the choice.
    pub pointer: Option<String>,
    /// The remark.
    pub detail: String,
}

/// Who made a release, when and under what name.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The release.
    pub id: Option<Uuid>,
    /// Its series.
    pub series: Option<String>,
    /// RFC 3339 UTC.
    pub created_at: String,
    /// `enforced`, `unproven` or `none`.
    pub composition: &'static str,
    /// Whether the caller chose the key.
    pub reproducible: bool,
}

/// What is known of a part once it is written.
#[derive(Clone, Debug)]
pub struct WrittenPart {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// The type of each column.
    pub types: Vec<AttributeType>,
}

/// Builds the manifest. `names` are the published names; `written` follows the tables and parts of the publication;
/// `achieved` gives what the buckets that hold a rule, by its index, achieve.
#[must_use]
#[expect(clippy::too_many_arguments)]
pub fn manifest(
    provenance: &Provenance,
    method: MethodName,
    publication: &Publication,
    names: &[String],
    written: &[Vec<WrittenPart>],
    verification: VerificationSummary,
    bucket_sizes: Vec<BucketSizes>,
    achieved: &dyn Fn(usize) -> Option<ManifestAchieved>,
    dependencies: ManifestDependencies,
    (excludable, taxonomies, thresholds, unit): (&[ExcludedValues], &[DeclaredTaxonomy], &[DeclaredThresholds], &Unit),
    warnings: Vec<SpecificationNotice>,
) -> Manifest {
    let bounded = match &publication.method_details {
        MethodDetails::Decompose(said) => Some(said.bounded),
        _ => None,
    };
    let of_method = match &publication.method_details {
        MethodDetails::Bucketize { thresholds, .. } => Some(DigestedThresholds::from(thresholds.clone())),
        _ => None,
    };
    let promised = unit.promised(thresholds.iter().map(|stated| &stated.thresholds).chain(&of_method));
    let sequential = matches!(publication.method_details, MethodDetails::Sequential(_));
    let writer = ManifestWriter { unit, promised, names, achieved, bounded, sequential };
    Manifest {
        id: provenance.id,
        series: provenance.series.clone(),
        created_at: provenance.created_at.clone(),
        software: concat!("guardian ", env!("CARGO_PKG_VERSION")).to_owned(),
        contract: 2,
        unit: unit.clone(),
        method,
        composition: provenance.composition.to_owned(),
        status: "published".to_owned(),
        reproducible: provenance.reproducible,
        rules: publication.rules.iter().enumerate().map(|(index, rule)| writer.rule(index, rule)).collect(),
        tables: publication.tables.iter().zip(written).map(|(table, parts)| writer.table(table, parts)).collect(),
        verification,
        method_details: super::method_details::method_details(&publication.method_details, names),
        utility: Utility { bucket_sizes, model_entropy_nats: None, entropy_method: None },
        dependencies,
        excludable: excludable
            .iter()
            .map(|stated| (names[stated.attribute.index()].clone(), stated.values.clone()))
            .collect(),
        taxonomies: taxonomies
            .iter()
            .filter(|stated| publication.tables.iter().any(|table| table.attributes().contains(stated.attribute)))
            .map(|stated| (names[stated.attribute.index()].clone(), stated.tree.written()))
            .collect(),
        thresholds: thresholds_of(thresholds, names),
        warnings,
    }
}

/// Thresholds, per name of the attribute on whose values they are put.
#[must_use]
pub fn thresholds_of(stated: &[DeclaredThresholds], names: &[String]) -> BTreeMap<String, Vec<Thresholds>> {
    let mut of: BTreeMap<String, Vec<Thresholds>> = BTreeMap::new();
    for DeclaredThresholds { attribute, thresholds } in stated {
        of.entry(names[attribute.index()].clone()).or_default().push(thresholds.stated().clone());
    }
    of
}

struct ManifestWriter<'a> {
    unit: &'a Unit,
    /// What units are promised by the thresholds that rules name.
    promised: UnitGuarantees,
    names: &'a [String],
    achieved: &'a dyn Fn(usize) -> Option<ManifestAchieved>,
    /// Of a decomposition: the attributes that are bounded.
    bounded: Option<AttrSet>,
    /// Whether the table is one of a sequence: exclusive, and of exact tuples where that keeps all that is required.
    sequential: bool,
}

impl ManifestWriter<'_> {
    fn named(&self, set: AttrSet) -> Vec<String> {
        set.iter().map(|attr| self.names[attr.index()].clone()).collect()
    }

    fn rule(&self, index: usize, rule: &EnforcedRule) -> ManifestRule {
        let because = rule.because.as_ref().map(|because| match because {
            RuleDerivation::Rule(pointer) => serde_json::json!({ "rule": pointer }),
            RuleDerivation::Dependency { determinant, dependent } => {
                serde_json::json!({ "determinant": self.named(*determinant), "dependent": self.named(*dependent) })
            }
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
            origin: origin_name(rule.origin).to_owned(),
            quasi_identifiers: self.named(rule.known),
            sensitive: self.named(rule.protects.attributes()),
            combination: matches!(rule.protects, Protected::Joint(_)),
            guarantee: self.unit.stated(rule.guarantee, &self.promised),
            enforced: (self.unit.rows() > 1).then_some(rule.guarantee),
            bounded: self.bounded.map(|bounded| rule.protects.attributes().is_subset(bounded)),
            because,
            enforced_by,
            achieved: (self.achieved)(index),
        }
    }

    fn table(&self, table: &PublishedTable, written: &[WrittenPart]) -> ManifestTable {
        let (protection, guards) = match &table.protection {
            TableProtection::Plain => ("plain", &[][..]),
            TableProtection::Guarding(guards) => ("guarding", &guards[..]),
            TableProtection::Exclusive => ("exclusive", &[][..]),
        };
        let guard = |guard: &TableGuard| ManifestGuard {
            quasi_identifiers: self.named(guard.known),
            sensitive: self.named(guard.protects.attributes()),
            joint: matches!(guard.protects, Protected::Joint(_)),
            guarantees: guard.guarantees.clone(),
        };
        ManifestTable {
            name: table.name.0.clone(),
            kind: if self.sequential && !table.is_generalized() { TableKind::Marginal } else { table.kind() }
                .to_string(),
            attributes: self.named(table.attributes()),
            protection: protection.to_owned(),
            guards: guards.iter().map(guard).collect(),
            parts: table.parts.iter().zip(written).map(|(part, written)| self.part(table, part, written)).collect(),
        }
    }

    fn part(&self, table: &PublishedTable, part: &Part, written: &WrittenPart) -> ManifestPart {
        let meaning = match part.rows {
            RowMeaning::Tuples => "tuples",
            RowMeaning::TuplesAndCounterfeits { .. } => "tuples_and_counterfeits",
            RowMeaning::Values => "values",
        };
        let cells = part.columns.iter().filter_map(|column| {
            let word = match column.cells {
                CellContent::Exact => return None,
                CellContent::Interval => "interval",
                CellContent::Node { .. } => "node",
                CellContent::Set => "set",
                CellContent::Suppressed => "suppressed",
            };
            Some((column.name.clone(), word.to_owned()))
        });
        ManifestPart {
            name: part.name.clone(),
            attributes: part.columns.iter().map(|column| column.name.clone()).collect(),
            types: part.columns.iter().zip(&written.types).map(|(column, &kind)| (column.name.clone(), kind)).collect(),
            bucketed: part.bucketed,
            row_meaning: meaning.to_owned(),
            counterfeits_per_bucket: match part.rows {
                RowMeaning::TuplesAndCounterfeits { per_bucket } => Some(per_bucket),
                RowMeaning::Tuples | RowMeaning::Values => None,
            },
            cells: cells.collect(),
            rows: part.len,
            file: part.file(&table.name),
            sha256: written.sha256.clone(),
            null: part.null.clone(),
        }
    }
}

/// The contract's name of an origin.
pub(super) const fn origin_name(origin: RuleOrigin) -> &'static str {
    match origin {
        RuleOrigin::Submitted => "submitted",
        RuleOrigin::ImpliedBy => "implied_by",
        RuleOrigin::FromDependency => "from_dependency",
    }
}
