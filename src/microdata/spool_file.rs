//! A file that cannot be read once it is closed: originals pass through it and leave nothing on the disk.

use std::fs::File;
use std::io;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use zeroize::Zeroizing;

/// Bytes under one nonce, of which the cipher [RFC 8439] takes four times as many.
const SEGMENT: u64 = 1 << 36;

/// Bytes that are encrypted at once.
const BLOCK: usize = 1 << 16;

/// Bytes in a file without a name, encrypted under a key that is never written. The file goes with its last handle, also by a crash;
/// what stays of its blocks on the disk is noise.
///
/// Bytes are added at the end and never replaced: no byte of the key stream serves twice.
#[derive(Debug)]
pub struct SpoolFile {
    file: File,
    key: SpoolKey,
    len: u64,
}

/// Reads a file from its beginning, or from anywhere.
#[derive(Clone, Debug)]
pub struct SpoolReader {
    file: Arc<SpoolFile>,
    position: u64,
}

/// A key of one file, without its bytes in `Debug`.
struct SpoolKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for SpoolKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SpoolKey")
    }
}

impl SpoolKey {
    fn draw() -> io::Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).map_err(io::Error::other)?;
        Ok(Self(key))
    }

    /// Encrypts or decrypts bytes that begin at `offset` of the file.
    fn apply(&self, mut offset: u64, mut bytes: &mut [u8], segment: u64) {
        while !bytes.is_empty() {
            let (number, within) = (offset / segment, offset % segment);
            let here = usize::try_from(segment - within).map_or(bytes.len(), |left| left.min(bytes.len()));
            let (now, later) = bytes.split_at_mut(here);
            let mut nonce = [0; 12];
            nonce[..8].copy_from_slice(&number.to_le_bytes());
            let mut cipher = ChaCha20::new((&*self.0).into(), &nonce.into());
            cipher.seek(within);
            cipher.apply_keystream(now);
            (offset, bytes) = (offset + here as u64, later);
        }
    }
}

impl SpoolFile {
    /// In this folder, with mode 0600.
    ///
    /// # Errors
    /// When no file can be made, or the system has no randomness.
    pub fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(folder)?, key: SpoolKey::draw()?, len: 0 })
    }

    /// The bytes written so far.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing was written.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads bytes at a place.
    ///
    /// # Errors
    /// When there are fewer bytes, or the file cannot be read.
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)?;
        self.key.apply(offset, bytes, SEGMENT);
        Ok(())
    }

    /// A reader at the beginning; nothing is written any more.
    #[must_use]
    pub fn into_reader(self) -> SpoolReader {
        SpoolReader { file: Arc::new(self), position: 0 }
    }
}

impl Write for SpoolFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut block = bytes[..bytes.len().min(BLOCK)].to_vec();
        self.key.apply(self.len, &mut block, SEGMENT);
        self.file.write_all_at(&block, self.len)?;
        self.len += block.len() as u64;
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpoolReader {
    /// The bytes of the file.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Whether the file has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.is_empty()
    }

    /// Another reader of the file, at a place.
    #[must_use]
    pub fn at(&self, position: u64) -> Self {
        Self { file: Arc::clone(&self.file), position }
    }
}

impl Read for SpoolReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.file.len().saturating_sub(self.position);
        let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.file.read_exact_at(&mut bytes[..here], self.position)?;
        self.position += here as u64;
        Ok(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of some bytes.
    fn spool_of(bytes: &[u8]) -> SpoolFile {
        let mut file = SpoolFile::new(&std::env::temp_dir()).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn what_is_written_is_read_from_anywhere() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        let file = spool_of(&bytes);
        assert_eq!(file.len(), 200_000);
        for (offset, length) in [(0, 1), (63, 2), (64, 64), (65_535, 2), (131_071, 68_929), (200_000, 0)] {
            let mut read = vec![0; length];
            file.read_exact_at(&mut read, offset as u64).unwrap();
            assert_eq!(read, bytes[offset..offset + length]);
        }
        assert!(file.read_exact_at(&mut [0; 2], 199_999).is_err());
        let mut reader = file.into_reader();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
        for (position, left) in [(199_997, &bytes[199_997..]), (200_000, b"".as_slice()), (200_001, b"")] {
            read.clear();
            reader.at(position).read_to_end(&mut read).unwrap();
            assert_eq!(read, left);
        }
    }

    #[test]
    fn what_is_on_the_disk_is_noise() {
        let text = b"HIV".repeat(1000);
        let on_disk = |file: &SpoolFile| {
            let mut bytes = vec![0; file.len() as usize];
            file.file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        };
        let (one, other) = (on_disk(&spool_of(&text)), on_disk(&spool_of(&text)));
        assert!(one != other, "each file has a key of its own");
        assert!(!one.windows(6).any(|window| window == b"HIVHIV"));
        let zeros = on_disk(&spool_of(&[0; 3000]));
        let mut counts = [0_u32; 256];
        zeros.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        assert!(counts.iter().all(|&count| count < 50), "{counts:?}");
    }

    #[test]
    fn segments_go_on_from_each_other() {
        let key = SpoolKey::draw().unwrap();
        let mut whole = [7; 300];
        key.apply(0, &mut whole, 100);
        let mut piece = [7; 150];
        key.apply(60, &mut piece, 100);
        assert_eq!(piece, whole[60..210]);
        assert_ne!(whole[..100], whole[100..200], "another nonce");
        key.apply(0, &mut whole, 100);
        assert_eq!(whole, [7; 300]);
    }
}
