//! Every chunk that a reader gives is sound, and is stored and read back as it is.

use std::io::Cursor;
use std::panic;
use std::sync::Once;

use guardian::microdata::ChunkColumn;
use guardian::microdata::formats::csv::CsvOptions;
use guardian::microdata::formats::{IngestLimits, InputFormat, open};

static HOOK: Once = Once::new();

/// Lets panics of foreign readers pass, which the service catches and answers as a damaged file. Any other one ends the target.
fn pass_foreign_panics() {
    let ends = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let file = info.location().map_or("", |place| place.file());
        if !["/arrow-", "/parquet-", "/flatbuffers-"].iter().any(|name| file.contains(name)) {
            ends(info);
        }
    }));
}

/// Reads a table to its end or to its refusal.
pub fn run(format: InputFormat, data: &[u8]) {
    HOOK.call_once(pass_foreign_panics);
    let limits = IngestLimits { max_decompressed: 1 << 26, ..IngestLimits::default() };
    let body = Cursor::new(data.to_vec());
    let Ok(mut reader) = open(format, body, CsvOptions::default(), &limits, &std::env::temp_dir()) else { return };
    let names = reader.names().to_vec();
    assert!(names.iter().all(|name| !name.is_empty()));
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    while let Ok(Some(chunk)) = reader.next_chunk() {
        assert!(chunk.rows > 0);
        assert_eq!(chunk.columns.len(), names.len());
        for column in &chunk.columns {
            assert_eq!(column.rows(), chunk.rows as usize);
            let again = ChunkColumn::decode(&column.encode()).expect("what was stored is read");
            for row in 0..column.rows() {
                let value = column.value(row);
                assert!(value.is_none_or(|value| std::str::from_utf8(value).is_ok()));
                assert_eq!(again.value(row), value);
            }
        }
    }
    assert_eq!(reader.kinds().len(), names.len());
}
