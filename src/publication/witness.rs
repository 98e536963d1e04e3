//! The secret assignment behind a publication.

use zeroize::Zeroize;

/// The secret assignment of original rows to buckets and classes.
///
/// It has no `Serialize` and no `Debug`, is never stored, and is wiped when dropped.
pub struct Witness {
    /// Per published table.
    pub tables: Vec<TableWitness>,
}

/// The assignment of rows in one table.
pub enum TableWitness {
    /// Exact tuples: nothing is assigned.
    Plain,
    /// The bucket label of each row of the original, by row index; 0 for a row that is in no part.
    Buckets(Vec<u32>),
    /// Bucket labels, and for each part the box of each row; parts with exact cells have no boxes. The numbers of boxes have no
    /// meaning.
    Boxes {
        /// The bucket label of each row.
        labels: Vec<u32>,
        /// Per part, the box of each row.
        boxes: Vec<Vec<u32>>,
    },
    /// The position of each original row in the only part of the table, counted from 0.
    Rows(Vec<u32>),
}

impl Drop for Witness {
    fn drop(&mut self) {
        for table in &mut self.tables {
            match table {
                TableWitness::Plain => {}
                TableWitness::Buckets(places) | TableWitness::Rows(places) => places.zeroize(),
                TableWitness::Boxes { labels, boxes } => {
                    labels.zeroize();
                    boxes.iter_mut().for_each(Zeroize::zeroize);
                }
            }
        }
    }
}
