//! An audit from outside: reads the files of a release and the original, by its own means, and judges the release by its own
//! definitions. Takes nothing from the library.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;

/// The parts of a release, by the names of their files.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A rule: an adversary who knows `known` must not learn `sensitive` with more than 1/l.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) known: Vec<usize>,
    pub(crate) sensitive: usize,
    pub(crate) l: usize,
}

/// The original, each value replaced by its rank among the values of its column.
pub(crate) struct Original {
    pub(crate) names: Vec<String>,
    columns: Vec<Vec<u32>>,
    ranks: Vec<HashMap<String, u32>>,
}

impl Original {
    pub(crate) fn read(csv: impl Read) -> Self {
        let mut reader = csv::Reader::from_reader(csv);
        let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let mut seen: Vec<HashMap<String, u32>> = vec![HashMap::new(); names.len()];
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).unwrap() {
            for (at, cell) in record.iter().enumerate() {
                let next = seen[at].len() as u32;
                let number = match seen[at].get(cell) {
                    Some(&number) => number,
                    None => {
                        seen[at].insert(cell.to_owned(), next);
                        next
                    }
                };
                columns[at].push(number);
            }
        }
        let mut ranks = Vec::new();
        for (seen, column) in seen.into_iter().zip(&mut columns) {
            let mut values: Vec<(String, u32)> = seen.into_iter().collect();
            let numeric = values.iter().all(|(value, _)| value.is_empty() || number(value).is_some());
            values.sort_by(|(a, _), (b, _)| in_order(numeric, a, b));
            let mut rank_of = vec![0; values.len()];
            for (rank, (_, number)) in values.iter().enumerate() {
                rank_of[*number as usize] = rank as u32;
            }
            column.iter_mut().for_each(|number| *number = rank_of[*number as usize]);
            ranks.push(values.into_iter().enumerate().map(|(rank, (value, _))| (value, rank as u32)).collect());
        }
        Self { names, columns, ranks }
    }

    pub(crate) fn rows(&self) -> usize {
        self.columns[0].len()
    }

    /// How often the most frequent value of a column occurs.
    pub(crate) fn most(&self, column: usize) -> usize {
        let mut counts = vec![0; self.ranks[column].len()];
        self.columns[column].iter().for_each(|&rank| counts[rank as usize] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    fn projection(&self, columns: &[usize]) -> Vec<Vec<u32>> {
        let mut rows: Vec<Vec<u32>> =
            (0..self.rows()).map(|row| columns.iter().map(|&column| self.columns[column][row]).collect()).collect();
        rows.sort_unstable();
        rows
    }
}

fn number(value: &str) -> Option<i64> {
    value.parse::<i64>().ok().filter(|number| number.to_string() == value)
}

/// Missing first, integers by number, text by bytes.
fn in_order(numeric: bool, a: &str, b: &str) -> Ordering {
    if numeric { number(a).cmp(&number(b)) } else { a.as_bytes().cmp(b.as_bytes()) }
}

/// A part as its file has it: values by rank, rows in the order of the file, each with its bucket where there are buckets.
struct Part {
    columns: Vec<usize>,
    rows: Vec<Vec<u32>>,
    buckets: Option<Vec<u32>>,
}

impl Part {
    fn read(file: &str, csv: &[u8], original: &Original) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(csv);
        let mut header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let bucketed = header[0] == "bucket";
        if bucketed {
            header.remove(0);
        }
        let column = |name: &String| original.names.iter().position(|column| column == name);
        let columns: Option<Vec<usize>> = header.iter().map(column).collect();
        let columns = columns.ok_or_else(|| format!("{file}: a column that the original does not have"))?;
        let (mut rows, mut buckets) = (Vec::new(), Vec::new());
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(|error| format!("{file}: {error}"))? {
            let mut cells = record.iter();
            if bucketed {
                buckets.push(cells.next().unwrap().parse().map_err(|_| format!("{file}: a bucket is no number"))?);
            }
            let row: Option<Vec<u32>> =
                columns.iter().zip(cells).map(|(&column, cell)| original.ranks[column].get(cell).copied()).collect();
            rows.push(row.ok_or_else(|| format!("{file}: a value that the original does not have"))?);
        }
        Ok(Self { columns, rows, buckets: bucketed.then_some(buckets) })
    }

    /// Rows come by bucket, then by value from left to right; columns in the order of the original.
    fn in_canonical_order(&self) -> bool {
        let key = |row: usize| (self.buckets.as_ref().map(|buckets| buckets[row]), &self.rows[row]);
        (1..self.rows.len()).all(|row| key(row - 1) <= key(row)) && self.columns.is_sorted()
    }

    fn holds(&self, original: &Original) -> bool {
        let mut rows = self.rows.clone();
        rows.sort_unstable();
        rows == original.projection(&self.columns)
    }

    /// The rows of every bucket.
    fn by_bucket(&self) -> BTreeMap<u32, Vec<&Vec<u32>>> {
        let mut of: BTreeMap<u32, Vec<&Vec<u32>>> = BTreeMap::new();
        for (bucket, row) in self.buckets.iter().flatten().zip(&self.rows) {
            of.entry(*bucket).or_default().push(row);
        }
        of
    }
}

/// A table: all its attributes, and the one that it hides, at which diversity.
struct Table {
    attributes: BTreeSet<usize>,
    hides: Option<(usize, usize)>,
}

/// Judges a release of the columns `used` under `rules`. `files` are its parts. Returns how many of its tables are bucketized.
pub(crate) fn audit(original: &Original, files: &Files, used: &[usize], rules: &[Rule]) -> Result<usize, String> {
    let mut parts_of: BTreeMap<&str, BTreeMap<&str, Part>> = BTreeMap::new();
    for (file, csv) in files {
        let [table, part, "csv"] = file.split('.').collect::<Vec<_>>()[..] else {
            return Err(format!("{file} is no part"));
        };
        let read = Part::read(file, csv, original)?;
        if !read.in_canonical_order() {
            return Err(format!("{file} is not in canonical order"));
        }
        if !read.holds(original) {
            return Err(format!("{file} is not a projection of the original"));
        }
        parts_of.entry(table).or_default().insert(part, read);
    }
    let tables: Vec<Table> = parts_of.iter().map(|(name, parts)| table(name, parts)).collect::<Result<_, _>>()?;
    let published: BTreeSet<usize> = tables.iter().flat_map(|table| &table.attributes).copied().collect();
    if published != used.iter().copied().collect() {
        return Err("other attributes are published than were asked for".to_owned());
    }
    rules.iter().try_for_each(|rule| holds(&tables, original, rule))?;
    Ok(tables.iter().filter(|table| table.hides.is_some()).count())
}

fn table(name: &str, parts: &BTreeMap<&str, Part>) -> Result<Table, String> {
    let names: Vec<&str> = parts.keys().copied().collect();
    match (&names[..], parts.values().collect::<Vec<_>>().as_slice()) {
        (["rows"], [rows]) if rows.buckets.is_none() => {
            Ok(Table { attributes: rows.columns.iter().copied().collect(), hides: None })
        }
        (["qi", "sa"], [qi, sa]) if qi.buckets.is_some() && sa.buckets.is_some() && sa.columns.len() == 1 => {
            let (known, hidden) = (qi.by_bucket(), sa.by_bucket());
            if !known.keys().copied().eq(1..=known.len() as u32) || !known.keys().eq(hidden.keys()) {
                return Err(format!("{name}: buckets are not 1, 2, ... in both parts"));
            }
            let mut diversity = usize::MAX;
            for (bucket, values) in &hidden {
                if known[bucket].len() != values.len() {
                    return Err(format!("{name}: the parts disagree on the size of bucket {bucket}"));
                }
                let times = |value| values.iter().filter(|other| **other == value).count();
                let most = values.iter().map(|value| times(*value)).max().unwrap_or(0);
                diversity = diversity.min(values.len() / most);
            }
            if qi.columns.contains(&sa.columns[0]) {
                return Err(format!("{name}: the hidden attribute stands beside the known ones"));
            }
            let attributes = qi.columns.iter().chain(&sa.columns).copied().collect();
            Ok(Table { attributes, hides: Some((sa.columns[0], diversity)) })
        }
        _ => Err(format!("{name} has other parts than a table has: {names:?}")),
    }
}

/// Whether a chain of tables, each sharing an attribute with the next, leads from one of `from` to `to`: every chain is walked.
fn chain(from: &[usize], to: usize, tables: &[BTreeSet<usize>]) -> bool {
    fn walk(at: usize, to: usize, tables: &[BTreeSet<usize>], walked: &mut Vec<usize>) -> bool {
        (0..tables.len()).any(|next| {
            if walked.contains(&next) || !tables[next].contains(&at) {
                return false;
            }
            if tables[next].contains(&to) {
                return true;
            }
            walked.push(next);
            let found = tables[next].iter().any(|&attribute| attribute != at && walk(attribute, to, tables, walked));
            walked.pop();
            found
        })
    }
    from.iter().any(|&attribute| walk(attribute, to, tables, &mut Vec::new()))
}

/// Guardian Normal Form for one rule: no chain leads to the sensitive attribute, or a table guards it.
fn holds(tables: &[Table], original: &Original, rule: &Rule) -> Result<(), String> {
    if original.most(rule.sensitive) * rule.l > original.rows() {
        return Err(format!("{rule:?}: the column alone says too much"));
    }
    let schemas: Vec<BTreeSet<usize>> = tables.iter().map(|table| table.attributes.clone()).collect();
    if !chain(&rule.known, rule.sensitive, &schemas) {
        return Ok(());
    }
    let guards = (0..tables.len()).any(|guard| {
        let mut without = schemas.clone();
        without[guard].remove(&rule.sensitive);
        tables[guard].hides.is_some_and(|(hidden, l)| hidden == rule.sensitive && l >= rule.l)
            && !chain(&rule.known, rule.sensitive, &without)
    });
    if guards { Ok(()) } else { Err(format!("{rule:?} is broken")) }
}
