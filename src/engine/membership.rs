//! The attack `membership`: of the tuples that a release might hold, how many are rows of the original. For whoever may know
//! what the original says.

use serde::Serialize;
use utoipa::ToSchema;

use super::attack::{AttackFindings, AttackReport};
use super::verification::VerificationMaterial;
use super::{EngineError, attack};
use crate::audit::{self, MembershipError, MembershipReport};
use crate::control::{Control, Phase};
use crate::microdata::{Attr, AttrSet, Column};
use crate::problem::{Kind, Problem};
use crate::report::{Manifest, ManifestTable};

/// How well a table that is tied by bucket hides who is in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Membership)]
pub struct MembershipSummary {
    /// The table.
    pub table: String,
    /// Tuples of all attributes that some bucket matches in every part, and that no row of the original is.
    pub fake_full: TupleCount,
    /// The same of the attributes that are not protected.
    pub fake_qi: TupleCount,
    /// By how many buckets match all attributes.
    pub histogram: Vec<MembershipClass>,
}

/// Tuples that so many buckets match.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MembershipClass {
    /// `1..10`, `11..20` or `21..`.
    pub buckets: String,
    /// Rows of the original.
    pub rows: u64,
    /// Different rows of the original.
    pub originals: u64,
    /// Tuples that are no row of the original.
    pub fakes: TupleCount,
}

/// A number of tuples, or an estimate of it.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct TupleCount {
    /// How many.
    pub value: f64,
    /// The standard error of an estimate; 0 of a count.
    pub standard_error: f64,
    /// Whether they were counted; where there are too many they are estimated from a sample.
    pub exact: bool,
}

impl From<audit::TupleEstimate> for TupleCount {
    fn from(tuples: audit::TupleEstimate) -> Self {
        let audit::TupleEstimate { value, standard_error, exact } = tuples;
        Self { value, standard_error, exact }
    }
}

impl MembershipSummary {
    fn of(table: &ManifestTable, members: &MembershipReport) -> Self {
        let class = |(at, name): (usize, &&str)| MembershipClass {
            buckets: (*name).to_owned(),
            rows: members.rows[at],
            originals: members.originals[at],
            fakes: members.fakes[at].into(),
        };
        Self {
            table: table.name.clone(),
            fake_full: members.fake_full.into(),
            fake_qi: members.fake_qi.into(),
            histogram: ["1..10", "11..20", "21.."].iter().enumerate().map(class).collect(),
        }
    }
}

/// Plays the attack on every table of a release that is tied by bucket. `material` is the release beside its original.
///
/// # Errors
/// [`EngineError`]: cancelled, refused where no table is tied by bucket, or failed where the parts are not made from the original.
pub fn membership(
    manifest: &Manifest,
    material: &VerificationMaterial,
    control: &Control,
) -> Result<AttackReport, EngineError> {
    control.begin(Phase::Audit, manifest.tables.len() as u64)?;
    let original = material.original().ok_or_else(|| EngineError::bug("an attack lacks the original"))?;
    let columns: Vec<(Attr, &Column)> = original.columns.iter().map(|(attr, column)| (*attr, column)).collect();
    let attr = |name: &String| material.names().iter().position(|known| known == name).map(Attr::from);
    let protected: AttrSet = manifest.rules.iter().flat_map(|rule| &rule.sensitive).filter_map(attr).collect();
    let mut found = Vec::new();
    for (table, given) in manifest.tables.iter().zip(material.tables()) {
        if !table.parts.iter().all(|part| part.bucketed && part.row_meaning == "tuples" && part.cells.is_empty()) {
            continue;
        }
        let members = audit::members(given, &columns, protected, control).map_err(membership_problem)?;
        let members = members.ok_or_else(|| EngineError::bug("a release is not made from its original"))?;
        found.push(MembershipSummary::of(table, &members));
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
        attack: crate::spec::Attack::Membership.word().to_owned(),
        uses: attack::NEEDS_ORIGINAL.to_owned(),
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
