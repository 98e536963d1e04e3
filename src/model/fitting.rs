//! Model of tables that form no tree, by iterative proportional fitting over all values and buckets.
//!
//! It starts from the uniform distribution and adjusts it to the counts of each published part in turn, until they change no
//! more.
//!
//! # Citations
//! - [Deming and Stephan 1940]

use std::collections::HashMap;

use ahash::RandomState;

use super::cells::{PartCells, PublishedRows};
use super::information::CompensatedSum;
use super::tree::TableView;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::with_codes;

/// Largest number of combinations of values and buckets.
pub const MAX_FITTED_CELLS: u64 = 1 << 22;
/// Largest number of sweeps over all parts.
const MAX_FITTING_SWEEPS: u32 = 5_000;
/// Largest deviation of a share from the published one when the fitting ends.
const FITTING_TOLERANCE: f64 = 1e-12;

/// Shares of all combinations of the values of some attributes.
#[derive(Debug)]
pub struct Fitted {
    axes: Vec<FactorAxis>,
    shares: Vec<f64>,
}

/// An attribute of the combinations.
#[derive(Clone, Copy, Debug)]
struct FactorAxis {
    attr: Attr,
    /// Number of values.
    size: usize,
}

/// An axis with the stride of its neighbours among the shares.
struct AxisStep {
    axis: usize,
    stride: usize,
}

/// Constraint of a part: the share of each combination of some axes.
struct Constraint {
    steps: Vec<AxisStep>,
    shares: Vec<f64>,
}

/// Marker of a value or combination that no part shows.
const RULED_OUT: u32 = u32::MAX;

impl Fitted {
    /// Fits the model of some published tables, by index, whose rows were read; `None` if they have too many combinations.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn new(
        published: &[TableView],
        tables: &[usize],
        cells: &PublishedRows,
        control: &Control,
    ) -> Result<Option<Self>, Cancelled> {
        // a plain table implies every table within its attributes, buckets included
        let stands_elsewhere = |this: usize| {
            let attributes = published[this].attributes();
            tables.iter().filter(|&&other| other != this && published[other].is_plain()).any(|&other| {
                let all = published[other].attributes();
                let goes_before = !published[this].is_plain() || other < this;
                attributes.is_subset(all) && (attributes != all || goes_before)
            })
        };
        let used: Vec<usize> = tables.iter().copied().filter(|&table| !stands_elsewhere(table)).collect();
        let all = used.iter().fold(AttrSet::EMPTY, |all, &table| all.union(published[table].attributes()));
        let size = |attr: Attr| cells.domain(attr).map_or(1, |domain| domain.len().max(1));
        let axes: Vec<FactorAxis> = all.iter().map(|attr| FactorAxis { attr, size: size(attr) }).collect();
        let mut sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        // the buckets of a table are an axis if they link anything
        let tied: Vec<usize> = used.iter().copied().filter(|&table| !published[table].is_plain()).collect();
        sizes.extend(tied.iter().map(|&table| cells.tables[table].buckets.len().max(1)));
        let count = sizes.iter().try_fold(1_u64, |count, &size| count.checked_mul(size as u64));
        let Some(count) = count.filter(|&count| count <= MAX_FITTED_CELLS) else { return Ok(None) };

        let mut constraints = Vec::new();
        for &table in &used {
            let bucket = tied.iter().position(|&of| of == table).map(|at| axes.len() + at);
            let parts = cells.tables[table].parts.iter().zip(published[table].parts());
            for (part, &attributes) in parts.filter(|(_, attributes)| !attributes.is_empty()) {
                let rows = cells.tables[table].rows;
                let mut builder = ConstraintBuilder::new(rows);
                for (at, axis) in axes.iter().enumerate().filter(|(_, axis)| attributes.contains(axis.attr)) {
                    control.check()?;
                    builder.add_attribute(at, *axis, part);
                }
                if let Some(axis) = bucket {
                    builder.add_buckets(axis, sizes[axis], part);
                }
                constraints.push(builder.finish());
            }
        }
        let support = Support::new(&sizes, &constraints, control)?;
        let fitted = support.fit(&constraints, count as usize, control)?;
        let buckets: usize = sizes[axes.len()..].iter().product();
        let mut shares = vec![0.0; count as usize / buckets];
        for (&cell, share) in support.cells.iter().zip(fitted) {
            shares[cell as usize / buckets] += share;
        }
        Ok(Some(Self { axes, shares }))
    }

    /// Cross entropy, in nats, between the original and the model; infinite if some row is impossible. Attribute `i` is column
    /// `i` of the original.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn cross_entropy(&self, cells: &PublishedRows, original: &Table, control: &Control) -> Result<f64, Cancelled> {
        let mut places: Vec<u32> = vec![0; original.rows()];
        for &FactorAxis { attr, size } in &self.axes {
            control.check()?;
            let Some(domain) = cells.domain(attr) else { continue };
            let column = original.column(attr);
            let known: HashMap<Option<&[u8]>, u32, RandomState> = domain.iter().zip(0..).collect();
            let here: Vec<u32> =
                column.domain.iter().map(|value| known.get(&value).copied().unwrap_or(RULED_OUT)).collect();
            with_codes!(&column.codes, codes => for (place, &code) in places.iter_mut().zip(codes) {
                *place = match here[code as usize] {
                    code if code == RULED_OUT || *place == RULED_OUT => RULED_OUT,
                    code => *place * size as u32 + code,
                };
            });
        }
        // by combination, so that the order of the rows does not matter
        let mut rows = vec![0_u32; self.shares.len()];
        let mut outside = false;
        for &place in &places {
            match rows.get_mut(place as usize) {
                Some(rows) => *rows += 1,
                None => outside = true,
            }
        }
        if outside {
            return Ok(f64::INFINITY);
        }
        let mut sum = CompensatedSum::default();
        for (&rows, &share) in rows.iter().zip(&self.shares).filter(|(rows, _)| **rows > 0) {
            if share <= 0.0 {
                return Ok(f64::INFINITY);
            }
            sum.add(-f64::from(rows) * share.ln());
        }
        Ok(sum.total() / original.rows().max(1) as f64)
    }
}

/// Constraint of a part under construction, axis by axis.
struct ConstraintBuilder {
    steps: Vec<AxisStep>,
    /// Number of combinations of the axes so far.
    count: usize,
    /// Combination of each row.
    keys: Vec<usize>,
}

impl ConstraintBuilder {
    fn new(rows: usize) -> Self {
        Self { steps: Vec::new(), count: 1, keys: vec![0; rows] }
    }

    fn add_attribute(&mut self, at: usize, axis: FactorAxis, part: &PartCells) {
        let stride = self.count;
        if let Some(codes) = part.column(axis.attr) {
            with_codes!(codes, codes => for (key, &code) in self.keys.iter_mut().zip(codes) {
                *key += code as usize * stride;
            });
        }
        self.add(at, axis.size);
    }

    fn add_buckets(&mut self, at: usize, buckets: usize, part: &PartCells) {
        let stride = self.count;
        self.keys.iter_mut().zip(part.labels.iter()).for_each(|(key, &label)| *key += label as usize * stride);
        self.add(at, buckets);
    }

    fn add(&mut self, axis: usize, size: usize) {
        self.steps.push(AxisStep { axis, stride: self.count });
        self.count *= size;
    }

    fn finish(self) -> Constraint {
        let rows = self.keys.len();
        let mut counts = vec![0_u32; self.count];
        self.keys.iter().for_each(|&key| counts[key] += 1);
        let shares = counts.into_iter().map(|count| f64::from(count) / rows.max(1) as f64).collect();
        Constraint { steps: self.steps, shares }
    }
}

/// Combinations that no part rules out.
struct Support {
    /// Their numbers among all combinations, rising.
    cells: Vec<u32>,
    /// For each constraint, the index of the share of each combination.
    keys: Vec<Vec<u32>>,
}

impl Support {
    fn new(sizes: &[usize], constraints: &[Constraint], control: &Control) -> Result<Self, Cancelled> {
        let count: usize = sizes.iter().product();
        let mut support = Self { cells: Vec::new(), keys: vec![Vec::new(); constraints.len()] };
        let mut at = vec![0_usize; sizes.len()];
        let mut keys = vec![0_u32; constraints.len()];
        for cell in 0..count {
            if cell % Control::STRIDE == 0 {
                control.check()?;
            }
            let possible = constraints.iter().zip(&mut keys).all(|(constraint, key)| {
                let found: usize = constraint.steps.iter().map(|step| at[step.axis] * step.stride).sum();
                *key = found as u32;
                constraint.shares[found] > 0.0
            });
            if possible {
                support.cells.push(cell as u32);
                support.keys.iter_mut().zip(&keys).for_each(|(keys, &key)| keys.push(key));
            }
            // the last axis runs fastest
            for (at, &size) in at.iter_mut().zip(sizes).rev() {
                *at += 1;
                if *at < size {
                    break;
                }
                *at = 0;
            }
        }
        Ok(support)
    }

    /// Shares of the combinations of the support.
    fn fit(&self, constraints: &[Constraint], count: usize, control: &Control) -> Result<Vec<f64>, Cancelled> {
        let mut shares = vec![1.0 / count.max(1) as f64; self.cells.len()];
        let empty = |at: usize| vec![0.0; constraints.get(at).map_or(0, |constraint| constraint.shares.len())];
        let mut found = empty(0);
        if let Some(keys) = self.keys.first() {
            keys.iter().zip(&shares).for_each(|(&key, share)| found[key as usize] += share);
        }
        for _ in 0..MAX_FITTING_SWEEPS {
            let mut furthest = 0.0_f64;
            for (at, constraint) in constraints.iter().enumerate() {
                // sums become the factors of the combinations
                for (found, &published) in found.iter_mut().zip(&constraint.shares) {
                    furthest = furthest.max((*found - published).abs());
                    *found = if *found > 0.0 { published / *found } else { 0.0 };
                }
                // shares of the next constraint are summed on the way, always in the same order
                let next = (at + 1) % constraints.len();
                let mut sums = empty(next);
                let keys = self.keys[at].chunks(Control::STRIDE).zip(self.keys[next].chunks(Control::STRIDE));
                for (shares, (keys, next_keys)) in shares.chunks_mut(Control::STRIDE).zip(keys) {
                    control.check()?;
                    for ((share, &key), &next_key) in shares.iter_mut().zip(keys).zip(next_keys) {
                        *share *= found[key as usize];
                        sums[next_key as usize] += *share;
                    }
                }
                found = sums;
            }
            if furthest < FITTING_TOLERANCE {
                break;
            }
        }
        Ok(shares)
    }
}
