//! Whether two datasets speak of the same data subjects.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::ports::{
    FingerprintPiece, FingerprintRecord, FingerprintStore, HASHES_PER_PIECE, MIN_SAMPLED_ROWS, OverlapShare,
    RecordIdentity, StoreError, SubjectFingerprint, SubjectOverlap, unpacked,
};

/// Percentage of data subjects in another series from which a declaration is needed.
const OVERLAP_PERCENT: u64 = 1;

/// Hashes of other datasets that are read at once: two megabytes, or one piece if it has more.
const WINDOW_HASHES: usize = 1 << 17;

/// No more pieces than these are asked for at once.
const MAX_PIECES_PER_READ: usize = 512;

/// How two sets of records stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RecordOverlap {
    /// Records of both.
    pub(crate) common: u64,
    /// Records of the new dataset alone.
    pub(crate) added: u64,
    /// Records of the earlier one alone.
    pub(crate) removed: u64,
}

/// A dataset with a fingerprint of its data subjects.
#[derive(Clone, Copy)]
pub(crate) struct FingerprintedDataset<'a> {
    /// The dataset.
    pub(crate) record: &'a FingerprintRecord,
    /// Its fingerprint.
    pub(crate) fingerprint: &'a SubjectFingerprint,
}

impl<'a> FingerprintedDataset<'a> {
    /// The dataset of a record, if it has a fingerprint.
    pub(crate) fn from_record(record: &'a FingerprintRecord) -> Option<Self> {
        Some(Self { record, fingerprint: record.fingerprint.as_ref()? })
    }
}

/// How many hashes a piece and one read of the store have at most.
#[derive(Clone, Copy)]
struct ReadLimits {
    piece: usize,
    window: usize,
}

/// Reads pieces that are there.
async fn read(
    store: &dyn FingerprintStore,
    tenant: &str,
    wanted: &[(Uuid, FingerprintPiece)],
) -> Result<Vec<Vec<u8>>, StoreError> {
    let pieces = store.fingerprint_pieces(tenant, wanted).await?;
    let pieces: Option<Vec<_>> = pieces.into_iter().collect();
    pieces.ok_or_else(|| StoreError::corrupt("a piece of hashes is missing"))
}

/// How many hashes a piece holds, of which a piece has at most `most`.
fn held(fingerprint: &SubjectFingerprint, piece: FingerprintPiece, most: usize) -> usize {
    let held = match piece {
        FingerprintPiece::Sample => fingerprint.sampled,
        FingerprintPiece::Set(number) => fingerprint.rows.saturating_sub(u64::from(number) * most as u64),
    };
    held.min(most as u64) as usize
}

/// How many records of a dataset each of others has too.
///
/// Merges the new set with each other set, window by window; one read of the store returns pieces of many sets. Memory holds
/// one window of each.
///
/// # Errors
/// The store's.
pub(crate) async fn record_overlap(
    store: &dyn FingerprintStore,
    tenant: &str,
    new: FingerprintedDataset<'_>,
    others: &[FingerprintedDataset<'_>],
) -> Result<Vec<u64>, StoreError> {
    overlap_within(store, tenant, new, others, ReadLimits { piece: HASHES_PER_PIECE, window: WINDOW_HASHES }).await
}

/// [`record_overlap`] with other limits.
async fn overlap_within(
    store: &dyn FingerprintStore,
    tenant: &str,
    new: FingerprintedDataset<'_>,
    others: &[FingerprintedDataset<'_>],
    limits: ReadLimits,
) -> Result<Vec<u64>, StoreError> {
    let FingerprintedDataset { record, fingerprint } = new;
    let mut places: Vec<WindowPosition> = others.iter().map(|_| WindowPosition::default()).collect();
    let mut next = 0;
    while next < fingerprint.pieces && !others.is_empty() {
        let first = next;
        let mut size = 0;
        loop {
            size += held(fingerprint, FingerprintPiece::Set(next), limits.piece);
            next += 1;
            if next == fingerprint.pieces
                || size + held(fingerprint, FingerprintPiece::Set(next), limits.piece) > limits.window
            {
                break;
            }
        }
        let wanted: Vec<_> = (first..next).map(|piece| (record.dataset, FingerprintPiece::Set(piece))).collect();
        let window = unpacked(&read(store, tenant, &wanted).await?.concat())?;
        places.iter_mut().for_each(|place| place.at = 0);
        loop {
            let next_read = NextRead::plan(others, &places, window.len(), next == fingerprint.pieces, limits);
            if next_read.wanted.is_empty() {
                break;
            }
            let pieces = read(store, tenant, &next_read.wanted).await?;
            for (index, piece) in next_read.sets.into_iter().zip(pieces) {
                places[index].meet(&window, &piece)?;
            }
        }
    }
    Ok(places.into_iter().map(|place| place.common).collect())
}

/// Pieces to read, and the number of the set of each.
#[derive(Default)]
struct NextRead {
    wanted: Vec<(Uuid, FingerprintPiece)>,
    sets: Vec<usize>,
}

impl NextRead {
    /// Each set continues from its position: by one piece, or by all the rest in the last window.
    fn plan(
        others: &[FingerprintedDataset<'_>],
        places: &[WindowPosition],
        window: usize,
        is_last: bool,
        limits: ReadLimits,
    ) -> Self {
        let (mut next, mut size) = (Self::default(), 0);
        for (index, (other, place)) in others.iter().zip(places).enumerate() {
            let ahead = if is_last { other.fingerprint.pieces } else { place.piece + 1 };
            let is_open = place.at < window && place.piece < other.fingerprint.pieces;
            let pieces = place.piece..ahead.min(other.fingerprint.pieces);
            for piece in pieces.filter(|_| is_open).map(FingerprintPiece::Set) {
                size += held(other.fingerprint, piece, limits.piece);
                if !next.wanted.is_empty() && (size > limits.window || next.wanted.len() == MAX_PIECES_PER_READ) {
                    return next;
                }
                next.wanted.push((other.record.dataset, piece));
                next.sets.push(index);
            }
        }
        next
    }
}

/// Position in a set that is merged with another one.
#[derive(Default)]
struct WindowPosition {
    /// Its piece, and how many hashes of that are behind.
    piece: u32,
    offset: usize,
    /// How many hashes of the window are behind.
    at: usize,
    common: u64,
}

impl WindowPosition {
    /// Goes through the piece that it stands in, until that or the window ends.
    fn meet(&mut self, window: &[u128], piece: &[u8]) -> Result<(), StoreError> {
        let (hashes, rest) = piece.as_chunks::<16>();
        if !rest.is_empty() {
            return Err(StoreError::corrupt("a piece of hashes is cut"));
        }
        while let (Some(own), Some(other)) = (window.get(self.at), hashes.get(self.offset)) {
            let other = u128::from_be_bytes(*other);
            self.common += u64::from(*own == other);
            self.at += usize::from(*own <= other);
            self.offset += usize::from(other <= *own);
        }
        if self.offset >= hashes.len() {
            (self.piece, self.offset) = (self.piece + 1, 0);
        }
        Ok(())
    }
}

/// What a new dataset is compared with.
pub(crate) struct FingerprintComparison<'a> {
    /// Itself.
    record: &'a FingerprintRecord,
    /// What it says of its data subjects.
    pub(crate) fingerprint: &'a SubjectFingerprint,
    /// The sample.
    sample: Vec<u128>,
    /// The first piece of its set.
    first: Vec<u128>,
}

impl<'a> FingerprintComparison<'a> {
    /// A dataset that is not visible yet, with its sample and the first piece of its set.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when they are none.
    pub(crate) fn new(
        record: &'a FingerprintRecord,
        fingerprint: &'a SubjectFingerprint,
        sample: &[u8],
        first: &[u8],
    ) -> Result<Self, StoreError> {
        Ok(Self { record, fingerprint, sample: unpacked(sample)?, first: unpacked(first)? })
    }

    /// Whether a table is wholly the same, but for names of columns.
    fn is_alike(&self, other: &FingerprintRecord) -> bool {
        let same_table =
            other.fingerprint.as_ref().is_some_and(|fingerprint| fingerprint.table == self.fingerprint.table);
        self.record.content_hash == other.content_hash || same_table
    }

    /// What has to be read of another dataset: the sample where rows are compared, the first piece of the set where keys are.
    fn pieces(&self, other: &FingerprintRecord) -> Vec<FingerprintPiece> {
        let (mine, Some(fingerprint)) = (self.fingerprint, &other.fingerprint) else { return Vec::new() };
        let mut pieces = Vec::new();
        if !self.is_alike(other) && mine.sampled >= MIN_SAMPLED_ROWS && fingerprint.sampled >= MIN_SAMPLED_ROWS {
            pieces.push(FingerprintPiece::Sample);
        }
        if (mine.by, fingerprint.by) == (RecordIdentity::Keys, RecordIdentity::Keys) {
            pieces.push(FingerprintPiece::Set(0));
        }
        pieces
    }

    /// The rows and the record keys that another dataset has too, by what was read of it.
    fn shared(
        &self,
        other: &FingerprintRecord,
        sample: Option<&[u128]>,
        first: Option<&[u128]>,
    ) -> (Option<CommonHashes>, Option<CommonHashes>) {
        let mine = self.fingerprint;
        let all = CommonHashes { common: mine.rows, of: mine.rows, of_other: mine.rows };
        let Some(fingerprint) = &other.fingerprint else {
            // of a time before fingerprints were stored: only what is wholly the same is seen
            return ((self.record.content_hash == other.content_hash).then_some(all), None);
        };
        let rows = if self.is_alike(other) {
            Some(all)
        } else {
            let below = [mine.below, fingerprint.below].into_iter().flatten().map(|mark| mark.0).min();
            sample.map(|sample| common(&self.sample, sample, below))
        };
        let record_keys = first.map(|first| {
            // of a set of several pieces the first has the lowest
            let last = |of: &SubjectFingerprint, piece: &[u128]| piece.last().copied().filter(|_| of.pieces > 1);
            let below = [last(mine, &self.first), last(fingerprint, first)].into_iter().flatten().min();
            common(&self.first, first, below)
        });
        (rows, record_keys)
    }
}

/// The data subjects that a new dataset has in common with earlier ones of other series, by series.
///
/// # Errors
/// The store's.
pub(crate) async fn overlaps(
    store: &dyn FingerprintStore,
    tenant: &str,
    new: &FingerprintComparison<'_>,
    others: &[FingerprintRecord],
) -> Result<Vec<SubjectOverlap>, StoreError> {
    let mut found: BTreeMap<&str, SubjectOverlap> = BTreeMap::new();
    let mut others = others.iter().filter(|other| other.series != new.record.series).peekable();
    let mut compared = Vec::new();
    while others.peek().is_some() {
        let (mut group, mut wanted, mut size) = (Vec::new(), Vec::new(), 0);
        while let Some(other) = others.next_if(|_| size < WINDOW_HASHES && wanted.len() < MAX_PIECES_PER_READ) {
            let pieces = new.pieces(other);
            size += pieces
                .iter()
                .map(|piece| {
                    other.fingerprint.as_ref().map_or(0, |fingerprint| held(fingerprint, *piece, HASHES_PER_PIECE))
                })
                .sum::<usize>();
            wanted.extend(pieces.iter().map(|piece| (other.dataset, *piece)));
            group.push((other, pieces));
        }
        let mut read = read(store, tenant, &wanted).await?.into_iter();
        for (other, pieces) in group {
            let mut of =
                |piece| pieces.contains(&piece).then(|| unpacked(&read.next().unwrap_or_default())).transpose();
            let (sample, first) = (of(FingerprintPiece::Sample)?, of(FingerprintPiece::Set(0))?);
            compared.push((other, new.shared(other, sample.as_deref(), first.as_deref())));
        }
    }
    for (other, (rows, record_keys)) in compared {
        let some = |shared: &Option<CommonHashes>| shared.is_some_and(|shared| shared.common > 0);
        if !some(&rows) && !some(&record_keys) {
            continue;
        }
        let overlap = found.entry(&other.series).or_insert_with(|| SubjectOverlap {
            series: other.series.clone(),
            datasets: Vec::new(),
            rows: None,
            record_keys: None,
            decides: false,
        });
        overlap.datasets.push(other.dataset);
        // of a table in which few rows differ from all others nothing is known, be it equal to another one or not
        let enough = new.fingerprint.sampled >= MIN_SAMPLED_ROWS
            && other.fingerprint.as_ref().is_none_or(|of| of.sampled >= MIN_SAMPLED_ROWS);
        overlap.decides |= [rows.filter(|_| enough), record_keys].into_iter().flatten().any(CommonHashes::decides);
        for (kept, shared) in [(&mut overlap.rows, rows), (&mut overlap.record_keys, record_keys)] {
            let share = shared.map(|shared| OverlapShare { count: shared.common, of: shared.of });
            let more = |share: OverlapShare| kept.is_none_or(|kept| share.count * kept.of > kept.count * share.of);
            if let Some(share) = share.filter(|share| more(*share)) {
                *kept = Some(share);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Whether it can be seen that two datasets speak of the same data subjects. Record keys are compared with record keys; rows with rows, where
/// there are enough that are like no other and both tables have as many columns.
pub(crate) fn comparable(one: &SubjectFingerprint, other: &SubjectFingerprint) -> bool {
    let rows = one.sampled >= MIN_SAMPLED_ROWS
        && other.sampled >= MIN_SAMPLED_ROWS
        && one.columns.len() == other.columns.len();
    one.by == other.by || rows
}

/// Detail of the warning about other series that could not be compared.
pub(crate) fn describe_uncompared(has_key: bool, series: &BTreeSet<&str>) -> String {
    /// Most series that the detail names.
    const NAMED: usize = 10;
    let (own, theirs) = if has_key { ("a record key", "none") } else { ("no record key", "one") };
    let named: Vec<&str> = series.iter().copied().take(NAMED).collect();
    let more = match series.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "the dataset has {own}, and datasets of the series {}{more} have {theirs}: whether they speak of the same data subjects could not be \
         compared; upload all with record_key",
        named.join(", ")
    )
}

/// What two datasets have in common of what was compared.
#[derive(Clone, Copy)]
struct CommonHashes {
    common: u64,
    of: u64,
    of_other: u64,
}

impl CommonHashes {
    /// Of whichever has fewer: a few data subjects in a large table are as well found as many.
    fn decides(self) -> bool {
        self.common * 100 > OVERLAP_PERCENT * self.of.min(self.of_other)
    }
}

/// What two sorted lists have in common, up to a bound.
fn common(one: &[u128], other: &[u128], below: Option<u128>) -> CommonHashes {
    let up_to = |list: &[u128]| below.map_or(list.len(), |below| list.partition_point(|hash| *hash <= below));
    let (one, other) = (&one[..up_to(one)], &other[..up_to(other)]);
    let mut right = other.iter().peekable();
    let mut common = 0;
    for hash in one {
        while right.next_if(|found| *found < hash).is_some() {}
        common += u64::from(right.next_if_eq(&hash).is_some());
    }
    CommonHashes { common, of: one.len() as u64, of_other: other.len() as u64 }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use async_trait::async_trait;
    use proptest::prelude::*;

    use super::*;
    use crate::ports::{KeyedHash, packed};

    /// Sets in pieces.
    struct Sets(HashMap<(Uuid, FingerprintPiece), Vec<u8>>);

    #[async_trait]
    impl FingerprintStore for Sets {
        async fn put_fingerprint_piece(&self, _: Uuid, _: FingerprintPiece, _: &[u8]) -> Result<(), StoreError> {
            Err(StoreError::Conflict)
        }

        async fn fingerprint_pieces(
            &self,
            _: &str,
            wanted: &[(Uuid, FingerprintPiece)],
        ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
            Ok(wanted.iter().map(|piece| self.0.get(piece).cloned()).collect())
        }

        async fn fingerprints(&self, _: &str, _: Option<&str>) -> Result<(i64, Vec<FingerprintRecord>), StoreError> {
            Err(StoreError::Conflict)
        }
    }

    /// A dataset whose records have these hashes, in pieces of limited size.
    fn kept(sets: &mut Sets, hashes: &[u8], most: usize) -> FingerprintRecord {
        let mut hashes: Vec<u128> = hashes.iter().map(|&hash| u128::from(hash) << 100).collect();
        hashes.sort_unstable();
        let dataset = Uuid::from_u128(sets.0.len() as u128 + 1);
        let pieces = hashes
            .chunks(most)
            .zip(0..)
            .map(|(piece, number)| ((dataset, FingerprintPiece::Set(number)), packed(piece)));
        let before = sets.0.len();
        sets.0.extend(pieces);
        let nothing = KeyedHash(0);
        let fingerprint = SubjectFingerprint {
            by: RecordIdentity::Rows,
            folded: false,
            key: Vec::new(),
            rows: hashes.len() as u64,
            pieces: (sets.0.len() - before) as u32,
            set: nothing,
            table: nothing,
            columns: Vec::new(),
            sampled: 0,
            below: None,
        };
        FingerprintRecord { dataset, series: String::new(), content_hash: [0; 32], fingerprint: Some(fingerprint) }
    }

    proptest! {
        #[test]
        fn many_sets_at_once_have_in_common_what_each_has(
            own in prop::collection::vec(0..20_u8, 1..30),
            others in prop::collection::vec(prop::collection::vec(0..20_u8, 1..30), 0..6),
            most in 1..9_usize,
            at_once in 0..40_usize,
        ) {
            let mut sets = Sets(HashMap::new());
            let new = kept(&mut sets, &own, most);
            let records: Vec<FingerprintRecord> = others.iter().map(|hashes| kept(&mut sets, hashes, most)).collect();
            let known = |record| FingerprintedDataset::from_record(record).unwrap();
            let earlier: Vec<FingerprintedDataset<'_>> = records.iter().map(known).collect();
            let limits = ReadLimits { piece: most, window: at_once };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let found = runtime.block_on(overlap_within(&sets, "", known(&new), &earlier, limits)).unwrap();
            // equal rows are one hash, as often as there are rows
            let times = |hashes: &[u8], hash: u8| hashes.iter().filter(|of| **of == hash).count();
            let both = |other: &Vec<u8>| (0..20).map(|hash| times(&own, hash).min(times(other, hash)) as u64).sum::<u64>();
            prop_assert_eq!(found, others.iter().map(both).collect::<Vec<_>>());
            // what cannot be read is no set without records
            sets.0.retain(|(dataset, _), _| *dataset == new.dataset);
            let found = runtime.block_on(overlap_within(&sets, "", known(&new), &earlier, limits));
            prop_assert_eq!(matches!(found, Err(StoreError::Corrupt(_))), !earlier.is_empty());
        }
    }

    #[test]
    fn of_two_samples_what_both_would_have_is_compared() {
        let shared = common(&[1, 3, 5, 9], &[3, 4, 5, 6, 7, 9], Some(6));
        assert_eq!((shared.common, shared.of, shared.of_other), (2, 3, 4));
        let shared = common(&[1, 3, 5, 9], &[3, 4, 5, 6, 7, 9], None);
        assert_eq!((shared.common, shared.of, shared.of_other), (3, 4, 6));
    }

    #[test]
    fn more_than_one_in_a_hundred_decides() {
        let decides = |common, of, of_other| CommonHashes { common, of, of_other }.decides();
        assert!(!decides(10, 1000, 1000) && decides(11, 1000, 1000));
        assert!(decides(10, 100_000, 10) && !decides(0, 0, 0));
    }
}
