//! Lower bound of the loss of buckets of any sizes, by a linear program over all fillings of single buckets.
//!
//! Column generation solves it. Prices of values determine the bucket of the largest gain: for each size, it is the one that
//! takes the dearest values first. The solution uses floats. Its buckets count if the flow test fills them, and the bound is
//! proved from the prices in integers.
//!
//! # Citations
//! - [Gilmore and Gomory 1961], column generation.

use super::share::{ValueClass, rows};
use crate::control::{Cancelled, Control};

/// Largest number of simplex steps.
const MAX_PRICING_STEPS: u64 = 1 << 28;
/// Largest number of pairs of a size and a kind of value, or of two kinds.
const MAX_SIZE_PAIRS: usize = 1 << 20;
/// Relative gain below which a bucket is a rounding error.
const GAIN_TOLERANCE: f64 = 1e-7;
/// Factor of integer prices.
const PRICE_SCALE: f64 = (1_u64 << 24) as f64;

/// A filling of one bucket that keeps all thresholds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BucketPattern {
    /// Number of rows of the bucket.
    pub size: u64,
    /// Number of rows of each kind.
    pub held: Vec<u64>,
}

/// A filling with a fractional number of buckets.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PatternAmount {
    pub pattern: BucketPattern,
    pub amount: f64,
}

/// A solution with fractional numbers of buckets.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RelaxedSolution {
    /// Fillings with their numbers; together they hold all rows. Empty if none were found.
    pub patterns: Vec<PatternAmount>,
    /// Proved lower bound of the loss.
    pub lower_bound: u64,
}

/// Solves the program for sizes from `m` to `most`. `None` if it is too large, or if no bucket can be filled.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub(super) fn relax(
    kinds: &[ValueClass],
    m: u64,
    most: u64,
    control: &Control,
) -> Result<Option<RelaxedSolution>, Cancelled> {
    let most = most.min(rows(kinds));
    let sizes = (most + 1).saturating_sub(m.max(1)) as usize;
    if kinds.is_empty() || kinds.len().saturating_mul(sizes.max(kinds.len())) > MAX_SIZE_PAIRS {
        return Ok(None);
    }
    let room = |size: u64| SizeColumn {
        size,
        cost: ((size - 1) * (size - 1)) as f64,
        room: kinds.iter().map(|kind| kind.share.most(size) * kind.values).collect(),
    };
    let sizes: Vec<SizeColumn> =
        (m.max(1)..=most).map(room).filter(|of| of.room.iter().sum::<u64>() >= of.size).collect();
    if sizes.is_empty() {
        return Ok(None);
    }
    let mut program = LinearProgram::new(kinds, (most * most) as f64 * 100.0);
    let step = kinds.len() as u64 * (sizes.len() + 3 * kinds.len()) as u64;
    let mut work = 0;
    loop {
        control.check()?;
        work += step;
        let prices = program.prices();
        let better = if work > MAX_PRICING_STEPS { None } else { dearest(&sizes, &prices) };
        let Some((of, held)) = better else {
            let lower_bound = proved(kinds, &sizes, &prices);
            return Ok(Some(RelaxedSolution { patterns: program.patterns(), lower_bound }));
        };
        program.enter(of.cost, BucketPattern { size: of.size, held });
    }
}

/// A size, the loss of its bucket, and the largest number of rows of each kind in it.
struct SizeColumn {
    size: u64,
    cost: f64,
    room: Vec<u64>,
}

impl SizeColumn {
    /// Rows of each kind in the most valuable bucket; `order` has the dearest kind first.
    fn fill(&self, order: &[usize]) -> Vec<u64> {
        let (mut held, mut free) = (vec![0; self.room.len()], self.size);
        for &kind in order {
            held[kind] = self.room[kind].min(free);
            free -= held[kind];
            if free == 0 {
                break;
            }
        }
        held
    }
}

/// The bucket of the largest gain per row at these prices.
fn dearest<'s>(sizes: &'s [SizeColumn], prices: &[f64]) -> Option<(&'s SizeColumn, Vec<u64>)> {
    let mut order: Vec<usize> = (0..prices.len()).collect();
    order.sort_by(|&a, &b| prices[b].total_cmp(&prices[a]));
    let mut best: Option<(f64, &SizeColumn, Vec<u64>)> = None;
    for of in sizes {
        let held = of.fill(&order);
        let worth: f64 = held.iter().zip(prices).map(|(&rows, price)| rows as f64 * price).sum();
        let gain = (worth - of.cost) / of.size as f64;
        let least = best.as_ref().map_or(GAIN_TOLERANCE * of.cost.max(1.0), |(gain, ..)| *gain);
        if gain > least {
            best = Some((gain, of, held));
        }
    }
    best.map(|(_, of, held)| (of, held))
}

/// Lower bound of the loss by prices, which are lowered until no bucket is worth more than its loss.
fn proved(kinds: &[ValueClass], sizes: &[SizeColumn], prices: &[f64]) -> u64 {
    let mut exact: Vec<i128> = prices.iter().map(|price| (price * PRICE_SCALE).round() as i128).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by_key(|&kind| std::cmp::Reverse(exact[kind]));
    let worth = |held: &[u64], exact: &[i128]| -> i128 {
        held.iter().zip(exact).map(|(&rows, price)| i128::from(rows) * price).sum()
    };
    let excess = |of: &SizeColumn| {
        let more = worth(&of.fill(&order), &exact) - i128::from((of.size - 1) * (of.size - 1)) * PRICE_SCALE as i128;
        // the excess is taken from the price of each row
        let size = i128::from(of.size);
        if more > 0 { (more + size - 1) / size } else { 0 }
    };
    let lowered = sizes.iter().map(excess).max().unwrap_or(0);
    exact.iter_mut().for_each(|price| *price -= lowered);
    let all: Vec<u64> = kinds.iter().map(|kind| kind.count * kind.values).collect();
    let bound = worth(&all, &exact).max(0);
    let scale = PRICE_SCALE as i128;
    u64::try_from((bound + scale - 1) / scale).unwrap_or(0)
}

/// The simplex method: as many fillings as kinds, with numbers that hold all rows.
struct LinearProgram {
    /// Loss of each filling.
    costs: Vec<f64>,
    /// The fillings; `None` is a row outside all buckets, at a high cost.
    basis: Vec<Option<BucketPattern>>,
    /// Inverse of the matrix of their rows.
    inverse: Vec<Vec<f64>>,
    /// Number of each filling.
    amounts: Vec<f64>,
}

impl LinearProgram {
    fn new(kinds: &[ValueClass], dear: f64) -> Self {
        let number = kinds.len();
        let unit = |at: usize| (0..number).map(|other| f64::from(u8::from(other == at))).collect();
        Self {
            costs: vec![dear; number],
            basis: vec![None; number],
            inverse: (0..number).map(unit).collect(),
            amounts: kinds.iter().map(|kind| (kind.count * kind.values) as f64).collect(),
        }
    }

    /// Current price of a row of each kind.
    fn prices(&self) -> Vec<f64> {
        let mut prices = vec![0.0; self.costs.len()];
        for (cost, row) in self.costs.iter().zip(&self.inverse) {
            prices.iter_mut().zip(row).for_each(|(price, part)| *price += cost * part);
        }
        prices
    }

    /// Brings in a filling as often as possible, in place of one that is used up.
    fn enter(&mut self, cost: f64, pattern: BucketPattern) {
        let held: Vec<f64> = pattern.held.iter().map(|&rows| rows as f64).collect();
        let used: Vec<f64> =
            self.inverse.iter().map(|row| row.iter().zip(&held).map(|(part, rows)| part * rows).sum()).collect();
        let mut out: Option<(f64, usize)> = None;
        for (at, (&used_here, amount)) in used.iter().zip(&self.amounts).enumerate() {
            if used_here <= 1e-9 {
                continue;
            }
            let times = amount / used_here;
            let sooner = |&(least, of): &(f64, usize)| times < least || times == least && used_here > used[of];
            if out.as_ref().is_none_or(sooner) {
                out = Some((times, at));
            }
        }
        // its rows are existing ones, so that some filling is used up
        let Some((times, out)) = out else { return };
        for (amount, used) in self.amounts.iter_mut().zip(&used) {
            *amount = (*amount - times * used).max(0.0);
        }
        self.amounts[out] = times;
        self.inverse[out].iter_mut().for_each(|part| *part /= used[out]);
        let row = self.inverse[out].clone();
        for (at, other) in self.inverse.iter_mut().enumerate() {
            if at != out && used[at] != 0.0 {
                other.iter_mut().zip(&row).for_each(|(part, of)| *part -= used[at] * of);
            }
        }
        (self.costs[out], self.basis[out]) = (cost, Some(pattern));
    }

    /// The fillings, if no row is outside.
    fn patterns(self) -> Vec<PatternAmount> {
        let mut patterns = Vec::new();
        for (pattern, amount) in self.basis.into_iter().zip(self.amounts) {
            match pattern {
                Some(pattern) => patterns.push(PatternAmount { pattern, amount }),
                None if amount > 1e-6 => return Vec::new(),
                None => {}
            }
        }
        patterns
    }
}
