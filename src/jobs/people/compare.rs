//! Whether two datasets speak of the same people.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Store, StoreError};
use super::{ENOUGH, KnownBy, Overlap, People, PeopleRecord, Piece, Share, unpacked};

/// Of a hundred people, so many in another series are too many.
const PERCENT: u64 = 1;

/// How two sets of records stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::jobs) struct Counts {
    /// Records of both.
    pub(in crate::jobs) common: u64,
    /// Records of the new dataset alone.
    pub(in crate::jobs) added: u64,
    /// Records of the earlier one alone.
    pub(in crate::jobs) removed: u64,
}

/// The set of a dataset, piece by piece.
struct Cursor<'a> {
    store: &'a dyn Store,
    tenant: &'a str,
    record: (&'a PeopleRecord, &'a People),
    piece: u32,
    read: std::vec::IntoIter<u128>,
}

impl<'a> Cursor<'a> {
    fn new(store: &'a dyn Store, tenant: &'a str, record: (&'a PeopleRecord, &'a People)) -> Self {
        Self { store, tenant, record, piece: 0, read: Vec::new().into_iter() }
    }

    async fn next(&mut self) -> Result<Option<u128>, StoreError> {
        if let Some(hash) = self.read.next() {
            return Ok(Some(hash));
        }
        if self.piece == self.record.1.pieces {
            return Ok(None);
        }
        let piece = Piece::Set(self.piece);
        self.read = read(self.store, self.tenant, self.record.0, piece).await?.into_iter();
        self.piece += 1;
        Ok(self.read.next())
    }
}

async fn read(store: &dyn Store, tenant: &str, record: &PeopleRecord, piece: Piece) -> Result<Vec<u128>, StoreError> {
    let bytes = store.people_piece(tenant, record.dataset, piece).await?;
    unpacked(&bytes.ok_or_else(|| StoreError::corrupt("a piece of hashes is missing"))?)
}

/// How many records two datasets have in common.
///
/// # Errors
/// The store's.
pub(in crate::jobs) async fn set_counts(
    store: &dyn Store,
    tenant: &str,
    new: (&PeopleRecord, &People),
    earlier: (&PeopleRecord, &People),
) -> Result<Counts, StoreError> {
    if new.1.set == earlier.1.set {
        return Ok(Counts { common: new.1.rows, ..Counts::default() });
    }
    let (mut left, mut right) = (Cursor::new(store, tenant, new), Cursor::new(store, tenant, earlier));
    let (mut one, mut other) = (left.next().await?, right.next().await?);
    let mut common = 0;
    while let (Some(a), Some(b)) = (one, other) {
        if a == b {
            common += 1;
        }
        if a <= b {
            one = left.next().await?;
        }
        if b <= a {
            other = right.next().await?;
        }
    }
    Ok(Counts { common, added: new.1.rows - common, removed: earlier.1.rows - common })
}

/// What a new dataset is compared with.
pub(in crate::jobs) struct Newcomer<'a> {
    /// Itself.
    record: &'a PeopleRecord,
    /// What it says of its people.
    pub(in crate::jobs) people: &'a People,
    /// The sample.
    sample: Vec<u128>,
    /// The first piece of its set.
    first: Vec<u128>,
}

impl<'a> Newcomer<'a> {
    /// A dataset that is not visible yet, with its sample and the first piece of its set.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when they are none.
    pub(in crate::jobs) fn new(
        record: &'a PeopleRecord,
        people: &'a People,
        sample: &[u8],
        first: &[u8],
    ) -> Result<Self, StoreError> {
        Ok(Self { record, people, sample: unpacked(sample)?, first: unpacked(first)? })
    }
}

/// The people that a new dataset has in common with earlier ones of other series, by series.
///
/// # Errors
/// The store's.
pub(in crate::jobs) async fn overlaps(
    store: &dyn Store,
    tenant: &str,
    new: &Newcomer<'_>,
    others: &[PeopleRecord],
) -> Result<Vec<Overlap>, StoreError> {
    let mut found: BTreeMap<&str, Overlap> = BTreeMap::new();
    for other in others.iter().filter(|other| other.series != new.record.series) {
        let (rows, record_keys) = shared(store, tenant, new, other).await?;
        let some = |shared: &Option<Shared>| shared.is_some_and(|shared| shared.common > 0);
        if !some(&rows) && !some(&record_keys) {
            continue;
        }
        let overlap = found.entry(&other.series).or_insert_with(|| Overlap {
            series: other.series.clone(),
            datasets: Vec::new(),
            rows: None,
            record_keys: None,
            decides: false,
        });
        overlap.datasets.push(other.dataset);
        // of a table in which few rows differ from all others nothing is known, be it equal to another one or not
        let enough = new.people.sampled >= ENOUGH && other.people.as_ref().is_none_or(|of| of.sampled >= ENOUGH);
        overlap.decides |= [rows.filter(|_| enough), record_keys].into_iter().flatten().any(Shared::decides);
        for (kept, shared) in [(&mut overlap.rows, rows), (&mut overlap.record_keys, record_keys)] {
            let share = shared.map(|shared| Share { count: shared.common, of: shared.of });
            let more = |share: Share| kept.is_none_or(|kept| share.count * kept.of > kept.count * share.of);
            if let Some(share) = share.filter(|share| more(*share)) {
                *kept = Some(share);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Whether it can be seen that two datasets speak of the same people. Record keys are compared with record keys; rows with rows, where
/// there are enough that are like no other and both tables have as many columns.
pub(in crate::jobs) fn comparable(one: &People, other: &People) -> bool {
    let rows = one.sampled >= ENOUGH && other.sampled >= ENOUGH && one.columns.len() == other.columns.len();
    one.by == other.by || rows
}

/// What is said of other series that could not be compared, to whoever has a record key, or has none.
pub(in crate::jobs) fn uncompared_in_words(has_key: bool, series: &BTreeSet<&str>) -> String {
    /// So many are named.
    const NAMED: usize = 10;
    let (own, theirs) = if has_key { ("a record key", "none") } else { ("no record key", "one") };
    let named: Vec<&str> = series.iter().copied().take(NAMED).collect();
    let more = match series.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "the dataset has {own}, and datasets of the series {}{more} have {theirs}: whether they speak of the same people could not be \
         compared; upload all with record_key",
        named.join(", ")
    )
}

/// What two datasets have in common of what was compared.
#[derive(Clone, Copy)]
struct Shared {
    common: u64,
    of: u64,
    of_other: u64,
}

impl Shared {
    /// Of whichever has fewer: a few people in a large table are as well found as many.
    fn decides(self) -> bool {
        self.common * 100 > PERCENT * self.of.min(self.of_other)
    }
}

async fn shared(
    store: &dyn Store,
    tenant: &str,
    new: &Newcomer<'_>,
    other: &PeopleRecord,
) -> Result<(Option<Shared>, Option<Shared>), StoreError> {
    let (record, mine) = (new.record, new.people);
    let all = Shared { common: mine.rows, of: mine.rows, of_other: mine.rows };
    let Some(people) = &other.people else {
        // of a time before people were remembered: only what is wholly the same is seen
        return Ok(((record.content_hash == other.content_hash).then_some(all), None));
    };
    let alike = record.content_hash == other.content_hash || mine.table == people.table;
    let rows = if alike {
        Some(all)
    } else if mine.sampled >= ENOUGH && people.sampled >= ENOUGH {
        let sample = read(store, tenant, other, Piece::Sample).await?;
        let below = [mine.below, people.below].into_iter().flatten().map(|mark| mark.0).min();
        Some(common(&new.sample, &sample, below))
    } else {
        None
    };
    let record_keys = match (mine.by, people.by) {
        (KnownBy::Keys, KnownBy::Keys) => {
            let first = read(store, tenant, other, Piece::Set(0)).await?;
            // of a set of several pieces the first has the lowest
            let last = |of: &People, piece: &[u128]| piece.last().copied().filter(|_| of.pieces > 1);
            let below = [last(mine, &new.first), last(people, &first)].into_iter().flatten().min();
            Some(common(&new.first, &first, below))
        }
        _ => None,
    };
    Ok((rows, record_keys))
}

/// What two sorted lists have in common, up to a bound.
fn common(one: &[u128], other: &[u128], below: Option<u128>) -> Shared {
    let up_to = |list: &[u128]| below.map_or(list.len(), |below| list.partition_point(|hash| *hash <= below));
    let (one, other) = (&one[..up_to(one)], &other[..up_to(other)]);
    let mut right = other.iter().peekable();
    let mut common = 0;
    for hash in one {
        while right.next_if(|found| *found < hash).is_some() {}
        common += u64::from(right.next_if_eq(&hash).is_some());
    }
    Shared { common, of: one.len() as u64, of_other: other.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_samples_what_both_would_have_is_compared() {
        let shared = common(&[1, 3, 5, 9], &[3, 4, 5, 6, 7, 9], Some(6));
        assert_eq!((shared.common, shared.of, shared.of_other), (2, 3, 4));
        let shared = common(&[1, 3, 5, 9], &[3, 4, 5, 6, 7, 9], None);
        assert_eq!((shared.common, shared.of, shared.of_other), (3, 4, 6));
    }

    #[test]
    fn more_than_one_in_a_hundred_decides() {
        let decides = |common, of, of_other| Shared { common, of, of_other }.decides();
        assert!(!decides(10, 1000, 1000) && decides(11, 1000, 1000));
        assert!(decides(10, 100_000, 10) && !decides(0, 0, 0));
    }
}
