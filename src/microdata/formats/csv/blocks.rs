//! Cuts CSV into blocks of whole records, which all processors scan side by side.
//!
//! A line feed ends a record when an even number of quotes stands before it in its block. This holds up to the first fault
//! of a file, and the scanner of the block with that fault finds it.

use std::io::{self, Empty, Read};
use std::sync::LazyLock;

use memchr::{memchr_iter, memrchr};
use rayon::ThreadPool;

use super::marks::QUOTE;
use super::scanner::Scanner;
use crate::microdata::IngestLimits;

/// The least number of bytes of a block that is not the last one of its file.
const BLOCK_BYTES: usize = 2 << 20;
/// Room for the first bytes of a block, of which a small table needs no more.
const LEAST_ROOM_BYTES: usize = 64 << 10;
/// The most blocks that are scanned at once. As many more are read meanwhile.
const MAX_BLOCKS: usize = 4;

/// Threads that scan and do nothing else: large computations keep no upload waiting. `None` where the system gives no more threads.
static SCANNING_THREADS: LazyLock<Option<ThreadPool>> =
    LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(rayon::current_num_threads().min(16)).build().ok());

/// Blocks of a file and what scans each of them.
pub struct RecordBlocks<R, W> {
    reader: BlockReader<R>,
    delimiter: u8,
    limits: IngestLimits,
    /// The blocks that are scanned next, and those that are read meanwhile.
    now: Vec<RecordBlock>,
    later: Vec<RecordBlock>,
    /// One for each block that is scanned at the same time.
    works: Vec<W>,
    /// Why no blocks come after those in `now`.
    failure: Option<io::Error>,
    begun: bool,
}

/// Records from the first byte to the last.
#[derive(Default)]
pub(super) struct RecordBlock {
    pub(super) bytes: Vec<u8>,
    /// Bytes of the input before the block.
    pub(super) before: u64,
    /// Whether the last record is cut off, as it is longer than a record may be.
    pub(super) is_cut: bool,
}

impl<R: Read, W: Send> RecordBlocks<R, W> {
    pub(super) fn new(
        unread: UnreadBytes<R>,
        delimiter: u8,
        limits: &IngestLimits,
        mut work: impl FnMut(usize) -> W,
    ) -> Self {
        let places = rayon::current_num_threads().clamp(1, MAX_BLOCKS);
        let record_limit = limits.max_record_bytes.min(1 << 30) as usize;
        Self {
            reader: BlockReader { unread, record_limit, block_bytes: BLOCK_BYTES },
            delimiter,
            limits: limits.clone(),
            now: Vec::new(),
            later: Vec::new(),
            works: (0..places).map(|_| work(places)).collect(),
            failure: None,
            begun: false,
        }
    }

    /// Blocks of another size.
    #[cfg(test)]
    pub(super) fn with_block_bytes(mut self, block_bytes: usize) -> Self {
        self.reader.block_bytes = block_bytes;
        self
    }

    /// Scans the next blocks and gives the results of `scan` in the order of the blocks; none at the end.
    ///
    /// Record numbers begin with 0 in each block.
    ///
    /// # Errors
    /// When the input cannot be read; the blocks before were given.
    pub fn next<T: Send>(&mut self, scan: impl Fn(&mut W, &mut Scanner<Empty>) -> T + Sync) -> io::Result<Vec<T>> {
        let Self { reader, delimiter, limits, now, later, works, failure, begun } = self;
        let places = works.len();
        if !std::mem::replace(begun, true) {
            *failure = reader.fill(now, places).err();
        }
        if now.is_empty() {
            return failure.take().map_or(Ok(Vec::new()), Err);
        }
        let (delimiter, limits) = (*delimiter, &*limits);
        let scanned = |block: &mut RecordBlock, work: &mut W| {
            let mut scanner = Scanner::of_block(std::mem::take(block), delimiter, limits);
            let found = scan(work, &mut scanner);
            block.bytes = scanner.into_buffer();
            found
        };
        let mut found: Vec<Option<T>> = now.iter().map(|_| None).collect();
        let is_last = failure.is_some() || reader.unread.is_at_end();
        match (&mut now[..], &mut works[..]) {
            // no other thread has to wake up for a small file
            ([block], [work, ..]) if is_last => {
                found[0] = Some(scanned(block, work));
                later.clear();
            }
            // input may be slow, so this thread waits for it, and none of the pool
            _ => scanning_scope(|scope| {
                for ((block, work), found) in now.iter_mut().zip(works).zip(&mut found) {
                    scope.spawn(|_| *found = Some(scanned(block, work)));
                }
                if is_last {
                    later.clear();
                } else {
                    *failure = reader.fill(later, places).err();
                }
            }),
        }
        std::mem::swap(now, later);
        Ok(found.into_iter().flatten().collect())
    }
}

/// [`rayon::in_place_scope`] with the threads that scan, or else the shared ones.
fn scanning_scope<'s, T>(work: impl FnOnce(&rayon::Scope<'s>) -> T) -> T {
    match &*SCANNING_THREADS {
        Some(threads) => threads.in_place_scope(work),
        None => rayon::in_place_scope(work),
    }
}

/// What a scanner has not read.
pub(super) struct UnreadBytes<R> {
    pub(super) bytes: Vec<u8>,
    /// Bytes of the input before these.
    pub(super) before: u64,
    /// Whether `reader` has no more bytes.
    pub(super) ended: bool,
    pub(super) reader: R,
}

impl<R: Read> UnreadBytes<R> {
    fn is_at_end(&self) -> bool {
        self.ended && self.bytes.is_empty()
    }

    /// Reads over what `into` has from `filled` on, up to `wanted` bytes or to the end of the input, and gives where the bytes that
    /// were read end. What a block held before is written over, and so costs no zeros.
    fn fill(&mut self, into: &mut Vec<u8>, mut filled: usize, wanted: usize) -> io::Result<usize> {
        while filled < wanted && !self.is_at_end() {
            if into.len() == filled {
                into.resize((2 * filled).clamp(LEAST_ROOM_BYTES, wanted.max(LEAST_ROOM_BYTES)), 0);
            }
            let end = wanted.min(into.len());
            let room = &mut into[filled..end];
            filled += match self.bytes.len() {
                0 => match self.reader.read(room) {
                    Ok(0) => {
                        self.ended = true;
                        0
                    }
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                    Err(error) => return Err(error),
                },
                unread => {
                    let taken = unread.min(room.len());
                    room[..taken].copy_from_slice(&self.bytes[..taken]);
                    self.bytes.drain(..taken);
                    taken
                }
            };
        }
        Ok(filled)
    }
}

struct BlockReader<R> {
    unread: UnreadBytes<R>,
    record_limit: usize,
    block_bytes: usize,
}

impl<R: Read> BlockReader<R> {
    /// Reads as many blocks, or those that are left.
    fn fill(&mut self, blocks: &mut Vec<RecordBlock>, places: usize) -> io::Result<()> {
        blocks.resize_with(places, RecordBlock::default);
        for at in 0..places {
            let is_filled = if self.unread.is_at_end() { Ok(false) } else { self.read(&mut blocks[at]) };
            if !matches!(is_filled, Ok(true)) {
                blocks.truncate(at);
                return is_filled.map(drop);
            }
        }
        Ok(())
    }

    /// Reads the next block; false at the end.
    fn read(&mut self, block: &mut RecordBlock) -> io::Result<bool> {
        let Self { unread, record_limit, block_bytes } = self;
        let bytes = &mut block.bytes;
        block.before = unread.before;
        block.is_cut = false;
        let (mut filled, mut wanted) = (0, *block_bytes);
        loop {
            filled = unread.fill(bytes, filled, wanted)?;
            if unread.is_at_end() {
                bytes.truncate(filled);
                // the last record may lack its line end
                if bytes.last().is_some_and(|&last| last != b'\n') {
                    bytes.push(b'\n');
                }
                break;
            }
            if let Some(end) = last_record_end(&bytes[..filled]) {
                unread.bytes.splice(..0, bytes[end..filled].iter().copied());
                bytes.truncate(end);
                break;
            }
            if filled > *record_limit {
                bytes.truncate(filled);
                block.is_cut = true;
                unread.bytes.clear();
                unread.ended = true;
                break;
            }
            wanted = 2 * filled;
        }
        unread.before += bytes.len() as u64;
        Ok(!bytes.is_empty())
    }
}

/// Where the last record that ends in `bytes` does.
fn last_record_end(bytes: &[u8]) -> Option<usize> {
    let quotes = |bytes: &[u8]| memchr_iter(QUOTE, bytes).count();
    let mut even = quotes(bytes).is_multiple_of(2);
    let mut end = bytes.len();
    loop {
        let at = memrchr(b'\n', &bytes[..end])?;
        even ^= !quotes(&bytes[at..end]).is_multiple_of(2);
        if even {
            return Some(at + 1);
        }
        end = at;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control::while_shared_threads_are_busy;
    use crate::microdata::formats::csv::RecordError;

    type Fields = Vec<(Vec<u8>, bool)>;

    /// Records with their first bytes, and the fault that ends them.
    type Scanned = (Vec<(u64, Fields)>, Option<String>);

    fn all<R: Read>(scanner: &mut Scanner<R>, before: u64) -> Scanned {
        let mut records = Vec::new();
        loop {
            match scanner.next_record() {
                Ok(None) => return (records, None),
                Ok(Some(record)) => {
                    let fields = record.iter().map(|(field, quoted)| (field.to_vec(), quoted)).collect();
                    records.push((record.byte(), fields));
                }
                Err(RecordError::Malformed { record, byte, field, fault }) => {
                    return (records, Some(format!("{} {byte} {field} {fault}", before + record)));
                }
                // how much was read of a record that is too long depends on the memory for it
                Err(RecordError::TooLarge { record, byte, what, limit, .. }) => {
                    return (records, Some(format!("{} {byte} {what} {limit}", before + record)));
                }
                Err(RecordError::Io(error)) => return (records, Some(error.to_string())),
            }
        }
    }

    fn in_blocks(bytes: &[u8], block_bytes: usize, limits: &IngestLimits) -> Scanned {
        let unread = UnreadBytes { bytes: Vec::new(), before: 0, ended: false, reader: bytes };
        let mut blocks = RecordBlocks::new(unread, b',', limits, |_| ()).with_block_bytes(block_bytes);
        let (mut records, mut fault) = (Vec::new(), None);
        loop {
            let read = records.len() as u64;
            let scanned = blocks.next(|(), scanner| all(scanner, 0)).unwrap();
            if scanned.is_empty() {
                return (records, fault);
            }
            let mut before = read;
            for (found, its_fault) in scanned {
                let numbered = |text: String| {
                    let (record, rest) = text.split_once(' ').unwrap();
                    format!("{} {rest}", before + record.parse::<u64>().unwrap())
                };
                fault = its_fault.map(numbered);
                before += found.len() as u64;
                records.extend(found);
                if fault.is_some() {
                    return (records, fault);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn blocks_of_any_size_have_the_records_of_the_whole(
            bytes in prop::collection::vec(prop::sample::select(b"aaa,,\"\"\r\n\n\xff".to_vec()), 0..200),
            block_bytes in 1_usize..70,
        ) {
            let limits = IngestLimits::default();
            prop_assert_eq!(in_blocks(&bytes, block_bytes, &limits), all(&mut Scanner::new(&bytes[..], Some(b','), &limits), 0));
        }

        #[test]
        fn blocks_of_quoted_lines_are_cut_between_records(
            lines in prop::collection::vec("\"(a|\n|,|\"\"|\r\n){0,9}\"", 1..60), block_bytes in 1_usize..200,
        ) {
            let (bytes, limits) = (lines.join("\n"), IngestLimits::default());
            let (records, fault) = in_blocks(bytes.as_bytes(), block_bytes, &limits);
            prop_assert_eq!((records.len(), fault), (lines.len(), None));
        }
    }

    #[test]
    fn busy_shared_threads_keep_no_scan_waiting() {
        let table = || in_blocks(&b"a,b\n".repeat(400), 100, &IngestLimits::default()).0.len();
        assert_eq!(while_shared_threads_are_busy(table), Some(400));
    }

    #[test]
    fn a_record_above_its_limit_is_refused_before_its_end() {
        let limits = IngestLimits { max_record_bytes: 1000, ..IngestLimits::default() };
        let endless = b"a,b\n\"".iter().copied().chain(std::iter::repeat_n(b'x', 1 << 20)).collect::<Vec<u8>>();
        let (records, fault) = in_blocks(&endless, 100, &limits);
        assert_eq!((records.len(), fault.as_deref()), (1, Some("1 4 record 1000")));
    }

    #[test]
    fn a_failing_input_gives_the_blocks_before() {
        struct Failing(u8);
        impl Read for Failing {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 30 {
                    return Err(io::Error::other("gone"));
                }
                into[..2].copy_from_slice(b"a\n");
                Ok(2)
            }
        }
        let unread = UnreadBytes { bytes: Vec::new(), before: 0, ended: false, reader: Failing(0) };
        let mut blocks = RecordBlocks::new(unread, b',', &IngestLimits::default(), |_| ()).with_block_bytes(2);
        let mut records = 0;
        let error = loop {
            match blocks.next(|(), scanner| all(scanner, 0).0.len()) {
                Ok(found) => records += found.into_iter().sum::<usize>(),
                Err(error) => break error,
            }
        };
        assert_eq!((records, error.to_string().as_str()), (30, "gone"));
        assert!(blocks.next(|(), _| ()).unwrap().is_empty());
    }
}
