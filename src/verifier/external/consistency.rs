//! Consistency of external tables: whether they can be projections of one table.
//!
//! Parts of a table must agree on their buckets, tables on their number of rows and on the values of shared
//! attributes. With an original, the parts must be its projections.

use ahash::AHashMap;

use super::decomposition::JointDecomposition;
use super::submission::{ExternalTableFigures, Submission};
use super::table::{ExternalPart, ExternalTable};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, CellShape, Column};
use crate::publication::{NoticeKind, RowMeaning};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::read::cells;
use crate::verifier::read::joint_column::refine;

/// Number of rows by bucket label.
type BucketSizeMap<'a> = AHashMap<Option<&'a [u8]>, u64>;

/// Checks the tables against each other, and counts their rows and buckets.
pub(in crate::verifier) fn check_consistency(
    submission: &Submission<'_>,
    decomposition: Option<&JointDecomposition<'_>>,
    log: &mut CheckLog,
    remarks: &mut Vec<(NoticeKind, String)>,
    control: &Control,
) -> Result<Vec<ExternalTableFigures>, Cancelled> {
    let mut figures = Vec::new();
    for table in submission.tables {
        control.check()?;
        figures.push(buckets(table, decomposition.is_some(), log));
    }
    // the decomposition check covers joint values, which may lack some rows
    let joint =
        decomposition.filter(|decomposition| decomposition.is_computed()).map(|decomposition| decomposition.joint);
    rows(submission, joint, &figures, log);
    for attr in (0..submission.names.len()).map(Attr::from).filter(|_| joint.is_none()) {
        shared(submission, attr, log, control)?;
    }
    for (table, part) in submission.tables.iter().flat_map(|table| table.parts.iter().map(move |part| (table, part))) {
        nodes(submission, table, part, log);
    }
    if let Some(original) = submission.original {
        content(submission, original, log, control)?;
    }
    remark(submission, decomposition.is_some(), remarks, control)?;
    Ok(figures)
}

fn sizes(bucket: &Column) -> BucketSizeMap<'_> {
    let counts = bucket.counts();
    (0..).zip(counts).map(|(code, count)| (bucket.domain.value(code), count)).collect()
}

fn label_text(label: Option<&[u8]>) -> String {
    label.map_or_else(|| "without a label".to_owned(), |label| String::from_utf8_lossy(label).into_owned())
}

/// Checks that the parts of a table have the same buckets.
///
/// With noise, a part may list more values than a bucket has rows.
fn buckets(table: &ExternalTable, noise: bool, log: &mut CheckLog) -> ExternalTableFigures {
    let counted = table.parts.iter().filter(|part| part.meaning != RowMeaning::Values);
    let rows = counted.map(|part| part.rows as u64).next().unwrap_or(0);
    let mut figures = ExternalTableFigures { rows, ..ExternalTableFigures::default() };
    let name = &table.name;
    if table.parts.len() > 1 && table.parts.iter().any(|part| part.bucket.is_none()) {
        log.fail(CheckName::Buckets, format!("table {name}: its parts are not tied by bucket"));
    }
    let bucketed: Vec<(&ExternalPart, BucketSizeMap<'_>)> =
        table.parts.iter().filter_map(|part| Some((part, sizes(part.bucket.as_ref()?)))).collect();
    let first = bucketed.iter().find(|(part, _)| part.meaning != RowMeaning::Values);
    for (part, here) in &bucketed {
        if here.contains_key(&None) {
            log.fail(CheckName::Buckets, format!("table {name}, part {}: there are rows without a label", part.name));
        }
        let Some((reference, there)) = first else { continue };
        let listed = part.meaning == RowMeaning::Values;
        let fits = |label: &Option<&[u8]>| match (here.get(label), there.get(label)) {
            (Some(here), Some(there)) => {
                if listed {
                    noise || here <= there
                } else {
                    here == there
                }
            }
            _ => false,
        };
        let mut labels: Vec<Option<&[u8]>> = here.keys().chain(there.keys()).copied().filter(|l| !fits(l)).collect();
        labels.sort_unstable();
        labels.dedup();
        if let Some(label) = labels.first() {
            let (a, b) = (here.get(label).copied().unwrap_or(0), there.get(label).copied().unwrap_or(0));
            let detail = format!(
                "table {name}: bucket {} has {a} rows in part {} and {b} in part {}; so {} buckets do not agree",
                label_text(*label),
                part.name,
                reference.name,
                labels.len()
            );
            log.fail(CheckName::Buckets, detail);
        }
    }
    if first.is_none() && table.parts.iter().all(|part| part.meaning == RowMeaning::Values) {
        log.fail(CheckName::Buckets, format!("table {name}: no part has a row for each tuple"));
    }
    figures.buckets = first.map_or(0, |(_, there)| there.len() as u64);
    figures
}

/// Checks that every table has every row: a difference between tables reveals the missing rows.
fn rows(submission: &Submission<'_>, joint: Option<usize>, figures: &[ExternalTableFigures], log: &mut CheckLog) {
    let wanted = match submission.original {
        Some(original) => original.rows as u64,
        None => (0..figures.len()).find(|at| Some(*at) != joint).map_or(0, |at| figures[at].rows),
    };
    for (at, (table, figures)) in submission.tables.iter().zip(figures).enumerate() {
        if figures.rows != wanted && Some(at) != joint {
            let detail = format!("table {} has {} rows, not {wanted}", table.name, figures.rows);
            log.fail(CheckName::Columns, detail);
        }
    }
}

/// The tables whose cells of an attribute can be compared, each with its column.
fn comparable<'a>(submission: &'a Submission<'_>, attr: Attr) -> impl Iterator<Item = (&'a ExternalTable, &'a Column)> {
    submission.tables.iter().filter_map(move |table| {
        let part = table.holder(attr)?;
        let exact = part.meaning == RowMeaning::Tuples && !part.cells.contains_key(&attr);
        Some((table, part.column(attr).filter(|_| exact)?))
    })
}

/// Checks that tables with a common attribute have the same values of it.
fn shared(submission: &Submission<'_>, attr: Attr, log: &mut CheckLog, control: &Control) -> Result<(), Cancelled> {
    let mut first: Option<(&ExternalTable, BucketSizeMap<'_>)> = None;
    for (table, column) in comparable(submission, attr) {
        control.check()?;
        let here = sizes(column);
        match &first {
            None => first = Some((table, here)),
            Some((other, there)) if *there != here => {
                let name = submission.list(AttrSet::one(attr));
                let detail = format!(
                    "tables {} and {} do not have the same values of {name}: they are not of the same rows",
                    other.name, table.name
                );
                log.fail(CheckName::Columns, detail);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Checks that each cell of nodes is a node of the declared taxonomy.
fn nodes(submission: &Submission<'_>, table: &ExternalTable, part: &ExternalPart, log: &mut CheckLog) {
    for (attr, _) in part.cells.iter().filter(|(_, shape)| **shape == CellShape::Node) {
        let (Some(tree), Some(cells)) = (submission.tree(*attr), part.column(*attr)) else { continue };
        let unknown = cells::unknown_labels(tree, cells.domain.iter());
        if unknown > 0 {
            let (name, table) = (submission.list(AttrSet::one(*attr)), &table.name);
            let detail =
                format!("table {table}, part {}: {unknown} cells of {name} are no nodes of its taxonomy", part.name);
            log.fail(CheckName::Columns, detail);
        }
    }
}

/// Checks that each part is a projection of the original, in any order of rows.
fn content(
    submission: &Submission<'_>,
    original: &ExternalPart,
    log: &mut CheckLog,
    control: &Control,
) -> Result<(), Cancelled> {
    for table in submission.tables {
        for part in &table.parts {
            let place = format!("table {}, part {}", table.name, part.name);
            let missing = part.attributes().minus(original.attributes());
            if !missing.is_empty() {
                let missing = submission.list(missing);
                log.fail(CheckName::Content, format!("{place}: the original does not have {missing}"));
            } else if part.meaning != RowMeaning::Tuples {
                let detail = format!("{place}: what is not tuples cannot be held against the original");
                log.fail(CheckName::Content, detail);
            } else if !is_projection(part, original, control)? {
                log.fail(CheckName::Content, format!("{place}: its rows are not those of the original"));
            } else {
                cover(submission, part, original, &place, log);
            }
        }
    }
    Ok(())
}

/// Checks that some assignment of rows to cells covers the value of every row, by attribute.
fn cover(submission: &Submission<'_>, part: &ExternalPart, original: &ExternalPart, place: &str, log: &mut CheckLog) {
    for (attr, shape) in &part.cells {
        let (Some(cells), Some(of)) = (part.column(*attr), original.column(*attr)) else { continue };
        let name = submission.list(AttrSet::one(*attr));
        let detail = match cells::uncovered_rows_of(*shape, submission.tree(*attr), cells, of) {
            Some(0) => continue,
            Some(short) => format!("{place}: for the values of {name} in {short} rows there are not enough cells"),
            None if *shape == CellShape::Node && submission.tree(*attr).is_none() => {
                format!(
                    "{place}: cells of {name} are nodes, and without their taxonomy they cannot be held against the original"
                )
            }
            None => format!("{place}: cells of {name} are not made of values of the original"),
        };
        log.fail(CheckName::Content, detail);
    }
}

/// Whether the exact cells of a part are the projection of the original.
fn is_projection(part: &ExternalPart, original: &ExternalPart, control: &Control) -> Result<bool, Cancelled> {
    if part.rows != original.rows {
        return Ok(false);
    }
    // concatenated, so that equal rows get equal numbers
    let mut ids = vec![0_u32; 2 * part.rows];
    for (attr, column) in part.columns.iter().filter(|(attr, _)| !part.cells.contains_key(attr)) {
        let Some(of) = original.column(*attr) else { return Ok(false) };
        let codes: AHashMap<Option<&[u8]>, u32> = of.domain.iter().zip(0..).collect();
        let known: Vec<Option<u32>> = column.domain.iter().map(|value| codes.get(&value).copied()).collect();
        if known.contains(&None) {
            return Ok(false);
        }
        let same = column.codes.iter().map(|code| known[code as usize].unwrap_or_default());
        let all: Vec<u32> = of.codes.iter().chain(same).collect();
        refine(&mut ids, &crate::microdata::Codes::U32(all), control)?;
    }
    let mut balance: AHashMap<u32, i64> = AHashMap::new();
    for (row, id) in ids.into_iter().enumerate() {
        *balance.entry(id).or_default() += if row < original.rows { 1 } else { -1 };
    }
    Ok(balance.values().all(|&left| left == 0))
}

/// Adds the remarks about files, which violate no rule by themselves.
fn remark(
    submission: &Submission<'_>,
    decomposition: bool,
    remarks: &mut Vec<(NoticeKind, String)>,
    control: &Control,
) -> Result<(), Cancelled> {
    let tables = submission.tables;
    let files = tables.iter().map(|table| table.parts.len()).sum::<usize>();
    for table in tables {
        for part in &table.parts {
            control.check()?;
            let place = format!("table {}, part {}", table.name, part.name);
            if files > 1 && !in_order(part) {
                let detail =
                    format!("{place}: its rows are in no order of values; an order that files share ties their rows");
                remarks.push((NoticeKind::RowOrder, detail));
            }
            if !part.cells.is_empty() {
                let opaque = submission.list(part.opaque());
                let detail =
                    format!("{place}: cells of {opaque} are compared as they are written; equal text makes a class");
                remarks.push((NoticeKind::OpaqueCells, detail));
            }
            if part.meaning == RowMeaning::Values && !decomposition {
                let detail =
                    format!("{place}: values without their numbers: nothing but how many there are can be read");
                remarks.push((NoticeKind::ValuesOnly, detail));
            }
            if part.bucket.as_ref().is_some_and(|bucket| !plain_labels(bucket)) {
                remarks.push((
                    NoticeKind::Labels,
                    format!("{place}: labels other than 1 to the number of buckets may reveal something"),
                ));
            }
        }
    }
    if tables.len() > 1 {
        let detail = "tables are taken to have been shuffled independently: where one label or one position in the files means the same \
                      rows in two tables, submit them as parts of one table";
        remarks.push((NoticeKind::IndependentShuffles, detail.to_owned()));
    }
    let published = tables.iter().fold(AttrSet::EMPTY, |all, table| all.union(table.attributes()));
    let asked = submission.rules.iter().fold(AttrSet::EMPTY, |all, rule| all.union(rule.protects.attributes()));
    let absent = asked.minus(published);
    if !absent.is_empty() {
        let detail = format!("no table has {}: it is not inferred from the tables", submission.list(absent));
        remarks.push((NoticeKind::SensitiveNotPublished, detail));
    }
    Ok(())
}

/// Whether rows rise by label, then by values.
fn in_order(part: &ExternalPart) -> bool {
    let columns: Vec<&Column> = part.bucket.iter().chain(part.columns.iter().map(|(_, column)| column)).collect();
    let compare = |row: usize| {
        let codes = columns.iter().map(|column| column.codes.get(row).cmp(&column.codes.get(row + 1)));
        codes.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    };
    (0..part.rows.saturating_sub(1)).all(|row| compare(row).is_le())
}

/// Whether labels are the numbers from 1 to the number of buckets.
fn plain_labels(bucket: &Column) -> bool {
    let mut numbers: Vec<u64> = Vec::new();
    for label in bucket.domain.iter() {
        let number = label.and_then(|label| std::str::from_utf8(label).ok()?.parse().ok());
        let Some(number) = number else { return false };
        numbers.push(number);
    }
    numbers.sort_unstable();
    numbers.iter().copied().eq(1..=numbers.len() as u64)
}
