//! Small releases to make sequences of.

use std::collections::BTreeMap;

use super::super::*;
use crate::control::Control;
use crate::microdata::Codes;

/// A taxonomy whose nodes are the codes of its columns.
#[derive(Clone, Default, Debug)]
pub(super) struct Tree {
    names: Vec<String>,
    pub(super) spans: Vec<NodeRange>,
    children: Vec<Vec<u32>>,
    depths: Vec<usize>,
}

impl Tree {
    /// From the parent of each name. Children are in the order of their names.
    pub(super) fn new(parents: &BTreeMap<String, Option<String>>) -> Self {
        let mut tree = Self::default();
        let root = parents.iter().find(|(_, parent)| parent.is_none()).unwrap().0;
        tree.grow(root, 0, parents);
        tree
    }

    /// From `parent: child child ...`, the root first.
    pub(super) fn parse(lines: &[(&str, &str)]) -> Self {
        let mut parents: BTreeMap<String, Option<String>> = BTreeMap::new();
        parents.insert(lines[0].0.into(), None);
        for (parent, children) in lines {
            for child in children.split(' ') {
                parents.insert(child.into(), Some((*parent).into()));
            }
        }
        Self::new(&parents)
    }

    fn grow(&mut self, name: &str, depth: usize, parents: &BTreeMap<String, Option<String>>) -> u32 {
        let node = self.names.len() as u32;
        self.names.push(name.into());
        self.spans.push(NodeRange::point(node));
        self.children.push(Vec::new());
        self.depths.push(depth);
        for (child, parent) in parents {
            if parent.as_deref() == Some(name) {
                let child = self.grow(child, depth + 1, parents);
                self.children[node as usize].push(child);
            }
        }
        self.spans[node as usize].last = self.names.len() as u32 - 1;
        node
    }

    pub(super) fn node(&self, name: &str) -> u32 {
        self.names.iter().position(|other| other == name).unwrap() as u32
    }

    pub(super) fn name(&self, node: u32) -> &str {
        &self.names[node as usize]
    }

    pub(super) fn named(&self, name: &str) -> NodeRange {
        self.spans[self.node(name) as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn leaves(&self) -> Vec<u32> {
        (0..self.len() as u32).filter(|&node| self.children[node as usize].is_empty()).collect()
    }

    /// The child of the root above a node, or the root.
    pub(super) fn below_root(&self, node: u32) -> u32 {
        self.children[0].iter().copied().find(|&child| self.span(node).within(self.span(child))).unwrap_or(0)
    }
}

impl Hierarchy for Tree {
    fn root(&self) -> u32 {
        0
    }
    fn children(&self, node: u32) -> Vec<u32> {
        self.children[node as usize].clone()
    }
    fn span(&self, node: u32) -> NodeRange {
        self.spans[node as usize]
    }
    fn depth(&self, node: u32) -> usize {
        self.depths[node as usize]
    }
    fn leaf(&self, code: u32) -> u32 {
        code
    }
}

/// What the values of an attribute are.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Tree(Tree),
    /// Codes are places.
    Numbers,
    /// The same, but values are published as they are or not at all.
    Values,
}

/// A column of a release.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) attribute: usize,
    pub(super) codes: Codes,
    pub(super) places: Vec<NodeSet>,
}

impl Given {
    pub(super) fn new(attribute: usize, codes: &[u32], spans: Vec<NodeRange>) -> Self {
        Self::from_attribute(attribute, codes, spans.into_iter().map(NodeSet::Range).collect())
    }

    pub(super) fn from_attribute(attribute: usize, codes: &[u32], places: Vec<NodeSet>) -> Self {
        Self { attribute, codes: Codes::collect(places.len(), codes.iter().copied()), places }
    }
}

/// Releases and what is asked of them.
#[derive(Clone, Debug)]
pub(super) struct SequentialFixture {
    pub(super) kinds: Vec<Kind>,
    /// The new one first.
    pub(super) releases: Vec<Vec<Given>>,
    pub(super) rows: Vec<usize>,
    pub(super) class: Codes,
    pub(super) same_rows: bool,
    pub(super) requirements: Vec<ResolvedRequirement>,
    pub(super) exclusions: Vec<ResolvedExclusion>,
    pub(super) joins: JoinScope,
    pub(super) gain: SpecializationGain,
    pub(super) score: SpecializationScore,
    pub(super) prefix: bool,
    pub(super) stop_at_zero_gain: bool,
}

impl SequentialFixture {
    /// Releases of attributes by name: trees, and per release attributes and rows of names. All is published as it is.
    pub(super) fn new(trees: &[(&str, Tree)], releases: &[(&str, &[&str])], class: &[u32]) -> Self {
        let find = |name: &str| trees.iter().position(|(other, _)| *other == name).unwrap();
        let release = |&(attributes, rows): &(&str, &[&str])| -> Vec<Given> {
            let column = |(at, name): (usize, &str)| {
                let tree = &trees[find(name)].1;
                let codes: Vec<u32> = rows.iter().map(|row| tree.node(row.split(' ').nth(at).unwrap())).collect();
                Given::new(find(name), &codes, tree.spans.clone())
            };
            attributes.split(' ').enumerate().map(column).collect()
        };
        Self {
            kinds: trees.iter().map(|(_, tree)| Kind::Tree(tree.clone())).collect(),
            releases: releases.iter().map(release).collect(),
            rows: releases.iter().map(|(_, rows)| rows.len()).collect(),
            class: Codes::collect(256, class.iter().copied()),
            same_rows: true,
            requirements: Vec::new(),
            exclusions: Vec::new(),
            joins: JoinScope::Whole,
            gain: SpecializationGain::Information,
            score: SpecializationScore::PlusOne,
            prefix: false,
            stop_at_zero_gain: false,
        }
    }

    pub(super) fn tree(&self, attribute: usize) -> &Tree {
        match &self.kinds[attribute] {
            Kind::Tree(tree) => tree,
            Kind::Numbers | Kind::Values => panic!("no tree"),
        }
    }

    pub(super) fn problem(&self) -> SequentialProblem<'_> {
        let mut earlier = Vec::new();
        for (release, &rows) in self.releases.iter().zip(&self.rows).skip(1) {
            let mut columns = Vec::new();
            for Given { attribute, codes, places } in release {
                columns.push(PublishedLabels { attribute: *attribute as u32, codes, places: places.clone() });
            }
            earlier.push(EarlierReleaseTable { rows, columns });
        }
        let mut columns = Vec::new();
        for given in &self.releases[0] {
            let scale = match &self.kinds[given.attribute] {
                Kind::Tree(tree) => ColumnScale::Tree(tree),
                Kind::Numbers => ColumnScale::Numbers((0..given.places.len() as u32).collect()),
                Kind::Values => {
                    let places = given.places.len() as u32;
                    ColumnScale::Values((0..places).collect(), NodeRange { first: 0, last: places })
                }
            };
            columns.push(NewTableColumn { attribute: given.attribute as u32, codes: &given.codes, scale });
        }
        SequentialProblem {
            new: NewTable { rows: self.rows[0], columns, class: Some(&self.class) },
            earlier,
            same_rows: self.same_rows,
            requirements: self.requirements.clone(),
            exclusions: self.exclusions.clone(),
            joins: self.joins,
            gain: self.gain,
            score: self.score,
            stop_at_zero_gain: self.stop_at_zero_gain,
            allow_violating_prefix: self.prefix,
            most_links: MAX_LINKS,
        }
    }

    pub(super) fn release(&self) -> Result<SequentialSolution, SequentialError> {
        self.problem().release(&Control::default())
    }
}
