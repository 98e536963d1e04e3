//! The attack `dependency`: excludes sensitive values that do not occur with the linked values of a row.
//!
//! Its results reveal figures of the original, so only holders of the original may run it.
//!
//! # Citations
//! docs/spec/dependencies.md; [Wang and Liu 2011]

use super::bucket::{bucket_report, guarded_rules};
use super::report::AttackReport;
use super::target::{AttackTarget, release_problem, unsupported};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::manifest::all_thresholds_in;
use crate::microdata::{Attr, AttrSet};
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::Submission;

/// Runs the attack on every bucketized table, against the rules that it enforces, by the dependencies of the manifest.
///
/// The material holds the release with its counterfeits, and its original.
///
/// # Errors
/// [`EngineError`]: cancelled, refused where no rule bounds values of a bucketized table or there are too many to look at, or failed where
/// the parts are not made from the original.
pub fn dependency_attack(target: AttackTarget<'_>, control: &Control) -> Result<AttackReport, EngineError> {
    let AttackTarget { manifest, material, rules } = target;
    control.begin(Phase::Verify, 1)?;
    let asked = guarded_rules(target)?;
    if asked.is_empty() {
        let detail = "dependency is played on bucketized tables of exact values, against rules that bound the share of \
                      each sensitive value";
        return Err(unsupported("/attack", detail));
    }
    let side = |names: &[String]| -> AttrSet {
        let at = |name: &String| material.names().iter().position(|known| known == name);
        names.iter().filter_map(at).map(Attr::from).collect()
    };
    let declared = manifest.dependencies.declared.iter().map(|form| (&form.determinant, &form.dependent));
    let discovered = manifest.dependencies.discovered.iter().map(|form| (&form.determinant, &form.dependent));
    let dependencies: Vec<(AttrSet, AttrSet)> =
        declared.chain(discovered).map(|(determinant, dependent)| (side(determinant), side(dependent))).collect();
    let thresholds = all_thresholds_in(manifest, material.names());
    let submission = Submission {
        tables: material.tables(),
        names: material.names(),
        rules,
        dependencies: &dependencies,
        original: material.original(),
        taxonomies: &[],
        thresholds: &thresholds,
        exact: AttrSet::EMPTY,
    };
    let found = verifier::find_by_dependencies(&submission, &asked, control)
        .map_err(|error| release_problem(error, "a release is not made from its original"))?;
    Ok(bucket_report(Attack::Dependency, &submission, &found))
}
