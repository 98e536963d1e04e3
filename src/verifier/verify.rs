use super::contract::checks::{CheckLog, CheckName, Linkage, VerifierReport};
use super::contract::claim::SlicingClaim;
use super::contract::evidence::{VerifierError, VerifierInput};
use super::release::sequential::{check, details};
use super::release::{claims, content, dependencies, reference, rules, tables};
use crate::control::Control;

/// Checks a publication.
///
/// Advances `control` by one step for each row read, in total by the sum of the parts' lengths.
///
/// # Errors
/// [`VerifierError`] when the caller cancels, or when a part cannot be read; then the publication stays unchecked.
pub fn verify(evidence: &VerifierInput<'_>, control: &Control) -> Result<VerifierReport, VerifierError> {
    control.check()?;
    let mut log = CheckLog::default();
    claims::check(evidence, &mut log);
    reference::check(evidence, &mut log);
    let mut tables = tables::check(evidence, control, &mut log)?;
    if evidence.original.is_some() && evidence.witness.is_some() {
        content::check_labels(evidence, control, &mut log)?;
    }
    if let Some(sequence) = details::sequential_details(evidence) {
        check::check(evidence, sequence, control, &mut log)?;
    }
    dependencies::check(evidence, &tables.constant, control, &mut log)?;
    claims::check_thresholds(evidence, &tables.figures, &mut log);
    let figures = std::mem::take(&mut tables.figures);
    rules::check(evidence, tables, &mut log);
    let checks = CheckName::OF_VERIFIER.into_iter().filter(|&check| was_run(evidence, check, &log));
    let linkage = match (evidence.original, evidence.witness) {
        (Some(_), Some(_)) => Linkage::Checked,
        _ => Linkage::NotChecked,
    };
    Ok(VerifierReport { checks: checks.map(|check| log.report(check)).collect(), linkage, tables: figures })
}

/// Whether the evidence suffices for a check.
fn was_run(evidence: &VerifierInput<'_>, check: CheckName, log: &CheckLog) -> bool {
    let failed = log.0.contains_key(&check);
    match check {
        CheckName::Content => evidence.original.is_some(),
        CheckName::Dependencies => !evidence.dependencies.is_empty() || failed,
        // claims about the rows of the original need it
        CheckName::Guarantee => {
            let needs_rows = SlicingClaim::from_evidence(evidence).is_some_and(|claim| claim.needs_rows());
            evidence.original.is_some() || !needs_rows || failed
        }
        CheckName::Requirements => details::sequential_details(evidence)
            .is_some_and(|sequence| details::has_earlier(evidence, sequence) || failed),
        _ => true,
    }
}
