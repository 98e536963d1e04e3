//! Dependencies of a join: none ties the joined releases to each other, and groups hold where attributes that dependencies tie to
//! what is counted are known exactly.
//!
//! # Citations
//! docs/spec/dependencies.md#verification

use super::details::{earlier, joined_as};
use super::exact;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, CellShape};
use crate::publication::{EarlierRelease, SequentialDetails, XyRequirement, YElement};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::definition::links::{closure, link_across, links_of, tied};

/// Checks the links beside the join of a sequential release with earlier ones.
///
/// A link lies within one of the joined releases. Where links tie a counted attribute to generalized ones by which rows
/// are grouped or matched, the requirement states these and also holds with their values. Labels of an earlier release
/// have none that could be tested.
pub(in crate::verifier) fn check(
    input: &VerifierInput<'_>,
    sequence: &SequentialDetails,
    known: &[(AttrSet, AttrSet)],
    control: &Control,
    log: &mut CheckLog,
) -> Result<(), VerifierError> {
    let columns = input.publication.tables.iter().flat_map(|table| &table.parts).flat_map(|part| &part.columns);
    let earlier = earlier(input.earlier_releases, sequence).unwrap_or_default();
    let mut releases: Vec<AttrSet> = vec![columns.map(|column| column.attribute).collect()];
    for release in &earlier {
        releases.push(release.columns.iter().filter_map(|column| attr_of(input, sequence, &column.name)).collect());
    }
    let visible = releases.iter().fold(AttrSet::EMPTY, |all, release| all.union(*release));
    let links = links_of(known, visible);
    let links = links.as_slice();
    if let Some(across) = link_across(&releases, links).filter(|_| !sequence.against.is_empty()) {
        let detail = format!("dependencies tie {} of different releases to each other", input.list(across));
        log.fail(CheckName::Dependencies, detail);
    }
    let exact = exact_of(input, known);
    let join = LinkedJoin { input, sequence, releases: &releases };
    for (requirement, on) in &sequence.requirements {
        let named = requirement.y.iter().filter_map(|of| match of {
            YElement::Attribute(of) => join.attr_of(&of.attribute),
            YElement::Key(_) => None,
        });
        let counted: AttrSet = named.collect();
        let revealed = tied(counted, links).minus(counted);
        let own: AttrSet = sequence.cuts.iter().filter_map(|(name, _)| join.attr_of(name)).collect();
        let own = join.concerned(requirement, 0, own.intersection(revealed));
        let listed: AttrSet = requirement.known_exactly.iter().filter_map(|name| join.attr_of(name)).collect();
        let mut fail = |attributes: AttrSet, what: &str| {
            let (from, to) = (input.list(attributes), input.list(counted));
            log.fail(CheckName::Dependencies, format!("dependencies tie {to} to {from}, {what}"));
        };
        let unproved = own.minus(closure(counted, &exact));
        if !unproved.is_empty() {
            fail(unproved, "which is not computed from it in every row");
        } else if own != listed {
            fail(own.union(listed), "and the requirement does not state exactly these as known exactly");
        } else if !own.is_empty() && !exact::holds(input, sequence, requirement, on, control)? {
            fail(own, "and for who knows these exactly the requirement does not hold");
        }
        for (number, release) in (1..).zip(&earlier) {
            let general = release.columns.iter().filter(|column| column.shape != CellShape::Exact || column.nodes);
            let general: AttrSet = general.filter_map(|column| join.attr_of(&column.name)).collect();
            let hidden = join.concerned(requirement, number, general.intersection(revealed));
            if !hidden.is_empty() {
                fail(hidden, "of which an earlier release shows less than is known");
            }
        }
        if let Some(unnamed) = join.unnamed(requirement, &earlier, counted, links) {
            let detail = "which x does not name, to labels by which the requirement groups or matches rows";
            log.fail(CheckName::Dependencies, format!("dependencies tie {}, {detail}", input.list(unnamed)));
        }
    }
    Ok(())
}

/// The dependencies that hold in every row; without rows, all that is listed counts as exact.
fn exact_of(input: &VerifierInput<'_>, known: &[(AttrSet, AttrSet)]) -> Vec<(AttrSet, AttrSet)> {
    let holds = |(determinant, dependent): &&(AttrSet, AttrSet)| {
        input.original.is_none() || dependent.iter().all(|to| input.is_exact(*determinant, to))
    };
    known.iter().filter(holds).copied().collect()
}

/// A join with the attributes that each of its releases publishes.
struct LinkedJoin<'a> {
    input: &'a VerifierInput<'a>,
    sequence: &'a SequentialDetails,
    releases: &'a [AttrSet],
}

impl LinkedJoin<'_> {
    fn attr_of(&self, name: &str) -> Option<Attr> {
        attr_of(self.input, self.sequence, name)
    }

    /// Attributes of one release that links tie to generalized ones by which a requirement groups or matches its rows, where X
    /// does not name all of them.
    fn unnamed(
        &self,
        requirement: &XyRequirement,
        earlier: &[&EarlierRelease],
        counted: AttrSet,
        links: &[AttrSet],
    ) -> Option<AttrSet> {
        let named: AttrSet = requirement.x.iter().filter_map(|of| self.attr_of(&of.attribute)).collect();
        (0..self.releases.len()).find_map(|release| {
            let general: AttrSet = match release.checked_sub(1) {
                None => self.sequence.cuts.iter().filter_map(|(name, _)| self.attr_of(name)).collect(),
                Some(at) => {
                    let columns = earlier.get(at)?.columns.iter();
                    let general = columns.filter(|column| column.shape != CellShape::Exact || column.nodes);
                    general.filter_map(|column| self.attr_of(&column.name)).collect()
                }
            };
            let own = self.releases[release].minus(counted);
            let general = self.concerned(requirement, release, general.intersection(own));
            let alike = general.iter().map(|attr| tied(AttrSet::one(attr), links).intersection(own));
            let unnamed = alike.filter(|alike| alike.len() > 1).map(|alike| alike.minus(named));
            unnamed.into_iter().find(|unnamed| !unnamed.is_empty())
        })
    }

    /// Those of the attributes of a release by which a requirement groups rows, or by which these match others.
    fn concerned(&self, requirement: &XyRequirement, release: usize, attributes: AttrSet) -> AttrSet {
        let sides = self.sequence.exclusions.iter().flat_map(|exclusion| [&exclusion.left, &exclusion.right]);
        let excluded = sides.filter(|side| side.release == release).flat_map(|side| &side.within);
        let grouped = requirement.x.iter().filter(|of| of.release == release).map(|of| &of.attribute);
        let named = grouped.chain(excluded.map(|(name, _)| name)).filter_map(|name| self.attr_of(name));
        let others = self.releases.iter().enumerate().filter(|(at, _)| *at != release);
        let concerned = others.fold(named.collect(), |all: AttrSet, (_, of)| all.union(*of));
        attributes.intersection(concerned)
    }
}

/// The attribute that is joined under a name.
fn attr_of(input: &VerifierInput<'_>, sequence: &SequentialDetails, of: &str) -> Option<Attr> {
    input.names.iter().position(|name| joined_as(sequence, 0, name) == of).map(Attr::from)
}
