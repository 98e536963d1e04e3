//! COUNT queries over a generalized table: a row is uniformly distributed over its box.
//!
//! An interval of integers, dates or times holds all of them between its ends. One of decimals is continuous. One of texts holds
//! the values that some cell of the attribute names. An interval with the missing value begins at the smallest published end. A
//! taxonomy node holds the leaves below it.
//!
//! See `docs/spec/generalize.md#count-estimator`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::cells::ModelError;
use super::messages::{ErrorModel, Estimate};
use super::part_source::PartSource;
use crate::control::{Cancelled, Control};
use crate::microdata::{
    Arena, Attr, AttrSet, AttributeType, CellInterval, CellShape, Domain, Interner, Table, Taxonomy, ValueSelection,
    parse_date, parse_integer, parse_local_timestamp, parse_set, parse_timestamp,
};
use crate::publication::{DeclaredTaxonomy, PublishedBytes, PublishedColumn, PublishedTable};

/// What the cells of a generalized table mean.
#[derive(Clone, Copy)]
pub struct BoxMeaning<'a> {
    /// Type of the values in the cells of each attribute.
    pub kinds: &'a [Option<AttributeType>],
    /// Taxonomies whose nodes stand in cells.
    pub taxonomies: &'a [DeclaredTaxonomy],
}

/// Rows of a generalized table.
pub struct Boxes {
    parts: Vec<PartBoxes>,
}

/// Rows of a part.
struct PartBoxes {
    rows: usize,
    /// Bucket of each row, from 0; `None` for a part without buckets.
    labels: Vec<u32>,
    columns: Vec<(Attr, BoxColumn)>,
}

/// Equal rows of a part.
struct BoxClass {
    /// The first of them.
    first: usize,
    rows: u64,
}

struct BoxColumn {
    /// Cell of each row.
    codes: Vec<u32>,
    cells: Vec<BoxCell>,
    /// Values that cells name, in their order, after the missing value.
    named: Domain,
}

/// Meaning of a cell, in codes of the named values.
enum BoxCell {
    /// One value.
    Exact(u32),
    /// All values between two ends; with the missing value if there is no first end.
    Between(Option<u32>, u32),
    /// A set of values.
    Among(Vec<u32>),
}

impl Boxes {
    /// Reads the wanted attributes of a table.
    ///
    /// # Errors
    /// [`ModelError`]
    pub fn read(
        table: &PublishedTable,
        wanted: AttrSet,
        meaning: BoxMeaning<'_>,
        parts: &dyn PublishedBytes,
        control: &Control,
    ) -> Result<Self, ModelError> {
        let source = |part| PartSource { table: &table.name, part, wanted, parts };
        let read = |part| PartBoxes::read(source(part), meaning, control);
        Ok(Self { parts: table.parts.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Attributes whose cells are informative. A suppressed one reveals not even its values.
    #[must_use]
    pub fn revealed(&self) -> AttrSet {
        self.parts.iter().flat_map(|part| part.columns.iter().map(|(attr, _)| *attr)).collect()
    }

    /// Expected number of rows that match a conjunction of selections. In a bucket, each row of a part may belong to each row of
    /// the others.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn estimate(&self, query: &[ValueSelection], control: &Control) -> Result<Estimate, Cancelled> {
        control.check()?;
        let asked = |part: &&PartBoxes| {
            query.iter().any(|selection| part.columns.iter().any(|(attr, _)| *attr == selection.attribute))
        };
        let of_parts: Vec<&PartBoxes> = self.parts.iter().filter(asked).collect();
        let shares = match &of_parts[..] {
            [] => vec![1.0; self.parts.first().map_or(0, |part| part.rows)],
            [only] => only.shares(query, control)?,
            several => return tied(several, query, control),
        };
        Ok(match shares.iter().all(|share| *share == 0.0 || *share == 1.0) {
            true => Estimate { count: shares.iter().sum(), standard_error: 0.0, error_model: ErrorModel::Exact },
            false => expected(shares.into_iter().map(|chance| EqualRows { rows: 1.0, chance })),
        })
    }
}

/// Largest number of comparisons of values with cells and classes.
const MAX_COMPARISONS_PER_QUERY: u64 = 1 << 26;
const MAX_MEMOIZED_COMPARISONS: u64 = 1 << 31;

impl Boxes {
    /// Cross entropy between the original and the boxes, in nats for each row.
    ///
    /// A row is in one leaf of its box, and all leaves are equally likely. Infinite where a row is in no box; `None` for tables
    /// in buckets, or with too many boxes.
    ///
    /// # Errors
    /// [`Cancelled`]
    pub fn surprise(&self, original: &Table, control: &Control) -> Result<Option<f64>, Cancelled> {
        let [part] = &self.parts[..] else { return Ok(None) };
        if !part.labels.is_empty() {
            return Ok(None);
        }
        let classes = part.classes();
        let domain = |attr: Attr| &original.column(attr).domain;
        let sum = |per_value: &dyn Fn(&BoxColumn) -> usize| -> u64 {
            let of_column = |(attr, column): &(Attr, BoxColumn)| (domain(*attr).len() * per_value(column)) as u64;
            part.columns.iter().map(of_column).sum()
        };
        if sum(&|column| column.cells.len()) > MAX_COMPARISONS_PER_QUERY
            || sum(&|_| classes.len()) > MAX_MEMOIZED_COMPARISONS
        {
            return Ok(None);
        }
        let mut chances = LeafChances::new(part, &classes, original, control)?;
        let mut known: HashMap<Vec<u32>, f64> = HashMap::new();
        let mut nats = 0.0;
        for row in 0..original.rows() {
            if row.is_multiple_of(Control::STRIDE / 64) {
                control.check()?;
            }
            let tuple: Vec<u32> = part.columns.iter().map(|(attr, _)| original.column(*attr).codes.get(row)).collect();
            nats -= known.entry(tuple).or_insert_with_key(|tuple| chances.of_tuple(tuple)).ln();
        }
        Ok(Some(nats / original.rows().max(1) as f64))
    }
}

/// Probabilities of the leaves of boxes.
struct LeafChances {
    /// Probability of one leaf of each box.
    chances: Vec<f64>,
    /// By column and value, the boxes that hold it, as bits.
    having: Vec<Vec<Vec<u64>>>,
    /// Memory for the boxes that hold a tuple.
    in_all: Vec<u64>,
}

impl LeafChances {
    fn new(part: &PartBoxes, classes: &[BoxClass], original: &Table, control: &Control) -> Result<Self, Cancelled> {
        let mut chances: Vec<f64> = classes.iter().map(|class| class.rows as f64 / part.rows as f64).collect();
        let mut having: Vec<Vec<Vec<u64>>> = Vec::with_capacity(part.columns.len());
        for (attribute, column) in &part.columns {
            let domain = &original.column(*attribute).domain;
            let mut share_of: Vec<f64> = vec![0.0; column.cells.len()];
            let mut of_values = Vec::with_capacity(domain.len());
            for value in domain.iter() {
                control.check()?;
                let among = Some(vec![value.map(<[u8]>::to_vec)]);
                let only = ValueSelection { attribute: *attribute, among, from: None, to: None };
                let asked = BoxPredicate::new(column, &[&only]);
                let shares: Vec<f64> = column.cells.iter().map(|cell| column.share(cell, &asked)).collect();
                let mut has = vec![0_u64; classes.len().div_ceil(64)];
                for (at, class) in classes.iter().enumerate() {
                    if shares[column.codes[class.first] as usize] > 0.0 {
                        has[at / 64] |= 1 << (at % 64);
                    }
                }
                share_of.iter_mut().zip(shares).for_each(|(known, share)| *known = known.max(share));
                of_values.push(has);
            }
            for (chance, class) in chances.iter_mut().zip(classes) {
                *chance *= share_of[column.codes[class.first] as usize];
            }
            having.push(of_values);
        }
        Ok(Self { chances, having, in_all: Vec::new() })
    }

    /// Probability of a tuple of the original.
    fn of_tuple(&mut self, tuple: &[u32]) -> f64 {
        let Self { chances, having, in_all } = self;
        in_all.clear();
        in_all.resize(chances.len().div_ceil(64), u64::MAX);
        for (of_values, code) in having.iter().zip(tuple) {
            in_all.iter_mut().zip(&of_values[*code as usize]).for_each(|(all, has)| *all &= has);
        }
        let boxes = chances.iter().enumerate().filter(|(at, _)| in_all[at / 64] >> (at % 64) & 1 == 1);
        boxes.map(|(_, chance)| chance).sum()
    }
}

/// Number of rows of each bucket that match in every part.
fn tied(parts: &[&PartBoxes], query: &[ValueSelection], control: &Control) -> Result<Estimate, Cancelled> {
    let mut sizes: Vec<f64> = Vec::new();
    let mut products: Vec<f64> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let shares = part.shares(query, control)?;
        let buckets = part.labels.iter().max().map_or(0, |last| *last as usize + 1);
        let (mut rows, mut sums) = (vec![0.0; buckets], vec![0.0; buckets]);
        for (&label, share) in part.labels.iter().zip(shares) {
            rows[label as usize] += 1.0;
            sums[label as usize] += share;
        }
        let of_bucket = |(sum, rows): (&f64, &f64)| if *rows > 0.0 { sum / rows } else { 0.0 };
        let here: Vec<f64> = sums.iter().zip(&rows).map(of_bucket).collect();
        if at == 0 {
            (sizes, products) = (rows, here);
        } else {
            products.iter_mut().zip(here).for_each(|(product, here)| *product *= here);
        }
    }
    Ok(expected(sizes.into_iter().zip(products).map(|(rows, chance)| EqualRows { rows, chance })))
}

/// Rows that match with the same probability.
struct EqualRows {
    rows: f64,
    chance: f64,
}

/// Expected number of rows, each with a probability of its own.
fn expected(of: impl Iterator<Item = EqualRows>) -> Estimate {
    let (count, variance) = of.fold((0.0, 0.0), |(count, variance), EqualRows { rows, chance }| {
        (count + rows * chance, variance + rows * chance * (1.0 - chance))
    });
    Estimate { count, standard_error: f64::sqrt(variance), error_model: ErrorModel::Multinomial }
}

impl PartBoxes {
    fn read(source: PartSource<'_>, meaning: BoxMeaning<'_>, control: &Control) -> Result<Self, ModelError> {
        let wanted = source.columns();
        let mut texts: Vec<Interner> = wanted.iter().map(|_| Interner::default()).collect();
        // cell of each row; 0 is an empty one
        let mut codes: Vec<Vec<u32>> = wanted.iter().map(|_| Vec::new()).collect();
        let labels = source.read(control, |number, cells| {
            let texts = &mut texts[number];
            let known: Vec<u32> = cells.values().iter().map(|text| texts.intern(text) + 1).collect();
            let code = |code: u32| code.checked_sub(1).map_or(0, |at| known[at as usize]);
            codes[number].extend(cells.codes().iter().map(code));
        })?;
        let mut columns = Vec::with_capacity(wanted.len());
        for ((at, mut texts), codes) in wanted.into_iter().zip(texts).zip(codes) {
            let column = &source.part.columns[at];
            if column.cells.shape() != CellShape::Suppressed {
                let read = BoxColumn::from_texts(column, meaning, codes, &texts.take());
                columns.push((column.attribute, read.ok_or_else(|| source.broken())?));
            }
        }
        Ok(Self { rows: source.part.len as usize, labels, columns })
    }

    /// Kinds of rows. Equal rows are adjacent.
    fn classes(&self) -> Vec<BoxClass> {
        let mut classes: Vec<BoxClass> = Vec::new();
        let alike = |a: usize, b: usize| self.columns.iter().all(|(_, column)| column.codes[a] == column.codes[b]);
        for row in 0..self.rows {
            match classes.last_mut() {
                Some(class) if alike(class.first, row) => class.rows += 1,
                _ => classes.push(BoxClass { first: row, rows: 1 }),
            }
        }
        classes
    }

    /// Share of each row's box that matches a conjunction of selections.
    fn shares(&self, query: &[ValueSelection], control: &Control) -> Result<Vec<f64>, Cancelled> {
        control.check()?;
        let mut by_attribute: BTreeMap<Attr, Vec<&ValueSelection>> = BTreeMap::new();
        query.iter().for_each(|selection| by_attribute.entry(selection.attribute).or_default().push(selection));
        let mut shares = vec![1.0_f64; self.rows];
        for (attr, selections) in by_attribute {
            let Some((_, column)) = self.columns.iter().find(|(of, _)| *of == attr) else { continue };
            let asked = BoxPredicate::new(column, &selections);
            let of_cells: Vec<f64> = column.cells.iter().map(|cell| column.share(cell, &asked)).collect();
            for (share, &code) in shares.iter_mut().zip(&column.codes) {
                *share *= of_cells[code as usize];
            }
        }
        Ok(shares)
    }
}

/// Values that a cell names: one, the ends of an interval, or all of a set.
fn read_cell(shape: CellShape, text: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    match shape {
        CellShape::Exact => Some(vec![Some(text.to_vec())]),
        CellShape::Interval => {
            let span = CellInterval::parse(text)?;
            Some(vec![span.from.map(Cow::into_owned), Some(span.to.into_owned())])
        }
        CellShape::Set => parse_set(text).filter(|values| !values.is_empty()),
        CellShape::Node | CellShape::Suppressed => None,
    }
}

/// A selection on an attribute.
struct BoxPredicate {
    /// Whether each named value is selected.
    named: Vec<bool>,
    /// Selected integers, if all integers between two ends are known.
    whole: Option<Integrality>,
    /// Selected range of decimals.
    stretch: Option<(f64, f64)>,
}

enum Integrality {
    /// A range of integers, both ends included.
    Stretch(i128, i128),
    /// Listed integers, rising.
    Listed(Vec<i128>),
}

impl BoxPredicate {
    fn new(column: &BoxColumn, selections: &[&ValueSelection]) -> Self {
        let mut named = vec![true; column.named.len()];
        for selection in selections {
            named.iter_mut().zip(selection.codes(&column.named)).for_each(|(all, admitted)| *all &= admitted);
        }
        let kind = column.named.kind();
        let listed = selections.iter().any(|selection| selection.among.is_some());
        let bounds =
            |from: bool| selections.iter().filter_map(move |s| if from { s.from.as_deref() } else { s.to.as_deref() });
        let whole = is_whole(kind).then(|| {
            let low = bounds(true).filter_map(|bound| inside(kind, bound, true)).max().unwrap_or(i128::MIN / 4);
            let high = bounds(false).filter_map(|bound| inside(kind, bound, false)).min().unwrap_or(i128::MAX / 4);
            let mut among: Option<BTreeSet<i128>> = None;
            for values in selections.iter().filter_map(|selection| selection.among.as_ref()) {
                let numbers = values.iter().flatten().filter_map(|value| number(kind, value));
                let numbers = numbers.filter(|number| (low..=high).contains(number));
                let numbers = numbers.filter(|number| among.as_ref().is_none_or(|among| among.contains(number)));
                among = Some(numbers.collect());
            }
            among.map_or(Integrality::Stretch(low, high), |among| Integrality::Listed(among.into_iter().collect()))
        });
        let stretch = (kind.has_spellings() && !listed).then(|| {
            let low = bounds(true).filter_map(real).fold(f64::NEG_INFINITY, f64::max);
            (low, bounds(false).filter_map(real).fold(f64::INFINITY, f64::min))
        });
        Self { named, whole, stretch }
    }
}

impl Integrality {
    /// Number of selected integers between two numbers, both included.
    fn between(&self, low: i128, high: i128) -> f64 {
        match self {
            Self::Stretch(from, to) => ((*to).min(high) - (*from).max(low) + 1).max(0) as f64,
            Self::Listed(numbers) => {
                let below = |limit: i128| numbers.partition_point(|number| *number < limit);
                (below(high + 1) - below(low)) as f64
            }
        }
    }
}

impl BoxColumn {
    /// The column of these texts; `None` if they are not cells of the published column.
    fn from_texts(column: &PublishedColumn, meaning: BoxMeaning<'_>, codes: Vec<u32>, texts: &Arena) -> Option<Self> {
        let kind = meaning.kinds.get(column.attribute.index()).copied().flatten().unwrap_or(AttributeType::Text);
        let shape = column.cells.shape();
        if shape == CellShape::Node {
            let taxonomy = meaning.taxonomies.iter().find(|declared| declared.attribute == column.attribute)?;
            return Self::of_nodes(kind, &taxonomy.tree, codes, texts.iter());
        }
        let written: Vec<Vec<Option<Vec<u8>>>> =
            texts.iter().map(|text| read_cell(shape, text)).collect::<Option<_>>()?;
        Self::new(kind, shape, codes, &written)
    }

    /// A column of cells that name these values; `None` if their type or order is wrong.
    fn new(kind: AttributeType, shape: CellShape, codes: Vec<u32>, written: &[Vec<Option<Vec<u8>>>]) -> Option<Self> {
        let mut values: Vec<&Vec<u8>> = written.iter().flatten().flatten().collect();
        if !values.iter().all(|value| kind.admits(value)) {
            return None;
        }
        values.sort_unstable_by(|a, b| kind.compare(Some(a), Some(b)));
        values.dedup();
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value));
        let code = |value: &Option<Vec<u8>>| match value {
            None => 0,
            Some(value) => values.partition_point(|other| kind.compare(Some(other), Some(value)).is_lt()) as u32 + 1,
        };
        let cell = |named: &Vec<Option<Vec<u8>>>| match (shape, &named[..]) {
            (CellShape::Exact, [value]) => Some(BoxCell::Exact(code(value))),
            (CellShape::Interval, [from, to]) => {
                let (from, to) = (from.is_some().then(|| code(from)), code(to));
                (from.is_none_or(|from| from <= to)).then_some(BoxCell::Between(from, to))
            }
            (CellShape::Set, values) => Some(BoxCell::Among(values.iter().map(code).collect())),
            _ => None,
        };
        // an empty cell is the missing value
        let cells = std::iter::once(Some(BoxCell::Exact(0))).chain(written.iter().map(cell)).collect::<Option<_>>()?;
        let named = Domain::from_sorted(kind, true, arena);
        Some(Self { codes, cells, named })
    }

    /// A column of taxonomy nodes; `None` if a cell is not a node. A leaf that is no value of the type stands for no row.
    fn of_nodes<'t>(
        kind: AttributeType,
        tree: &Taxonomy,
        codes: Vec<u32>,
        texts: impl Iterator<Item = &'t [u8]>,
    ) -> Option<Self> {
        let label = |leaf: &u32| tree.label(*leaf).map(str::as_bytes);
        let mut values: Vec<&[u8]> =
            tree.leaves().iter().filter_map(label).filter(|value| kind.admits(value)).collect();
        values.sort_unstable_by(|a, b| kind.compare(Some(a), Some(b)));
        values.dedup();
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value));
        // by the rank of the leaf
        let code = |leaf: &u32| match label(leaf) {
            None => Some(0),
            Some(value) => {
                let found = values.binary_search_by(|other| kind.compare(Some(other), Some(value)));
                found.ok().map(|at| at as u32 + 1)
            }
        };
        let places: Vec<Option<u32>> = tree.leaves().iter().map(code).collect();
        let below = |node: u32| {
            let range = tree.leaf_range(node);
            let mut below: Vec<u32> =
                places[range.start as usize..range.end as usize].iter().flatten().copied().collect();
            below.sort_unstable();
            below
        };
        let nodes: HashMap<&[u8], u32> =
            (0..tree.len() as u32).filter_map(|node| Some((tree.label(node)?.as_bytes(), node))).collect();
        let cell = |text: &[u8]| {
            let below = below(*nodes.get(text)?);
            (!below.is_empty()).then_some(BoxCell::Among(below))
        };
        let cells = std::iter::once(Some(BoxCell::Exact(0))).chain(texts.map(cell)).collect::<Option<_>>()?;
        Some(Self { codes, cells, named: Domain::from_sorted(kind, true, arena) })
    }

    /// Share of a cell's box that is selected.
    fn share(&self, cell: &BoxCell, asked: &BoxPredicate) -> f64 {
        let counts = |code: u32| f64::from(u8::from(asked.named[code as usize]));
        let (from, to) = match cell {
            BoxCell::Exact(code) => return counts(*code),
            BoxCell::Among(codes) => return codes.iter().map(|&code| counts(code)).sum::<f64>() / codes.len() as f64,
            BoxCell::Between(from, to) => (from, *to),
        };
        // the missing value is one leaf of the box
        let (places, hit) = if from.is_none() { (1.0, counts(0)) } else { (0.0, 0.0) };
        let first = from.unwrap_or(1);
        let of = |read: &dyn Fn(&[u8]) -> Option<i128>| {
            Some((self.named.value(first).and_then(read)?, self.named.value(to).and_then(read)?))
        };
        let kind = self.named.kind();
        if let (Some(whole), Some((low, high))) = (&asked.whole, of(&|value| number(kind, value))) {
            return (hit + whole.between(low, high)) / (places + (high - low + 1) as f64);
        }
        if let (Some((low, high)), Some(_)) = (asked.stretch, from)
            && let (Some(first), Some(last)) =
                (self.named.value(first).and_then(real), self.named.value(to).and_then(real))
            && first < last
        {
            return ((high.min(last) - low.max(first)) / (last - first)).clamp(0.0, 1.0);
        }
        let named = f64::from(to + 1 - first);
        (hit + (first..=to).map(counts).sum::<f64>()) / (places + named)
    }
}

/// Whether the values between two ends are enumerable.
const fn is_whole(kind: AttributeType) -> bool {
    matches!(
        kind,
        AttributeType::Integer | AttributeType::Date | AttributeType::Timestamp | AttributeType::LocalTimestamp
    )
}

fn number(kind: AttributeType, value: &[u8]) -> Option<i128> {
    match kind {
        AttributeType::Date => parse_date(value).map(i128::from),
        AttributeType::Timestamp => parse_timestamp(value).map(i128::from),
        AttributeType::LocalTimestamp => parse_local_timestamp(value).map(i128::from),
        _ => parse_integer(value).map(i128::from),
    }
}

/// The nearest integer inside a bound, which may be a decimal.
fn inside(kind: AttributeType, bound: &[u8], up: bool) -> Option<i128> {
    number(kind, bound).or_else(|| {
        let real = real(bound)?;
        Some(if up { real.ceil() } else { real.floor() } as i128)
    })
}

fn real(value: &[u8]) -> Option<f64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: AttributeType, shape: CellShape, cells: &[&str]) -> Boxes {
        let written: Vec<_> = cells.iter().map(|cell| read_cell(shape, cell.as_bytes()).expect("a cell")).collect();
        let codes = (1..=cells.len() as u32).collect();
        let column = BoxColumn::new(kind, shape, codes, &written).expect("a column");
        Boxes { parts: vec![PartBoxes { rows: cells.len(), labels: Vec::new(), columns: vec![(Attr(0), column)] }] }
    }

    fn asked(boxes: &Boxes, among: Option<&[Option<&str>]>, from: Option<&str>, to: Option<&str>) -> Estimate {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let selection = ValueSelection {
            attribute: Attr(0),
            among: among.map(|among| among.iter().map(|value| value.map(bytes)).collect()),
            from: from.map(bytes),
            to: to.map(bytes),
        };
        boxes.estimate(&[selection], &Control::default()).expect("not cancelled")
    }

    #[test]
    fn a_row_is_anywhere_in_its_box() {
        let ages = column(AttributeType::Integer, CellShape::Interval, &["10..19", "15..15", "..14", "30..33"]);
        let found = asked(&ages, None, Some("15"), Some("31"));
        // half of ten, all of one, none of five and the missing value, half of four
        assert_eq!((found.count, found.error_model), (2.0, ErrorModel::Multinomial));
        assert!((found.standard_error - 0.5_f64.sqrt()).abs() < 1e-12, "{found:?}");
        assert_eq!(asked(&ages, Some(&[None]), None, None).count, 1.0 / 6.0);
        assert_eq!(asked(&ages, Some(&[Some("12"), Some("15"), Some("99")]), None, None).count, 0.2 + 1.0 + 1.0 / 6.0);
        let sure = asked(&ages, None, Some("-5"), Some("100"));
        assert!((sure.count - (3.0 + 5.0 / 6.0)).abs() < 1e-12, "{sure:?}");
        assert_eq!(asked(&ages, None, Some("200"), None).error_model, ErrorModel::Exact);
        assert_eq!(asked(&ages, None, Some("14.5"), Some("15.5")).count, 0.1 + 1.0);
    }

    #[test]
    fn rows_of_a_bucket_are_adjacent() {
        let ages = column(AttributeType::Integer, CellShape::Interval, &["10..19", "10..19", "20..29", "20..29"]);
        let sexes = column(AttributeType::Text, CellShape::Exact, &["f", "m", "f", "f"]);
        let mut parts: Vec<PartBoxes> = ages.parts.into_iter().chain(sexes.parts).collect();
        parts[1].columns[0].0 = Attr(1);
        parts.iter_mut().for_each(|part| part.labels = vec![0, 0, 1, 1]);
        let boxes = Boxes { parts };
        let young = ValueSelection { attribute: Attr(0), among: None, from: None, to: Some(b"24".to_vec()) };
        let female =
            ValueSelection { attribute: Attr(1), among: Some(vec![Some(b"f".to_vec())]), from: None, to: None };
        let asked = |query: &[ValueSelection]| boxes.estimate(query, &Control::default()).expect("not cancelled");
        // all of the first bucket, of which half is f; half of the second, of which all is f
        let both = asked(&[young.clone(), female.clone()]);
        assert_eq!((both.count, both.error_model), (2.0, ErrorModel::Multinomial));
        assert!((both.standard_error - 1.0).abs() < 1e-12, "{both:?}");
        assert_eq!((asked(&[female]).count, asked(&[young]).count, asked(&[]).count), (3.0, 3.0, 4.0));
    }

    #[test]
    fn texts_and_sets_are_counted_by_the_values_that_are_named() {
        let jobs = column(AttributeType::Text, CellShape::Interval, &["a..c", "b..d", "d..d"]);
        assert_eq!(asked(&jobs, Some(&[Some("b"), Some("z")]), None, None).count, 1.0 / 3.0 + 1.0 / 3.0);
        let sets = column(AttributeType::Text, CellShape::Set, &["[null,\"a\"]", "[\"a\",\"b\",\"c\",\"d\"]"]);
        assert_eq!(asked(&sets, Some(&[Some("a"), None]), None, None).count, 1.25);
        assert_eq!(asked(&sets, None, None, Some("c")).count, 0.5 + 0.75);
        let prices = column(AttributeType::Decimal, CellShape::Interval, &["1.5..3.5", "2..2.0"]);
        assert_eq!(asked(&prices, None, None, Some("2")).count, 0.25 + 1.0);
        let days = column(AttributeType::Date, CellShape::Interval, &["2024-02-28..2024-03-02"]);
        assert_eq!(asked(&days, None, Some("2024-03-01"), None).count, 0.5);
    }
}
