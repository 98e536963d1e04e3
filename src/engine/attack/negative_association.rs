//! The attack `negative_association`: excludes sensitive values that rarely occur with the known values of a row.
//!
//! Its results reveal figures of the original, so only holders of the original may run it.
//!
//! # Citations
//! [Wang et al. 2012, section 6]

use super::bucket::{bucket_report, guarded_rules};
use super::report::AttackReport;
use super::target::{AttackTarget, release_problem, unsupported};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::manifest::all_thresholds_in;
use crate::microdata::AttrSet;
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::Submission;

/// Runs the attack on every bucketized table, against the rules that it enforces.
///
/// The material holds the release with its counterfeits, and its original.
///
/// # Errors
/// [`EngineError`]: cancelled, refused where no rule bounds values of a bucketized table or there are too many to look at, or failed where
/// the parts are not made from the original.
pub fn negative_association(target: AttackTarget<'_>, control: &Control) -> Result<AttackReport, EngineError> {
    let AttackTarget { manifest, material, rules } = target;
    control.begin(Phase::Verify, 1)?;
    let asked = guarded_rules(target)?;
    if asked.is_empty() {
        let detail = "negative_association is played on bucketized tables of exact values, against rules that bound the \
                      share of each sensitive value";
        return Err(unsupported("/attack", detail));
    }
    let thresholds = all_thresholds_in(manifest, material.names());
    let submission = Submission {
        tables: material.tables(),
        names: material.names(),
        rules,
        dependencies: &[],
        original: material.original(),
        taxonomies: &[],
        thresholds: &thresholds,
        exact: AttrSet::EMPTY,
    };
    let found = verifier::find_negative_associations(&submission, &asked, control)
        .map_err(|error| release_problem(error, "a release is not made from its original"))?;
    Ok(bucket_report(Attack::NegativeAssociation, &submission, &found))
}
