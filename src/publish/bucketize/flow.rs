//! Exact test whether values fill buckets of any sizes: a flow from kinds of values to sizes.
//!
//! The conditions for two sizes do not carry over to three.

use std::collections::{BTreeMap, VecDeque};

use super::filled::FilledBuckets;
use super::share::{ValueClass, ValueThreshold, kinds, rows};
use crate::control::{Cancelled, Control};
use crate::publication::SizeCount;

/// Largest number of pairs of a kind of value and a size that are filled exactly.
pub(super) const MAX_FILL_STEPS: u64 = 50_000;

/// Fills the buckets of a setting; `None` if no assignment keeps the thresholds.
///
/// Within a size, round robin is as good as any assignment [Wang et al. 2012, section 4.3, Lemma 4.13]. Equal values share the
/// rows of their kind, so that kinds and sizes are the nodes.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn fill(
    counts: &[u64],
    shares: &[ValueThreshold],
    setting: &[SizeCount],
    control: &Control,
) -> Result<Option<Vec<FilledBuckets>>, Cancelled> {
    let kinds = kinds(counts, shares);
    let wanted: u128 = setting.iter().map(|class| class.wide_rows()).sum();
    if wanted != u128::from(rows(&kinds)) {
        return Ok(None);
    }
    let room = |kind: &ValueClass, class: &SizeCount| kind.share.most(class.size) * class.buckets;
    let mut flow = SizeFlow {
        left: kinds.iter().map(|kind| kind.count * kind.values).collect(),
        free: setting.iter().map(|class| class.rows()).collect(),
        // more than all rows of a kind are never needed
        residual: kinds
            .iter()
            .map(|kind| setting.iter().map(|class| room(kind, class).min(kind.count) * kind.values).collect())
            .collect(),
        sent: vec![vec![0; setting.len()]; kinds.len()],
    };
    while flow.augment() {
        control.check()?;
    }
    if flow.left.iter().any(|left| *left > 0) {
        return Ok(None);
    }
    // the rows of a kind are dealt to its values in turn, size after size
    let mut filled: Vec<FilledBuckets> =
        setting.iter().map(|&class| FilledBuckets { class, counts: vec![0; counts.len()] }).collect();
    let mut alike: BTreeMap<(u64, ValueThreshold), Vec<usize>> = BTreeMap::new();
    for (value, of) in counts.iter().copied().zip(shares.iter().copied()).enumerate() {
        alike.entry(of).or_default().push(value);
    }
    for (kind, sent) in kinds.iter().zip(&flow.sent) {
        let Some(values) = alike.get(&(kind.count, kind.share)) else { continue };
        let mut next = 0;
        for (filled, &rows) in filled.iter_mut().zip(sent) {
            let (each, more) = (rows / kind.values, (rows % kind.values) as usize);
            values.iter().for_each(|&value| filled.counts[value] += each);
            for turn in 0..more {
                filled.counts[values[(next + turn) % values.len()]] += 1;
            }
            next = (next + more) % values.len();
        }
    }
    filled.retain(|filled| filled.class.buckets > 0);
    Ok(Some(filled))
}

/// Flow of rows from kinds to sizes.
struct SizeFlow {
    /// Unplaced rows of each kind.
    left: Vec<u64>,
    /// Free places of each size.
    free: Vec<u64>,
    /// Residual capacity by kind and size.
    residual: Vec<Vec<u64>>,
    sent: Vec<Vec<u64>>,
}

impl SizeFlow {
    /// Augments the flow along a shortest path; false if there is none.
    fn augment(&mut self) -> bool {
        let (kinds, sizes) = (self.left.len(), self.free.len());
        // predecessors: the kind before each size, and the size before each kind
        let (mut of_size, mut of_kind) = (vec![usize::MAX; sizes], vec![usize::MAX; kinds]);
        let mut queue: VecDeque<usize> = (0..kinds).filter(|&kind| self.left[kind] > 0).collect();
        let mut seen: Vec<bool> = self.left.iter().map(|left| *left > 0).collect();
        while let Some(kind) = queue.pop_front() {
            for size in 0..sizes {
                if of_size[size] != usize::MAX || self.residual[kind][size] == 0 {
                    continue;
                }
                of_size[size] = kind;
                if self.free[size] > 0 {
                    self.send(size, &of_size, &of_kind);
                    return true;
                }
                for (back, seen) in seen.iter_mut().enumerate() {
                    if !*seen && self.sent[back][size] > 0 {
                        *seen = true;
                        of_kind[back] = size;
                        queue.push_back(back);
                    }
                }
            }
        }
        false
    }

    /// Augments the flow along the path to `end` by its capacity.
    fn send(&mut self, end: usize, of_size: &[usize], of_kind: &[usize]) {
        let mut path = vec![(of_size[end], end)];
        let mut amount = self.free[end];
        let mut size = end;
        loop {
            let kind = of_size[size];
            amount = amount.min(self.residual[kind][size]);
            if of_kind[kind] == usize::MAX {
                amount = amount.min(self.left[kind]);
                self.left[kind] -= amount;
                break;
            }
            amount = amount.min(self.sent[kind][of_kind[kind]]);
            size = of_kind[kind];
            path.push((of_size[size], size));
        }
        self.free[end] -= amount;
        for &(kind, size) in &path {
            self.residual[kind][size] -= amount;
            self.sent[kind][size] += amount;
            // rows of the kind leave the size before it, and free places there
            if of_kind[kind] != usize::MAX {
                self.residual[kind][of_kind[kind]] += amount;
                self.sent[kind][of_kind[kind]] -= amount;
            }
        }
    }
}
