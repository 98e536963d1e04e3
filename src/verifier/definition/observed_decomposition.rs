use ahash::AHashSet;

/// Values of the rows of a part with buckets.
pub(in crate::verifier) struct LabelledValues {
    /// The label of each row, counted from 1.
    pub(in crate::verifier) labels: Vec<u32>,
    /// The number of the value of each row.
    pub(in crate::verifier) values: Vec<u32>,
}

impl LabelledValues {
    fn rows(&self) -> impl Iterator<Item = (u32, u32)> {
        self.labels.iter().copied().zip(self.values.iter().copied())
    }

    /// Whether a bucket has a value twice, which a list of values never has.
    pub(in crate::verifier) fn has_repeats(&self) -> bool {
        let mut seen = AHashSet::new();
        !self.rows().all(|row| seen.insert(row))
    }
}

/// The two tables of a decomposition, released or external, with the same number for equal values.
#[derive(Clone, Default)]
pub(in crate::verifier) struct ObservedDecomposition {
    /// For each bucket, the primary values of its rows.
    pub(in crate::verifier) primary: Vec<Vec<u32>>,
    /// For each bucket and other attribute, the published values, each once, rising.
    pub(in crate::verifier) sets: Vec<Vec<Vec<u32>>>,
    /// The rows of the joint table: the primary value, and the others.
    pub(in crate::verifier) joint: Vec<(u32, Vec<u32>)>,
    /// For each other attribute, whether every published value belongs to a row.
    pub(in crate::verifier) exact: Vec<bool>,
}

impl ObservedDecomposition {
    /// The decomposition of these parts; the columns of `joint` are the primary values, and the others.
    ///
    /// `None` where a list names a bucket without rows, or the joint table has no column.
    pub(in crate::verifier) fn new(
        primary: &LabelledValues,
        lists: &[LabelledValues],
        joint: &[Vec<u32>],
        exact: Vec<bool>,
    ) -> Option<Self> {
        let at = |label: u32| (label as usize).checked_sub(1);
        let buckets = primary.labels.iter().max().map_or(0, |label| *label as usize);
        let mut rows = vec![Vec::new(); buckets];
        for (label, value) in primary.rows() {
            rows.get_mut(at(label)?)?.push(value);
        }
        let mut sets = vec![vec![Vec::new(); lists.len()]; buckets];
        for (number, list) in lists.iter().enumerate() {
            for (label, value) in list.rows() {
                sets.get_mut(at(label)?)?[number].push(value);
            }
        }
        for set in sets.iter_mut().flatten() {
            set.sort_unstable();
            set.dedup();
        }
        let (first, others) = joint.split_first()?;
        let row = |(row, value): (usize, &u32)| (*value, others.iter().map(|of| of[row]).collect());
        Some(Self { primary: rows, sets, joint: first.iter().enumerate().map(row).collect(), exact })
    }
}
