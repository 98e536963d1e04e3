//! What a bucket of columns that share attributes must keep by itself.
//!
//! Whoever knows all attributes u but the sensitive one finds, for each choice of the columns with the sensitive attribute, the rows of
//! each that agree with u. Two ways to weigh a sensitive value s are reckoned with, and by neither may it have more than 1/l:
//!
//! 1. every combination of one row per column that agrees on what columns share is equally likely, so that s has the product of the
//!    counts `n_i(u, s)` (slicing, section 8);
//! 2. every row of a column belongs to one person: all ways to put the rows of the columns side by side that agree on what columns share
//!    are equally likely. Where the columns form a tree, each is matched with the one it hangs on among the rows that agree on what
//!    both have, independently of the others, so that `n_1 ... n_m / (n_2' ... n_m')` persons are expected to have u and s, with
//!    `n_i'` the rows that agree in what column i shares with those before it.
//!
//! The first alone does not suffice: of two columns a, s and b, s, let value 1 stand in twenty rows, two of them with u's a and two with u's
//! b, and value 2 in two rows that have both. The products are 4 and 4, but of the persons with u two have value 2, and 2/10 are
//! expected to have value 1.
//!
//! By the second, what is known of fewer attributes is a sum over u: as s has no more than 1/l of each summand, it has no more of the sum.
//! So whoever counts all worlds of the table, knowing any of its attributes, gives no value more than 1/l; that is why all
//! u are looked at that the columns allow, and not those of the table alone. Columns without the sensitive attribute hang on others
//! by what does not tell it, and are a factor of all values alike. Of columns that form no tree nothing of this holds, and they are refused;
//! a single sensitive column needs none of it, as its rows that agree in u can be exchanged whatever else stands in the table.
//!
//! Another table in which u's attributes stand together ties matchings that are independent here, so that nothing is guarding.

use super::margins::{BucketMargins, MarginCounts, rows_of};
use super::weights::{self, CountProduct, NaturalLog, UnreducedFraction, WorstShare};
use super::{HalfPredicate, JoinTooDenseError};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, branches};
use crate::publish::slicing::counts::FrequencyBound;

/// Allows the splits whose halves keep the bound alone.
pub(super) struct BucketwiseChecker<'a> {
    margins: BucketMargins<'a>,
    choices: Vec<ColumnOrder>,
    bound: FrequencyBound,
    control: &'a Control,
}

/// Some of the columns with the sensitive attribute, in an order in which each hangs on one before it.
struct ColumnOrder {
    attributes: AttrSet,
    steps: Vec<NextColumn>,
}

/// The next column of a choice.
struct NextColumn {
    column: usize,
    /// What it shares with those before it; nothing for the first.
    shared: Option<SharedValues>,
}

struct SharedValues {
    /// The step of a column that has it all.
    on: usize,
    /// Its margin, the sensitive attribute among it.
    margin: usize,
    /// For each value of that column, and of this one, the value of the margin.
    above: Vec<u32>,
    here: Vec<u32>,
}

/// What was found of all that is known.
struct KnownShares {
    broken: bool,
    /// The largest share, where it is asked for.
    worst: Option<WorstShare>,
    steps: u64,
}

/// A sensitive value: the product of its rows, and what it is divided by.
type WeighedValue = (u32, u128, u128);

impl<'a> BucketwiseChecker<'a> {
    /// Of columns that form a tree, as every choice of the sensitive ones among them does.
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

    /// The largest share that rows show as one bucket, where they do not keep the bound.
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

    fn holds(&self, rows: &[u32]) -> bool {
        let counts = self.margins.count(rows);
        let mut found = KnownShares { broken: false, worst: None, steps: 0 };
        // what would take too long is not allowed; halves take no longer than the whole
        self.choices.iter().all(|choice| self.look(choice, &counts, &mut found).is_ok() && !found.broken)
    }

    /// Looks at all that can be known of the columns of a choice, up to the first that breaks the bound where no share is asked for.
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
        // both ways are one where nothing is divided
        let divided = weighed.iter().any(|(.., over)| *over > 1);
        for way in if divided { &[false, true][..] } else { &[false] } {
            let (mut floats, exactly) =
                (made::<NaturalLog>(weighed, *way), || made::<UnreducedFraction>(weighed, *way));
            found.broken |= !weights::holds(&self.bound, &mut floats, exactly);
            if let Some(worst) = &mut found.worst {
                worst.see(&self.bound, attributes, &mut floats, exactly);
            }
        }
    }
}

fn made<W: CountProduct>(weighed: &[WeighedValue], divided: bool) -> Vec<(u32, W)> {
    let weight = |&(value, times, over): &WeighedValue| {
        let mut weight = W::one();
        weight.times(times);
        if divided {
            weight.over(over);
        }
        (value, weight)
    };
    weighed.iter().map(weight).collect()
}

/// All that can be known of the columns of a choice in a bucket.
struct KnownWalk<'w> {
    judge: &'w BucketwiseChecker<'w>,
    choice: &'w ColumnOrder,
    counts: &'w MarginCounts,
    /// Per step: what its values have of what is shared, rising, each with the place of the value.
    places: Vec<Vec<(u32, u32)>>,
}

impl KnownWalk<'_> {
    /// Goes on to each value of the next column that agrees with those `picked`, whose rows weigh `weighed`.
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
                let (value, beside) = counted.at(place);
                let first: Vec<WeighedValue> = beside.iter().map(|&(of, rows)| (of, u128::from(rows), 1)).collect();
                self.go(picked, value, &first, found)?;
                if found.is_enough() {
                    break;
                }
            }
            return Ok(());
        };
        let wanted = shared.above[picked[shared.on] as usize];
        let agreeing = self.counts[shared.margin].beside(wanted);
        let places = &self.places[picked.len()];
        let begin = places.partition_point(|(of, _)| *of < wanted);
        for &(_, place) in places[begin..].iter().take_while(|(of, _)| *of == wanted) {
            let (value, beside) = counted.at(place as usize);
            // rows that have it in this column agree with it in what is shared: there are some
            let with = |&(of, times, over): &WeighedValue| {
                let rows = rows_of(beside, of);
                (rows > 0).then(|| (of, times * u128::from(rows), over * u128::from(rows_of(agreeing, of))))
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
        if found.steps > JoinTooDenseError::LIMIT
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
    /// Whether nothing more is asked for.
    const fn is_enough(&self) -> bool {
        self.broken && self.worst.is_none()
    }
}

impl HalfPredicate for BucketwiseChecker<'_> {
    fn allows(&mut self, _: u32, left: &[u32], right: &[u32]) -> bool {
        self.holds(left) && self.holds(right)
    }
}
