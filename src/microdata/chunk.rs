//! Pieces of a table: columns of a few ten thousand rows, each with its own dictionary. Uploads are read into chunks, and
//! kept as chunks.

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::domain::Arena;
use super::interner::Interner;
use super::table::Codes;
use crate::with_codes;

/// The most rows of a chunk: then every code, that of missing included, fits 16 bits.
pub const CHUNK_ROWS: usize = 0xFFFF;

/// No encoded column is larger than this before compression; a decoder refuses more.
const PLAIN_LIMIT: u64 = 64 << 20;
const ZSTD_LEVEL: i32 = 1;

/// Some consecutive rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// How many rows there are, at most [`CHUNK_ROWS`].
    pub rows: u32,
    /// All columns of the table, in its order.
    pub columns: Vec<ChunkColumn>,
}

/// One column of a chunk. Code 0 stands for a missing value, code `c` for value `c - 1` of the dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkColumn {
    values: Arena,
    counts: Vec<u32>,
    codes: Codes,
}

/// The bytes are not those of an encoded [`ChunkColumn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a stored chunk is corrupt: {0}")]
pub struct ChunkError(&'static str);

#[derive(Serialize, Deserialize)]
struct EncodedColumn<'a> {
    lengths: Vec<u32>,
    #[serde(borrow, with = "serde_bytes")]
    values: &'a [u8],
    /// Little endian, one byte a row when the codes fit, two otherwise.
    #[serde(borrow, with = "serde_bytes")]
    codes: &'a [u8],
}

impl ChunkColumn {
    /// A column of distinct `values`; `codes` are as the type describes, at most [`CHUNK_ROWS`].
    ///
    /// # Panics
    /// When a code is above the number of values.
    #[must_use]
    pub fn new(values: Arena, codes: &[u16]) -> Self {
        let mut counts = vec![0; values.len() + 1];
        codes.iter().for_each(|&code| counts[usize::from(code)] += 1);
        Self { codes: Codes::collect(counts.len(), codes.iter().map(|&code| u32::from(code))), values, counts }
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// The distinct values, in no particular order.
    #[must_use]
    pub const fn values(&self) -> &Arena {
        &self.values
    }

    /// How often each code occurs: first the missing value, then the values in their order.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// How many values are missing.
    #[must_use]
    pub fn missing(&self) -> u32 {
        self.counts[0]
    }

    /// A code per row.
    #[must_use]
    pub const fn codes(&self) -> &Codes {
        &self.codes
    }

    /// The value of `row`; `None` when it is missing.
    #[must_use]
    pub fn value(&self, row: usize) -> Option<&[u8]> {
        (self.codes.get(row) as usize).checked_sub(1).map(|index| self.values.get(index))
    }

    /// Some of its rows, with the values that occur in them.
    #[must_use]
    pub fn kept(&self, keep: &[bool]) -> Self {
        let mut interner = Interner::default();
        let kept = keep.iter().enumerate().filter(|(_, is_kept)| **is_kept);
        let codes: Vec<u16> =
            kept.map(|(row, _)| self.value(row).map_or(0, |value| interner.intern(value) as u16 + 1)).collect();
        Self::new(interner.take(), &codes)
    }

    /// The column as bytes that [`ChunkColumn::decode`] reads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let codes: Vec<u8> = match &self.codes {
            Codes::U8(codes) => codes.clone(),
            wider => wider.iter().flat_map(|code| (code as u16).to_le_bytes()).collect(),
        };
        let lengths = self.values.iter().map(|value| value.len() as u32).collect();
        let wire = EncodedColumn { lengths, values: self.values.bytes(), codes: &codes };
        // Unwrap safety: sequences of known length serialize, a vector takes every write, and the level and the option are
        // valid ones; what is left is memory that cannot be had.
        let plain = postcard::to_stdvec(&wire).expect("lengths and bytes always serialize");
        let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL).expect("memory for a compressor");
        encoder.include_checksum(true).expect("a valid option");
        std::io::Write::write_all(&mut encoder, &plain).expect("a vector takes every write");
        encoder.finish().expect("a vector takes every write")
    }

    /// Reads what [`ChunkColumn::encode`] wrote. Memory stays within a small multiple of what a chunk may hold, whatever
    /// the bytes.
    ///
    /// # Errors
    /// [`ChunkError`] when the bytes are anything else.
    pub fn decode(bytes: &[u8]) -> Result<Self, ChunkError> {
        let mut plain = Vec::new();
        let decoder = zstd::Decoder::with_buffer(bytes).map_err(|_| ChunkError("no decompressor"))?;
        let read = decoder.take(PLAIN_LIMIT + 1).read_to_end(&mut plain).map_err(|_| ChunkError("compression"))?;
        if read as u64 > PLAIN_LIMIT {
            return Err(ChunkError("size"));
        }
        let (wire, rest): (EncodedColumn<'_>, _) =
            postcard::take_from_bytes(&plain).map_err(|_| ChunkError("layout"))?;
        let values = Arena::from_parts(&wire.lengths, wire.values).ok_or(ChunkError("lengths"))?;
        if !rest.is_empty() || !values.iter().all(|value| std::str::from_utf8(value).is_ok()) {
            return Err(ChunkError("values"));
        }
        let codes = match values.len() {
            0..=0xFF => Codes::U8(wire.codes.to_vec()),
            _ => {
                let (pairs, []) = wire.codes.as_chunks() else { return Err(ChunkError("codes")) };
                Codes::U16(pairs.iter().map(|&pair| u16::from_le_bytes(pair)).collect())
            }
        };
        let mut counts = vec![0; values.len() + 1];
        if codes.len() > CHUNK_ROWS || codes.iter().any(|code| code as usize >= counts.len()) {
            return Err(ChunkError("codes"));
        }
        with_codes!(&codes, codes => codes.iter().for_each(|&code| counts[code as usize] += 1));
        if counts[1..].contains(&0) {
            return Err(ChunkError("a value without a row"));
        }
        Ok(Self { values, counts, codes })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::microdata::Interner;

    fn column(rows: &[Option<String>]) -> ChunkColumn {
        let mut interner = Interner::default();
        let codes: Vec<u16> = rows
            .iter()
            .map(|row| row.as_ref().map_or(0, |value| interner.intern(value.as_bytes()) as u16 + 1))
            .collect();
        ChunkColumn::new(interner.take(), &codes)
    }

    #[test]
    fn kept_rows_have_no_values_of_others() {
        let text = |value: &str| Some(value.to_owned());
        let all = column(&[text("a"), None, text("b"), text("c"), text("b")]);
        let kept = all.kept(&[false, true, true, false, true]);
        assert_eq!(kept, column(&[None, text("b"), text("b")]));
        assert_eq!(all.kept(&[false; 5]).values().len(), 0);
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(rows in prop::collection::vec(prop::option::of(".{0,3}"), 0..700)) {
            let column = column(&rows);
            prop_assert_eq!(&ChunkColumn::decode(&column.encode()).unwrap(), &column);
            for (row, value) in rows.iter().enumerate() {
                prop_assert_eq!(column.value(row), value.as_ref().map(String::as_bytes));
            }
        }

        #[test]
        fn damage_is_noticed(rows in prop::collection::vec(prop::option::of("[a-c]{0,3}"), 1..50), at: prop::sample::Index, flip in 1..=255_u8) {
            let mut bytes = column(&rows).encode();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            // a flip in the frame header may be without effect; it must never give other rows
            if let Ok(read) = ChunkColumn::decode(&bytes) {
                prop_assert_eq!(read, column(&rows));
            }
            bytes.truncate(at);
            prop_assert!(ChunkColumn::decode(&bytes).is_err());
        }

        #[test]
        fn arbitrary_layouts_do_not_panic(lengths: Vec<u32>, values: Vec<u8>, codes: Vec<u8>, cut: prop::sample::Index) {
            let wire = EncodedColumn { lengths, values: &values, codes: &codes };
            // Unwrap safety: sequences of known length serialize, a vector takes every write, and the level and the option are
        // valid ones; what is left is memory that cannot be had.
        let plain = postcard::to_stdvec(&wire).unwrap();
            let _ = ChunkColumn::decode(&zstd::bulk::compress(&plain, 1).unwrap());
            let _ = ChunkColumn::decode(&zstd::bulk::compress(&plain[..cut.index(plain.len())], 1).unwrap());
        }
    }

    #[test]
    fn claims_of_size_are_not_believed() {
        // a vector of 2^63 lengths, by its prefix alone
        let claim = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
        assert!(ChunkColumn::decode(&zstd::bulk::compress(&claim, 1).unwrap()).is_err());
        let bomb = zstd::bulk::compress(&vec![0; PLAIN_LIMIT as usize + 1], 1).unwrap();
        assert_eq!(ChunkColumn::decode(&bomb), Err(ChunkError("size")));
    }

    #[test]
    fn wide_dictionaries_round_trip() {
        let rows: Vec<_> = (0..CHUNK_ROWS).map(|row| (row % 5000 != 0).then(|| row.to_string())).collect();
        let column = column(&rows);
        assert_eq!(ChunkColumn::decode(&column.encode()), Ok(column));
    }
}
