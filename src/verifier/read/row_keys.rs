//! Rows as integer keys: the packed codes of a tuple, so that keys are ordered as tuples are.

use crate::microdata::Codes;
use crate::with_codes;

/// Runs `$body` with `$rows` bound to the keys as arrays of words.
///
/// `$chunks` is `as_chunks` or `as_chunks_mut`.
macro_rules! with_rows {
    ($keys:expr, $chunks:ident, $rows:ident => $body:expr) => {
        match $keys.words {
            1 => with_rows!(@ $keys, $chunks, 1, $rows => $body),
            2 => with_rows!(@ $keys, $chunks, 2, $rows => $body),
            4 => with_rows!(@ $keys, $chunks, 4, $rows => $body),
            8 => with_rows!(@ $keys, $chunks, 8, $rows => $body),
            16 => with_rows!(@ $keys, $chunks, 16, $rows => $body),
            32 => with_rows!(@ $keys, $chunks, 32, $rows => $body),
            64 => with_rows!(@ $keys, $chunks, 64, $rows => $body),
            _ => with_rows!(@ $keys, $chunks, 128, $rows => $body),
        }
    };
    (@ $keys:expr, $chunks:ident, $words:literal, $rows:ident => $body:expr) => {{
        let ($rows, _) = $keys.data.$chunks::<$words>();
        $body
    }};
}

/// Position of each column's code in a key.
pub(in crate::verifier) struct RowKeyLayout {
    words: usize,
    places: Vec<(usize, u32)>,
}

impl RowKeyLayout {
    /// The layout of tuples whose columns have `sizes` codes, the first column most significant.
    pub(in crate::verifier) fn new(sizes: impl IntoIterator<Item = usize>) -> Self {
        let (mut word, mut free) = (0_usize, u32::BITS);
        let mut places = Vec::new();
        for size in sizes {
            // codes have at most 32 bits, so each fits into a word
            let bits = (usize::BITS - size.saturating_sub(1).leading_zeros()).clamp(1, u32::BITS);
            if bits > free {
                (word, free) = (word + 1, u32::BITS);
            }
            free -= bits;
            places.push((word, free));
        }
        // powers of two, so that keys are arrays of few widths
        Self { words: (word + 1).next_power_of_two(), places }
    }
}

/// Rows of which keys are packed.
#[derive(Clone, Copy)]
pub(in crate::verifier) enum RowsToPack<'r> {
    /// Those from one to before another.
    Between(usize, usize),
    /// These.
    These(&'r [u32]),
}

impl RowsToPack<'_> {
    const fn len(self) -> usize {
        match self {
            Self::Between(first, end) => end - first,
            Self::These(rows) => rows.len(),
        }
    }
}

/// One key for each row.
#[derive(PartialEq, Eq)]
pub(in crate::verifier) struct RowKeys {
    words: usize,
    data: Vec<u32>,
}

impl RowKeys {
    /// Packs the tuples of all rows into keys, as [`RowKeys::of_rows`].
    pub(in crate::verifier) fn pack<'c>(
        layout: &RowKeyLayout,
        rows: usize,
        columns: impl IntoIterator<Item = (&'c Codes, Option<&'c [u32]>)>,
    ) -> Self {
        Self::of_rows(layout, RowsToPack::Between(0, rows), columns)
    }

    /// Packs the tuples of some rows into keys.
    ///
    /// A column has its codes and, where codes are not ranks, the rank of each code.
    pub(in crate::verifier) fn of_rows<'c>(
        layout: &RowKeyLayout,
        rows: RowsToPack<'_>,
        columns: impl IntoIterator<Item = (&'c Codes, Option<&'c [u32]>)>,
    ) -> Self {
        let mut keys = Self { words: layout.words, data: vec![0; rows.len() * layout.words] };
        for (&(word, shift), (codes, ranks)) in layout.places.iter().zip(columns) {
            let cells = keys.data[word.min(rows.len() * layout.words)..].iter_mut().step_by(layout.words);
            with_codes!(codes, codes => match rows {
                RowsToPack::Between(first, end) => place(cells, codes[first..end].iter().copied(), ranks, shift),
                RowsToPack::These(rows) => place(cells, rows.iter().map(|&row| codes[row as usize]), ranks, shift),
            });
        }
        keys
    }

    /// The first row out of order: after a higher label, or after a higher key of its label.
    pub(in crate::verifier) fn first_fall(&self, labels: Option<&[u32]>) -> Option<usize> {
        with_rows!(self, as_chunks, rows => match labels {
            None => (1..rows.len()).find(|&row| rows[row - 1] > rows[row]),
            Some(labels) => (1..rows.len().min(labels.len()))
                .find(|&row| (labels[row - 1], &rows[row - 1]) > (labels[row], &rows[row])),
        })
    }

    /// The key of `row`.
    #[cfg(test)]
    fn get(&self, row: usize) -> &[u32] {
        &self.data[row * self.words..][..self.words]
    }

    /// The keys of the rows in `range`, concatenated.
    pub(in crate::verifier) fn slice(&self, range: std::ops::Range<usize>) -> &[u32] {
        &self.data[range.start * self.words..range.end * self.words]
    }

    /// Whether the keys are a sub-multiset of `others`; both are sorted.
    pub(in crate::verifier) fn are_within(&self, others: &Self) -> bool {
        let mut others = others.data.chunks_exact(others.words);
        self.data.chunks_exact(self.words).all(|row| others.any(|other| other == row))
    }

    /// Sorts the keys of each bucket.
    pub(in crate::verifier) fn sort_within(&mut self, buckets: &BucketOffsets) {
        with_rows!(self, as_chunks_mut, rows => sort_buckets(rows, &buckets.offsets));
    }

    /// Sorts all keys.
    pub(in crate::verifier) fn sort(&mut self) {
        with_rows!(self, as_chunks_mut, rows => rows.sort_unstable());
    }
}

/// Number of keys that are sorted one bucket after the other.
const KEYS_IN_SEQUENCE: usize = 1 << 14;

/// Sorts the keys of each bucket; `offsets` are the ends of buckets, after the start of the first one.
fn sort_buckets<K: Ord + Send>(keys: &mut [K], offsets: &[usize]) {
    if keys.len() > KEYS_IN_SEQUENCE && offsets.len() > 2 {
        let middle = offsets.len() / 2;
        let (first, second) = keys.split_at_mut(offsets[middle] - offsets[0]);
        rayon::join(|| sort_buckets(first, &offsets[..=middle]), || sort_buckets(second, &offsets[middle..]));
        return;
    }
    for bucket in offsets.windows(2) {
        keys[bucket[0] - offsets[0]..bucket[1] - offsets[0]].sort_unstable();
    }
}

/// Writes codes, or their ranks, into the words of `cells` from the bit at `shift` on.
fn place<'k, C: Copy + Into<u32>>(
    cells: impl Iterator<Item = &'k mut u32>,
    codes: impl Iterator<Item = C>,
    ranks: Option<&[u32]>,
    shift: u32,
) {
    match ranks {
        None => cells.zip(codes).for_each(|(cell, code)| *cell |= code.into() << shift),
        Some(ranks) => cells.zip(codes).for_each(|(cell, code)| *cell |= ranks[code.into() as usize] << shift),
    }
}

/// Number of rows of each bucket, as cumulated sums.
///
/// Bucket `b` has the rows `offsets[b - 1]..offsets[b]` of the rows in bucket order.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::verifier) struct BucketOffsets {
    offsets: Vec<usize>,
}

impl BucketOffsets {
    /// Counts labels, which are at least 1.
    ///
    /// `None` when a label exceeds the number of rows: then labels have gaps.
    pub(in crate::verifier) fn count(labels: &[u32]) -> Option<Self> {
        let last = labels.iter().copied().max().unwrap_or(0) as usize;
        if last > labels.len() {
            return None;
        }
        let mut offsets = vec![0; last + 1];
        for &label in labels {
            offsets[label as usize] += 1;
        }
        for bucket in 1..=last {
            offsets[bucket] += offsets[bucket - 1];
        }
        Some(Self { offsets })
    }

    /// Whether `others` has the same buckets, each with `more` additional rows.
    pub(in crate::verifier) fn equals_with_more(&self, more: u64, others: &Self) -> bool {
        let sizes = |buckets: &Self| buckets.ranges().map(|range| range.len() as u64).collect::<Vec<_>>();
        match more {
            0 => self == others,
            _ => sizes(self).into_iter().map(|size| size + more).eq(sizes(others)),
        }
    }

    /// Pieces of consecutive buckets, of about this many rows.
    pub(in crate::verifier) fn pieces(&self, rows: usize) -> Vec<BucketPiece> {
        let (mut pieces, mut first) = (Vec::new(), 0);
        for bucket in 1..self.offsets.len() {
            let start = self.offsets[first];
            if self.offsets[bucket] - start >= rows || bucket + 1 == self.offsets.len() {
                let offsets = self.offsets[first..=bucket].iter().map(|offset| offset - start).collect();
                pieces.push(BucketPiece { first_row: start, first_bucket: first, buckets: Self { offsets } });
                first = bucket;
            }
        }
        pieces
    }

    /// Number of rows.
    pub(in crate::verifier) fn total(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Number of buckets.
    pub(in crate::verifier) const fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The rows of each bucket, in the order of labels.
    pub(in crate::verifier) fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.offsets.windows(2).map(|pair| pair[0]..pair[1])
    }
}

/// Consecutive buckets by themselves.
pub(in crate::verifier) struct BucketPiece {
    /// Rows of the buckets before them.
    pub(in crate::verifier) first_row: usize,
    /// Number of the buckets before them.
    first_bucket: usize,
    pub(in crate::verifier) buckets: BucketOffsets,
}

impl BucketPiece {
    /// The rows with labels of these buckets, bucket by bucket, for the labels that were counted.
    pub(in crate::verifier) fn rows(&self, labels: &[u32]) -> Vec<u32> {
        let mut next = self.buckets.offsets.clone();
        next.pop();
        let mut rows = vec![0; self.buckets.total()];
        for (&label, row) in labels.iter().zip(0..) {
            let bucket = (label as usize).wrapping_sub(self.first_bucket + 1);
            if let Some(next) = next.get_mut(bucket) {
                rows[*next] = row;
                *next += 1;
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack_tuples_of_any_width_keeps_their_order() {
        for columns in [1, 3, 9, 40, 128] {
            let size = 1 << 17;
            let tuple =
                |row: usize| (0..columns).map(|c| ((row * 7919 + c * 104_729) % size) as u32).collect::<Vec<_>>();
            let codes: Vec<Codes> =
                (0..columns).map(|c| Codes::collect(size, (0..50).map(|row| tuple(row)[c]))).collect();
            let layout = RowKeyLayout::new(vec![size; columns]);
            let keys = RowKeys::pack(&layout, 50, codes.iter().map(|c| (c, None)));
            for a in 0..50 {
                for b in 0..50 {
                    assert_eq!(keys.get(a).cmp(keys.get(b)), tuple(a).cmp(&tuple(b)), "{columns} columns");
                }
            }
            let labels: Vec<u32> = (0..50).map(|row| row % 3 + 1).collect();
            let buckets = BucketOffsets::count(&labels).expect("three buckets");
            for piece_rows in [1, 17, 18, 50] {
                let mut bucket = 0;
                for piece in buckets.pieces(piece_rows) {
                    let these = piece.rows(&labels);
                    let these = RowsToPack::These(&these);
                    let mut grouped = RowKeys::of_rows(&layout, these, codes.iter().map(|c| (c, None)));
                    grouped.sort_within(&piece.buckets);
                    for range in piece.buckets.ranges() {
                        let mut expected: Vec<&[u32]> = (bucket..50).step_by(3).map(|row| keys.get(row)).collect();
                        expected.sort();
                        assert_eq!(grouped.slice(range), expected.concat());
                        bucket += 1;
                    }
                }
                assert_eq!(bucket, 3);
            }
        }
    }

    /// The attack: two cells of a row are exchanged in a table that has fewer rows than columns.
    #[test]
    fn keys_of_few_rows_hold_every_column() {
        let size = 1 << 17;
        let code = |row: usize, column: usize| [1, 2][(row + column) % 2];
        let columns = (0..40).map(|column| Codes::collect(size, (0..2).map(|row| code(row, column))));
        let columns: Vec<Codes> = columns.collect();
        let layout = RowKeyLayout::new([size; 40]);
        let keys = RowKeys::pack(&layout, 2, columns.iter().map(|codes| (codes, None)));
        let expected = |row: usize| -> Vec<u32> { (0..40).map(|column| code(row, column) << 15).collect() };
        assert_eq!([keys.get(0)[..40].to_vec(), keys.get(1)[..40].to_vec()], [expected(0), expected(1)]);
    }

    #[test]
    fn count_label_above_number_of_rows_is_none() {
        assert!(BucketOffsets::count(&[1, 4, 2]).is_none());
        assert_eq!(BucketOffsets::count(&[]).map(|b| b.len()), Some(0));
        let gap = BucketOffsets::count(&[1, 3, 3]).expect("counted");
        assert_eq!(gap.ranges().map(|r| r.len()).collect::<Vec<_>>(), [1, 0, 2]);
    }
}
