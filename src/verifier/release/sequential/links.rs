//! Dependencies of a join: none ties the joined releases to each other, and none says more of a group than its labels.
//!
//! # Citations
//! docs/spec/dependencies.md#verification

use super::details::{earlier, joined_as};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{JoinAttribute, SequentialDetails, XyRequirement, YElement};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::evidence::VerifierInput;
use crate::verifier::definition::links::{link_across, links_of, tied};

/// Checks the links beside the join of a sequential release with earlier ones.
///
/// A link lies within one of the joined releases. It ties no counted attribute of a requirement to a generalized one of
/// its groups: labels would say less of the group than the adversary knows.
pub(in crate::verifier) fn check(
    evidence: &VerifierInput<'_>,
    sequence: &SequentialDetails,
    known: &[(AttrSet, AttrSet)],
    log: &mut CheckLog,
) {
    let attr_of = |of: &str| evidence.names.iter().position(|name| joined_as(sequence, 0, name) == of).map(Attr::from);
    let columns = evidence.publication.tables.iter().flat_map(|table| &table.parts).flat_map(|part| &part.columns);
    let mut releases: Vec<AttrSet> = vec![columns.map(|column| column.attribute).collect()];
    for release in earlier(evidence.earlier_releases, sequence).unwrap_or_default() {
        releases.push(release.columns.iter().filter_map(|column| attr_of(&column.name)).collect());
    }
    let visible = releases.iter().fold(AttrSet::EMPTY, |all, release| all.union(*release));
    let links = links_of(known, visible);
    let links = links.as_slice();
    if let Some(across) = link_across(&releases, links).filter(|_| !sequence.against.is_empty()) {
        let detail = format!("dependencies tie {} of different releases to each other", evidence.list(across));
        log.fail(CheckName::Dependencies, detail);
    }
    for (requirement, _) in &sequence.requirements {
        let XyRequirement { x, y, .. } = requirement;
        let counted: AttrSet = y
            .iter()
            .filter_map(|of| match of {
                YElement::Attribute(of) => attr_of(&of.attribute),
                YElement::Key(_) => None,
            })
            .collect();
        // labels of earlier releases may stand for several values, too
        let is_general =
            |of: &&JoinAttribute| of.release > 0 || sequence.cuts.iter().any(|(name, _)| *name == of.attribute);
        let general: AttrSet = x.iter().filter(is_general).filter_map(|of| attr_of(&of.attribute)).collect();
        let revealed = tied(counted, links).minus(counted).intersection(general);
        if !revealed.is_empty() {
            let (from, to) = (evidence.list(revealed), evidence.list(counted));
            let detail = format!("dependencies tie {to} to {from}, of which groups show less than is known");
            log.fail(CheckName::Dependencies, detail);
        }
    }
}
