//! Columns of a dataset as attributes of a coverage of the same rows.

use std::collections::{BTreeMap, BTreeSet};

use super::coverage::Coverage;
use super::evidence::Evidence;

/// It is not known which attributes these columns are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("columns that may be published attributes under other names: {0:?}")]
pub struct UnknownAttributesError(pub BTreeSet<String>);

/// The attribute of each published column, by the names of the ledger.
///
/// What says the same of every person, or in an equal table of every row, as a published attribute of another name is that
/// attribute. If the coverage
/// published a name that the dataset has not, a column that was never seen together with it may be that attribute,
/// unless `is_declared` knows it.
///
/// # Errors
/// Columns of which it is unknown what they are.
pub fn attribute_names(
    evidence: &Evidence,
    coverage: &Coverage,
    published: &BTreeSet<String>,
    publishes: &BTreeSet<String>,
    is_declared: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, String>, UnknownAttributesError> {
    let names: BTreeMap<String, String> =
        publishes.iter().map(|column| (column.clone(), known_as(evidence, coverage, published, column))).collect();
    let is_missing = |name: &&String| !evidence.names.contains(name) && !names.values().any(|known| known == *name);
    let has_equal_table = evidence.table.is_some_and(|table| coverage.tables.contains(&table));
    if has_equal_table || !published.iter().any(|name| is_missing(&name)) {
        return Ok(names);
    }
    let was_seen = |column: &str| coverage.systems.values().any(|system| system.columns.contains_key(column));
    let is_unknown = |column: &String| {
        names[column] == *column && !published.contains(column) && !was_seen(column) && !is_declared(column)
    };
    let unknown: BTreeSet<String> = publishes.iter().filter(|column| is_unknown(column)).cloned().collect();
    if unknown.is_empty() { Ok(names) } else { Err(UnknownAttributesError(unknown)) }
}

/// Names of the ledger that the dataset has not, each with the column that says the same of every person or row.
///
/// Datasets of the same rows may have published under names of their own.
pub fn columns_of_names<'n>(
    evidence: &Evidence,
    coverage: &Coverage,
    names: impl Iterator<Item = &'n str>,
) -> BTreeMap<String, String> {
    let column_of = |name: &str| {
        let says_the_same = |column: &&String| {
            let is_content = evidence
                .contents
                .get(*column)
                .is_some_and(|mark| coverage.contents.get(name).is_some_and(|marks| marks.contains(mark)));
            is_content
                || evidence.systems.iter().any(|(system, own)| {
                    let theirs = coverage.systems.get(system).and_then(|theirs| theirs.columns.get(name));
                    theirs.is_some_and(|mark| own.columns.get(*column) == Some(mark))
                })
        };
        evidence.names.iter().find(says_the_same)
    };
    let missing = names.filter(|name| !evidence.names.iter().any(|column| column == name));
    missing.filter_map(|name| Some((name.to_owned(), column_of(name)?.clone()))).collect()
}

fn known_as(evidence: &Evidence, coverage: &Coverage, published: &BTreeSet<String>, column: &str) -> String {
    if published.contains(column) {
        return column.to_owned();
    }
    let content = evidence.contents.get(column);
    let is_content = |name: &&String| {
        content.is_some_and(|mark| coverage.contents.get(*name).is_some_and(|marks| marks.contains(mark)))
    };
    if let Some(name) = published.iter().find(is_content) {
        return name.clone();
    }
    for (system, own) in &evidence.systems {
        let (Some(mark), Some(theirs)) = (own.columns.get(column), coverage.systems.get(system)) else { continue };
        let is_equal = |name: &&String| theirs.columns.get(*name) == Some(mark);
        if let Some(name) = published.iter().find(is_equal) {
            return name.clone();
        }
    }
    column.to_owned()
}
