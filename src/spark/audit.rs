//! The audit of written files, by statements that know neither plan nor key.
//!
//! They group and count with signs, and use no window, hash or join: other means than those that wrote the files.

use super::source::identifier;
use super::statements::{ClassStatements, cell, list, renamed};
use crate::engine::{PublishedRemoteColumn, RemoteCheck};

/// The relations of a table: its parts as they were written, and the assignment.
pub(super) struct WrittenRelations {
    /// The columns of the source that the release uses.
    pub(super) columns: Vec<String>,
    /// The parts; the last one holds what is protected.
    pub(super) parts: Vec<WrittenRows>,
    /// The rows with their buckets or classes. A plain table has none.
    pub(super) assignment: String,
    /// How the rows were published.
    pub(super) form: WrittenForm,
}

/// How the rows of a table were published.
pub(super) enum WrittenForm {
    /// As they are.
    Plain,
    /// In parts that buckets link.
    Bucketed,
    /// In classes, with the places of the quasi-identifiers among the columns of the part.
    Generalized(Vec<usize>),
}

/// A part as it was written.
pub(super) struct WrittenRows {
    pub(super) columns: Vec<PublishedRemoteColumn>,
    pub(super) relation: String,
}

/// A statement that returns how much breaks a check: 0 where it holds.
pub(super) type CountedCheck = (RemoteCheck, String);

/// The column by which tuples are counted with signs.
const SIGN: &str = "guardian_sign";

/// How many distinct tuples do not occur equally often in both relations.
fn differ(left: &str, right: &str, columns: &[String]) -> String {
    let of = list("", columns);
    format!(
        "select count(*) from (select {of}, sum({SIGN}) from (select {of}, 1 as {SIGN} from {left} union all select {of}, -1 as {SIGN} from \
         {right}) u group by {of} having sum({SIGN}) <> 0) v"
    )
}

impl WrittenRows {
    fn names(&self) -> Vec<String> {
        self.columns.iter().map(|of| identifier(&of.name)).collect()
    }

    /// How its rows differ from those of the source; `None` of a part without columns.
    fn content(&self) -> Option<CountedCheck> {
        let names = self.names();
        let source = format!("(select {} from src) x", renamed(&self.columns));
        (!names.is_empty()).then(|| (RemoteCheck::Content, differ(&source, &self.relation, &names)))
    }

    /// How its rows with their buckets differ from those of the assignment.
    fn linkage(&self, assignment: &str) -> CountedCheck {
        let with_bucket: Vec<String> = std::iter::once("bucket".to_owned()).chain(self.names()).collect();
        let comma = if self.columns.is_empty() { "" } else { ", " };
        let assigned = format!("(select bucket{comma}{} from {assignment}) x", renamed(&self.columns));
        (RemoteCheck::Linkage, differ(&assigned, &self.relation, &with_bucket))
    }
}

impl WrittenRelations {
    /// The statements of all checks that the engine answers.
    pub(super) fn checks(&self) -> Vec<CountedCheck> {
        match &self.form {
            WrittenForm::Plain => self.parts.iter().filter_map(WrittenRows::content).collect(),
            WrittenForm::Bucketed => self.of_buckets(),
            WrittenForm::Generalized(generalized) => {
                self.parts.iter().flat_map(|part| self.of_classes(part, generalized)).collect()
            }
        }
    }

    fn of_classes(&self, part: &WrittenRows, generalized: &[usize]) -> Vec<CountedCheck> {
        let assignment = &self.assignment;
        let made = ClassStatements { table: "", columns: &self.columns, known: &part.columns, generalized };
        let shown: Vec<String> = (0..generalized.len()).map(ClassStatements::shared).collect();
        let (of_rows, shown) = (format!("(select {} from {assignment}) x", made.named()), list("", &shown));
        let distinct = format!("(select distinct class, {shown} from {assignment}) d");
        vec![
            (RemoteCheck::Linkage, differ("src", assignment, &self.columns)),
            (RemoteCheck::Content, differ(&of_rows, &part.relation, &part.names())),
            (
                RemoteCheck::Buckets,
                format!(
                    "select count(*) from (select class from {distinct} group by class having count(*) <> 1 union all select min(class) \
                     from {distinct} group by {shown} having count(*) <> 1) v"
                ),
            ),
        ]
    }

    fn of_buckets(&self) -> Vec<CountedCheck> {
        let Self { columns, parts, assignment, .. } = self;
        let union = |of: &dyn Fn((usize, &WrittenRows)) -> String, word: &str| {
            parts.iter().enumerate().map(of).collect::<Vec<_>>().join(word)
        };
        let rows = union(&|(at, part)| format!("select bucket, {at} as p from {}", part.relation), " union all ");
        let places = |(_, part): (usize, &WrittenRows)| {
            format!("select distinct bucket, _metadata.file_name as f from {}", part.relation)
        };
        let places = union(&places, " union ");
        let differs = (1..parts.len()).map(|at| format!("count_if(p = {at}) <> count_if(p = 0)"));
        let differs = differs.collect::<Vec<_>>().join(" or ");
        let mut checks: Vec<CountedCheck> = parts.iter().filter_map(WrittenRows::content).collect();
        checks.push((RemoteCheck::Linkage, differ("src", assignment, columns)));
        checks.extend(parts.iter().map(|part| part.linkage(assignment)));
        if !differs.is_empty() {
            let sql =
                format!("select count(*) from (select bucket from ({rows}) a group by bucket having {differs}) b");
            checks.push((RemoteCheck::Buckets, sql));
        }
        checks.extend(parts.last().map(|part| {
            let sql = format!(
                "select case when min(bucket) = 1 and max(bucket) = count(distinct bucket) then 0L else 1L end from {}",
                part.relation
            );
            (RemoteCheck::Buckets, sql)
        }));
        let sql =
            format!("select count(*) from (select bucket from ({places}) a group by bucket having count(*) <> 1) b");
        checks.push((RemoteCheck::Place, sql));
        checks
    }
}

/// How many buckets of a part have how many rows.
pub(super) fn sizes(part: &str) -> String {
    format!("select n, count(*) from (select count(*) as n from {part} group by bucket) b group by n")
}

/// The contents of the buckets or classes of a part, whose rows agree in some columns: the encoded values with their rows, in JSON, and
/// how many buckets have them. Without a protected column rows count as rows of one value, an empty text.
pub(super) fn contents(part: &str, agreeing: &[String], sensitive: Option<&str>) -> String {
    let of = list("", agreeing);
    let listed = match sensitive {
        None => format!("select to_json(array(struct('' as v, count(*) as n))) as content from {part} group by {of}"),
        Some(name) => {
            let counted = format!("select {of}, {} as v, count(*) as n from {part} group by {of}, {name}", cell(name));
            format!(
                "select to_json(array_sort(collect_list(struct(v, n)))) as content from ({counted}) a group by {of}"
            )
        }
    };
    format!("select content, count(*) as buckets from ({listed}) b group by content")
}
