//! A microdata table: dictionary-encoded columns over the same rows.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::annotations::ColumnAnnotations;
use super::attrs::{Attr, AttrSet};
use super::domain::Domain;

/// Codes of one column, as narrow as its domain allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Codes {
    /// Domains of at most 2^8 codes.
    U8(Vec<u8>),
    /// Domains of at most 2^16 codes.
    U16(Vec<u16>),
    /// Larger domains.
    U32(Vec<u32>),
}

/// Runs `$body` with `$codes` bound to the slice of whatever width the codes have.
#[macro_export]
macro_rules! with_codes {
    ($value:expr, $codes:ident => $body:expr) => {
        match $value {
            $crate::microdata::Codes::U8($codes) => $body,
            $crate::microdata::Codes::U16($codes) => $body,
            $crate::microdata::Codes::U32($codes) => $body,
        }
    };
}

impl Codes {
    /// No codes yet, of the width for a domain of `domain` codes, with room for `rows`.
    #[must_use]
    pub fn with_capacity(domain: usize, rows: usize) -> Self {
        match domain {
            0..=0x100 => Self::U8(Vec::with_capacity(rows)),
            0x101..=0x1_0000 => Self::U16(Vec::with_capacity(rows)),
            _ => Self::U32(Vec::with_capacity(rows)),
        }
    }

    /// The codes of `iter`, all below `domain`, as narrow as that allows.
    pub fn collect(domain: usize, iter: impl ExactSizeIterator<Item = u32>) -> Self {
        match domain {
            0..=0x100 => Self::U8(iter.map(|c| c as u8).collect()),
            0x101..=0x1_0000 => Self::U16(iter.map(|c| c as u16).collect()),
            _ => Self::U32(iter.collect()),
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        with_codes!(self, codes => codes.len())
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The code of `row`.
    #[must_use]
    pub fn get(&self, row: usize) -> u32 {
        match self {
            Self::U8(codes) => u32::from(codes[row]),
            Self::U16(codes) => u32::from(codes[row]),
            Self::U32(codes) => codes[row],
        }
    }

    /// The codes of the rows `order` names, in that order.
    #[must_use]
    pub fn gather(&self, order: &[u32]) -> Self {
        match self {
            Self::U8(codes) => Self::U8(order.iter().map(|&r| codes[r as usize]).collect()),
            Self::U16(codes) => Self::U16(order.iter().map(|&r| codes[r as usize]).collect()),
            Self::U32(codes) => Self::U32(order.iter().map(|&r| codes[r as usize]).collect()),
        }
    }

    /// Appends what `map` gives for each of `codes`, and widens for a domain of `domain` codes.
    pub fn extend_mapped(&mut self, domain: usize, codes: &Self, map: impl Fn(usize) -> u32) {
        self.widen(domain);
        with_codes!(codes, new => match self {
            Self::U8(all) => all.extend(new.iter().map(|&code| map(code as usize) as u8)),
            Self::U16(all) => all.extend(new.iter().map(|&code| map(code as usize) as u16)),
            Self::U32(all) => all.extend(new.iter().map(|&code| map(code as usize))),
        });
    }

    /// Appends `codes`, and widens for a domain of `domain` codes.
    pub fn extend_narrowed(&mut self, domain: usize, codes: &[u32]) {
        self.widen(domain);
        match self {
            Self::U8(all) => all.extend(codes.iter().map(|&code| code as u8)),
            Self::U16(all) => all.extend(codes.iter().map(|&code| code as u16)),
            Self::U32(all) => all.extend(codes),
        }
    }

    /// Makes the codes wide enough for a domain of `domain` codes.
    fn widen(&mut self, domain: usize) {
        *self = match (std::mem::replace(self, Self::U8(Vec::new())), domain) {
            (Self::U8(codes), 0x101..=0x1_0000) => Self::U16(codes.into_iter().map(u16::from).collect()),
            (Self::U8(codes), 0x1_0001..) => Self::U32(codes.into_iter().map(u32::from).collect()),
            (Self::U16(codes), 0x1_0001..) => Self::U32(codes.into_iter().map(u32::from).collect()),
            (codes, _) => codes,
        };
    }

    /// `map` of each code, for a domain of `domain` codes.
    #[must_use]
    pub fn renumbered(self, map: &[u32], domain: usize) -> Self {
        match self {
            Self::U8(mut codes) if domain <= 0x100 => {
                codes.iter_mut().for_each(|code| *code = map[usize::from(*code)] as u8);
                // a list that grew has room for half as many again
                codes.shrink_to_fit();
                Self::U8(codes)
            }
            wider => Self::collect(domain, wider.iter().map(|code| map[code as usize])),
        }
    }

    /// All codes in row order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// Largest number of values of a column that is counted in several places at once.
const FEW_VALUES: usize = 1 << 11;

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The distinct values; shared between a table and what is published of it.
    pub domain: Arc<Domain>,
    /// A code per row.
    pub codes: Codes,
}

/// A column of an upload, with its name.
#[derive(Clone, Copy, Debug)]
pub struct UploadedColumn<'a> {
    /// The name in the dataset.
    pub name: &'a str,
    /// The values.
    pub column: &'a Column,
}

impl Column {
    /// How often each code occurs.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        let size = self.domain.len();
        // neighbours are often equal and would wait for each other: while they fit a cache, each of four counts for itself
        let lanes = if size <= FEW_VALUES { 4 } else { 1 };
        let mut counts = vec![0; lanes * size];
        with_codes!(&self.codes, codes => {
            let (fours, rest) = if lanes == 4 { codes.as_chunks::<4>() } else { (&[][..], &codes[..]) };
            for four in fours {
                for (lane, &code) in four.iter().enumerate() {
                    counts[lane * size + code as usize] += 1;
                }
            }
            rest.iter().for_each(|&code| counts[code as usize] += 1);
        });
        for lane in (1..lanes).rev() {
            let rest = counts.split_off(lane * size);
            counts.iter_mut().zip(rest).for_each(|(count, more)| *count += more);
        }
        counts
    }

    /// The same rows in another order: row `i` of the result is row `order[i]`.
    #[must_use]
    pub fn reordered(&self, order: &[u32]) -> Self {
        Self { domain: Arc::clone(&self.domain), codes: self.codes.gather(order) }
    }

    /// The value of `row`; `None` when it is missing.
    #[must_use]
    pub fn value(&self, row: usize) -> Option<&[u8]> {
        self.domain.value(self.codes.get(row))
    }
}

/// A column whose rows are put in the order of its table when it is asked for.
#[derive(Debug)]
struct PermutedColumn {
    source: Arc<Column>,
    /// Row `i` is row `order[i]` of the source; none where they are the same.
    order: Option<Arc<[u32]>>,
    ordered: OnceLock<Column>,
}

impl PermutedColumn {
    const fn new(source: Arc<Column>, order: Option<Arc<[u32]>>) -> Self {
        Self { source, order, ordered: OnceLock::new() }
    }

    fn column(&self) -> &Column {
        match &self.order {
            None => &self.source,
            // by one thread: one that waits for others here could be given work that asks for this column
            Some(order) => self.ordered.get_or_init(|| self.source.reordered(order)),
        }
    }
}

impl PartialEq for PermutedColumn {
    fn eq(&self, other: &Self) -> bool {
        self.column() == other.column()
    }
}

impl Eq for PermutedColumn {}

/// The columns of a dataset that a job uses, in the dataset's column order. [`Attr`] `i` is column `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    names: Vec<String>,
    columns: Vec<Arc<PermutedColumn>>,
    annotations: Vec<ColumnAnnotations>,
    rows: usize,
}

impl Table {
    /// A table of named columns of equal length.
    ///
    /// # Panics
    /// When the columns differ in length or there are not as many names.
    #[must_use]
    pub fn new(names: Vec<String>, columns: Vec<Column>) -> Self {
        let rows = columns.first().map_or(0, |c| c.codes.len());
        assert!(columns.iter().all(|c| c.codes.len() == rows), "columns of unequal length");
        assert_eq!(names.len(), columns.len(), "one name a column");
        let annotations = vec![ColumnAnnotations::default(); columns.len()];
        let columns = columns.into_iter().map(|column| Arc::new(PermutedColumn::new(Arc::new(column), None))).collect();
        Self { names, columns, annotations, rows }
    }

    /// The table with annotations of the values of `attr`.
    #[must_use]
    pub fn on(mut self, attr: Attr, annotations: ColumnAnnotations) -> Self {
        self.annotations[attr.index()] = annotations;
        self
    }

    /// The table with more columns, behind its own.
    #[must_use]
    pub fn extended(&self, more: impl Iterator<Item = (String, Column)>) -> Self {
        let mut extended = self.clone();
        for (name, column) in more {
            assert_eq!(column.codes.len(), self.rows, "columns of unequal length");
            extended.names.push(name);
            extended.columns.push(Arc::new(PermutedColumn::new(Arc::new(column), None)));
            extended.annotations.push(ColumnAnnotations::default());
        }
        extended
    }

    /// The columns with their names, however many there are.
    pub fn uploaded(&self) -> impl Iterator<Item = UploadedColumn<'_>> {
        self.names.iter().zip(&self.columns).map(|(name, column)| UploadedColumn { name, column: column.column() })
    }

    /// Annotations of the values of an attribute.
    #[must_use]
    pub fn annotations(&self, attr: Attr) -> &ColumnAnnotations {
        &self.annotations[attr.index()]
    }

    /// How many rows (tuples) there are.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// All attributes.
    #[must_use]
    pub fn attributes(&self) -> AttrSet {
        AttrSet::first(self.columns.len())
    }

    /// The names of the attributes, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of an attribute.
    #[must_use]
    pub fn name(&self, attr: Attr) -> &str {
        &self.names[attr.index()]
    }

    /// The column of an attribute.
    #[must_use]
    pub fn column(&self, attr: Attr) -> &Column {
        self.columns[attr.index()].column()
    }

    /// The values of an attribute.
    #[must_use]
    pub fn domain(&self, attr: Attr) -> &Arc<Domain> {
        &self.columns[attr.index()].source.domain
    }

    /// How often each value of an attribute occurs.
    #[must_use]
    pub fn counts(&self, attr: Attr) -> Vec<u64> {
        self.columns[attr.index()].source.counts()
    }

    /// The rows that `order` names, in that order.
    #[must_use]
    pub fn reordered(&self, order: &[u32]) -> Self {
        let columns = self.columns.par_iter().map(|column| column.column().reordered(order)).collect();
        Self { annotations: self.annotations.clone(), rows: order.len(), ..Self::new(self.names.clone(), columns) }
    }

    /// The same rows in another order: row `i` of the result is row `order[i]`. A column is copied when it is asked for.
    #[must_use]
    pub fn permuted(&self, order: &Arc<[u32]>) -> Self {
        assert_eq!(order.len(), self.rows, "an order of other rows");
        let permuted = |column: &Arc<PermutedColumn>| {
            let source = match &column.order {
                None => Arc::clone(&column.source),
                Some(_) => Arc::new(column.column().clone()),
            };
            Arc::new(PermutedColumn::new(source, Some(Arc::clone(order))))
        };
        Self { columns: self.columns.iter().map(permuted).collect(), ..self.clone() }
    }

    /// Some rows of some columns, in this order; attributes keep their positions, and other columns have no cells.
    #[must_use]
    pub fn restricted(&self, attributes: AttrSet, order: &[u32]) -> Self {
        let gather = |attr: Attr| match attributes.contains(attr) {
            true => self.column(attr).reordered(order),
            false => Column {
                domain: Arc::clone(self.domain(attr)),
                codes: Codes::with_capacity(self.domain(attr).len(), 0),
            },
        };
        let columns =
            self.attributes().iter().map(gather).map(|column| Arc::new(PermutedColumn::new(Arc::new(column), None)));
        Self { columns: columns.collect(), rows: order.len(), ..self.clone() }
    }
}

/// What planning needs to know of the data: counts of single attributes. A table answers it, and so does a dataset's
/// stored profile, so that a plan can be made without loading rows.
pub trait AttributeCounts {
    /// How many tuples there are.
    fn rows(&self) -> u64;
    /// How many attributes there are.
    fn attributes(&self) -> usize;
    /// How often the most frequent value of `attr` occurs, a missing value counted as a value.
    fn largest(&self, attr: Attr) -> u64;
    /// How many distinct values `attr` has, a missing value counted as one.
    fn distinct(&self, attr: Attr) -> u64;
    /// How often each value of `attr` occurs, values in their order; `None` where that is not kept.
    fn of_values(&self, attr: Attr) -> Option<Vec<u64>>;
    /// Annotations of the values of `attr`; none where values are not kept.
    fn annotations(&self, _: Attr) -> ColumnAnnotations {
        ColumnAnnotations::default()
    }
}

impl AttributeCounts for Table {
    fn rows(&self) -> u64 {
        self.rows as u64
    }

    fn attributes(&self) -> usize {
        self.columns.len()
    }

    fn largest(&self, attr: Attr) -> u64 {
        self.counts(attr).into_iter().max().unwrap_or(0)
    }

    fn distinct(&self, attr: Attr) -> u64 {
        self.domain(attr).len() as u64
    }

    fn of_values(&self, attr: Attr) -> Option<Vec<u64>> {
        Some(self.counts(attr))
    }

    fn annotations(&self, attr: Attr) -> ColumnAnnotations {
        Self::annotations(self, attr).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::{Arena, AttributeType};

    #[test]
    fn a_permuted_table_is_a_reordered_one() {
        let rows = 100_000_u32;
        let mut values = Arena::default();
        (0..7).for_each(|value| values.push(format!("{value}").as_bytes()));
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, values));
        let column = |by: u32| {
            let codes = (0..rows as usize).map(|row| row as u32 / by % 7);
            Column { domain: Arc::clone(&domain), codes: Codes::collect(7, codes) }
        };
        let table = Table::new(["a", "b", "c"].map(str::to_owned).to_vec(), [1, 3, 11].map(column).to_vec());
        let order: Arc<[u32]> = (0..rows).map(|row| (u64::from(row) * 7919 % u64::from(rows)) as u32).collect();
        let permuted = table.permuted(&order);
        assert_eq!(permuted.counts(Attr(1)), table.counts(Attr(1)));
        // many threads ask at the same time
        (0..64_u32)
            .into_par_iter()
            .for_each(|at| assert_eq!(permuted.column(Attr(at as u8 % 3)).codes.len(), rows as usize));
        let reordered = table.reordered(&order);
        assert_eq!(permuted, reordered);
        assert_eq!(permuted.permuted(&order), reordered.reordered(&order));
        let some = AttrSet::one(Attr(1));
        assert_eq!(permuted.restricted(some, &[5, 1]), reordered.restricted(some, &[5, 1]));
    }
}
