//! Bounded contributions on the command line: rows are left out by the key of the release.

use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

use super::exit::CommandOutcome;
use super::table_file::TableFile;
use crate::control::Control;
use crate::engine::{self, Inspection};
use crate::microdata::formats::{IngestLimits, TableReader};
use crate::microdata::{AttributeType, ColumnBuilder, Table};
use crate::people::{
    BoundedTable, ContributionBound, ContributionError, ContributionSpool, KeyedHash, KeyedHasher, SystemColumns,
};
use crate::problem::{Kind, Problem};
use crate::publication::Unit;
use crate::random::RandomStreams;
use crate::report::LeftOutContributions;
use crate::spec::{self, ColumnFacts, DatasetSchema, DocumentSource, Specification};

/// The label of the key of the draw.
const DRAW_LABEL: &str = "contributions";

/// Draws rows by a key of the release.
pub(super) struct DrawHasher(Hmac<Sha256>);

impl DrawHasher {
    pub(super) fn new(streams: &RandomStreams) -> Self {
        // Unwrap safety: HMAC takes keys of any length.
        #[expect(clippy::unwrap_used)]
        let mac = Hmac::<Sha256>::new_from_slice(&*streams.derived(DRAW_LABEL)).unwrap();
        Self(mac)
    }
}

impl KeyedHasher for DrawHasher {
    fn keyed_bytes(&self, bytes: &[u8]) -> KeyedHash {
        let mut mac = self.0.clone();
        mac.update(bytes);
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        KeyedHash(bytes.iter().take(16).fold(0, |word, &byte| word << 8 | u128::from(byte)))
    }
}

/// A table that is being read, without the rows that exceed the bound of its unit.
pub(super) struct OpenedTable {
    pub(super) reader: Box<dyn TableReader>,
    /// What was left out; `None` where nothing is bounded.
    pub(super) contributions: Option<LeftOutContributions>,
    /// For each column whether it says something of the rows that were kept.
    pub(super) chose_rows: Vec<bool>,
}

/// Opens a table.
pub(super) fn open(
    table: &TableFile<'_>,
    unit: &Unit,
    streams: &RandomStreams,
    limits: &IngestLimits,
    control: &Control,
) -> Result<OpenedTable, CommandOutcome> {
    let reader = table.open(limits, control)?;
    let Unit::Subject { attribute, max_rows, kept: Some(choice) } = unit else {
        let chose_rows = vec![false; reader.names().len()];
        return Ok(OpenedTable { reader, contributions: None, chose_rows });
    };
    let subject = position(reader.names(), attribute)?;
    let person = SystemColumns::alone("subject", vec![subject]);
    let bound = ContributionBound { rows: *max_rows, order: choice.order(), person };
    let hasher = DrawHasher::new(streams);
    let folder = std::env::temp_dir();
    let spool = ContributionSpool { limits, folder: &folder, control };
    let bounded = BoundedTable::read(reader, &bound, &hasher, spool).map_err(|error| match error {
        ContributionError::Ingest(error) => table.unread(control, error),
        ContributionError::Cancelled(_) => CommandOutcome::interrupted(),
        ContributionError::UnknownOrder(_) => CommandOutcome::Usage(error.to_string()),
        ContributionError::Keyless { .. } => {
            CommandOutcome::Refused(Box::new(Problem::new(Kind::UploadMalformed, error.to_string())))
        }
    })?;
    let left_out = LeftOutContributions { left_out_rows: bounded.counts.rows, cut_persons: bounded.counts.persons };
    let chose_rows = bounded.chose_rows.clone();
    Ok(OpenedTable { reader: Box::new(bounded), contributions: Some(left_out), chose_rows })
}

fn position(names: &[String], column: &str) -> Result<usize, CommandOutcome> {
    let unknown = || CommandOutcome::Usage(format!("the table has no column {column:?}"));
    names.iter().position(|name| name == column).ok_or_else(unknown)
}

/// The original of a release, with the rows that it left out.
pub(super) struct OriginalRows {
    pub(super) specification: Specification,
    pub(super) table: Table,
    pub(super) persons: Vec<u32>,
    pub(super) ranks: Vec<u32>,
}

/// Reads the original of a release that keeps a bounded number of rows of each person. The specification is read without
/// the counts of the table, which are of more rows than were published.
pub(super) fn original(
    table: &TableFile<'_>,
    document: &Value,
    unit: &Unit,
    control: &Control,
) -> Result<OriginalRows, CommandOutcome> {
    let Unit::Subject { attribute, kept: Some(choice), .. } = unit else {
        return Err(CommandOutcome::Internal("no rows were left out".to_owned()));
    };
    let limits = IngestLimits::default();
    let mut reader = table.open(&limits, control)?;
    let names = reader.names().to_vec();
    let subject = position(&names, attribute)?;
    let order = choice.order().map(|column| position(&names, column)).transpose()?;
    let facts: Vec<ColumnFacts> = names.iter().map(|name| ColumnFacts::unseen(name)).collect();
    let schema = DatasetSchema { columns: &facts, keys: &[], unit };
    let reading = spec::read(document, &schema, DocumentSource::Reproduction);
    let specification = reading.specification.ok_or_else(|| {
        let path = Path::new("specification.json");
        CommandOutcome::InputOutput(format!("{}: it does not fit the original", path.display()))
    })?;
    let wanted: Vec<usize> = specification.used.iter().copied().chain([subject]).chain(order).collect();
    let mut builders: Vec<ColumnBuilder> = wanted.iter().map(|_| ColumnBuilder::new(&limits)).collect();
    while let Some(chunk) = reader.next_chunk().map_err(|error| table.unread(control, error))? {
        for (&column, builder) in wanted.iter().zip(&mut builders) {
            builder.push(&chunk.columns[column]).map_err(|error| table.unread(control, error.into()))?;
        }
    }
    let kinds: Vec<Option<AttributeType>> = reader.kinds();
    let mut columns: Vec<_> =
        builders.into_iter().zip(&wanted).map(|(builder, &column)| builder.finish(kinds[column])).collect();
    let rest = columns.split_off(specification.used.len());
    let persons: Vec<u32> = rest[0].codes.iter().collect();
    let ranks = rest.get(1).map_or_else(
        || vec![0; persons.len()],
        |column| {
            let is_missing = |code: u32| code == 0 && column.domain.has_missing();
            column.codes.iter().map(|code| if is_missing(code) { u32::MAX } else { code }).collect()
        },
    );
    let table = Table::new(specification.names.clone(), columns);
    let (table, _) = engine::annotate(&specification, table, Inspection::Allowed);
    Ok(OriginalRows { specification, table, persons, ranks })
}
