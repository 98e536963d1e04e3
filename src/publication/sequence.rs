//! Details of sequential releases as data: requirements on joins, their results, and the earlier releases of the joins.
//!
//! # Citations
//! [Wang and Fung 2006]; `docs/spec/sequential.md`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ratio::Ratio;
use super::vocabulary::JoinSelection;
use crate::microdata::{AttributeType, CellShape, Column, Table, Taxonomy};

/// An attribute of one release of a join, by its name in the dataset.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JoinAttribute {
    /// Index of the release: 0 is the new one, `i` is `against[i - 1]`.
    pub release: usize,
    /// The attribute.
    pub attribute: String,
}

/// An element of Y, the side of a requirement that is counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum YElement {
    /// An attribute of a release.
    Attribute(JoinAttribute),
    /// The rows of a release.
    Key(usize),
}

/// A value on the attributes of Y, in their order; `None` is the missing value.
pub type SensitiveValue = Vec<Option<String>>;

/// The measure of a requirement on groups.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
#[schema(as = RequiredMeasure)]
pub enum XyMeasure {
    /// Every group has at least k distinct values on Y.
    #[serde(rename = "xy_anonymity")]
    Anonymity {
        /// The least number of values.
        k: u64,
    },
    /// No value on Y takes more than this share of a group.
    #[serde(rename = "xy_linkability")]
    Linkability {
        /// The largest share.
        h: Ratio,
        /// The values that the bound covers; `None` for all values.
        #[serde(rename = "sensitive_values")]
        #[schema(value_type = Option<Vec<Vec<Option<String>>>>)]
        sensitive: Option<Vec<SensitiveValue>>,
    },
}

/// A requirement of (X,Y)-anonymity or (X,Y)-linkability [Wang and Fung 2006].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XyRequirement {
    /// Its pointer in the specification of the release that promised it.
    pub pointer: String,
    /// Index of the release that promised it; 0 is the new one.
    pub of: usize,
    /// The attributes whose equal labels make a group.
    pub x: Vec<JoinAttribute>,
    /// The elements that are counted in a group.
    pub y: Vec<YElement>,
    /// Generalized attributes of the new release that dependencies tie to Y: the bound also holds where their values are known.
    pub known_exactly: Vec<String>,
    /// The bound on the counts.
    pub measure: XyMeasure,
}

/// Conditions on one release: attributes with the node or value that contains them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// The release.
    pub release: usize,
    /// Attributes by name; `None` is the missing value.
    pub within: Vec<(String, Option<String>)>,
}

/// Conditions on two releases that no data subject satisfies together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exclusion {
    /// Its pointer in the specification of the release that declares it.
    pub pointer: String,
    /// Index of the release that declares it.
    pub of: usize,
    /// The conditions on one release.
    pub left: Conditions,
    /// The conditions on the other release.
    pub right: Conditions,
}

/// Text of an attribute or `#key` of a release: `new.` or the id of an earlier release, then the name.
#[must_use]
pub fn reference_text(against: &[String], release: usize, name: &str) -> String {
    match release.checked_sub(1).and_then(|earlier| against.get(earlier)) {
        None => format!("{NEW}.{name}"),
        Some(id) => format!("{id}.{name}"),
    }
}

/// The release index and the name in a reference; `None` for an unknown release.
#[must_use]
pub fn reference_parts<'t>(against: &[String], text: &'t str) -> Option<(usize, &'t str)> {
    let (release, name) = text.split_once('.')?;
    if release == NEW {
        return Some((0, name));
    }
    Some((against.iter().position(|id| id == release)? + 1, name))
}

/// Prefix of a reference to the new release.
pub const NEW: &str = "new";
/// Name in a reference to the rows of a release.
pub const KEY: &str = "#key";

/// The result of a requirement on one join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinResult {
    /// Indexes of the joined releases, ascending.
    pub releases: Vec<usize>,
    /// For anonymity the number and 1; for linkability a share in lowest terms.
    pub achieved: (u64, u64),
}

/// Details of a sequential release.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SequentialDetails {
    /// The earlier releases, by id.
    pub against: Vec<String>,
    /// The joins on which requirements are checked.
    pub subsets: JoinSelection,
    /// Requirements of this and of earlier releases, each with its results.
    pub requirements: Vec<(XyRequirement, Vec<JoinResult>)>,
    /// Conditions that no data subject satisfies together.
    pub exclusions: Vec<Exclusion>,
    /// The labels of each generalized attribute, with those that no row has; exact attributes have no entry.
    pub cuts: Vec<(String, Vec<Option<String>>)>,
    /// The external tables among the earlier releases, by id.
    pub external: Vec<String>,
    /// Whether some release may have rows other than those of this one.
    ///
    /// Then each requirement must hold on this release by itself too: rows without a match are in no join.
    pub other_rows: bool,
    /// For each release index, the published names that differ from the names in the dataset.
    pub renamed: BTreeMap<usize, BTreeMap<String, String>>,
}

impl SequentialDetails {
    /// The attribute that a release publishes under a name.
    #[must_use]
    pub fn attribute<'a>(&'a self, release: usize, published: &'a str) -> &'a str {
        let renamed = self.renamed.get(&release).into_iter().flatten();
        renamed.into_iter().find(|(_, name)| *name == published).map_or(published, |(attribute, _)| attribute)
    }

    /// The attributes of the new release of which a requirement bounds the share of a value, by their published names.
    pub fn bounded(&self) -> impl Iterator<Item = &str> {
        let published = self.renamed.get(&0);
        let bounds = |of: &&XyRequirement| matches!(of.measure, XyMeasure::Linkability { .. });
        let bounded = self.requirements.iter().map(|(requirement, _)| requirement).filter(bounds);
        bounded.flat_map(|requirement| &requirement.y).filter_map(move |element| match element {
            YElement::Attribute(JoinAttribute { release: 0, attribute }) => {
                Some(published.and_then(|names| names.get(attribute)).unwrap_or(attribute).as_str())
            }
            YElement::Attribute(_) | YElement::Key(_) => None,
        })
    }

    /// The details with renamed attributes.
    #[must_use]
    pub fn named_by(mut self, name: &dyn Fn(&str) -> String) -> Self {
        let rename = |attribute: &mut String| *attribute = name(attribute);
        for (requirement, _) in &mut self.requirements {
            requirement.x.iter_mut().for_each(|x| rename(&mut x.attribute));
            for element in &mut requirement.y {
                if let YElement::Attribute(of) = element {
                    rename(&mut of.attribute);
                }
            }
        }
        for Exclusion { left, right, .. } in &mut self.exclusions {
            left.within.iter_mut().chain(&mut right.within).for_each(|(attribute, _)| rename(attribute));
        }
        self.cuts.iter_mut().for_each(|(attribute, _)| rename(attribute));
        for of in self.renamed.values_mut() {
            *of = std::mem::take(of).into_iter().map(|(attribute, published)| (name(&attribute), published)).collect();
        }
        self
    }
}

/// An earlier release of one table of tuples, read back from its part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlierRelease {
    /// Its id.
    pub release: String,
    /// The columns of its table, by the dataset's names.
    pub columns: Vec<EarlierColumn>,
    /// The number of rows.
    pub rows: usize,
    /// The details of its own joins, where it is sequential.
    pub sequence: Option<SequentialDetails>,
    /// Whether its table is exclusive.
    pub alone: bool,
    /// The taxonomies of its attributes.
    pub taxonomies: BTreeMap<String, Arc<Taxonomy>>,
    /// Whether it is an external table.
    pub external: bool,
    /// The correspondence of its rows with those of the new release.
    pub rows_of: RowCorrespondence,
}

/// The correspondence of the rows of an earlier release with those of the new table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RowCorrespondence {
    /// The same rows: both were made from the same content.
    #[default]
    Content,
    /// Record keys identify the common rows.
    Records(RecordMatches),
    /// The correspondence is not known.
    Unknown,
}

/// Rows of an earlier release and of the new table with equal record keys.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordMatches {
    /// Row indexes of the release, each once.
    pub rows: Vec<u32>,
    /// The values of the new table in the same records and order, for the attributes of the join.
    pub values: Arc<Table>,
}

/// The earlier releases that a sequential release is joined with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EarlierReleases {
    /// The earlier releases.
    pub releases: Vec<EarlierRelease>,
    /// The columns of the original that exclusions name.
    pub excluded: Option<Arc<Table>>,
}

/// A column of an earlier release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlierColumn {
    /// The dataset's name of the attribute.
    pub name: String,
    /// The name under which it was published.
    pub published: String,
    /// The shape of its written cells.
    pub shape: CellShape,
    /// Whether cells are nodes of a taxonomy.
    pub nodes: bool,
    /// The type of the original values.
    pub kind: AttributeType,
    /// The cells; text where they hold several values.
    pub cells: Column,
}

impl EarlierRelease {
    /// Whether its rows are known to be the rows of a table with `rows` rows.
    #[must_use]
    pub fn has_rows_of(&self, rows: usize) -> bool {
        self.rows == rows
            && match &self.rows_of {
                RowCorrespondence::Content => true,
                RowCorrespondence::Records(records) => records.rows.len() == rows,
                RowCorrespondence::Unknown => false,
            }
    }

    /// The column of an attribute.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&EarlierColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}
