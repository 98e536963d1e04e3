//! The tables of a request for a verification, and the files that hold them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::microdata::CellShape;
use crate::microdata::formats::InputFormat;
use crate::problem::{Fault, Kind};
use crate::publication::RowMeaning;
use crate::spec::grammar::document::{
    Array, DatasetColumns, Document, Entries, EntryValue, Member, MemberContext, SchemaMap, define_as, document,
    one_of, reference, scalar,
};
use crate::spec::grammar::reader::{FaultList, child};

/// The most tables of a request, and the most parts of a table.
pub(in crate::spec) const MAX_TABLES: usize = 100;

const PARTS: &str = "an array of 1 to 100 parts";

/// The part of a form that holds the request.
pub const REQUEST: &str = "request";

document! {
    /// A table in one part, or in several that are tied by `bucket`.
    TableMembers as "GivenTable" {
        required name: Name,
        required parts: Array<PartMembers, 1, MAX_TABLES> => PARTS,
    }
}

document! {
    /// One file of a table.
    PartMembers as "GivenPart" {
        /// Its name in the table; `rows` when not given for the only part.
        optional name: Name,
        include file: FileMembers,
        /// Whether a column `bucket` ties its rows to those of the other parts. Needed with several parts.
        optional bucketed: bool,
        optional row_meaning: SubmittedRowMeaning = SubmittedRowMeaning(RowMeaning::Tuples),
        optional cells: Entries<CellShape>,
    }
}

document! {
    /// The table that the others are said to be made from: each part must be a projection of it.
    OriginalMembers as "GivenOriginal" {
        include file: FileMembers,
    }
}

document! {
    /// A file of a form.
    FileMembers as "GivenFile" {
        /// The name of the part of the form that holds it. An ending such as `.csv`, `.parquet` or `.csv.gz` says how it is packed.
        required file: Name,
        optional format: InputFormat,
    }
}

/// A name of a table, a part or a file.
#[derive(Clone, Debug)]
pub(in crate::spec) struct Name(String);

scalar! {
    Name: "a name of 1 to 200 characters",
    |value| value.as_str().filter(|text| (1..=200).contains(&text.chars().count())).map(|text| Self(text.to_owned())),
    |name| name.0.as_str().into(),
    {"type": "string", "minLength": 1, "maxLength": 200}
}

scalar! {
    InputFormat as "TableFormat": one_of(&Self::ALL.map(Self::media_type)),
    |value| Self::of_media_type(value.as_str()?),
    |format| format.media_type().into(),
    {
        "type": "string",
        "enum": InputFormat::ALL.map(InputFormat::media_type),
        "description": "What a file is written in. When not given, its Content-Type or the end of its name tells.",
    }
}

scalar! {
    CellShape as "CellKind": "one of exact, interval, node, set, suppressed",
    |value| serde_json::from_value(value.clone()).ok(),
    |shape| json!(shape),
    {
        "type": "string",
        "enum": ["exact", "interval", "node", "set", "suppressed"],
        "description": "What the cells of a column hold. All but exact ones are compared as they are written; nodes are held against \
            the taxonomy of the column where `taxonomies` states one, and beside an original each row must have a cell that covers its \
            value.",
    }
}

impl EntryValue for CellShape {
    const OBJECT: &'static str = "CellKinds";

    const ABOUT: &'static str = "Columns whose cells are not exact.";
}

/// What a row of a submitted part stands for.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) struct SubmittedRowMeaning(RowMeaning);

impl Member for SubmittedRowMeaning {
    fn allowed() -> String {
        one_of(&["tuples", "values"])
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        match value.as_str() {
            Some("tuples") => Some(Self(RowMeaning::Tuples)),
            Some("values") => Some(Self(RowMeaning::Values)),
            Some("tuples_and_counterfeits") => {
                let detail =
                    "a submitted table with counterfeits is not verified yet; submit a part of `tuples` or `values`";
                context.faults.unsupported(context.pointer.as_str(), detail);
                None
            }
            _ => context.refuse(),
        }
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        json!(self.0.kind())
    }

    fn schema() -> Value {
        reference("RowMeaning")
    }

    fn define(schemas: &mut SchemaMap) {
        let schema = json!({
            "type": "string",
            "enum": ["tuples", "values"],
            "description": "What a row stands for: a tuple of the original, or a value that occurs in the bucket, however often.",
        });
        define_as("RowMeaning", schema, schemas);
    }
}

/// A file that a request names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedFile {
    /// Its name, which is that of a part of the form.
    pub file: String,
    /// The format, where the request names it.
    pub format: Option<InputFormat>,
    /// Where the request names it.
    pub pointer: String,
}

/// A part of a submitted table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedPart {
    /// Its name in the table.
    pub name: String,
    /// Where its rows are.
    pub file: SubmittedFile,
    /// Whether a column `bucket` ties its rows to those of other parts.
    pub bucketed: bool,
    /// What a row stands for.
    pub meaning: RowMeaning,
    /// Columns whose cells are not exact, each with where that is said, and what they hold.
    pub cells: BTreeMap<String, (String, CellShape)>,
    /// Where the request states it.
    pub pointer: String,
}

/// A submitted table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubmittedTable {
    /// Its name, unique in the request.
    pub name: String,
    /// At least one.
    pub parts: Vec<SubmittedPart>,
}

impl TableMembers {
    /// The table; `None` after a fault.
    pub(in crate::spec) fn submitted(&self, faults: &mut FaultList) -> Option<SubmittedTable> {
        let parts = self.parts.items();
        if parts.is_empty() && !self.parts.is_faulty {
            faults.range(self.at("parts"), PARTS);
        }
        let is_only = parts.len() == 1;
        let read = parts.iter().map(|part| part.value.as_ref().and_then(|part| part.submitted(is_only, faults)));
        let read: Vec<Option<SubmittedPart>> = read.collect();
        let parts = read.into_iter().collect::<Option<Vec<SubmittedPart>>>()?;
        Some(SubmittedTable { name: self.name.value.clone()?.0, parts })
    }
}

impl PartMembers {
    fn submitted(&self, is_only: bool, faults: &mut FaultList) -> Option<SubmittedPart> {
        let name = match &self.name.value {
            None if is_only && !self.name.is_faulty => Some("rows".to_owned()),
            name => name.as_ref().map(|name| name.0.clone()),
        };
        if name.is_none() && !self.name.is_faulty {
            faults.range(self.at("name"), &Name::allowed());
        }
        if !is_only && self.bucketed.value != Some(true) && !self.bucketed.is_faulty {
            let detail = "the parts of a table are tied by bucket: state bucketed true for each, or several tables";
            faults.push(Fault::new(self.at("bucketed"), Kind::BadColumns, detail));
        }
        let cells = self.cells.value.iter().flat_map(|cells| &cells.0);
        let cells = cells.filter_map(|entry| {
            let shape = entry.value.value.filter(|shape| *shape != CellShape::Exact)?;
            Some((entry.name.clone(), (entry.pointer.clone(), shape)))
        });
        let (cells, file) = (cells.collect(), self.file.submitted(faults));
        Some(SubmittedPart {
            name: name?,
            file: file?,
            bucketed: self.bucketed.value.unwrap_or(false),
            meaning: self.row_meaning.0,
            cells,
            pointer: self.pointer.clone(),
        })
    }
}

impl FileMembers {
    /// The file; `None` after a fault.
    pub(in crate::spec) fn submitted(&self, faults: &mut FaultList) -> Option<SubmittedFile> {
        let (file, pointer) = (self.file.value.clone()?.0, self.at("file"));
        if file == REQUEST {
            faults.range(pointer.as_str(), "another name than \"request\", which is that of the request itself");
        }
        Some(SubmittedFile { file, format: self.format.value, pointer })
    }
}

/// Reports tables, parts of a table and files that have the name of another.
pub(in crate::spec) fn check_names(
    tables: &[SubmittedTable],
    original: Option<&SubmittedFile>,
    faults: &mut FaultList,
) {
    let mut repeated = |pointer: String, what: &str, name: &str| {
        faults.push(Fault::new(pointer, Kind::BadColumns, format!("two {what} are called {name}")));
    };
    let (mut names, mut files) = (BTreeSet::new(), BTreeSet::new());
    for (index, table) in tables.iter().enumerate() {
        if !names.insert(&table.name) {
            repeated(format!("/tables/{index}/name"), "tables", &table.name);
        }
        let mut parts = BTreeSet::new();
        for part in table.parts.iter().filter(|part| !parts.insert(&part.name)) {
            repeated(child(&part.pointer, "name"), "parts of a table", &part.name);
        }
    }
    let all = tables.iter().flat_map(|table| &table.parts).map(|part| &part.file).chain(original);
    for file in all.filter(|file| !files.insert(&file.file)) {
        repeated(file.pointer.clone(), "files", &file.file);
    }
}
