//! Decompression within limits: a small file may not become an endless one.

use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::microdata::limits::IngestLimits;

/// So much may be decompressed before the ratio counts.
const RATIO_CHECK_AFTER_BYTES: u64 = 64 << 20;
const DECODER_BUFFER_BYTES: usize = 64 << 10;

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Not at all.
    Identity,
    /// One or more gzip members (RFC 1952).
    Gzip,
    /// One or more Zstandard frames (RFC 8878), windows of at most 128 MiB.
    Zstd,
}

/// A decompressed input exceeds a limit; found inside the [`io::Error`] that ends the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found}, more than {limit}")]
pub struct LimitExceededError {
    /// What is too large, with its unit.
    pub what: &'static str,
    /// The most that is accepted.
    pub limit: u64,
    /// What was found when reading stopped.
    pub found: u64,
}

/// The compressed stream is damaged or ends early; found inside the [`io::Error`] that ends the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} stream is damaged or truncated")]
pub struct DamagedStreamError(&'static str);

/// The decompressed bytes of `reader`. Errors of `reader` itself pass through; others are [`LimitExceededError`] or
/// [`DamagedStreamError`], wrapped.
///
/// # Errors
/// When there is no memory for a decompressor.
pub fn decoder(
    reader: impl Read + Send + 'static,
    encoding: Encoding,
    limits: &IngestLimits,
) -> io::Result<Box<dyn Read + Send>> {
    let source = Arc::new(InputState::default());
    let metered = BufReader::with_capacity(DECODER_BUFFER_BYTES, Metered { reader, source: Arc::clone(&source) });
    let (inner, name): (Box<dyn Read + Send>, _) = match encoding {
        Encoding::Identity => {
            let limit = limits.max_decompressed;
            return Ok(Box::new(Bounded {
                inner: metered.into_inner(),
                check: None,
                produced: 0,
                limit,
                what: "bytes",
            }));
        }
        Encoding::Gzip => (Box::new(MultiGzDecoder::new(metered)), "gzip"),
        Encoding::Zstd => (Box::new(zstd::Decoder::with_buffer(metered)?), "zstd"),
    };
    let check = Some(IntegrityCheck { source, ratio: limits.max_ratio, name });
    Ok(Box::new(Bounded { inner, check, produced: 0, limit: limits.max_decompressed, what: "decompressed bytes" }))
}

/// Detects the compression of an input by its first bytes, and returns the complete input.
///
/// # Errors
/// When the input cannot be read.
pub fn sniff<R: Read>(mut reader: R) -> io::Result<(Encoding, impl Read + use<R>)> {
    let mut magic = Vec::new();
    reader.by_ref().take(4).read_to_end(&mut magic)?;
    let encoding = match magic[..] {
        [0x1F, 0x8B, ..] => Encoding::Gzip,
        [0x28, 0xB5, 0x2F, 0xFD] => Encoding::Zstd,
        _ => Encoding::Identity,
    };
    Ok((encoding, Cursor::new(magic).chain(reader)))
}

/// What the compressed side has seen.
#[derive(Default)]
struct InputState {
    bytes: AtomicU64,
    failed: AtomicBool,
}

struct Metered<R> {
    reader: R,
    source: Arc<InputState>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let result = self.reader.read(into);
        match &result {
            Ok(read) => {
                self.source.bytes.fetch_add(*read as u64, Ordering::Relaxed);
            }
            Err(_) => self.source.failed.store(true, Ordering::Relaxed),
        }
        result
    }
}

struct IntegrityCheck {
    source: Arc<InputState>,
    ratio: u64,
    name: &'static str,
}

struct Bounded<R> {
    inner: R,
    check: Option<IntegrityCheck>,
    produced: u64,
    limit: u64,
    what: &'static str,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match (self.inner.read(into), &self.check) {
            (Err(error), Some(check)) if error.kind() != io::ErrorKind::Interrupted => {
                let ours = check.source.failed.load(Ordering::Relaxed);
                return Err(if ours {
                    error
                } else {
                    io::Error::new(io::ErrorKind::InvalidData, DamagedStreamError(check.name))
                });
            }
            (result, _) => result?,
        };
        self.produced += read as u64;
        let exceeded = |what, limit, found| Err(io::Error::other(LimitExceededError { what, limit, found }));
        if self.produced > self.limit {
            return exceeded(self.what, self.limit, self.produced);
        }
        if let Some(check) = self.check.as_ref().filter(|_| self.produced > RATIO_CHECK_AFTER_BYTES) {
            let ratio = self.produced / check.source.bytes.load(Ordering::Relaxed).max(1);
            if ratio > check.ratio {
                return exceeded("decompressed bytes for each compressed byte", check.ratio, ratio);
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::microdata::formats::IngestError;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(bytes: Vec<u8>, encoding: Encoding, limits: &IngestLimits) -> Result<Vec<u8>, IngestError> {
        let mut out = Vec::new();
        decoder(Cursor::new(bytes), encoding, limits)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn decodes_and_sniffs() {
        let plain = b"a,b\n1,2\n".repeat(1000);
        let encoded = [
            (Encoding::Identity, plain.clone()),
            (Encoding::Gzip, gzip(&plain)),
            (Encoding::Zstd, zstd::bulk::compress(&plain, 1).unwrap()),
        ];
        for (encoding, bytes) in encoded {
            let (found, whole) = sniff(Cursor::new(bytes.clone())).unwrap();
            assert_eq!(found, encoding);
            let mut again = Vec::new();
            { whole }.read_to_end(&mut again).unwrap();
            assert_eq!(again, bytes);
            assert_eq!(read(bytes, encoding, &IngestLimits::default()).unwrap(), plain);
        }
        assert_eq!(sniff(&b""[..]).unwrap().0, Encoding::Identity);
        let members = [gzip(b"a\n"), gzip(b"1\n")].concat();
        assert_eq!(read(members, Encoding::Gzip, &IngestLimits::default()).unwrap(), b"a\n1\n");
    }

    #[test]
    fn bombs_are_refused() {
        for (encoding, bytes) in [
            (Encoding::Gzip, gzip(&vec![b'0'; 80 << 20])),
            (Encoding::Zstd, zstd::bulk::compress(&vec![b'0'; 80 << 20], 1).unwrap()),
        ] {
            match read(bytes.clone(), encoding, &IngestLimits::default()) {
                Err(IngestError::TooLarge { limit: 200, found, .. }) => assert!(found > 200),
                other => panic!("{:?}", other.map(|bytes| bytes.len())),
            }
            let limits = IngestLimits { max_decompressed: 1 << 20, ..IngestLimits::default() };
            match read(bytes, encoding, &limits) {
                Err(IngestError::TooLarge { what: "decompressed bytes", limit, .. }) => assert_eq!(limit, 1 << 20),
                other => panic!("{:?}", other.map(|bytes| bytes.len())),
            }
        }
        let limits = IngestLimits { max_decompressed: 10, ..IngestLimits::default() };
        assert!(matches!(read(vec![0; 11], Encoding::Identity, &limits), Err(IngestError::TooLarge { limit: 10, .. })));
    }

    #[test]
    fn damage_is_malformed_and_failures_of_the_source_are_not() {
        let plain: Vec<u8> = (0..50_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for (encoding, bytes) in
            [(Encoding::Gzip, gzip(&plain)), (Encoding::Zstd, zstd::bulk::compress(&plain, 1).unwrap())]
        {
            let half = bytes[..bytes.len() / 2].to_vec();
            assert!(matches!(read(half, encoding, &IngestLimits::default()), Err(IngestError::Malformed { .. })));
            let garbage = [&bytes[..], b"more"].concat();
            assert!(matches!(read(garbage, encoding, &IngestLimits::default()), Err(IngestError::Malformed { .. })));
            let failing = Cursor::new(bytes[..9].to_vec()).chain(Failing);
            let mut out = Vec::new();
            let error =
                decoder(failing, encoding, &IngestLimits::default()).unwrap().read_to_end(&mut out).unwrap_err();
            assert!(
                matches!(IngestError::from(error), IngestError::Io(error) if error.kind() == io::ErrorKind::ConnectionReset)
            );
        }
    }

    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
}
