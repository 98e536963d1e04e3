use super::contract::checks::{CheckLog, CheckName, Linkage, VerifierReport};
use super::contract::claim;
use super::contract::evidence::{Evidence, VerifierError};
use super::release::sequential::{check, details};
use super::release::{claims, content, rules, tables};
use crate::control::Control;

/// Checks a publication. Advances `control` by one step per row read, so by the sum of the parts' lengths.
///
/// # Errors
/// [`VerifierError`] when cancelled or when a part cannot be read; then nothing is known of the publication.
pub fn verify(evidence: &Evidence<'_>, control: &Control) -> Result<VerifierReport, VerifierError> {
    control.check()?;
    let mut findings = CheckLog::default();
    claims::check(evidence, &mut findings);
    let tables = tables::check(evidence, control, &mut findings)?;
    if evidence.original.is_some() && evidence.witness.is_some() {
        content::check_labels(evidence, control, &mut findings)?;
    }
    if let Some(sequence) = details::sequential_details(evidence) {
        check::check(evidence, sequence, control, &mut findings)?;
    }
    claims::check_thresholds(evidence, &tables.figures, &mut findings);
    rules::check(evidence, (tables.counts, tables.stated), tables.combined, &mut findings);
    // what is claimed of the rows of the original cannot be checked without them
    let unchecked = |check| match check {
        CheckName::Content => true,
        CheckName::Guarantee => {
            let of_rows = claim::SlicingClaim::from_evidence(evidence).is_some_and(|claim| claim.needs_rows());
            of_rows && !findings.0.contains_key(&check)
        }
        _ => false,
    };
    let required = match details::sequential_details(evidence) {
        None => false,
        Some(sequence) => details::is_beside(evidence, sequence) || findings.0.contains_key(&CheckName::Requirements),
    };
    let checks = CheckName::OF_VERIFIER
        .into_iter()
        .filter(|&check| evidence.original.is_some() || !unchecked(check))
        .filter(|&check| required || check != CheckName::Requirements);
    let linkage = match (evidence.original, evidence.witness) {
        (Some(_), Some(_)) => Linkage::Checked,
        _ => Linkage::NotChecked,
    };
    Ok(VerifierReport { checks: checks.map(|check| findings.report(check)).collect(), linkage, tables: tables.figures })
}
