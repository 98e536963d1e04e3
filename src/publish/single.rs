//! A table of one part that has every row once, with texts in place of some values.

use std::sync::Arc;

use crate::control::{Cancelled, Control};
use crate::microdata::formats::csv::null_marker;
use crate::microdata::{AttributeType, Codes, Column, Domain, Interner};
use crate::publication::{
    Part, PartContents, PublishedColumn, PublishedTable, RowMeaning, TableName, TableProtection, TableWitness,
};

/// The table of `columns`, its rows in canonical order; the witness says which row stands where.
pub(super) fn of_one_part(
    (name, protection): (TableName, TableProtection),
    (described, columns): (Vec<PublishedColumn>, Vec<Column>),
    rows: usize,
    control: &Control,
) -> Result<(PublishedTable, PartContents, TableWitness), Cancelled> {
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
        columns: described,
        rows: RowMeaning::Tuples,
        bucketed: false,
        len: rows as u64,
        null: match &columns[..] {
            [only] if only.domain.has_missing() => Some(null_marker(&only.domain)),
            _ => None,
        },
    };
    let contents = PartContents { buckets: None, columns };
    Ok((PublishedTable { name, parts: vec![part], protection }, contents, TableWitness::Rows(places)))
}

/// A column of texts. `numbers` are their numbers in `texts`, `None` the missing value, and `rows` says at which of these each row has its
/// text. Each text must be that of some row.
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

/// The rows in canonical order: by their cells from left to right. One stable pass for each column, the last one first.
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
