//! The releases of a problem by number, reduced to the columns that requirements need.

use super::signatures::RowSignatures;
use super::span::{NodeRange, NodeSet};
use super::{
    GroupMeasure, NewTableColumn, PublishedLabels, ResolvedAttribute, ResolvedConditions, ResolvedExclusion,
    ResolvedRequirement, ResolvedYElement, SequentialError, SequentialProblem,
};
use crate::control::Control;
use crate::microdata::Codes;

/// A column of a release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ColumnRef {
    pub(super) release: usize,
    pub(super) column: usize,
}

/// A column with the node range that a condition names.
#[derive(Clone, Copy)]
pub(super) struct ColumnRange {
    pub(super) column: usize,
    pub(super) span: NodeRange,
}

/// A release with the columns that are referred to, shared with other releases, or named in exclusions.
pub(super) struct ReleaseView {
    pub(super) attributes: Vec<u32>,
    /// Node sets of each code, by column; ungeneralized in the new release.
    pub(super) places: Vec<Vec<NodeSet>>,
    pub(super) signatures: RowSignatures,
}

impl ReleaseView {
    /// The view of a release with the columns `used`.
    fn new(
        problem: &SequentialProblem<'_>,
        release: usize,
        used: &[usize],
        control: &Control,
    ) -> Result<Self, SequentialError> {
        let Some(earlier) = release.checked_sub(1).map(|at| &problem.earlier[at]) else {
            let columns = || used.iter().map(|&at| &problem.new.columns[at]);
            let codes: Vec<&Codes> = columns().map(|column| column.codes).collect();
            let spans = |column: &NewTableColumn<'_>| column.scale.spans(distinct(column.codes));
            return Ok(Self {
                attributes: columns().map(|column| column.attribute).collect(),
                places: columns().map(|column| spans(column).into_iter().map(NodeSet::Range).collect()).collect(),
                signatures: RowSignatures::of_rows(problem.new.rows, &codes, control)?,
            });
        };
        let columns = || used.iter().map(|&at| &earlier.columns[at]);
        let codes: Vec<&Codes> = columns().map(|column| column.codes).collect();
        Ok(Self {
            attributes: columns().map(|column| column.attribute).collect(),
            places: columns().map(|column| column.places.clone()).collect(),
            signatures: RowSignatures::of_rows(earlier.rows, &codes, control)?,
        })
    }

    pub(super) fn column(&self, attribute: u32) -> Option<usize> {
        self.attributes.iter().position(|&other| other == attribute)
    }
}

/// One side of an exclusion: columns of a release, with their node ranges.
pub(super) struct ExclusionSide {
    pub(super) release: usize,
    pub(super) within: Vec<ColumnRange>,
}

impl ExclusionSide {
    fn new(views: &[ReleaseView], side: &ResolvedConditions) -> Self {
        let release = side.release;
        let column = |&(attribute, span): &(u32, NodeRange)| {
            let cell = ColumnRef::new(views, &ResolvedAttribute { release, attribute });
            ColumnRange { column: cell.column, span }
        };
        Self { release, within: side.within.iter().map(column).collect() }
    }
}

impl ColumnRef {
    /// The column of a reference that was checked; each names a needed column.
    fn new(views: &[ReleaseView], reference: &ResolvedAttribute) -> Self {
        let column = views[reference.release].column(reference.attribute).unwrap_or_default();
        Self { release: reference.release, column }
    }
}

/// Conditions on two releases that no record satisfies together.
pub(super) struct ExclusionPair(pub(super) [ExclusionSide; 2]);

impl ExclusionPair {
    /// The sides at two releases, if the exclusion is between them.
    pub(super) fn between(&self, a: usize, b: usize) -> Option<(&ExclusionSide, &ExclusionSide)> {
        let [left, right] = &self.0;
        match (left.release, right.release) {
            releases if releases == (a, b) => Some((left, right)),
            releases if releases == (b, a) => Some((right, left)),
            _ => None,
        }
    }
}

/// A requirement by column index.
#[derive(Clone)]
pub(super) struct IndexedRequirement {
    pub(super) x: Vec<ColumnRef>,
    pub(super) y: Vec<ColumnRef>,
    /// Releases whose key Y holds.
    pub(super) keys: Vec<usize>,
    /// Columns of the new release that are known exactly, whatever labels it publishes.
    pub(super) exact: Vec<usize>,
    /// Columns that belong to X on joins with their releases.
    also: Vec<ColumnRef>,
    pub(super) measure: GroupMeasure,
}

impl IndexedRequirement {
    fn new(views: &[ReleaseView], requirement: &ResolvedRequirement) -> Self {
        let (mut y, mut keys) = (Vec::new(), Vec::new());
        for y_element in &requirement.y {
            match y_element {
                ResolvedYElement::Attribute(reference) => y.push(ColumnRef::new(views, reference)),
                ResolvedYElement::Key(release) => keys.push(*release),
            }
        }
        let x = requirement.x.iter().map(|reference| ColumnRef::new(views, reference)).collect();
        let exact = requirement.exact.iter().filter_map(|&attribute| views[0].column(attribute)).collect();
        let also = requirement.also.iter().map(|reference| ColumnRef::new(views, reference)).collect();
        Self { x, y, keys, exact, also, measure: requirement.measure.clone() }
    }

    /// The requirement on a join, where X has all that it has there.
    pub(super) fn on(&self, joined: &[usize]) -> Self {
        let mut on = self.clone();
        on.x.extend(self.also.iter().filter(|cell| joined.contains(&cell.release)));
        on
    }

    /// The releases it names, and the new one, rising.
    pub(super) fn named(&self) -> Vec<usize> {
        let cells = self.x.iter().chain(&self.y).map(|cell| cell.release);
        let mut named: Vec<usize> = cells.chain(self.keys.iter().copied()).chain([0]).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// Whether the requirement names the new release.
    pub(super) fn names_new(&self) -> bool {
        self.x.iter().chain(&self.y).any(|cell| cell.release == 0) || self.keys.contains(&0)
    }

    /// The requirement on the new release alone, whose rows may be in no join; `None` if it does not name the release.
    ///
    /// X and Y are restricted to the new release. Anonymity without a Y there bounds the rows of groups: a row without a match
    /// hides only among rows that are equal on X. Linkability without a Y there asks for nothing, as such a row has no Y value.
    pub(super) fn alone(&self) -> Option<Self> {
        let mut alone = self.only(0);
        let distinguishes = !alone.y.is_empty() || !alone.keys.is_empty();
        match self.measure {
            _ if !self.names_new() => return None,
            GroupMeasure::Linkability { .. } if !distinguishes => return None,
            GroupMeasure::Anonymity { .. } if !distinguishes => alone.keys.push(0),
            _ => {}
        }
        Some(alone)
    }

    /// The requirement restricted to one release.
    pub(super) fn only(&self, only: usize) -> Self {
        let here = |cell: &&ColumnRef| cell.release == only;
        let mut measure = self.measure.clone();
        if let GroupMeasure::Linkability { sensitive: Some(values), .. } = &mut measure {
            for value in values {
                let kept = self.y.iter().zip(&*value).filter(|(cell, _)| here(cell)).map(|(_, span)| *span).collect();
                *value = kept;
            }
        }
        let keys = self.keys.iter().copied().filter(|&release| release == only).collect();
        Self {
            x: self.x.iter().filter(here).copied().collect(),
            y: self.y.iter().filter(here).copied().collect(),
            keys,
            exact: self.exact.clone(),
            also: self.also.clone(),
            measure,
        }
    }
}

/// Input of all joins.
pub(super) struct JoinTables {
    pub(super) views: Vec<ReleaseView>,
    pub(super) barred: Vec<ExclusionPair>,
    pub(super) sought: Vec<IndexedRequirement>,
    /// Index in the problem, by column of the new release.
    pub(super) original: Vec<usize>,
}

impl JoinTables {
    pub(super) fn from_problem(problem: &SequentialProblem<'_>, control: &Control) -> Result<Self, SequentialError> {
        let attributes = attributes_of_releases(problem);
        check(&problem.requirements, &problem.exclusions, &attributes)?;
        let mut used: Vec<Vec<usize>> = Vec::with_capacity(attributes.len());
        let mut views = Vec::with_capacity(attributes.len());
        for (release, of) in attributes.iter().enumerate() {
            let needed: Vec<usize> =
                (0..of.len()).filter(|&at| is_needed(problem, &attributes, release, of[at])).collect();
            views.push(ReleaseView::new(problem, release, &needed, control)?);
            used.push(needed);
        }
        let barred = problem.exclusions.iter().map(|exclusion| {
            ExclusionPair([&exclusion.left, &exclusion.right].map(|side| ExclusionSide::new(&views, side)))
        });
        let sought = problem.requirements.iter().map(|requirement| IndexedRequirement::new(&views, requirement));
        let (barred, sought) = (barred.collect(), sought.collect());
        Ok(Self { sought, barred, views, original: used.into_iter().next().unwrap_or_default() })
    }

    /// Attribute of a column.
    pub(super) fn attribute(&self, cell: ColumnRef) -> u32 {
        self.views[cell.release].attributes[cell.column]
    }

    /// Node set of a code of a column.
    pub(super) fn label(&self, cell: ColumnRef, code: u32) -> &NodeSet {
        &self.views[cell.release].places[cell.column][code as usize]
    }

    /// Columns of a release by which its rows match the other releases of `joined`.
    pub(super) fn matched(&self, release: usize, joined: &[usize]) -> Vec<usize> {
        let others = || joined.iter().copied().filter(|&other| other != release);
        let mut matched = vec![false; self.views[release].attributes.len()];
        for other in others() {
            for (at, &attribute) in self.views[release].attributes.iter().enumerate() {
                matched[at] |= self.views[other].column(attribute).is_some();
            }
            for (side, _) in self.barred.iter().filter_map(|barred| barred.between(release, other)) {
                side.within.iter().for_each(|range| matched[range.column] = true);
            }
        }
        (0..matched.len()).filter(|&at| matched[at]).collect()
    }

    /// The only release that a requirement depends on in a join of releases with equal rows.
    ///
    /// Y lies in it, and X holds every column by which it matches. Then its rows with equal X join the same tuples, whose number
    /// cancels out.
    pub(super) fn decisive(&self, sought: &IndexedRequirement, joined: &[usize]) -> Option<usize> {
        let mut of_y = sought.y.iter().map(|cell| cell.release).chain(sought.keys.iter().copied());
        let release = of_y.next()?;
        let decides = of_y.all(|other| other == release)
            && self
                .matched(release, joined)
                .into_iter()
                .all(|column| sought.x.contains(&ColumnRef { release, column }));
        decides.then_some(release)
    }
}

/// Attributes of the columns of each release, the new one first.
fn attributes_of_releases(problem: &SequentialProblem<'_>) -> Vec<Vec<u32>> {
    let new = problem.new.columns.iter().map(|column| column.attribute).collect();
    let of_earlier =
        problem.earlier.iter().map(|release| release.columns.iter().map(|column| column.attribute).collect());
    std::iter::once(new).chain(of_earlier).collect()
}

/// Whether a column is shared with another release, or named by a requirement or an exclusion.
fn is_needed(problem: &SequentialProblem<'_>, attributes: &[Vec<u32>], release: usize, attribute: u32) -> bool {
    let here = ResolvedAttribute { release, attribute };
    let shared = attributes.iter().enumerate().any(|(other, of)| other != release && of.contains(&attribute));
    let named = |requirement: &ResolvedRequirement| {
        let grouping = requirement.x.contains(&here) || requirement.also.contains(&here);
        grouping || requirement.y.contains(&ResolvedYElement::Attribute(here))
    };
    let barred = |exclusion: &ResolvedExclusion| {
        let sides = [&exclusion.left, &exclusion.right];
        sides.iter().any(|side| side.release == release && side.within.iter().any(|&(a, _)| a == attribute))
    };
    shared || problem.requirements.iter().any(named) || problem.exclusions.iter().any(barred)
}

/// Number of codes of a column.
pub(super) fn distinct(codes: &Codes) -> usize {
    codes.iter().max().map_or(0, |code| code as usize + 1)
}

/// Checks that references exist and thresholds are valid.
fn check(
    requirements: &[ResolvedRequirement],
    exclusions: &[ResolvedExclusion],
    attributes: &[Vec<u32>],
) -> Result<(), SequentialError> {
    let exists = |release: usize, attribute: u32| attributes.get(release).is_some_and(|of| of.contains(&attribute));
    for (at, requirement) in requirements.iter().enumerate() {
        let y_element = |y_element: &ResolvedYElement| match y_element {
            ResolvedYElement::Attribute(reference) => exists(reference.release, reference.attribute),
            ResolvedYElement::Key(release) => *release < attributes.len(),
        };
        let mut grouping = requirement.x.iter().chain(&requirement.also);
        let known = grouping.all(|reference| exists(reference.release, reference.attribute));
        if !known || !requirement.y.iter().all(y_element) || requirement.y.is_empty() {
            return Err(SequentialError::UnknownReference { requirement: at });
        }
        if requirement.x.iter().any(|reference| requirement.y.contains(&ResolvedYElement::Attribute(*reference))) {
            return Err(SequentialError::Overlap { requirement: at });
        }
        let attributes_of_y =
            requirement.y.iter().filter(|y_element| matches!(y_element, ResolvedYElement::Attribute(_))).count();
        let means_something = match &requirement.measure {
            GroupMeasure::Anonymity { k } => *k > 0,
            GroupMeasure::Linkability { h, sensitive } => {
                let fits = |values: &Vec<Vec<NodeRange>>| values.iter().all(|value| value.len() == attributes_of_y);
                h.numerator() > 0 && h.numerator() <= h.denominator() && sensitive.as_ref().is_none_or(fits)
            }
        };
        if !means_something {
            return Err(SequentialError::Threshold { requirement: at });
        }
    }
    for (at, ResolvedExclusion { left, right }) in exclusions.iter().enumerate() {
        let known = |side: &ResolvedConditions| {
            !side.within.is_empty() && side.within.iter().all(|&(attribute, _)| exists(side.release, attribute))
        };
        if left.release == right.release || !known(left) || !known(right) {
            return Err(SequentialError::UnknownExclusion { exclusion: at });
        }
    }
    Ok(())
}

impl ResolvedExclusion {
    /// Number of rows of the original that the exclusion wrongly excludes, which must be 0. `None` if an attribute is missing.
    ///
    /// # Errors
    /// [`Cancelled`](crate::control::Cancelled) on cancellation.
    pub fn contradicted_by(
        &self,
        rows: usize,
        table: &[PublishedLabels<'_>],
        control: &Control,
    ) -> Result<Option<u64>, crate::control::Cancelled> {
        let conditions = self.left.within.iter().chain(&self.right.within);
        let find = |&(attribute, span)| {
            table
                .iter()
                .find(|labels: &&PublishedLabels<'_>| labels.attribute == attribute)
                .map(|labels| (labels, span))
        };
        let Some(conditions) = conditions.map(find).collect::<Option<Vec<(&PublishedLabels<'_>, NodeRange)>>>() else {
            return Ok(None);
        };
        let mut found = 0;
        for row in 0..rows {
            if row % Control::STRIDE == 0 {
                control.check()?;
            }
            let is_true = |(labels, span): &(&PublishedLabels<'_>, NodeRange)| {
                labels.places[labels.codes.get(row) as usize].within(*span)
            };
            found += u64::from(conditions.iter().all(is_true));
        }
        Ok(Some(found))
    }
}
