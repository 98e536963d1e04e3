//! How well tables that are tied by bucket hide who is in them: of the tuples that they might hold, those that the original has
//! and those that it has not, by how many buckets match them in every part (slicing, section 7). Needs the original.

use std::collections::BTreeSet;

use ahash::AHashMap;

use super::given::{GivenPart, GivenTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Column};

/// So many steps are looked for every tuple; beyond, some are drawn.
const MOST_STEPS: u64 = 1 << 27;
/// So many tuples are drawn.
const DRAWS: u32 = 20_000;
/// The rows of all parts, times the buckets in words of 64, are at most so many: each tuple has a bit for each bucket.
const MOST_WORDS: u64 = 1 << 25;

/// Why tuples were not looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlisted {
    /// It was told to stop.
    Cancelled,
    /// The table has too many rows in too many buckets.
    TooMany {
        /// The most words that may be held.
        limit: u64,
        /// Those that would be.
        found: u64,
    },
}

impl From<Cancelled> for Unlisted {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A number of tuples, or an estimate of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tuples {
    /// How many.
    pub value: f64,
    /// The standard error of an estimate; 0 of a count.
    pub standard_error: f64,
    /// Whether they were counted.
    pub exact: bool,
}

/// Tuples by how many buckets match them: at most 10, at most 20, and more.
#[derive(Clone, PartialEq, Debug)]
pub struct Members {
    /// Tuples of all attributes that some bucket matches and no row is.
    pub fake_full: Tuples,
    /// The same of the attributes that are not protected.
    pub fake_qi: Tuples,
    /// Rows of the original, by buckets that match all of their attributes.
    pub rows: [u64; 3],
    /// Different rows of the original.
    pub originals: [u64; 3],
    /// Tuples that no row is.
    pub fakes: [Tuples; 3],
}

/// Tuples of some attributes.
struct Found {
    rows: [u64; 3],
    originals: [u64; 3],
    /// All that match.
    tuples: [Tuples; 3],
    fake: Tuples,
}

/// Looks for the tuples of a table whose parts are all tied by bucket; `None` when a part lacks its labels, or a row of the
/// original is in no bucket, so that the table is not made from it.
///
/// # Errors
/// [`Unlisted`]
pub fn members(
    table: &GivenTable,
    original: &[(Attr, &Column)],
    protected: AttrSet,
    control: &Control,
) -> Result<Option<Members>, Unlisted> {
    let buckets = table.parts.iter().filter_map(|part| part.bucket.as_ref()).map(|bucket| bucket.domain.len() as u64);
    let rows: u64 = table.parts.iter().map(|part| part.rows as u64).sum();
    let words = rows.saturating_mul(buckets.max().unwrap_or(0).div_ceil(64));
    if words > MOST_WORDS {
        return Err(Unlisted::TooMany { limit: MOST_WORDS, found: words });
    }
    let Some(full) = found(table, original, table.attributes(), control)? else { return Ok(None) };
    let beside = table.attributes().minus(protected);
    let none = Tuples { value: 0.0, standard_error: 0.0, exact: true };
    // of what is protected throughout nothing is known
    let fake_qi = match beside.is_empty() {
        true => none,
        false => match found(table, original, beside, control)? {
            Some(known) => known.fake,
            None => return Ok(None),
        },
    };
    let fakes = [0, 1, 2].map(|class| less(full.tuples[class], full.originals[class]));
    Ok(Some(Members { fake_full: full.fake, fake_qi, rows: full.rows, originals: full.originals, fakes }))
}

fn class(buckets: u32) -> usize {
    match buckets {
        0..=10 => 0,
        11..=20 => 1,
        _ => 2,
    }
}

/// A number of tuples of which `originals` are rows.
fn less(tuples: Tuples, originals: u64) -> Tuples {
    Tuples { value: (tuples.value - originals as f64).max(0.0), ..tuples }
}

/// The tuples of a part, each with the buckets that have it.
struct Part {
    numbers: AHashMap<Vec<u32>, u32>,
    attributes: Vec<Attr>,
    /// A bit for each bucket, tuple after tuple.
    bits: Vec<u64>,
    /// The tuples of each bucket.
    of_bucket: Vec<Vec<u32>>,
}

fn found(
    table: &GivenTable,
    original: &[(Attr, &Column)],
    attributes: AttrSet,
    control: &Control,
) -> Result<Option<Found>, Cancelled> {
    let used: Vec<&GivenPart> = table.parts.iter().filter(|part| part.attributes().meets(attributes)).collect();
    let Some(first) = used.first().and_then(|part| part.bucket.as_ref()) else { return Ok(None) };
    let labels: AHashMap<Option<&[u8]>, u32> = first.domain.iter().zip(0..).collect();
    let words = labels.len().div_ceil(64).max(1);
    let mut parts = Vec::with_capacity(used.len());
    for part in used {
        control.check()?;
        let Some(read) = Part::of(part, original, attributes, &labels, words) else { return Ok(None) };
        parts.push(read);
    }
    // the fewest tuples first
    parts.sort_by_key(|part| part.numbers.len());
    let rows = original.first().map_or(0, |(_, column)| column.codes.len());
    let mut seen: BTreeSet<Vec<u32>> = BTreeSet::new();
    let (mut of_rows, mut originals) = ([0; 3], [0; 3]);
    for row in 0..rows {
        if row % 256 == 0 {
            control.check()?;
        }
        let tuple: Option<Vec<u32>> = parts.iter().map(|part| part.number(original, row)).collect();
        let Some(tuple) = tuple else { return Ok(None) };
        let matching = matching(&parts, words, &tuple);
        of_rows[class(matching)] += 1;
        if seen.insert(tuple) {
            originals[class(matching)] += 1;
        }
    }
    let mut counting = Counting { found: [0; 3], steps: MOST_STEPS, words, control };
    let all = vec![u64::MAX; words];
    let tuples = if counting.extend(&all, &parts)? {
        counting.found.map(|found| Tuples { value: found as f64, standard_error: 0.0, exact: true })
    } else {
        drawn(&parts, words, labels.len(), control)?
    };
    let exact = tuples.iter().all(|tuples| tuples.exact);
    // classes of one sample: their deviations add up to no less than that of the whole
    let value: f64 = tuples.iter().map(|tuples| tuples.value).sum();
    let standard_error = tuples.iter().map(|tuples| tuples.standard_error.powi(2)).sum::<f64>().sqrt();
    let fake = less(Tuples { value, standard_error, exact }, seen.len() as u64);
    Ok(Some(Found { rows: of_rows, originals, tuples, fake }))
}

impl Part {
    /// Tuples in the codes of the original; `None` where a value is none of the original's.
    fn of(
        part: &GivenPart,
        original: &[(Attr, &Column)],
        attributes: AttrSet,
        labels: &AHashMap<Option<&[u8]>, u32>,
        words: usize,
    ) -> Option<Self> {
        let bucket = part.bucket.as_ref()?;
        let label: Vec<u32> = bucket.domain.iter().map(|label| labels.get(&label).copied()).collect::<Option<_>>()?;
        let mut columns: Vec<(Attr, &Column, Vec<u32>)> = Vec::new();
        for (attr, column) in part.columns.iter().filter(|(attr, _)| attributes.contains(*attr)) {
            let (_, of) = original.iter().find(|(of, _)| of == attr)?;
            let codes: AHashMap<Option<&[u8]>, u32> = of.domain.iter().zip(0..).collect();
            let known = column.domain.iter().map(|value| codes.get(&value).copied()).collect::<Option<_>>()?;
            columns.push((*attr, column, known));
        }
        let mut read = Self {
            numbers: AHashMap::new(),
            attributes: columns.iter().map(|(attr, ..)| *attr).collect(),
            bits: Vec::new(),
            of_bucket: vec![Vec::new(); labels.len()],
        };
        for row in 0..part.rows {
            let tuple: Vec<u32> =
                columns.iter().map(|(_, column, known)| known[column.codes.get(row) as usize]).collect();
            let next = read.numbers.len() as u32;
            let number = *read.numbers.entry(tuple).or_insert(next);
            if number == next {
                read.bits.resize(read.bits.len() + words, 0);
            }
            let bucket = label[bucket.codes.get(row) as usize];
            let word = &mut read.bits[number as usize * words + bucket as usize / 64];
            if *word & 1 << (bucket % 64) == 0 {
                *word |= 1 << (bucket % 64);
                read.of_bucket[bucket as usize].push(number);
            }
        }
        Some(read)
    }

    fn number(&self, original: &[(Attr, &Column)], row: usize) -> Option<u32> {
        let code = |attr: &Attr| original.iter().find(|(of, _)| of == attr).map(|(_, column)| column.codes.get(row));
        self.numbers.get(&self.attributes.iter().map(code).collect::<Option<Vec<u32>>>()?).copied()
    }

    fn buckets(&self, tuple: u32, words: usize) -> &[u64] {
        &self.bits[tuple as usize * words..][..words]
    }
}

/// How many buckets have the tuple in every part.
fn matching(parts: &[Part], words: usize, tuple: &[u32]) -> u32 {
    let word = |at: usize| {
        parts.iter().zip(tuple).fold(u64::MAX, |all, (part, &number)| all & part.buckets(number, words)[at])
    };
    (0..words).map(|at| word(at).count_ones()).sum()
}

/// Every tuple once: part after part, as long as some bucket is left.
struct Counting<'a> {
    found: [u64; 3],
    steps: u64,
    words: usize,
    control: &'a Control,
}

impl Counting<'_> {
    /// False when steps run out.
    fn extend(&mut self, left: &[u64], parts: &[Part]) -> Result<bool, Cancelled> {
        let Some((part, further)) = parts.split_first() else {
            let buckets = left.iter().map(|word| word.count_ones()).sum();
            self.found[class(buckets)] += 1;
            return Ok(true);
        };
        self.control.check()?;
        let Some(steps) = self.steps.checked_sub((part.numbers.len() * self.words) as u64) else { return Ok(false) };
        self.steps = steps;
        for tuple in 0..part.numbers.len() as u32 {
            let both: Vec<u64> = left.iter().zip(part.buckets(tuple, self.words)).map(|(a, b)| a & b).collect();
            if both.iter().any(|word| *word > 0) && !self.extend(&both, further)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The number of tuples in the union of all buckets, estimated (Karp and Luby): a bucket by the number of its tuples, one of
/// them, and the reciprocal of how many buckets match it.
fn drawn(parts: &[Part], words: usize, buckets: usize, control: &Control) -> Result<[Tuples; 3], Cancelled> {
    let boxes: Vec<f64> =
        (0..buckets).map(|bucket| parts.iter().map(|part| part.of_bucket[bucket].len() as f64).product()).collect();
    let mut before = 0.0;
    let sums: Vec<f64> = boxes
        .iter()
        .map(|size| {
            before += size;
            before
        })
        .collect();
    let all = before;
    let mut random = SplitMix(0x5eed);
    let (mut sum, mut squares) = ([0.0; 3], [0.0; 3]);
    for draw in 0..DRAWS {
        if draw % 256 == 0 {
            control.check()?;
        }
        let point = random.share() * all;
        let bucket = sums.partition_point(|sum| *sum <= point).min(buckets.saturating_sub(1));
        let tuple: Vec<u32> = parts
            .iter()
            .map(|part| {
                let tuples = &part.of_bucket[bucket];
                tuples[((random.share() * tuples.len() as f64) as usize).min(tuples.len() - 1)]
            })
            .collect();
        let found = matching(parts, words, &tuple);
        let share = 1.0 / f64::from(found.max(1));
        sum[class(found)] += share;
        squares[class(found)] += share * share;
    }
    let draws = f64::from(DRAWS);
    Ok([0, 1, 2].map(|class| {
        let mean: f64 = sum[class] / draws;
        let variance: f64 = (squares[class] / draws - mean * mean).max(0.0);
        Tuples { value: all * mean, standard_error: all * (variance / draws).sqrt(), exact: false }
    }))
}

/// A generator whose numbers are the same each time, so that an answer is.
struct SplitMix(u64);

impl SplitMix {
    /// At least 0 and below 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Cell, column};
    use super::*;
    use crate::publication::RowMeaning;

    /// Table 1 of slicing.
    const ROWS: [[&str; 4]; 8] = [
        ["22", "M", "47906", "dyspepsia"],
        ["22", "F", "47906", "flu"],
        ["33", "F", "47905", "flu"],
        ["52", "F", "47905", "bronchitis"],
        ["54", "M", "47302", "flu"],
        ["60", "M", "47302", "dyspepsia"],
        ["60", "M", "47304", "dyspepsia"],
        ["64", "F", "47304", "gastritis"],
    ];

    fn cells(attr: usize) -> Vec<Cell> {
        ROWS.iter().map(|row| Some(row[attr].to_owned())).collect()
    }

    fn table(parts: &[&[usize]]) -> (GivenTable, Vec<(Attr, Column)>) {
        let bucket: Vec<Cell> = (0..8).map(|row| Some((row / 4 + 1).to_string())).collect();
        let part = |attrs: &&[usize]| GivenPart {
            name: String::new(),
            meaning: RowMeaning::Tuples,
            rows: 8,
            bucket: Some(column(&bucket)),
            columns: attrs.iter().map(|&attr| (Attr::from(attr), column(&cells(attr)))).collect(),
            cells: std::collections::BTreeMap::new(),
        };
        let original = (0..4).map(|attr| (Attr::from(attr), column(&cells(attr)))).collect();
        (GivenTable { name: "t1".to_owned(), parts: parts.iter().map(part).collect() }, original)
    }

    fn fakes(parts: &[&[usize]]) -> (f64, f64) {
        let (table, original) = table(parts);
        let original: Vec<(Attr, &Column)> = original.iter().map(|(attr, column)| (*attr, column)).collect();
        let found =
            members(&table, &original, AttrSet::one(Attr(3)), &Control::default()).expect("done").expect("found");
        assert!(found.fake_full.exact && found.fake_qi.exact);
        assert_eq!((found.rows, found.originals), ([8, 0, 0], [8, 0, 0]));
        assert_eq!(found.fakes[0].value, found.fake_full.value);
        (found.fake_full.value, found.fake_qi.value)
    }

    #[test]
    fn the_tables_of_the_paper_have_so_many_fakes() {
        assert_eq!(fakes(&[&[0, 1], &[2, 3]]), (20.0, 6.0));
        assert_eq!(fakes(&[&[0], &[1], &[2], &[3]]), (64.0, 16.0));
        assert_eq!(fakes(&[&[0, 1, 2], &[3]]), (16.0, 0.0));
    }

    #[test]
    fn what_is_drawn_is_near_what_is_counted() {
        let (table, original) = table(&[&[0], &[1], &[2], &[3]]);
        let original: Vec<(Attr, &Column)> = original.iter().map(|(attr, column)| (*attr, column)).collect();
        let labels: AHashMap<Option<&[u8]>, u32> =
            table.parts[0].bucket.as_ref().expect("buckets").domain.iter().zip(0..).collect();
        let parts: Vec<Part> = table
            .parts
            .iter()
            .map(|part| Part::of(part, &original, AttrSet::first(4), &labels, 1).expect("a part"))
            .collect();
        let drawn = drawn(&parts, 1, 2, &Control::default()).expect("done");
        assert!((drawn[0].value - 72.0).abs() <= 5.0 * drawn[0].standard_error.max(1e-9), "{drawn:?}");
        assert!(!drawn[0].exact);
    }

    #[test]
    fn tables_of_other_rows_are_told() {
        let (mut table, original) = table(&[&[0, 1], &[2, 3]]);
        let original: Vec<(Attr, &Column)> = original.iter().map(|(attr, column)| (*attr, column)).collect();
        let mut other = cells(0);
        other[0] = Some("23".to_owned());
        table.parts[0].columns[0].1 = column(&other);
        assert_eq!(members(&table, &original, AttrSet::one(Attr(3)), &Control::default()).expect("done"), None);
    }
}
