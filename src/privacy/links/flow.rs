//! Maximal flow between nodes, by shortest augmenting paths [Edmonds and Karp 1972].

use std::collections::VecDeque;

/// A capacity that no flow exhausts.
pub(super) const UNBOUNDED: u64 = 1 << 62;

#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    /// What may still flow.
    left: u64,
}

/// A directed network; the edge after an even one is its reverse.
#[derive(Clone)]
pub(super) struct Network {
    edges: Vec<Edge>,
    from: Vec<Vec<usize>>,
}

impl Network {
    pub(super) fn new(nodes: usize) -> Self {
        Self { edges: Vec::new(), from: vec![Vec::new(); nodes] }
    }

    /// Adds an edge and gives its index.
    pub(super) fn connect(&mut self, from: usize, to: usize, capacity: u64) -> usize {
        let index = self.edges.len();
        self.edges.push(Edge { to, left: capacity });
        self.edges.push(Edge { to: from, left: 0 });
        self.from[from].push(index);
        self.from[to].push(index + 1);
        index
    }

    /// Whether nothing more can flow along an edge.
    pub(super) fn is_saturated(&self, edge: usize) -> bool {
        self.edges[edge].left == 0
    }

    /// Sends as much as possible from `source` to `sink` and gives the amount.
    pub(super) fn fill(&mut self, source: usize, sink: usize) -> u64 {
        let mut total = 0;
        while let Some(path) = self.shortest_path(source, sink) {
            let amount = path.iter().map(|&edge| self.edges[edge].left).min().unwrap_or(0);
            for edge in path {
                self.edges[edge].left -= amount;
                self.edges[edge ^ 1].left += amount;
            }
            total += amount;
        }
        total
    }

    /// The edges of a shortest path on which something can flow, from its end.
    fn shortest_path(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let mut arrived: Vec<Option<usize>> = vec![None; self.from.len()];
        let mut queue = VecDeque::from([source]);
        while let Some(node) = queue.pop_front() {
            for &edge in &self.from[node] {
                let Edge { to, left } = self.edges[edge];
                if left > 0 && to != source && arrived[to].is_none() {
                    arrived[to] = Some(edge);
                    queue.push_back(to);
                }
            }
            if arrived[sink].is_some() {
                break;
            }
        }
        let mut path = Vec::new();
        let mut node = sink;
        while node != source {
            let edge = arrived[node]?;
            path.push(edge);
            node = self.edges[edge ^ 1].to;
        }
        Some(path)
    }
}
