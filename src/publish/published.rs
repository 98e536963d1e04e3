use crate::publication::{Publication, PublicationCells, Witness};

/// What a method returns: the description, the cells and the secret assignment.
pub struct Published {
    /// The tables and how the rules stand.
    pub publication: Publication,
    /// The cells, in canonical order.
    pub contents: PublicationCells,
    /// Which row of the table went where.
    pub witness: Witness,
}
