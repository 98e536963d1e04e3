//! A table of one part that holds every row once, with shared cells in place of some values.

use std::sync::Arc;

use super::made_table::MadeTable;
use crate::control::{Cancelled, Control};
use crate::microdata::formats::csv::null_marker;
use crate::microdata::{AttributeType, Codes, Column, Domain, Interner};
use crate::publication::{Part, PartContents, PublishedColumn, RowMeaning, TableProtection, TableWitness};

/// A column with its description.
pub(super) type DescribedColumn = (PublishedColumn, Column);

/// The table of `columns`, its rows in canonical order. The witness is the place of each row.
pub(super) fn of_one_part(
    columns: Vec<DescribedColumn>,
    rows: usize,
    protection: TableProtection,
    control: &Control,
) -> Result<MadeTable, Cancelled> {
    let (descriptions, columns): (Vec<PublishedColumn>, Vec<Column>) = columns.into_iter().unzip();
    let order = canonical(&columns, rows, control)?;
    let columns: Vec<Column> = columns
        .into_iter()
        .map(|column| Column { codes: column.codes.gather(&order), domain: column.domain })
        .collect();
    let mut places = vec![0; order.len()];
    for (&row, place) in order.iter().zip(0..) {
        places[row as usize] = place;
    }
    control.advance(rows as u64)?;
    let part = Part {
        name: "rows".to_owned(),
        columns: descriptions,
        rows: RowMeaning::Tuples,
        bucketed: false,
        len: rows as u64,
        null: match &columns[..] {
            [only] if only.domain.has_missing() => Some(null_marker(&only.domain)),
            _ => None,
        },
    };
    let contents = PartContents { buckets: None, columns };
    Ok(MadeTable { parts: vec![(part, contents)], protection, witness: TableWitness::Rows(places) })
}

/// A column of texts.
///
/// `numbers` are positions in `texts`, `None` for the missing value, and `rows` is the index into `numbers` of each row. Each text
/// must be that of some row.
pub(super) fn column_of_texts(
    mut texts: Interner,
    numbers: &[Option<u32>],
    rows: impl ExactSizeIterator<Item = u32>,
) -> Column {
    let missing = numbers.contains(&None);
    let (domain, ranks): (Arc<Domain>, Vec<u32>) = Domain::sort(AttributeType::Text, missing, &texts.take());
    let codes: Vec<u32> = numbers.iter().map(|number| number.map_or(0, |number| ranks[number as usize])).collect();
    Column { codes: Codes::collect(domain.len(), rows.map(|at| codes[at as usize])), domain }
}

/// Rows in canonical order: by their cells from left to right, with one stable pass per column, the last column first.
fn canonical(columns: &[Column], rows: usize, control: &Control) -> Result<Vec<u32>, Cancelled> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let mut next = vec![0; rows];
    for column in columns.iter().rev() {
        control.check()?;
        let mut starts = vec![0_usize; column.domain.len() + 1];
        column.codes.iter().for_each(|code| starts[code as usize + 1] += 1);
        for code in 1..starts.len() {
            starts[code] += starts[code - 1];
        }
        for &row in &order {
            let place = &mut starts[column.codes.get(row as usize) as usize];
            next[*place] = row;
            *place += 1;
        }
        std::mem::swap(&mut order, &mut next);
    }
    Ok(order)
}
