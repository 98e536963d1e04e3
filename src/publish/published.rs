use crate::publication::{Publication, PublicationCells, Witness};

/// Result of executing a design: the description, the cells and the witness.
pub struct Published {
    /// The tables, and why each rule holds.
    pub publication: Publication,
    /// The cells, in canonical order.
    pub contents: PublicationCells,
    /// Buckets, classes and places of the original rows; secret.
    pub witness: Witness,
}
