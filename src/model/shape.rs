//! The tables that the model consists of, and those that a query needs.

use super::tree::{JoinTree, TableView};
use crate::microdata::AttrSet;
use crate::publication::Publication;

/// A table as the model uses it: as a whole, or a single column.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Factor {
    /// Index of the published table.
    pub table: usize,
    /// Used attributes of each of its parts.
    pub view: TableView,
}

/// The factors of a model, and their tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelShape {
    /// View of each published table.
    pub published: Vec<TableView>,
    /// Factors of the model.
    pub factors: Vec<Factor>,
    /// Join tree over the views of the factors.
    pub tree: JoinTree,
    /// Whether the model uses all published tables. If these form no tree, it uses some of them.
    pub whole: bool,
}

/// The rows that answer for some attributes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueryPath {
    /// One part of a published table, which holds all of them.
    Shown {
        /// Index of the table.
        table: usize,
        /// Index of the part.
        part: usize,
    },
    /// One factor, whose parts hold all of them.
    Tied {
        /// Index of the factor.
        factor: usize,
    },
    /// A tree of several factors.
    Joined(FactorSubtree),
}

/// A subtree of the factors.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FactorSubtree {
    /// Indexes of the factors: the root first, each after its parent.
    pub factors: Vec<usize>,
    /// Parent, child and edge of the whole tree, by index, in the order of the children.
    pub edges: Vec<(usize, usize, usize)>,
}

impl ModelShape {
    /// Shape of a publication.
    #[must_use]
    pub fn from_publication(publication: &Publication) -> Self {
        let view = |table: &crate::publication::PublishedTable| {
            TableView::tied(table.parts.iter().map(|part| part.columns.iter().map(|column| column.attribute).collect()))
        };
        Self::of_views(publication.tables.iter().map(view).collect())
    }

    /// Shape of published tables.
    #[must_use]
    pub fn of_views(published: Vec<TableView>) -> Self {
        let whole: Vec<Factor> =
            published.iter().enumerate().map(|(table, view)| Factor { table, view: view.clone() }).collect();
        let tree = tree_of(&whole);
        if tree.is_decomposable() {
            return Self { published, factors: whole, tree, whole: true };
        }
        let factors = some_of(&published, whole);
        let tree = tree_of(&factors);
        Self { published, factors, tree, whole: false }
    }

    /// Groups of published tables, by index, that share no attribute with each other. Tables without attributes are in none.
    #[must_use]
    pub fn components(&self) -> Vec<Vec<usize>> {
        let mut components: Vec<(AttrSet, Vec<usize>)> = Vec::new();
        for (table, view) in self.published.iter().enumerate().filter(|(_, view)| !view.attributes().is_empty()) {
            let (mut attributes, mut tables) = (view.attributes(), vec![table]);
            // groups that this table connects become one, at the position of the first
            let touches = |(other, _): &(AttrSet, Vec<usize>)| !other.intersection(view.attributes()).is_empty();
            let place = components.iter().position(touches).unwrap_or(components.len());
            for (other, of_other) in components.extract_if(.., |component| touches(component)) {
                attributes = attributes.union(other);
                tables.extend(of_other);
            }
            tables.sort_unstable();
            components.insert(place, (attributes, tables));
        }
        components.into_iter().map(|(_, tables)| tables).collect()
    }

    /// Shape of a model of some published tables, and of every other column of `attributes` by itself. `None` if these tables
    /// form no tree.
    #[must_use]
    pub fn made_of(&self, tables: &[usize], attributes: AttrSet) -> Option<Self> {
        let whole = |&table: &usize| Factor { table, view: self.published[table].clone() };
        let mut factors: Vec<Factor> = tables.iter().map(whole).collect();
        factors.extend(single_columns(&self.published, &factors, attributes));
        let tree = tree_of(&factors);
        let (published, whole) = (self.published.clone(), tables.len() == self.published.len());
        tree.is_decomposable().then_some(Self { published, factors, tree, whole })
    }

    /// Rows that answer for `attributes`.
    #[must_use]
    pub fn route(&self, attributes: AttrSet) -> QueryPath {
        for (table, view) in self.published.iter().enumerate() {
            if let Some(part) = view.parts().iter().position(|part| attributes.is_subset(*part)) {
                return QueryPath::Shown { table, part };
            }
        }
        let joined = self.joined(attributes);
        match joined.factors[..] {
            [factor] => QueryPath::Tied { factor },
            _ => QueryPath::Joined(joined),
        }
    }

    /// Smallest subtree that determines `attributes`: leaves that add nothing to their neighbour are removed one by one.
    fn joined(&self, attributes: AttrSet) -> FactorSubtree {
        let mut left = self.tree.members.clone();
        let edges = &self.tree.edges;
        loop {
            let useless = |&leaf: &usize| {
                let mut ends = edges.iter().filter(|edge| {
                    (edge.parent == leaf && left.contains(&edge.child))
                        || (edge.child == leaf && left.contains(&edge.parent))
                });
                let asked = self.factors[leaf].view.attributes().intersection(attributes);
                match (ends.next(), ends.next()) {
                    (Some(edge), None) => asked.is_subset(edge.separator),
                    _ => false,
                }
            };
            match left.iter().position(useless) {
                Some(at) => left.remove(at),
                None => break,
            };
        }
        let mut joined = FactorSubtree { factors: left.iter().copied().take(1).collect(), edges: Vec::new() };
        let mut next = 0;
        while let Some(&parent) = joined.factors.get(next) {
            next += 1;
            for (at, edge) in edges.iter().enumerate() {
                let child = match () {
                    () if edge.parent == parent => edge.child,
                    () if edge.child == parent => edge.parent,
                    () => continue,
                };
                if left.contains(&child) && !joined.factors.contains(&child) {
                    joined.factors.push(child);
                    joined.edges.push((parent, child, at));
                }
            }
        }
        joined
    }

    /// The whole tree of factors.
    #[must_use]
    pub fn whole_tree(&self) -> FactorSubtree {
        FactorSubtree {
            factors: self.tree.members.clone(),
            edges: self.tree.edges.iter().enumerate().map(|(at, edge)| (edge.parent, edge.child, at)).collect(),
        }
    }

    /// Attributes of each published table that a route needs; empty for other tables.
    #[must_use]
    pub fn needed(&self, route: &QueryPath, attributes: AttrSet) -> Vec<Option<AttrSet>> {
        let mut needed = vec![None; self.published.len()];
        match route {
            QueryPath::Shown { table, .. } => needed[*table] = Some(attributes),
            QueryPath::Tied { factor } => needed[self.factors[*factor].table] = Some(attributes),
            QueryPath::Joined(joined) => {
                for &factor in &joined.factors {
                    let Factor { table, view } = &self.factors[factor];
                    let mut of_table = attributes.intersection(view.attributes());
                    for &(parent, child, edge) in &joined.edges {
                        if parent == factor || child == factor {
                            of_table = of_table.union(self.tree.edges[edge].separator);
                        }
                    }
                    let before: AttrSet = needed[*table].unwrap_or_default();
                    needed[*table] = Some(before.union(of_table));
                }
            }
        }
        needed
    }
}

fn tree_of(factors: &[Factor]) -> JoinTree {
    JoinTree::from_views(&factors.iter().map(|factor| factor.view.clone()).collect::<Vec<_>>())
}

/// Largest tables, by attributes, that form a tree together; and each column that is in none of them.
fn some_of(published: &[TableView], whole: Vec<Factor>) -> Vec<Factor> {
    let mut order = whole;
    order.sort_by_key(|factor| std::cmp::Reverse(factor.view.attributes().len()));
    let mut chosen: Vec<Factor> = Vec::new();
    for factor in order {
        chosen.push(factor);
        if !tree_of(&chosen).is_decomposable() {
            chosen.pop();
        }
    }
    let all = published.iter().fold(AttrSet::EMPTY, |all, view| all.union(view.attributes()));
    let singles = single_columns(published, &chosen, all);
    chosen.extend(singles);
    chosen
}

/// Each column of `attributes` that is in none of the chosen tables, from the first table that has it.
fn single_columns(published: &[TableView], chosen: &[Factor], attributes: AttrSet) -> Vec<Factor> {
    let covered = chosen.iter().fold(AttrSet::EMPTY, |all, factor| all.union(factor.view.attributes()));
    let single = |attr| {
        let one = AttrSet::one(attr);
        let table = published.iter().position(|view| view.attributes().contains(attr))?;
        let view = TableView::tied(published[table].parts().iter().map(|part| part.intersection(one)));
        Some(Factor { table, view })
    };
    attributes.minus(covered).iter().filter_map(single).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Attr;

    fn set(attrs: &[u8]) -> AttrSet {
        attrs.iter().map(|&attr| Attr(attr)).collect()
    }

    fn plain(attrs: &[u8]) -> TableView {
        TableView::plain(set(attrs))
    }

    #[test]
    fn a_query_needs_no_more_than_what_lies_between_its_attributes() {
        // 0-1 | 1-2 | 2-3, and 5 apart; 4 tied to 3
        let tied = TableView::bucketized(set(&[3, 4]), Attr(4));
        let shape = ModelShape::of_views(vec![plain(&[0, 1]), plain(&[1, 2]), plain(&[2, 3]), tied, plain(&[5])]);
        assert!(shape.whole);
        assert_eq!(shape.route(set(&[2, 3])), QueryPath::Shown { table: 2, part: 0 });
        assert_eq!(shape.route(set(&[])), QueryPath::Shown { table: 0, part: 0 });
        assert_eq!(shape.route(set(&[3, 4])), QueryPath::Tied { factor: 3 });
        let QueryPath::Joined(joined) = shape.route(set(&[1, 3])) else { panic!("not joined") };
        assert_eq!(joined.factors, [1, 2]);
        let needed = shape.needed(&QueryPath::Joined(joined), set(&[1, 3]));
        assert_eq!(needed, [None, Some(set(&[1, 2])), Some(set(&[2, 3])), None, None]);
        let QueryPath::Joined(joined) = shape.route(set(&[2, 5])) else { panic!("not joined") };
        assert!(joined.factors.contains(&4) && joined.edges.len() == joined.factors.len() - 1, "{joined:?}");
    }

    #[test]
    fn of_what_is_no_tree_some_tables_are_used_and_every_attribute() {
        let circle = vec![plain(&[0, 1]), plain(&[1, 2]), plain(&[2, 3]), plain(&[3, 0])];
        let shape = ModelShape::of_views(circle);
        assert!(!shape.whole && shape.tree.is_decomposable());
        assert_eq!(shape.factors.iter().map(|factor| factor.table).collect::<Vec<_>>(), [0, 1, 2]);
        // the plain table hides nothing that the other ties by bucket, and so cannot stand next to it
        let mixed = vec![TableView::bucketized(set(&[0, 1, 2]), Attr(2)), TableView::tied([set(&[1]), set(&[2, 3])])];
        let shape = ModelShape::of_views(mixed);
        assert!(!shape.whole && shape.tree.is_decomposable());
        let single = TableView::tied([AttrSet::EMPTY, set(&[3])]);
        assert_eq!(shape.factors[1], Factor { table: 1, view: single });
        // a part reveals its own attributes, also where the model does not use its table
        assert_eq!(shape.route(set(&[2, 3])), QueryPath::Shown { table: 1, part: 1 });
    }

    #[test]
    fn tables_that_share_nothing_are_apart() {
        let tables = vec![plain(&[0, 1]), plain(&[2]), plain(&[]), plain(&[3, 4]), plain(&[1, 4]), plain(&[5, 2])];
        let shape = ModelShape::of_views(tables);
        assert_eq!(shape.components(), [vec![0, 3, 4], vec![1, 5]]);
        let circle = ModelShape::of_views(vec![plain(&[0, 1]), plain(&[1, 2]), plain(&[2, 0])]);
        assert_eq!(circle.components(), [[0, 1, 2]]);
        assert!(circle.made_of(&[0, 1, 2], set(&[0, 1, 2])).is_none());
        let made = circle.made_of(&[2], set(&[0, 1, 2])).unwrap();
        assert_eq!(
            made.factors.iter().map(|factor| (factor.table, factor.view.attributes())).collect::<Vec<_>>(),
            [(2, set(&[0, 2])), (0, set(&[1]))]
        );
        assert!(!made.whole);
    }
}
