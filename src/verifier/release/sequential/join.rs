//! The join of a sequential release with earlier ones, and measures of requirements on it.
//!
//! The join has the tuples of rows of which every two match, from the published tables alone. Small joins are
//! enumerated row by row; in large ones, rows with equal labels are counted together.
//!
//! # Citations
//! [Wang and Fung 2006], docs/spec/sequential.md#joins

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;

use super::groups::{JoinError, JoinGroups, MAX_JOIN_STEPS, ReleaseMatches, ReleaseRows};
use super::label::{LabelMeaning, LabelTree, is_compatible, same};
use super::observed::ObservedRelease;
use super::premise::{by_itself, names_others};
use crate::control::{Cancelled, Control};
use crate::microdata::{AttributeType, CellInterval, CellShape, SUPPRESSED_CELL, Taxonomy, parse_set};
use crate::publication::{
    Conditions, EarlierRelease, Exclusion, JoinAttribute, JoinSelection, SensitiveValue, SequentialDetails, XyMeasure,
    XyRequirement, YElement,
};

/// Maximal number of tuples, matching or not, of a join that is enumerated row by row.
const MAX_ROW_BY_ROW_TUPLES: u128 = 4_000_000;

/// Measure of a requirement on a join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinMeasures {
    /// For anonymity the number of values and 1; for linkability a share.
    pub achieved: (u128, u128),
    /// The labels on X of the worst group.
    pub known: Vec<(JoinAttribute, Option<Vec<u8>>)>,
    /// For linkability, the labels on Y with the largest share.
    pub inferred: Vec<(JoinAttribute, Option<Vec<u8>>)>,
}

impl JoinMeasures {
    /// Whether the measure satisfies the bound of a requirement.
    #[must_use]
    pub fn is_allowed(&self, measure: &XyMeasure) -> bool {
        let (count, of) = self.achieved;
        match measure {
            XyMeasure::Anonymity { k } => count >= u128::from(*k),
            XyMeasure::Linkability { h, .. } => {
                let product = |a: u128, b: u64| a.saturating_mul(u128::from(b));
                product(count, h.denominator()) <= product(of, h.numerator())
            }
        }
    }
}

/// Join of releases; release 0 is the new one.
pub struct ReleaseJoin<'a> {
    releases: Vec<&'a ObservedRelease>,
    trees: BTreeMap<&'a str, LabelTree>,
    exclusions: &'a [Exclusion],
}

impl<'a> ReleaseJoin<'a> {
    /// Maximal number of steps for one requirement on one join.
    pub const MAX_JOIN_STEPS: u64 = MAX_JOIN_STEPS;

    /// The join of a new release with earlier ones, and the taxonomies of the new release.
    #[must_use]
    pub fn new(
        new: &'a ObservedRelease,
        new_trees: &'a BTreeMap<String, Arc<Taxonomy>>,
        earlier: &'a [(&'a EarlierRelease, ObservedRelease)],
        exclusions: &'a [Exclusion],
    ) -> Self {
        let mut trees: BTreeMap<&str, LabelTree> = BTreeMap::new();
        // values are placed in a taxonomy where some release publishes its nodes
        let of_earlier = earlier.iter().flat_map(|(release, observed)| {
            let is_node =
                |name: &str| observed.column(name).is_some_and(|at| observed.columns[at].shape == CellShape::Node);
            release.taxonomies.iter().filter(move |(name, _)| is_node(name))
        });
        for (name, tree) in new_trees.iter().chain(of_earlier) {
            trees.entry(name).or_insert_with(|| LabelTree::from_taxonomy(tree));
        }
        Self {
            releases: std::iter::once(new).chain(earlier.iter().map(|(_, observed)| observed)).collect(),
            trees,
            exclusions,
        }
    }

    /// The joins on which a requirement must hold, as lists of releases.
    ///
    /// With `other_rows`, rows of the new release may join with none, and the requirement must hold on the new
    /// release alone too.
    fn wanted(&self, requirement: &XyRequirement, subsets: JoinSelection, other_rows: bool) -> Vec<Vec<usize>> {
        let mut named: Vec<usize> = requirement.x.iter().map(|x| x.release).collect();
        named.extend(requirement.y.iter().map(|element| match element {
            YElement::Attribute(reference) => reference.release,
            YElement::Key(release) => *release,
        }));
        let all = 0..self.releases.len();
        let others: Vec<usize> = all.clone().filter(|release| *release != 0 && !named.contains(release)).collect();
        let mut wanted: Vec<Vec<usize>> = Vec::new();
        for set in 0_u64..1 << others.len().min(20) {
            let taken = others.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).count();
            if subsets == JoinSelection::All || taken <= 1 || taken == others.len() {
                let is_in = |release: &usize| match others.iter().position(|other| other == release) {
                    None => true,
                    Some(at) => set >> at & 1 == 1,
                };
                wanted.push(
                    all.clone().filter(is_in).filter(|r| *r == 0 || others.contains(r) || named.contains(r)).collect(),
                );
            }
        }
        if other_rows && by_itself(requirement).is_some() && !wanted.contains(&vec![0]) {
            wanted.push(vec![0]);
        }
        wanted
    }

    fn meaning(&self, release: usize, column: usize, label: Option<&[u8]>) -> Option<LabelMeaning> {
        let of = &self.releases[release].columns[column];
        self.meaning_of(&of.name, of.shape, of.kind, label)
    }

    fn meaning_of(
        &self,
        name: &str,
        shape: CellShape,
        kind: AttributeType,
        label: Option<&[u8]>,
    ) -> Option<LabelMeaning> {
        let tree = self.trees.get(name);
        match shape {
            CellShape::Node => Some(LabelMeaning::Path(tree?.path(kind, label)?)),
            CellShape::Exact => Some(match tree.and_then(|tree| tree.path(kind, label)) {
                Some(path) => LabelMeaning::Path(path),
                None => LabelMeaning::Text(label.map(<[u8]>::to_vec)),
            }),
            CellShape::Suppressed => (label == Some(SUPPRESSED_CELL.as_bytes())).then_some(LabelMeaning::Anything),
            CellShape::Interval => Some(match label {
                None => LabelMeaning::Range { missing: true, values: None },
                Some(text) => {
                    let span = CellInterval::parse(text)?;
                    let from = span.from.as_deref().map(<[u8]>::to_vec);
                    LabelMeaning::Range { missing: from.is_none(), values: Some((from, span.to.to_vec())) }
                }
            }),
            CellShape::Set => {
                let values = parse_set(label?).filter(|values| !values.is_empty())?;
                let each = values.iter().map(|value| self.meaning_of(name, CellShape::Exact, kind, value.as_deref()));
                each.collect::<Option<Vec<LabelMeaning>>>().map(LabelMeaning::Among)
            }
        }
    }

    /// The shape of the cells of an attribute of a release, where it has the attribute.
    pub(super) fn shape(&self, release: usize, attribute: &str) -> Option<CellShape> {
        let of = self.releases.get(release)?;
        of.column(attribute).map(|at| of.columns[at].shape)
    }

    /// The columns of a release that decide which rows match.
    fn matched(&self, release: usize, joined: &[usize]) -> Vec<usize> {
        let of = self.releases[release];
        let others = || joined.iter().filter(|other| **other != release);
        let matters = |name: &str| {
            let shared = others().any(|other| self.releases[*other].column(name).is_some());
            let excluded = self.exclusions.iter().any(|exclusion| {
                let sides = [(&exclusion.left, &exclusion.right), (&exclusion.right, &exclusion.left)];
                sides.iter().any(|(own, other)| {
                    own.release == release
                        && joined.contains(&other.release)
                        && own.within.iter().any(|(named, _)| named == name)
                })
            });
            shared || excluded
        };
        (0..of.columns.len()).filter(|&at| matters(&of.columns[at].name)).collect()
    }

    /// The measure of a requirement on the join of some releases, or on the new release alone.
    ///
    /// # Errors
    /// [`JoinError`]
    pub fn measure(
        &self,
        requirement: &XyRequirement,
        joined: &[usize],
        control: &Control,
    ) -> Result<JoinMeasures, JoinError> {
        if joined == [0] && names_others(requirement) {
            let alone = by_itself(requirement).ok_or(JoinError::Unknown)?;
            return self.measure(&alone, joined, control);
        }
        let place = |reference: &JoinAttribute| {
            let at = self.releases.get(reference.release)?.column(&reference.attribute)?;
            joined.iter().position(|of| *of == reference.release).map(|of| (of, at))
        };
        let x: Vec<(usize, usize)> =
            requirement.x.iter().map(place).collect::<Option<_>>().ok_or(JoinError::Unknown)?;
        let inferred: Vec<&JoinAttribute> = requirement
            .y
            .iter()
            .filter_map(|element| match element {
                YElement::Attribute(reference) => Some(reference),
                YElement::Key(_) => None,
            })
            .collect();
        let y: Vec<(usize, usize)> =
            inferred.iter().map(|of| place(of)).collect::<Option<_>>().ok_or(JoinError::Unknown)?;
        let keys: Vec<usize> = requirement
            .y
            .iter()
            .filter_map(|element| match element {
                YElement::Attribute(_) => None,
                YElement::Key(release) => joined.iter().position(|of| of == release),
            })
            .collect();
        let tuples = joined.iter().map(|of| self.releases[*of].rows as u128).try_fold(1_u128, u128::checked_mul);
        let literal = tuples.is_some_and(|tuples| tuples <= MAX_ROW_BY_ROW_TUPLES);
        let mut rows = Vec::new();
        for (at, &release) in joined.iter().enumerate() {
            let here = |of: &&(usize, usize)| of.0 == at;
            let wanted: Vec<usize> = x.iter().chain(&y).filter(here).map(|of| of.1).collect();
            rows.push(self.alike(release, &self.matched(release, joined), &wanted, literal, control)?);
        }
        let matches = self.matches(joined, &rows, control)?;
        let wanted = |at: usize| x.iter().chain(&y).filter(|of| of.0 == at).map(|of| of.1).collect();
        let own = (0..joined.len()).map(wanted).collect();
        let mut groups = JoinGroups { x: &x, y: &y, keys: &keys, own, found: AHashMap::new(), steps: 0 };
        groups.walk(&rows, &matches, &mut Vec::new(), control)?;
        self.worst(requirement, &inferred, groups)
    }

    /// Groups rows by the labels of `matched` columns, and then by those of `wanted` columns.
    fn alike(
        &self,
        release: usize,
        matched: &[usize],
        wanted: &[usize],
        literal: bool,
        control: &Control,
    ) -> Result<ReleaseRows, Cancelled> {
        let of = self.releases[release];
        let mut numbers: AHashMap<Vec<u32>, usize> = AHashMap::new();
        let mut within: Vec<AHashMap<Vec<u32>, u128>> = Vec::new();
        let mut rows = ReleaseRows { keys: Vec::new(), within: Vec::new() };
        for row in 0..of.rows {
            if row.is_multiple_of(Control::STRIDE) {
                control.check()?;
            }
            let labels = |columns: &[usize]| columns.iter().map(|&at| of.columns[at].codes[row]).collect::<Vec<u32>>();
            let key = labels(matched);
            if literal {
                rows.keys.push(key);
                rows.within.push(vec![(labels(wanted), 1)]);
                continue;
            }
            let number = *numbers.entry(key).or_insert_with_key(|key| {
                rows.keys.push(key.clone());
                within.push(AHashMap::new());
                rows.keys.len() - 1
            });
            *within[number].entry(labels(wanted)).or_default() += 1;
        }
        if !literal {
            rows.within = within.into_iter().map(|of| of.into_iter().collect()).collect();
        }
        Ok(rows)
    }

    /// For each two releases, the keys of the second that each key of the first matches.
    fn matches(&self, joined: &[usize], rows: &[ReleaseRows], control: &Control) -> Result<ReleaseMatches, JoinError> {
        let mut matches = ReleaseMatches::new();
        for (second, &s) in joined.iter().enumerate() {
            for (first, &f) in joined[..second].iter().enumerate() {
                let (own, other) = (self.matched(f, joined), self.matched(s, joined));
                let steps = rows[first].keys.len() as u64 * rows[second].keys.len() as u64;
                if steps > MAX_JOIN_STEPS {
                    return Err(JoinError::TooMany);
                }
                let tests = self.tests(f, s, &own, &other)?;
                let exclusion_bars = self.exclusion_bars(f, s, &own, &other)?;
                let mut of_first = Vec::new();
                for key in &rows[first].keys {
                    control.check()?;
                    let pairs = |other: &Vec<u32>| {
                        tests.iter().all(|test| test.holds(key[test.first], other[test.second]))
                            && exclusion_bars.iter().all(|bar| !bar.applies(key, other))
                    };
                    of_first.push((0..rows[second].keys.len()).filter(|&at| pairs(&rows[second].keys[at])).collect());
                }
                matches.insert((first, second), of_first);
            }
        }
        Ok(matches)
    }

    /// Tests of the attributes that two releases share.
    fn tests(&self, f: usize, s: usize, own: &[usize], other: &[usize]) -> Result<Vec<MatchTest>, JoinError> {
        let mut tests = Vec::new();
        for (first, &a) in own.iter().enumerate() {
            let name = &self.releases[f].columns[a].name;
            let Some(second) = other.iter().position(|&b| self.releases[s].columns[b].name == *name) else { continue };
            let (a, b) = (&self.releases[f].columns[a], &self.releases[s].columns[other[second]]);
            let means = |release: usize, at: usize, labels: &[Option<Vec<u8>>]| {
                let meant = labels.iter().map(|label| self.meaning(release, at, label.as_deref()));
                meant.collect::<Option<Vec<LabelMeaning>>>().ok_or(JoinError::Unknown)
            };
            let (left, right) = (means(f, own[first], &a.labels)?, means(s, other[second], &b.labels)?);
            if left.len() as u64 * right.len() as u64 > MAX_JOIN_STEPS {
                return Err(JoinError::TooMany);
            }
            let kind = a.kind;
            let held = left.iter().map(|a| right.iter().map(|b| is_compatible(a, b, kind)).collect()).collect();
            tests.push(MatchTest { first, second, held });
        }
        Ok(tests)
    }

    /// The exclusions between two releases.
    fn exclusion_bars(
        &self,
        f: usize,
        s: usize,
        own: &[usize],
        other: &[usize],
    ) -> Result<Vec<ExclusionBar>, JoinError> {
        let mut exclusion_bars = Vec::new();
        for exclusion in self.exclusions {
            let sides = [(&exclusion.left, &exclusion.right), (&exclusion.right, &exclusion.left)];
            for (left, right) in sides.into_iter().filter(|(a, b)| (a.release, b.release) == (f, s)) {
                let side = |release: usize, columns: &[usize], side: &Conditions| {
                    let condition = |(name, declared): &(String, Option<String>)| {
                        let of = self.releases[release];
                        let at = columns.iter().position(|&at| of.columns[at].name == *name)?;
                        let column = &of.columns[columns[at]];
                        let within = column.labels.iter().map(|label| self.within(column, label.as_deref(), declared));
                        Some((at, within.collect::<Option<Vec<bool>>>()?))
                    };
                    side.within.iter().map(condition).collect::<Option<Vec<_>>>().ok_or(JoinError::Unknown)
                };
                exclusion_bars.push(ExclusionBar { left: side(f, own, left)?, right: side(s, other, right)? });
            }
        }
        Ok(exclusion_bars)
    }

    /// Whether a declared value or node covers all values of a label.
    fn within(
        &self,
        column: &super::observed::ObservedColumn,
        label: Option<&[u8]>,
        declared: &Option<String>,
    ) -> Option<bool> {
        let declared = declared.as_ref().map(|label| label.as_bytes());
        let meaning = self.meaning_of(&column.name, column.shape, column.kind, label)?;
        Some(self.is_within(column, &meaning, declared))
    }

    fn is_within(
        &self,
        column: &super::observed::ObservedColumn,
        meaning: &LabelMeaning,
        declared: Option<&[u8]>,
    ) -> bool {
        let node = || self.node(&column.name, declared);
        match meaning {
            LabelMeaning::Path(path) => node().is_some_and(|node| path.contains(&node)),
            LabelMeaning::Text(text) => same(column.kind, text.as_deref(), declared),
            LabelMeaning::Range { missing, values: None } => *missing && declared.is_none(),
            LabelMeaning::Range { missing, values: Some((from, to)) } => {
                !missing && same(column.kind, from.as_deref(), declared) && same(column.kind, Some(to), declared)
            }
            LabelMeaning::Among(each) => each.iter().all(|one| self.is_within(column, one, declared)),
            // the root of a taxonomy covers all values
            LabelMeaning::Anything => node() == Some(0),
        }
    }

    /// Whether a label of a release covers a value.
    pub(in crate::verifier) fn is_above(
        &self,
        release: usize,
        name: &str,
        label: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> bool {
        let Some(column) = self.releases[release].column(name).map(|at| &self.releases[release].columns[at]) else {
            return false;
        };
        let value_path = || self.trees.get(name).and_then(|tree| tree.path(column.kind, value));
        match self.meaning_of(name, column.shape, column.kind, label) {
            None => false,
            Some(LabelMeaning::Path(path)) => {
                path.first().is_some_and(|node| value_path().is_some_and(|of| of.contains(node)))
            }
            Some(meaning) => is_compatible(&meaning, &LabelMeaning::Text(value.map(<[u8]>::to_vec)), column.kind),
        }
    }

    fn node(&self, name: &str, label: Option<&[u8]>) -> Option<u32> {
        self.trees.get(name)?.by_label.get(&label.map(<[u8]>::to_vec)).copied()
    }

    /// Whether a label may stand for a declared value.
    fn may_be(
        &self,
        column: &super::observed::ObservedColumn,
        label: Option<&[u8]>,
        declared: Option<&str>,
    ) -> Option<bool> {
        let declared = declared.map(str::as_bytes);
        let meaning = self.meaning_of(&column.name, column.shape, column.kind, label)?;
        Some(self.is_possible(column, &meaning, declared))
    }

    fn is_possible(
        &self,
        column: &super::observed::ObservedColumn,
        meaning: &LabelMeaning,
        declared: Option<&[u8]>,
    ) -> bool {
        match meaning {
            // a declared node is compatible with its descendants and ancestors
            LabelMeaning::Path(path) => {
                let Some(tree) = self.trees.get(column.name.as_str()) else { return false };
                let mut above =
                    std::iter::successors(self.node(&column.name, declared), |node| tree.tree.parent(*node)).peekable();
                above.peek().is_some_and(|node| path.contains(node)) || above.any(|node| path.first() == Some(&node))
            }
            LabelMeaning::Among(each) => each.iter().any(|one| self.is_possible(column, one, declared)),
            meaning => is_compatible(meaning, &LabelMeaning::Text(declared.map(<[u8]>::to_vec)), column.kind),
        }
    }

    /// The worst group with its measure.
    fn worst(
        &self,
        requirement: &XyRequirement,
        inferred: &[&JoinAttribute],
        groups: JoinGroups<'_>,
    ) -> Result<JoinMeasures, JoinError> {
        let label = |reference: &JoinAttribute, code: u32| {
            let of = self.releases[reference.release];
            let at = of.column(&reference.attribute).unwrap_or_default();
            (reference.clone(), of.columns[at].labels[code as usize].clone())
        };
        let sensitive = match &requirement.measure {
            XyMeasure::Linkability { sensitive: Some(values), .. } => Some(self.sensitive(inferred, values)?),
            _ => None,
        };
        let counted = |labels: &[u32]| {
            let is = |value: &Vec<Vec<bool>>| value.iter().zip(labels).all(|(held, &label)| held[label as usize]);
            sensitive.as_ref().is_none_or(|values| values.iter().any(is))
        };
        let mut worst: Option<JoinMeasures> = None;
        let mut found: Vec<_> = groups.found.into_iter().collect();
        // deterministic among equal groups
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (x, values) in found {
            let known = || requirement.x.iter().zip(&x).map(|(of, &code)| label(of, code)).collect();
            let here = match requirement.measure {
                XyMeasure::Anonymity { .. } => {
                    let number = values.values().map(|of| of.alike).sum();
                    JoinMeasures { achieved: (number, 1), known: known(), inferred: Vec::new() }
                }
                XyMeasure::Linkability { .. } => {
                    let of: u128 = values.values().map(|of| of.tuples).sum();
                    let mut most: (u128, Option<&Vec<u32>>) = (0, None);
                    for (y, value) in &values {
                        let share = value.tuples / value.alike;
                        let more = share > most.0 || share == most.0 && most.1.is_some_and(|other| y < other);
                        if more && counted(&y[..inferred.len()]) {
                            most = (share, Some(y));
                        }
                    }
                    let labels = most.1.map(|y| inferred.iter().zip(y).map(|(of, &code)| label(of, code)).collect());
                    JoinMeasures { achieved: (most.0, of), known: known(), inferred: labels.unwrap_or_default() }
                }
            };
            let is_worse = worst.as_ref().is_none_or(|worst| {
                let ((a, of_a), (b, of_b)) = (here.achieved, worst.achieved);
                let order = a.saturating_mul(of_b).cmp(&b.saturating_mul(of_a));
                match requirement.measure {
                    XyMeasure::Anonymity { .. } => order == Ordering::Less,
                    XyMeasure::Linkability { .. } => order == Ordering::Greater,
                }
            });
            if is_worse {
                worst = Some(here);
            }
        }
        worst.ok_or(JoinError::Empty)
    }

    /// For each sensitive value, attribute of Y and label, whether the label may stand for the value.
    fn sensitive(
        &self,
        inferred: &[&JoinAttribute],
        values: &[SensitiveValue],
    ) -> Result<Vec<Vec<Vec<bool>>>, JoinError> {
        let of_value = |value: &SensitiveValue| {
            let of_attribute = |(reference, declared): (&&JoinAttribute, &Option<String>)| {
                let of = self.releases[reference.release];
                let column = &of.columns[of.column(&reference.attribute)?];
                let meant = |label: &Option<Vec<u8>>| self.may_be(column, label.as_deref(), declared.as_deref());
                column.labels.iter().map(meant).collect::<Option<Vec<bool>>>()
            };
            inferred.iter().zip(value).map(of_attribute).collect::<Option<Vec<_>>>()
        };
        values.iter().map(of_value).collect::<Option<Vec<_>>>().ok_or(JoinError::Unknown)
    }

    /// Whether every row of the new release matches a row of each release with the same rows.
    ///
    /// # Errors
    /// [`JoinError`]
    pub(in crate::verifier) fn all_rows_match(&self, same: &[bool], control: &Control) -> Result<bool, JoinError> {
        for other in (1..self.releases.len()).filter(|other| same[other - 1]) {
            let joined = [0, other];
            let rows = joined.map(|of| self.alike(of, &self.matched(of, &joined), &[], false, control));
            let [new, old] = rows;
            let matches = self.matches(&joined, &[new?, old?], control)?;
            if matches.get(&(0, 1)).is_some_and(|of| of.iter().any(Vec::is_empty)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares the declared joins and measures with the computed ones; returns the first fault.
    ///
    /// # Errors
    /// [`JoinError`] when a join cannot be measured.
    pub fn check(&self, sequence: &SequentialDetails, control: &Control) -> Result<Option<String>, JoinError> {
        for (number, (requirement, on)) in sequence.requirements.iter().enumerate() {
            for wanted in self.wanted(requirement, sequence.subsets, sequence.other_rows) {
                if on.iter().all(|declared| declared.releases != wanted) {
                    return Ok(Some(format!(
                        "requirement {number} is not declared on a join of {} releases",
                        wanted.len()
                    )));
                }
            }
            for declared in on {
                let found = self.measure(requirement, &declared.releases, control)?;
                let (count, of) = (u128::from(declared.achieved.0), u128::from(declared.achieved.1));
                if found.achieved.0.checked_mul(of).is_none() || found.achieved.0 * of != count * found.achieved.1 {
                    let detail = format!("requirement {number} has another measure than declared");
                    return Ok(Some(detail));
                }
                if !found.is_allowed(&requirement.measure) {
                    return Ok(Some(format!("requirement {number} does not hold on a join")));
                }
            }
        }
        Ok(None)
    }
}

/// Compatibility of the labels of an attribute in two releases.
struct MatchTest {
    first: usize,
    second: usize,
    held: Vec<Vec<bool>>,
}

impl MatchTest {
    fn holds(&self, first: u32, second: u32) -> bool {
        self.held[first as usize][second as usize]
    }
}

/// An exclusion between two releases: positions in keys, and the covered labels.
struct ExclusionBar {
    left: Vec<(usize, Vec<bool>)>,
    right: Vec<(usize, Vec<bool>)>,
}

impl ExclusionBar {
    fn applies(&self, left: &[u32], right: &[u32]) -> bool {
        let all = |side: &[(usize, Vec<bool>)], key: &[u32]| side.iter().all(|(at, held)| held[key[*at] as usize]);
        all(&self.left, left) && all(&self.right, right)
    }
}
