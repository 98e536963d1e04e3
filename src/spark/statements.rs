//! The statements of a release, as texts: of columns, of keyed rows, of parts.

use super::kinds::SqlKind;
use super::source::{identifier, parquet};
use crate::engine::{PublishedRemoteColumn, RemoteBuckets};

/// How names begin that statements give to columns next to published ones; no column of a table may begin so.
pub(super) const RESERVED: &str = "guardian_";
/// The column of the file of a row.
pub(super) const FILE: &str = "guardian_file";
/// The number of one array: an engine refuses longer ones.
const ARRAY: u64 = 1 << 16;
/// The rows that equal a distinct one.
pub(super) const EQUAL_ROWS: &str = "guardian_rows";
/// The most rows of a relation that is sent to every task.
const MOST_SENT: usize = 1 << 16;
/// The most rows of one file of a part.
const ROWS_OF_FILE: u64 = 1 << 21;
/// Rows of a slice of the keyed number: a task sorts about as many.
const ROWS_OF_SLICE: u64 = 1 << 20;
/// The bits of the keyed number.
const BITS: u32 = 60;

/// The number of files of a part.
pub(super) const fn files(rows: u64) -> u64 {
    let files = rows.div_ceil(ROWS_OF_FILE);
    if files == 0 { 1 } else { files }
}

/// The bits by which the keyed number is cut into slices: at most 12.
pub(super) const fn slice_bits(rows: u64) -> u32 {
    let slices = rows / ROWS_OF_SLICE;
    let bits = u64::BITS - slices.leading_zeros();
    if bits > 12 { 12 } else { bits }
}

/// The name of a column of the source in all statements: names of the table stand only in the first and in the last ones.
pub(super) fn column(place: usize) -> String {
    format!("c{place}")
}

/// Columns by name, separated by commas, with a prefix.
pub(super) fn list(prefix: &str, columns: &[String]) -> String {
    columns.iter().map(|column| format!("{prefix}{column}")).collect::<Vec<_>>().join(", ")
}

/// The encoding of a cell: a missing one is a dash; others are the length of their text in bytes, a colon and the text.
pub(super) fn cell(column: &str) -> String {
    let text = format!("cast({column} as string)");
    format!("case when {column} is null then '-' else cast(octet_length({text}) as string) || ':' || {text} end")
}

fn encoded(columns: &[String]) -> String {
    columns.iter().map(|column| format!("({})", cell(column))).collect::<Vec<_>>().join(" || ")
}

/// The first 60 bits of a digest in hexadecimal.
fn number(digest: &str) -> String {
    format!("cast(conv(substr({digest}, 1, 15), 16, 10) as bigint)")
}

/// Canonical order: missing first.
pub(super) fn order(columns: &[String]) -> String {
    columns.iter().map(|column| format!("{column} asc nulls first")).collect::<Vec<_>>().join(", ")
}

/// The numbers from 0 below `count` for each row, as `x`.
fn numbers(count: &str) -> String {
    let last = ARRAY - 1;
    format!(
        "lateral view explode(sequence(0L, ({count} - 1L) div {ARRAY}L)) e1 as x1 \
         lateral view explode(sequence(x1 * {ARRAY}L, least(x1 * {ARRAY}L + {last}L, {count} - 1L))) e2 as x"
    )
}

/// A table as it is, with the types that are offered.
pub(super) fn copy(columns: &[(String, SqlKind)], source: &str) -> String {
    let cast = |(name, kind): &(String, SqlKind)| {
        let name = identifier(name);
        format!("cast({name} as {}) as {name}", kind.sql())
    };
    format!("select {} from {source}", columns.iter().map(cast).collect::<Vec<_>>().join(", "))
}

/// The statements of one bucketized table. `columns` are all that the release uses.
pub(super) struct BucketStatements<'a> {
    /// The name of the table.
    pub(super) table: &'a str,
    /// The columns of the source view.
    pub(super) columns: &'a [String],
    /// The rows of the table.
    pub(super) rows: u64,
    /// The sensitive attribute and its buckets.
    pub(super) buckets: &'a RemoteBuckets,
}

impl BucketStatements<'_> {
    fn sensitive(&self) -> String {
        column(self.buckets.sensitive.column.column)
    }

    /// Every row with its number among equal rows and its keyed number. Equal rows are numbered before they are hashed: else they
    /// would stand side by side, and neighbouring buckets would say which of them share a value.
    pub(super) fn keyed(&self) -> String {
        let (table, all) = (self.table, list("", self.columns));
        let mut hashed = self.columns.to_vec();
        hashed.push("copy".to_owned());
        let (number, value) = (number(&format!("sha2(k || {}, 256)", encoded(&hashed))), cell(&self.sensitive()));
        let counted = format!("select {all}, count(*) as m from src group by {all}");
        let copies = format!("select z.*, x + 1 as copy from ({counted}) z {}", numbers("m"));
        format!("select {all}, copy, {value} as v, {number} as h from ({copies}) y cross join key_{table}")
    }

    fn slice(&self) -> String {
        format!("shiftright(h, {})", BITS - slice_bits(self.rows))
    }

    /// The rows of each value and slice.
    pub(super) fn counted(&self) -> String {
        let (table, slice) = (self.table, self.slice());
        format!("select v, {slice} as j, count(*) as m from keyed_{table} group by v, {slice}")
    }

    /// The label of a position of a segment `g`.
    fn label(position: &str) -> String {
        format!("cast(1 + (g.a * (g.base + (g.pos + {position}) % g.nb) + g.b) % g.total as int)")
    }

    /// Every row with the label of its bucket: the assignment, which is secret.
    pub(super) fn assigned(&self) -> String {
        let (table, slice) = (self.table, self.slice());
        let (all, ordered, label) = (list("r.", self.columns), order(self.columns), Self::label("o.skip + r.i - g.lo"));
        format!(
            "select /*+ BROADCAST(o, g) */ {all}, {label} as bucket from (select *, {slice} as j, row_number() over (partition by v, \
             {slice} order by h, {ordered}, copy) - 1 as i from keyed_{table}) r join offset_{table} o on o.v = r.v and o.j = r.j join \
             segment_{table} g on g.v = r.v and o.skip + r.i >= g.lo and o.skip + r.i < g.hi"
        )
    }

    /// The part of known attributes, from the assignment that was staged in `folder`.
    pub(super) fn known_part(&self, known: &[PublishedRemoteColumn], folder: &str) -> String {
        part_of_buckets(known, file_of_bucket(self.buckets.plan.buckets(), self.rows), folder)
    }

    /// The sensitive part, from the plan alone.
    pub(super) fn sensitive_part(&self) -> String {
        let (table, label) = (self.table, Self::label("g.lo + x"));
        let file = file_of_bucket(self.buckets.plan.buckets(), self.rows);
        let name = identifier(&self.buckets.sensitive.column.name);
        let made = format!("select {label} as bucket, g.s from piece_{table} g {}", numbers("(g.hi - g.lo)"));
        format!(
            "select bucket, s as {name}, {file} as {FILE} from ({made}) y distribute by {FILE} sort by {FILE}, bucket, {name} asc nulls first"
        )
    }
}

/// The file of a bucket, by its label.
fn file_of_bucket(buckets: u64, rows: u64) -> String {
    let buckets = buckets.div_ceil(files(rows));
    format!("cast((bucket - 1) div {buckets} as int)")
}

/// A part with buckets, from the assignment that was staged in `folder`.
fn part_of_buckets(columns: &[PublishedRemoteColumn], file: String, folder: &str) -> String {
    let names: Vec<String> = columns.iter().map(|of| identifier(&of.name)).collect();
    let (named, staged) = (renamed(columns), parquet(folder));
    let comma = if columns.is_empty() { "" } else { ", " };
    format!(
        "select bucket{comma}{named}, {file} as {FILE} from {staged} distribute by {FILE} sort by {FILE}, bucket{comma}{}",
        order(&names)
    )
}

/// The statement that finds the set of every row, a class or a bucket, by some of its columns.
struct SetStatement<'a> {
    table: &'a str,
    /// The columns of the source view.
    columns: &'a [String],
    /// Those that say the set.
    own: Vec<String>,
    /// What is said of a set, of the relation `m`.
    sets: Vec<String>,
}

impl SetStatement<'_> {
    /// Every row with what is said of its set, by the encodings of its columns.
    fn joined(&self, members: usize) -> String {
        let Self { table, columns, own, sets } = self;
        // a small relation is sent to every task, and a large one fits none
        let joined = if members <= MOST_SENT { "broadcast" } else { "merge" };
        let (all, of_sets, key) = (list("s.", columns), list("", sets), encoded(own));
        format!("select /*+ {joined}(m) */ {all}, {of_sets} from src s join member_{table} m on m.k = {key}")
    }
}

/// The statements of one sliced table. `columns` are all that the release uses.
pub(super) struct SliceStatements<'a> {
    /// The name of the table.
    pub(super) table: &'a str,
    /// The columns of the source view.
    pub(super) columns: &'a [String],
    /// The columns of the table.
    pub(super) known: &'a [PublishedRemoteColumn],
    /// Which of them say the bucket of a row.
    pub(super) members: &'a [usize],
    /// The number of buckets.
    pub(super) buckets: u32,
}

impl SliceStatements<'_> {
    /// Every row with the label of its bucket: the assignment, which is secret.
    pub(super) fn assigned(&self, members: usize) -> String {
        let own = self.members.iter().map(|&at| column(self.known[at].column)).collect();
        let sets = vec!["cast(m.bucket as int) as bucket".to_owned()];
        SetStatement { table: self.table, columns: self.columns, own, sets }.joined(members)
    }

    /// A part, from the assignment that was staged in `folder`.
    pub(super) fn part(&self, columns: &[PublishedRemoteColumn], rows: u64, folder: &str) -> String {
        part_of_buckets(columns, file_of_bucket(self.buckets.into(), rows), folder)
    }
}

/// The statements of one generalized table. `columns` are all that the release uses.
pub(super) struct ClassStatements<'a> {
    /// The name of the table.
    pub(super) table: &'a str,
    /// The columns of the source view.
    pub(super) columns: &'a [String],
    /// The columns of the part.
    pub(super) known: &'a [PublishedRemoteColumn],
    /// Which of them classes share.
    pub(super) generalized: &'a [usize],
}

impl ClassStatements<'_> {
    /// The name of the cell of a quasi-identifier, by its place among them.
    pub(super) fn shared(place: usize) -> String {
        format!("g{place}")
    }

    fn all_shared(&self) -> Vec<String> {
        (0..self.generalized.len()).map(Self::shared).collect()
    }

    /// Every row with its class and what the class shows, by the encodings of its quasi-identifiers.
    pub(super) fn classed(&self, members: usize) -> String {
        let own: Vec<String> = self.generalized.iter().map(|&at| column(self.known[at].column)).collect();
        let shared = self.all_shared().into_iter().map(|name| format!("m.{name}"));
        let sets = std::iter::once("m.class".to_owned()).chain(shared).collect();
        SetStatement { table: self.table, columns: self.columns, own, sets }.joined(members)
    }

    /// The columns of the part, from the rows with their classes.
    pub(super) fn named(&self) -> String {
        let named = |(at, of): (usize, &PublishedRemoteColumn)| {
            let shared = self.generalized.iter().position(|place| *place == at);
            format!("{} as {}", shared.map_or_else(|| column(of.column), Self::shared), identifier(&of.name))
        };
        self.known.iter().enumerate().map(named).collect::<Vec<_>>().join(", ")
    }

    /// The part, from the rows with their classes that were staged in `folder`. The file of a row follows from what it shows.
    pub(super) fn part(&self, rows: u64, folder: &str) -> String {
        let names: Vec<String> = self.known.iter().map(|of| identifier(&of.name)).collect();
        let file = format!("cast({} % {} as int)", number(&format!("sha2({}, 256)", encoded(&names))), files(rows));
        let (named, staged, ordered) = (self.named(), parquet(folder), order(&names));
        format!(
            "select y.*, {file} as {FILE} from (select {named} from {staged}) y distribute by {FILE} sort by {FILE}, {ordered}"
        )
    }

    /// The values behind the cells of each class, by the place of the quasi-identifier.
    pub(super) fn covered(&self, assignment: &str) -> String {
        let pair = |(place, &at): (usize, &usize)| {
            format!("struct(cast({} as string) as v, {} as g)", column(self.known[at].column), Self::shared(place))
        };
        let pairs = self.generalized.iter().enumerate().map(pair).collect::<Vec<_>>().join(", ");
        format!(
            "select at, class, s.v as v, s.g as g from {assignment} lateral view posexplode(array({pairs})) e as at, s group by at, class, \
             s.v, s.g"
        )
    }
}

/// The number of distinct rows of some columns.
pub(super) fn number_of_distinct_rows(columns: &[String]) -> String {
    format!("select count(*) from (select distinct {} from src) x", list("", columns))
}

/// The distinct rows of some columns, with how many rows each stands for.
pub(super) fn distinct_rows(columns: &[String]) -> String {
    let all = list("", columns);
    format!("select {all}, count(*) as {EQUAL_ROWS} from src group by {all}")
}

/// Columns of the source under their published names.
pub(super) fn renamed(columns: &[PublishedRemoteColumn]) -> String {
    let named = columns.iter().map(|of| format!("{} as {}", column(of.column), identifier(&of.name)));
    named.collect::<Vec<_>>().join(", ")
}

/// A table of whole tuples, from the rows that were staged in `folder`. The file of a tuple follows from what it holds.
pub(super) fn plain_part(columns: &[PublishedRemoteColumn], rows: u64, folder: &str) -> String {
    let own: Vec<String> = columns.iter().map(|of| column(of.column)).collect();
    let names: Vec<String> = columns.iter().map(|of| identifier(&of.name)).collect();
    let file = format!("cast({} % {} as int)", number(&format!("sha2({}, 256)", encoded(&own))), files(rows));
    let (named, staged, ordered) = (renamed(columns), parquet(folder), order(&names));
    format!("select {named}, {file} as {FILE} from {staged} distribute by {FILE} sort by {FILE}, {ordered}")
}

/// How many values of a column occur how often.
pub(super) fn frequencies(column: &str) -> String {
    format!("select m, count(*) as values from (select count(*) as m from src group by {column}) x group by m")
}

/// The values of a column as texts, with their rows.
pub(super) fn values(column: &str) -> String {
    format!("select cast({column} as string) as v, count(*) as m from src group by {column}")
}

/// For each of `dependents`, by its place: the groups of `determinant`, and the rows with the most frequent value of their group.
pub(super) fn determined(determinant: &[String], dependents: &[String]) -> String {
    let group = list("", determinant);
    let cells = dependents.iter().map(|column| cell(column)).collect::<Vec<_>>().join(", ");
    format!(
        "select at, count(*) as values, sum(most) as right from (select at, max(m) as most from (select {group}, at, y, count(*) as m \
         from src lateral view posexplode(array({cells})) e as at, y group by {group}, at, y) c group by {group}, at) g group by at"
    )
}

/// The rows that no other row equals in some columns.
pub(super) fn unique(columns: &[String]) -> String {
    format!("select count(*) from (select 1 as x from src group by {} having count(*) = 1) u", list("", columns))
}

/// The rows in groups of `known` with one value of a column, and those in groups where more than half of the rows have one.
pub(super) fn inferred(known: &[String], column: &str) -> String {
    let group = list("", known);
    format!(
        "select sum(case when most = n then n else 0L end) as fixed, sum(case when most * 2L > n then n else 0L end) as likely from \
         (select max(m) as most, sum(m) as n from (select {group}, {column}, count(*) as m from src group by {group}, {column}) c group \
         by {group}) g"
    )
}

/// Rows whose unkeyed hash falls into one of `of` classes: some, and the same whatever the order of rows.
pub(super) fn sample(columns: &[String], of: u64) -> String {
    format!("select * from src where {} % {of} = 0", number(&format!("sha2({}, 256)", encoded(columns))))
}
