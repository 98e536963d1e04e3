//! What is kept of the rows that a release publishes: enough to recognize them, their people and their values, and
//! nothing to read them by.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::blocks::{self, Block};
use super::hash::KeyedHash;
use super::signatures::{self, SignatureSample, TwinCounter};

/// The evidence of the rows of a table. The hashes of its persons are kept apart, as there may be many.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// How many rows it is of.
    pub rows: u64,
    /// The columns of the table, in its order.
    pub names: Vec<String>,
    /// Per key system of the table, by name.
    pub systems: BTreeMap<String, SystemEvidence>,
    /// The multiset of rows, whatever the names and the order of columns.
    pub table: Option<KeyedHash>,
    /// Per column by name: in which row of the table which cell stands. Columns of equal tables are known by it, whatever
    /// their names.
    #[serde(default)]
    pub contents: BTreeMap<String, KeyedHash>,
    /// The blocks of the columns that are no keys.
    pub blocks: Vec<Block>,
    /// Samples of signatures: of whole rows, then of rows without one column.
    pub signatures: Vec<SignatureSample>,
}

/// What one key system says of the rows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SystemEvidence {
    /// How many persons there are.
    pub persons: u64,
    /// Per column by name: which person has which cell. Empty where rows of a person cannot be distinguished.
    pub columns: BTreeMap<String, KeyedHash>,
}

/// By which test two tables are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resemblance {
    /// Nearly the same rows: blocks of two columns agree.
    Blocks,
    /// Part of the rows are the same: signatures that stand once in each.
    Rows,
}

impl SystemEvidence {
    /// Takes over the marks of columns, but of those that are published only where there is none.
    pub(super) fn learn(&mut self, columns: &BTreeMap<String, KeyedHash>, published: &BTreeSet<String>) {
        for (column, mark) in columns {
            if !published.contains(column) || !self.columns.contains_key(column) {
                self.columns.insert(column.clone(), *mark);
            }
        }
    }
}

impl Evidence {
    /// Whether these columns say the same of the same rows or persons in both tables.
    #[must_use]
    pub fn says_the_same(&self, other: &Self, columns: &[String]) -> bool {
        let mut shared = self.systems.iter().filter_map(|(name, own)| Some((own, other.systems.get(name)?))).peekable();
        if shared.peek().is_none() {
            let contents = |of: &Self, name| of.contents.get(name).copied();
            let agrees = |name| contents(self, name).is_some() && contents(self, name) == contents(other, name);
            return self.table.is_some() && self.table == other.table && columns.iter().all(agrees);
        }
        shared.all(|(own, theirs)| {
            let mark = |of: &SystemEvidence, name| of.columns.get(name).copied();
            let agrees = |name| mark(own, name).is_some() && mark(own, name) == mark(theirs, name);
            own.persons == theirs.persons && columns.iter().all(agrees)
        })
    }

    /// The marks by which tables are found that may be alike, sorted. They may have others too.
    #[must_use]
    pub fn telling_marks(&self) -> Vec<KeyedHash> {
        let mut marks: Vec<KeyedHash> =
            blocks::telling(&self.blocks).chain(signatures::telling(&self.signatures)).collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    /// Whether the cells of two tables say that they are of the same people, whatever their keys say.
    ///
    /// `is_common` says whether the other table has a block, `theirs` are its signatures.
    #[must_use]
    pub fn resemblance(
        &self,
        is_common: impl Fn(KeyedHash) -> bool,
        theirs: &[SignatureSample],
    ) -> Option<Resemblance> {
        if blocks::are_alike(&self.blocks, is_common) {
            return Some(Resemblance::Blocks);
        }
        TwinCounter::new(&self.signatures).is_alike(theirs).then_some(Resemblance::Rows)
    }

    /// For each of some tables, whether its signatures say that it is of the same people.
    #[must_use]
    pub fn are_alike_by_rows(&self, others: &[&[SignatureSample]]) -> Vec<bool> {
        let own = TwinCounter::new(&self.signatures);
        others.iter().map(|theirs| own.is_alike(theirs)).collect()
    }
}
