//! Tables whose parts share attributes, as a model of plain tables.

use crate::microdata::Attr;
use crate::publication::{CellContent, Part, Publication, PublishedColumn, PublishedTable, TableProtection};

/// The publication with each part of a table whose parts share attributes as a plain table of its own.
///
/// The bucket becomes an attribute, `label`: shared attributes and the bucket link the parts as they link any tables. `None` if
/// no parts share attributes.
#[must_use]
pub fn parted(publication: &Publication, label: Attr) -> Option<Publication> {
    publication.tables.iter().any(shares).then(|| {
        let alone = |table: &PublishedTable, part: &Part| {
            let bucket = PublishedColumn { attribute: label, name: "bucket".to_owned(), cells: CellContent::Exact };
            let columns = std::iter::once(bucket).chain(part.columns.iter().cloned()).collect();
            let parts = vec![Part { columns, bucketed: false, ..part.clone() }];
            PublishedTable { name: table.name.clone(), parts, protection: TableProtection::Exclusive }
        };
        let tables = publication.tables.iter().flat_map(|table| match shares(table) {
            true => table.parts.iter().map(|part| alone(table, part)).collect(),
            false => vec![table.clone()],
        });
        Publication { tables: tables.collect(), ..publication.clone() }
    })
}

/// Whether parts of a table share attributes.
#[must_use]
pub fn shares(table: &PublishedTable) -> bool {
    table.parts.iter().map(|part| part.columns.len()).sum::<usize>() > table.attributes().len()
}
