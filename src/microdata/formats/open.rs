use std::io::Read;
use std::path::Path;

use super::arrow::ArrowReader;
use super::csv::{CsvOptions, CsvReader};
use super::error::IngestError;
use super::input::{InputFormat, TableReader};
use super::ndjson::NdjsonReader;
use super::parquet::{ParquetReader, spooled};
use crate::microdata::limits::IngestLimits;

/// Begins to read a table. Of `options`, other formats than CSV use the types. Parquet is read from its end, so it is first
/// copied to a file in the folder `spool` that has no name and goes with its last handle, however that comes about.
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
        InputFormat::Parquet => Box::new(ParquetReader::open(spooled(body, spool)?, options.types, limits)?),
        InputFormat::Arrow => Box::new(ArrowReader::open(body, options.types, limits)?),
    })
}
