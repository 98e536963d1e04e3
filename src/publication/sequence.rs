//! What a sequential release says: requirements over its join with earlier releases, and what they come to. And earlier releases,
//! as they are read back for that. Data only.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ratio::Ratio;
use super::vocabulary::JoinSelection;
use crate::microdata::{AttributeType, CellShape, Column, Table, Taxonomy};

/// An attribute of a release of a sequence, by the dataset's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JoinAttribute {
    /// 0 is the new release; the others are counted from 1, as `against` lists them.
    pub release: usize,
    /// The attribute.
    pub attribute: String,
}

/// An element of Y.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum YElement {
    /// An attribute of a release.
    Attribute(JoinAttribute),
    /// The rows of a release.
    Key(usize),
}

/// A value on the attributes of Y, in their order; `None` is the missing one.
pub type SensitiveValue = Vec<Option<String>>;

/// What groups are measured by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub enum XyMeasure {
    /// Every group has so many different values on Y.
    #[serde(rename = "xy_anonymity")]
    Anonymity {
        /// The number.
        k: u64,
    },
    /// No value on Y takes more than this share of a group.
    #[serde(rename = "xy_linkability")]
    Linkability {
        /// The share.
        h: Ratio,
        /// The values that are held to it; all of them where none are stated.
        #[serde(rename = "sensitive_values")]
        sensitive: Option<Vec<SensitiveValue>>,
    },
}

/// (X,Y)-anonymity or (X,Y)-linkability.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XyRequirement {
    /// Where the specification states it: that of the new release, or of the one that promised it.
    pub pointer: String,
    /// The release that promised it, by its number; 0 is the new one.
    pub of: usize,
    /// What makes groups.
    pub x: Vec<JoinAttribute>,
    /// What is counted in them.
    pub y: Vec<YElement>,
    /// How.
    pub measure: XyMeasure,
}

/// Conditions on one release: attributes, and the node or value that each lies within.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// The release.
    pub release: usize,
    /// Attributes by name; `None` is the missing value.
    pub within: Vec<(String, Option<String>)>,
}

/// What nobody is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exclusion {
    /// Where the specification states it, as of a requirement.
    pub pointer: String,
    /// The release that stated it, by its number.
    pub of: usize,
    /// In one release.
    pub left: Conditions,
    /// And in another.
    pub right: Conditions,
}

/// An attribute, or `#key`, of a release as documents have it: `new.` before that of the new one, the id before others'.
#[must_use]
pub fn reference_text(against: &[String], release: usize, name: &str) -> String {
    match release.checked_sub(1).and_then(|earlier| against.get(earlier)) {
        None => format!("{NEW}.{name}"),
        Some(id) => format!("{id}.{name}"),
    }
}

/// The release of a reference and what stands behind its point; `None` where it is of no release of the sequence.
#[must_use]
pub fn reference_parts<'t>(against: &[String], text: &'t str) -> Option<(usize, &'t str)> {
    let (release, name) = text.split_once('.')?;
    if release == NEW {
        return Some((0, name));
    }
    Some((against.iter().position(|id| id == release)? + 1, name))
}

/// What stands before the point in a reference to the new release.
const NEW: &str = "new";
/// What stands behind it in a reference to the rows of a release.
pub const KEY: &str = "#key";

/// What a requirement comes to on some joins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinResult {
    /// The releases of the join, rising.
    pub releases: Vec<usize>,
    /// Of anonymity the number and 1, of linkability a share in its lowest terms.
    pub achieved: (u64, u64),
}

/// A sequential release beside its table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SequentialDetails {
    /// The earlier releases, by id.
    pub against: Vec<String>,
    /// The joins that count.
    pub subsets: JoinSelection,
    /// What was asked for, and what earlier releases asked for, each with what it comes to.
    pub requirements: Vec<(XyRequirement, Vec<JoinResult>)>,
    /// What nobody is.
    pub exclusions: Vec<Exclusion>,
    /// The labels of each generalized attribute, as cells have them; also those that no row has. What is published as it is has none.
    pub cuts: Vec<(String, Vec<Option<String>>)>,
    /// Those of the earlier releases that were published elsewhere and entered, by id.
    pub entered: Vec<String>,
    /// Whether the rows of some release are not known to be those of this one. Then no requirement is reduced to one release, and each
    /// holds in this one alone, too: rows that match nothing are in no join.
    pub other_rows: bool,
    /// By release, the attributes that it publishes under another name than the dataset's, each with that.
    pub renamed: BTreeMap<usize, BTreeMap<String, String>>,
}

impl SequentialDetails {
    /// The attribute that a release publishes under a name.
    #[must_use]
    pub fn attribute<'a>(&'a self, release: usize, published: &'a str) -> &'a str {
        let renamed = self.renamed.get(&release).into_iter().flatten();
        renamed.into_iter().find(|(_, name)| *name == published).map_or(published, |(attribute, _)| attribute)
    }

    /// The same with other names of attributes.
    #[must_use]
    pub fn named_by(mut self, name: &dyn Fn(&str) -> String) -> Self {
        let rename = |attribute: &mut String| *attribute = name(attribute);
        for (requirement, _) in &mut self.requirements {
            requirement.x.iter_mut().for_each(|x| rename(&mut x.attribute));
            for told in &mut requirement.y {
                if let YElement::Attribute(of) = told {
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
    /// How many rows it has.
    pub rows: usize,
    /// What it says of its own joins, where it is sequential.
    pub sequence: Option<SequentialDetails>,
    /// Whether it keeps what it keeps only as long as nothing stands beside it.
    pub alone: bool,
    /// The taxonomies of its attributes.
    pub taxonomies: BTreeMap<String, Arc<Taxonomy>>,
    /// Whether it was published elsewhere, and entered.
    pub entered: bool,
    /// Whose rows it has.
    pub rows_of: RowCorrespondence,
}

/// How the rows of an earlier release stand to those of the table behind the new one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RowCorrespondence {
    /// They are the same ones: it was made of the same content.
    #[default]
    Content,
    /// Record keys tell which are the same.
    Records(RecordMatches),
    /// Nobody knows.
    Unknown,
}

/// Rows of an earlier release and of the table behind the new one that have one record key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordMatches {
    /// Rows of the release, each once.
    pub rows: Vec<u32>,
    /// What the table has in the same records, in the same order: of attributes by which the release is joined.
    pub values: Arc<Table>,
}

/// What a sequential release is made beside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EarlierReleases {
    /// The earlier releases.
    pub releases: Vec<EarlierRelease>,
    /// The columns of the original that exclusions name, by their names.
    pub excluded: Option<Arc<Table>>,
}

/// A column of an earlier release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlierColumn {
    /// The dataset's name of the attribute.
    pub name: String,
    /// The name under which it was published.
    pub published: String,
    /// What stands in its cells, as they are written.
    pub shape: CellShape,
    /// Whether cells are nodes of a taxonomy.
    pub nodes: bool,
    /// The type of the values behind the cells.
    pub kind: AttributeType,
    /// The cells: text, where they stand for several values.
    pub cells: Column,
}

impl EarlierRelease {
    /// Whether its rows are known to be those of a table of so many.
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
