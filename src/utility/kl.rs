//! Kullback and Leibler's divergence of the original from the model, in closed form: what the model is surprised by, table by
//! table, less what neighbours share, less what the original leaves open itself.

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::model::{Cells, Groups, Shape, cross_entropy, entropy};

/// The divergence in nats, over the published attributes. `cells` are all rows of all tables.
///
/// # Errors
/// [`Cancelled`]
pub fn divergence(shape: &Shape, cells: &Cells, original: &Table, control: &Control) -> Result<f64, Cancelled> {
    let of = |attributes: AttrSet| Groups::of(original, attributes, control).map(|groups| entropy(groups.sizes()));
    let mut nats = 0.0;
    for &member in &shape.tree.members {
        nats += cross_entropy(shape, cells, member, original, control)?;
    }
    for edge in shape.tree.edges.iter().filter(|edge| !edge.separator.is_empty()) {
        nats -= of(edge.separator)?;
    }
    let published = shape.published.iter().fold(AttrSet::EMPTY, |all, view| all.union(view.attributes()));
    nats -= of(published)?;
    // what cancels out may leave less than nothing
    Ok(if nats.abs() < 1e-12 { 0.0 } else { nats })
}

#[cfg(test)]
mod tests;
