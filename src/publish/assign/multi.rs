//! Several sensitive attributes in one part: groups of rows that protect each attribute from an adversary who knows all others.
//!
//! A cell is a combination of sensitive values; a line of an attribute holds the cells that agree in all others. A group is
//! feasible if no cell has more than 1/l of its line, for each attribute with its l. Unions of feasible groups are feasible, so
//! that there is a largest one: the greatest fixed point of reducing each cell to its share of its lines.
//!
//! # Citations
//! - [Jin et al. 2010, Algorithm 3]
//! - `docs/spec/guardian-normal-form.md#multiple-sensitive-attributes`

use std::collections::{BTreeMap, VecDeque};

use ahash::{AHashMap, AHashSet};

use super::{BucketAssignment, SensitiveCodes};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, Table};
use crate::random::RandomStream;

/// Number of rows at which an infeasible bucket is given up.
const MAX_BUCKET_ROWS: u64 = 64;

/// A sensitive attribute with its diversity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttributeDiversity {
    /// The attribute.
    pub attr: Attr,
    /// Inverse of the largest share of one value.
    pub l: u64,
}

/// Number of rows of each cell.
type CellRows = BTreeMap<usize, u64>;

/// Sensitive values of a table as cells and lines.
pub struct SensitiveGrid {
    /// Line through each cell, by attribute.
    lines: Vec<Vec<u32>>,
    /// Cells of each line, rising.
    members: Vec<Vec<usize>>,
    /// Diversity of each attribute.
    l: Vec<u64>,
    /// Rows of each cell.
    counts: Vec<u64>,
}

impl SensitiveGrid {
    /// The grid of `sensitive` attributes with their diversity, and the cell of each row.
    ///
    /// # Errors
    /// [`Cancelled`] on cancellation.
    pub fn from_table(
        table: &Table,
        sensitive: &[AttributeDiversity],
        control: &Control,
    ) -> Result<(Self, Vec<u32>), Cancelled> {
        let all: AttrSet = sensitive.iter().map(|diversity| diversity.attr).collect();
        let cells = SensitiveCodes::new(table, all, control)?;
        let cell_of: Vec<u32> = cells.codes().iter().collect();
        let mut lines = vec![Vec::with_capacity(sensitive.len()); cells.counts().len()];
        let mut next = 0;
        for AttributeDiversity { attr, .. } in sensitive {
            let others = SensitiveCodes::new(table, all.without(*attr), control)?;
            let mut line_of = vec![0; lines.len()];
            for (&cell, line) in cell_of.iter().zip(others.codes().iter()) {
                line_of[cell as usize] = next + line;
            }
            lines.iter_mut().zip(line_of).for_each(|(lines, line)| lines.push(line));
            next += others.counts().len() as u32;
        }
        let l = sensitive.iter().map(|diversity| diversity.l).collect();
        Ok((Self::new(lines, next as usize, l, cells.counts().to_vec()), cell_of))
    }

    fn new(lines: Vec<Vec<u32>>, number: usize, l: Vec<u64>, counts: Vec<u64>) -> Self {
        let mut members = vec![Vec::new(); number];
        for (cell, lines) in lines.iter().enumerate() {
            lines.iter().for_each(|&line| members[line as usize].push(cell));
        }
        Self { lines, members, l, counts }
    }

    /// The largest feasible group.
    #[must_use]
    pub fn largest_group(&self) -> Vec<u64> {
        self.peeled(self.counts.clone())
    }

    /// The largest feasible subset of a group.
    fn peeled(&self, mut group: Vec<u64>) -> Vec<u64> {
        let mut sums = vec![0; self.members.len()];
        for (cell, &rows) in group.iter().enumerate() {
            self.lines[cell].iter().for_each(|&line| sums[line as usize] += rows);
        }
        let mut queue: VecDeque<usize> = (0..group.len()).filter(|&cell| group[cell] > 0).collect();
        let mut queued = vec![true; group.len()];
        while let Some(cell) = queue.pop_front() {
            queued[cell] = false;
            let shares = self.lines[cell].iter().zip(&self.l).map(|(&line, l)| sums[line as usize] / l);
            let cap = shares.min().unwrap_or(0);
            if group[cell] <= cap {
                continue;
            }
            let surplus = group[cell] - cap;
            group[cell] = cap;
            for &line in &self.lines[cell] {
                sums[line as usize] -= surplus;
                for &other in &self.members[line as usize] {
                    if group[other] > 0 && !std::mem::replace(&mut queued[other], true) {
                        queue.push_back(other);
                    }
                }
            }
        }
        group
    }

    /// Number of rows of each line in a group.
    fn sums(&self, group: &CellRows) -> AHashMap<u32, u64> {
        let mut sums = AHashMap::new();
        for (&cell, rows) in group {
            self.lines[cell].iter().for_each(|&line| *sums.entry(line).or_default() += rows);
        }
        sums
    }

    /// The smallest line with a cell of too large a share; `None` if the group is feasible.
    fn violated(&self, group: &CellRows, sums: &AHashMap<u32, u64>) -> Option<(usize, u32)> {
        let broken = group.iter().flat_map(|(&cell, &rows)| {
            let lines = self.lines[cell].iter().zip(&self.l).enumerate();
            lines.filter(move |(_, (line, l))| rows * **l > sums[*line]).map(|(axis, (&line, _))| (axis, line))
        });
        broken.min()
    }

    /// A small feasible group with a row of `seed`, out of the rows in `left`.
    fn grown(&self, seed: usize, left: &[u64]) -> Option<CellRows> {
        let mut group = CellRows::from([(seed, 1)]);
        let mut rows = 1;
        loop {
            let sums = self.sums(&group);
            let Some((_, line)) = self.violated(&group, &sums) else { return Some(group) };
            if rows >= MAX_BUCKET_ROWS {
                return None;
            }
            let taken = |cell: usize| group.get(&cell).copied().unwrap_or(0);
            let candidates = self.members[line as usize].iter().copied().filter(|&cell| left[cell] > taken(cell));
            // new cells first, then cells with most lines in the bucket, then cells with most rows left
            let supported = |cell: usize| self.lines[cell].iter().filter(|line| sums.contains_key(line)).count();
            let next = candidates.min_by_key(|&cell| {
                (taken(cell), std::cmp::Reverse(supported(cell)), std::cmp::Reverse(left[cell]), cell)
            })?;
            *group.entry(next).or_default() += 1;
            rows += 1;
        }
    }

    /// Splits a feasible group into small feasible ones.
    fn split(&self, mut left: Vec<u64>, control: &Control) -> Result<Vec<CellRows>, Cancelled> {
        let mut seeds: Vec<usize> = (0..left.len()).filter(|&cell| left[cell] > 0).collect();
        seeds.sort_by_key(|&cell| (std::cmp::Reverse(left[cell]), cell));
        let mut groups: Vec<CellRows> = Vec::new();
        for seed in seeds {
            while left[seed] > 0 {
                if groups.len().is_multiple_of(Control::STRIDE >> 6) {
                    control.check()?;
                }
                let Some(group) = self.grown(seed, &left) else { break };
                group.iter().for_each(|(&cell, rows)| left[cell] -= rows);
                groups.push(group);
            }
        }
        let feasible = self.peeled(left.clone());
        left.iter_mut().zip(&feasible).for_each(|(left, rows)| *left -= rows);
        let nonempty =
            |rows: Vec<u64>| rows.into_iter().enumerate().filter(|(_, rows)| *rows > 0).collect::<CellRows>();
        groups.extend(Some(nonempty(feasible)).filter(|group| !group.is_empty()));
        // an infeasible remainder joins the groups that share most lines, twice as many in each round; in the end all become one
        // feasible group
        let mut rest = nonempty(left);
        let mut sums = self.sums(&rest);
        let mut joining = 1;
        while self.violated(&rest, &sums).is_some() && !groups.is_empty() {
            control.check()?;
            let lines: AHashSet<u32> = sums.keys().copied().collect();
            groups.sort_by_cached_key(|group| {
                let met = group.keys().flat_map(|&cell| &self.lines[cell]).filter(|line| lines.contains(line)).count();
                (met, std::cmp::Reverse(group.values().sum::<u64>()))
            });
            for (cell, rows) in groups.split_off(groups.len().saturating_sub(joining)).into_iter().flatten() {
                *rest.entry(cell).or_default() += rows;
            }
            joining *= 2;
            sums = self.sums(&rest);
        }
        groups.extend(Some(rest).filter(|group| !group.is_empty()));
        Ok(groups)
    }
}

/// Assigns the rows of the largest feasible group to small feasible buckets.
///
/// `stream` decides which rows of a cell are suppressed and where the others go. Their numbers depend on the counts of cells
/// alone.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn several(
    table: &Table,
    sensitive: &[AttributeDiversity],
    stream: &mut RandomStream,
    control: &Control,
) -> Result<BucketAssignment, Cancelled> {
    let (grid, cell_of) = SensitiveGrid::from_table(table, sensitive, control)?;
    let mut rows: Vec<Vec<u32>> = grid.counts.iter().map(|&count| Vec::with_capacity(count as usize)).collect();
    for (&cell, row) in cell_of.iter().zip(0..) {
        rows[cell as usize].push(row);
    }
    for list in &mut rows {
        control.check()?;
        stream.shuffle(list);
    }
    let groups = grid.split(grid.largest_group(), control)?;
    let mut assignment = BucketAssignment { bucket_of: vec![BucketAssignment::NOWHERE; cell_of.len()], buckets: 0 };
    for (group, bucket) in groups.into_iter().zip(0..) {
        for (cell, count) in group {
            let from = rows[cell].len() - count as usize;
            for row in rows[cell].drain(from..) {
                assignment.bucket_of[row as usize] = bucket;
            }
        }
        assignment.buckets = bucket + 1;
    }
    control.advance(cell_of.len() as u64)?;
    Ok(assignment)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grid(cells: &[(Vec<u32>, u64)], l: u64) -> SensitiveGrid {
        let axes = cells.first().map_or(0, |(cell, _)| cell.len());
        let mut numbers: AHashMap<(usize, Vec<u32>), u32> = AHashMap::new();
        let mut lines = Vec::new();
        for (cell, _) in cells {
            let line = |axis: usize| {
                let mut context = cell.clone();
                context.remove(axis);
                (axis, context)
            };
            let of_cell = (0..axes).map(|axis| {
                let next = numbers.len() as u32;
                *numbers.entry(line(axis)).or_insert(next)
            });
            lines.push(of_cell.collect());
        }
        SensitiveGrid::new(lines, numbers.len(), vec![l; axes], cells.iter().map(|(_, rows)| *rows).collect())
    }

    /// By the definition: no cell has more than 1/l of a line.
    fn feasible(cells: &[(Vec<u32>, u64)], rows: &[u64], l: u64) -> bool {
        let line =
            |a: &[u32], b: &[u32], axis: usize| a.iter().zip(b).enumerate().all(|(i, (x, y))| i == axis || x == y);
        (0..cells.len()).filter(|&cell| rows[cell] > 0).all(|cell| {
            (0..cells[cell].0.len()).all(|axis| {
                let on = (0..cells.len()).filter(|&other| line(&cells[cell].0, &cells[other].0, axis));
                rows[cell] * l <= on.map(|other| rows[other]).sum::<u64>()
            })
        })
    }

    #[test]
    fn the_largest_groups_are_those_of_the_vectors() {
        #[derive(serde::Deserialize)]
        struct Peel {
            l: u64,
            cells: Vec<(Vec<u32>, u64)>,
            max_group: Vec<(Vec<u32>, u64)>,
        }
        #[derive(serde::Deserialize)]
        struct Vectors {
            peel: Vec<Peel>,
        }
        let vectors: Vectors = serde_json::from_str(include_str!("../../../tests/vectors/gnf.json")).unwrap();
        assert_eq!(vectors.peel.len(), 40);
        for (at, vector) in vectors.peel.iter().enumerate() {
            let largest = grid(&vector.cells, vector.l).largest_group();
            let found = vector.cells.iter().zip(&largest).filter(|(_, rows)| **rows > 0);
            let mut found: Vec<(Vec<u32>, u64)> = found.map(|((cell, _), rows)| (cell.clone(), *rows)).collect();
            let mut expected = vector.max_group.clone();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "vector {at}");
        }
    }

    #[test]
    fn the_example_of_the_specification() {
        let cells = [([0, 0], 2), ([0, 1], 1), ([1, 1], 1), ([1, 0], 1), ([2, 0], 1)];
        let cells: Vec<(Vec<u32>, u64)> = cells.iter().map(|(cell, rows)| (cell.to_vec(), *rows)).collect();
        assert_eq!(grid(&cells, 2).largest_group(), [1, 1, 1, 1, 0]);
    }

    proptest! {
        #[test]
        fn no_feasible_group_is_larger(rows in prop::collection::vec(0u64..4, 6), l in 2u64..4, axes in 1usize..3) {
            let cells: Vec<(Vec<u32>, u64)> = (0u32..6)
                .map(|at| if axes == 1 { vec![at] } else { vec![at % 3, at / 3] })
                .zip(rows.iter().copied())
                .collect();
            let largest = grid(&cells, l).largest_group();
            prop_assert!(feasible(&cells, &largest, l));
            let mut best = 0;
            let mut group = vec![0; 6];
            loop {
                if feasible(&cells, &group, l) {
                    best = best.max(group.iter().sum::<u64>());
                }
                let Some(at) = (0..6).find(|&at| group[at] < rows[at]) else { break };
                group[..at].fill(0);
                group[at] += 1;
            }
            prop_assert_eq!(largest.iter().sum::<u64>(), best);
        }

        #[test]
        fn buckets_are_feasible_and_make_up_the_largest_group(
            rows in prop::collection::vec(0u64..30, 24), l in 2u64..4, axes in 2usize..4,
        ) {
            let place = |at: u32| if axes == 2 { vec![at % 6, at / 6] } else { vec![at % 3, at / 3 % 4, at / 12] };
            let cells: Vec<(Vec<u32>, u64)> = (0u32..24).map(place).zip(rows).collect();
            let grid = grid(&cells, l);
            let largest = grid.largest_group();
            let mut together = vec![0; cells.len()];
            for bucket in grid.split(largest.clone(), &Control::default()).unwrap() {
                let counts: Vec<u64> = (0..cells.len()).map(|cell| bucket.get(&cell).copied().unwrap_or(0)).collect();
                prop_assert!(feasible(&cells, &counts, l), "{:?}", bucket);
                together.iter_mut().zip(&counts).for_each(|(all, rows)| *all += rows);
            }
            prop_assert_eq!(together, largest);
        }
    }
}
