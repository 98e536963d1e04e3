//! A stored column chunk is read or found damaged; what was read is stored as a chunk that reads as the same.

use guardian::microdata::ChunkColumn;

/// Judges one input.
pub fn run(data: &[u8]) {
    let Ok(column) = ChunkColumn::decode(data) else { return };
    let again = ChunkColumn::decode(&column.encode()).expect("what was stored is read");
    assert_eq!(again.rows(), column.rows());
    for row in 0..column.rows() {
        assert_eq!(again.value(row), column.value(row));
    }
}
