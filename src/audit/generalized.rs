//! Generalized parts: what a cell says covers the values of its rows, and no more than these; and what every class keeps.
//!
//! A class is the rows of a part whose generalized cells are equal. Whoever knows some quasi-identifiers sees several classes
//! together, in which what each of them keeps is kept.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use ahash::{AHashMap, AHashSet};

use super::classes::JointColumn;
use super::guarantee::at_least;
use super::keys::BucketOffsets;
use super::part::{ParsedColumn, ParsedPart};
use super::tree::CellTree;
use super::{CheckLog, CheckName, Evidence};
use crate::microdata::{
    Attr, AttrSet, CellInterval, CellShape, Column, Domain, SUPPRESSED_CELL, Taxonomy, parse_set, write_set,
};
use crate::publication::{
    CellContent, EnforcedBy, EnforcedRule, Guarantee, Part, Protected, PublishedColumn, PublishedTable, TableGuard,
    TableProtection, TableWitness,
};

/// The attributes of a table whose cells stand for several values.
pub(super) fn shared(table: &PublishedTable) -> AttrSet {
    let columns = table.parts.iter().flat_map(|part| &part.columns);
    columns.filter(|column| column.cells != CellContent::Exact).map(|column| column.attribute).collect()
}

/// Whether the shape of a generalized table is one that this audit reads.
pub(super) fn claimed(evidence: &Evidence<'_>, table: &PublishedTable) -> Result<(), String> {
    let [part] = &table.parts[..] else {
        return Err("generalized cells stand in one part".to_owned());
    };
    if part.bucketed {
        return Err("generalized cells do not stand in buckets".to_owned());
    }
    let bare = |column: &&PublishedColumn| {
        matches!(column.cells, CellContent::Node { .. })
            && evidence.taxonomies.iter().all(|stated| stated.attribute != column.attribute)
    };
    if let Some(column) = part.columns.iter().find(bare) {
        return Err(format!("no taxonomy of {} is stated, whose nodes are published", evidence.name(column.attribute)));
    }
    let (shared, attributes) = (shared(table), super::gnf::LiteralTable::of(table).attributes);
    match &table.standing {
        TableProtection::Plain => return Err("a plain table holds exact values".to_owned()),
        TableProtection::Unsealed => {}
        TableProtection::Sealed(seals) => {
            for seal in seals {
                let Protected::Attribute(attr) = seal.protects else {
                    return Err("a generalized table seals single attributes".to_owned());
                };
                // of two exact columns each tells of the other
                if !attributes.without(attr).is_subset(shared) || seal.known != attributes.without(attr) {
                    let others = evidence.list(attributes.without(attr).minus(shared));
                    return Err(format!("{} is sealed beside exact values of {others}", evidence.name(attr)));
                }
            }
        }
    }
    let leaning = evidence.publication.rules.iter().filter(|rule| leans(rule, table));
    for rule in leaning {
        let exact = rule.known.intersection(attributes).minus(shared);
        if !exact.is_empty() {
            return Err(format!("{} are known and not generalized", evidence.list(exact)));
        }
    }
    Ok(())
}

fn leans(rule: &EnforcedRule, table: &PublishedTable) -> bool {
    matches!(&rule.held_by, EnforcedBy::Table(name) if *name == table.name)
}

/// What every class is to keep: the seals, or, in an unsealed table, the rules that it holds.
pub(super) fn promised(evidence: &Evidence<'_>, table: &PublishedTable) -> Vec<TableGuard> {
    if let TableProtection::Sealed(seals) = &table.standing {
        // all rows of a class agree in what is known
        return seals.iter().map(|seal| TableGuard { known: AttrSet::EMPTY, ..seal.clone() }).collect();
    }
    let mut promised: Vec<TableGuard> = Vec::new();
    for rule in evidence.publication.rules.iter().filter(|rule| leans(rule, table) && rule.protects != Protected::Rows)
    {
        match promised.iter_mut().find(|seal| seal.protects == rule.protects) {
            Some(seal) => seal.guarantees.push(rule.guarantee),
            None => promised.push(TableGuard {
                known: AttrSet::EMPTY,
                protects: rule.protects,
                guarantees: vec![rule.guarantee],
            }),
        }
    }
    promised
}

/// Whether the publication is one unsealed table that lists such a rule as its own: its classes are held to it.
pub(super) fn keeps_alone(evidence: &Evidence<'_>, known: AttrSet, sensitive: Attr, guarantee: Guarantee) -> bool {
    let [table] = &evidence.publication.tables[..] else { return false };
    let keeps = |rule: &EnforcedRule| {
        leans(rule, table)
            && rule.protects == Protected::Attribute(sensitive)
            && known.is_subset(rule.known)
            && at_least(rule.guarantee, guarantee)
    };
    table.standing == TableProtection::Unsealed
        && table.is_generalized()
        && evidence.publication.rules.iter().any(keeps)
}

/// Whether no table shows exact values of what is known: classes are then held to k-anonymity.
pub(super) fn hides(evidence: &Evidence<'_>, known: AttrSet) -> Result<(), String> {
    for table in &evidence.publication.tables {
        let exact = known.intersection(super::gnf::LiteralTable::of(table).attributes).minus(shared(table));
        if !exact.is_empty() {
            return Err(format!("table {} shows exact values of {}", table.name, evidence.list(exact)));
        }
    }
    Ok(())
}

/// Labels the rows of a part by their class.
pub(super) fn label(table: &PublishedTable, part: &mut ParsedPart) {
    let Some(joint) = JointColumn::of(part, shared(table)) else { return };
    let labels: Vec<u32> = joint.codes.iter().map(|code| code + 1).collect();
    part.buckets = BucketOffsets::count(&labels);
    part.labels = Some(labels);
}

/// Every class has as many rows as k-anonymity asks for, by the rules that were submitted or are listed.
pub(super) fn anonymity(
    evidence: &Evidence<'_>,
    table: &PublishedTable,
    buckets: &BucketOffsets,
    findings: &mut CheckLog,
) {
    let submitted = evidence.submitted.iter().map(|rule| rule.guarantee);
    let listed = evidence.publication.rules.iter().map(|rule| rule.guarantee);
    let asked = submitted.chain(listed).filter_map(|guarantee| match guarantee {
        Guarantee::KAnonymity { k } => Some(k),
        _ => None,
    });
    let Some(k) = asked.max() else { return };
    let small = buckets.ranges().filter(|range| !range.is_empty() && (range.len() as u64) < k).count();
    if small > 0 {
        findings.fail(CheckName::Guarantee, format!("table {}: {small} classes have fewer than {k} rows", table.name));
    }
}

/// What the cells of a column speak of: the values of the original, and the tree above them where cells are nodes.
struct CellDomain<'a> {
    shape: CellShape,
    domain: &'a Domain,
    above: Option<CellTree>,
}

impl<'a> CellDomain<'a> {
    /// `None` where cells are nodes and there is no tree above all values.
    fn of(shape: CellShape, tree: Option<&Taxonomy>, domain: &'a Domain) -> Option<Self> {
        let above = match shape {
            CellShape::Node => Some(CellTree::of(tree?, Some(domain.kind()), domain.iter())?),
            CellShape::Exact | CellShape::Interval | CellShape::Set | CellShape::Suppressed => None,
        };
        Some(Self { shape, domain, above })
    }
}

/// What a cell says, in codes of the original's domain.
enum CellMeaning {
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
    fn read(ground: &CellDomain<'_>, cell: Option<&[u8]>) -> Option<Self> {
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

    fn covers(&self, code: u32, ground: &CellDomain<'_>) -> bool {
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
    fn is_tight(&self, codes: &[u32], ground: &CellDomain<'_>) -> bool {
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

/// Holds a labelled part against the original: every row stands where the witness says, its exact values as they are, the others
/// covered by their cells, and cells say no more than the values of their class.
pub(super) fn content(
    evidence: &Evidence<'_>,
    index: usize,
    part: &ParsedPart,
    claimed: &Part,
    place: &str,
    findings: &mut CheckLog,
) {
    for column in
        part.columns.iter().zip(&claimed.columns).filter(|(_, claimed)| claimed.cells.shape() == CellShape::Node)
    {
        let (column, name) = (column.0, evidence.name(column.0.attribute));
        let stated = evidence.taxonomies.iter().find(|stated| stated.attribute == column.attribute);
        let (Some(stated), Some(cells)) = (stated, &column.cells) else { continue };
        let strange = unknown_labels(&stated.tree, cells.iter().map(Option::as_deref));
        if strange > 0 {
            findings.fail(
                CheckName::Dictionary,
                format!("{place}: {strange} cells of {name} are no nodes of its taxonomy"),
            );
        }
    }
    let Some(original) = evidence.original else { return };
    if part.rows != original.rows() {
        let detail = format!("{place}: it does not have a row for each row of the original");
        return findings.fail(CheckName::Content, detail);
    }
    let mut meanings: Vec<Option<(Vec<CellMeaning>, CellDomain<'_>)>> = Vec::new();
    for (column, claimed) in part.columns.iter().zip(&claimed.columns) {
        let domain = &original.column(column.attribute).domain;
        let says = column.cells.as_ref().map(|cells| {
            let stated = evidence.taxonomies.iter().find(|stated| stated.attribute == column.attribute);
            let ground = CellDomain::of(claimed.cells.shape(), stated.map(|stated| stated.tree.as_ref()), domain)?;
            let cells = cells.iter().map(|cell| CellMeaning::read(&ground, cell.as_deref()));
            Some((cells.collect::<Option<Vec<CellMeaning>>>()?, ground))
        });
        if matches!(says, Some(None)) {
            let name = evidence.name(column.attribute);
            let detail = format!("{place}: cells of {name} are not made of values of the original");
            findings.fail(CheckName::Dictionary, detail);
            return findings.fail(CheckName::Content, format!("{place}: its cells could not be told"));
        }
        meanings.push(says.flatten());
    }
    let columns: Vec<(&ParsedColumn, Option<ColumnMeaning<'_>>, &Column)> = part
        .columns
        .iter()
        .zip(&meanings)
        .map(|(column, says)| {
            let meaning = says.as_ref().map(|(says, ground)| (says.as_slice(), ground));
            (column, meaning, original.column(column.attribute))
        })
        .collect();
    match evidence.witness.map(|witness| witness.tables.get(index)) {
        Some(Some(TableWitness::Rows(places))) => linked(evidence, places, part, &columns, place, findings),
        Some(_) => findings.fail(CheckName::Content, format!("{place}: the assignment of rows is of another kind")),
        None => unlinked(evidence, part.rows, &columns, place, findings),
    }
}

/// What each cell of a column says, and of what.
type ColumnMeaning<'a> = (&'a [CellMeaning], &'a CellDomain<'a>);

fn linked(
    evidence: &Evidence<'_>,
    places: &[u32],
    part: &ParsedPart,
    columns: &[(&ParsedColumn, Option<ColumnMeaning<'_>>, &Column)],
    place: &str,
    findings: &mut CheckLog,
) {
    let mut taken = vec![false; part.rows];
    let fresh = |&at: &u32| taken.get_mut(at as usize).is_some_and(|taken| !std::mem::replace(taken, true));
    if places.len() != part.rows || !places.iter().all(fresh) {
        return findings.fail(CheckName::Content, format!("{place}: rows do not stand each in a place of its own"));
    }
    let labels = part.labels.as_deref().unwrap_or_default();
    for (column, says, original) in columns {
        let name = evidence.name(column.attribute);
        let cells = || places.iter().map(|&at| column.codes.get(at as usize)).zip(original.codes.iter());
        let Some((says, ground)) = says else {
            let wrong = cells().filter(|(cell, code)| cell != code).count();
            if wrong > 0 {
                findings.fail(CheckName::Content, format!("{place}: {wrong} rows have another value of {name}"));
            }
            continue;
        };
        let wrong = cells().filter(|(cell, code)| !says[*cell as usize].covers(*code, ground)).count();
        if wrong > 0 {
            let detail = format!("{place}: {wrong} rows have a value of {name} that their cell does not cover");
            findings.fail(CheckName::Content, detail);
        }
        // class, cell and code of every row
        let class = |at: u32| labels.get(at as usize).copied().unwrap_or(0);
        let mut classes: Vec<(u32, u32, u32)> =
            places.iter().zip(cells()).map(|(&at, (cell, code))| (class(at), cell, code)).collect();
        classes.sort_unstable();
        classes.dedup();
        let mut codes = Vec::new();
        let loose = classes.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|class| {
            codes.clear();
            codes.extend(class.iter().map(|(_, _, code)| *code));
            !says[class[0].1 as usize].is_tight(&codes, ground)
        });
        let loose = loose.count();
        if loose > 0 {
            let detail = format!("{place}: in {loose} classes cells of {name} say other than the values of their rows");
            findings.fail(CheckName::Dictionary, detail);
        }
    }
}

/// What can be said when it is not told which row stands where: exact values are those of the original, together, and the rows
/// can be dealt to the cells of each generalized attribute so that every cell covers the value of its row.
fn unlinked(
    evidence: &Evidence<'_>,
    rows: usize,
    columns: &[(&ParsedColumn, Option<ColumnMeaning<'_>>, &Column)],
    place: &str,
    findings: &mut CheckLog,
) {
    let mut numbers: [Vec<u32>; 2] = [vec![0; rows], vec![0; rows]];
    let mut exact: BTreeSet<u32> = BTreeSet::new();
    for (column, says, original) in columns {
        let Some((says, ground)) = says else {
            let mut pairs: AHashMap<(u32, u32), u32> = AHashMap::new();
            for (numbers, codes) in numbers.iter_mut().zip([&column.codes, &original.codes]) {
                for (number, code) in numbers.iter_mut().zip(codes.iter()) {
                    let next = pairs.len() as u32;
                    *number = *pairs.entry((*number, code)).or_insert(next);
                }
            }
            exact.insert(u32::from(column.attribute.0));
            continue;
        };
        let mut held = vec![0_u64; says.len()];
        column.codes.iter().for_each(|cell| held[cell as usize] += 1);
        let short = uncovered_rows(says, ground, &held, &original.counts());
        if short > 0 {
            let name = evidence.name(column.attribute);
            let detail = format!("{place}: for the values of {name} in {short} rows there are not enough cells");
            findings.fail(CheckName::Content, detail);
        }
    }
    numbers.iter_mut().for_each(|numbers| numbers.sort_unstable());
    if !exact.is_empty() && numbers[0] != numbers[1] {
        findings.fail(CheckName::Content, format!("{place}: its exact values are not those of the original"));
    }
}

/// How many of these cells are no nodes of a tree.
pub(super) fn unknown_labels<'c>(tree: &Taxonomy, cells: impl Iterator<Item = Option<&'c [u8]>>) -> usize {
    let labels: AHashSet<Option<&[u8]>> =
        (0..tree.len() as u32).map(|node| tree.label(node).map(str::as_bytes)).collect();
    cells.filter(|cell| !labels.contains(cell)).count()
}

/// How many rows of an original have a value that no cell of a column is left for; `None` where its cells are not made of values.
pub(super) fn uncovered_rows_of(
    shape: CellShape,
    tree: Option<&Taxonomy>,
    cells: &Column,
    original: &Column,
) -> Option<u64> {
    let ground = CellDomain::of(shape, tree, &original.domain)?;
    let says =
        cells.domain.iter().map(|cell| CellMeaning::read(&ground, cell)).collect::<Option<Vec<CellMeaning>>>()?;
    Some(uncovered_rows(&says, &ground, &cells.counts(), &original.counts()))
}

/// How many rows have a value that no cell is left for, however rows are dealt to cells: `held` says how many rows show a cell,
/// `counts` how many have a value. Exact for intervals and nodes; for sets each value is looked at by itself.
fn uncovered_rows(says: &[CellMeaning], ground: &CellDomain<'_>, held: &[u64], counts: &[u64]) -> u64 {
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

#[cfg(test)]
mod tests;
