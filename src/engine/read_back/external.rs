use std::collections::BTreeMap;
use std::io::Read;

use crate::engine::memory::{ColumnSize, release_memory};
use crate::microdata::formats::csv::{CsvOptions, CsvReader};
use crate::microdata::formats::{IngestError, IngestLimits, TableReader};
use crate::microdata::{Attr, AttrSet, AttributeType, Chunk, Column, ColumnBuilder, MAX_ATTRIBUTES};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::{Guarantee, MethodDetails, Protected, RowKind, RowMeaning, SubmittedRule};
use crate::report::{Manifest, ManifestPart, ManifestTable, publication_of};
use crate::spec::{SubmittedFile, SubmittedPart, SubmittedTable};
use crate::verifier::{ExternalPart, ExternalTable};

/// The name of the column of labels.
const BUCKET_LABEL_COLUMN: &str = "bucket";

/// The columns of a file.
#[derive(Debug)]
pub struct ReadFile {
    /// Its columns, by name.
    pub columns: Vec<(String, Column)>,
    /// The number of rows, at least one.
    pub rows: usize,
}

/// Reserves memory, in bytes, for a file while it is read; each call names the total.
pub type ReserveMemory<'a> = &'a mut dyn FnMut(u64) -> Result<(), Problem>;

/// Reads all rows of a file.
///
/// # Errors
/// The problem of the file, or that of `take`.
pub fn read_file(
    reader: &mut dyn TableReader,
    limits: &IngestLimits,
    take: ReserveMemory<'_>,
) -> Result<ReadFile, Problem> {
    let names = reader.names().to_vec();
    let (builders, rows) = gather(names.len(), &mut || reader.next_chunk(), limits, take)?;
    if rows == 0 {
        return Err(Problem::new(Kind::EmptyTable, "the table has no rows"));
    }
    Ok(finished(names, builders, reader.kinds(), rows))
}

/// Reads all rows of a part of a release.
///
/// # Errors
/// As [`read_file`].
pub fn read_published(part: &ManifestPart, bytes: impl Read, take: ReserveMemory<'_>) -> Result<ReadFile, Problem> {
    let limits = IngestLimits::of_own_parts();
    // generalized cells are compared as text
    let kind = |name: &String, kind| if part.cells.contains_key(name) { AttributeType::Text } else { kind };
    let types = part.types.iter().map(|(name, of)| (name.clone(), kind(name, *of))).collect();
    let options = CsvOptions { delimiter: Some(b','), null: part.null.clone(), types };
    let mut reader = CsvReader::open(bytes, options, &limits)?;
    let names = reader.names().to_vec();
    let (builders, rows) = gather(names.len(), &mut || reader.next_chunk(), &limits, take)?;
    Ok(finished(names, builders, reader.kinds().to_vec(), rows))
}

/// The columns of all chunks, and the number of their rows.
fn gather(
    columns: usize,
    next: &mut dyn FnMut() -> Result<Option<Chunk>, IngestError>,
    limits: &IngestLimits,
    take: ReserveMemory<'_>,
) -> Result<(Vec<ColumnBuilder>, usize), Problem> {
    let mut builders: Vec<ColumnBuilder> = (0..columns).map(|_| ColumnBuilder::new(limits)).collect();
    // upper bounds: a value counts once for every chunk that holds it
    let mut sizes = vec![ColumnSize { codes: 0, bytes: 0 }; columns];
    let mut rows = 0_u64;
    while let Some(chunk) = next()? {
        rows += u64::from(chunk.rows);
        for ((builder, size), column) in builders.iter_mut().zip(&mut sizes).zip(&chunk.columns) {
            builder.push(column).map_err(IngestError::from)?;
            size.codes += column.values().len() as u64;
            size.bytes += column.values().size() as u64;
        }
        take(release_memory(rows, &sizes))?;
    }
    Ok((builders, rows as usize))
}

fn finished(
    names: Vec<String>,
    builders: Vec<ColumnBuilder>,
    kinds: Vec<Option<AttributeType>>,
    rows: usize,
) -> ReadFile {
    let columns = builders.into_iter().zip(kinds).map(|(builder, kind)| builder.finish(kind));
    ReadFile { columns: names.into_iter().zip(columns).collect(), rows }
}

/// The tables of a release as a submission to the verifier.
///
/// # Errors
/// `guarantee-unsupported` for parts with counterfeits.
pub fn submitted_tables(manifest: &Manifest) -> Result<Vec<SubmittedTable>, Problem> {
    submitted(manifest, false)
}

/// The tables of a release, for attacks that account for counterfeits.
///
/// # Errors
/// `guarantee-unsupported` where a manifest contradicts itself on counterfeits.
pub fn tables_with_counterfeits(manifest: &Manifest) -> Result<Vec<SubmittedTable>, Problem> {
    submitted(manifest, true)
}

fn submitted(manifest: &Manifest, with_counterfeits: bool) -> Result<Vec<SubmittedTable>, Problem> {
    let part = |part: &ManifestPart| {
        let meaning = match (part.row_meaning, part.counterfeits_per_bucket) {
            (RowKind::Tuples, _) => RowMeaning::Tuples,
            (RowKind::Values, _) => RowMeaning::Values,
            (RowKind::TuplesAndCounterfeits, Some(per_bucket)) if with_counterfeits => {
                RowMeaning::TuplesAndCounterfeits { per_bucket }
            }
            (other, _) => {
                let detail =
                    format!("rows of kind {other} cannot be verified: readers cannot identify the counterfeits");
                return Err(Problem::new(Kind::GuaranteeUnsupported, detail));
            }
        };
        Ok(SubmittedPart {
            name: part.name.clone(),
            file: SubmittedFile { file: part.csv(), format: None, pointer: String::new() },
            bucketed: part.bucketed,
            meaning,
            cells: part.cells.keys().map(|name| (name.clone(), (String::new(), part.cell_shape(name)))).collect(),
            pointer: String::new(),
        })
    };
    let table = |table: &ManifestTable| {
        let parts: Result<Vec<SubmittedPart>, Problem> = table.parts.iter().map(part).collect();
        Ok(SubmittedTable { name: table.name.clone(), parts: parts? })
    };
    manifest.tables.iter().map(table).collect()
}

/// The rules of a manifest, or those at a pointer.
///
/// # Errors
/// When no rule has the pointer.
pub fn rules_of(
    manifest: &Manifest,
    pointer: Option<&str>,
    names: &[String],
) -> Result<Vec<SubmittedRule>, Vec<Fault>> {
    let set = |list: &[String]| -> AttrSet {
        list.iter().filter_map(|name| names.iter().position(|known| known == name)).map(Attr::from).collect()
    };
    // k-anonymity protects no attribute
    let protecting = manifest.rules.iter().filter(|rule| !matches!(rule.guarantee, Guarantee::KAnonymity { .. }));
    let chosen = protecting.filter(|rule| pointer.is_none() || rule.pointer.as_deref() == pointer);
    let rules = chosen.map(|rule| SubmittedRule {
        pointer: rule.pointer.clone().unwrap_or_default(),
        known: set(&rule.quasi_identifiers),
        protects: match set(&rule.sensitive) {
            several if rule.combination => Protected::Joint(several),
            one => one.iter().next().map_or(Protected::Joint(one), Protected::Attribute),
        },
        guarantee: rule.of_rows(),
    });
    let rules: Vec<SubmittedRule> = rules.collect();
    if rules.is_empty() && pointer.is_some() {
        let pointers: Vec<&str> = manifest.rules.iter().filter_map(|rule| rule.pointer.as_deref()).collect();
        let allowed = format!("the pointer of a rule of the release: {}", pointers.join(", "));
        let fault = Fault::new("/rule", Kind::ParameterRange, format!("expected {allowed}"));
        return Err(vec![fault.with("allowed", allowed)]);
    }
    Ok(rules)
}

/// The tables of a submission, their original, and the names of their attributes.
#[derive(Debug)]
pub struct VerificationMaterial {
    pub(in crate::engine) tables: Vec<ExternalTable>,
    pub(in crate::engine) original: Option<ExternalPart>,
    pub(in crate::engine) names: Vec<String>,
    /// The attributes whose listed values all belong to rows.
    pub(in crate::engine) exact: AttrSet,
}

impl VerificationMaterial {
    /// Combines submitted tables with their files: those of the parts in their order, then that of the original, if any.
    ///
    /// # Errors
    /// Every contradiction between the submission and the files.
    pub fn new(submitted: &[SubmittedTable], mut files: Vec<ReadFile>, original: bool) -> Result<Self, Vec<Fault>> {
        let (mut names, mut faults) = (Vec::new(), Vec::new());
        let original = if original { files.pop() } else { None };
        for (_, file) in submitted.iter().flat_map(|table| &table.parts).zip(&files) {
            let columns = file.columns.iter().map(|(name, _)| name);
            for name in columns.chain(original.iter().flat_map(|file| file.columns.iter().map(|(name, _)| name))) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        // labels are an attribute only if a part has them as one
        let labelled = submitted.iter().flat_map(|table| &table.parts).zip(&files);
        let attribute = labelled.clone().any(|(part, file)| !part.bucketed && has(file, BUCKET_LABEL_COLUMN))
            || original.iter().any(|file| has(file, BUCKET_LABEL_COLUMN));
        names.retain(|name| attribute || name != BUCKET_LABEL_COLUMN);
        if names.len() > MAX_ATTRIBUTES {
            let fault = Fault::new("/tables", Kind::TooManyAttributes, "the tables together have too many attributes");
            return Err(vec![fault.with("limit", MAX_ATTRIBUTES).with("found", names.len())]);
        }
        let mut files = files.into_iter();
        let mut tables = Vec::new();
        for table in submitted {
            let mut parts: Vec<ExternalPart> = Vec::new();
            for (part, file) in table.parts.iter().zip(files.by_ref()) {
                if part.bucketed && !has(&file, BUCKET_LABEL_COLUMN) {
                    let detail = format!("{} has no column {BUCKET_LABEL_COLUMN}", part.file.file);
                    faults.push(Fault::new(format!("{}/bucketed", part.pointer), Kind::BadColumns, detail));
                }
                for (column, (pointer, _)) in part.cells.iter().filter(|(column, _)| !has(&file, column)) {
                    let detail = format!("{} has no column {column}", part.file.file);
                    faults.push(Fault::new(pointer, Kind::UnknownAttribute, detail).with("attribute", column.as_str()));
                }
                let mut given = given(&names, part.name.clone(), part.meaning, file, part.bucketed);
                let shape = |attr: Attr| Some((attr, part.cells.get(&names[attr.index()])?.1));
                given.cells = given.attributes().iter().filter_map(shape).collect();
                if given.columns.is_empty() {
                    let detail = format!("{} has no attribute", part.file.file);
                    faults.push(Fault::new(part.pointer.as_str(), Kind::BadColumns, detail));
                }
                parts.push(given);
            }
            tables.push(ExternalTable { name: table.name.clone(), parts });
        }
        let original = original.map(|file| given(&names, "original".to_owned(), RowMeaning::Tuples, file, false));
        if faults.is_empty() { Ok(Self { tables, original, names, exact: AttrSet::EMPTY }) } else { Err(faults) }
    }

    /// Adds the original of a release, without the columns that were not published.
    #[must_use]
    pub fn with_original(self, original: ReadFile) -> Self {
        let original = given(&self.names, "original".to_owned(), RowMeaning::Tuples, original, false);
        Self { original: Some(original), ..self }
    }

    /// Adds the claim of a manifest that some lists hold no noise, which the parts cannot show.
    #[must_use]
    pub fn with_claims_of(self, manifest: &Manifest) -> Self {
        let exact = match publication_of(manifest, &self.names).map(|publication| publication.method_details) {
            Ok(MethodDetails::Decompose(said)) => said.l.keys().copied().collect::<AttrSet>().minus(said.noisy),
            _ => AttrSet::EMPTY,
        };
        Self { exact, ..self }
    }

    /// The names of the attributes, in the order of their first file.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The tables of the submission.
    #[must_use]
    pub fn tables(&self) -> &[ExternalTable] {
        &self.tables
    }

    /// The original, where it is available.
    pub(in crate::engine) const fn original(&self) -> Option<&ExternalPart> {
        self.original.as_ref()
    }
}

fn has(file: &ReadFile, name: &str) -> bool {
    file.columns.iter().any(|(column, _)| column == name)
}

fn given(names: &[String], name: String, meaning: RowMeaning, file: ReadFile, bucketed: bool) -> ExternalPart {
    let (mut bucket, mut columns) = (None, Vec::new());
    for (column, cells) in file.columns {
        match names.iter().position(|known| *known == column) {
            _ if bucketed && column == BUCKET_LABEL_COLUMN => bucket = Some(cells),
            Some(at) => columns.push((Attr::from(at), cells)),
            None => {}
        }
    }
    ExternalPart { name, meaning, rows: file.rows, bucket, columns, cells: BTreeMap::new() }
}
