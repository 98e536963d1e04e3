//! COUNT queries by message passing: each table sends its parent the share of its rows that match, by shared values.
//!
//! # Citations
//! - [Yannakakis 1981], message passing on join trees.

use std::collections::HashMap;

use ahash::RandomState;

use super::cells::{PartCells, PartCounterfeits, PublishedRows, TableCells};
use super::shape::{Factor, FactorSubtree, ModelShape, QueryPath};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet};
use crate::with_codes;

/// Selected codes of each attribute of a query.
pub type Predicates = Vec<(Attr, Vec<bool>)>;

/// Meaning of the standard error of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorModel {
    /// One part holds all attributes: the count is that of the original.
    Exact,
    /// One table holds them in parts that buckets link: the deviation over all matchings of the rows of its buckets.
    Matching,
    /// Several tables: the deviation of a sample of as many rows from the model.
    Multinomial,
}

/// Expected number of rows of a query, for a reader of the release.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The expected number.
    pub count: f64,
    /// Standard deviation of the number under the model.
    pub standard_error: f64,
    /// Meaning of the deviation.
    pub error_model: ErrorModel,
}

/// Estimator that answers queries from the rows that their routes need.
pub struct Estimator<'a> {
    shape: &'a ModelShape,
    cells: &'a PublishedRows,
    /// Shared keys of each edge of the tree of factors that a route uses.
    links: Vec<Option<SharedKeys>>,
}

/// Shared values of two factors as keys, which are equal on both sides.
struct SharedKeys {
    ends: [SharedKeysSide; 2],
}

struct SharedKeysSide {
    factor: usize,
    /// Index of the part that holds the shared attributes.
    part: usize,
    /// Key of each row of the part; empty if nothing is shared.
    keys: Vec<u32>,
    /// Number of rows of each key.
    counts: Vec<u32>,
}

impl SharedKeys {
    fn end(&self, factor: usize) -> &SharedKeysSide {
        &self.ends[usize::from(self.ends[0].factor != factor)]
    }
}

/// A message: the share of matching rows, by key or of all rows.
struct Message<'a> {
    /// The receiving side; `None` if nothing is shared.
    to: Option<&'a SharedKeysSide>,
    shares: Vec<f64>,
}

impl<'a> Estimator<'a> {
    /// An estimator for these routes.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn new(
        shape: &'a ModelShape,
        cells: &'a PublishedRows,
        routes: &[QueryPath],
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut links: Vec<Option<SharedKeys>> = shape.tree.edges.iter().map(|_| None).collect();
        for route in routes {
            let QueryPath::Joined(joined) = route else { continue };
            for &(_, _, edge) in &joined.edges {
                if links[edge].is_none() {
                    links[edge] = Some(link(shape, cells, edge, control)?);
                }
            }
        }
        Ok(Self { shape, cells, links })
    }

    /// Number of rows that an answer by a route reads.
    #[must_use]
    pub fn work(shape: &ModelShape, route: &QueryPath, rows: u64) -> u64 {
        let parts: usize = match route {
            QueryPath::Shown { .. } => 1,
            QueryPath::Tied { factor } => shape.factors[*factor].view.parts().len(),
            QueryPath::Joined(joined) => joined.factors.iter().map(|&at| shape.factors[at].view.parts().len()).sum(),
        };
        rows.saturating_mul(parts as u64)
    }

    /// Estimate of a query by its route.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn estimate(&self, route: &QueryPath, query: &Predicates, control: &Control) -> Result<Estimate, Cancelled> {
        match route {
            QueryPath::Shown { table, part } if self.cells.tables[*table].parts[*part].counterfeits.are_possible() => {
                // counterfeits are indistinguishable from rows, as matchings are
                let table = &self.cells.tables[*table];
                matching(
                    table,
                    std::iter::once((&table.parts[*part], query.iter().map(|(attr, _)| *attr).collect())),
                    query,
                    control,
                )
            }
            QueryPath::Shown { table, part } => {
                let part = &self.cells.tables[*table].parts[*part];
                let rows = self.cells.tables[*table].rows;
                let all = query.iter().map(|(attr, _)| *attr).collect();
                let mut weights = PartWeights::new(part, rows);
                weights.select(all, query, control)?;
                let count = weights.of_rows.map_or(rows as f64, |weights| weights.iter().sum());
                Ok(Estimate { count, standard_error: 0.0, error_model: ErrorModel::Exact })
            }
            QueryPath::Tied { factor } => {
                let Factor { table, view } = &self.shape.factors[*factor];
                let table = &self.cells.tables[*table];
                matching(table, table.parts.iter().zip(view.parts().iter().copied()), query, control)
            }
            QueryPath::Joined(joined) => {
                let Some(&root) = joined.factors.first() else { return Ok(sampled(0.0, 0.0)) };
                let shares = self.up(joined, root, None, query, control)?;
                let rows = self.cells.tables[self.shape.factors[root].table].rows as f64;
                Ok(sampled(rows, shares.first().copied().unwrap_or(0.0)))
            }
        }
    }

    /// Share of the rows of a factor and its descendants that match the query, for each key of the edge to its parent, or of all
    /// rows.
    fn up(
        &self,
        joined: &FactorSubtree,
        factor: usize,
        above: Option<&SharedKeysSide>,
        query: &Predicates,
        control: &Control,
    ) -> Result<Vec<f64>, Cancelled> {
        let mut incoming: Vec<Message<'_>> = Vec::new();
        for &(parent, child, edge) in &joined.edges {
            if let (true, Some(link)) = (parent == factor, &self.links[edge]) {
                let shares = self.up(joined, child, Some(link.end(child)), query, control)?;
                let here = link.end(parent);
                let to = (!here.counts.is_empty()).then_some(here);
                incoming.push(Message { to, shares });
            }
        }
        let Factor { table, view } = &self.shape.factors[factor];
        let table = &self.cells.tables[*table];
        let everywhere: f64 =
            incoming.iter().filter(|message| message.to.is_none()).flat_map(|message| message.shares.first()).product();
        let mut of_parts = Vec::with_capacity(table.parts.len());
        for (index, (part, attributes)) in table.parts.iter().zip(view.parts()).enumerate() {
            let mut weights = PartWeights::new(part, table.rows);
            weights.select(*attributes, query, control)?;
            let revealed = incoming.iter().filter_map(|message| Some((message.to?, &message.shares)));
            for (to, shares) in revealed.filter(|(to, _)| to.part == index) {
                weights.reveal(&to.keys, shares);
            }
            of_parts.push(weights.of_rows);
        }
        // one part represents all: a row has the mean of the other parts in its bucket
        let speaker = above.map_or(0, |above| above.part);
        let means = means_of_others(table, &of_parts, speaker);
        let (part, weights) = (&table.parts[speaker], &of_parts[speaker]);
        let weight = |row: usize| {
            let own = weights.as_ref().map_or(1.0, |weights| weights[row]);
            part.labels.get(row).map_or(own, |&bucket| own * means[bucket as usize])
        };
        let Some(above) = above.filter(|above| !above.counts.is_empty()) else {
            let sum: f64 = (0..table.rows).map(weight).sum();
            return Ok(vec![everywhere * sum / (table.rows.max(1)) as f64]);
        };
        let mut shares = vec![0.0; above.counts.len()];
        for (row, &key) in above.keys.iter().enumerate() {
            shares[key as usize] += weight(row);
        }
        let counts = shares.iter_mut().zip(&above.counts).filter(|(_, count)| **count > 0);
        counts.for_each(|(share, &count)| *share *= everywhere / f64::from(count));
        Ok(shares)
    }
}

/// Mean weight of a row of each bucket in all parts but one, as a product.
fn means_of_others(table: &TableCells, of_parts: &[Option<Vec<f64>>], speaker: usize) -> Vec<f64> {
    let mut means = vec![1.0; table.buckets.len()];
    for (index, (part, weights)) in table.parts.iter().zip(of_parts).enumerate() {
        if let (true, Some(weights)) = (index != speaker, weights) {
            let sums = sums(table, part, weights);
            for ((mean, sum), &size) in means.iter_mut().zip(sums).zip(&table.buckets) {
                *mean *= sum / f64::from(size);
            }
        }
    }
    means
}

/// Expectation and deviation over all matchings of each bucket, and over all choices of its counterfeits.
fn matching<'c>(
    table: &TableCells,
    parts: impl Iterator<Item = (&'c PartCells, AttrSet)>,
    query: &Predicates,
    control: &Control,
) -> Result<Estimate, Cancelled> {
    let mut matching: Vec<(Vec<f64>, &PartCounterfeits)> = Vec::new();
    for (part, attributes) in parts {
        let mut weights = PartWeights::new(part, part.rows(table.rows));
        weights.select(attributes, query, control)?;
        if let Some(weights) = weights.of_rows {
            matching.push((sums(table, part, &weights), &part.counterfeits));
        }
    }
    let (mut count, mut variance) = (0.0, 0.0);
    for (bucket, &size) in table.buckets.iter().enumerate() {
        let size = f64::from(size);
        // probability that every part matches, for one row and for two distinct rows
        let (mut one, mut two) = (1.0, 1.0);
        for (part, counterfeits) in &matching {
            let shown = size + f64::from(counterfeits.of(bucket));
            one *= part[bucket] / shown;
            two *= if shown > 1.0 { part[bucket] * (part[bucket] - 1.0) / (shown * (shown - 1.0)) } else { 0.0 };
        }
        let expected = size * one;
        count += expected;
        variance += expected + size * (size - 1.0) * two - expected * expected;
    }
    // cancellation may leave a negative rest
    let standard_error = if variance > 1e-9 { variance.sqrt() } else { 0.0 };
    Ok(Estimate { count, standard_error, error_model: ErrorModel::Matching })
}

/// Estimate of a query with this share of the model.
fn sampled(rows: f64, share: f64) -> Estimate {
    let share = share.clamp(0.0, 1.0);
    Estimate {
        count: rows * share,
        standard_error: (rows * share * (1.0 - share)).sqrt(),
        error_model: ErrorModel::Multinomial,
    }
}

/// Sum over the rows of a part, by bucket.
fn sums(table: &TableCells, part: &PartCells, weights: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; table.buckets.len()];
    for (&weight, &bucket) in weights.iter().zip(part.labels.iter()) {
        sums[bucket as usize] += weight;
    }
    sums
}

/// Factor of each row of a part by the query and the messages.
struct PartWeights<'a> {
    part: &'a PartCells,
    rows: usize,
    /// `None` if query and messages say nothing.
    of_rows: Option<Vec<f64>>,
}

impl<'a> PartWeights<'a> {
    const fn new(part: &'a PartCells, rows: usize) -> Self {
        Self { part, rows, of_rows: None }
    }

    fn weights(&mut self) -> &mut [f64] {
        self.of_rows.get_or_insert_with(|| vec![1.0; self.rows])
    }

    /// Excludes the rows that the query does not select by these attributes.
    fn select(&mut self, attributes: AttrSet, query: &Predicates, control: &Control) -> Result<(), Cancelled> {
        control.check()?;
        let part = self.part;
        for (attr, admitted) in query.iter().filter(|(attr, _)| attributes.contains(*attr)) {
            let Some(codes) = part.column(*attr) else { continue };
            with_codes!(codes, codes => for (weight, &code) in self.weights().iter_mut().zip(codes) {
                if !admitted[code as usize] {
                    *weight = 0.0;
                }
            });
        }
        Ok(())
    }

    /// Multiplies the weight of each row by the share of its key.
    fn reveal(&mut self, keys: &[u32], shares: &[f64]) {
        for (weight, &key) in self.weights().iter_mut().zip(keys) {
            *weight *= shares[key as usize];
        }
    }
}

/// Assigns a key to every combination of shared values.
fn link(shape: &ModelShape, cells: &PublishedRows, edge: usize, control: &Control) -> Result<SharedKeys, Cancelled> {
    let edge = shape.tree.edges[edge];
    let mut ends = [edge.parent, edge.child].map(|factor| {
        let Factor { table, view } = &shape.factors[factor];
        let shown = view.parts().iter().position(|part| edge.separator.is_subset(*part)).unwrap_or(0);
        let rows = if edge.separator.is_empty() { 0 } else { cells.tables[*table].rows };
        SharedKeysSide { factor, part: shown, keys: vec![0; rows], counts: Vec::new() }
    });
    let mut known = 1;
    for attr in edge.separator.iter() {
        let mut pairs: HashMap<u64, u32, RandomState> = HashMap::default();
        for end in &mut ends {
            control.check()?;
            let table = shape.factors[end.factor].table;
            let Some(codes) = cells.tables[table].parts[end.part].column(attr) else { continue };
            with_codes!(codes, codes => for (key, &code) in end.keys.iter_mut().zip(codes) {
                let next = pairs.len() as u32;
                *key = *pairs.entry(u64::from(*key) << 32 | u64::from(code)).or_insert(next);
            });
        }
        known = pairs.len();
    }
    if !edge.separator.is_empty() {
        for end in &mut ends {
            end.counts = vec![0; known];
            end.keys.iter().for_each(|&key| end.counts[key as usize] += 1);
        }
    }
    Ok(SharedKeys { ends })
}
