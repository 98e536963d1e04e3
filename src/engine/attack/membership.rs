//! The attack `membership`: the share of tuples matched by a release that are rows of the original.
//!
//! Its results reveal figures of the original, so only holders of the original may run it.
//!
//! # Citations
//! [Li et al. 2012, section 5]

use super::report::{AttackFindings, AttackReport, MembershipSummary};
use super::target::work_limit;
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::external::VerificationMaterial;
use crate::microdata::{Attr, AttrSet, Column};
use crate::problem::{Kind, Problem};
use crate::publication::{AttackInput, RowKind};
use crate::report::Manifest;
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::MembershipError;

/// Runs the attack on every bucketed table of a release. `material` holds the release and its original.
///
/// # Errors
/// [`EngineError`]: cancelled, refused where no table is bucketed, or failed where the parts are not made from the original.
pub fn membership(
    manifest: &Manifest,
    material: &VerificationMaterial,
    control: &Control,
) -> Result<AttackReport, EngineError> {
    control.begin(Phase::Verify, manifest.tables.len() as u64)?;
    let original = material.original().ok_or_else(|| EngineError::bug("an attack lacks the original"))?;
    let columns: Vec<(Attr, &Column)> = original.columns.iter().map(|(attr, column)| (*attr, column)).collect();
    let attr = |name: &String| material.names().iter().position(|known| known == name).map(Attr::from);
    let protected: AttrSet = manifest.rules.iter().flat_map(|rule| &rule.sensitive).filter_map(attr).collect();
    let mut found = Vec::new();
    for (table, given) in manifest.tables.iter().zip(material.tables()) {
        if !table.parts.iter().all(|part| part.bucketed && part.row_meaning == RowKind::Tuples && part.cells.is_empty())
        {
            continue;
        }
        let members = verifier::members(given, &columns, protected, control).map_err(membership_problem)?;
        let members = members.ok_or_else(|| EngineError::bug("a release is not made from its original"))?;
        found.push(MembershipSummary::new(table, &members));
    }
    if found.is_empty() && manifest.tables.iter().flat_map(|table| &table.parts).any(|part| !part.cells.is_empty()) {
        let detail = "the release has generalized cells: the tuples that it matches cannot be counted";
        return Err(EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail)));
    }
    if found.is_empty() {
        let detail = "no table of the release is bucketed: each published row is a row of the original";
        return Err(EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail)));
    }
    // no rule bounds membership
    let findings = AttackFindings { total: 0, first: Vec::new() };
    let report = AttackReport::new(Attack::Membership, AttackInput::Original, None, findings);
    Ok(AttackReport { membership: Some(found), ..report })
}

fn membership_problem(why: MembershipError) -> EngineError {
    match why {
        MembershipError::Cancelled => EngineError::Cancelled,
        MembershipError::TooMany { limit, found } => {
            work_limit("the table has too many rows in too many buckets to identify its members", limit, found)
        }
        MembershipError::Circle => {
            let detail = "columns share attributes in a circle, and have too many tuples to be counted one by one; of such columns none \
                          can be drawn";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
    }
}
