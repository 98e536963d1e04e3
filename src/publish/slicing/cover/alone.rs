//! Bound on a single bucket of columns that share attributes.
//!
//! An adversary who knows all attributes u but the sensitive one finds the rows of each column that agree with u. This is done
//! for each choice of the columns with the sensitive attribute. Each sensitive value s has two weights, and neither may
//! give it more than 1/l:
//!
//! 1. Every combination of one row per column that agrees on shared attributes is equally likely. Then s has the product of the
//!    counts `n_i(u, s)`.
//! 2. Every row of a column belongs to one data subject, and all matchings of rows that agree on shared attributes are equally
//!    likely. Columns that form a tree are matched independently with their parents. Then `n_1 ... n_m / (n_2' ... n_m')` data
//!    subjects are expected to have u and s, with `n_i'` rows that agree on the attributes that column i shares with earlier ones.
//!
//! The first weighting does not suffice. Take two columns (a, s) and (b, s). Value 1 has twenty rows, two of them with the a of u
//! and two with its b. Value 2 has two rows with both. Both products are 4, but two data subjects with u have value 2, and 2/10
//! are expected to have value 1.
//!
//! By the second weighting, a smaller known set is a sum over u: a share of at most 1/l in each summand is one in the sum. So an
//! adversary who counts all possible worlds, and knows any attributes, gives no value more than 1/l. This is why the check
//! examines all u that the columns allow, not only those of the table. A column without the sensitive attribute is a factor of
//! all values alike. Columns that form no tree have no such bound and are refused. A single sensitive column needs no tree, as
//! its rows that agree on u are exchangeable.
//!
//! Another table that holds several attributes of u correlates matchings that are independent here, so that the table is never
//! guarding.
//!
//! See `docs/spec/overlapping-slicing.md#guarantee` and `#proof`.

use super::dense::JoinTooDenseError;
use super::margins::{BucketMargins, MarginCounts, rows_of};
use super::weights::{self, CountProduct, ScaledFloat, UnreducedFraction, ValueWeight, WorstShare};

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, branches};
use crate::publish::slicing::counts::FrequencyBound;

/// Predicate of splits whose halves keep the bound by themselves.
pub(super) struct BucketwiseChecker<'a> {
    margins: BucketMargins<'a>,
    choices: Vec<ColumnOrder>,
    bound: FrequencyBound,
    control: &'a Control,
}

/// A choice of the columns with the sensitive attribute, each after its parent in the join tree.
struct ColumnOrder {
    attributes: AttrSet,
    steps: Vec<NextColumn>,
}

/// A column of a choice.
struct NextColumn {
    column: usize,
    /// Attributes shared with the parent; `None` for the root.
    shared: Option<SharedValues>,
}

struct SharedValues {
    /// Step of the parent.
    on: usize,
    /// Margin of the shared attributes, the sensitive one included.
    margin: usize,
    /// Value of the margin, by value of the parent and by value of this column.
    above: Vec<u32>,
    here: Vec<u32>,
}

/// Result of the check so far.
struct KnownShares {
    broken: bool,
    /// Largest share, if it is wanted.
    worst: Option<WorstShare>,
    steps: u64,
}

/// A sensitive value: the product of its counts, and its divisor.
struct WeighedValue {
    code: u32,
    times: u128,
    over: u128,
}

impl<'a> BucketwiseChecker<'a> {
    /// A checker of columns that form a tree with every choice of the sensitive ones.
    pub(super) fn new(
        mut margins: BucketMargins<'a>,
        sensitive: &[AttrSet],
        bound: FrequencyBound,
        control: &'a Control,
    ) -> Result<Self, Cancelled> {
        let mut choices = Vec::new();
        for some in super::choices(sensitive) {
            let order = branches(&some).unwrap_or_default();
            let mut steps: Vec<NextColumn> = Vec::with_capacity(order.len());
            for (at, branch) in order.iter().enumerate() {
                let column = margins.add(some[branch.set], control)?;
                let shared = match order[..at].iter().position(|before| before.set == branch.on) {
                    None => None,
                    Some(on) => {
                        let margin = margins.add(branch.shared, control)?;
                        let (above, here) = (margins.within(steps[on].column, margin), margins.within(column, margin));
                        Some(SharedValues { on, margin, above, here })
                    }
                };
                steps.push(NextColumn { column, shared });
            }
            choices
                .push(ColumnOrder { attributes: some.iter().fold(AttrSet::EMPTY, |all, set| all.union(*set)), steps });
        }
        Ok(Self { margins, choices, bound, control })
    }

    /// The largest share in the bucket of `rows`; `None` if it keeps the bound.
    pub(super) fn whole(&self, rows: &[u32]) -> Result<Option<WorstShare>, JoinTooDenseError> {
        let counts = self.margins.count(rows);
        let mut found = KnownShares { broken: false, worst: Some(WorstShare::none()), steps: 0 };
        for choice in &self.choices {
            let looked = self.look(choice, &counts, &mut found);
            if !found.broken {
                looked?;
            }
        }
        Ok(found.worst.filter(|_| found.broken))
    }

    /// Whether the bucket of `rows` keeps the bound.
    pub(super) fn holds(&self, rows: &[u32]) -> bool {
        let counts = self.margins.count(rows);
        let mut found = KnownShares { broken: false, worst: None, steps: 0 };
        // a half that takes too many steps is refused; it never takes more than the whole
        self.choices.iter().all(|choice| self.look(choice, &counts, &mut found).is_ok() && !found.broken)
    }

    /// Checks all known values that a choice allows. Stops at the first violation if the largest share is not wanted.
    fn look(
        &self,
        choice: &ColumnOrder,
        counts: &MarginCounts,
        found: &mut KnownShares,
    ) -> Result<(), JoinTooDenseError> {
        let by_shared = |step: &NextColumn| -> Vec<(u32, u32)> {
            let Some(shared) = &step.shared else { return Vec::new() };
            let counted = &counts[step.column];
            let places = (0..counted.len()).map(|place| (shared.here[counted.at(place).0 as usize], place as u32));
            let mut places: Vec<(u32, u32)> = places.collect();
            places.sort_unstable();
            places
        };
        let places: Vec<Vec<(u32, u32)>> = choice.steps.iter().map(by_shared).collect();
        let walk = KnownWalk { judge: self, choice, counts, places };
        walk.extend(&mut Vec::with_capacity(choice.steps.len()), &[], found)
    }

    fn keeps(&self, weighed: &[WeighedValue], attributes: AttrSet, found: &mut KnownShares) {
        // without divisors both weightings are equal
        let divided = weighed.iter().any(|value| value.over > 1);
        for &divided in if divided { &[false, true][..] } else { &[false] } {
            let (mut floats, exactly) =
                (made::<ScaledFloat>(weighed, divided), || made::<UnreducedFraction>(weighed, divided));
            found.broken |= !weights::holds(&self.bound, &mut floats, exactly);
            if let Some(worst) = &mut found.worst {
                worst.see(&self.bound, attributes, &mut floats, exactly);
            }
        }
    }
}

fn made<W: CountProduct>(weighed: &[WeighedValue], divided: bool) -> Vec<ValueWeight<W>> {
    let weight = |value: &WeighedValue| {
        let mut weight = W::one();
        weight.times(value.times);
        if divided {
            weight.over(value.over);
        }
        ValueWeight { code: value.code, weight }
    };
    weighed.iter().map(weight).collect()
}

/// Walk over all known values that a choice of columns allows in a bucket.
struct KnownWalk<'w> {
    judge: &'w BucketwiseChecker<'w>,
    choice: &'w ColumnOrder,
    counts: &'w MarginCounts,
    /// By step: pairs of a shared value and the position of a value of the column, rising.
    places: Vec<Vec<(u32, u32)>>,
}

impl KnownWalk<'_> {
    /// Extends the walk by each value of the next column that agrees with those `picked`. Their rows weigh `weighed`.
    fn extend(
        &self,
        picked: &mut Vec<u32>,
        weighed: &[WeighedValue],
        found: &mut KnownShares,
    ) -> Result<(), JoinTooDenseError> {
        let Some(step) = self.choice.steps.get(picked.len()) else {
            self.judge.keeps(weighed, self.choice.attributes, found);
            return Ok(());
        };
        let counted = &self.counts[step.column];
        let Some(shared) = &step.shared else {
            for place in 0..counted.len() {
                let (value, paired) = counted.at(place);
                let weighed = |&(code, rows): &(u32, u32)| WeighedValue { code, times: u128::from(rows), over: 1 };
                let first: Vec<WeighedValue> = paired.iter().map(weighed).collect();
                self.go(picked, value, &first, found)?;
                if found.is_enough() {
                    break;
                }
            }
            return Ok(());
        };
        let wanted = shared.above[picked[shared.on] as usize];
        let agreeing = self.counts[shared.margin].paired(wanted);
        let places = &self.places[picked.len()];
        let begin = places.partition_point(|(of, _)| *of < wanted);
        for &(_, place) in places[begin..].iter().take_while(|(of, _)| *of == wanted) {
            let (value, paired) = counted.at(place as usize);
            // a row that agrees in this column also agrees on the shared attributes, so that the divisor is positive
            let with = |&WeighedValue { code, times, over }: &WeighedValue| {
                let rows = u128::from(rows_of(paired, code));
                let over = over * u128::from(rows_of(agreeing, code));
                (rows > 0).then_some(WeighedValue { code, times: times * rows, over })
            };
            let next: Vec<WeighedValue> = weighed.iter().filter_map(with).collect();
            self.go(picked, value, &next, found)?;
            if found.is_enough() {
                break;
            }
        }
        Ok(())
    }

    fn go(
        &self,
        picked: &mut Vec<u32>,
        value: u32,
        weighed: &[WeighedValue],
        found: &mut KnownShares,
    ) -> Result<(), JoinTooDenseError> {
        found.steps += 1;
        if found.steps > self.judge.margins.max_combinations()
            || found.steps.is_multiple_of(1 << 14) && self.judge.control.check().is_err()
        {
            return Err(JoinTooDenseError);
        }
        if weighed.is_empty() {
            return Ok(());
        }
        picked.push(value);
        let gone = self.extend(picked, weighed, found);
        picked.pop();
        gone
    }
}

impl KnownShares {
    /// Whether the check is decided.
    const fn is_enough(&self) -> bool {
        self.broken && self.worst.is_none()
    }
}
