//! Looks at the headers of all pages of a Parquet file before any page is read: a reader makes room for as many bytes as a header
//! claims, and what the footer says of sizes need not be true.
//!
//! Headers are structs of Thrift's compact protocol. Of their fields three are used: how many bytes a page has once it is
//! decompressed, how many it has in the file, and where the next one begins.

use std::io::Read;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ParquetMetaData;
use ::parquet::file::reader::ChunkReader;

use super::super::arrays::damaged;
use super::super::error::IngestError;
use crate::microdata::limits::IngestLimits;

/// A header with its statistics is not larger.
const MAX_HEADER: u64 = 16 << 20;
/// Structs within structs; a header has three of them.
const MAX_DEPTH: u32 = 16;

/// The last eight bytes of a file: how long the footer before them is, and the magic number.
const TAIL: u64 = 8;

/// Refuses a footer that is larger than a batch may be, before it is read.
///
/// # Errors
/// [`IngestError`]
pub(super) fn check_footer(file: &impl ChunkReader, limits: &IngestLimits) -> Result<(), IngestError> {
    let length = file.len();
    if length < TAIL {
        return Err(damaged());
    }
    let mut tail = [0; 4];
    file.get_read(length - TAIL).map_err(unread)?.read_exact(&mut tail).map_err(IngestError::Spool)?;
    let (found, limit) = (u64::from(u32::from_le_bytes(tail)), limits.max_batch_bytes);
    if found > limit && found < length {
        return Err(IngestError::TooLarge { what: "bytes of the footer", limit, found, row: None });
    }
    Ok(())
}

/// Refuses pages that are larger than a batch may be, and files that unfold too far.
///
/// # Errors
/// [`IngestError`]
pub(super) fn check_pages(
    file: &impl ChunkReader,
    metadata: &ParquetMetaData,
    limits: &IngestLimits,
) -> Result<(), IngestError> {
    let mut unfolded = 0u64;
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let (start, length) = column.byte_range();
        let end = start.checked_add(length).ok_or_else(damaged)?;
        let mut at = start;
        let mut values = u64::try_from(column.num_values()).map_err(|_| damaged())?;
        while at < end {
            let bytes = file.get_read(at).map_err(unread)?.take(MAX_HEADER);
            let mut header = PageHeaderReader { bytes, read: 0 };
            let page = match header.page() {
                Some(page) => page,
                // some writers count a few bytes more than the pages have
                None if values == 0 => break,
                None => return Err(damaged()),
            };
            at = at.saturating_add(header.read).saturating_add(page.stored);
            values = values.saturating_sub(page.values);
            let (found, limit) = (page.plain.max(page.stored), limits.max_batch_bytes);
            if found > limit {
                return Err(IngestError::TooLarge { what: "bytes of a page", limit, found, row: None });
            }
            unfolded = unfolded.saturating_add(page.plain);
            let (found, limit) = (unfolded, limits.max_decompressed);
            if found > limit {
                return Err(IngestError::TooLarge { what: "decompressed bytes", limit, found, row: None });
            }
        }
    }
    Ok(())
}

fn unread(error: ParquetError) -> IngestError {
    IngestError::Spool(std::io::Error::other(error))
}

/// What a header says of its page.
struct PageSummary {
    plain: u64,
    stored: u64,
    /// Of a page of data; none of a dictionary.
    values: u64,
}

struct PageHeaderReader<R> {
    bytes: R,
    read: u64,
}

impl<R: Read> PageHeaderReader<R> {
    fn page(&mut self) -> Option<PageSummary> {
        let (mut plain, mut stored, mut values, mut field) = (None, None, 0, 0);
        loop {
            let (kind, id) = self.field(field)?;
            field = id;
            match (kind, id) {
                (0, _) => break,
                (5, 2) => plain = Some(u64::try_from(self.signed()?).ok()?),
                (5, 3) => stored = Some(u64::try_from(self.signed()?).ok()?),
                // the headers of pages of data, of both versions, begin with how many values there are
                (12, 5 | 8) => values = self.first_number()?,
                (kind, _) => self.skip(kind, MAX_DEPTH)?,
            }
        }
        Some(PageSummary { plain: plain?, stored: stored?, values })
    }

    /// The first field of a struct, which must be a number.
    fn first_number(&mut self) -> Option<u64> {
        let (5, mut field) = self.field(0)? else { return None };
        let number = u64::try_from(self.signed()?).ok()?;
        loop {
            let (kind, id) = self.field(field)?;
            field = id;
            if kind == 0 {
                return Some(number);
            }
            self.skip(kind, MAX_DEPTH)?;
        }
    }

    /// The type and the number of the next field of a struct; type 0 is its end.
    fn field(&mut self, before: i64) -> Option<(u8, i64)> {
        let byte = self.byte()?;
        let (step, kind) = (byte >> 4, byte & 0xF);
        let id = match (kind, step) {
            (0, _) => 0,
            (_, 0) => self.signed()?,
            _ => before.checked_add(i64::from(step))?,
        };
        Some((kind, id))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // true and false: the type is the value
            1 | 2 => {}
            3 => self.pass(1)?,
            4..=6 => drop(self.varint()?),
            7 => self.pass(8)?,
            8 => {
                let length = self.varint()?;
                self.pass(length)?;
            }
            9 | 10 => {
                let byte = self.byte()?;
                let length = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
                for _ in 0..length {
                    self.skip_element(byte & 0xF, depth)?;
                }
            }
            11 => {
                let length = self.varint()?;
                let kinds = if length == 0 { 0 } else { self.byte()? };
                for _ in 0..length {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 0xF, depth)?;
                }
            }
            12 => {
                let mut field = 0;
                loop {
                    let (kind, id) = self.field(field)?;
                    field = id;
                    if kind == 0 {
                        break;
                    }
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// In lists and maps a truth value is a byte.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        if matches!(kind, 1 | 2) { self.pass(1) } else { self.skip(kind, depth) }
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte).ok()?;
        self.read += 1;
        Some(byte[0])
    }

    fn pass(&mut self, length: u64) -> Option<()> {
        let passed = std::io::copy(&mut self.bytes.by_ref().take(length), &mut std::io::sink()).ok()?;
        self.read += passed;
        (passed == length).then_some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Numbers with a sign go zig and zag around zero.
    fn signed(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(bytes: &[u8]) -> Option<(u64, u64, u64, u64)> {
        let mut header = PageHeaderReader { bytes, read: 0 };
        let page = header.page()?;
        Some((page.plain, page.stored, page.values, header.read))
    }

    #[test]
    fn a_header_is_read_to_its_end() {
        // type 0, plain 300, stored 70, a checksum, values 5 and a struct of statistics; then what belongs to the page
        let header = [
            0x15, 0, 0x15, 0xD8, 0x04, 0x15, 0x8C, 0x01, 0x15, 0x03, 0x1C, 0x15, 0x0A, 0x15, 0, 0x1C, 0x18, 2, b'a',
            b'b', 0x11, 0, 0, 0, 7, 7,
        ];
        assert_eq!(page(&header), Some((300, 70, 5, 24)));
        for cut in 0..24 {
            assert_eq!(page(&header[..cut]), None, "{cut}");
        }
        // a page of fewer than no bytes
        assert_eq!(page(&[0x15, 0, 0x15, 0x01, 0x15, 0x02, 0]), None);
        // structs within structs without end
        assert_eq!(page(&[0x1C; 100]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            let _ = page(&bytes);
        }
    }
}
