//! A compressed stream is unpacked within its limits, or refused.

use std::io::{Cursor, Read};

use guardian::microdata::formats::IngestLimits;
use guardian::microdata::formats::compression::{Encoding, decoder};

const MOST: u64 = 1 << 20;

/// Judges one input.
pub fn run(data: &[u8]) {
    let Some((&flags, packed)) = data.split_first() else { return };
    let encoding = [Encoding::Identity, Encoding::Gzip, Encoding::Zstd][usize::from(flags % 3)];
    let limits = IngestLimits { max_decompressed: MOST, ..IngestLimits::default() };
    let Ok(mut unpacked) = decoder(Cursor::new(packed.to_vec()), encoding, &limits) else { return };
    let mut buffer = vec![0; usize::from(flags) * 64 + 1];
    let mut produced = 0;
    while let Ok(read @ 1..) = unpacked.read(&mut buffer) {
        produced += read as u64;
        assert!(produced <= MOST);
    }
}
