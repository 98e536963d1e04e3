//! Published tables, their parts and their protection.

use std::collections::BTreeMap;
use std::fmt;

use super::guarantee::Guarantee;
use super::sequence::SequentialDetails;
use super::thresholds::Thresholds;
use super::vocabulary::{BreachKind, ProtectionKind, RowKind, SlicedDiversity, TableKind};
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

/// Attributes in one or more parts; several parts are tied by `bucket`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublishedTable {
    /// Unique in the publication.
    pub name: TableName,
    /// At least one.
    pub parts: Vec<Part>,
    /// What the table is worth beside others.
    pub protection: TableProtection,
}

impl PublishedTable {
    /// The attributes of all parts.
    #[must_use]
    pub fn attributes(&self) -> AttrSet {
        self.parts.iter().flat_map(|part| part.columns.iter().map(|column| column.attribute)).collect()
    }

    /// Whether some cells stand for several values.
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
    let known = parts.into_iter().filter(|part| !part.is_subset(protected));
    let (mut whole, mut mixed) = (0, false);
    known.for_each(|part| {
        whole += 1;
        mixed |= part.meets(protected);
    });
    if whole > 1 || mixed { TableKind::Sliced } else { TableKind::Bucketized }
}

/// What a published table is worth when other tables are published beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableProtection {
    /// Exact tuples: enters the Guardian Normal Form check as a table without a guard.
    Plain,
    /// Guarantees by itself, whatever else is published; all guards hold.
    Guarding(Vec<TableGuard>),
    /// Neither.
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

/// What every bucket or class of a table holds alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableGuard {
    /// The attributes an adversary may know.
    pub known: AttrSet,
    /// What stays protected.
    pub protects: Protected,
    /// The guarantees; all of them hold.
    pub guarantees: Vec<Guarantee>,
}

/// The sensitive side of a rule or guard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protected {
    /// One attribute.
    Attribute(Attr),
    /// The joint value of several; weaker than protecting any one of them.
    Joint(AttrSet),
    /// No attribute: that a row is not told from others.
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
    /// What a row stands for.
    pub rows: RowMeaning,
    /// Whether the rows carry a bucket label, as their first column.
    pub bucketed: bool,
    /// How many rows there are.
    pub len: u64,
    /// In a one-column part, the text that stands for a missing value, where one occurs.
    pub null: Option<String>,
}

impl Part {
    /// The name of the part whose values the buckets of a decomposed table are made by.
    pub const PRIMARY: &str = "primary";

    /// Whether some cells stand for several values.
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
    /// What a cell holds.
    pub cells: CellContent,
}

/// What a row of a part stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowMeaning {
    /// A tuple of the original.
    Tuples,
    /// A tuple of the original, or one of `per_bucket` counterfeits that every bucket holds.
    TuplesAndCounterfeits {
        /// Counterfeits in each bucket.
        per_bucket: u32,
    },
    /// A distinct value of the bucket; may be noise.
    Values,
}

impl RowMeaning {
    /// Kind of the rows, as documents name it.
    #[must_use]
    pub const fn kind(self) -> RowKind {
        match self {
            Self::Tuples => RowKind::Tuples,
            Self::TuplesAndCounterfeits { .. } => RowKind::TuplesAndCounterfeits,
            Self::Values => RowKind::Values,
        }
    }

    /// Counterfeits in each bucket, where there are any.
    #[must_use]
    pub const fn counterfeits_per_bucket(self) -> Option<u32> {
        match self {
            Self::TuplesAndCounterfeits { per_bucket } => Some(per_bucket),
            Self::Tuples | Self::Values => None,
        }
    }

    /// The meaning of rows of a kind; `None` where only one of both speaks of counterfeits.
    #[must_use]
    pub const fn from_kind(kind: RowKind, counterfeits_per_bucket: Option<u32>) -> Option<Self> {
        match (kind, counterfeits_per_bucket) {
            (RowKind::Tuples, None) => Some(Self::Tuples),
            (RowKind::Values, None) => Some(Self::Values),
            (RowKind::TuplesAndCounterfeits, Some(per_bucket)) => Some(Self::TuplesAndCounterfeits { per_bucket }),
            (RowKind::Tuples | RowKind::Values, Some(_)) | (RowKind::TuplesAndCounterfeits, None) => None,
        }
    }
}

/// What a cell holds.
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
    /// Any value: the same in every row.
    Suppressed,
}

impl CellContent {
    /// What a cell holds, as it is written.
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

/// What only some methods have to say of their publication.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum MethodDetails {
    /// Nothing: versatile publishing, anatomy, generalization.
    #[default]
    None,
    /// The buckets of variable-sensitivity bucketing.
    Bucketize {
        /// What every bucket keeps.
        thresholds: Thresholds,
        /// `(size, buckets)` of each kind of bucket.
        setting: Vec<(u64, u64)>,
        /// The sum over buckets of (size - 1)^2.
        loss: u64,
        /// No buckets lose less, where that was asked for and proved.
        lower_bound: Option<u64>,
    },
    /// The columns of slicing.
    Slicing {
        /// The attributes of each column, the sensitive one last.
        columns: Vec<AttrSet>,
        /// Where the guarantee holds.
        diversity: SlicedDiversity,
        /// Columns are generalized: every box of a column holds so many rows.
        column_k: Option<u64>,
    },
    /// What Decompose reports of several sensitive attributes.
    Decompose(DecompositionDetails),
    /// What a sequential release keeps on its joins with earlier ones.
    Sequential(Box<SequentialDetails>),
}

/// What is to be said of a decomposed table beside its rules; all but the choices of the caller, and where there is noise, follows from
/// the parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecompositionDetails {
    /// The sensitive attribute that buckets are made by.
    pub primary: Attr,
    /// Per sensitive attribute: so many values are published of each bucket at least, and no primary value takes more than such a
    /// share of a bucket.
    pub l: BTreeMap<Attr, u64>,
    /// The attributes of which buckets may list values that none of their rows has.
    pub noisy: AttrSet,
    /// The attributes of which no value has more than the share 1/l of a bucket, whatever is concluded from the tables.
    pub bounded: AttrSet,
    /// Per further sensitive attribute: the buckets in which no two rows can have the same value, of all buckets.
    pub repeat_free: BTreeMap<Attr, (u64, u64)>,
    /// How many conclusions of each kind can be drawn.
    pub tellable: BTreeMap<BreachKind, u64>,
    /// The first of them, in their order.
    pub first: Vec<InferableBucket>,
}

impl DecompositionDetails {
    /// So many conclusions are listed.
    pub const LISTED: usize = 100;
}

/// A bucket of which a value of an attribute can be concluded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InferableBucket {
    /// Its label.
    pub bucket: u32,
    /// The attribute.
    pub attribute: Attr,
    /// How.
    pub kind: BreachKind,
}
