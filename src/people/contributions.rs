//! Bounded contributions: at most R rows of a person are kept, before anything else looks at the table.
//!
//! The draw is a keyed hash of the row, so that an equal table keeps equal rows under one key, whatever the order of its rows
//! and columns. Without the key, the draw is independent of what the rows hold.

use std::collections::BinaryHeap;
use std::io;
use std::path::Path;

use super::hash::KeyedHasher;
use super::keys::{KeyComponents, SystemColumns};
use super::order_ties::OrderSearch;
use super::selection::{OrderValues, RowOrder, RowRank};
use super::sorter::{ExternalSorter, SortedEntry, number_of};
use crate::control::{Cancelled, Control};
use crate::microdata::formats::{IngestError, IngestLimits, TableReader};
use crate::microdata::{AttributeType, Chunk, ChunkFile};

/// The most rows of a table: each has a bit in memory, 64 MB in all.
const MAX_ROWS: u64 = 1 << 29;

/// How many rows of a person are kept, and which.
#[derive(Clone, Debug)]
pub struct ContributionBound<'a> {
    /// The most rows of a person.
    pub rows: u64,
    /// The column whose smallest values are kept; none where a draw alone decides.
    pub order: Option<&'a str>,
    /// The columns that identify a person.
    pub person: SystemColumns,
}

/// What a bound left out. For the holder of the table alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContributionCounts {
    /// Rows that were left out.
    pub rows: u64,
    /// Persons of whom rows were left out.
    pub persons: u64,
}

/// Why a table cannot be bounded.
#[derive(Debug, thiserror::Error)]
pub enum ContributionError {
    /// The table cannot be read or kept.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// A row of no person.
    #[error("row {row} has no value of {column}, which identifies persons")]
    Keyless {
        /// The first such row, from 1.
        row: u64,
        /// The name of the column.
        column: String,
    },
    /// The table has no such column.
    #[error("the table has no column {0:?}, by which rows would be chosen")]
    UnknownOrder(String),
    /// The caller stopped.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<io::Error> for ContributionError {
    fn from(error: io::Error) -> Self {
        Self::Ingest(IngestError::Spool(error))
    }
}

/// Where tables are kept while they are read, and what of them is accepted.
#[derive(Clone, Copy)]
pub struct ContributionSpool<'a> {
    /// What is accepted of the column by which rows are chosen.
    pub limits: &'a IngestLimits,
    /// The folder of files without names.
    pub folder: &'a Path,
    /// Stops the reading.
    pub control: &'a Control,
}

/// A table without the rows that exceed a bound.
pub struct BoundedTable {
    names: Vec<String>,
    kinds: Vec<Option<AttributeType>>,
    chunks: ChunkFile,
    /// The next chunk.
    next: u32,
    kept: RowMarks,
    /// Rows given so far, with those left out.
    seen: u64,
    /// What was left out.
    pub counts: ContributionCounts,
    /// For each column whether it says something of the rows that were kept.
    pub chose_rows: Vec<bool>,
}

impl BoundedTable {
    /// Reads a table to its end and chooses its rows.
    ///
    /// # Errors
    /// [`ContributionError`]
    pub fn read(
        mut reader: Box<dyn TableReader>,
        bound: &ContributionBound<'_>,
        hasher: &impl KeyedHasher,
        spool: ContributionSpool<'_>,
    ) -> Result<Self, ContributionError> {
        let names = reader.names().to_vec();
        let place = |column: &str| {
            let at = names.iter().position(|name| name == column);
            at.ok_or_else(|| ContributionError::UnknownOrder(column.to_owned()))
        };
        let mut values = bound.order.map(place).transpose()?.map(|column| OrderValues::new(column, spool.limits));
        let mut table = ChunkFile::new(spool.folder)?;
        let mut rows = 0;
        while let Some(chunk) = reader.next_chunk()? {
            rows += u64::from(chunk.rows);
            if rows > MAX_ROWS {
                let what = "rows of a table of which a number of rows of each person is kept";
                return Err(IngestError::TooLarge { what, limit: MAX_ROWS, found: rows, row: None }.into());
            }
            if let Some(values) = &mut values {
                values.add(&chunk).map_err(IngestError::from)?;
            }
            table.push(&chunk)?;
        }
        let kinds = reader.kinds();
        let order = values.map(|values| values.rank(&kinds));
        let chosen = choose(&ChoosingRun { table: &table, names: &names, rows, bound, hasher, spool }, order.as_ref())?;
        let ChosenRows { kept, counts, chose_rows } = chosen;
        Ok(Self { names, kinds, chunks: table, next: 0, kept, seen: 0, counts, chose_rows })
    }
}

impl TableReader for BoundedTable {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn kinds(&self) -> Vec<Option<AttributeType>> {
        self.kinds.clone()
    }

    fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError> {
        while let Some(chunk) = self.chunks.chunk(self.next).map_err(IngestError::Spool)? {
            self.next += 1;
            let kept: Vec<bool> =
                (self.seen..self.seen + u64::from(chunk.rows)).map(|row| self.kept.has(row)).collect();
            self.seen += u64::from(chunk.rows);
            let rows = kept.iter().filter(|is_kept| **is_kept).count() as u32;
            if rows > 0 {
                let columns = chunk.columns.iter().map(|column| column.kept(&kept)).collect();
                return Ok(Some(Chunk { rows, columns }));
            }
        }
        Ok(None)
    }
}

/// What the choice of rows needs.
struct ChoosingRun<'a, H> {
    table: &'a ChunkFile,
    names: &'a [String],
    rows: u64,
    bound: &'a ContributionBound<'a>,
    hasher: &'a H,
    spool: ContributionSpool<'a>,
}

/// Which rows are kept.
struct ChosenRows {
    kept: RowMarks,
    counts: ContributionCounts,
    chose_rows: Vec<bool>,
}

fn choose<H: KeyedHasher>(run: &ChoosingRun<'_, H>, order: Option<&RowOrder>) -> Result<ChosenRows, ContributionError> {
    let ChoosingRun { table, names, rows: all, bound, hasher, spool } = run;
    let mut by_name: Vec<usize> = (0..names.len()).collect();
    by_name.sort_unstable_by_key(|&column| &names[column]);
    let mut search = order.map(|of| OrderSearch::new(of, names.len(), *all));
    let mut rows: ExternalSorter<RowOfPerson> = ExternalSorter::with_entries(spool.folder);
    let mut seen = 0_u64;
    for place in 0..table.chunks() {
        let chunk = table.columns(place, 0..names.len())?;
        spool.control.check()?;
        let components = KeyComponents::new(*hasher, &bound.person, &chunk);
        let here = order.map(|of| of.ranks(&chunk));
        let mut cells: Vec<&[u8]> = Vec::with_capacity(2 * names.len());
        let mut room = Vec::new();
        for row in 0..chunk.rows as usize {
            let number = seen + row as u64;
            let keyless = |column: usize| ContributionError::Keyless { row: number + 1, column: names[column].clone() };
            let person = components.key(row, &mut room).map_err(keyless)?.person;
            cells.clear();
            // a missing cell is no empty one
            for &column in &by_name {
                let value = chunk.columns[column].value(row);
                cells.extend([if value.is_some() { &b"v"[..] } else { b"m" }, value.unwrap_or_default()]);
            }
            let content = hasher.keyed("contribution", &cells).0;
            let rank = here.as_ref().map_or(0, |here| here[row]);
            rows.push_entry(RowOfPerson { person, rank, content, row: number })?;
        }
        if let (Some(search), Some(here)) = (&mut search, here) {
            search.add(&chunk, &here);
        }
        seen += u64::from(chunk.rows);
    }
    let mut chooser = RowChooser::new(*hasher, bound.rows, *all);
    rows.finish_entries(|entry| -> Result<(), ContributionError> {
        chooser.take(entry);
        Ok(())
    })?;
    let (kept, counts) = chooser.finish();
    Ok(ChosenRows { kept, counts, chose_rows: search.map_or_else(|| vec![false; names.len()], OrderSearch::finish) })
}

/// A row, in the order in which rows are chosen from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RowOfPerson {
    person: u128,
    rank: RowRank,
    /// Equal for equal rows.
    content: u128,
    row: u64,
}

impl SortedEntry for RowOfPerson {
    const BYTES: usize = 44;

    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.person.to_be_bytes());
        bytes.extend_from_slice(&self.rank.to_be_bytes());
        bytes.extend_from_slice(&self.content.to_be_bytes());
        bytes.extend_from_slice(&self.row.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        Self {
            person: number_of(&bytes[..16]),
            rank: number_of(&bytes[16..20]) as RowRank,
            content: number_of(&bytes[20..36]),
            row: number_of(&bytes[36..]) as u64,
        }
    }
}

/// A row with its place in the draw.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DrawnRow {
    draw: u128,
    row: u64,
}

/// Chooses among rows that come sorted; memory holds at most as many as are kept of one person.
struct RowChooser<'a, H> {
    hasher: &'a H,
    limit: u64,
    kept: RowMarks,
    counts: ContributionCounts,
    last: Option<RowOfPerson>,
    /// How many equal rows came before the last one.
    repeated: u64,
    /// Whether a row of this person was left out.
    is_cut: bool,
    /// How many rows of this person are kept of lower ranks.
    certain: u64,
    /// Of the rows of this rank, those that are kept.
    drawn: BinaryHeap<DrawnRow>,
}

impl<'a, H: KeyedHasher> RowChooser<'a, H> {
    fn new(hasher: &'a H, limit: u64, rows: u64) -> Self {
        Self {
            hasher,
            limit,
            kept: RowMarks::none(rows),
            counts: ContributionCounts::default(),
            last: None,
            repeated: 0,
            is_cut: false,
            certain: 0,
            drawn: BinaryHeap::new(),
        }
    }

    fn take(&mut self, row: RowOfPerson) {
        let is_same_person = self.last.is_some_and(|last| last.person == row.person);
        let is_same_rank = is_same_person && self.last.is_some_and(|last| last.rank == row.rank);
        let is_equal = is_same_rank && self.last.is_some_and(|last| last.content == row.content);
        if !is_same_rank {
            self.keep_drawn();
        }
        if !is_same_person {
            (self.certain, self.is_cut) = (0, false);
        }
        self.repeated = if is_equal { self.repeated + 1 } else { 0 };
        self.last = Some(row);
        if self.certain < self.limit {
            // equal rows are drawn one by one, so that each row of a person is as likely as any other
            let texts: [&[u8]; 2] = [&row.content.to_be_bytes(), &self.repeated.to_be_bytes()];
            let draw = self.hasher.keyed("contribution draw", &texts).0;
            self.drawn.push(DrawnRow { draw, row: row.row });
            if self.drawn.len() as u64 <= self.limit - self.certain {
                return;
            }
            self.drawn.pop();
        }
        self.counts.rows += 1;
        self.counts.persons += u64::from(!self.is_cut);
        self.is_cut = true;
    }

    fn keep_drawn(&mut self) {
        self.certain += self.drawn.len() as u64;
        for DrawnRow { row, .. } in self.drawn.drain() {
            self.kept.mark(row);
        }
    }

    fn finish(mut self) -> (RowMarks, ContributionCounts) {
        self.keep_drawn();
        (self.kept, self.counts)
    }
}

/// A mark for each row.
struct RowMarks(Vec<u64>);

impl RowMarks {
    fn none(rows: u64) -> Self {
        Self(vec![0; rows.div_ceil(64) as usize])
    }

    fn mark(&mut self, row: u64) {
        self.0[(row / 64) as usize] |= 1 << (row % 64);
    }

    fn has(&self, row: u64) -> bool {
        self.0[(row / 64) as usize] >> (row % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hmac::{Hmac, KeyInit, Mac};
    use sha2::Sha256;

    use super::*;
    use crate::microdata::formats::csv::CsvOptions;
    use crate::microdata::formats::{InputFormat, open};
    use crate::people::KeyedHash;
    /// A hasher of a key.
    #[derive(Clone)]
    struct TestKey(u8);

    impl KeyedHasher for TestKey {
        fn keyed_bytes(&self, bytes: &[u8]) -> KeyedHash {
            let mut mac = Hmac::<Sha256>::new_from_slice(&[self.0; 32]).unwrap();
            mac.update(bytes);
            let bytes: [u8; 32] = mac.finalize().into_bytes().into();
            KeyedHash::from_bytes(*bytes.first_chunk().unwrap())
        }
    }

    /// Kept rows, what was left out, and the columns that chose.
    struct Kept {
        rows: Vec<String>,
        counts: ContributionCounts,
        chose_rows: Vec<bool>,
    }

    fn try_keep(csv: String, rows: u64, order: Option<&str>, key: u8) -> Result<Kept, ContributionError> {
        let (limits, folder) = (IngestLimits::default(), tempfile::tempdir().unwrap());
        let reader =
            open(InputFormat::Csv, io::Cursor::new(csv), CsvOptions::default(), &limits, folder.path()).unwrap();
        let person = reader.names().iter().position(|name| name == "person").unwrap();
        let bound = ContributionBound { rows, order, person: SystemColumns::alone("subject", vec![person]) };
        let control = Control::default();
        let spool = ContributionSpool { limits: &limits, folder: folder.path(), control: &control };
        let mut table = BoundedTable::read(reader, &bound, &TestKey(key), spool)?;
        let mut kept = Vec::new();
        while let Some(chunk) = table.next_chunk().unwrap() {
            for row in 0..chunk.rows as usize {
                let cell = |column: usize| String::from_utf8_lossy(chunk.columns[column].value(row).unwrap_or(b"-"));
                kept.push((0..chunk.columns.len()).map(|at| cell(at).into_owned()).collect::<Vec<_>>().join(","));
            }
        }
        Ok(Kept { rows: kept, counts: table.counts, chose_rows: table.chose_rows.clone() })
    }

    fn keep(csv: &str, rows: u64, order: Option<&str>, key: u8) -> Kept {
        try_keep(csv.to_owned(), rows, order, key).unwrap()
    }

    /// Visits of persons 0 to `persons`, of whom each has one to four; every second visit is of HIV.
    fn visits(persons: u32) -> Vec<String> {
        let of = |person: u32| {
            (0..=person % 4).map(move |visit| {
                let disease = if visit % 2 == 1 { "HIV" } else { "flu" };
                format!("p{person},2024-01-{:02},{disease},{visit}", visit * 7 % 28 + 1)
            })
        };
        (0..persons).flat_map(of).collect()
    }

    fn table(rows: &[String]) -> String {
        format!("person,day,disease,visit\n{}\n", rows.join("\n"))
    }

    #[test]
    fn persons_keep_at_most_r_rows() {
        let rows = visits(400);
        for most in 1..=4 {
            let Kept { rows: kept, counts, .. } = keep(&table(&rows), most, None, 7);
            let mut of: BTreeMap<&str, u64> = BTreeMap::new();
            kept.iter().for_each(|row| *of.entry(row.split_once(',').unwrap().0).or_default() += 1);
            assert!((0..400).all(|person: u64| of[&*format!("p{person}")] == most.min(person % 4 + 1)));
            assert!(kept.iter().all(|row| rows.contains(row)));
            assert_eq!(counts.rows, (rows.len() - kept.len()) as u64);
            assert_eq!(counts.persons, 100 * (4 - most));
        }
        // fewer rows are some of more
        let (one, two) = (keep(&table(&rows), 1, None, 7).rows, keep(&table(&rows), 2, None, 7).rows);
        assert!(one.iter().all(|row| two.contains(row)));
    }

    #[test]
    fn equal_table_keeps_equal_rows_under_one_key() {
        let rows = visits(300);
        let mut kept = keep(&table(&rows), 1, None, 1).rows;
        let mut reversed = rows.clone();
        reversed.reverse();
        let mut again = keep(&table(&reversed), 1, None, 1).rows;
        kept.sort_unstable();
        again.sort_unstable();
        assert_eq!(kept, again);
        // another order of columns
        let turned = |row: &String| row.split(',').rev().collect::<Vec<_>>().join(",");
        let other = format!("visit,disease,day,person\n{}\n", rows.iter().map(turned).collect::<Vec<_>>().join("\n"));
        let mut other: Vec<String> = keep(&other, 1, None, 1).rows.iter().map(turned).collect();
        other.sort_unstable();
        assert_eq!(kept, other);
        let mut of_other_key = keep(&table(&rows), 1, None, 2).rows;
        of_other_key.sort_unstable();
        assert_ne!(kept, of_other_key);
    }

    #[test]
    fn draw_is_independent_of_the_values() {
        // every person has one row of HIV and one of flu: each is kept as often
        let rows: Vec<String> = (0..4000).flat_map(|p| ["HIV", "flu"].map(|of| format!("p{p},d,{of},0"))).collect();
        let Kept { rows: kept, .. } = keep(&table(&rows), 1, None, 9);
        let of_hiv = kept.iter().filter(|row| row.contains("HIV")).count();
        // within six standard deviations of a fair coin
        assert!((1810..2190).contains(&of_hiv), "{of_hiv}");
        // equal rows count one by one: of three rows, two of HIV, one is kept
        let rows: Vec<String> =
            (0..4000).flat_map(|p| ["HIV", "HIV", "flu"].map(|of| format!("p{p},d,{of},0"))).collect();
        let of_hiv = keep(&table(&rows), 1, None, 9).rows.iter().filter(|row| row.contains("HIV")).count();
        assert!((2487..2847).contains(&of_hiv), "{of_hiv}");
    }

    #[test]
    fn order_keeps_the_smallest_and_draws_between_equal_ones() {
        let csv = "person,day,disease\na,9,flu\na,10,HIV\na,,cold\nb,3,flu\nb,3,HIV\nc,,flu\nc,5,cold\n";
        let kept = |key| keep(csv, 1, Some("day"), key).rows;
        let mut of_b = std::collections::BTreeSet::new();
        for key in 0..40 {
            let rows = kept(key);
            // numbers go by their size, and rows without one come last
            assert_eq!((rows[0].as_str(), rows[2].as_str()), ("a,9,flu", "c,5,cold"));
            of_b.insert(rows[1].clone());
        }
        assert_eq!(of_b.len(), 2, "{of_b:?}");
        assert!(matches!(
            try_keep(csv.to_owned(), 1, Some("year"), 1),
            Err(ContributionError::UnknownOrder(name)) if name == "year"
        ));
    }

    #[test]
    fn columns_tied_to_an_order_are_named() {
        let rows = visits(400);
        // the day follows from the number of the visit and determines the disease
        assert_eq!(keep(&table(&rows), 1, Some("day"), 1).chose_rows, [false, true, true, true]);
        assert_eq!(keep(&table(&rows), 1, None, 1).chose_rows, [false; 4]);
    }

    #[test]
    fn row_without_a_person_is_refused() {
        let refused = try_keep("person,x\na,1\n,2\n".to_owned(), 1, None, 1).err().unwrap();
        assert_eq!(refused.to_string(), "row 2 has no value of person, which identifies persons");
    }
}
