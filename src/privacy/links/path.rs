//! Paths through tables and links.

use crate::microdata::AttrSet;

/// A table or a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// The index of a table.
    Table(usize),
    /// The index of a link.
    Link(usize),
}

/// A step of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkedStep {
    /// The table or link that the path enters.
    pub through: Element,
    /// The attributes by which it enters.
    pub via: AttrSet,
}

/// An element with the attributes through which paths may run.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathElement {
    pub(super) element: Element,
    pub(super) attributes: AttrSet,
}

/// A shortest path from `start` to `goal`, by breadth-first search; `None` where there is none.
///
/// It is empty where the sides share an attribute.
pub(super) fn shortest_path(start: AttrSet, goal: AttrSet, elements: &[PathElement]) -> Option<Vec<LinkedStep>> {
    if start.meets(goal) {
        return Some(Vec::new());
    }
    // rounds of the search: what each reached, and the elements that it came_by
    let mut reached = vec![start];
    loop {
        let last = *reached.last()?;
        let came_by = elements.iter().filter(|element| element.attributes.meets(last));
        let next = came_by.fold(last, |all, element| all.union(element.attributes));
        if next.meets(goal) {
            break;
        }
        if next == last {
            return None;
        }
        reached.push(next);
    }
    // backwards: an element that leads from the round before to the goal
    let mut path = Vec::with_capacity(reached.len());
    let mut goal = goal;
    for before in reached.into_iter().rev() {
        let leads = |element: &&PathElement| element.attributes.meets(before) && element.attributes.meets(goal);
        let element = elements.iter().find(leads)?;
        goal = element.attributes.intersection(before);
        path.push(LinkedStep { through: element.element, via: goal });
    }
    path.reverse();
    Some(path)
}
