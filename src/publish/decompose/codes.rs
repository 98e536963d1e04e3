//! Sensitive codes of rows, buckets of rows, and the sets published of each bucket.

/// Sensitive codes of the rows of a table.
#[derive(Clone, Debug)]
pub struct SensitiveCodesByRow {
    /// Code of the primary attribute, by row.
    pub primary: Vec<u32>,
    /// Codes of each other attribute, by row.
    pub others: Vec<Vec<u32>>,
}

impl SensitiveCodesByRow {
    /// Number of rows of the table.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.primary.len()
    }
}

/// Rows of each bucket.
pub type RowsByGroup = Vec<Vec<u32>>;

/// Published codes of each bucket and other attribute.
pub type PublishedSets = Vec<Vec<CodeSet>>;

/// Codes, each once, rising.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CodeSet(Vec<u32>);

impl CodeSet {
    /// Adds a code.
    pub fn insert(&mut self, code: u32) {
        if let Err(at) = self.0.binary_search(&code) {
            self.0.insert(at, code);
        }
    }

    /// Position of a code among those of the set.
    pub(super) fn position(&self, code: u32) -> Option<usize> {
        self.0.binary_search(&code).ok()
    }

    /// The codes, rising.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Number of codes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no code.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<u32> for CodeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(codes: I) -> Self {
        let mut codes: Vec<u32> = codes.into_iter().collect();
        codes.sort_unstable();
        codes.dedup();
        Self(codes)
    }
}

/// Codes of the rows of each bucket, without noise.
#[must_use]
pub fn sets_of(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> PublishedSets {
    let set = |group: &Vec<u32>, codes: &Vec<u32>| group.iter().map(|&row| codes[row as usize]).collect();
    groups.iter().map(|group| sensitive.others.iter().map(|codes| set(group, codes)).collect()).collect()
}

/// Number of codes that rows of buckets have.
pub(super) fn occurring(codes: &[u32], groups: &RowsByGroup) -> usize {
    let rows = || groups.iter().flatten().map(|&row| codes[row as usize] as usize);
    let mut occurs = vec![false; rows().max().map_or(0, |most| most + 1)];
    rows().for_each(|code| occurs[code] = true);
    occurs.into_iter().filter(|occurs| *occurs).count()
}

/// Rows of each bucket; suppressed rows are in none.
#[must_use]
pub fn groups_of(bucket_of: &[u32], buckets: u32) -> RowsByGroup {
    let mut groups: RowsByGroup = vec![Vec::new(); buckets as usize];
    for (&bucket, row) in bucket_of.iter().zip(0..) {
        if let Some(group) = groups.get_mut(bucket as usize) {
            group.push(row);
        }
    }
    groups
}

/// Largest l for which no value takes more than 1/l of the rows, and at most the number of values.
///
/// # Citations
/// - [Ye et al. 2009, Corollary 2]
#[must_use]
pub fn optimal_l(counts: &[u64]) -> u64 {
    let rows: u64 = counts.iter().sum();
    let most = counts.iter().copied().max().unwrap_or(0);
    let values = counts.iter().filter(|&&count| count > 0).count() as u64;
    rows.checked_div(most).unwrap_or(0).min(values)
}

/// Index of the attribute whose counts allow the smallest l; the first of several.
#[must_use]
pub fn tightest(counts: &[Vec<u64>]) -> Option<usize> {
    (0..counts.len()).min_by_key(|&at| {
        let rows: u64 = counts[at].iter().sum();
        rows.checked_div(counts[at].iter().copied().max().unwrap_or(0)).unwrap_or(0)
    })
}

/// Number of buckets without a repeated value, by other attribute.
///
/// In these a value has the share of one row, also for readers of the joint table.
#[must_use]
pub fn repeat_free(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> Vec<usize> {
    let sets = sets_of(sensitive, groups);
    let free = |at: usize| groups.iter().zip(&sets).filter(|(group, sets)| sets[at].len() == group.len()).count();
    (0..sensitive.others.len()).map(free).collect()
}
