//! Finds the bytes that matter to CSV, a block at a time: some hundred instructions for 64 bytes, whatever they are.

pub(super) const QUOTE: u8 = b'"';
pub(super) const BLOCK: usize = 64;

/// The positions of delimiters, quotes, CR and LF, rising.
pub(super) struct StructuralIndex<'a> {
    /// At least one block longer than `filled`.
    pub(super) buffer: &'a [u8],
    pub(super) filled: usize,
    pub(super) delimiter: u8,
    /// Where the block under way begins, and its marks that are still to come.
    pub(super) base: usize,
    pub(super) mask: u64,
}

impl StructuralIndex<'_> {
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            if self.base + BLOCK >= self.filled {
                return None;
            }
            self.base += BLOCK;
            self.classify();
        }
        let at = self.base + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(at)
    }

    /// The quote that closes the field whose opening one was the last mark, and whether there are doubled ones before it. `None`
    /// where it is not there yet.
    #[inline(always)]
    pub(super) fn closing_quote(&mut self) -> Option<(usize, bool)> {
        let mut doubled = false;
        loop {
            let mark = self.next()?;
            if self.buffer[mark] != QUOTE {
                continue;
            }
            if mark + 1 == self.filled {
                return None;
            }
            if self.buffer[mark + 1] != QUOTE {
                return Some((mark, doubled));
            }
            doubled = true;
            self.next();
        }
    }

    /// Goes on at a position in this block or a later one.
    pub(super) fn skip_to(&mut self, at: usize) {
        let blocks = (at - self.base) / BLOCK;
        if blocks > 0 {
            self.base += blocks * BLOCK;
            self.classify();
        }
        self.mask &= u64::MAX << (at - self.base);
    }

    /// Sets the mask for the block at `base`.
    #[inline(always)]
    pub(super) fn classify(&mut self) {
        let Some((block, _)) = self.buffer[self.base..].split_first_chunk::<BLOCK>() else { return };
        let mut hits = [0_u8; BLOCK];
        for (hit, &byte) in hits.iter_mut().zip(block) {
            *hit = u8::from(byte == self.delimiter)
                | u8::from(byte == QUOTE)
                | u8::from(byte == b'\n')
                | u8::from(byte == b'\r');
        }
        // gathers the lowest bit of eight bytes in one byte
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let mut mask = 0;
        let (words, _) = hits.as_chunks::<8>();
        for (index, &word) in words.iter().enumerate() {
            mask |= (u64::from_le_bytes(word).wrapping_mul(GATHER) >> 56) << (8 * index);
        }
        let left = self.filled.saturating_sub(self.base);
        self.mask = if left < BLOCK { mask & ((1 << left) - 1) } else { mask };
    }
}
