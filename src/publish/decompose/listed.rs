//! The values that buckets list of one attribute, while noise is added.

use super::codes::CodeSet;

/// Largest number of values of an attribute that are kept as bits of each bucket.
const MAX_BITS: usize = 1024;

/// Listed codes of an attribute, bucket by bucket.
pub(super) enum ListedValues {
    /// One bit per code.
    Bits {
        /// Words of each bucket.
        words: usize,
        bits: Vec<u64>,
    },
    /// Rising codes of each bucket.
    Sorted(Vec<Vec<u32>>),
}

impl ListedValues {
    /// The codes of the rows of each bucket. `codes` has those of all rows.
    pub(super) fn of_rows(codes: &[u32], groups: &[Vec<u32>]) -> Self {
        let values = groups.iter().flatten().map(|&row| codes[row as usize] as usize + 1).max().unwrap_or(0);
        if values <= MAX_BITS {
            let words = values.div_ceil(64);
            let mut listed = Self::Bits { words, bits: vec![0; words * groups.len()] };
            for (bucket, rows) in groups.iter().enumerate() {
                rows.iter().for_each(|&row| listed.insert(bucket, codes[row as usize]));
            }
            return listed;
        }
        let sorted = |rows: &Vec<u32>| {
            let mut sorted: Vec<u32> = rows.iter().map(|&row| codes[row as usize]).collect();
            sorted.sort_unstable();
            sorted.dedup();
            sorted
        };
        Self::Sorted(groups.iter().map(sorted).collect())
    }

    pub(super) fn contains(&self, bucket: usize, code: u32) -> bool {
        match self {
            Self::Bits { words, bits } => bits[bucket * words + code as usize / 64] >> (code % 64) & 1 == 1,
            Self::Sorted(of) => of[bucket].binary_search(&code).is_ok(),
        }
    }

    pub(super) fn insert(&mut self, bucket: usize, code: u32) {
        match self {
            Self::Bits { words, bits } => bits[bucket * *words + code as usize / 64] |= 1 << (code % 64),
            Self::Sorted(of) => {
                if let Err(at) = of[bucket].binary_search(&code) {
                    of[bucket].insert(at, code);
                }
            }
        }
    }

    /// Adds one for each of some buckets that does not list a code.
    pub(super) fn add_missing(&self, buckets: impl Iterator<Item = usize>, code: u32, added: &mut [u32]) {
        match self {
            Self::Bits { words, bits } => {
                let (word, bit) = (code as usize / 64, code % 64);
                let lists = |bucket: usize| bits[bucket * words + word] >> bit & 1;
                added.iter_mut().zip(buckets).for_each(|(added, bucket)| *added += 1 - lists(bucket) as u32);
            }
            Self::Sorted(_) => {
                let lists = |bucket: usize| self.contains(bucket, code);
                added.iter_mut().zip(buckets).for_each(|(added, bucket)| *added += u32::from(!lists(bucket)));
            }
        }
    }

    /// Sets or clears the marks of the codes that a bucket lists.
    pub(super) fn mark(&self, bucket: usize, marks: &mut Vec<bool>, mark: bool) {
        let mut set = |code: usize| {
            if code >= marks.len() {
                marks.resize(code + 1, false);
            }
            marks[code] = mark;
        };
        match self {
            Self::Bits { .. } => self.codes(bucket).for_each(|code| set(code as usize)),
            Self::Sorted(of) => of[bucket].iter().for_each(|&code| set(code as usize)),
        }
    }

    /// Number of codes that a bucket lists.
    pub(super) fn len(&self, bucket: usize) -> usize {
        match self {
            Self::Bits { .. } => self.words(bucket).iter().map(|word| word.count_ones() as usize).sum(),
            Self::Sorted(of) => of[bucket].len(),
        }
    }

    /// Number of codes that one of two buckets lists.
    pub(super) fn len_together(&self, one: usize, other: usize) -> usize {
        match self {
            Self::Bits { .. } => {
                let both = self.words(one).iter().zip(self.words(other));
                both.map(|(one, other)| (one | other).count_ones() as usize).sum()
            }
            Self::Sorted(of) => {
                of[one].len() + of[other].iter().filter(|code| of[one].binary_search(code).is_err()).count()
            }
        }
    }

    /// Adds the codes of another bucket.
    pub(super) fn absorb(&mut self, bucket: usize, other: usize) {
        self.of(other).as_slice().iter().for_each(|&code| self.insert(bucket, code));
    }

    /// The codes that a bucket lists.
    pub(super) fn of(&self, bucket: usize) -> CodeSet {
        match self {
            Self::Bits { .. } => self.codes(bucket).collect(),
            Self::Sorted(of) => of[bucket].iter().copied().collect(),
        }
    }

    /// The codes whose bits a bucket has.
    fn codes(&self, bucket: usize) -> impl Iterator<Item = u32> {
        self.words(bucket).iter().zip((0..).step_by(64)).flat_map(|(&word, from)| {
            let rest = |word: &u64| Some(word & (word - 1)).filter(|rest| *rest > 0);
            std::iter::successors((word > 0).then_some(word), rest).map(move |word| from + word.trailing_zeros())
        })
    }

    fn words(&self, bucket: usize) -> &[u64] {
        match self {
            Self::Bits { words, bits } => &bits[bucket * words..][..*words],
            Self::Sorted(_) => &[],
        }
    }
}
