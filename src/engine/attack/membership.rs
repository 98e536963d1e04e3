//! The attack `membership`: of the tuples that a release might hold, how many are rows of the original. For whoever may know
//! what the original says.

use super::report::{AttackFindings, AttackReport, MembershipSummary};
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

/// Plays the attack on every table of a release that is tied by bucket. `material` is the release beside its original.
///
/// # Errors
/// [`EngineError`]: cancelled, refused where no table is tied by bucket, or failed where the parts are not made from the original.
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
        let detail = "cells of the release stand for several values: which tuples it might hold is not counted";
        return Err(EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail)));
    }
    if found.is_empty() {
        let detail =
            "no table of the release is tied by bucket: whoever has a row of it knows that it is in the original";
        return Err(EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail)));
    }
    Ok(AttackReport {
        attack: Attack::Membership,
        uses: AttackInput::Original,
        // no rule bounds it
        breach: false,
        worst: None,
        findings: AttackFindings { total: 0, first: Vec::new() },
        membership: Some(found),
        joins: None,
    })
}

fn membership_problem(why: MembershipError) -> EngineError {
    match why {
        MembershipError::Cancelled => EngineError::Cancelled,
        MembershipError::TooMany { limit, found } => {
            let detail = "the table has too many rows in too many buckets to tell its members from others";
            EngineError::Refused(Problem::new(Kind::WorkLimit, detail).with("limit", limit).with("found", found))
        }
        MembershipError::Circle => {
            let detail = "columns share attributes in a circle, and have too many tuples to be counted one by one; of such columns none \
                          can be drawn";
            EngineError::Refused(Problem::new(Kind::GuaranteeUnsupported, detail))
        }
    }
}
