use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ahash::AHashSet;

use crate::microdata::{CellInterval, CellShape, Column, Domain, SUPPRESSED_CELL, Taxonomy, parse_set, write_set};
use crate::verifier::definition::taxonomy::CellTree;

/// Values of generalized cells: the original's domain, and the taxonomy for nodes.
pub(in crate::verifier) struct CellDomain<'a> {
    shape: CellShape,
    domain: &'a Domain,
    above: Option<CellTree>,
}

impl<'a> CellDomain<'a> {
    /// `None` where cells are nodes and no taxonomy has all values.
    pub(in crate::verifier) fn new(shape: CellShape, tree: Option<&Taxonomy>, domain: &'a Domain) -> Option<Self> {
        let above = match shape {
            CellShape::Node => Some(CellTree::new(tree?, Some(domain.kind()), domain.iter())?),
            CellShape::Exact | CellShape::Interval | CellShape::Set | CellShape::Suppressed => None,
        };
        Some(Self { shape, domain, above })
    }
}

/// The values that a cell stands for, in codes of the original's domain.
pub(in crate::verifier) enum CellMeaning {
    /// The missing value alone.
    Missing,
    /// The values from `first` to `last`, and the missing value if `missing`.
    Between { missing: bool, first: u32, last: u32 },
    /// These values, rising.
    Among(Vec<u32>),
    /// The values below a taxonomy node.
    Below(u32),
}

impl CellMeaning {
    /// Reads a cell; `None` when the column can have no such cell.
    pub(in crate::verifier) fn read(domain_of_cells: &CellDomain<'_>, cell: Option<&[u8]>) -> Option<Self> {
        let CellDomain { shape, domain, above } = domain_of_cells;
        let smallest = u32::from(domain.has_missing());
        match (*shape, cell) {
            (CellShape::Node, label) => above.as_ref()?.find(label).map(Self::Below),
            (CellShape::Interval, None) => domain.has_missing().then_some(Self::Missing),
            (CellShape::Interval, Some(text)) => {
                let span = CellInterval::parse(text)?;
                let last = code_of(domain, &span.to)?;
                let (missing, first) = match &span.from {
                    None => (domain.has_missing().then_some(true)?, smallest),
                    Some(from) => (false, code_of(domain, from)?),
                };
                (first <= last).then_some(Self::Between { missing, first, last })
            }
            (CellShape::Suppressed, Some(text)) => {
                let last = (domain.len() as u32).saturating_sub(1);
                let all = Self::Between { missing: domain.has_missing(), first: smallest, last };
                (text == SUPPRESSED_CELL.as_bytes()).then_some(all)
            }
            (CellShape::Set, Some(text)) => {
                let values = parse_set(text)?;
                let code = |value: &Option<Vec<u8>>| match value {
                    None => domain.has_missing().then_some(0),
                    Some(value) => code_of(domain, value),
                };
                let codes: Vec<u32> = values.iter().map(code).collect::<Option<_>>()?;
                let mut again = Vec::new();
                write_set(domain.kind(), values.iter().map(Option::as_deref), &mut again);
                (!codes.is_empty() && codes.is_sorted_by(|a, b| a < b) && again == text).then_some(Self::Among(codes))
            }
            _ => None,
        }
    }

    pub(in crate::verifier) fn covers(&self, code: u32, domain_of_cells: &CellDomain<'_>) -> bool {
        let domain = domain_of_cells.domain;
        let is_missing = domain.has_missing() && code == 0;
        match self {
            Self::Missing => is_missing,
            Self::Between { missing, .. } if is_missing => *missing,
            Self::Between { first, last, .. } => (*first..=*last).contains(&code),
            Self::Among(codes) => codes.binary_search(&code).is_ok(),
            Self::Below(node) => domain_of_cells.above.as_ref().is_some_and(|above| above.covers(*node, code)),
        }
    }

    /// Whether the cell is the narrowest one for rows with these distinct codes, rising.
    pub(in crate::verifier) fn is_tight(&self, codes: &[u32], domain_of_cells: &CellDomain<'_>) -> bool {
        let domain = domain_of_cells.domain;
        let with_missing = domain.has_missing() && codes.first() == Some(&0);
        let values = &codes[usize::from(with_missing)..];
        match self {
            Self::Missing => with_missing && values.is_empty(),
            Self::Between { missing: true, last, .. } => with_missing && values.last() == Some(last),
            Self::Between { missing: false, first, last } => {
                !with_missing && values.first() == Some(first) && values.last() == Some(last)
            }
            Self::Among(among) => among == codes,
            Self::Below(node) => domain_of_cells.above.as_ref().is_some_and(|above| above.is_lowest(*node, codes)),
        }
    }
}

/// Whether a cell of some shape stands for one value alone; `tree` is that of nodes.
pub(in crate::verifier) fn is_single(shape: CellShape, tree: Option<&Taxonomy>, cell: Option<&[u8]>) -> bool {
    match (shape, cell) {
        // an interval without a text is the missing value
        (CellShape::Exact, _) | (CellShape::Interval, None) => true,
        (CellShape::Interval, Some(text)) => {
            CellInterval::parse(text).is_some_and(|interval| interval.from.as_ref() == Some(&interval.to))
        }
        (CellShape::Set, Some(text)) => parse_set(text).is_some_and(|values| values.len() == 1),
        (CellShape::Node, label) => tree.is_some_and(|tree| {
            let mut leaves = tree.leaves().iter();
            leaves.any(|&leaf| tree.label(leaf).map(str::as_bytes) == label)
        }),
        (CellShape::Suppressed, _) | (CellShape::Set, None) => false,
    }
}

fn code_of(domain: &Domain, value: &[u8]) -> Option<u32> {
    let (mut low, mut high) = (u32::from(domain.has_missing()), domain.len() as u32);
    while low < high {
        let middle = low.midpoint(high);
        match domain.kind().compare(domain.value(middle), Some(value)) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// The meaning of each cell of a column, and the values they stand for.
pub(in crate::verifier) type ColumnMeaning<'a> = (&'a [CellMeaning], &'a CellDomain<'a>);

/// Number of cells that are no node of a taxonomy.
pub(in crate::verifier) fn unknown_labels<'c>(tree: &Taxonomy, cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize {
    let labels: AHashSet<Option<&[u8]>> =
        (0..tree.len() as u32).map(|node| tree.label(node).map(str::as_bytes)).collect();
    cells.filter(|cell| !labels.contains(cell)).count()
}

/// Minimal number of rows of an original without a cell; `None` where a cell cannot be read.
pub(in crate::verifier) fn uncovered_rows_of(
    shape: CellShape,
    tree: Option<&Taxonomy>,
    cells: &Column,
    original: &Column,
) -> Option<u64> {
    let domain_of_cells = CellDomain::new(shape, tree, &original.domain)?;
    let meanings = cells
        .domain
        .iter()
        .map(|cell| CellMeaning::read(&domain_of_cells, cell))
        .collect::<Option<Vec<CellMeaning>>>()?;
    Some(uncovered_rows(&meanings, &domain_of_cells, &cells.counts(), &original.counts()))
}

/// Minimal number of rows without a cell, over all assignments of rows to cells.
///
/// `cells` counts the rows of each cell, `counts` the rows of each value. Exact for intervals and nodes; for sets, a
/// lower bound that examines each value by itself.
pub(in crate::verifier) fn uncovered_rows(
    meanings: &[CellMeaning],
    domain_of_cells: &CellDomain<'_>,
    cells: &[u64],
    counts: &[u64],
) -> u64 {
    if let Some(above) = &domain_of_cells.above {
        let nodes = meanings.iter().zip(cells).filter_map(|(meaning, &cells)| match meaning {
            CellMeaning::Below(node) => Some((*node, cells)),
            _ => None,
        });
        return above.uncovered_rows(nodes, counts);
    }
    let mut spans: Vec<(u32, u32, u64)> = Vec::new();
    let mut covers = vec![0; counts.len()];
    for (meaning, &cells) in meanings.iter().zip(cells) {
        match meaning {
            CellMeaning::Missing => spans.push((0, 0, cells)),
            // the missing value precedes the first one
            CellMeaning::Between { missing, first, last } => {
                spans.push((if *missing { 0 } else { *first }, *last, cells))
            }
            CellMeaning::Among(codes) => codes.iter().for_each(|&code| covers[code as usize] += cells),
            CellMeaning::Below(_) => {}
        }
    }
    if spans.is_empty() {
        return counts.iter().zip(covers).map(|(&rows, cells)| rows.saturating_sub(cells)).sum();
    }
    // a greedy assignment that uses the intervals with the smallest end first leaves the fewest rows
    spans.sort_unstable();
    let mut coming = spans.into_iter().peekable();
    let mut open: BinaryHeap<Reverse<(u32, u64)>> = BinaryHeap::new();
    let mut short = 0;
    for (code, &rows) in (0..).zip(counts) {
        while let Some((_, last, count)) = coming.next_if(|&(first, _, _)| first <= code) {
            open.push(Reverse((last, count)));
        }
        let mut rows = rows;
        while rows > 0 {
            match open.pop() {
                None => break,
                Some(Reverse((last, _))) if last < code => {}
                Some(Reverse((last, count))) => {
                    let taken = rows.min(count);
                    rows -= taken;
                    if count > taken {
                        open.push(Reverse((last, count - taken)));
                    }
                }
            }
        }
        short += rows;
    }
    short
}
