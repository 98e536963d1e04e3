//! What a reader infers who knows all published attributes of a person but one.

use crate::control::{Cancelled, Control};
use crate::microdata::{AttrSet, Table};
use crate::model::{AttributeColumn, InferredByOthers, RowKnowledge, row_knowledge};

/// What follows of rows of the original from their other attributes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PractitionerKnowledge {
    /// Rows that no other row equals in all attributes.
    pub unique: u64,
    /// Of each attribute, the rows whose value follows from all others; empty for a single attribute.
    pub values: Vec<InferredByOthers>,
}

/// What follows of the `published` attributes of a table.
///
/// # Errors
/// [`Cancelled`]
pub fn practitioner(table: &Table, published: AttrSet, control: &Control) -> Result<PractitionerKnowledge, Cancelled> {
    let columns: Vec<AttributeColumn<'_>> =
        published.iter().map(|attribute| AttributeColumn { attribute, column: table.column(attribute) }).collect();
    let RowKnowledge { unique, by_others } = row_knowledge(table.rows(), &columns, control)?;
    Ok(PractitionerKnowledge { unique, values: by_others })
}
