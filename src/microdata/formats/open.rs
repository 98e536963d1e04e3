use std::io::{Cursor, Read};
use std::path::Path;

use super::arrow::{self, ARROW_FILE_MAGIC};
use super::csv::{CsvOptions, CsvReader};
use super::error::IngestError;
use super::input::{InputFormat, TableReader};
use super::ndjson::NdjsonReader;
use super::parquet;
use super::spool::spooled;
use crate::microdata::limits::IngestLimits;

/// Begins to read a table. Of `options`, other formats than CSV use the types. Parquet and Arrow files are read from their
/// end, so they are first copied to a [`SpoolFile`](crate::microdata::SpoolFile) in the folder `spool`.
///
/// # Errors
/// [`IngestError`]
pub fn open(
    format: InputFormat,
    body: impl Read + Send + 'static,
    options: CsvOptions,
    limits: &IngestLimits,
    spool: &Path,
) -> Result<Box<dyn TableReader>, IngestError> {
    Ok(match format {
        InputFormat::Csv => Box::new(CsvReader::open(body, options, limits)?),
        InputFormat::Ndjson => Box::new(NdjsonReader::open(body, options.types, limits)?),
        InputFormat::Json => Box::new(NdjsonReader::open_array(body, options.types, limits)?),
        InputFormat::Parquet => Box::new(parquet::open(spooled(body, spool)?, options.types, limits)?),
        InputFormat::Arrow => {
            let (is_file, body) = begins_with(body, ARROW_FILE_MAGIC)?;
            match is_file {
                true => Box::new(arrow::open_file(spooled(body, spool)?, options.types, limits)?),
                false => Box::new(arrow::open_stream(body, options.types, limits)?),
            }
        }
    })
}

/// Whether an input begins with `magic`, and the whole input.
fn begins_with<R: Read>(mut body: R, magic: &[u8]) -> Result<(bool, impl Read + use<R>), IngestError> {
    let mut beginning = Vec::new();
    body.by_ref().take(magic.len() as u64).read_to_end(&mut beginning)?;
    Ok((beginning == magic, Cursor::new(beginning).chain(body)))
}
