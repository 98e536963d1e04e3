//! Execution of a design: the parts of its tables, and the witness.

use super::design::Design;
use super::designed_table::TableDesign;
use super::error::PublishError;
use super::made_table::MadeTable;
use super::make::TableMaker;
use super::published::Published;
use super::secret_rows::SecretRows;
use crate::control::Control;
use crate::publication::{Publication, PublicationCells, PublishedTable, TableName, TableWitness, Witness};
use crate::random::RandomStreams;

/// Makes the tables of a design. Attributes are published under `published_names`.
///
/// # Errors
/// [`PublishError`] if a table cannot be made, or on cancellation.
pub fn execute(
    design: &Design,
    published_names: &[String],
    rows: SecretRows<'_>,
    streams: &RandomStreams,
    control: &Control,
) -> Result<Published, PublishError> {
    let maker = TableMaker { rows, published_names, streams, control };
    let mut tables = Vec::new();
    let mut contents = Vec::new();
    let mut witnesses = Vec::new();
    for (index, designed) in design.tables.iter().enumerate() {
        let name = TableName::at(index);
        let attributes = designed.attributes;
        let MadeTable { parts, protection, witness } = match &designed.design {
            TableDesign::Plain => maker.plain(attributes)?,
            TableDesign::Bucketized(bucketized) => maker.bucketized(attributes, bucketized, &name)?,
            TableDesign::Sliced(sliced) => maker.sliced(sliced, &name)?,
            TableDesign::Generalized(generalized) => maker.generalized(attributes, generalized)?,
            TableDesign::Sequential(sequential) => maker.sequential(attributes, sequential)?,
            TableDesign::Decomposed(decomposed) => maker.decomposed(attributes, decomposed, &name)?,
        };
        let (descriptions, cells) = parts.into_iter().unzip();
        tables.push(PublishedTable { name, parts: descriptions, protection });
        contents.push(cells);
        witnesses.push(witness);
    }
    Ok(Published {
        publication: Publication {
            tables,
            rules: design.protection(),
            method_details: design.details.clone(),
            suppressed: witnesses.iter().map(suppressed_rows).max().unwrap_or(0),
        },
        contents: PublicationCells { tables: contents },
        witness: Witness { tables: witnesses },
    })
}

/// Number of rows that stand in no bucket.
fn suppressed_rows(witness: &TableWitness) -> u64 {
    match witness {
        TableWitness::Plain | TableWitness::Rows(_) => 0,
        TableWitness::Buckets(labels) | TableWitness::Boxes { labels, .. } => {
            labels.iter().filter(|label| **label == 0).count() as u64
        }
    }
}
