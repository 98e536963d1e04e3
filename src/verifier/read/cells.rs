use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ahash::AHashSet;

use crate::microdata::{CellInterval, CellShape, Column, Domain, SUPPRESSED_CELL, Taxonomy, parse_set, write_set};
use crate::verifier::definition::taxonomy::CellTree;

/// What the cells of a column speak of: the values of the original, and the tree above them where cells are nodes.
pub(in crate::verifier) struct CellDomain<'a> {
    shape: CellShape,
    domain: &'a Domain,
    above: Option<CellTree>,
}

impl<'a> CellDomain<'a> {
    /// `None` where cells are nodes and there is no tree above all values.
    pub(in crate::verifier) fn new(shape: CellShape, tree: Option<&Taxonomy>, domain: &'a Domain) -> Option<Self> {
        let above = match shape {
            CellShape::Node => Some(CellTree::new(tree?, Some(domain.kind()), domain.iter())?),
            CellShape::Exact | CellShape::Interval | CellShape::Set | CellShape::Suppressed => None,
        };
        Some(Self { shape, domain, above })
    }
}

/// What a cell says, in codes of the original's domain.
pub(in crate::verifier) enum CellMeaning {
    /// The missing value alone.
    Missing,
    /// All values from the first to the last, and, where it begins there, the missing one.
    Between { missing: bool, first: u32, last: u32 },
    /// These values, rising.
    Among(Vec<u32>),
    /// One of the values below a node.
    Below(u32),
}

impl CellMeaning {
    /// What a cell says; `None` when it is no cell of its column.
    pub(in crate::verifier) fn read(ground: &CellDomain<'_>, cell: Option<&[u8]>) -> Option<Self> {
        let CellDomain { shape, domain, above } = ground;
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

    pub(in crate::verifier) fn covers(&self, code: u32, ground: &CellDomain<'_>) -> bool {
        let domain = ground.domain;
        let is_missing = domain.has_missing() && code == 0;
        match self {
            Self::Missing => is_missing,
            Self::Between { missing, .. } if is_missing => *missing,
            Self::Between { first, last, .. } => (*first..=*last).contains(&code),
            Self::Among(codes) => codes.binary_search(&code).is_ok(),
            Self::Below(node) => ground.above.as_ref().is_some_and(|above| above.covers(*node, code)),
        }
    }

    /// Whether it says of rows with these codes, rising and each once, no more than what they are.
    pub(in crate::verifier) fn is_tight(&self, codes: &[u32], ground: &CellDomain<'_>) -> bool {
        let domain = ground.domain;
        let with_missing = domain.has_missing() && codes.first() == Some(&0);
        let values = &codes[usize::from(with_missing)..];
        match self {
            Self::Missing => with_missing && values.is_empty(),
            Self::Between { missing: true, last, .. } => with_missing && values.last() == Some(last),
            Self::Between { missing: false, first, last } => {
                !with_missing && values.first() == Some(first) && values.last() == Some(last)
            }
            Self::Among(among) => among == codes,
            Self::Below(node) => ground.above.as_ref().is_some_and(|above| above.is_lowest(*node, codes)),
        }
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

/// What each cell of a column says, and of what.
pub(in crate::verifier) type ColumnMeaning<'a> = (&'a [CellMeaning], &'a CellDomain<'a>);

/// How many of these cells are no nodes of a tree.
pub(in crate::verifier) fn unknown_labels<'c>(tree: &Taxonomy, cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize {
    let labels: AHashSet<Option<&[u8]>> =
        (0..tree.len() as u32).map(|node| tree.label(node).map(str::as_bytes)).collect();
    cells.filter(|cell| !labels.contains(cell)).count()
}

/// How many rows of an original have a value that no cell of a column is left for; `None` where its cells are not made of values.
pub(in crate::verifier) fn uncovered_rows_of(
    shape: CellShape,
    tree: Option<&Taxonomy>,
    cells: &Column,
    original: &Column,
) -> Option<u64> {
    let ground = CellDomain::new(shape, tree, &original.domain)?;
    let says =
        cells.domain.iter().map(|cell| CellMeaning::read(&ground, cell)).collect::<Option<Vec<CellMeaning>>>()?;
    Some(uncovered_rows(&says, &ground, &cells.counts(), &original.counts()))
}

/// How many rows have a value that no cell is left for, however rows are dealt to cells: `held` says how many rows show a cell,
/// `counts` how many have a value. Exact for intervals and nodes; for sets each value is looked at by itself.
pub(in crate::verifier) fn uncovered_rows(
    says: &[CellMeaning],
    ground: &CellDomain<'_>,
    held: &[u64],
    counts: &[u64],
) -> u64 {
    if let Some(above) = &ground.above {
        let nodes = says.iter().zip(held).filter_map(|(says, &held)| match says {
            CellMeaning::Below(node) => Some((*node, held)),
            _ => None,
        });
        return above.unplaced(nodes, counts);
    }
    let mut spans: Vec<(u32, u32, u64)> = Vec::new();
    let mut covers = vec![0; counts.len()];
    for (says, &held) in says.iter().zip(held) {
        match says {
            CellMeaning::Missing => spans.push((0, 0, held)),
            // the missing value comes just before the first
            CellMeaning::Between { missing, first, last } => {
                spans.push((if *missing { 0 } else { *first }, *last, held))
            }
            CellMeaning::Among(codes) => codes.iter().for_each(|&code| covers[code as usize] += held),
            CellMeaning::Below(_) => {}
        }
    }
    if spans.is_empty() {
        return counts.iter().zip(covers).map(|(&rows, cells)| rows.saturating_sub(cells)).sum();
    }
    // of the cells that cover a value those are used first that end first: no other choice leaves fewer rows without a cell
    spans.sort_unstable();
    let mut coming = spans.into_iter().peekable();
    let mut open: BinaryHeap<Reverse<(u32, u64)>> = BinaryHeap::new();
    let mut short = 0;
    for (code, &rows) in (0..).zip(counts) {
        while let Some((_, last, held)) = coming.next_if(|&(first, _, _)| first <= code) {
            open.push(Reverse((last, held)));
        }
        let mut rows = rows;
        while rows > 0 {
            match open.pop() {
                None => break,
                Some(Reverse((last, _))) if last < code => {}
                Some(Reverse((last, held))) => {
                    let taken = rows.min(held);
                    rows -= taken;
                    if held > taken {
                        open.push(Reverse((last, held - taken)));
                    }
                }
            }
        }
        short += rows;
    }
    short
}
