//! A copy of an input, for formats that are read from their end.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::error::IngestError;

const COPY: usize = 256 << 10;

/// Copies an input to a file of mode 0600 in `folder` that has no name, so that it is gone when it is closed, also by a crash.
///
/// # Errors
/// [`IngestError::Spool`] when the file cannot be written, else what the input's error is.
pub(super) fn spooled(mut body: impl Read, folder: &Path) -> Result<File, IngestError> {
    let mut file = tempfile::tempfile_in(folder).map_err(IngestError::Spool)?;
    let mut buffer = vec![0; COPY];
    loop {
        let read = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        file.write_all(&buffer[..read]).map_err(IngestError::Spool)?;
    }
    file.rewind().map_err(IngestError::Spool)?;
    Ok(file)
}
