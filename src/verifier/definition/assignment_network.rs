//! Flow of kinds of rows into types of slots, along shortest paths of one length at a time (algorithm of Dinic).

use crate::control::{Cancelled, Control};

/// Bipartite flow network: kinds of rows supply types of slots. An edge says that a type admits a kind.
pub(super) struct AssignmentNetwork {
    /// Number of rows of each kind.
    supply: Vec<u64>,
    /// Number of slots of each type.
    demand: Vec<u64>,
    /// Edges, type by type: the kind of each, and the end of the edges of each type.
    kinds: Vec<u32>,
    ends: Vec<usize>,
    /// The type of each edge.
    types: Vec<u32>,
    /// The edges of each kind, kind by kind, and the end of those of each.
    of_kinds: Vec<u32>,
    kind_ends: Vec<usize>,
}

/// A flow that may leave slots empty.
struct Flow {
    /// For each kind, the number of rows without a slot.
    left: Vec<u64>,
    /// For each type, the number of empty slots.
    wanted: Vec<u64>,
    /// For each edge, the number of rows.
    rows: Vec<u64>,
}

/// Number of steps from a type with empty slots, by type and by kind.
struct Distances {
    types: Vec<u32>,
    kinds: Vec<u32>,
}

/// The first edge that was not tried yet, by type and by position among those of a kind.
struct Untried {
    of_types: Vec<usize>,
    of_kinds: Vec<usize>,
}

/// A step of a path: a type takes rows of a kind. The rows come from another type, or have no slot yet.
struct AugmentingStep {
    taken: usize,
    /// The edge whose type gives them.
    given: Option<usize>,
}

const FAR: u32 = u32::MAX;

/// The positions of a list among lists with these ends.
fn range(ends: &[usize], at: usize) -> std::ops::Range<usize> {
    at.checked_sub(1).map_or(0, |before| ends[before])..ends[at]
}

impl AssignmentNetwork {
    /// The network of kinds with these numbers of rows, and types with these numbers of slots.
    ///
    /// `kinds` has the admitted kinds, type by type, and `ends` the end of those of each type.
    pub(super) fn new(supply: Vec<u64>, demand: Vec<u64>, kinds: Vec<u32>, ends: Vec<usize>) -> Self {
        let types = (0..).zip(&demand).enumerate();
        let types: Vec<u32> = types.flat_map(|(at, (of, _))| std::iter::repeat_n(of, range(&ends, at).len())).collect();
        let mut kind_ends = vec![0; supply.len()];
        kinds.iter().for_each(|&kind| kind_ends[kind as usize] += 1);
        let mut sum = 0;
        let mut next: Vec<usize> = Vec::with_capacity(supply.len());
        for end in &mut kind_ends {
            next.push(sum);
            sum += *end;
            *end = sum;
        }
        let mut of_kinds = vec![0; kinds.len()];
        for (edge, &kind) in (0..).zip(&kinds) {
            let next = &mut next[kind as usize];
            of_kinds[*next] = edge;
            *next += 1;
        }
        Self { supply, demand, kinds, ends, types, of_kinds, kind_ends }
    }

    /// The edges of a type.
    fn of_type(&self, of: usize) -> std::ops::Range<usize> {
        range(&self.ends, of)
    }

    /// The edges of a kind.
    fn of_kind(&self, kind: usize) -> impl Iterator<Item = usize> {
        self.of_kinds[range(&self.kind_ends, kind)].iter().map(|edge| *edge as usize)
    }

    fn kind(&self, edge: usize) -> usize {
        self.kinds[edge] as usize
    }

    fn type_of(&self, edge: usize) -> usize {
        self.types[edge] as usize
    }

    /// The flow along each edge that fills all slots; `None` when none does.
    pub(super) fn filled(&self, control: &Control) -> Result<Option<Vec<u64>>, Cancelled> {
        if self.supply.iter().sum::<u64>() != self.demand.iter().sum::<u64>() {
            return Ok(None);
        }
        let mut flow = self.begun();
        while flow.wanted.iter().any(|wanted| *wanted > 0) {
            control.check()?;
            let Some(distances) = self.distances(&flow) else { return Ok(None) };
            let begin = |ends: &[usize]| (0..ends.len()).map(|at| range(ends, at).start).collect();
            let mut untried = Untried { of_types: begin(&self.ends), of_kinds: begin(&self.kind_ends) };
            for of in 0..self.demand.len() {
                while flow.wanted[of] > 0 {
                    control.check()?;
                    let Some(path) = self.path(of, &flow, &distances, &mut untried) else { break };
                    self.augment(&mut flow, &path);
                }
            }
        }
        Ok(Some(flow.rows))
    }

    /// A flow to begin with: the kinds that the fewest types admit first, each to the types that admit the fewest kinds.
    fn begun(&self) -> Flow {
        let (left, wanted) = (self.supply.clone(), self.demand.clone());
        let mut flow = Flow { left, wanted, rows: vec![0; self.kinds.len()] };
        let mut order: Vec<usize> = (0..self.supply.len()).collect();
        order.sort_by_key(|kind| range(&self.kind_ends, *kind).len());
        for kind in order {
            let wants = |edge: &usize| flow.wanted[self.type_of(*edge)] > 0;
            let mut edges: Vec<usize> = self.of_kind(kind).filter(wants).collect();
            edges.sort_by_key(|edge| self.of_type(self.type_of(*edge)).len());
            for edge in edges {
                let of = self.type_of(edge);
                let more = flow.left[kind].min(flow.wanted[of]);
                flow.rows[edge] += more;
                flow.left[kind] -= more;
                flow.wanted[of] -= more;
                if flow.left[kind] == 0 {
                    break;
                }
            }
        }
        flow
    }

    /// The distances as far as the nearest kind with a row that has no slot; `None` when there is none.
    fn distances(&self, flow: &Flow) -> Option<Distances> {
        let mut far = Distances { types: vec![FAR; self.demand.len()], kinds: vec![FAR; self.supply.len()] };
        let mut next: Vec<usize> = (0..self.demand.len()).filter(|of| flow.wanted[*of] > 0).collect();
        next.iter().for_each(|of| far.types[*of] = 0);
        let (mut steps, mut found) = (0, false);
        while !next.is_empty() && !found {
            let mut reached = Vec::new();
            for kind in next.iter().flat_map(|of| self.of_type(*of)).map(|edge| self.kind(edge)) {
                if far.kinds[kind] == FAR {
                    far.kinds[kind] = steps;
                    found |= flow.left[kind] > 0;
                    reached.push(kind);
                }
            }
            steps += 1;
            next.clear();
            for edge in reached.iter().flat_map(|kind| self.of_kind(*kind)).filter(|edge| flow.rows[*edge] > 0) {
                let of = self.type_of(edge);
                if far.types[of] == FAR {
                    far.types[of] = steps;
                    next.push(of);
                }
            }
        }
        found.then_some(far)
    }

    /// A shortest path from a type with empty slots to a kind whose rows have no slot, among what was not tried.
    fn path(&self, from: usize, flow: &Flow, far: &Distances, untried: &mut Untried) -> Option<Vec<AugmentingStep>> {
        let mut path: Vec<AugmentingStep> = Vec::new();
        let mut of = from;
        loop {
            let taken = untried.of_types[of];
            if taken == self.ends[of] {
                // nothing leads on from this type
                let AugmentingStep { taken, .. } = path.pop()?;
                untried.of_kinds[self.kind(taken)] += 1;
                of = self.type_of(taken);
                continue;
            }
            let kind = self.kind(taken);
            if far.kinds[kind] != far.types[of] {
                untried.of_types[of] += 1;
            } else if flow.left[kind] > 0 {
                path.push(AugmentingStep { taken, given: None });
                return Some(path);
            } else if let Some(given) = self.giver(kind, flow, far, untried) {
                path.push(AugmentingStep { taken, given: Some(given) });
                of = self.type_of(given);
            } else {
                untried.of_types[of] += 1;
            }
        }
    }

    /// The next edge whose type can give a row of a kind.
    fn giver(&self, kind: usize, flow: &Flow, far: &Distances, untried: &mut Untried) -> Option<usize> {
        let (end, next) = (self.kind_ends[kind], far.kinds[kind] + 1);
        while untried.of_kinds[kind] < end {
            let edge = self.of_kinds[untried.of_kinds[kind]] as usize;
            if far.types[self.type_of(edge)] == next && flow.rows[edge] > 0 {
                return Some(edge);
            }
            untried.of_kinds[kind] += 1;
        }
        None
    }

    /// Moves as many rows along a path as it admits.
    fn augment(&self, flow: &mut Flow, path: &[AugmentingStep]) {
        let (Some(first), Some(last)) = (path.first(), path.last()) else { return };
        let (begin, end) = (self.type_of(first.taken), self.kind(last.taken));
        let given = path.iter().filter_map(|step| step.given).map(|edge| flow.rows[edge]);
        let more = given.min().unwrap_or(u64::MAX).min(flow.wanted[begin]).min(flow.left[end]);
        for step in path {
            flow.rows[step.taken] += more;
            if let Some(given) = step.given {
                flow.rows[given] -= more;
            }
        }
        flow.wanted[begin] -= more;
        flow.left[end] -= more;
    }

    /// For each type, the kinds that some complete flow assigns to it.
    pub(super) fn exchangeable(&self, flow: &[u64]) -> Vec<Vec<u32>> {
        let component = self.components(flow);
        let (of_types, of_kinds) = component.split_at(self.demand.len());
        let of_type = |of: usize| {
            let kinds = self.kinds[self.of_type(of)].iter().copied();
            kinds.filter(|kind| of_kinds[*kind as usize] == of_types[of]).collect()
        };
        (0..self.demand.len()).map(of_type).collect()
    }

    /// The strongly connected component of each type, then of each kind, by number (algorithm of Kosaraju).
    ///
    /// Types lead to admitted kinds, and kinds to types that hold a row of them.
    fn components(&self, flow: &[u64]) -> Vec<usize> {
        let types = self.demand.len();
        let all = types + self.supply.len();
        let begin = |node: usize| match node.checked_sub(types) {
            None => self.of_type(node).start,
            Some(kind) => range(&self.kind_ends, kind).start,
        };
        let mut finished = Vec::with_capacity(all);
        let mut seen = vec![false; all];
        for root in 0..all {
            if std::mem::replace(&mut seen[root], true) {
                continue;
            }
            let mut path = vec![(root, begin(root))];
            while let Some((node, at)) = path.last_mut() {
                let (node, edge) = (*node, *at);
                *at += 1;
                let next = match node.checked_sub(types) {
                    None => (edge < self.ends[node]).then(|| Some(types + self.kind(edge))),
                    Some(kind) => (edge < self.kind_ends[kind]).then(|| {
                        let edge = self.of_kinds[edge] as usize;
                        (flow[edge] > 0).then(|| self.type_of(edge))
                    }),
                };
                match next {
                    Some(Some(to)) if !std::mem::replace(&mut seen[to], true) => path.push((to, begin(to))),
                    Some(_) => {}
                    None => {
                        finished.push(node);
                        path.pop();
                    }
                }
            }
        }
        let mut component = vec![usize::MAX; all];
        for (number, &root) in finished.iter().rev().enumerate() {
            let mut open = vec![root];
            while let Some(node) = open.pop() {
                if component[node] != usize::MAX {
                    continue;
                }
                component[node] = number;
                let is_new = |to: &usize| component[*to] == usize::MAX;
                match node.checked_sub(types) {
                    None => {
                        let held = self.of_type(node).filter(|edge| flow[*edge] > 0);
                        open.extend(held.map(|edge| types + self.kind(edge)).filter(is_new));
                    }
                    Some(kind) => open.extend(self.of_kind(kind).map(|edge| self.type_of(edge)).filter(is_new)),
                }
            }
        }
        component
    }
}
