//! Common label domain of one attribute over all releases.

use std::collections::HashMap;
use std::sync::Arc;

use super::span::{NodeRange, NodeSet, below};
use crate::microdata::{
    Arena, AttributeType, BoundTaxonomy, CellInterval as Interval, CellShape, Column, Domain, Taxonomy, parse_set,
};
use crate::publication::EarlierColumn;

/// Leaves of an attribute. A missing value is the first one of a line.
pub(super) enum LabelDomain {
    /// Nodes of a taxonomy, by number.
    Tree { tree: Arc<Taxonomy>, by_label: HashMap<Option<Vec<u8>>, u32> },
    /// Values in their order, from 1.
    Line { kind: AttributeType, values: Vec<Vec<u8>> },
}

/// Why the labels of an attribute have no common domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LabelError {
    /// Releases publish nodes of different taxonomies.
    Trees,
    /// The cells have shapes that cannot be compared.
    Shapes,
    /// Some number has several spellings.
    Spellings,
}

/// Whether values of this type are generalized to intervals if there is no taxonomy.
pub(super) const fn is_ordered(kind: AttributeType) -> bool {
    !matches!(kind, AttributeType::Text | AttributeType::Boolean)
}

impl LabelDomain {
    /// The domain of an attribute: of the new release with its taxonomy, and of earlier ones with theirs.
    pub(super) fn new(
        new: Option<(&Column, Option<&BoundTaxonomy>)>,
        earlier: &[(&EarlierColumn, Option<&Arc<Taxonomy>>)],
        declared_value: &[&str],
    ) -> Result<Self, LabelError> {
        let own = new.and_then(|(_, tree)| tree).map(|tree| Arc::new(tree.tree().clone()));
        let nodes = || earlier.iter().filter(|(column, _)| column.nodes);
        let tree = own.or_else(|| nodes().find_map(|(_, tree)| tree.cloned()));
        if nodes().next().is_some() && tree.is_none() {
            return Err(LabelError::Trees);
        }
        if let Some(tree) = tree {
            let digest = tree.digest();
            if nodes().any(|(_, other)| other.is_none_or(|other| other.digest() != digest)) {
                return Err(LabelError::Trees);
            }
            if earlier.iter().any(|(column, _)| column.shape == CellShape::Interval) {
                return Err(LabelError::Shapes);
            }
            let label = |node: u32| tree.label(node).map(|label| label.as_bytes().to_vec());
            let by_label = (0..tree.len() as u32).map(|node| (label(node), node)).collect();
            return Ok(Self::Tree { tree, by_label });
        }
        Self::line(new.map(|(column, _)| column), earlier, declared_value)
    }

    fn line(
        new: Option<&Column>,
        earlier: &[(&EarlierColumn, Option<&Arc<Taxonomy>>)],
        declared_value: &[&str],
    ) -> Result<Self, LabelError> {
        // suppressed cells reveal neither values nor a type
        let earlier: Vec<&EarlierColumn> =
            earlier.iter().map(|(column, _)| *column).filter(|column| column.shape != CellShape::Suppressed).collect();
        let kinds = || new.map(|column| column.domain.kind()).into_iter().chain(earlier.iter().map(|c| c.kind));
        let first = kinds().next().unwrap_or(AttributeType::Text);
        let same = kinds().all(|kind| kind == first);
        let kind = if same || new.is_some() { first } else { AttributeType::Text };
        let mut values: Vec<Vec<u8>> = Vec::new();
        values.extend(new.into_iter().flat_map(|column| column.domain.iter()).flatten().map(<[u8]>::to_vec));
        for column in earlier {
            for text in column.cells.domain.iter().flatten() {
                match column.shape {
                    CellShape::Interval => {
                        let span = Interval::parse(text).filter(|_| column.kind == kind).ok_or(LabelError::Shapes)?;
                        values.extend(span.from.iter().chain([&span.to]).map(|end| end.to_vec()));
                    }
                    CellShape::Set => values.extend(parse_set(text).ok_or(LabelError::Shapes)?.into_iter().flatten()),
                    _ => values.push(text.to_vec()),
                }
            }
        }
        if !values.iter().all(|value| kind == AttributeType::Text || kind.admits(value)) {
            return Err(LabelError::Shapes);
        }
        let declared_value =
            declared_value.iter().filter(|value| kind == AttributeType::Text || kind.admits(value.as_bytes()));
        values.extend(declared_value.map(|value| value.as_bytes().to_vec()));
        values.sort_unstable_by(|a, b| kind.compare(Some(a), Some(b)));
        values.dedup();
        if kind.is_number() && values.windows(2).any(|pair| kind.compare_by_value(&pair[0], &pair[1]).is_eq()) {
            return Err(LabelError::Spellings);
        }
        Ok(Self::Line { kind, values })
    }

    /// Node ranges of exact values, by code; `None` if a value is unknown.
    pub(super) fn of_domain(&self, domain: &Domain) -> Option<Vec<NodeRange>> {
        match self {
            Self::Tree { tree, .. } => {
                let bound = tree.bind(domain).ok()?;
                Some((0..domain.len() as u32).map(|code| NodeRange::point(bound.leaf(code))).collect())
            }
            Self::Line { .. } => domain.iter().map(|value| self.place(value).map(NodeRange::point)).collect(),
        }
    }

    /// Whether the domain is a taxonomy, which has an order of its own.
    pub(super) const fn is_tree(&self) -> bool {
        matches!(self, Self::Tree { .. })
    }

    /// Node range of any value.
    pub(super) fn anything(&self) -> NodeRange {
        match self {
            Self::Tree { tree, .. } => below(tree, 0),
            Self::Line { values, .. } => NodeRange { first: 0, last: values.len() as u32 },
        }
    }

    /// Node sets of the labels of an earlier release, by code.
    pub(super) fn of_cells(&self, column: &EarlierColumn) -> Option<Vec<NodeSet>> {
        let domain = &column.cells.domain;
        let spans: Vec<NodeRange> = match (self, column.shape) {
            (_, CellShape::Suppressed) => vec![self.anything(); domain.len()],
            (_, CellShape::Set) => return self.of_sets(column),
            (Self::Tree { tree, by_label }, _) if column.nodes => {
                let node = |label: Option<&[u8]>| by_label.get(&label.map(<[u8]>::to_vec)).copied();
                domain.iter().map(|label| Some(below(tree, node(label)?))).collect::<Option<_>>()?
            }
            (Self::Line { .. }, CellShape::Interval) => {
                let cell = |text: Option<&[u8]>| {
                    let Some(text) = text else { return Some(NodeRange::point(0)) };
                    let span = Interval::parse(text)?;
                    let first = span.from.as_deref().map_or(Some(0), |from| self.place(Some(from)))?;
                    let last = self.place(Some(&span.to))?;
                    (first <= last).then_some(NodeRange { first, last })
                };
                domain.iter().map(cell).collect::<Option<_>>()?
            }
            _ => self.of_domain(domain)?,
        };
        Some(spans.into_iter().map(NodeSet::Range).collect())
    }

    /// Node sets of the values of sets.
    fn of_sets(&self, column: &EarlierColumn) -> Option<Vec<NodeSet>> {
        let sets = column.cells.domain.iter().map(|text| parse_set(text?)).collect::<Option<Vec<_>>>()?;
        let mut values: Vec<&Vec<u8>> = sets.iter().flatten().flatten().collect();
        values.sort_unstable_by(|a, b| column.kind.compare(Some(a), Some(b)));
        values.dedup();
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value));
        let has_missing = sets.iter().flatten().any(Option::is_none);
        let places = self.of_domain(&Domain::from_sorted(column.kind, has_missing, arena))?;
        let of_value = |value: &Option<Vec<u8>>| {
            let rank = match value {
                None => 0,
                Some(value) => {
                    let found = values.binary_search_by(|other| column.kind.compare(Some(other), Some(value)));
                    found.ok()? + usize::from(has_missing)
                }
            };
            places.get(rank).map(|span| span.first)
        };
        sets.iter().map(|set| NodeSet::from_leaves(set.iter().map(of_value).collect::<Option<_>>()?)).collect()
    }

    /// Node range of a declared value or node; `None` if it is unknown.
    pub(super) fn declared_value(&self, label: Option<&str>) -> Option<NodeRange> {
        match self {
            Self::Tree { tree, by_label } => {
                let node = by_label.get(&label.map(|label| label.as_bytes().to_vec()))?;
                Some(below(tree, *node))
            }
            Self::Line { .. } => self.place(label.map(str::as_bytes)).map(NodeRange::point),
        }
    }

    fn place(&self, value: Option<&[u8]>) -> Option<u32> {
        let Self::Line { kind, values } = self else { return None };
        let Some(value) = value else { return Some(0) };
        let found = values.binary_search_by(|other| kind.compare(Some(other), Some(value)));
        found.ok().map(|rank| rank as u32 + 1)
    }
}
