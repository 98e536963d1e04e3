//! What an adversary who knows X has besides its labels, by the definitions of requirements.
//!
//! # Citations
//! docs/spec/sequential.md#knowledge-of-x

use super::groups::JoinError;
use super::join::ReleaseJoin;
use crate::control::Control;
use crate::microdata::CellShape;
use crate::publication::{JoinAttribute, SequentialDetails, XyRequirement, YElement};

/// A requirement whose X names its attributes in every joined release that has them.
///
/// Where it names one exactly, the group has one value already. A reference that is counted stays out.
pub(super) fn with_all_labels(join: &ReleaseJoin<'_>, requirement: &XyRequirement, joined: &[usize]) -> XyRequirement {
    let is_exact = |of: &JoinAttribute| join.shape(of.release, &of.attribute) == Some(CellShape::Exact);
    let mut wider = requirement.clone();
    for JoinAttribute { attribute, .. } in &requirement.x {
        if requirement.x.iter().any(|of| of.attribute == *attribute && is_exact(of)) {
            continue;
        }
        for &release in joined.iter().filter(|release| join.shape(**release, attribute).is_some()) {
            let reference = JoinAttribute { release, attribute: attribute.clone() };
            if !wider.x.contains(&reference) && !wider.y.contains(&YElement::Attribute(reference.clone())) {
                wider.x.push(reference);
            }
        }
    }
    wider
}

/// The first requirement that does not hold for who knows the attributes of X in every release of a join.
///
/// # Errors
/// [`JoinError`] when a join cannot be measured.
pub(super) fn broken(
    sequence: &SequentialDetails,
    join: &ReleaseJoin<'_>,
    control: &Control,
) -> Result<Option<String>, JoinError> {
    for (number, (requirement, on)) in sequence.requirements.iter().enumerate() {
        for claimed in on {
            let wider = with_all_labels(join, requirement, &claimed.releases);
            if wider.x.len() > requirement.x.len()
                && !join.measure(&wider, &claimed.releases, control)?.is_allowed(&requirement.measure)
            {
                let detail = "does not hold for who finds the attributes of x in other releases too";
                return Ok(Some(format!("requirement {number} {detail}")));
            }
        }
    }
    Ok(None)
}
