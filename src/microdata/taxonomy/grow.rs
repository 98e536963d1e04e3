//! Taxonomies in the making: nodes come in any order, each below one that is there.

use std::collections::{HashMap, HashSet};

use super::tree::{MAX_DEPTH, MAX_NODES, Taxonomy, TaxonomyNode};

/// Why a node is not added.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaxonomyError {
    /// Another node has its label.
    #[error("another node has this label")]
    Repeated,
    /// It would be too far from the root.
    #[error("more than {MAX_DEPTH} steps below the root")]
    TooDeep,
    /// There are as many nodes as there may be.
    #[error("more than {MAX_NODES} nodes")]
    TooLarge,
}

/// A taxonomy in the making. Its nodes are named by the order in which they came, the root being 0.
#[derive(Clone, Debug)]
pub struct TaxonomyBuilder {
    nodes: Vec<BuilderNode>,
    by_label: HashMap<Option<Box<str>>, usize>,
    /// The nodes of labels that came more than once.
    repeated: HashSet<usize>,
}

#[derive(Clone, Debug)]
struct BuilderNode {
    label: Option<Box<str>>,
    parent: usize,
    depth: usize,
    children: Vec<usize>,
}

impl TaxonomyBuilder {
    /// A root.
    #[must_use]
    pub fn from_root(label: &str) -> Self {
        let root = BuilderNode { label: Some(label.into()), parent: 0, depth: 0, children: Vec::new() };
        Self { by_label: HashMap::from([(root.label.clone(), 0)]), nodes: vec![root], repeated: HashSet::new() }
    }

    /// The node of a label.
    #[must_use]
    pub fn find(&self, label: Option<&str>) -> Option<usize> {
        self.by_label.get(&label.map(Box::from)).copied()
    }

    /// The node above one.
    #[must_use]
    pub fn parent(&self, node: usize) -> usize {
        self.nodes[node].parent
    }

    /// Adds a node as the last child of `parent`; `None` is the missing value.
    ///
    /// # Errors
    /// [`TaxonomyError`]; a repeated label is counted too.
    pub fn add(&mut self, parent: usize, label: Option<&str>) -> Result<usize, TaxonomyError> {
        let (node, depth) = (self.nodes.len(), self.nodes[parent].depth + 1);
        if let Some(found) = self.find(label) {
            self.repeat(found);
            return Err(TaxonomyError::Repeated);
        }
        if depth > MAX_DEPTH {
            return Err(TaxonomyError::TooDeep);
        }
        if node == MAX_NODES {
            return Err(TaxonomyError::TooLarge);
        }
        let label: Option<Box<str>> = label.map(Box::from);
        self.by_label.insert(label.clone(), node);
        self.nodes.push(BuilderNode { label, parent, depth, children: Vec::new() });
        self.nodes[parent].children.push(node);
        Ok(node)
    }

    /// Notes that a label came again, for a node of its own.
    pub fn repeat(&mut self, node: usize) {
        self.repeated.insert(node);
    }

    /// How many labels came more than once.
    #[must_use]
    pub fn repeated(&self) -> usize {
        self.repeated.len()
    }

    /// The taxonomy; `None` when a label came more than once, or nothing stands below the root.
    #[must_use]
    pub fn finish(self) -> Option<Taxonomy> {
        if self.nodes.len() < 2 || !self.repeated.is_empty() {
            return None;
        }
        let mut laid = Taxonomy { nodes: Vec::with_capacity(self.nodes.len()), leaves: Vec::new() };
        // what is still to come, the next one last, with the number of the parent
        let mut waiting = vec![(0usize, 0u32)];
        while let Some((index, parent)) = waiting.pop() {
            let (number, sprout) = (laid.nodes.len() as u32, &self.nodes[index]);
            laid.nodes.push(TaxonomyNode {
                label: sprout.label.clone(),
                parent,
                depth: sprout.depth as u8,
                height: 0,
                end: number + 1,
                first_leaf: laid.leaves.len() as u32,
            });
            if sprout.children.is_empty() {
                laid.leaves.push(number);
            }
            waiting.extend(sprout.children.iter().rev().map(|child| (*child, number)));
        }
        for number in (1..laid.nodes.len()).rev() {
            let TaxonomyNode { parent, height, end, .. } = laid.nodes[number];
            let above = &mut laid.nodes[parent as usize];
            above.height = above.height.max(height + 1);
            above.end = above.end.max(end);
        }
        Some(laid)
    }
}
