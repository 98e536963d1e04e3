//! The formats that tables are read from, and one face for their readers.

use super::error::IngestError;
use crate::microdata::{AttributeType, Chunk};

/// The media type of Arrow files.
const ARROW_FILE: &str = "application/vnd.apache.arrow.file";

/// What a table is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum InputFormat {
    /// RFC 4180 with a header.
    #[default]
    Csv,
    /// A flat JSON object a line.
    Ndjson,
    /// A JSON array of flat objects.
    Json,
    /// Apache Parquet.
    Parquet,
    /// An Arrow IPC stream, or an Arrow file (Feather, version 2).
    Arrow,
}

impl InputFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Csv, Self::Ndjson, Self::Json, Self::Parquet, Self::Arrow];

    /// The media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Json => "application/json",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    /// The media types that are accepted: those of the formats, and that of Arrow files.
    #[must_use]
    pub fn accepted_media_types() -> Vec<&'static str> {
        Self::ALL.into_iter().map(Self::media_type).chain([ARROW_FILE]).collect()
    }

    /// The format of a media type, which has no parameters.
    #[must_use]
    pub fn of_media_type(essence: &str) -> Option<Self> {
        let named = Self::ALL.into_iter().find(|format| format.media_type().eq_ignore_ascii_case(essence));
        named.or_else(|| ARROW_FILE.eq_ignore_ascii_case(essence).then_some(Self::Arrow))
    }

    /// The format that the ending of a file name names.
    #[must_use]
    pub fn of_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "csv" | "tsv" => Some(Self::Csv),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "json" => Some(Self::Json),
            "parquet" => Some(Self::Parquet),
            "arrow" | "arrows" | "feather" => Some(Self::Arrow),
            _ => None,
        }
    }

    /// The format by the first eight decompressed bytes; CSV where no other format begins so.
    #[must_use]
    pub fn of_beginning(bytes: &[u8]) -> Self {
        let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
        if bytes.starts_with(b"PAR1") {
            Self::Parquet
        } else if bytes.starts_with(b"ARROW1") || bytes.starts_with(&[0xFF; 4]) {
            Self::Arrow
        } else if text.first() == Some(&b'{') {
            Self::Ndjson
        } else if text
            .strip_prefix(b"[")
            .is_some_and(|rest| matches!(rest.trim_ascii_start().first(), None | Some(b'{' | b']')))
        {
            Self::Json
        } else {
            Self::Csv
        }
    }
}

/// Gives the rows of a table as [`Chunk`]s.
pub trait TableReader: Send {
    /// The names of the columns, distinct and not empty.
    fn names(&self) -> &[String];

    /// The types of the columns, once all rows were read; what is `None` is inferred from the values.
    fn kinds(&self) -> Vec<Option<AttributeType>>;

    /// The next rows, at least one; `None` at the end.
    ///
    /// # Errors
    /// [`IngestError`]; the reader must not be used afterwards.
    fn next_chunk(&mut self) -> Result<Option<Chunk>, IngestError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_follows_name_type_and_first_bytes() {
        assert_eq!(InputFormat::of_media_type("Application/X-NDJSON"), Some(InputFormat::Ndjson));
        assert_eq!(InputFormat::of_media_type("application/json"), Some(InputFormat::Json));
        assert_eq!(InputFormat::of_media_type("application/xml"), None);
        assert_eq!(InputFormat::of_file_name("t.json"), Some(InputFormat::Json));
        assert_eq!(InputFormat::of_file_name("a.b.PARQUET"), Some(InputFormat::Parquet));
        assert_eq!(InputFormat::of_file_name("csv"), None);
        assert_eq!(InputFormat::of_file_name("t.feather"), Some(InputFormat::Arrow));
        assert_eq!(InputFormat::of_media_type(ARROW_FILE), Some(InputFormat::Arrow));
        for (bytes, format) in [
            (&b"PAR1...."[..], InputFormat::Parquet),
            (b"ARROW1\0\0", InputFormat::Arrow),
            (b"\xFF\xFF\xFF\xFF\x80\0\0\0", InputFormat::Arrow),
            (b"\n {\"a\":1", InputFormat::Ndjson),
            (b"\xEF\xBB\xBF{\"a\"", InputFormat::Ndjson),
            (b"[\n  {\"a\"", InputFormat::Json),
            (b"\xEF\xBB\xBF[    ", InputFormat::Json),
            (b"[a],b\n1", InputFormat::Csv),
            (b"a,b\n1,2\n", InputFormat::Csv),
            (b"", InputFormat::Csv),
        ] {
            assert_eq!(InputFormat::of_beginning(bytes), format, "{bytes:?}");
        }
    }
}
