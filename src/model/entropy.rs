//! Entropy of the model from the parts alone: the sum over its tables minus the sum over shared attributes.
//!
//! It is the mean over all indistinguishable originals of two terms: the entropy of the original, and its divergence from the
//! model. So it measures how much the release leaves open, and reveals no original more than another.

use std::collections::HashMap;

use ahash::RandomState;

use super::cells::{ModelError, PublishedRows, TableCells};
use super::groups::RowGroups;
use super::information::{BucketedColumn, ValueShare, entropy};
use super::shape::{Factor, ModelShape};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, AttributeType, Column};
use crate::publication::{Publication, PublishedBytes};

/// Entropy of the model of a publication, in nats. One table is read at a time.
///
/// # Errors
/// [`ModelError`]
pub fn model_entropy(
    shape: &ModelShape,
    publication: &Publication,
    kinds: &[Option<AttributeType>],
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<f64, ModelError> {
    let read = |table: usize, attributes: AttrSet| {
        let wanted = |index: usize| (index == table).then_some(attributes);
        let mut cells = PublishedRows::read(publication, wanted, kinds, parts, control)?;
        Ok(std::mem::take(&mut cells.tables[table]))
    };
    of_shape(shape, read, control)
}

/// Entropy of the model of tables that are read for it.
pub(super) fn of_shape(
    shape: &ModelShape,
    mut read: impl FnMut(usize, AttrSet) -> Result<TableCells, ModelError>,
    control: &Control,
) -> Result<f64, ModelError> {
    let mut nats = 0.0;
    for &member in &shape.tree.members {
        let Factor { table, view } = &shape.factors[member];
        let rows = read(*table, view.attributes())?;
        nats += of_table(&rows, view.parts(), control)?;
        for edge in shape.tree.edges.iter().filter(|edge| edge.child == member && !edge.separator.is_empty()) {
            let shown = view.parts().iter().position(|part| edge.separator.is_subset(*part)).unwrap_or(0);
            nats -= entropy(groups(&rows, shown, edge.separator, control)?.sizes());
        }
    }
    Ok(nats.max(0.0))
}

/// Rows of a part, grouped by some attributes.
fn groups(table: &TableCells, part: usize, attributes: AttrSet, control: &Control) -> Result<RowGroups, Cancelled> {
    let columns = table.parts[part].columns.iter().filter(|(attr, _)| attributes.contains(*attr));
    let columns: Vec<&Column> = columns.map(|(_, column)| column).collect();
    RowGroups::whole(table.parts[part].rows(table.rows)).refined(&columns, control)
}

/// Entropy of the estimate of a table, restricted to some attributes of its parts.
fn of_table(table: &TableCells, used: &[AttrSet], control: &Control) -> Result<f64, Cancelled> {
    let mut parts: Vec<usize> = (0..used.len()).filter(|&part| !used[part].is_empty()).collect();
    // the part with most attributes has most groups
    parts.sort_by_key(|&part| std::cmp::Reverse(used[part].len()));
    let Some((&first, others)) = parts.split_first() else { return Ok(0.0) };
    let known = groups(table, first, used[first], control)?;
    if others.is_empty() {
        return Ok(entropy(known.sizes()));
    }
    let mut tied: Option<BucketDistribution> = None;
    for &part in others {
        let of_part = BucketDistribution::new(table, part, used[part], control)?;
        tied = Some(match tied {
            None => of_part,
            Some(tied) => tied.others(&of_part, control)?,
        });
    }
    let Some(BucketDistribution { of_bucket, values }) = tied else { return Ok(0.0) };
    let labels = table.parts[first].labels.to_vec();
    BucketedColumn::of_shares(labels, of_bucket, values, control)?.estimate_entropy(&known, control)
}

/// Possible values of the rows of each bucket, with their shares.
struct BucketDistribution {
    of_bucket: Vec<Vec<ValueShare>>,
    values: usize,
}

impl BucketDistribution {
    fn new(table: &TableCells, part: usize, attributes: AttrSet, control: &Control) -> Result<Self, Cancelled> {
        let groups = groups(table, part, attributes, control)?;
        let mut rows: Vec<Vec<u32>> = table.buckets.iter().map(|&size| Vec::with_capacity(size as usize)).collect();
        for (&group, &bucket) in groups.of_row().iter().zip(table.parts[part].labels.iter()) {
            rows[bucket as usize].push(group);
        }
        let shares = |mut groups: Vec<u32>| {
            groups.sort_unstable();
            let size = groups.len() as f64;
            let share = |run: &[u32]| ValueShare { value: run[0], share: run.len() as f64 / size };
            groups.chunk_by(|a, b| a == b).map(share).collect()
        };
        Ok(Self { of_bucket: rows.into_iter().map(shares).collect(), values: groups.sizes().len() })
    }

    /// Shares of pairs: within a bucket, any values of two parts may belong together.
    fn others(&self, other: &Self, control: &Control) -> Result<Self, Cancelled> {
        let mut pairs: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
        let mut of_bucket = Vec::with_capacity(self.of_bucket.len());
        for (here, there) in self.of_bucket.iter().zip(&other.of_bucket) {
            control.check()?;
            let mut shares = Vec::with_capacity(here.len() * there.len());
            for a in here {
                for b in there {
                    let next = pairs.len() as u32;
                    let value = *pairs.entry((a.value, b.value)).or_insert(next);
                    shares.push(ValueShare { value, share: a.share * b.share });
                }
            }
            of_bucket.push(shares);
        }
        Ok(Self { of_bucket, values: pairs.len() })
    }
}
