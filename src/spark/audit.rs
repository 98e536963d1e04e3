//! The audit of written files, by statements that know neither plan nor key.
//!
//! They group and count with signs, and use no window, hash or join: other means than those that wrote the files.

use super::source::identifier;
use super::statements::{ClassStatements, cell, column, list, renamed};
use crate::engine::{PublishedRemoteColumn, RemoteCheck};

/// The relations of a table: its parts as they were written, and the assignment.
pub(super) struct WrittenRelations {
    /// The columns of the source that the release uses.
    pub(super) columns: Vec<String>,
    /// The known attributes.
    pub(super) known: Vec<PublishedRemoteColumn>,
    /// The part of known attributes, or the plain table.
    pub(super) part: String,
    /// The sensitive attribute, its part, and the assignment; `None` of other tables.
    pub(super) buckets: Option<WrittenBuckets>,
    /// What a generalized table has; `None` of other tables.
    pub(super) classes: Option<WrittenClasses>,
}

/// The relations of a generalized table.
pub(super) struct WrittenClasses {
    /// The places of the quasi-identifiers among the columns of the part.
    pub(super) generalized: Vec<usize>,
    /// The rows with their classes.
    pub(super) assignment: String,
}

/// The relations of a table with buckets.
pub(super) struct WrittenBuckets {
    pub(super) sensitive: PublishedRemoteColumn,
    pub(super) part: String,
    pub(super) assignment: String,
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

impl WrittenRelations {
    fn names(&self) -> Vec<String> {
        self.known.iter().map(|of| identifier(&of.name)).collect()
    }

    /// The statements of all checks that the engine answers.
    pub(super) fn checks(&self) -> Vec<CountedCheck> {
        let (names, part) = (self.names(), &self.part);
        if let Some(classes) = &self.classes {
            return self.of_classes(classes);
        }
        let mut checks = Vec::new();
        if !names.is_empty() {
            let source = format!("(select {} from src) x", renamed(&self.known));
            checks.push((RemoteCheck::Content, differ(&source, part, &names)));
        }
        checks.extend(self.buckets.as_ref().map(|buckets| self.of_buckets(buckets)).unwrap_or_default());
        checks
    }

    fn of_classes(&self, WrittenClasses { generalized, assignment }: &WrittenClasses) -> Vec<CountedCheck> {
        let made = ClassStatements { table: "", columns: &self.columns, known: &self.known, generalized };
        let shown: Vec<String> = (0..generalized.len()).map(ClassStatements::shared).collect();
        let (of_rows, shown) = (format!("(select {} from {assignment}) x", made.named()), list("", &shown));
        let distinct = format!("(select distinct class, {shown} from {assignment}) d");
        vec![
            (RemoteCheck::Linkage, differ("src", assignment, &self.columns)),
            (RemoteCheck::Content, differ(&of_rows, &self.part, &self.names())),
            (
                RemoteCheck::Buckets,
                format!(
                    "select count(*) from (select class from {distinct} group by class having count(*) <> 1 union all select min(class) \
                     from {distinct} group by {shown} having count(*) <> 1) v"
                ),
            ),
        ]
    }

    fn of_buckets(&self, WrittenBuckets { sensitive, part: values, assignment }: &WrittenBuckets) -> Vec<CountedCheck> {
        let (names, part) = (self.names(), &self.part);
        let (own, name) = (column(sensitive.column), identifier(&sensitive.name));
        let bucket = || "bucket".to_owned();
        let with_bucket: Vec<String> = std::iter::once(bucket()).chain(names).collect();
        let comma = if self.known.is_empty() { "" } else { ", " };
        let known = format!("(select bucket{comma}{} from {assignment}) x", renamed(&self.known));
        let protected = format!("(select bucket, {own} as {name} from {assignment}) x");
        let alone = format!("(select {own} as {name} from src) x");
        vec![
            (RemoteCheck::Content, differ(&alone, values, std::slice::from_ref(&name))),
            (RemoteCheck::Linkage, differ("src", assignment, &self.columns)),
            (RemoteCheck::Linkage, differ(&known, part, &with_bucket)),
            (RemoteCheck::Linkage, differ(&protected, values, &[bucket(), name])),
            (
                RemoteCheck::Buckets,
                format!(
                    "select count(*) from (select bucket from (select bucket, 1 as q, 0 as s from {part} union all select bucket, 0, 1 from \
                     {values}) a group by bucket having sum(q) <> sum(s)) b"
                ),
            ),
            (
                RemoteCheck::Buckets,
                format!(
                    "select case when min(bucket) = 1 and max(bucket) = count(distinct bucket) then 0L else 1L end from {values}"
                ),
            ),
            (
                RemoteCheck::Place,
                format!(
                    "select count(*) from (select bucket from (select distinct bucket, _metadata.file_name as f from {part} union select \
                     distinct bucket, _metadata.file_name from {values}) a group by bucket having count(*) <> 1) b"
                ),
            ),
        ]
    }
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
