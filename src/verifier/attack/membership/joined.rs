//! The parts of a table put together: tuples of all of them that agree on what parts share, and the buckets that match these.

use ahash::AHashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Column};
use crate::verifier::definition::join_tree::tree;
use crate::verifier::external::table::ExternalPart;

/// So many tuples are drawn.
const SAMPLED_TUPLES: u32 = 20_000;

/// Why tuples were not looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MembershipError {
    /// It was told to stop.
    Cancelled,
    /// The table has too many rows in too many buckets.
    TooMany {
        /// The most words that may be held.
        limit: u64,
        /// Those that would be.
        found: u64,
    },
    /// Parts share attributes in a circle: there are too many tuples to be counted, and none can be drawn.
    Circle,
}

impl From<Cancelled> for MembershipError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A number of tuples, or an estimate of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TupleEstimate {
    /// How many.
    pub value: f64,
    /// The standard error of an estimate; 0 of a count.
    pub standard_error: f64,
    /// Whether they were counted.
    pub exact: bool,
}

/// Tuples by how many buckets match them: at most 10, at most 20, and more.
#[derive(Clone, PartialEq, Debug)]
pub struct MembershipReport {
    /// Tuples of all attributes that some bucket matches and no row is.
    pub fake_full: TupleEstimate,
    /// The same of the attributes that are not protected.
    pub fake_qi: TupleEstimate,
    /// Rows of the original, by buckets that match all of their attributes.
    pub rows: [u64; 3],
    /// Different rows of the original.
    pub originals: [u64; 3],
    /// Tuples that no row is.
    pub fakes: [TupleEstimate; 3],
}

pub(in crate::verifier) fn class(buckets: u32) -> usize {
    match buckets {
        0..=10 => 0,
        11..=20 => 1,
        _ => 2,
    }
}

/// A number of tuples of which `originals` are rows.
pub(in crate::verifier) fn less(tuples: TupleEstimate, originals: u64) -> TupleEstimate {
    TupleEstimate { value: (tuples.value - originals as f64).max(0.0), ..tuples }
}

/// The tuples of a part, each with the buckets that have it.
pub(in crate::verifier) struct PartTuples {
    numbers: AHashMap<Vec<u32>, u32>,
    attributes: Vec<Attr>,
    /// The tuples, by their numbers.
    tuples: Vec<Vec<u32>>,
    /// A bit for each bucket, tuple after tuple.
    bits: Vec<u64>,
    /// The tuples of each bucket.
    of_bucket: Vec<Vec<u32>>,
}

/// Parts in the order in which they are looked at: the fewest tuples first, but such as share attributes with those before them.
pub(in crate::verifier) fn in_turn(mut left: Vec<PartTuples>) -> Vec<PartTuples> {
    let mut parts: Vec<PartTuples> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let shares = |part: &PartTuples| parts.iter().any(|before| before.set().meets(part.set()));
        let next = (0..left.len()).min_by_key(|&at| (!shares(&left[at]), left[at].numbers.len())).unwrap_or(0);
        parts.push(left.remove(next));
    }
    parts
}

impl PartTuples {
    /// Tuples in the codes of the original; `None` where a value is none of the original's.
    pub(in crate::verifier) fn new(
        part: &ExternalPart,
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
            tuples: Vec::new(),
            bits: Vec::new(),
            of_bucket: vec![Vec::new(); labels.len()],
        };
        for row in 0..part.rows {
            let tuple: Vec<u32> =
                columns.iter().map(|(_, column, known)| known[column.codes.get(row) as usize]).collect();
            let next = read.tuples.len() as u32;
            let number = *read.numbers.entry(tuple).or_insert_with_key(|tuple| {
                read.tuples.push(tuple.clone());
                next
            });
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

    fn set(&self) -> AttrSet {
        self.attributes.iter().copied().collect()
    }

    /// What a tuple has of some attributes, these rising.
    fn within(&self, tuple: u32, of: AttrSet) -> Vec<u32> {
        let place = |attr: Attr| self.attributes.iter().position(|known| *known == attr);
        of.iter().filter_map(|attr| Some(self.tuples[tuple as usize][place(attr)?])).collect()
    }

    pub(in crate::verifier) fn number(&self, original: &[(Attr, &Column)], row: usize) -> Option<u32> {
        let code = |attr: &Attr| original.iter().find(|(of, _)| of == attr).map(|(_, column)| column.codes.get(row));
        self.numbers.get(&self.attributes.iter().map(code).collect::<Option<Vec<u32>>>()?).copied()
    }

    fn buckets(&self, tuple: u32, words: usize) -> &[u64] {
        &self.bits[tuple as usize * words..][..words]
    }
}

/// No value yet.
const NONE: u32 = u32::MAX;

/// What was found so far of a tuple: values of hidden attributes, and the buckets that match with these.
type JoinState = (Vec<u32>, Vec<u64>);

/// What a part shows, hidden attributes apart.
struct VisibleColumns {
    /// Per value that it shows, the tuples of the part that do.
    groups: Vec<(Vec<u32>, Vec<u32>)>,
    /// The places of values among these.
    places: AHashMap<Vec<u32>, u32>,
    /// The attributes of which it agrees with the parts before it.
    shared: AttrSet,
    /// The places of all values that agree in these.
    agreeing: AHashMap<Vec<u32>, Vec<u32>>,
}

impl VisibleColumns {
    fn new(part: &PartTuples, visible: AttrSet, shared: AttrSet) -> Self {
        let mut shown = Self { groups: Vec::new(), places: AHashMap::new(), shared, agreeing: AHashMap::new() };
        for tuple in 0..part.tuples.len() as u32 {
            let next = shown.groups.len() as u32;
            let values = part.within(tuple, visible);
            let place = *shown.places.entry(values.clone()).or_insert(next);
            if place == next {
                shown.agreeing.entry(part.within(tuple, shared)).or_default().push(place);
                shown.groups.push((values, Vec::new()));
            }
            shown.groups[place as usize].1.push(tuple);
        }
        shown
    }
}

/// Parts whose tuples are put together.
pub(in crate::verifier) struct PartJoin {
    pub(in crate::verifier) parts: Vec<PartTuples>,
    /// Per part.
    shown: Vec<VisibleColumns>,
    hidden: AttrSet,
    /// Attributes have numbers below this.
    width: usize,
    words: usize,
}

impl PartJoin {
    pub(in crate::verifier) fn new(parts: Vec<PartTuples>, hidden: AttrSet, words: usize) -> Self {
        let width = parts.iter().flat_map(|part| &part.attributes).map(|attr| attr.index() + 1).max().unwrap_or(0);
        let (mut before, mut shown) = (AttrSet::EMPTY, Vec::new());
        for part in &parts {
            let visible = part.set().minus(hidden);
            shown.push(VisibleColumns::new(part, visible, visible.intersection(before)));
            before = before.union(part.set());
        }
        Self { parts, shown, hidden, width, words }
    }

    /// The shown values of a tuple, given by its tuples in the parts; `NONE` of other attributes.
    pub(in crate::verifier) fn told(&self, tuple: &[u32]) -> Vec<u32> {
        let mut values = vec![NONE; self.width];
        for (part, &number) in self.parts.iter().zip(tuple) {
            for (attr, value) in part.attributes.iter().zip(&part.tuples[number as usize]) {
                if !self.hidden.contains(*attr) {
                    values[attr.index()] = *value;
                }
            }
        }
        values
    }

    /// What is left of states with what a part shows.
    fn narrowed(&self, at: usize, states: &[JoinState], tuples: &[u32]) -> Vec<JoinState> {
        let part = &self.parts[at];
        let mut narrowed = Vec::new();
        for (known, left) in states {
            for &tuple in tuples {
                let both: Vec<u64> = left.iter().zip(part.buckets(tuple, self.words)).map(|(a, b)| a & b).collect();
                if both.iter().all(|word| *word == 0) {
                    continue;
                }
                let mut known = known.clone();
                let values = part.attributes.iter().zip(&part.tuples[tuple as usize]);
                let mut hidden = values.filter(|(attr, _)| self.hidden.contains(**attr));
                let agrees = hidden.all(|(attr, value)| {
                    let before = std::mem::replace(&mut known[attr.index()], *value);
                    before == NONE || before == *value
                });
                if agrees {
                    narrowed.push((known, both));
                }
            }
        }
        narrowed
    }

    /// How many buckets have a tuple in some state.
    fn buckets(&self, states: &[JoinState]) -> u32 {
        (0..self.words).map(|at| states.iter().fold(0, |all, (_, left)| all | left[at]).count_ones()).sum()
    }

    /// The states in which a tuple of shown values stands in buckets.
    fn states(&self, values: &[u32]) -> Vec<JoinState> {
        let mut states = self.begin();
        for (at, (part, shown)) in self.parts.iter().zip(&self.shown).enumerate() {
            let visible = part.set().minus(self.hidden);
            let wanted: Vec<u32> = visible.iter().map(|attr| values[attr.index()]).collect();
            let tuples = shown.places.get(&wanted).map_or(&[][..], |place| &shown.groups[*place as usize].1);
            states = self.narrowed(at, &states, tuples);
        }
        states
    }

    /// Nothing known, and all buckets.
    fn begin(&self) -> Vec<JoinState> {
        vec![(vec![NONE; self.width], vec![u64::MAX; self.words])]
    }

    /// Every tuple of shown values once, by how many buckets match it; `None` when there are too many steps.
    pub(in crate::verifier) fn counted(&self, steps: u64, control: &Control) -> Result<Option<[u64; 3]>, Cancelled> {
        let mut counting = TupleCounter { found: [0; 3], steps, joined: self, control };
        let counted = counting.extend(0, &mut vec![NONE; self.width], &self.begin())?;
        Ok(counted.then_some(counting.found))
    }

    /// How many buckets match a tuple of shown values.
    pub(in crate::verifier) fn matching(&self, values: &[u32]) -> u32 {
        self.buckets(&self.states(values))
    }
}

/// Every tuple once: part after part, as long as some bucket is left.
struct TupleCounter<'a> {
    found: [u64; 3],
    steps: u64,
    joined: &'a PartJoin,
    control: &'a Control,
}

impl TupleCounter<'_> {
    /// Goes on with a part; false when steps run out.
    fn extend(&mut self, at: usize, values: &mut Vec<u32>, states: &[JoinState]) -> Result<bool, Cancelled> {
        let joined = self.joined;
        let Some(part) = joined.parts.get(at) else {
            self.found[class(joined.buckets(states))] += 1;
            return Ok(true);
        };
        self.control.check()?;
        let shown = &joined.shown[at];
        let agreed: Vec<u32> = shown.shared.iter().map(|attr| values[attr.index()]).collect();
        let Some(places) = shown.agreeing.get(&agreed) else { return Ok(true) };
        let visible = part.set().minus(joined.hidden);
        for &place in places {
            let (of_part, tuples) = &shown.groups[place as usize];
            let Some(steps) = self.steps.checked_sub((tuples.len() * states.len() * joined.words) as u64) else {
                return Ok(false);
            };
            self.steps = steps;
            let narrowed = joined.narrowed(at, states, tuples);
            if narrowed.is_empty() {
                continue;
            }
            visible.iter().zip(of_part).for_each(|(attr, value)| values[attr.index()] = *value);
            if !self.extend(at + 1, values, &narrowed)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The tuples of a part in a bucket, by what they have of what is shared with those before.
struct DrawnTuples {
    /// Rising by what is shared, each with its tuples and, summed up, how many rows of the join each stands for.
    of_shared: AHashMap<Vec<u32>, Vec<(u32, f64)>>,
}

/// The number of tuples in the union of all buckets, estimated (Karp and Luby): a bucket by the number of combinations of its parts that
/// agree, one of these, and the reciprocal of how many such combinations there are, of any bucket, that show the same. How many combinations
/// agree is summed up along the tree that the parts form, from its ends.
pub(in crate::verifier) fn drawn(
    joined: &PartJoin,
    buckets: usize,
    control: &Control,
) -> Result<[TupleEstimate; 3], MembershipError> {
    let sets: Vec<AttrSet> = joined.parts.iter().map(PartTuples::set).collect();
    let apart = (0..sets.len()).all(|a| (0..a).all(|b| !sets[a].meets(sets[b])));
    // parts that share nothing stay in their order
    let order = match apart {
        true => (0..sets.len()).map(|at| (at, AttrSet::EMPTY)).collect(),
        false => tree(&sets).ok_or(MembershipError::Circle)?,
    };
    let mut all_drawn: Vec<Vec<DrawnTuples>> = Vec::with_capacity(buckets);
    let mut before = 0.0;
    let mut sums: Vec<f64> = Vec::with_capacity(buckets);
    for bucket in 0..buckets {
        control.check()?;
        let (of_parts, size) = combinations(joined, &order, bucket);
        before += size;
        sums.push(before);
        all_drawn.push(of_parts);
    }
    let all = before;
    let mut random = SplitMix(0x5eed);
    let (mut sum, mut squares) = ([0.0; 3], [0.0; 3]);
    for draw in 0..SAMPLED_TUPLES {
        if draw % 256 == 0 {
            control.check()?;
        }
        let point = random.share() * all;
        let bucket = sums.partition_point(|sum| *sum <= point).min(buckets.saturating_sub(1));
        let mut values = vec![NONE; joined.width];
        for (&(at, shared), drawn) in order.iter().zip(&all_drawn[bucket]) {
            let wanted: Vec<u32> = shared.iter().map(|attr| values[attr.index()]).collect();
            // what was drawn before has rows that agree with it
            let Some(tuples) = drawn.of_shared.get(&wanted) else { continue };
            let point = random.share() * tuples.last().map_or(0.0, |(_, sum)| *sum);
            let chosen = tuples.partition_point(|(_, sum)| *sum <= point).min(tuples.len() - 1);
            let part = &joined.parts[at];
            for (attr, value) in part.attributes.iter().zip(&part.tuples[tuples[chosen].0 as usize]) {
                values[attr.index()] = *value;
            }
        }
        let states = joined.states(&values);
        let found: u32 = states.iter().flat_map(|(_, left)| left).map(|word| word.count_ones()).sum();
        let share = 1.0 / f64::from(found.max(1));
        let class = class(joined.buckets(&states));
        sum[class] += share;
        squares[class] += share * share;
    }
    let draws = f64::from(SAMPLED_TUPLES);
    Ok([0, 1, 2].map(|class| {
        let mean: f64 = sum[class] / draws;
        let variance: f64 = (squares[class] / draws - mean * mean).max(0.0);
        TupleEstimate { value: all * mean, standard_error: all * (variance / draws).sqrt(), exact: false }
    }))
}

/// The tuples of a bucket to be drawn from, part by part in their order, and how many combinations agree.
fn combinations(joined: &PartJoin, order: &[(usize, AttrSet)], bucket: usize) -> (Vec<DrawnTuples>, f64) {
    // by the place of a part in the order: how many combinations of it and what hangs on it have what is shared
    let mut hanging: Vec<(usize, AttrSet, AHashMap<Vec<u32>, f64>)> = Vec::new();
    let mut of_parts: Vec<DrawnTuples> = Vec::new();
    let mut size = 1.0;
    for (place, &(at, shared)) in order.iter().enumerate().rev() {
        let part = &joined.parts[at];
        let (mut of_shared, mut sums) = (AHashMap::<Vec<u32>, Vec<(u32, f64)>>::new(), AHashMap::new());
        for &tuple in &part.of_bucket[bucket] {
            let beside = hanging.iter().filter(|(on, ..)| *on == place);
            let weight: f64 =
                beside.map(|(_, of, sums)| sums.get(&part.within(tuple, *of)).copied().unwrap_or(0.0)).product();
            let key = part.within(tuple, shared);
            let sum = sums.entry(key.clone()).or_insert(0.0);
            *sum += weight;
            of_shared.entry(key).or_default().push((tuple, *sum));
        }
        of_parts.push(DrawnTuples { of_shared });
        // what it shares stands in one before it; what shares nothing with these is free
        let on = order[..place].iter().position(|(before, _)| shared.is_subset(joined.parts[*before].set()));
        match on.filter(|_| !shared.is_empty()) {
            Some(on) => hanging.push((on, shared, sums)),
            None => size *= sums.values().sum::<f64>(),
        }
    }
    of_parts.reverse();
    (of_parts, size)
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
