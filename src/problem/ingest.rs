//! What a table that cannot be read is answered.

use std::io::ErrorKind;

use super::{Kind, Problem};
use crate::microdata::formats::IngestError;

impl From<IngestError> for Problem {
    fn from(error: IngestError) -> Self {
        let detail = error.to_string();
        match error {
            IngestError::Malformed { row, column, byte, .. } => {
                Self::new(Kind::UploadMalformed, detail).with("row", row).with("column", column).with("byte", byte)
            }
            IngestError::TooManyColumns { limit, found } => {
                Self::new(Kind::TooManyColumns, detail).with("limit", limit).with("found", found)
            }
            IngestError::TooLarge { limit, found, row, .. } => {
                let problem = Self::new(Kind::TooLarge, detail).with("limit", limit).with("found", found);
                if row.is_some() { problem.with("row", row) } else { problem }
            }
            IngestError::UnknownTypeColumn(column) => Self::new(Kind::MalformedRequest, detail).with("column", column),
            IngestError::Empty => Self::new(Kind::EmptyTable, detail),
            IngestError::Spool(error) => {
                tracing::error!(error = %error, "an upload cannot be spooled");
                match error.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                        Self::new(Kind::StorageFull, "there is no room to read the upload; nothing was kept of it")
                    }
                    _ => Self::new(Kind::Internal, "the upload cannot be read here"),
                }
            }
            // the cause is the transport's, not the table's; its text may tell of the machine
            IngestError::Io(_) => Self::new(Kind::MalformedRequest, "the upload ended before it was complete"),
        }
    }
}
