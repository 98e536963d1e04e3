//! Kullback-Leibler divergence of the original from the model.
//!
//! It is the cross entropy of the tables, minus that of shared attributes, minus the entropy of the original. Tables that form no
//! tree are fitted, or some are left out.
//!
//! # Citations
//! - [Kifer and Gehrke 2006]

use std::collections::HashMap;

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::model::{
    Boxes, Factor, Fitted, ModelShape, PublishedRows, RowGroups, cross_entropy, cross_entropy_of_columns, entropy,
};
use crate::publication::{ModelKind, PublishedTable};

/// How far the model is from the original, and how it is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DivergenceReport {
    /// In nats, over the published attributes; infinite when some row of the original cannot occur.
    pub nats: f64,
    /// How the model is made.
    pub made: ModelKind,
}

/// The divergence over the published attributes. `cells` are all rows of all tables.
///
/// # Errors
/// [`Cancelled`]
pub fn divergence(
    shape: &ModelShape,
    cells: &PublishedRows,
    original: &Table,
    control: &Control,
) -> Result<DivergenceReport, Cancelled> {
    let mut measure = EntropyCache { cells, original, control, surprises: HashMap::new(), entropies: HashMap::new() };
    let (mut nats, made) = if shape.whole {
        (measure.surprise(shape)?, ModelKind::ClosedForm)
    } else {
        let (mut nats, mut made) = (0.0, ModelKind::ClosedForm);
        for tables in shape.components() {
            let (of_component, how) = measure.component(shape, &tables)?;
            nats += of_component;
            made = made.max(how);
        }
        (nats, made)
    };
    let published = shape.published.iter().fold(AttrSet::EMPTY, |all, view| all.union(view.attributes()));
    nats -= measure.entropy(published)?;
    // what cancels out may leave less than nothing
    Ok(DivergenceReport { nats: if nats.abs() < 1e-12 { 0.0 } else { nats }, made })
}

/// The divergence from what a reader makes of the boxes of a generalized table, which has all attributes of the original; `None` where it
/// has too many of them.
///
/// # Errors
/// [`Cancelled`]
pub fn divergence_of_boxes(boxes: &Boxes, original: &Table, control: &Control) -> Result<Option<f64>, Cancelled> {
    let Some(surprise) = boxes.surprise(original, control)? else { return Ok(None) };
    let nats = surprise - entropy(RowGroups::new(original, original.attributes(), control)?.sizes());
    Ok(Some(if nats.abs() < 1e-12 { 0.0 } else { nats }))
}

/// The divergence from what a reader makes of a table whose parts share attributes, all of which `cells` has; `None` where they form no
/// tree.
///
/// # Errors
/// [`Cancelled`]
pub fn divergence_of_columns(
    table: &PublishedTable,
    cells: &PublishedRows,
    original: &Table,
    control: &Control,
) -> Result<Option<f64>, Cancelled> {
    let Some(surprise) = cross_entropy_of_columns(table, cells, original, control)? else { return Ok(None) };
    let nats = surprise - entropy(RowGroups::new(original, table.attributes(), control)?.sizes());
    Ok(Some(if nats.abs() < 1e-12 { 0.0 } else { nats }))
}

/// What is measured of the original, each once.
struct EntropyCache<'a> {
    cells: &'a PublishedRows,
    original: &'a Table,
    control: &'a Control,
    surprises: HashMap<Factor, f64>,
    entropies: HashMap<AttrSet, f64>,
}

impl EntropyCache<'_> {
    fn entropy(&mut self, attributes: AttrSet) -> Result<f64, Cancelled> {
        if let Some(&known) = self.entropies.get(&attributes) {
            return Ok(known);
        }
        let found = entropy(RowGroups::new(self.original, attributes, self.control)?.sizes());
        self.entropies.insert(attributes, found);
        Ok(found)
    }

    /// What the product over the factors of a shape is surprised by.
    fn surprise(&mut self, shape: &ModelShape) -> Result<f64, Cancelled> {
        let mut nats = 0.0;
        for &member in &shape.tree.members {
            let factor = &shape.factors[member];
            nats += match self.surprises.get(factor) {
                Some(known) => *known,
                None => {
                    let found = cross_entropy(factor, self.cells, self.original, self.control)?;
                    self.surprises.insert(factor.clone(), found);
                    found
                }
            };
        }
        for edge in shape.tree.edges.iter().filter(|edge| !edge.separator.is_empty()) {
            nats -= self.entropy(edge.separator)?;
        }
        Ok(nats)
    }

    /// What the model of some tables, which share no attribute with any other, is surprised by.
    fn component(&mut self, shape: &ModelShape, tables: &[usize]) -> Result<(f64, ModelKind), Cancelled> {
        let attributes = tables.iter().fold(AttrSet::EMPTY, |all, &of| all.union(shape.published[of].attributes()));
        if let Some(tree) = shape.made_of(tables, attributes) {
            return Ok((self.surprise(&tree)?, ModelKind::ClosedForm));
        }
        if let Some(fitted) = Fitted::new(&shape.published, tables, self.cells, self.control)? {
            return Ok((fitted.cross_entropy(self.cells, self.original, self.control)?, ModelKind::Fitted));
        }
        Ok((self.of_some(shape, tables, attributes)?, ModelKind::AcyclicSubset))
    }

    /// The same of as many of the tables as form a tree, each time the one of which the model gains most.
    fn of_some(&mut self, shape: &ModelShape, tables: &[usize], attributes: AttrSet) -> Result<f64, Cancelled> {
        let mut chosen: Vec<usize> = Vec::new();
        let mut nats = None;
        loop {
            let mut best: Option<(f64, Vec<usize>)> = None;
            for &table in tables.iter().filter(|table| !chosen.contains(table)) {
                let mut more = chosen.clone();
                more.push(table);
                more.sort_unstable();
                let Some(tree) = shape.made_of(&more, attributes) else { continue };
                let surprise = self.surprise(&tree)?;
                if best.as_ref().is_none_or(|(least, _)| surprise < *least) {
                    best = Some((surprise, more));
                }
            }
            // of no table at all there is the first round alone, and one table is always a tree
            let Some((least, more)) = best else { return Ok(nats.unwrap_or(0.0)) };
            (nats, chosen) = (Some(least), more);
        }
    }
}

#[cfg(test)]
mod tests;
