use ahash::AHashMap;

use super::part_tuples::PartTuples;
use super::report::class;
use crate::control::{Cancelled, Control};
use crate::microdata::AttrSet;

/// Marks an attribute without a value.
pub(super) const NONE: u32 = u32::MAX;

/// State of a join: values of hidden attributes, and the buckets that match these values.
pub(super) type JoinState = (Vec<u32>, Vec<u64>);

/// Visible attributes of a part.
struct VisibleColumns {
    /// Tuples of the part, by their visible values.
    groups: Vec<(Vec<u32>, Vec<u32>)>,
    /// Index in `groups` of each combination of visible values.
    places: AHashMap<Vec<u32>, u32>,
    /// The attributes that the part shares with the parts before it.
    shared: AttrSet,
    /// Indexes in `groups`, by the values of the shared attributes.
    agreeing: AHashMap<Vec<u32>, Vec<u32>>,
}

impl VisibleColumns {
    fn new(part: &PartTuples, visible: AttrSet, shared: AttrSet) -> Self {
        let mut visible_columns =
            Self { groups: Vec::new(), places: AHashMap::new(), shared, agreeing: AHashMap::new() };
        for tuple in 0..part.tuples.len() as u32 {
            let next = visible_columns.groups.len() as u32;
            let values = part.within(tuple, visible);
            let place = *visible_columns.places.entry(values.clone()).or_insert(next);
            if place == next {
                visible_columns.agreeing.entry(part.within(tuple, shared)).or_default().push(place);
                visible_columns.groups.push((values, Vec::new()));
            }
            visible_columns.groups[place as usize].1.push(tuple);
        }
        visible_columns
    }
}

/// Join of the parts of a table.
pub(in crate::verifier) struct PartJoin {
    pub(in crate::verifier) parts: Vec<PartTuples>,
    /// One entry for each part.
    visible_columns: Vec<VisibleColumns>,
    hidden: AttrSet,
    /// All attributes have indexes below this.
    pub(super) width: usize,
    words: usize,
}

impl PartJoin {
    pub(in crate::verifier) fn new(parts: Vec<PartTuples>, hidden: AttrSet, words: usize) -> Self {
        let width = parts.iter().flat_map(|part| &part.attributes).map(|attr| attr.index() + 1).max().unwrap_or(0);
        let (mut before, mut visible_columns) = (AttrSet::EMPTY, Vec::new());
        for part in &parts {
            let visible = part.set().minus(hidden);
            visible_columns.push(VisibleColumns::new(part, visible, visible.intersection(before)));
            before = before.union(part.set());
        }
        Self { parts, visible_columns, hidden, width, words }
    }

    /// The visible values of a tuple, given by its tuples in the parts; `NONE` for other attributes.
    pub(in crate::verifier) fn visible_values(&self, tuple: &[u32]) -> Vec<u32> {
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

    /// The states that remain after the join with tuples of a part.
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

    /// Number of buckets that some state matches.
    pub(super) fn buckets(&self, states: &[JoinState]) -> u32 {
        (0..self.words).map(|at| states.iter().fold(0, |all, (_, left)| all | left[at]).count_ones()).sum()
    }

    /// The states of a tuple of visible values.
    pub(super) fn states(&self, values: &[u32]) -> Vec<JoinState> {
        let mut states = self.begin();
        for (at, (part, visible_columns)) in self.parts.iter().zip(&self.visible_columns).enumerate() {
            let visible = part.set().minus(self.hidden);
            let wanted: Vec<u32> = visible.iter().map(|attr| values[attr.index()]).collect();
            let tuples =
                visible_columns.places.get(&wanted).map_or(&[][..], |place| &visible_columns.groups[*place as usize].1);
            states = self.narrowed(at, &states, tuples);
        }
        states
    }

    /// The state without any part: no known value, and all buckets.
    fn begin(&self) -> Vec<JoinState> {
        vec![(vec![NONE; self.width], vec![u64::MAX; self.words])]
    }

    /// Number of tuples of visible values by their matching buckets; `None` when the steps run out.
    pub(in crate::verifier) fn counted(&self, steps: u64, control: &Control) -> Result<Option<[u64; 3]>, Cancelled> {
        let mut counting = TupleCounter { found: [0; 3], steps, joined: self, control };
        let counted = counting.extend(0, &mut vec![NONE; self.width], &self.begin())?;
        Ok(counted.then_some(counting.found))
    }

    /// Number of buckets that match a tuple of visible values.
    pub(in crate::verifier) fn matching(&self, values: &[u32]) -> u32 {
        self.buckets(&self.states(values))
    }
}

/// Enumerates every tuple once, part after part, while some bucket matches.
struct TupleCounter<'a> {
    found: [u64; 3],
    steps: u64,
    joined: &'a PartJoin,
    control: &'a Control,
}

impl TupleCounter<'_> {
    /// Continues with a part; false when the steps run out.
    fn extend(&mut self, at: usize, values: &mut Vec<u32>, states: &[JoinState]) -> Result<bool, Cancelled> {
        let joined = self.joined;
        let Some(part) = joined.parts.get(at) else {
            self.found[class(joined.buckets(states))] += 1;
            return Ok(true);
        };
        self.control.check()?;
        let visible_columns = &joined.visible_columns[at];
        let agreed: Vec<u32> = visible_columns.shared.iter().map(|attr| values[attr.index()]).collect();
        let Some(places) = visible_columns.agreeing.get(&agreed) else { return Ok(true) };
        let visible = part.set().minus(joined.hidden);
        for &place in places {
            let (of_part, tuples) = &visible_columns.groups[place as usize];
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
