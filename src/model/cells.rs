//! Rows of the published parts as codes, with one dictionary per attribute.

use std::io;
use std::sync::Arc;

use super::part_source::PartSource;
use crate::control::{Cancelled, Control};
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain, Interner};
use crate::publication::{Part, Publication, PublishedBytes, PublishedTable, ReadPart, RowMeaning};

/// Why parts could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The computation was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The parts are missing, or contradict their description.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Rows of published tables.
pub struct PublishedRows {
    /// Values of each attribute that was read.
    domains: Vec<Option<Arc<Domain>>>,
    /// Rows by published table; empty for tables that were not read.
    pub(super) tables: Vec<TableCells>,
}

/// Rows of a published table.
#[derive(Default)]
pub(super) struct TableCells {
    /// Rows of each part.
    pub(super) rows: usize,
    /// Number of rows of each bucket; empty for a table without buckets.
    pub(super) buckets: Vec<u32>,
    pub(super) parts: Vec<PartCells>,
}

/// Rows of a part.
#[derive(Default)]
pub(super) struct PartCells {
    /// Bucket of each row, from 0; none of a part without buckets. Parts with the same labels share them.
    pub(super) labels: Arc<Vec<u32>>,
    /// Columns as they are read: codes in the order in which values occur.
    unranked: Vec<(Attr, Codes)>,
    /// Attributes that were read.
    pub(super) columns: Vec<(Attr, Column)>,
    /// Counterfeits of the buckets.
    pub(super) counterfeits: PartCounterfeits,
}

/// Counterfeits of the buckets of a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PartCounterfeits {
    /// Each bucket has this number.
    Each(u32),
    /// Each bucket has its number, by label.
    Varying(Vec<u32>),
}

impl Default for PartCounterfeits {
    fn default() -> Self {
        Self::Each(0)
    }
}

impl PartCounterfeits {
    /// Those that a part declares; varying ones are counted when all parts of the table are read.
    fn declared(part: &Part) -> Self {
        match part.rows {
            RowMeaning::TuplesAndCounterfeits { per_bucket } => Self::Each(per_bucket),
            RowMeaning::Tuples | RowMeaning::TuplesAndVaryingCounterfeits | RowMeaning::Values => Self::default(),
        }
    }

    /// The number in a bucket.
    pub(super) fn of(&self, bucket: usize) -> u32 {
        match self {
            Self::Each(number) => *number,
            Self::Varying(numbers) => numbers.get(bucket).copied().unwrap_or(0),
        }
    }

    /// Whether there may be any.
    pub(super) const fn are_possible(&self) -> bool {
        !matches!(self, Self::Each(0))
    }
}

impl PartCells {
    #[cfg(test)]
    pub(super) fn new(labels: Vec<u32>, columns: Vec<(Attr, Column)>) -> Self {
        let labels = Arc::new(labels);
        Self { labels, unranked: Vec::new(), columns, counterfeits: PartCounterfeits::default() }
    }

    /// Number of rows of the part that are data subjects, given the rows of the table.
    pub(super) fn rows(&self, of_table: usize) -> usize {
        if self.labels.is_empty() { of_table } else { self.labels.len() }
    }

    pub(super) fn column(&self, attr: Attr) -> Option<&Codes> {
        self.columns.iter().find(|(of, _)| *of == attr).map(|(_, column)| &column.codes)
    }
}

impl TableCells {
    /// The cells of a table from those of its parts; `None` where these have not the same buckets.
    fn of_parts(table: &PublishedTable, mut parts: Vec<PartCells>) -> Option<Self> {
        let rows = table.parts.first().map_or(0, |part| part.len as usize);
        if let Some((first, others)) = parts.split_first_mut() {
            for part in others.iter_mut().filter(|part| part.labels == first.labels) {
                part.labels = Arc::clone(&first.labels);
            }
        }
        let mut cells = Self { rows, buckets: Vec::new(), parts };
        let several = table.parts.len() > 1;
        let real = |part: &PartCells| -> Vec<u32> {
            let sizes = bucket_sizes(&part.labels).into_iter().enumerate();
            sizes.map(|(bucket, size)| size.saturating_sub(part.counterfeits.of(bucket))).collect()
        };
        cells.count_varying(&table.parts);
        // the number of listed values says nothing of the rows of a bucket
        let listed = |at: usize| table.parts[at].rows == RowMeaning::Values;
        let of_rows = cells.parts.iter().enumerate().filter(|(at, _)| several && !listed(*at));
        let mut buckets = of_rows.map(|(_, part)| real(part));
        let first = buckets.next().unwrap_or_default();
        let agree = buckets.all(|others| others == first) && !first.contains(&0);
        drop(buckets);
        cells.buckets = first;
        agree.then_some(cells)
    }

    /// Counts the counterfeits of buckets that have different numbers: what a bucket shows in excess of its tuples.
    fn count_varying(&mut self, parts: &[Part]) {
        let of_tuples = parts.iter().position(|part| part.rows == RowMeaning::Tuples && part.bucketed);
        let rows =
            of_tuples.and_then(|at| self.parts.get(at)).map(|part| bucket_sizes(&part.labels)).unwrap_or_default();
        for (cells, part) in self.parts.iter_mut().zip(parts) {
            if part.rows == RowMeaning::TuplesAndVaryingCounterfeits {
                let shown = bucket_sizes(&cells.labels);
                let excess =
                    |(bucket, &shown): (usize, &u32)| shown.saturating_sub(rows.get(bucket).copied().unwrap_or(0));
                cells.counterfeits = PartCounterfeits::Varying(shown.iter().enumerate().map(excess).collect());
            }
        }
    }
}

impl PublishedRows {
    /// Reads the attributes that are wanted of each table, by the table's index. A table of which nothing is wanted is not looked
    /// at. `kinds` are the types of the attributes.
    ///
    /// # Errors
    /// [`ModelError`]
    pub fn read(
        publication: &Publication,
        wanted: impl Fn(usize) -> Option<AttrSet>,
        kinds: &[Option<AttributeType>],
        parts: &dyn PublishedBytes,
        control: &Control,
    ) -> Result<Self, ModelError> {
        let mut dictionaries: Vec<CodeDictionary> = kinds.iter().map(|_| CodeDictionary::default()).collect();
        let mut tables = Vec::with_capacity(publication.tables.len());
        for (index, table) in publication.tables.iter().enumerate() {
            let Some(wanted) = wanted(index) else {
                tables.push(TableCells::default());
                continue;
            };
            let source = |part| PartSource { table: &table.name, part, wanted, parts };
            let read = |part| read_part(source(part), &mut dictionaries, control);
            let cells = TableCells::of_parts(table, table.parts.iter().map(read).collect::<Result<_, _>>()?);
            let differ = || damaged(&format!("the parts of table {} have not the same buckets", table.name));
            tables.push(cells.ok_or_else(differ)?);
        }
        let mut domains = Vec::with_capacity(kinds.len());
        let mut ranks = Vec::with_capacity(kinds.len());
        for (dictionary, kind) in dictionaries.into_iter().zip(kinds) {
            let (domain, order) = dictionary.sorted(*kind)?;
            domains.push(domain);
            ranks.push(order);
        }
        for part in tables.iter_mut().flat_map(|table| &mut table.parts) {
            for (attr, codes) in std::mem::take(&mut part.unranked) {
                control.check()?;
                let Some(domain) = &domains[attr.index()] else { continue };
                let order = &ranks[attr.index()];
                let codes = codes.renumbered(order, order.len());
                part.columns.push((attr, Column { domain: Arc::clone(domain), codes }));
            }
        }
        Ok(Self { domains, tables })
    }

    /// The table at `index`, of whose parts all attributes were read already; `None` where they are not those of the description.
    #[must_use]
    pub fn of_read(publication: &Publication, index: usize, read: Vec<ReadPart>) -> Option<Self> {
        let table = &publication.tables[index];
        let is_described = |(read, part): (&ReadPart, &Part)| {
            let is_whole = |rows: usize| rows as u64 == part.len;
            read.columns.len() == part.columns.len()
                && read.columns.iter().all(|of| is_whole(of.column.codes.len()))
                && (!part.bucketed || is_whole(read.labels.len()))
                && read.labels.iter().all(|&label| u64::from(label) < part.len)
        };
        if read.len() != table.parts.len() || !read.iter().zip(&table.parts).all(is_described) {
            return None;
        }
        let cells = |(read, part): (ReadPart, &Part)| PartCells {
            labels: Arc::new(read.labels),
            unranked: Vec::new(),
            columns: read.columns.into_iter().map(|of| (of.attribute, of.column)).collect(),
            counterfeits: PartCounterfeits::declared(part),
        };
        let parts = read.into_iter().zip(&table.parts).map(cells).collect();
        let mut tables: Vec<TableCells> = publication.tables.iter().map(|_| TableCells::default()).collect();
        tables[index] = TableCells::of_parts(table, parts)?;
        Some(Self { domains: Vec::new(), tables })
    }

    #[cfg(test)]
    pub(super) fn of_tables(tables: Vec<TableCells>) -> Self {
        Self { domains: Vec::new(), tables }
    }

    /// Values of an attribute in their order: codes are ranks.
    #[must_use]
    pub fn domain(&self, attr: Attr) -> Option<&Domain> {
        self.domains.get(attr.index()).and_then(|domain| domain.as_deref())
    }
}

/// Values of an attribute in the order in which they occur. Code 0 is the missing value.
#[derive(Default)]
struct CodeDictionary {
    interner: Interner,
    missing: bool,
    used: bool,
}

impl CodeDictionary {
    /// Values in their order, and the rank of each code.
    fn sorted(mut self, kind: Option<AttributeType>) -> Result<(Option<Arc<Domain>>, Vec<u32>), ModelError> {
        if !self.used {
            return Ok((None, Vec::new()));
        }
        let values: Arena = self.interner.take();
        let kind = kind.unwrap_or(AttributeType::Text);
        if !values.iter().all(|value| kind.admits(value)) {
            return Err(damaged("a value does not have the declared type"));
        }
        let (domain, ranks) = Domain::sort(kind, self.missing, &values);
        Ok((Some(domain), std::iter::once(0).chain(ranks).collect()))
    }
}

pub(super) fn damaged(what: &str) -> ModelError {
    ModelError::Io(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// Reads the labels and the wanted columns of a part.
fn read_part(
    source: PartSource<'_>,
    dictionaries: &mut [CodeDictionary],
    control: &Control,
) -> Result<PartCells, ModelError> {
    let part = source.part;
    let wanted: Vec<Attr> = source.columns().into_iter().map(|at| part.columns[at].attribute).collect();
    if !part.bucketed && wanted.is_empty() {
        return Ok(PartCells::default());
    }
    for attr in &wanted {
        dictionaries.get_mut(attr.index()).ok_or_else(|| source.broken())?.used = true;
    }
    let mut columns: Vec<Codes> = wanted.iter().map(|_| Codes::with_capacity(0, source.reserved_rows())).collect();
    let labels = source.read(control, |number, cells| {
        let dictionary = &mut dictionaries[wanted[number].index()];
        dictionary.missing |= cells.missing() > 0;
        let values = cells.values().iter().map(|value| dictionary.interner.intern(value) + 1);
        let map: Vec<u32> = std::iter::once(0).chain(values).collect();
        columns[number].extend_mapped(dictionary.interner.len() + 1, cells.codes(), |code| map[code]);
    })?;
    let (labels, unranked) = (Arc::new(labels), wanted.into_iter().zip(columns).collect());
    Ok(PartCells { labels, unranked, columns: Vec::new(), counterfeits: PartCounterfeits::declared(part) })
}

fn bucket_sizes(labels: &[u32]) -> Vec<u32> {
    let mut sizes = vec![0; labels.iter().max().map_or(0, |&last| last as usize + 1)];
    labels.iter().for_each(|&label| sizes[label as usize] += 1);
    sizes
}
