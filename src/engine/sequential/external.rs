//! External tables as releases of a join: their rows as recorded, and labels that are placed exactly or refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::microdata::{AttributeType, CellInterval, CellShape, Column, SUPPRESSED_CELL, Table, Taxonomy, parse_set};
use crate::problem::{Fault, Kind};
use crate::publication::{EarlierColumn, EarlierRelease, RowCorrespondence};

/// An external table with its rows.
pub struct ExternalTableRows {
    /// The id of its disclosure.
    pub id: String,
    /// Its rows, under the names of its attributes.
    pub table: Table,
    /// The labels of each attribute that it publishes generalized; `None` is the missing value.
    pub cuts: BTreeMap<String, Vec<Option<String>>>,
    /// The correspondence of its rows with those of the new release.
    pub rows_of: RowCorrespondence,
}

/// Types and taxonomies of attributes in the other releases of a join.
#[derive(Default)]
pub struct JoinContext {
    /// The type of each attribute of the new release.
    pub kinds: BTreeMap<String, AttributeType>,
    /// Taxonomies of attributes; those of the new release come first.
    pub trees: BTreeMap<String, Arc<Taxonomy>>,
    /// The attributes of several releases.
    pub shared: BTreeSet<String>,
}

impl JoinContext {
    /// Adds the taxonomies of more releases, for attributes that have none.
    #[must_use]
    pub fn with(mut self, releases: &[EarlierRelease]) -> Self {
        for (name, tree) in releases.iter().flat_map(|release| &release.taxonomies) {
            self.trees.entry(name.clone()).or_insert_with(|| Arc::clone(tree));
        }
        self
    }
}

/// The shape, type and taxonomy of the cells of a column.
struct CellReading {
    shape: CellShape,
    kind: AttributeType,
    tree: Option<Arc<Taxonomy>>,
}

/// The release of a join that an external table is.
///
/// Cells of a cut are nodes of a taxonomy of another release, intervals, sets, or suppressed cells. Other cells are only compared
/// with each other, if no other release has the attribute.
///
/// # Errors
/// `bad-columns` at `pointer` for each attribute whose cells cannot be placed.
pub fn external_release(
    external: ExternalTableRows,
    context: &JoinContext,
    pointer: &str,
) -> Result<EarlierRelease, Vec<Fault>> {
    let ExternalTableRows { id, table, cuts, rows_of } = external;
    let (mut columns, mut taxonomies, mut faults) = (Vec::new(), BTreeMap::new(), Vec::new());
    for attr in table.attributes().iter() {
        let (name, cells) = (table.name(attr).to_owned(), table.column(attr).clone());
        let understood = match cuts.get(&name) {
            None => exact(&cells, context.trees.get(&name)),
            Some(cut) => generalized(&cells, cut, &name, context),
        };
        match understood {
            Ok(CellReading { shape, kind, tree }) => {
                taxonomies.extend(tree.map(|tree| (name.clone(), tree)));
                let (published, nodes) = (name.clone(), shape == CellShape::Node);
                columns.push(EarlierColumn { nodes, name, published, shape, kind, cells });
            }
            Err(detail) => {
                let fault = Fault::new(pointer, Kind::BadColumns, format!("of the external table, {name} {detail}"));
                faults.push(fault.with("attribute", name));
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(EarlierRelease {
        release: id,
        columns,
        rows: table.rows(),
        sequence: None,
        // an external table makes no promise
        alone: false,
        taxonomies,
        external: true,
        rows_of,
    })
}

fn exact(cells: &Column, tree: Option<&Arc<Taxonomy>>) -> Result<CellReading, String> {
    match tree.map(|tree| tree.bind(&cells.domain)) {
        Some(Err(holes)) => Err(format!(
            "has {} values that are no leaves of its taxonomy: if they are nodes, record the table with its cut",
            holes.missing
        )),
        _ => Ok(CellReading { shape: CellShape::Exact, kind: cells.domain.kind(), tree: None }),
    }
}

fn generalized(
    cells: &Column,
    cut: &[Option<String>],
    name: &str,
    context: &JoinContext,
) -> Result<CellReading, String> {
    let (tree, kind) = (context.trees.get(name), context.kinds.get(name).copied());
    let labels: BTreeSet<Option<&[u8]>> = cut.iter().map(|label| label.as_ref().map(String::as_bytes)).collect();
    let unknown = cells.domain.iter().filter(|cell| !labels.contains(cell)).count();
    if unknown > 0 {
        return Err(format!("has {unknown} labels outside the declared cut"));
    }
    if let Some(tree) = tree {
        let nodes: BTreeSet<Option<&[u8]>> =
            (0..tree.len() as u32).map(|node| tree.label(node).map(str::as_bytes)).collect();
        return match labels.iter().filter(|label| !nodes.contains(*label)).count() {
            0 => Ok(CellReading { shape: CellShape::Node, kind: cells.domain.kind(), tree: Some(Arc::clone(tree)) }),
            unknown => {
                Err(format!("has a cut with {unknown} labels that are no nodes of the taxonomy of the other releases"))
            }
        };
    }
    let spans: Option<Vec<CellInterval<'_>>> =
        labels.iter().flatten().map(|label| CellInterval::parse(label)).collect();
    match spans.filter(|spans| !spans.is_empty()) {
        None if labels.iter().all(|label| label.is_some_and(|label| parse_set(label).is_some())) => {
            Ok(CellReading { shape: CellShape::Set, kind: kind.unwrap_or(AttributeType::Text), tree: None })
        }
        None if labels.iter().all(|label| *label == Some(SUPPRESSED_CELL.as_bytes())) => {
            Ok(CellReading { shape: CellShape::Suppressed, kind: AttributeType::Text, tree: None })
        }
        // such cells are only compared with each other
        None if !context.shared.contains(name) => {
            Ok(CellReading { shape: CellShape::Exact, kind: cells.domain.kind(), tree: None })
        }
        None => Err("has a cut with labels that are neither intervals nor sets, and no other release has a taxonomy \
                     of which they are nodes"
            .to_owned()),
        Some(spans) => {
            let ends = || spans.iter().flat_map(|span| span.from.iter().chain([&span.to]));
            let admits = |kind: &AttributeType| ends().all(|end| kind.admits(end));
            let kind = kind.unwrap_or_else(|| ORDERED_TYPES.into_iter().find(admits).unwrap_or(AttributeType::Text));
            let rises = |span: &CellInterval<'_>| kind.compare(span.from.as_deref(), Some(&span.to)).is_le();
            if admits(&kind) && spans.iter().all(rises) {
                Ok(CellReading { shape: CellShape::Interval, kind, tree: None })
            } else {
                Err(format!("has a cut with labels that are no intervals of type {}", kind.name()))
            }
        }
    }
}

/// The types that intervals may have where no other release has the attribute, the narrowest first.
const ORDERED_TYPES: [AttributeType; 5] = [
    AttributeType::Integer,
    AttributeType::Decimal,
    AttributeType::Date,
    AttributeType::Timestamp,
    AttributeType::LocalTimestamp,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::formats::IngestLimits;
    use crate::microdata::taxonomy::TaxonomyBuilder;
    use crate::microdata::{ChunkColumn, ColumnBuilder, Interner};

    fn table(name: &str, cells: &[Option<&str>]) -> Table {
        let (mut interner, mut builder) = (Interner::default(), ColumnBuilder::new(&IngestLimits::default()));
        let code = |cell: &Option<&str>| cell.map_or(0, |cell| interner.intern(cell.as_bytes()) as u16 + 1);
        let codes: Vec<u16> = cells.iter().map(code).collect();
        builder.push(&ChunkColumn::new(interner.take(), &codes)).unwrap();
        Table::new(vec![name.to_owned()], vec![builder.finish(None)])
    }

    fn understood(
        cells: &[Option<&str>],
        cut: Option<&[Option<&str>]>,
        tree: Option<Arc<Taxonomy>>,
        kind: Option<AttributeType>,
        shared: bool,
    ) -> Result<EarlierRelease, Vec<Fault>> {
        let cut = cut.map(|labels| labels.iter().map(|label| label.map(str::to_owned)).collect());
        let external = ExternalTableRows {
            id: "e".into(),
            table: table("a", cells),
            cuts: cut.map(|cut| ("a".to_owned(), cut)).into_iter().collect(),
            rows_of: RowCorrespondence::Unknown,
        };
        let context = JoinContext {
            kinds: kind.map(|kind| ("a".to_owned(), kind)).into_iter().collect(),
            trees: tree.map(|tree| ("a".to_owned(), tree)).into_iter().collect(),
            shared: shared.then(|| "a".to_owned()).into_iter().collect(),
        };
        external_release(external, &context, "/method/against/0")
    }

    fn tree() -> Arc<Taxonomy> {
        let mut growing = TaxonomyBuilder::from_root("any");
        let root = growing.find(Some("any")).unwrap();
        for label in ["x", "y"] {
            growing.add(root, Some(label)).unwrap();
        }
        Arc::new(growing.finish().unwrap())
    }

    #[test]
    fn labels_are_nodes_intervals_or_plain_texts() {
        let shape = |release: Result<EarlierRelease, Vec<Fault>>| {
            release.map(|release| (release.columns[0].shape, release.columns[0].kind, release.taxonomies.len()))
        };
        let of = |cells: &[Option<&str>], cut: Option<&[Option<&str>]>, with_tree: bool, kind| {
            let read = understood(cells, cut, with_tree.then(tree), kind, kind.is_some());
            shape(read).map_err(|faults| faults[0].detail.clone())
        };
        use AttributeType::{Decimal, Integer, Text};
        use CellShape::{Exact, Interval, Node, Set, Suppressed};
        assert_eq!(of(&[Some("x"), Some("y")], None, true, None), Ok((Exact, Text, 0)));
        assert_eq!(of(&[Some("x"), Some("any")], Some(&[Some("x"), Some("any")]), true, None), Ok((Node, Text, 1)));
        let ages = [Some("1..5"), Some("..0"), None];
        assert_eq!(of(&ages, Some(&ages), false, None), Ok((Interval, Integer, 0)));
        assert_eq!(of(&ages, Some(&ages), false, Some(Decimal)), Ok((Interval, Decimal, 0)));
        let sets = [Some(r#"["x","y"]"#), Some("[null]")];
        assert_eq!(of(&sets, Some(&sets), false, None), Ok((Set, Text, 0)));
        assert_eq!(of(&[Some("*")], Some(&[Some("*")]), false, Some(Text)), Ok((Suppressed, Text, 0)));
        // no other release has the attribute
        assert_eq!(of(&[Some("Office")], Some(&[Some("Office"), Some("Field")]), false, None), Ok((Exact, Text, 0)));
        for (cells, cut, with_tree, kind, detail) in [
            (&[Some("z")][..], None, true, None, "1 values that are no leaves"),
            (&[Some("x")], Some(&[Some("y")][..]), true, None, "1 labels outside the declared cut"),
            (&[None], Some(&[Some("y")]), true, None, "1 labels outside the declared cut"),
            (&[Some("1..5")], Some(&[Some("1..5"), Some("x")]), true, None, "1 labels that are no nodes"),
            (&[Some("Office")], Some(&[Some("Office"), Some("*")]), false, Some(Text), "neither intervals nor sets"),
            (&[Some("a..c")], Some(&[Some("a..c")]), false, Some(Integer), "no intervals of type integer"),
            (&[Some("5..1")], Some(&[Some("5..1")]), false, None, "no intervals of type integer"),
        ] {
            let found = of(cells, cut, with_tree, kind).unwrap_err();
            assert!(found.contains(detail), "{found}");
        }
    }
}
