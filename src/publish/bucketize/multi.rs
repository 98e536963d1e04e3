//! Buckets of many sizes: two, and each half again (the paper's MultiSizeBucketing).

use super::share::{Share, kinds};
use super::sizes::{Class, Pruning, Two, loss, two_sizes};
use crate::control::{Cancelled, Control};

/// Buckets of one size, and how often each value stands in them together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filled {
    /// The size and the number of buckets.
    pub class: Class,
    /// Per code, its rows in these buckets.
    pub counts: Vec<u64>,
}

/// Divides the values, each so often as it occurs, among the buckets of two sizes that are valid for them; takes values in the given
/// order where some have to move.
#[must_use]
pub(super) fn divide(counts: &[u64], shares: &[Share], two: Two, order: &[usize]) -> (Vec<u64>, Vec<u64>) {
    let Two { first: (s1, b1), second: (s2, b2) } = two;
    let mut smaller: Vec<u64> =
        counts.iter().zip(shares).map(|(&count, share)| count.min(share.most(s1) * b1)).collect();
    let mut larger: Vec<u64> = counts.iter().zip(&smaller).map(|(all, first)| all - first).collect();
    let mut excess = smaller.iter().sum::<u64>() - s1 * b1;
    for &value in order {
        if excess == 0 {
            break;
        }
        let room = counts[value].min(shares[value].most(s2) * b2) - larger[value];
        let moved = room.min(smaller[value]).min(excess);
        smaller[value] -= moved;
        larger[value] += moved;
        excess -= moved;
    }
    (smaller, larger)
}

/// In what order values move where it is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The most frequent first.
    Falling,
    /// As they are numbered.
    Index,
}

impl Order {
    /// The values in this order.
    #[must_use]
    pub fn of(self, counts: &[u64]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..counts.len()).collect();
        if self == Self::Falling {
            order.sort_by_key(|&value| std::cmp::Reverse(counts[value]));
        }
        order
    }
}

/// Fills buckets of two sizes.
#[must_use]
pub(super) fn fill_two(counts: &[u64], shares: &[Share], two: Two) -> Vec<Filled> {
    let (smaller, larger) = divide(counts, shares, two, &Order::Falling.of(counts));
    let filled = [Filled { class: two.first, counts: smaller }, Filled { class: two.second, counts: larger }];
    filled.into_iter().filter(|filled| filled.class.1 > 0).collect()
}

/// The search for many sizes.
pub struct Multi<'a> {
    /// The threshold of each code.
    pub shares: &'a [Share],
    /// The smallest size.
    pub m: u64,
    /// The largest size.
    pub most: u64,
    /// How values move.
    pub order: Order,
    /// Told to stop.
    pub control: &'a Control,
}

impl Multi<'_> {
    /// Buckets of sizes from `m` to `most` with a loss that cannot be made less by dividing those of one size among two. `None`
    /// where there are none of at most two sizes.
    ///
    /// # Errors
    /// [`Cancelled`] when told to stop.
    pub fn search(&self, counts: Vec<u64>) -> Result<Option<Vec<Filled>>, Cancelled> {
        let mut done = Vec::new();
        // what is to be divided, with the buckets it fills now; the last one next
        let mut open: Vec<(Vec<u64>, Option<Class>)> = vec![(counts, None)];
        while let Some((counts, current)) = open.pop() {
            let found = two_sizes(&kinds(&counts, self.shares), self.m, self.most, Pruning::Full, self.control)?;
            let better = found.filter(|two| current.is_none_or(|class| loss(&two.setting()) < loss(&[class])));
            match (better, current) {
                (None, None) => return Ok(None),
                (None, Some(class)) => done.push(Filled { class, counts }),
                (Some(two), _) => match two.setting()[..] {
                    [only] => open.push((counts, Some(only))),
                    _ => {
                        let (smaller, larger) = divide(&counts, self.shares, two, &self.order.of(&counts));
                        open.push((larger, Some(two.second)));
                        open.push((smaller, Some(two.first)));
                    }
                },
            }
        }
        Ok(Some(done))
    }
}
