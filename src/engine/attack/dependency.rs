//! The attack `dependency`: excludes sensitive values that do not occur with the linked values of a row.
//!
//! Its results reveal figures of the original, so only holders of the original may run it.
//!
//! # Citations
//! docs/spec/dependencies.md; [Wang and Liu 2011]

use super::bucket::{bounds_values, bucket_report, guarded_rules};
use super::report::AttackReport;
use super::target::{AttackTarget, release_problem, unsupported, work_limit};
use crate::control::{Control, Phase};
use crate::engine::error::EngineError;
use crate::engine::read_back::manifest::all_thresholds_in;
use crate::microdata::{Attr, AttrSet};
use crate::problem::{Fault, Kind, Problem};
use crate::publication::Protected;
use crate::spec::Attack;
use crate::verifier;
use crate::verifier::{AttackError, ExternalTable, Submission};

const NO_BUCKETS_DETAIL: &str = "dependency is played on bucketized tables of exact values, against rules that bound the \
                                 share of each sensitive value";

/// Runs the attack on the buckets of submitted tables, against the rules on what one of their parts holds.
///
/// # Errors
/// [`EngineError`]: cancelled, or refused: without an original, where no table has buckets that a rule speaks of, where
/// the rows of a table are not those of the original, or where there are too many to look at.
pub(super) fn attack_submission(submission: &Submission<'_>, control: &Control) -> Result<AttackReport, EngineError> {
    if submission.original.is_none() {
        let detail = "dependency crosses out values that the original never has together: send the original too";
        return Err(EngineError::Refused(Problem::of_faults(vec![Fault::new("/attacks", Kind::BadColumns, detail)])));
    }
    let is_bucketized = |table: &ExternalTable, attr: Attr| {
        let holding = table.parts.iter().filter(|part| part.attributes().contains(attr)).count();
        let is_exact = table.parts.iter().all(|part| part.bucket.is_some() && part.cells.is_empty());
        table.parts.len() > 1 && holding == 1 && is_exact
    };
    let mut asked = Vec::new();
    for (index, rule) in submission.rules.iter().enumerate().filter(|(_, rule)| bounds_values(rule.guarantee)) {
        let Protected::Attribute(attr) = rule.protects else { continue };
        let tables = submission.tables.iter().enumerate().filter(|(_, table)| is_bucketized(table, attr));
        asked.extend(tables.map(|(number, _)| (number, index)));
    }
    if asked.is_empty() {
        return Err(unsupported("/attacks", NO_BUCKETS_DETAIL));
    }
    let found = verifier::find_by_dependencies(submission, &asked, control).map_err(|error| match error {
        AttackError::Cancelled => EngineError::Cancelled,
        AttackError::TooMany { what, limit, found } => {
            work_limit(format!("the attack would look at too many {what}"), limit, found)
        }
        AttackError::NotExact | AttackError::Circle => {
            unsupported("/attacks", "dependency needs tables whose rows are those of the original")
        }
    })?;
    Ok(bucket_report(Attack::Dependency, submission, &found))
}

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
        return Err(unsupported("/attack", NO_BUCKETS_DETAIL));
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
