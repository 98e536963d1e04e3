//! Published tables, their parts and their protection.

use std::collections::BTreeMap;
use std::fmt;

use super::breach::BreachKind;
use super::guarantee::Guarantee;
use super::republish::RepublishDetails;
use super::sequence::SequentialDetails;
use super::thresholds::Thresholds;
use super::vocabulary::{ProtectionKind, RowKind, SlicedDiversity, TableKind};
use crate::microdata::{Attr, AttrSet, CellShape};

/// The name of a published table: `t1`, `t2`, ...
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableName(pub String);

impl TableName {
    /// The name of the table at `index`, counted from 0.
    #[must_use]
    pub fn at(index: usize) -> Self {
        Self(format!("t{}", index + 1))
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Attributes in one or more parts; only bucket labels link several parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedTable {
    /// Unique in the publication.
    pub name: TableName,
    /// At least one.
    pub parts: Vec<Part>,
    /// The protection that the table gives when other tables are published.
    pub protection: TableProtection,
}

impl PublishedTable {
    /// The attributes of all parts.
    #[must_use]
    pub fn attributes(&self) -> AttrSet {
        self.parts.iter().flat_map(|part| part.columns.iter().map(|column| column.attribute)).collect()
    }

    /// Whether some cells hold several values.
    #[must_use]
    pub fn is_generalized(&self) -> bool {
        self.parts.iter().any(Part::is_generalized)
    }

    /// Kind of the table, as far as its parts and its protection show it.
    #[must_use]
    pub fn kind(&self) -> TableKind {
        let bucketed = self.parts.iter().all(|part| part.bucketed);
        match (&self.protection, bucketed) {
            (TableProtection::Plain, _) => TableKind::Marginal,
            (TableProtection::Guarding(guards), true) => {
                let parts = self.parts.iter().map(|part| part.columns.iter().map(|column| column.attribute).collect());
                kind_of_guarding(parts, guards)
            }
            (TableProtection::Exclusive, false) if !self.is_generalized() => TableKind::Sensitive,
            (TableProtection::Guarding(_) | TableProtection::Exclusive, false) => TableKind::Generalized,
            (TableProtection::Exclusive, true) if self.parts.iter().any(|part| part.name == Part::PRIMARY) => {
                TableKind::Decomposed
            }
            (TableProtection::Exclusive, true) => TableKind::Sliced,
        }
    }
}

/// Kind of a guarding table whose parts are linked by bucket.
///
/// It is bucketized if one part is known and all others are protected. It is sliced if several parts are known, or if one part holds
/// both known and protected attributes.
#[must_use]
pub fn kind_of_guarding(parts: impl IntoIterator<Item = AttrSet>, guards: &[TableGuard]) -> TableKind {
    let protected = guards.iter().fold(AttrSet::EMPTY, |all, guard| all.union(guard.protects.attributes()));
    // attributes of strata may stand beside protected ones: no guard takes them as known
    let is_known = |part: &AttrSet| guards.iter().any(|guard| guard.known.meets(*part));
    let known = parts.into_iter().filter(|part| !part.is_subset(protected) && is_known(part));
    let (mut whole, mut mixed) = (0, false);
    known.for_each(|part| {
        whole += 1;
        mixed |= part.meets(protected);
    });
    if whole > 1 || mixed { TableKind::Sliced } else { TableKind::Bucketized }
}

/// The protection that a table gives when other tables about the same data subjects are published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableProtection {
    /// Exact tuples: a table without guards in the check of Guardian Normal Form.
    Plain,
    /// The table keeps all of its guards, whatever else is published.
    Guarding(Vec<TableGuard>),
    /// The table keeps its guarantee only if no other table shares an attribute.
    Exclusive,
}

impl TableProtection {
    /// Kind of the protection, as documents name it.
    #[must_use]
    pub const fn kind(&self) -> ProtectionKind {
        match self {
            Self::Plain => ProtectionKind::Plain,
            Self::Guarding(_) => ProtectionKind::Guarding,
            Self::Exclusive => ProtectionKind::Exclusive,
        }
    }

    /// The guards of a guarding table; no other table has one.
    #[must_use]
    pub fn guards(&self) -> &[TableGuard] {
        match self {
            Self::Guarding(guards) => guards,
            Self::Plain | Self::Exclusive => &[],
        }
    }
}

/// Guarantees that every bucket or class of a table keeps by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableGuard {
    /// The attributes that the adversary may know.
    pub known: AttrSet,
    /// The protected side.
    pub protects: Protected,
    /// The guarantees; all of them hold.
    pub guarantees: Vec<Guarantee>,
    /// Attributes in which every bucket is constant: what an adversary knows of how these go together with the protected
    /// attributes changes no posterior (`docs/spec/dependencies.md`, T1).
    pub constant: AttrSet,
    /// Whether buckets may break a guarantee that are all rows with their values of `constant`: no publication bounds the
    /// posteriors of these rows (`docs/spec/dependencies.md`, T2).
    pub closes: bool,
}

impl TableGuard {
    /// A guard whose buckets are constant in no attribute.
    #[must_use]
    pub const fn new(known: AttrSet, protects: Protected, guarantees: Vec<Guarantee>) -> Self {
        Self { known, protects, guarantees, constant: AttrSet::EMPTY, closes: false }
    }
}

/// The sensitive side of a rule or guard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protected {
    /// One attribute.
    Attribute(Attr),
    /// The joint value of several; weaker than protecting any one of them.
    Joint(AttrSet),
    /// No attribute: the guarantee hides a row among others.
    Rows,
}

impl Protected {
    /// The protected attributes.
    #[must_use]
    pub const fn attributes(self) -> AttrSet {
        match self {
            Self::Attribute(attr) => AttrSet::one(attr),
            Self::Joint(attrs) => attrs,
            Self::Rows => AttrSet::EMPTY,
        }
    }
}

/// A multiset of rows in canonical order, written as one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Unique in the table: `rows`, `qi`, `sa`, ...
    pub name: String,
    /// The attributes, in the dataset's column order.
    pub columns: Vec<PublishedColumn>,
    /// The meaning of a row.
    pub rows: RowMeaning,
    /// Whether the first column holds bucket labels.
    pub bucketed: bool,
    /// The number of rows.
    pub len: u64,
    /// The text of a missing value, in a part of one column with missing values.
    pub null: Option<String>,
}

impl Part {
    /// The name of the part with the values that make the buckets of a decomposed table.
    pub const PRIMARY: &str = "primary";

    /// Whether some cells hold several values.
    #[must_use]
    pub fn is_generalized(&self) -> bool {
        self.columns.iter().any(|column| column.cells != CellContent::Exact)
    }

    /// The name of the part's file in a release.
    #[must_use]
    pub fn file(&self, table: &TableName) -> String {
        format!("{table}.{}.csv", self.name)
    }
}

/// An attribute as it appears in a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedColumn {
    /// The attribute of the original.
    pub attribute: Attr,
    /// The published name.
    pub name: String,
    /// The content of its cells.
    pub cells: CellContent,
}

/// The meaning of a row of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowMeaning {
    /// A tuple of the original.
    Tuples,
    /// A tuple of the original, or one of `per_bucket` counterfeits that every bucket holds.
    TuplesAndCounterfeits {
        /// Counterfeits in each bucket.
        per_bucket: u32,
    },
    /// A tuple of the original, or a counterfeit; buckets hold different numbers of these.
    TuplesAndVaryingCounterfeits,
    /// A distinct value of the bucket; may be noise.
    Values,
}

impl RowMeaning {
    /// Kind of the rows, as documents name it.
    #[must_use]
    pub const fn kind(self) -> RowKind {
        match self {
            Self::Tuples => RowKind::Tuples,
            Self::TuplesAndCounterfeits { .. } | Self::TuplesAndVaryingCounterfeits => RowKind::TuplesAndCounterfeits,
            Self::Values => RowKind::Values,
        }
    }

    /// Counterfeits in each bucket, where all buckets have the same number.
    #[must_use]
    pub const fn counterfeits_per_bucket(self) -> Option<u32> {
        match self {
            Self::TuplesAndCounterfeits { per_bucket } => Some(per_bucket),
            Self::Tuples | Self::TuplesAndVaryingCounterfeits | Self::Values => None,
        }
    }

    /// The meaning of rows of a kind; `None` where kind and number of counterfeits contradict each other.
    #[must_use]
    pub const fn from_kind(kind: RowKind, counterfeits_per_bucket: Option<u32>) -> Option<Self> {
        match (kind, counterfeits_per_bucket) {
            (RowKind::Tuples, None) => Some(Self::Tuples),
            (RowKind::Values, None) => Some(Self::Values),
            (RowKind::TuplesAndCounterfeits, Some(per_bucket)) => Some(Self::TuplesAndCounterfeits { per_bucket }),
            (RowKind::TuplesAndCounterfeits, None) => Some(Self::TuplesAndVaryingCounterfeits),
            (RowKind::Tuples | RowKind::Values, Some(_)) => None,
        }
    }
}

/// The content of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellContent {
    /// A value of the original.
    Exact,
    /// An interval of values, both ends included.
    Interval,
    /// A node of a taxonomy; without a cut, nodes of several levels.
    Node {
        /// The published name of the attribute whose taxonomy it is.
        taxonomy: String,
        /// The nodes that occur, when they form a cut.
        cut: Option<Vec<String>>,
    },
    /// A set of values.
    Set,
    /// Any value; the cell is the same in every row.
    Suppressed,
}

impl CellContent {
    /// The shape of a written cell.
    #[must_use]
    pub const fn shape(&self) -> CellShape {
        match self {
            Self::Exact => CellShape::Exact,
            Self::Node { .. } => CellShape::Node,
            Self::Interval => CellShape::Interval,
            Self::Set => CellShape::Set,
            Self::Suppressed => CellShape::Suppressed,
        }
    }
}

/// A bucket size, and the number of buckets of this size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SizeCount {
    /// Number of rows of each bucket.
    pub size: u64,
    /// Number of buckets.
    pub buckets: u64,
}

impl SizeCount {
    /// This number of buckets of a size.
    #[must_use]
    pub const fn new(size: u64, buckets: u64) -> Self {
        Self { size, buckets }
    }

    /// Number of rows of all buckets.
    #[must_use]
    pub const fn rows(self) -> u64 {
        self.size * self.buckets
    }

    /// The same, without overflow.
    #[must_use]
    pub const fn wide_rows(self) -> u128 {
        self.size as u128 * self.buckets as u128
    }
}

/// Details that some methods add to their publication.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum MethodDetails {
    /// Nothing: versatile publishing, anatomy, generalization.
    #[default]
    None,
    /// The buckets of variable-sensitivity bucketing.
    Bucketize {
        /// The thresholds that every bucket satisfies.
        thresholds: Thresholds,
        /// The number of buckets of each size.
        setting: Vec<SizeCount>,
        /// The sum over buckets of (size - 1)^2.
        loss: u64,
        /// A proved lower bound of the loss, where the caller asked for one.
        lower_bound: Option<u64>,
    },
    /// The columns of slicing.
    Slicing {
        /// The attributes of each column, the sensitive one last.
        columns: Vec<AttrSet>,
        /// The scope of the guarantee.
        diversity: SlicedDiversity,
        /// The least number of rows in a box of a column, where columns are generalized.
        column_k: Option<u64>,
    },
    /// The sensitive attributes of a decomposition.
    Decompose(DecompositionDetails),
    /// The requirements of a sequential release and their results on joins.
    Sequential(Box<SequentialDetails>),
    /// The terms and figures of a night of a republished table.
    Republish(Box<RepublishDetails>),
}

impl MethodDetails {
    /// The attributes that a requirement protects without a rule, as it bounds the share of a value; `names` are the published ones.
    #[must_use]
    pub fn required(&self, names: &[String]) -> AttrSet {
        let Self::Sequential(sequence) = self else { return AttrSet::EMPTY };
        let place = |name: &str| names.iter().position(|other| other == name).map(Attr::from);
        sequence.bounded().filter_map(place).collect()
    }
}

/// Details of a decomposed table. All but the choices of the caller and the noise follow from the parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecompositionDetails {
    /// The sensitive attribute that makes the buckets.
    pub primary: Attr,
    /// The diversity l of each sensitive attribute: a bucket lists at least l values, and the share of a primary value is at most
    /// 1/l.
    pub l: BTreeMap<Attr, u64>,
    /// The attributes whose lists may hold values that no row of the bucket has.
    pub noisy: AttrSet,
    /// The attributes whose posteriors are at most 1/l, given both tables.
    pub bounded: AttrSet,
    /// The share of buckets in which all rows have distinct values, for each sensitive attribute but the primary one.
    pub repeat_free: BTreeMap<Attr, (u64, u64)>,
    /// The number of breaches of each kind.
    pub breach_counts: BTreeMap<BreachKind, u64>,
    /// The first breaches, at most [`Self::LISTED`].
    pub first: Vec<InferableBucket>,
}

impl DecompositionDetails {
    /// The most breaches that a manifest lists.
    pub const LISTED: usize = 100;
}

/// A bucket for which a reader may infer a value of an attribute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InferableBucket {
    /// The label of the bucket.
    pub bucket: u32,
    /// The attribute whose value is inferred.
    pub attribute: Attr,
    /// How the value is inferred.
    pub kind: BreachKind,
}
