//! COUNT queries over a decomposition.
//!
//! Each row of a bucket is equally likely to have each of its slots, and a slot each joint row of its primary value that the sets
//! admit.
//!
//! # Citations
//! - [Ye et al. 2009]
//! - `docs/spec/decompose.md#count-estimator`

use std::collections::BTreeMap;

use super::cells::{PartCells, PublishedRows, TableCells};
use super::messages::{ErrorModel, Estimate, Predicates};
use crate::control::{Cancelled, Control};
use crate::microdata::Attr;

/// The two tables of a decomposition, as a reader combines them.
pub struct DecompositionModel<'a> {
    /// Rows of the buckets: their quasi-identifiers.
    rows: &'a PartCells,
    /// Number of rows of each bucket.
    sizes: Vec<u32>,
    primary: Attr,
    others: Vec<Attr>,
    /// Primary values of each bucket, with the number of their slots.
    places: Vec<Vec<(u32, u32)>>,
    /// Listed values of each bucket and other attribute, rising.
    lists: Vec<Vec<Vec<u32>>>,
    /// Joint rows of each primary value: values of the others, and their count.
    joint: BTreeMap<u32, Vec<(Vec<u32>, u64)>>,
    /// Whether every row has its joint values.
    complete: bool,
}

/// Selected codes of each sensitive attribute of a query.
type SensitivePredicate<'q> = Vec<&'q [bool]>;

fn admits(asked: &SensitivePredicate<'_>, code: u32) -> bool {
    asked.iter().all(|admitted| admitted.get(code as usize).copied().unwrap_or(false))
}

impl<'a> DecompositionModel<'a> {
    /// The model of both tables, whose sensitive attributes were all read; `None` if they are no decomposition.
    #[must_use]
    pub fn new(cells: &'a PublishedRows, primary: Attr, others: &[Attr]) -> Option<Self> {
        let [TableCells { parts, buckets: sizes, .. }, TableCells { parts: joint, .. }] = &cells.tables[..] else {
            return None;
        };
        let ([rows, of_primary, lists_of @ ..], [joint]) = (&parts[..], &joint[..]) else { return None };
        let mut places: Vec<BTreeMap<u32, u32>> = vec![BTreeMap::new(); sizes.len()];
        for (&bucket, code) in of_primary.labels.iter().zip(of_primary.column(primary)?.iter()) {
            *places.get_mut(bucket as usize)?.entry(code).or_default() += 1;
        }
        let mut lists = vec![vec![Vec::new(); others.len()]; sizes.len()];
        for (at, (part, attr)) in lists_of.iter().zip(others).enumerate() {
            for (&bucket, code) in part.labels.iter().zip(part.column(*attr)?.iter()) {
                lists.get_mut(bucket as usize)?[at].push(code);
            }
        }
        lists.iter_mut().flatten().for_each(|list| list.sort_unstable());
        let values: Vec<Vec<u32>> =
            others.iter().map(|attr| Some(joint.column(*attr)?.iter().collect())).collect::<Option<_>>()?;
        let mut kinds: BTreeMap<u32, BTreeMap<Vec<u32>, u64>> = BTreeMap::new();
        let known = joint.column(primary)?;
        for (row, code) in known.iter().enumerate() {
            let kind = values.iter().map(|of| of[row]).collect();
            *kinds.entry(code).or_default().entry(kind).or_default() += 1;
        }
        let complete = known.len() == of_primary.labels.len();
        Some(Self {
            rows,
            sizes: sizes.clone(),
            primary,
            others: others.to_vec(),
            places: places.into_iter().map(|of| of.into_iter().collect()).collect(),
            lists,
            joint: kinds.into_iter().map(|(code, kinds)| (code, kinds.into_iter().collect())).collect(),
            complete,
        })
    }

    /// Upper bound of the rows and kinds of joint rows that a query examines.
    #[must_use]
    pub fn work(&self) -> u64 {
        let kinds = |(code, _): &(u32, u32)| self.joint.get(code).map_or(1, |kinds| 1 + kinds.len() as u64);
        let pairs: u64 = self.places.iter().flatten().map(kinds).sum();
        pairs + self.rows.labels.len() as u64
    }

    /// Estimate of a query.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn estimate(&self, query: &Predicates, control: &Control) -> Result<Estimate, Cancelled> {
        control.check()?;
        let of = |attr: Attr| -> SensitivePredicate<'_> {
            query.iter().filter(|(of, _)| *of == attr).map(|(_, admitted)| &admitted[..]).collect()
        };
        let (primary, others) = (of(self.primary), self.others.iter().map(|attr| of(*attr)).collect::<Vec<_>>());
        let is_sensitive = |attr: Attr| attr == self.primary || self.others.contains(&attr);
        let known: Vec<&(Attr, Vec<bool>)> = query.iter().filter(|(attr, _)| !is_sensitive(*attr)).collect();
        let matching = self.matching(&known);
        let exact = |count: u64| Estimate { count: count as f64, standard_error: 0.0, error_model: ErrorModel::Exact };
        let only_primary = others.iter().all(Vec::is_empty);
        if only_primary && primary.is_empty() {
            return Ok(exact(matching.iter().map(|rows| u64::from(*rows)).sum()));
        }
        if known.is_empty() && only_primary {
            let places = self.places.iter().flatten().filter(|(code, _)| admits(&primary, *code));
            return Ok(exact(places.map(|(_, count)| u64::from(*count)).sum()));
        }
        if known.is_empty() && self.complete {
            let of_primary = self.joint.iter().filter(|(code, _)| admits(&primary, **code));
            let rows = of_primary.flat_map(|(_, kinds)| kinds);
            let rows = rows.filter(|(kind, _)| kind.iter().zip(&others).all(|(code, asked)| admits(asked, *code)));
            return Ok(exact(rows.map(|(_, count)| count).sum()));
        }
        let (mut count, mut variance) = (0.0, 0.0);
        for (bucket, &rows) in matching.iter().enumerate().filter(|(_, rows)| **rows > 0) {
            if bucket % 1024 == 0 {
                control.check()?;
            }
            let (size, rows) = (f64::from(self.sizes[bucket]), f64::from(rows));
            // expected number and variance of the matching slots, if they were independent
            let (mut mean, mut spread) = (0.0, 0.0);
            for &(code, places) in self.places[bucket].iter().filter(|(code, _)| admits(&primary, *code)) {
                let share = if only_primary { 1.0 } else { self.share(bucket, code, &others) };
                mean += f64::from(places) * share;
                spread += f64::from(places) * share * (1.0 - share);
            }
            count += rows * mean / size;
            // rows are matched with slots at random
            let drawn = rows / size;
            let matched = (size * mean - mean * mean - spread).max(0.0);
            if size > 1.0 {
                variance += rows * (size - rows) / (size * size * (size - 1.0)) * matched;
            }
            variance += drawn * drawn * spread;
        }
        let error_model = if only_primary { ErrorModel::Matching } else { ErrorModel::Multinomial };
        Ok(Estimate { count, standard_error: variance.sqrt(), error_model })
    }

    /// Number of rows of each bucket that match the quasi-identifiers.
    fn matching(&self, known: &[&(Attr, Vec<bool>)]) -> Vec<u32> {
        if known.is_empty() {
            return self.sizes.clone();
        }
        let columns: Option<Vec<_>> =
            known.iter().map(|(attr, admitted)| Some((self.rows.column(*attr)?, admitted))).collect();
        let mut matching = vec![0; self.sizes.len()];
        let Some(columns) = columns else { return matching };
        for (row, &bucket) in self.rows.labels.iter().enumerate() {
            let counts = columns.iter().all(|(codes, admitted)| admitted[codes.get(row) as usize]);
            matching[bucket as usize] += u32::from(counts);
        }
        matching
    }

    /// Share of the possible tuples of a slot that match the selection.
    fn share(&self, bucket: usize, primary: u32, others: &[SensitivePredicate<'_>]) -> f64 {
        let lists = &self.lists[bucket];
        let Some(kinds) = self.joint.get(&primary) else {
            let of_list = |(list, asked): (&Vec<u32>, &SensitivePredicate<'_>)| {
                let admitted = list.iter().filter(|code| admits(asked, **code)).count();
                admitted as f64 / list.len().max(1) as f64
            };
            return lists.iter().zip(others).map(of_list).product();
        };
        let (mut all, mut asked_for) = (0_u64, 0_u64);
        for (kind, count) in kinds {
            if kind.iter().zip(lists).all(|(code, list)| list.binary_search(code).is_ok()) {
                all += count;
                if kind.iter().zip(others).all(|(code, asked)| admits(asked, *code)) {
                    asked_for += count;
                }
            }
        }
        asked_for as f64 / all.max(1) as f64
    }
}
