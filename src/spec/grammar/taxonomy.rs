//! Taxonomies, as trees in documents and as rows of levels in a file.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use utoipa::PartialSchema;

use super::attributes::DatasetColumns;
use super::document::{Document, Member, MemberContext, SchemaMap, define_as, document, reference};
use super::reader::{FaultList, child, column_value};
use super::versioned_name::{VersionedName, is_policy_name};
use crate::microdata::Taxonomy;
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::{Record, RecordError, Scanner, detect_delimiter};
use crate::microdata::taxonomy::{TaxonomyBuilder, TaxonomyError};
use crate::problem::{Fault, Kind, Problem};

/// The most faults that are reported for one taxonomy.
const MAX_FAULTS: usize = 100;

const TREE: &str = "an object with one member: the root, which is an object of nodes or an array of values";

const NODE: &str = "an object of nodes, or an array of values and of objects of nodes, with at least one member";

const VALUE: &str = "a value as text, a number, true, false or null, or an object of nodes";

const LABEL: &str = "a name of 1 to 200 characters";

/// The most characters of the label of a node that is no leaf: pointers name all of them on the path.
const MAX_LABEL: usize = 200;

/// The root of rows that end in several nodes.
const TOP: &str = "*";

/// Reads a tree; `None` after a fault, of which all are named.
pub fn taxonomy(value: &Value, pointer: &str, faults: &mut FaultList) -> Option<Arc<Taxonomy>> {
    let members = value.as_object().filter(|members| members.len() == 1);
    let Some((root, below)) = members.and_then(|members| members.iter().next()) else {
        faults.range(pointer, TREE);
        return None;
    };
    if is_long(root) {
        faults.range(pointer, LABEL);
        return None;
    }
    let mut reader = TaxonomyReader {
        growing: TaxonomyBuilder::from_root(root),
        faults,
        first: String::new(),
        found: 0,
        too_large: false,
    };
    let at = child(pointer, root);
    if root.is_empty() {
        reader.range(at.clone(), LABEL);
    }
    reader.below(0, below, &at);
    let TaxonomyReader { growing, first, found, too_large, .. } = reader;
    if too_large {
        faults.range(pointer, &format!("a tree of at most {} nodes", crate::microdata::taxonomy::MAX_NODES));
    }
    if growing.repeated() > 0 {
        let detail = format!(
            "labels that stand for more than one node or value: {}, the first of them again at {first}",
            growing.repeated()
        );
        faults.push(conflict(pointer, growing.repeated(), detail));
    }
    growing.finish().filter(|_| found == 0 && !too_large).map(Arc::new)
}

fn is_long(label: &str) -> bool {
    label.chars().count() > MAX_LABEL
}

fn conflict(pointer: &str, count: usize, detail: String) -> Fault {
    Fault::new(pointer, Kind::TaxonomyConflict, detail).with("count", count)
}

struct TaxonomyReader<'f> {
    growing: TaxonomyBuilder,
    faults: &'f mut FaultList,
    /// Where a label stands that stood before.
    first: String,
    /// How many faults of other kinds there are.
    found: usize,
    too_large: bool,
}

impl TaxonomyReader<'_> {
    fn range(&mut self, pointer: String, allowed: &str) {
        self.found += 1;
        if self.found <= MAX_FAULTS {
            self.faults.range(pointer, allowed);
        }
    }

    /// Adds what stands below a node.
    fn below(&mut self, node: usize, value: &Value, pointer: &str) {
        match value {
            Value::Object(nodes) if !nodes.is_empty() => self.nodes(node, nodes, pointer),
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    let at = || child(pointer, &index.to_string());
                    match (item, text(item)) {
                        (Value::Object(nodes), _) if !nodes.is_empty() => self.nodes(node, nodes, &at()),
                        (_, Some(label)) => {
                            // what is wrong with it is noted
                            let _ = self.add(node, label.as_deref(), &at);
                        }
                        _ => self.range(at(), VALUE),
                    }
                    if self.too_large {
                        return;
                    }
                }
            }
            _ => self.range(pointer.to_owned(), NODE),
        }
    }

    fn nodes(&mut self, node: usize, nodes: &Map<String, Value>, pointer: &str) {
        for (label, value) in nodes {
            if is_long(label) {
                self.range(pointer.to_owned(), LABEL);
                continue;
            }
            let at = child(pointer, label);
            if label.is_empty() {
                self.range(at.clone(), LABEL);
            }
            // what is below a repeated label is looked at, too
            let place = self.add(node, Some(label), &|| at.clone());
            match place {
                Ok(added) => self.below(added, value, &at),
                Err(TaxonomyError::Repeated) => self.below(node, value, &at),
                Err(TaxonomyError::TooDeep | TaxonomyError::TooLarge) => {}
            }
            if self.too_large {
                return;
            }
        }
    }

    fn add(&mut self, node: usize, label: Option<&str>, pointer: &dyn Fn() -> String) -> Result<usize, TaxonomyError> {
        let added = self.growing.add(node, label);
        match added {
            Err(TaxonomyError::Repeated) if self.first.is_empty() => self.first = pointer(),
            Err(TaxonomyError::TooDeep) => {
                let depth = crate::microdata::taxonomy::MAX_DEPTH;
                self.range(pointer(), &format!("at most {depth} steps below the root"));
            }
            Err(TaxonomyError::TooLarge) => self.too_large = true,
            Ok(_) | Err(TaxonomyError::Repeated) => {}
        }
        added
    }
}

/// A value of a column, decimals included: `Some(None)` is the missing one.
fn text(value: &Value) -> Option<Option<String>> {
    // digits alone: no column holds an exponent
    let decimal = || Some(value.as_number()?.to_string()).filter(|written| !written.contains(['e', 'E']));
    column_value(value).or_else(|| decimal().map(Some))
}

impl Member for Arc<Taxonomy> {
    fn allowed() -> String {
        TREE.to_owned()
    }

    fn read(value: &Value, context: &mut MemberContext<'_, '_>) -> Option<Self> {
        taxonomy(value, &context.pointer, context.faults)
    }

    fn write(&self, _columns: &DatasetColumns<'_>) -> Value {
        self.written()
    }

    fn schema() -> Value {
        reference("Taxonomy")
    }

    fn define(schemas: &mut SchemaMap) {
        let schema = json!(<Taxonomy as PartialSchema>::schema());
        define_as("Taxonomy", schema, schemas);
    }
}

document! {
    /// The document of a new taxonomy version.
    TaxonomyMembers as "TaxonomyDocument" {
        /// What is kept.
        required taxonomy: Arc<Taxonomy>,
    }
}

/// The tree in a document that is to become a version of a taxonomy.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read_taxonomy(document: &Value) -> Result<Arc<Taxonomy>, Vec<Fault>> {
    TaxonomyMembers::read_document(document, &DatasetColumns::default(), |members, _| members.taxonomy.value)
}

/// The tree in a CSV file with a header and one row for each value: the value, then the nodes above it, the nearest first. A node
/// that is named again right above itself, and an empty field behind the value, say nothing. Where rows end in several nodes,
/// a root `*` stands above these.
///
/// # Errors
/// `upload-malformed` when it is no CSV, or `invalid-specification` with everything that is wrong with the tree.
pub fn read_levels(bytes: &[u8]) -> Result<Arc<Taxonomy>, Problem> {
    let limits = IngestLimits::default();
    let mut scanner = Scanner::new(bytes, detect_delimiter(bytes, true, &limits), &limits);
    let Some(header) = scanner.next_record().map_err(unscanned)? else {
        return Err(Problem::new(Kind::EmptyTable, "there is not even a header"));
    };
    let header = path(&header)?;
    let mut paths: Vec<ValuePath> = Vec::new();
    while let Some(record) = scanner.next_record().map_err(unscanned)? {
        paths.push(path(&record)?);
    }
    let Some(top) = paths.first().map(|path| path.last().cloned().flatten()) else {
        return Err(Problem::new(Kind::EmptyTable, "there is a header, and no row"));
    };
    let one = paths.iter().all(|path| path.len() > 1 && path.last() == Some(&top));
    let mut faults = Vec::new();
    if one && header.len() > 1 && header.last() == Some(&top) {
        let detail = "the first row is a header, and names levels; this one ends in the root, as a row of a value does";
        faults.push(Fault::new("", Kind::ParameterRange, detail).with("allowed", "a header in the first row"));
    }
    let long = |path: &ValuePath| path.iter().skip(1).flatten().any(|label| is_long(label));
    if let Some(row) = paths.iter().position(long).map(|before| before + 1) {
        let fault = Fault::new("", Kind::ParameterRange, format!("row {row}: the label of a node is too long"));
        faults.push(fault.with("allowed", LABEL).with("row", row));
    }
    let mut growing = TaxonomyBuilder::from_root(top.as_deref().filter(|_| one).unwrap_or(TOP));
    let (mut leaves, mut first) = (HashSet::new(), None);
    for (row, path) in (1u64..).zip(&paths) {
        let nodes = if one { &path[..path.len() - 1] } else { path };
        match grow(&mut growing, &mut leaves, nodes) {
            Ok(()) => {}
            Err(TaxonomyError::Repeated) => first = first.or(Some(row)),
            Err(limit) => {
                let allowed = limit.to_string();
                let fault = Fault::new("", Kind::ParameterRange, format!("row {row}: {allowed}, which is too much"));
                faults.push(fault.with("allowed", format!("no {allowed}")).with("row", row));
                break;
            }
        }
    }
    if let Some(row) = first {
        let count = growing.repeated();
        let detail = format!(
            "labels that stand for a value twice, or below several nodes, or for a value and a node: {count}, the first of them in row {row}"
        );
        faults.push(conflict("", count, detail).with("row", row));
    }
    match growing.finish() {
        Some(tree) if faults.is_empty() => Ok(Arc::new(tree)),
        _ => Err(Problem::of_faults(faults)),
    }
}

/// A value and the nodes above it; `None` is the missing value.
type ValuePath = Vec<Option<String>>;

fn path(record: &Record<'_>) -> Result<ValuePath, Problem> {
    let mut path: ValuePath = Vec::new();
    for (at, (bytes, quoted)) in record.iter().enumerate() {
        if at > 0 && bytes.is_empty() {
            continue;
        }
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let detail = "a field is not UTF-8";
            Problem::new(Kind::UploadMalformed, detail).with("row", record.number()).with("byte", record.field_byte(at))
        })?;
        path.push(Some(text.to_owned()).filter(|text| quoted || !text.is_empty()));
    }
    path.dedup();
    Ok(path)
}

fn unscanned(error: RecordError) -> Problem {
    let problem = Problem::new(Kind::UploadMalformed, error.to_string());
    match error {
        RecordError::Malformed { record, byte, .. } => problem.with("row", record).with("byte", byte),
        RecordError::TooLarge { record, .. } => problem.with("row", record),
        RecordError::Io(_) => problem,
    }
}

/// Adds a value below the nodes above it, of which the farthest is below the root.
fn grow(
    growing: &mut TaxonomyBuilder,
    leaves: &mut HashSet<usize>,
    path: &[Option<String>],
) -> Result<(), TaxonomyError> {
    let mut node = 0;
    for (left, label) in path.iter().enumerate().rev() {
        let label = label.as_deref();
        node = match growing.find(label) {
            Some(found) if left > 0 && !leaves.contains(&found) && growing.parent(found) == node && found != 0 => found,
            Some(found) => {
                growing.repeat(found);
                return Err(TaxonomyError::Repeated);
            }
            None => growing.add(node, label)?,
        };
    }
    leaves.insert(node);
    Ok(())
}

/// A stored taxonomy, in one version or in its latest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaxonomyName {
    /// Its name.
    pub name: String,
    /// The version; the latest when not given.
    pub version: Option<u32>,
}

impl fmt::Display for TaxonomyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "version {version} of a taxonomy {}", self.name),
            None => write!(f, "taxonomy {}", self.name),
        }
    }
}

impl TaxonomyName {
    /// Reads `"name"` or `"name-v3"`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match VersionedName::parse(text) {
            Some(VersionedName { name, version }) => Some(Self { name, version: Some(version) }),
            None => is_policy_name(text).then(|| Self { name: text.to_owned(), version: None }),
        }
    }
}

/// The stored taxonomies that a document names, each with its attribute. What is no name is left to [`super::read`].
#[must_use]
pub fn taxonomies_named(document: &Value) -> Vec<(String, TaxonomyName)> {
    let attributes = document.get("attributes").and_then(Value::as_object).into_iter().flatten();
    let named = attributes.filter_map(|(attribute, options)| {
        Some((attribute.clone(), TaxonomyName::parse(options.get("taxonomy")?.as_str()?)?))
    });
    named.collect()
}

/// Writes the tree of an attribute out in a document.
pub fn expand_taxonomies(document: &mut Value, attribute: &str, tree: Value) {
    let options = document.get_mut("attributes").and_then(|attributes| attributes.get_mut(attribute));
    if let Some(members) = options.and_then(Value::as_object_mut) {
        members.insert("taxonomy".to_owned(), tree);
    }
}
