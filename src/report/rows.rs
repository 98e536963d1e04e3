//! The rows of a part as JSON, read from its CSV by the scanner that reads everything.

use std::io::Read;
use std::ops::Range;

use serde_json::Value;

use super::manifest_part::ManifestPart;
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::{Record, RecordError, Scanner, quote};
use crate::microdata::{AttributeType, CellInterval, CellShape, SUPPRESSED_CELL, is_formula, parse_set, write_json};

/// Renders the rows of one part.
pub struct PartRows<'a> {
    part: &'a ManifestPart,
    names: Vec<String>,
    kinds: Vec<AttributeType>,
    shapes: Vec<CellShape>,
}

impl<'a> PartRows<'a> {
    /// The rows of a part.
    #[must_use]
    pub fn new(part: &'a ManifestPart) -> Self {
        let bucket = part.bucketed.then(|| ("bucket".to_owned(), AttributeType::Integer));
        let kind = |name: &String| part.types.get(name).copied().unwrap_or(AttributeType::Text);
        let columns = bucket.into_iter().chain(part.attributes.iter().map(|name| (name.clone(), kind(name))));
        let (names, kinds): (Vec<String>, Vec<AttributeType>) = columns.unzip();
        let shapes = names.iter().map(|name| part.cell_shape(name)).collect();
        Self { part, names, kinds, shapes }
    }

    /// A chunk of the CSV as one JSON object a line. The first chunk begins with the header.
    ///
    /// # Errors
    /// When the chunk is not CSV.
    pub fn ndjson(&self, csv: &[u8], first: bool) -> Result<Vec<u8>, RecordError> {
        let keys: Vec<String> = self.names.iter().map(|name| Value::from(name.as_str()).to_string()).collect();
        let mut out = Vec::with_capacity(csv.len() * 2);
        let mut scanner = self.scanner(csv);
        if first {
            scanner.next_record()?;
        }
        while let Some(record) = scanner.next_record()? {
            for (index, (field, quoted)) in record.iter().enumerate() {
                out.push(if index == 0 { b'{' } else { b',' });
                out.extend_from_slice(keys.get(index).map_or("\"\"", String::as_str).as_bytes());
                out.push(b':');
                self.cell(index, field, quoted, &mut out);
            }
            out.extend_from_slice(b"}\n");
        }
        Ok(out)
    }

    /// A chunk of the CSV with an apostrophe before each cell that a spreadsheet would take for a formula.
    ///
    /// # Errors
    /// When the chunk is not CSV.
    pub fn spreadsheet(&self, csv: &[u8]) -> Result<Vec<u8>, RecordError> {
        let mut out = Vec::with_capacity(csv.len() + csv.len() / 8);
        let mut scanner = self.scanner(csv);
        while let Some(record) = scanner.next_record()? {
            for (index, (field, quoted)) in record.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                let mark: &[u8] = if is_formula(field) { b"'" } else { b"" };
                if quoted {
                    quote(&[mark, field].concat(), true, &mut out);
                } else {
                    out.extend_from_slice(mark);
                    out.extend_from_slice(field);
                }
            }
            out.push(b'\n');
        }
        Ok(out)
    }

    /// The beginning of a page: the columns.
    #[must_use]
    pub fn json_head(&self) -> Vec<u8> {
        format!("{{\"columns\":{},\"rows\":[", Value::from(self.names.clone())).into_bytes()
    }

    /// Some rows of a chunk, counted from the chunk's first; `begins` when no row stands before them in the page.
    ///
    /// # Errors
    /// When the chunk is not CSV.
    pub fn json_rows(
        &self,
        csv: &[u8],
        first: bool,
        rows: Range<u64>,
        begins: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let mut scanner = self.scanner(csv);
        if first {
            scanner.next_record()?;
        }
        for row in 0..rows.end {
            let Some(record) = scanner.next_record()? else { break };
            if rows.contains(&row) {
                if !(begins && row == rows.start) {
                    out.push(b',');
                }
                self.json_row(&record, out);
            }
        }
        Ok(())
    }

    /// How many rows a chunk has.
    ///
    /// # Errors
    /// When the chunk is not CSV.
    pub fn count(&self, csv: &[u8], first: bool) -> Result<u64, RecordError> {
        let mut scanner = self.scanner(csv);
        let mut rows = 0;
        while scanner.next_record()?.is_some() {
            rows += 1;
        }
        Ok(rows - u64::from(first && rows > 0))
    }

    /// The end of a page.
    pub fn json_tail(&self, next: Option<&str>, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("],\"next\":{}}}", Value::from(next)).as_bytes());
    }

    /// Whether the manifest gives each column a type, and every cell has the type of its column. `csv` is the whole part.
    ///
    /// # Errors
    /// When the part cannot be read, or is not CSV.
    pub fn types_hold(&self, csv: impl Read) -> Result<bool, RecordError> {
        let typed = self.part.attributes.iter().all(|name| self.part.types.contains_key(name));
        let null = self.part.null.as_deref().unwrap_or_default().as_bytes();
        let mut scanner = self.scanner(csv);
        scanner.next_record()?;
        while let Some(record) = scanner.next_record()? {
            let columns = self.kinds.iter().zip(&self.shapes);
            let held = record.iter().zip(columns).all(|((field, quoted), (kind, shape))| match shape {
                _ if !quoted && field == null => *shape != CellShape::Set,
                CellShape::Exact => *kind == AttributeType::Text || kind.admits(field),
                CellShape::Node => true,
                CellShape::Suppressed => *kind == AttributeType::Text && field == SUPPRESSED_CELL.as_bytes(),
                CellShape::Interval => CellInterval::parse(field)
                    .is_some_and(|span| span.from.iter().chain([&span.to]).all(|end| kind.admits(end))),
                CellShape::Set => {
                    parse_set(field).is_some_and(|values| values.iter().flatten().all(|value| kind.admits(value)))
                }
            });
            if !held {
                return Ok(false);
            }
        }
        Ok(typed && self.part.types.len() == self.part.attributes.len())
    }

    fn scanner<R: Read>(&self, csv: R) -> Scanner<R> {
        let delimiter = (self.names.len() > 1).then_some(b',');
        Scanner::new(csv, delimiter, &IngestLimits::of_own_parts())
    }

    fn json_row(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        for (index, (field, quoted)) in record.iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            self.cell(index, field, quoted, out);
        }
        out.push(b']');
    }

    fn cell(&self, index: usize, field: &[u8], quoted: bool, out: &mut Vec<u8>) {
        let null = self.part.null.as_deref().unwrap_or_default().as_bytes();
        let kind = self.kinds.get(index).copied().unwrap_or(AttributeType::Text);
        let value = (quoted || field != null).then_some(field);
        match (self.shapes.get(index).copied().unwrap_or_default(), value) {
            (CellShape::Interval, Some(field)) => match CellInterval::parse(field) {
                Some(span) => {
                    out.extend_from_slice(b"{\"from\":");
                    write_json(kind, span.from.as_deref(), out);
                    out.extend_from_slice(b",\"to\":");
                    write_json(kind, Some(&span.to), out);
                    out.push(b'}');
                }
                None => write_json(AttributeType::Text, value, out),
            },
            (CellShape::Node, value) => write_json(AttributeType::Text, value, out),
            // a set is JSON as it stands
            (CellShape::Set, Some(field)) if parse_set(field).is_some() => out.extend_from_slice(field),
            (_, value) => write_json(kind, value, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(attributes: &[(&str, AttributeType)], bucketed: bool, null: Option<&str>) -> ManifestPart {
        ManifestPart {
            name: "qi".into(),
            attributes: attributes.iter().map(|(name, _)| (*name).to_owned()).collect(),
            types: attributes.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect(),
            bucketed,
            row_meaning: crate::publication::RowKind::Tuples,
            counterfeits_per_bucket: None,
            cells: Default::default(),
            rows: 3,
            file: Some("t1.qi.csv".to_owned()),
            sha256: Some(String::new()),
            files: Vec::new(),
            null: null.map(str::to_owned),
        }
    }

    #[test]
    fn cells_keep_their_types_and_missing_is_null() {
        let part = part(&[("age", AttributeType::Integer), ("name", AttributeType::Text)], true, None);
        let csv = b"bucket,age,name\n1,30,\"a \"\"b\"\"\"\n1,,\"\"\n2,-5,\n";
        let text = String::from_utf8(PartRows::new(&part).ndjson(csv, true).unwrap()).unwrap();
        let expected = "{\"bucket\":1,\"age\":30,\"name\":\"a \\\"b\\\"\"}\n\
                        {\"bucket\":1,\"age\":null,\"name\":\"\"}\n\
                        {\"bucket\":2,\"age\":-5,\"name\":null}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn formulas_get_an_apostrophe_and_nothing_else_changes() {
        let part = part(&[("=n", AttributeType::Text), ("age", AttributeType::Integer)], false, None);
        let csv = "=n,age\n=1+1,-5\n\"=a,\"\"b\"\"\",7\n-,\n\"\",1\n\"a\nb\",1\n";
        let text = String::from_utf8(PartRows::new(&part).spreadsheet(csv.as_bytes()).unwrap()).unwrap();
        assert_eq!(text, csv.replace("=n", "'=n").replace("=1+1", "'=1+1").replace("=a", "'=a"));
    }

    #[test]
    fn cells_of_several_values_are_objects_and_lists() {
        let mut part = part(&[("age", AttributeType::Integer), ("job", AttributeType::Text)], false, None);
        part.cells = [("age", CellShape::Interval), ("job", CellShape::Set)].map(|(a, b)| (a.to_owned(), b)).into();
        let csv = b"age,job\n17..24,\"[\"\"a\"\",null]\"\n..30,[null]\n,\"[\"\"b,c\"\"]\"\n";
        let rows = PartRows::new(&part);
        let text = String::from_utf8(rows.ndjson(csv, true).unwrap()).unwrap();
        let expected = "{\"age\":{\"from\":17,\"to\":24},\"job\":[\"a\",null]}\n\
                        {\"age\":{\"from\":null,\"to\":30},\"job\":[null]}\n\
                        {\"age\":null,\"job\":[\"b,c\"]}\n";
        assert_eq!(text, expected);
        assert!(rows.types_hold(&csv[..]).unwrap());
        for wrong in ["17,[]", "x..y,[]", "1..2,"] {
            assert!(!rows.types_hold(format!("age,job\n{wrong}\n").as_bytes()).unwrap(), "{wrong}");
        }
    }

    #[test]
    fn a_page_is_one_document() {
        let part = part(&[("x", AttributeType::Decimal)], false, Some("NA"));
        let rows = PartRows::new(&part);
        let mut body = rows.json_head();
        rows.json_rows(b"x\nNA\n1.50\n2\n", true, 0..2, true, &mut body).unwrap();
        rows.json_tail(Some("2"), &mut body);
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"columns":["x"],"rows":[[null],[1.50]],"next":"2"}"#);
    }
}
