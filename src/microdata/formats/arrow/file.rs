//! Reads an Arrow file (Feather, version 2) into chunks, a record batch at a time.
//!
//! The footer says where dictionaries and batches are. What is in front of them is not read: some writers put no valid stream
//! there. No length is believed before it is held to the file and to a bound, and blocks may not name the same bytes again and
//! again. What is in a block is decoded by `arrow-ipc`, which validates it.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;
use std::vec::IntoIter;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileDecoder, read_footer_length};
use arrow_ipc::{Block, Footer, Message, root_as_footer, root_as_message};
use arrow_schema::Schema;

use super::super::arrays::{BatchSource, Batches, damaged, guarded};
use super::super::error::IngestError;
use super::super::input::TableReader;
use super::reader::{MAX_DESCRIPTION, check_byte_order};
use super::sizes::{MessageSizes, within};
use crate::microdata::limits::IngestLimits;
use crate::microdata::{AttributeType, SpoolReader};

/// The first bytes of an Arrow file.
pub(in crate::microdata::formats) const ARROW_FILE_MAGIC: &[u8] = b"ARROW1";
/// The last bytes of a file: the length of the footer before them, and the magic number.
const TAIL: u64 = 10;
/// The mark and the length before the description of a message.
const PREFIX: usize = 8;

/// Reads the footer and the dictionaries of an Arrow file, whose rows follow.
///
/// # Errors
/// [`IngestError`]
pub(in crate::microdata::formats) fn open_file(
    file: SpoolReader,
    types: Vec<(String, AttributeType)>,
    limits: &IngestLimits,
) -> Result<impl TableReader + use<>, IngestError> {
    let (schema, blocks) = guarded(|| FileBlocks::open(file, limits))?;
    Batches::new(&schema, blocks, types, limits)
}

/// The record batches that the footer of a file lists.
struct FileBlocks {
    file: SpoolReader,
    max_block: u64,
    sizes: MessageSizes,
    decoder: FileDecoder,
    batches: IntoIter<Block>,
}

impl FileBlocks {
    fn open(file: SpoolReader, limits: &IngestLimits) -> Result<(Arc<Schema>, Self), IngestError> {
        let length = file.len();
        let bytes = footer_bytes(&file, length)?;
        let footer = root_as_footer(&bytes).map_err(|_| damaged())?;
        let described = footer.schema().ok_or_else(damaged)?;
        check_byte_order(described)?;
        let schema = Arc::new(try_fb_to_schema(described).map_err(|_| damaged())?);
        let (dictionaries, batches) = blocks(&footer, length)?;
        let mut read = Self {
            file,
            max_block: limits.max_batch_bytes,
            sizes: MessageSizes::new(limits),
            decoder: FileDecoder::new(Arc::clone(&schema), footer.version()),
            batches: batches.into_iter(),
        };
        read.dictionaries(&dictionaries)?;
        Ok((schema, read))
    }

    /// Reads the dictionaries, which hold for all batches of the file.
    fn dictionaries(&mut self, blocks: &[Block]) -> Result<(), IngestError> {
        let mut begun = BTreeSet::new();
        for block in blocks {
            let bytes = self.block(block)?;
            let dictionary = message_of(&bytes)?.header_as_dictionary_batch().ok_or_else(damaged)?;
            // nothing would say which batches a second dictionary is for
            if !dictionary.isDelta() && !begun.insert(dictionary.id()) {
                return Err(damaged());
            }
            self.decoder.read_dictionary(block, &bytes).map_err(|_| damaged())?;
        }
        Ok(())
    }

    /// The bytes of a block, with the sizes that its message states held to the limits.
    fn block(&mut self, block: &Block) -> Result<Buffer, IngestError> {
        let extent = BlockExtent::new(block)?;
        within("bytes of the description of a record batch", extent.description, MAX_DESCRIPTION)?;
        within("bytes of a record batch", extent.body, self.max_block)?;
        let bytes = bytes_at(&self.file, extent.start, extent.length())?;
        self.sizes.add(&message_of(&bytes)?, &bytes[extent.description as usize..])?;
        Ok(Buffer::from_vec(bytes))
    }
}

impl BatchSource for FileBlocks {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, IngestError> {
        let Some(block) = self.batches.next() else { return Ok(None) };
        let bytes = self.block(&block)?;
        let batch = self.decoder.read_record_batch(&block, &bytes).map_err(|_| damaged())?;
        batch.ok_or_else(damaged).map(Some)
    }
}

/// The footer of a file of as many bytes.
fn footer_bytes(file: &SpoolReader, length: u64) -> Result<Vec<u8>, IngestError> {
    let end = length.checked_sub(TAIL).ok_or_else(damaged)?;
    let tail = bytes_at(file, end, TAIL)?;
    let tail = tail.try_into().map_err(|_| damaged())?;
    let footer = read_footer_length(tail).map_err(|_| damaged())? as u64;
    let start = end.checked_sub(footer).ok_or_else(damaged)?;
    within("bytes of the footer", footer, MAX_DESCRIPTION)?;
    bytes_at(file, start, footer)
}

/// The dictionaries and the batches that a footer lists, which together may not be longer than the file.
fn blocks(footer: &Footer<'_>, length: u64) -> Result<(Vec<Block>, Vec<Block>), IngestError> {
    let dictionaries: Vec<Block> = footer.dictionaries().iter().flatten().copied().collect();
    let batches: Vec<Block> = footer.recordBatches().iter().flatten().copied().collect();
    let mut listed = 0_u64;
    for block in dictionaries.iter().chain(&batches) {
        listed = listed.saturating_add(BlockExtent::new(block)?.length());
    }
    if listed > length { Err(damaged()) } else { Ok((dictionaries, batches)) }
}

/// Where a block is, in bytes.
struct BlockExtent {
    start: u64,
    /// The description of the message, with its prefix.
    description: u64,
    body: u64,
}

impl BlockExtent {
    fn new(block: &Block) -> Result<Self, IngestError> {
        let start = u64::try_from(block.offset()).map_err(|_| damaged())?;
        let description = u64::try_from(block.metaDataLength()).map_err(|_| damaged())?;
        let body = u64::try_from(block.bodyLength()).map_err(|_| damaged())?;
        Ok(Self { start, description, body })
    }

    const fn length(&self) -> u64 {
        self.description.saturating_add(self.body)
    }
}

/// The message of a block, behind the prefix, of which older writers leave out the mark.
fn message_of(block: &[u8]) -> Result<Message<'_>, IngestError> {
    let (prefix, rest) = block.split_at_checked(PREFIX).ok_or_else(damaged)?;
    let described = if prefix[..4] == [0xFF; 4] { rest } else { &block[PREFIX / 2..] };
    root_as_message(described).map_err(|_| damaged())
}

fn bytes_at(file: &SpoolReader, start: u64, length: u64) -> Result<Vec<u8>, IngestError> {
    let mut bytes = Vec::new();
    let read = file.at(start).take(length).read_to_end(&mut bytes);
    match read.map_err(IngestError::Spool)? as u64 == length {
        true => Ok(bytes),
        false => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int64Array};
    use arrow_ipc::convert::IpcSchemaEncoder;
    use arrow_ipc::writer::FileWriter;
    use arrow_ipc::{Endianness, FooterArgs, Schema as WrittenSchema, SchemaArgs};

    use super::*;
    use crate::microdata::SpoolFile;

    /// A table of two dictionary columns and one of numbers.
    fn batch(rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let text = |at: i64| if at % 2 == 0 { "x" } else { "y" };
        let words: DictionaryArray<Int32Type> = (0..rows).map(text).collect();
        let others: DictionaryArray<Int32Type> = (0..rows).map(|at| text(at + 1)).collect();
        let columns = [("n", numbers), ("w", Arc::new(words) as ArrayRef), ("o", Arc::new(others))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn file_of(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    /// The number of rows that a file gives.
    fn read(bytes: &[u8]) -> Result<u32, IngestError> {
        let mut file = SpoolFile::new(&std::env::temp_dir()).unwrap();
        file.write_all(bytes).unwrap();
        let mut reader = open_file(file.into_reader(), Vec::new(), &IngestLimits::default())?;
        let mut rows = 0;
        while let Some(chunk) = reader.next_chunk()? {
            rows += chunk.rows;
        }
        Ok(rows)
    }

    /// The blocks of a file: dictionaries, then batches.
    fn listed(bytes: &[u8]) -> (Vec<Block>, Vec<Block>) {
        let tail = bytes[bytes.len() - TAIL as usize..].try_into().unwrap();
        let end = bytes.len() - TAIL as usize;
        let footer = root_as_footer(&bytes[end - read_footer_length(tail).unwrap()..end]).unwrap();
        blocks(&footer, u64::MAX).unwrap()
    }

    /// A file whose footer names one block in the place of another.
    fn with_block(mut bytes: Vec<u8>, of: &Block, by: &Block) -> Vec<u8> {
        let at = bytes.windows(of.0.len()).rposition(|window| window == of.0).unwrap();
        bytes[at..at + by.0.len()].copy_from_slice(&by.0);
        bytes
    }

    #[test]
    fn what_stands_in_front_of_blocks_is_not_read() {
        let mut bytes = file_of(&[batch(5), batch(3)]);
        let first = listed(&bytes).0[0].offset() as usize;
        // some writers put a schema without its prefix there
        bytes[8..first].fill(0xA5);
        assert_eq!(read(&bytes).unwrap(), 8);
    }

    #[test]
    fn cut_files_and_second_dictionaries_are_refused() {
        let bytes = file_of(&[batch(5)]);
        assert_eq!(read(&bytes).unwrap(), 5);
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
        let (dictionaries, batches) = listed(&bytes);
        assert!(read(&with_block(bytes.clone(), &dictionaries[1], &dictionaries[0])).is_err());
        assert!(read(&with_block(bytes, &batches[0], &dictionaries[0])).is_err());
    }

    #[test]
    fn footers_that_name_bytes_again_are_refused() {
        let mut batches = vec![batch(2000)];
        batches.extend((0..9).map(|_| batch(2)));
        let mut bytes = file_of(&batches);
        assert_eq!(read(&bytes).unwrap(), 2018);
        let listed = listed(&bytes).1;
        for block in &listed[1..] {
            bytes = with_block(bytes, block, &listed[0]);
        }
        assert!(matches!(read(&bytes), Err(IngestError::Malformed { .. })));
    }

    #[test]
    fn lengths_are_held_to_bounds_before_bytes_are_read() {
        let bytes = file_of(&[batch(2)]);
        let block = listed(&bytes).1[0];
        for lengths in [(block.metaDataLength(), i64::MAX), (i32::MAX, block.bodyLength()), (-1, 0), (0, -1), (3, 0)] {
            let changed = Block::new(block.offset(), lengths.0, lengths.1);
            assert!(read(&with_block(bytes.clone(), &block, &changed)).is_err(), "{lengths:?}");
        }
        let long = Block::new(i64::MAX, block.metaDataLength(), block.bodyLength());
        assert!(read(&with_block(bytes, &block, &long)).is_err());
    }

    #[test]
    fn another_byte_order_is_refused() {
        for (endianness, is_read) in [(Endianness::Little, true), (Endianness::Big, false)] {
            let mut builder = IpcSchemaEncoder::new().schema_to_fb(&Schema::empty());
            builder.reset();
            builder.start_vector::<u32>(0);
            let fields = Some(builder.end_vector(0));
            let schema =
                WrittenSchema::create(&mut builder, &SchemaArgs { endianness, fields, ..SchemaArgs::default() });
            let footer = Footer::create(&mut builder, &FooterArgs { schema: Some(schema), ..FooterArgs::default() });
            builder.finish_minimal(footer);
            let footer = builder.finished_data();
            let bytes = [b"ARROW1\0\0", footer, &(footer.len() as i32).to_le_bytes(), b"ARROW1"].concat();
            // a table without columns is empty
            assert_eq!(matches!(read(&bytes), Err(IngestError::Empty)), is_read);
        }
    }
}
