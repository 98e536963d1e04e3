//! What an adversary who knows X has besides its labels: other labels of the same attributes, and attributes that dependencies tie
//! to them.
//!
//! # Citations
//! docs/spec/sequential.md#knowledge-of-x

use super::builder::ProblemBuilder;
use crate::microdata::{Attr, AttrSet, CellShape};
use crate::privacy::Dependency;
use crate::privacy::links::{self, Link};
use crate::publication::{EarlierColumn, JoinAttribute, XyRequirement, YElement, reference_text};

/// Attributes by which an adversary matches rows more finely than a requirement says.
pub(super) struct UnnamedAttributes {
    pub(super) attributes: Vec<JoinAttribute>,
    /// A dependency that ties one of them.
    pub(super) because: Dependency,
}

impl ProblemBuilder<'_> {
    /// The number of releases, the new one included.
    pub(super) const fn releases(&self) -> usize {
        self.earlier.len() + 1
    }

    /// The attributes of a release, each with whether it is published as it is.
    pub(super) fn columns(&self, release: usize) -> Vec<(&str, bool)> {
        match release.checked_sub(1) {
            None => {
                let is_exact = |at: usize| !self.spec.generalized.contains(at.into());
                let names = self.table.names().iter().enumerate();
                let names = names.filter(|(_, name)| self.own(name).is_some());
                names.map(|(at, name)| (name.as_str(), is_exact(at))).collect()
            }
            Some(earlier) => {
                let is_exact = |of: &EarlierColumn| of.shape == CellShape::Exact && !of.nodes;
                self.earlier[earlier].columns.iter().map(|of| (of.name.as_str(), is_exact(of))).collect()
            }
        }
    }

    /// A reference as documents write it.
    pub(super) fn text(&self, of: &JoinAttribute) -> String {
        let against: Vec<String> = self.earlier.iter().map(|release| release.release.clone()).collect();
        reference_text(&against, of.release, &of.attribute)
    }

    /// The references to attributes of X in releases where X does not name them.
    ///
    /// Who knows the value of an attribute finds it in every release. Where X has it exactly in one of them, its group already has
    /// one value.
    pub(super) fn missing(&self, requirement: &XyRequirement) -> Vec<JoinAttribute> {
        let mut missing: Vec<JoinAttribute> = Vec::new();
        for JoinAttribute { attribute, .. } in &requirement.x {
            let shows = |release: usize| self.columns(release).into_iter().find(|(name, _)| name == attribute);
            let in_release = |release: usize| JoinAttribute { release, attribute: attribute.clone() };
            let is_named = |release: &usize| requirement.x.contains(&in_release(*release));
            let shown: Vec<(usize, bool)> =
                (0..self.releases()).filter_map(|release| Some((release, shows(release)?.1))).collect();
            if shown.iter().any(|(release, is_exact)| *is_exact && is_named(release)) {
                continue;
            }
            for (release, _) in shown.into_iter().filter(|(release, _)| !is_named(release)) {
                let reference = in_release(release);
                if !requirement.y.contains(&YElement::Attribute(reference.clone())) && !missing.contains(&reference) {
                    missing.push(reference);
                }
            }
        }
        missing
    }

    /// The attributes that links tie, within a release, to generalized ones by which a requirement groups or matches rows, where X
    /// does not name all of them. `place` gives the attribute of a name.
    ///
    /// With all of them in X, tuples of a group agree on their labels, so that all or none contradict what is known.
    pub(super) fn unnamed(
        &self,
        requirement: &XyRequirement,
        links: &[Link],
        place: &dyn Fn(&str) -> Option<Attr>,
    ) -> Option<UnnamedAttributes> {
        let elements: Vec<AttrSet> = links.iter().map(|link| link.attributes).collect();
        let counted = requirement.y.iter().filter_map(|of| match of {
            YElement::Attribute(of) => place(&of.attribute),
            YElement::Key(_) => None,
        });
        let counted: AttrSet = counted.collect();
        let named: AttrSet = requirement.x.iter().filter_map(|of| place(&of.attribute)).collect();
        let (mut attributes, mut unnamed) = (Vec::new(), AttrSet::EMPTY);
        for release in 0..self.releases() {
            let columns = self.columns(release);
            let own: AttrSet = columns.iter().filter_map(|(name, _)| place(name)).collect();
            let own = own.minus(counted);
            let concerns = |name: &str| {
                let in_x = requirement.x.iter().any(|of| of.release == release && of.attribute == name);
                in_x || self.matches(release, name)
            };
            let general = columns.iter().filter(|(name, is_exact)| !is_exact && concerns(name));
            let general = general.filter_map(|(name, _)| place(name)).filter(|attr| own.contains(*attr));
            let tied = general.map(|attr| links::connected(AttrSet::one(attr), &elements).intersection(own));
            let tied = tied.filter(|tied| tied.len() > 1).fold(AttrSet::EMPTY, AttrSet::union).minus(named);
            let missing = columns.iter().filter(|(name, _)| place(name).is_some_and(|attr| tied.contains(attr)));
            attributes.extend(missing.map(|(name, _)| JoinAttribute { release, attribute: (*name).to_owned() }));
            unnamed = unnamed.union(tied);
        }
        let because = links.iter().find(|link| link.attributes.meets(unnamed))?.because;
        Some(UnnamedAttributes { attributes, because })
    }
}
