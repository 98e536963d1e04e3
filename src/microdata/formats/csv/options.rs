//! How a CSV file is to be understood.

use std::collections::HashSet;

use crate::microdata::AttributeType;

/// How a CSV file is to be understood.
#[derive(Clone, Debug, Default)]
pub struct CsvOptions {
    /// Any ASCII byte but a quote and the line ends; detected when not given.
    pub delimiter: Option<u8>,
    /// Another text that, unquoted, stands for a missing value.
    pub null: Option<String>,
    /// Types of columns by name; all others are inferred from their values.
    pub types: Vec<(String, AttributeType)>,
}

impl CsvOptions {
    /// The options as callers write them: a character or `tab`, a text, and types such as `age:integer,zip:text`.
    ///
    /// # Errors
    /// Everything that is wrong with them; without values of the data.
    pub fn from_texts(
        delimiter: Option<&str>,
        null: Option<String>,
        types: Option<&str>,
    ) -> Result<Self, Vec<&'static str>> {
        let (delimiter, types) = (delimiter.map(delimiter_of).transpose(), types.map(types_of).transpose());
        match (delimiter, types) {
            (Ok(delimiter), Ok(types)) => Ok(Self { delimiter, null, types: types.unwrap_or_default() }),
            (delimiter, types) => Err([delimiter.err(), types.err()].into_iter().flatten().collect()),
        }
    }

    /// Whether there is an option that belongs to CSV alone.
    #[must_use]
    pub const fn are_of_csv(&self) -> bool {
        self.delimiter.is_some() || self.null.is_some()
    }
}

fn delimiter_of(text: &str) -> Result<u8, &'static str> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(byte),
        _ => Err("delimiter must be one ASCII character other than a quote or a line end, or `tab`"),
    }
}

fn types_of(list: &str) -> Result<Vec<(String, AttributeType)>, &'static str> {
    let one = |item: &str| -> Result<_, &'static str> {
        let (name, kind) = item.rsplit_once(':').ok_or("types must have the form age:integer,zip:text")?;
        let kind = AttributeType::ALL.into_iter().find(|known| known.name() == kind.trim());
        let kind = kind.ok_or(
            "a type must be integer, decimal, float, text, boolean, date (2026-03-01), timestamp (2026-03-01T02:30:00Z) or \
             local_timestamp (2026-03-01T02:30:00)",
        )?;
        Ok((name.trim().to_owned(), kind))
    };
    let types: Vec<(String, AttributeType)> = list.split(',').map(one).collect::<Result<_, _>>()?;
    let mut names = HashSet::new();
    if types.iter().all(|(name, _)| names.insert(name)) {
        Ok(types)
    } else {
        Err("types must give each column one type")
    }
}
