//! Rows of equal primary value, with their other codes and their buckets.

use std::collections::BTreeMap;

use super::{RowsByGroup, SensitiveCodesByRow};

/// Number of rows that are always looked at one by one, before values are looked up.
const MIN_SCANNED_ROWS: usize = 512;
/// Number of rows looked at for each value, before values are looked up.
const ROWS_PER_VALUE: usize = 4;

/// Rows with one primary value, rising.
pub(super) struct AlikeRows {
    rows: Vec<u32>,
    /// Bucket of each row.
    owners: Vec<u32>,
    /// Codes of each other attribute, by row.
    codes: Vec<Vec<u32>>,
    /// Places of the values of each other attribute, once they are needed.
    places: Vec<Option<ValuePlaces>>,
}

/// Positions of rows by their code.
struct ValuePlaces {
    /// Occurring codes, each with the end of its positions.
    values: Vec<(u32, usize)>,
    /// Positions, code by code, rising.
    positions: Vec<u32>,
}

impl ValuePlaces {
    fn new(codes: &[u32]) -> Self {
        let mut positions: Vec<u32> = (0..codes.len() as u32).collect();
        positions.sort_by_key(|&at| codes[at as usize]);
        let mut values: Vec<(u32, usize)> = Vec::new();
        for (end, &at) in (1..).zip(&positions) {
            match values.last_mut() {
                Some((code, ends)) if *code == codes[at as usize] => *ends = end,
                _ => values.push((codes[at as usize], end)),
            }
        }
        Self { values, positions }
    }

    /// The first positions behind `from`, in turn, whose code is not listed: at most `wanted`, none of the last `seen`.
    fn unlisted(&self, from: usize, seen: usize, wanted: usize, listed: &[bool]) -> Vec<u32> {
        let rows = self.positions.len();
        let behind = |at: u32| (at as usize + rows - from) % rows;
        let (mut found, mut begin): (Vec<u32>, usize) = (Vec::new(), 0);
        for &(code, end) in &self.values {
            let places = &self.positions[begin..end];
            begin = end;
            if !listed.get(code as usize).copied().unwrap_or(false) {
                let next = places.partition_point(|&at| (at as usize) < from);
                let turn = places[next..].iter().chain(&places[..next]).copied();
                found.extend(turn.take(wanted).take_while(|&at| behind(at) < rows - seen));
            }
        }
        found.sort_unstable_by_key(|&at| behind(at));
        found.truncate(wanted);
        found
    }
}

impl AlikeRows {
    /// The rows of all buckets, by primary code.
    pub(super) fn by_primary(sensitive: &SensitiveCodesByRow, groups: &RowsByGroup) -> BTreeMap<u32, Self> {
        let mut owners: Vec<(u32, u32)> = Vec::with_capacity(groups.iter().map(Vec::len).sum());
        for (bucket, rows) in (0..).zip(groups) {
            owners.extend(rows.iter().map(|&row| (row, bucket)));
        }
        owners.sort_unstable();
        let none = || Self {
            rows: Vec::new(),
            owners: Vec::new(),
            codes: vec![Vec::new(); sensitive.others.len()],
            places: sensitive.others.iter().map(|_| None).collect(),
        };
        let mut all: BTreeMap<u32, Self> = BTreeMap::new();
        for (row, owner) in owners {
            let alike = all.entry(sensitive.primary[row as usize]).or_insert_with(none);
            alike.rows.push(row);
            alike.owners.push(owner);
            for (codes, of_rows) in alike.codes.iter_mut().zip(&sensitive.others) {
                codes.push(of_rows[row as usize]);
            }
        }
        all
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Codes of an attribute, by position.
    pub(super) fn codes(&self, attribute: usize) -> &[u32] {
        &self.codes[attribute]
    }

    /// Bucket of the row at a position.
    pub(super) fn owner(&self, place: u32) -> usize {
        self.owners[place as usize] as usize
    }

    /// Notes another bucket of a row.
    pub(super) fn give(&mut self, row: u32, bucket: usize) {
        if let Ok(at) = self.rows.binary_search(&row) {
            self.owners[at] = bucket as u32;
        }
    }

    /// Adds the positions of the first rows whose code is not `listed`, from a position and in turn: at most `wanted`.
    pub(super) fn unlisted(
        &mut self,
        attribute: usize,
        from: usize,
        wanted: usize,
        listed: &[bool],
        found: &mut Vec<u32>,
    ) {
        let codes = &self.codes[attribute];
        let begin = found.len();
        let mut scan = UnlistedScan { listed, wanted, found: begin, positions: found };
        scan.positions.resize(begin + wanted + 1, 0);
        let (mut scanned, mut limit) = (0, MIN_SCANNED_ROWS);
        let mut at = from;
        while scanned < codes.len() {
            if at == codes.len() {
                at = 0;
            }
            let end = codes.len().min(at + limit - scanned).min(if at < from { from } else { usize::MAX });
            if scan.go(codes, at..end, begin) {
                break;
            }
            scanned += end - at;
            at = end;
            if scanned == limit && scanned < codes.len() {
                let places = self.places[attribute].get_or_insert_with(|| ValuePlaces::new(codes));
                limit = limit.max(ROWS_PER_VALUE * places.values.len());
                if scanned == limit {
                    let (have, at) = (scan.found, at % codes.len());
                    found.truncate(have);
                    let left = wanted - (have - begin);
                    found.extend(places.unlisted(at, scanned, left, listed));
                    return;
                }
            }
        }
        let have = scan.found;
        found.truncate(have);
    }
}

/// Search row by row.
struct UnlistedScan<'s> {
    listed: &'s [bool],
    wanted: usize,
    /// Number of positions that are found.
    found: usize,
    positions: &'s mut Vec<u32>,
}

impl UnlistedScan<'_> {
    /// Notes the positions of rows whose code is not listed; true if there are enough behind `begin`.
    fn go(&mut self, codes: &[u32], range: std::ops::Range<usize>, begin: usize) -> bool {
        let (mut found, end) = (self.found, begin + self.wanted);
        for (place, &code) in (range.start as u32..).zip(&codes[range]) {
            // written in any case: which rows are found cannot be predicted
            self.positions[found] = place;
            found += usize::from(!self.listed.get(code as usize).copied().unwrap_or(false));
            if found == end {
                break;
            }
        }
        self.found = found;
        found == end
    }
}
