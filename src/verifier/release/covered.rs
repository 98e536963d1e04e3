//! Cells of classes, held against the values of the original behind them that another engine found.

use super::generalized::{ClassCell, loose_classes};
use crate::microdata::{Attr, CellShape, Column};
use crate::publication::PublishedTable;
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::VerifierInput;
use crate::verifier::read::cells::{CellDomain, CellMeaning};

/// The values of the original in a generalized column: each once for each class, with the cell that stands for it.
#[derive(Clone, Debug)]
pub struct CoveredColumn {
    /// The attribute.
    pub attribute: Attr,
    /// The number of the class.
    pub classes: Vec<u32>,
    /// The cell.
    pub cells: Column,
    /// The value. Each value of the original is that of some class.
    pub values: Column,
}

/// Checks that the cells of a generalized table cover the values of their classes, and are the narrowest that do.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    table: &PublishedTable,
    columns: &[CoveredColumn],
    log: &mut CheckLog,
) {
    let of_parts = table.parts.iter().flat_map(|part| &part.columns);
    for published in of_parts.filter(|column| column.cells.shape() != CellShape::Exact) {
        let name = input.name(published.attribute);
        let Some(covered) = columns.iter().find(|column| column.attribute == published.attribute) else {
            log.fail(CheckName::Content, format!("table {}: cells of {name} were not compared", table.name));
            continue;
        };
        let declared = input.taxonomies.iter().find(|declared| declared.attribute == published.attribute);
        let tree = declared.map(|declared| declared.tree.as_ref());
        let domain = CellDomain::new(published.cells.shape(), tree, &covered.values.domain);
        let meanings = domain.as_ref().and_then(|domain| {
            covered.cells.domain.iter().map(|cell| CellMeaning::read(domain, cell)).collect::<Option<Vec<_>>>()
        });
        let Some((meanings, domain)) = meanings.zip(domain) else {
            let detail = format!("table {}: cells of {name} are not made of values of the original", table.name);
            log.fail(CheckName::Dictionary, detail);
            continue;
        };
        let cells = || covered.cells.codes.iter().zip(covered.values.codes.iter());
        let wrong = cells().filter(|(cell, value)| !meanings[*cell as usize].covers(*value, &domain)).count();
        if wrong > 0 {
            let detail = format!("table {}: cells of {name} do not cover {wrong} values of their classes", table.name);
            log.fail(CheckName::Content, detail);
        }
        let rows = covered.classes.iter().zip(cells()).map(|(&class, (cell, code))| ClassCell { class, cell, code });
        let mut rows: Vec<ClassCell> = rows.collect();
        rows.sort_unstable();
        let is_parted = |class: &&[ClassCell]| class.iter().any(|row| row.cell != class[0].cell);
        let parted = rows.chunk_by(|a, b| a.class == b.class).filter(is_parted).count();
        if parted > 0 {
            log.fail(
                CheckName::Content,
                format!("table {}: {parted} classes have several cells of {name}", table.name),
            );
        }
        let loose = loose_classes((&meanings, &domain), rows);
        if loose > 0 {
            let detail = format!(
                "table {}: in {loose} classes cells of {name} are not the narrowest for the values of their rows",
                table.name
            );
            log.fail(CheckName::Dictionary, detail);
        }
    }
}
