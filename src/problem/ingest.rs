//! The problems of uploads that cannot be read.

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
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                        Self::new(Kind::StorageFull, "the spool is full; nothing of the upload was stored")
                    }
                    _ => Self::new(Kind::Internal, "the upload cannot be spooled"),
                }
            }
            // the cause is the transport's, not the table's; its text may describe the machine
            IngestError::Io(_) => Self::new(Kind::MalformedRequest, "the upload ended before it was complete"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn full_spool_is_storage_full() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge] {
            assert_eq!(Problem::from(IngestError::Spool(kind.into())).kind, Kind::StorageFull);
        }
        // ENOSPC
        let full = IngestError::Spool(io::Error::from_raw_os_error(28));
        assert_eq!(Problem::from(full).kind, Kind::StorageFull);
        let other = IngestError::Spool(ErrorKind::PermissionDenied.into());
        assert_eq!(Problem::from(other).kind, Kind::Internal);
    }
}
