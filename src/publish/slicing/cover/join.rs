//! Size of the natural join of a bucket's columns: combinations of one row per column that agree on shared attributes.

use smallvec::SmallVec;

use super::dense::JoinTooDenseError;
use super::margins::{BucketMargins, MarginCount};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};

/// Join plan of the columns of a table.
pub(super) struct NaturalJoin(Vec<JoinComponent>);

/// Connected columns; components share no attribute with each other.
enum JoinComponent {
    /// One column, whose size is the number of rows.
    Alone,
    /// Several columns in join order.
    Several(Vec<ColumnJoin>),
}

/// A column of a join.
struct ColumnJoin {
    /// Margin of the attributes that it shares with other columns.
    margin: usize,
    /// The attributes so far that later columns need.
    asked: Vec<Attr>,
}

impl NaturalJoin {
    /// A join plan of columns, given by their margins. Only shared attributes of each column are counted.
    pub(super) fn new(
        margins: &mut BucketMargins<'_>,
        columns: &[usize],
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut left: Vec<usize> = columns.to_vec();
        let mut parts = Vec::new();
        while let Some(first) = left.pop() {
            let (mut part, mut attributes) = (vec![first], margins.attributes(first));
            while let Some(next) = left.iter().position(|&column| margins.attributes(column).meets(attributes)) {
                let column = left.remove(next);
                attributes = attributes.union(margins.attributes(column));
                part.push(column);
            }
            if part.len() == 1 {
                parts.push(JoinComponent::Alone);
                continue;
            }
            let mut shared = Vec::with_capacity(part.len());
            for &column in &part {
                let others = part.iter().filter(|other| **other != column).map(|&other| margins.attributes(other));
                let others = others.fold(AttrSet::EMPTY, AttrSet::union);
                shared.push(margins.add(margins.attributes(column).intersection(others), control)?);
            }
            let part = shared;
            let all = |of: &[usize]| of.iter().fold(AttrSet::EMPTY, |all, &of| all.union(margins.attributes(of)));
            let (before, asked) = (|to: usize| all(&part[..to]), |from: usize| all(&part[from..]));
            let step = |at: usize| ColumnJoin {
                margin: part[at],
                asked: before(at + 1).intersection(asked(at + 1)).iter().collect(),
            };
            parts.push(JoinComponent::Several((0..part.len()).map(step).collect()));
        }
        Ok(Self(parts))
    }

    /// Margins that the plan counts.
    pub(super) fn margins(&self) -> impl Iterator<Item = usize> {
        let of_part = |part: &JoinComponent| match part {
            JoinComponent::Alone => Vec::new(),
            JoinComponent::Several(steps) => steps.iter().map(|step| step.margin).collect(),
        };
        self.0.iter().flat_map(of_part)
    }

    /// Sizes of the components in a bucket of `rows` rows. Their product is the size of the join.
    pub(super) fn sizes<'c>(
        &self,
        margins: &BucketMargins<'_>,
        counts: impl Fn(usize) -> &'c MarginCount,
        rows: u64,
    ) -> Result<Vec<u128>, JoinTooDenseError> {
        let size = |part: &JoinComponent| match part {
            JoinComponent::Alone => Ok(u128::from(rows)),
            JoinComponent::Several(steps) => several(margins, &counts, steps),
        };
        self.0.iter().map(size).collect()
    }
}

/// Codes of the attributes that later steps need.
type Key = SmallVec<[u32; 4]>;

/// Combinations of earlier columns: what they share with the next column, their key and their number.
type Combinations = Vec<(Key, Key, u128)>;

/// Joins column by column, counting each combination of values that later steps need.
fn several<'c>(
    margins: &BucketMargins<'_>,
    counts: &impl Fn(usize) -> &'c MarginCount,
    steps: &[ColumnJoin],
) -> Result<u128, JoinTooDenseError> {
    let mut known: Vec<Attr> = Vec::new();
    let mut sums: Vec<(Key, u128)> = vec![(Key::new(), 1)];
    let mut steps_taken = 0;
    for ColumnJoin { margin, asked } in steps {
        let attributes = margins.attributes(*margin);
        let shared: SmallVec<[usize; 4]> = (0..known.len()).filter(|&at| attributes.contains(known[at])).collect();
        let of_shared = |(key, sum): (Key, u128)| (shared.iter().map(|&at| key[at]).collect(), key, sum);
        let mut by_shared: Combinations = sums.into_iter().map(of_shared).collect();
        by_shared.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut next: Vec<(Key, u128)> = Vec::new();
        let mut wanted = Key::new();
        let counted = counts(*margin);
        for place in 0..counted.len() {
            let (value, paired) = counted.at(place);
            for &(sensitive, rows) in paired {
                let code = |attr: Attr| margins.code(*margin, value, attr).unwrap_or(sensitive);
                wanted.clear();
                wanted.extend(shared.iter().map(|&at| code(known[at])));
                let begin = by_shared.partition_point(|(of, ..)| *of < wanted);
                for (_, key, sum) in by_shared[begin..].iter().take_while(|(of, ..)| *of == wanted) {
                    steps_taken += 1;
                    if steps_taken > margins.max_combinations() {
                        return Err(JoinTooDenseError);
                    }
                    let of = |attr: &Attr| match known.iter().position(|known| known == attr) {
                        Some(at) => key[at],
                        None => code(*attr),
                    };
                    let more = sum.checked_mul(u128::from(rows)).ok_or(JoinTooDenseError)?;
                    next.push((asked.iter().map(of).collect(), more));
                }
            }
            if next.len() > 2 * MIN_ADDED_UP && place % MIN_ADDED_UP == 0 {
                add_up(&mut next)?;
            }
        }
        add_up(&mut next)?;
        (known, sums) = (asked.clone(), next);
    }
    // no attribute is needed after the last step
    sums.iter().try_fold(0_u128, |all, (_, sum)| all.checked_add(*sum)).ok_or(JoinTooDenseError)
}

/// Number of values between sums, so that equal combinations do not fill the memory.
const MIN_ADDED_UP: usize = 1 << 12;

/// Adds up the numbers of equal keys.
fn add_up(sums: &mut Vec<(Key, u128)>) -> Result<(), JoinTooDenseError> {
    sums.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut overflown = false;
    sums.dedup_by(|next, first| {
        let same = next.0 == first.0;
        if same {
            match first.1.checked_add(next.1) {
                Some(sum) => first.1 = sum,
                None => overflown = true,
            }
        }
        same
    });
    if overflown { Err(JoinTooDenseError) } else { Ok(()) }
}
