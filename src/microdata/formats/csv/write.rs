//! Writes CSV: lines end with LF, and only what needs quotes is quoted.
//!
//! Where values repeat, every value of a domain is rendered once; a row is a concatenation of rendered cells.

use crate::microdata::{Arena, Codes, Column, Domain, LabelledRows};

const DELIMITER: u8 = b',';
/// Largest number of bytes of a cell, its separator included, in a [`PaddedCell`].
const MAX_INLINE_CELL_BYTES: usize = 31;
const LONG_CELL: u8 = u8::MAX;
/// The least number of bytes by which the output is extended.
const MIN_EXTENSION_BYTES: usize = 64 << 10;

/// Text, separator and length: copied as a whole, which is faster than copying the length it has. In the last byte the
/// length, or `LONG`; then the first eight bytes are the index of the text among the long ones.
type PaddedCell = [u8; MAX_INLINE_CELL_BYTES + 1];

/// Renders the cells of a domain, each followed by a separator. A missing value is written as `null`, or as nothing; a value equal
/// to `null` is quoted.
#[derive(Clone, Debug)]
struct CellRenderer<'a> {
    domain: &'a Domain,
    null: Vec<u8>,
    separator: u8,
}

impl CellRenderer<'_> {
    /// The cell of a code, in place of what `text` held.
    fn render(&self, code: u32, text: &mut Vec<u8>) {
        text.clear();
        match self.domain.value(code) {
            None => text.extend_from_slice(&self.null),
            Some(value) => quote(value, value.is_empty() || value == self.null, text),
        }
        text.push(self.separator);
    }
}

/// The cells of a column, by code.
#[derive(Clone, Debug)]
enum WrittenCells<'a> {
    /// Rendered once.
    Texts(CellTexts),
    /// Rendered as they are written, where few values repeat.
    Values(CellRenderer<'a>),
}

impl<'a> WrittenCells<'a> {
    fn new(column: &'a Column, null: Option<&str>, separator: u8) -> Self {
        let null = null.unwrap_or_default().as_bytes().to_vec();
        let renderer = CellRenderer { domain: &column.domain, null, separator };
        match column.codes.len() / 2 < column.domain.len() {
            true => Self::Values(renderer),
            false => Self::Texts(CellTexts::new(&renderer)),
        }
    }
}

/// The rendered cells of a domain, by code.
#[derive(Clone, Debug)]
struct CellTexts {
    cells: Vec<PaddedCell>,
    long: Arena,
}

impl CellTexts {
    fn new(renderer: &CellRenderer<'_>) -> Self {
        let codes = renderer.domain.len();
        let mut texts = Self { cells: Vec::with_capacity(codes), long: Arena::default() };
        let mut text = Vec::new();
        for code in 0..codes as u32 {
            renderer.render(code, &mut text);
            let mut cell = [0; MAX_INLINE_CELL_BYTES + 1];
            if text.len() <= MAX_INLINE_CELL_BYTES {
                cell[..text.len()].copy_from_slice(&text);
                cell[MAX_INLINE_CELL_BYTES] = text.len() as u8;
            } else {
                cell[..8].copy_from_slice(&(texts.long.len() as u64).to_le_bytes());
                cell[MAX_INLINE_CELL_BYTES] = LONG_CELL;
                texts.long.push(&text);
            }
            texts.cells.push(cell);
        }
        texts
    }

    fn long(&self, cell: &PaddedCell) -> &[u8] {
        let mut index = [0; 8];
        index.copy_from_slice(&cell[..8]);
        self.long.get(u64::from_le_bytes(index) as usize)
    }
}

/// Writes rows of columns, each after its bucket where rows have one.
pub struct RowWriter<'a> {
    columns: Vec<(&'a Codes, WrittenCells<'a>)>,
    null: Option<String>,
}

impl<'a> RowWriter<'a> {
    /// Renders the domains of `columns`. Where there is nothing but one column, in which a value is missing, and no
    /// bucket, a missing value is written as the column's [`null_marker`]: a blank line would not be a record to most
    /// readers.
    ///
    /// # Panics
    /// When there is no column.
    #[must_use]
    pub fn new(columns: &[&'a Column], bucketed: bool) -> Self {
        assert!(!columns.is_empty(), "a part has a column");
        let alone = columns.len() == 1 && !bucketed && columns[0].domain.has_missing();
        let null = alone.then(|| null_marker(&columns[0].domain));
        let last = columns.len() - 1;
        let texts = columns.iter().enumerate().map(|(index, column)| {
            let separator = if index == last { b'\n' } else { DELIMITER };
            (&column.codes, WrittenCells::new(column, null.as_deref(), separator))
        });
        Self { columns: texts.collect(), null: null.clone() }
    }

    /// The text of a missing value where it is not empty, for readers of the part.
    #[must_use]
    pub fn null(&self) -> Option<&str> {
        self.null.as_deref()
    }

    /// Writes the lines of rows over what `out` has from `end` on, each beginning with its bucket where it has one, and gives where
    /// they end; what follows means nothing.
    ///
    /// # Panics
    /// When a row exceeds the columns, or `end` what `out` has.
    pub fn write(&self, labelled: impl Iterator<Item = LabelledRows>, out: &mut Vec<u8>, mut end: usize) -> usize {
        let mut text = Vec::new();
        // room for a row without long cells; a cell is copied with what follows it
        let room = (self.columns.len() + 2) * (MAX_INLINE_CELL_BYTES + 1);
        for LabelledRows { label, rows } in labelled {
            let bucket = label.map(bucket_cell);
            for row in rows {
                if out.len() - end < room {
                    out.resize(end + room + MIN_EXTENSION_BYTES, 0);
                }
                if let Some(bucket) = &bucket {
                    out[end..end + MAX_INLINE_CELL_BYTES + 1].copy_from_slice(bucket);
                    end += usize::from(bucket[MAX_INLINE_CELL_BYTES]);
                }
                for (codes, cells) in &self.columns {
                    let code = codes.get(row);
                    let long = match cells {
                        WrittenCells::Texts(texts) => {
                            let cell = &texts.cells[code as usize];
                            if cell[MAX_INLINE_CELL_BYTES] != LONG_CELL {
                                out[end..end + MAX_INLINE_CELL_BYTES + 1].copy_from_slice(cell);
                                end += usize::from(cell[MAX_INLINE_CELL_BYTES]);
                                continue;
                            }
                            texts.long(cell)
                        }
                        WrittenCells::Values(renderer) => {
                            renderer.render(code, &mut text);
                            &text
                        }
                    };
                    if out.len() - end < long.len() + room {
                        out.resize(end + long.len() + room + MIN_EXTENSION_BYTES, 0);
                    }
                    out[end..end + long.len()].copy_from_slice(long);
                    end += long.len();
                }
            }
        }
        end
    }
}

fn bucket_cell(bucket: u32) -> PaddedCell {
    let mut cell = PaddedCell::default();
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(bucket).as_bytes();
    cell[..digits.len()].copy_from_slice(digits);
    cell[digits.len()] = DELIMITER;
    cell[MAX_INLINE_CELL_BYTES] = digits.len() as u8 + 1;
    cell
}

/// Appends the header line: `bucket`, when rows have one, and the names.
pub fn header<'a>(names: impl IntoIterator<Item = &'a str>, bucketed: bool, out: &mut Vec<u8>) {
    let names = bucketed.then_some("bucket").into_iter().chain(names);
    for (index, name) in names.enumerate() {
        if index > 0 {
            out.push(DELIMITER);
        }
        quote(name.as_bytes(), name.is_empty(), out);
    }
    out.push(b'\n');
}

/// A text that does not occur in `domain`, to stand for a missing value: `NA`, or else `NA_`, `NA__` and so on.
#[must_use]
pub fn null_marker(domain: &Domain) -> String {
    let mut marker = "NA".to_owned();
    while domain.iter().flatten().any(|value| value == marker.as_bytes()) {
        marker.push('_');
    }
    marker
}

/// Appends a field. A leading byte order mark is quoted, lest it be taken for the file's own.
pub fn quote(field: &[u8], always: bool, out: &mut Vec<u8>) {
    let special = |&byte: &u8| matches!(byte, DELIMITER | b'"' | b'\r' | b'\n');
    if !always && !field.iter().any(special) && !field.starts_with(b"\xEF\xBB\xBF") {
        out.extend_from_slice(field);
        return;
    }
    out.push(b'"');
    for &byte in field {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::microdata::formats::csv;
    use crate::microdata::{AttributeType, ChunkColumn, ColumnBuilder, IngestLimits, Interner};

    type CellKindTexts = Vec<Option<String>>;

    fn column(cells: &CellKindTexts) -> Column {
        let mut interner = Interner::default();
        let codes: Vec<u16> = (cells.iter())
            .map(|cell| cell.as_ref().map_or(0, |value| interner.intern(value.as_bytes()) as u16 + 1))
            .collect();
        let mut builder = ColumnBuilder::new(&IngestLimits::default());
        builder.push(&ChunkColumn::new(interner.take(), &codes)).unwrap();
        builder.finish(Some(AttributeType::Text))
    }

    fn written(columns: &[Column], buckets: Option<&[u32]>) -> (String, Option<String>) {
        let names = ["a", "b,\"", "\u{e9}c", " d;"];
        let writer = RowWriter::new(&columns.iter().collect::<Vec<_>>(), buckets.is_some());
        let mut out = Vec::new();
        header(names[..columns.len()].iter().copied(), buckets.is_some(), &mut out);
        let rows = columns[0].codes.len();
        let labelled = |row: usize| LabelledRows { label: buckets.map(|of| of[row]), rows: row..row + 1 };
        // over what was written before
        let end = out.len();
        out.extend_from_slice(b"?????");
        let end = writer.write((0..rows / 3).map(labelled), &mut out, end);
        let end = writer.write((rows / 3..rows).map(labelled), &mut out, end);
        out.truncate(end);
        (String::from_utf8(out).unwrap(), writer.null().map(str::to_owned))
    }

    fn read_back(text: &str, null: Option<String>) -> Vec<CellKindTexts> {
        let options = csv::CsvOptions { delimiter: Some(DELIMITER), null, types: Vec::new() };
        let mut reader = csv::CsvReader::open(text.as_bytes(), options, &IngestLimits::default()).unwrap();
        let table = csv::read_table(&mut reader, None, &IngestLimits::default()).unwrap();
        let cell = |value: Option<&[u8]>| value.map(|value| String::from_utf8(value.to_vec()).unwrap());
        (table.attributes().iter())
            .map(|attr| (0..table.rows()).map(|row| cell(table.column(attr).value(row))).collect())
            .collect()
    }

    fn cell() -> impl Strategy<Value = Option<String>> {
        prop::option::weighted(
            0.8,
            prop_oneof!["[a,;\"\r\n \u{feff}\u{e9}]{0,4}", "NA_{0,2}", "[a-z\"]{25,70}", any::<String>()],
        )
    }

    fn columns() -> impl Strategy<Value = Vec<CellKindTexts>> {
        (1..=4_usize, 0..40_usize)
            .prop_flat_map(|(columns, rows)| prop::collection::vec(prop::collection::vec(cell(), rows), columns))
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(cells in columns(), times in 1..=3_usize) {
            // texts of a column whose values repeat are kept
            let cells: Vec<CellKindTexts> = cells.iter().map(|column| vec![column.clone(); times].concat()).collect();
            let columns: Vec<Column> = cells.iter().map(column).collect();
            let (text, null) = written(&columns, None);
            prop_assert_eq!(&read_back(&text, null), &cells);
            if columns.len() == 1 {
                prop_assert!(text.lines().count() == text.split('\n').count() - 1);
                prop_assert!(!text.starts_with('\n') && columns[0].codes.is_empty() | !text.ends_with("\n\n"));
            }
            let buckets: Vec<u32> = (0..cells[0].len() as u32).map(|row| (row / 3).wrapping_mul(999_999_937)).collect();
            let (text, null) = written(&columns, Some(&buckets));
            prop_assert_eq!(null, None);
            let mut expected = vec![buckets.iter().map(|bucket| Some(bucket.to_string())).collect()];
            expected.extend(cells);
            prop_assert_eq!(read_back(&text, None), expected);
        }
    }

    #[test]
    fn lines_are_as_they_should_be() {
        let cells =
            |values: &[Option<&str>]| values.iter().map(|value| value.map(str::to_owned)).collect::<CellKindTexts>();
        let columns = [
            column(&cells(&[Some("x"), None, Some(""), Some("say \"a,b\"")])),
            column(&cells(&[Some(" "), Some("1"), None, Some("y\n")])),
        ];
        let text = written(&columns, None).0;
        assert_eq!(text, "a,\"b,\"\"\"\nx, \n,1\n\"\",\n\"say \"\"a,b\"\"\",\"y\n\"\n");
        let text = written(&columns[..1], Some(&[1, 1, 4_294_967_295, 20])).0;
        assert_eq!(text, "bucket,a\n1,x\n1,\n4294967295,\"\"\n20,\"say \"\"a,b\"\"\"\n");
    }

    #[test]
    fn a_part_of_one_column_has_no_blank_line() {
        let cells = vec![None, Some("NA".to_owned()), Some(String::new()), Some("NA_".to_owned())];
        let (text, null) = written(&[column(&cells)], None);
        assert_eq!((text.as_str(), null.as_deref()), ("a\nNA__\nNA\n\"\"\nNA_\n", Some("NA__")));
        let present = column(&vec![Some("NA".to_owned())]);
        assert_eq!(
            (written(std::slice::from_ref(&present), None).1, null_marker(&present.domain)),
            (None, "NA_".to_owned())
        );
        // a marker that occurs after all does not change what is read
        let mut text = Vec::new();
        CellRenderer { domain: &present.domain, null: b"NA".to_vec(), separator: b'\n' }.render(0, &mut text);
        assert_eq!(text, b"\"NA\"\n");
    }
}
