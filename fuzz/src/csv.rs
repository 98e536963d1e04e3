//! CSV is read or refused; what was read is written as CSV that reads as the same table.

use guardian::microdata::formats::IngestLimits;
use guardian::microdata::formats::csv::{CsvOptions, CsvReader, RowWriter, header, read_table};
use guardian::microdata::{Column, LabelledRows, MAX_ATTRIBUTES, Table};

fn read(text: &[u8], options: CsvOptions) -> Option<Table> {
    let limits = IngestLimits::default();
    let mut reader = CsvReader::open(text, options, &limits).ok()?;
    if reader.names().len() > MAX_ATTRIBUTES {
        while reader.next_chunk().ok()?.is_some() {}
        return None;
    }
    read_table(&mut reader, None, &limits).ok()
}

/// Judges one input.
pub fn run(data: &[u8]) {
    let Some((&flags, text)) = data.split_first() else { return };
    let delimiter = [None, Some(b','), Some(b';'), Some(b'\t')][usize::from(flags & 3)];
    let null = (flags & 4 != 0).then(|| "NA".to_owned());
    let Some(table) = read(text, CsvOptions { delimiter, null, types: Vec::new() }) else { return };
    let columns: Vec<&Column> = table.attributes().iter().map(|attr| table.column(attr)).collect();
    let writer = RowWriter::new(&columns, false);
    let mut written = Vec::new();
    header(table.names().iter().map(String::as_str), false, &mut written);
    let (rows, end) = (LabelledRows { label: None, rows: 0..table.rows() }, written.len());
    let end = writer.write(std::iter::once(rows), &mut written, end);
    written.truncate(end);
    let options = CsvOptions { delimiter: Some(b','), null: writer.null().map(str::to_owned), types: Vec::new() };
    let again = read(&written, options).expect("what was written is read");
    assert_eq!(again.names(), table.names());
    assert_eq!(again.rows(), table.rows());
    for attr in table.attributes().iter() {
        for row in 0..table.rows() {
            assert_eq!(again.column(attr).value(row), table.column(attr).value(row));
        }
    }
}
