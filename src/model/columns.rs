//! What the cells of a published column say: how many differ, how many are one value, and how many are any value.

use std::collections::HashMap;

use super::cells::PublishedRows;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, CellInterval, CellShape, Column, Taxonomy, parse_date, parse_set};
use crate::publication::{PublishedTable, RowMeaning};

/// The cells of a column of a part. Counts are rows.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ColumnCells {
    /// Different cells.
    pub distinct: u64,
    /// Rows whose cell is one value.
    pub exact: u64,
    /// Rows whose cell stands for every value that a cell of the column stands for, and for more than one.
    pub whole: u64,
    /// The values of all cells, where cells are sets of values or nodes of taxonomies.
    pub values: Option<u64>,
    /// The widths of all intervals, where their ends are numbers or dates, as a share of the range of the column.
    pub widths: Option<f64>,
    /// All rows.
    pub of: u64,
}

/// A distinct cell, and its rows.
struct CountedCell<'a> {
    /// `None`: the missing value.
    text: Option<&'a [u8]>,
    rows: u64,
}

impl PublishedRows {
    /// The cells of the columns of a part of the table at `index`, which was read as text, in the part's order; none of a part that
    /// lists values. `trees` are the taxonomies of attributes.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn cells_of_columns(
        &self,
        index: usize,
        table: &PublishedTable,
        part: usize,
        trees: &HashMap<Attr, &Taxonomy>,
        control: &Control,
    ) -> Result<Vec<(Attr, ColumnCells)>, Cancelled> {
        let (described, cells) = (&table.parts[part], &self.tables[index].parts[part]);
        if described.rows == RowMeaning::Values {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for published in &described.columns {
            control.check()?;
            let attr = published.attribute;
            let Some((_, column)) = cells.columns.iter().find(|(of, _)| *of == attr) else { continue };
            let counted = counted(column);
            found.push((
                attr,
                match published.cells.shape() {
                    CellShape::Exact => exact(&counted),
                    CellShape::Suppressed => suppressed(&counted),
                    CellShape::Interval => intervals(&counted),
                    CellShape::Set => sets(&counted),
                    CellShape::Node => nodes(&counted, trees.get(&attr).copied()),
                },
            ));
        }
        Ok(found)
    }
}

fn counted(column: &Column) -> Vec<CountedCell<'_>> {
    let cells = column.domain.iter().zip(column.counts());
    cells.filter(|(_, rows)| *rows > 0).map(|(text, rows)| CountedCell { text, rows }).collect()
}

fn all(cells: &[CountedCell<'_>]) -> ColumnCells {
    let of = cells.iter().map(|cell| cell.rows).sum();
    ColumnCells { distinct: cells.len() as u64, of, ..ColumnCells::default() }
}

fn exact(cells: &[CountedCell<'_>]) -> ColumnCells {
    let all = all(cells);
    ColumnCells { exact: all.of, ..all }
}

fn suppressed(cells: &[CountedCell<'_>]) -> ColumnCells {
    let all = all(cells);
    ColumnCells { whole: all.of, ..all }
}

/// Adds cells by the number of their values, of `most` that a cell can have.
fn by_values(cells: &[CountedCell<'_>], values: impl Fn(&CountedCell<'_>) -> u64, most: u64) -> ColumnCells {
    let mut found = all(cells);
    let mut sum = 0_u64;
    for cell in cells {
        let number = values(cell);
        found.exact += if number <= 1 { cell.rows } else { 0 };
        found.whole += if number > 1 && number >= most { cell.rows } else { 0 };
        sum = sum.saturating_add(number.saturating_mul(cell.rows));
    }
    ColumnCells { values: Some(sum), ..found }
}

fn sets(cells: &[CountedCell<'_>]) -> ColumnCells {
    let values_of = |cell: &CountedCell<'_>| cell.text.and_then(parse_set).unwrap_or_default();
    let mut every: Vec<Option<Vec<u8>>> = cells.iter().flat_map(values_of).collect();
    every.sort_unstable();
    every.dedup();
    by_values(cells, |cell| values_of(cell).len() as u64, every.len() as u64)
}

fn nodes(cells: &[CountedCell<'_>], tree: Option<&Taxonomy>) -> ColumnCells {
    let Some(tree) = tree else { return all(cells) };
    let nodes: HashMap<Option<&str>, u32> = (0..tree.len() as u32).map(|node| (tree.label(node), node)).collect();
    // an empty cell is the leaf that is the missing value
    let leaves = |cell: &CountedCell<'_>| {
        let label = cell.text.filter(|text| !text.is_empty()).map(str::from_utf8);
        let node = label.transpose().ok().and_then(|label| nodes.get(&label));
        node.map_or(1, |node| tree.leaf_range(*node).len() as u64)
    };
    by_values(cells, leaves, tree.leaves().len() as u64)
}

/// The ends of an interval.
struct Ends<'a> {
    from: Option<&'a [u8]>,
    to: &'a [u8],
}

fn intervals(cells: &[CountedCell<'_>]) -> ColumnCells {
    let mut found = all(cells);
    let read: Vec<(CellInterval<'_>, u64)> =
        cells.iter().filter_map(|cell| Some((CellInterval::parse(cell.text?)?, cell.rows))).collect();
    let ends: Vec<(Ends<'_>, u64)> =
        read.iter().map(|(of, rows)| (Ends { from: of.from.as_deref(), to: &of.to }, *rows)).collect();
    let same = |of: &Ends<'_>| of.from == Some(of.to);
    found.exact = ends.iter().filter(|(of, _)| same(of)).map(|(_, rows)| rows).sum();
    let Some(scale) = [number, day].into_iter().find(|scale| is_scale(*scale, &ends)) else { return found };
    let value = |end: &[u8]| scale(end).unwrap_or_default();
    let least = ends.iter().map(|(of, _)| value(of.from.unwrap_or(of.to))).fold(f64::INFINITY, f64::min);
    let most = ends.iter().map(|(of, _)| value(of.to)).fold(f64::NEG_INFINITY, f64::max);
    if most <= least {
        return found;
    }
    let begins = |of: &Ends<'_>| of.from.map_or(least, value);
    let is_whole = |of: &Ends<'_>| begins(of) <= least && value(of.to) >= most;
    found.whole = ends.iter().filter(|(of, _)| is_whole(of)).map(|(_, rows)| rows).sum();
    let share = |of: &Ends<'_>| (value(of.to) - begins(of)) / (most - least);
    found.widths = Some(ends.iter().map(|(of, rows)| share(of) * *rows as f64).sum());
    found
}

/// Whether every end has a place on a scale.
fn is_scale(scale: fn(&[u8]) -> Option<f64>, ends: &[(Ends<'_>, u64)]) -> bool {
    !ends.is_empty()
        && ends.iter().all(|(of, _)| of.from.is_none_or(|from| scale(from).is_some()) && scale(of.to).is_some())
}

fn number(text: &[u8]) -> Option<f64> {
    let is_plain = text.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
    std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok().filter(|number: &f64| number.is_finite())
}

fn day(text: &[u8]) -> Option<f64> {
    parse_date(text).map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::taxonomy::TaxonomyBuilder;

    fn cells<'a>(of: &[(&'a str, u64)]) -> Vec<CountedCell<'a>> {
        of.iter().map(|(text, rows)| CountedCell { text: Some(text.as_bytes()), rows: *rows }).collect()
    }

    #[test]
    fn intervals_are_measured_on_the_range_of_the_column() {
        let found = intervals(&cells(&[("10..20", 2), ("15..15", 1), ("10..30", 3), ("..15", 4)]));
        assert_eq!((found.distinct, found.exact, found.whole, found.of), (4, 1, 3, 10));
        // 2 of 0.5, 3 of 1, 4 of 0.25
        assert!((found.widths.unwrap() - 5.0).abs() < 1e-12, "{found:?}");
        let dates = intervals(&cells(&[("2020-01-01..2020-01-11", 1), ("2020-01-01..2020-01-21", 1)]));
        assert!((dates.widths.unwrap() - 1.5).abs() < 1e-12 && dates.whole == 1, "{dates:?}");
        let texts = intervals(&cells(&[("a..c", 2), ("b..b", 1)]));
        assert_eq!((texts.exact, texts.whole, texts.widths), (1, 0, None));
        assert_eq!(intervals(&cells(&[("7..7", 3)])).widths, None);
    }

    #[test]
    fn sets_and_nodes_count_their_values() {
        let found = sets(&cells(&[("[1]", 2), ("[1,2]", 1), ("[1,2,null]", 4)]));
        assert_eq!((found.exact, found.whole, found.values), (2, 4, Some(2 + 2 + 12)));
        let mut tree = TaxonomyBuilder::from_root("any");
        for (node, leaves) in [("a", &["x", "y"][..]), ("b", &["z"][..])] {
            let node = tree.add(0, Some(node)).unwrap();
            for leaf in leaves {
                tree.add(node, Some(leaf)).unwrap();
            }
        }
        let tree = tree.finish().unwrap();
        let found = nodes(&cells(&[("any", 3), ("a", 2), ("z", 1)]), Some(&tree));
        assert_eq!((found.distinct, found.exact, found.whole, found.values), (3, 1, 3, Some(9 + 4 + 1)));
        let hidden = suppressed(&cells(&[("*", 5)]));
        assert_eq!((hidden.exact, hidden.whole, hidden.of), (0, 5, 5));
        assert_eq!(exact(&cells(&[("a", 5), ("b", 1)])).exact, 6);
    }
}
