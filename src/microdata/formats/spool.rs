//! A copy of an input, for formats that are read from their end.

use std::io::{self, Read, Write};
use std::path::Path;

use super::error::IngestError;
use crate::microdata::{SpoolFile, SpoolReader};

const COPY: usize = 256 << 10;

/// Copies an input to an encrypted file without a name in `folder`.
///
/// # Errors
/// [`IngestError::Spool`] when the file cannot be written, else what the input's error is.
pub(super) fn spooled(mut body: impl Read, folder: &Path) -> Result<SpoolReader, IngestError> {
    let mut file = SpoolFile::new(folder).map_err(IngestError::Spool)?;
    let mut buffer = vec![0; COPY];
    loop {
        let read = match body.read(&mut buffer) {
            Ok(0) => return Ok(file.into_reader()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        file.write_all(&buffer[..read]).map_err(IngestError::Spool)?;
    }
}
