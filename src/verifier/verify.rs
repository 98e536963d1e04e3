use super::contract::checks::{CheckLog, CheckName, Linkage, VerifierReport};
use super::contract::claim::SlicingClaim;
use super::contract::input::{PartsReader, VerifierError, VerifierInput};
use super::release::contents::CountedTables;
use super::release::sequential::{check, details};
use super::release::{claims, content, contents, dependencies, reference, rules, tables};
use crate::control::Control;

/// Checks a publication.
///
/// Advances `control` by one step for each row read, in total by the sum of the parts' lengths.
///
/// # Errors
/// [`VerifierError`] when the caller cancels, or when a part cannot be read; then the publication stays unchecked.
pub fn verify(input: &VerifierInput<'_>, control: &Control) -> Result<VerifierReport, VerifierError> {
    verify_and_read(input, None, control)
}

/// The same, and gives the tables to a reader, so that they are read once. What it learns is worth nothing where a check fails.
///
/// # Errors
/// Those of [`verify`], and of the reader.
pub fn verify_and_read(
    input: &VerifierInput<'_>,
    reader: Option<&mut dyn PartsReader>,
    control: &Control,
) -> Result<VerifierReport, VerifierError> {
    control.check()?;
    let mut log = CheckLog::default();
    claims::check(input, &mut log);
    reference::check(input, &mut log);
    let mut tables = tables::check(input, reader, control, &mut log)?;
    if input.original.is_some() && input.witness.is_some() {
        content::check_labels(input, control, &mut log)?;
    }
    if let Some(sequence) = details::sequential_details(input) {
        check::check(input, sequence, control, &mut log)?;
    }
    dependencies::check(input, &tables.constant, control, &mut log)?;
    claims::check_thresholds(input, &tables.figures, &mut log);
    let figures = std::mem::take(&mut tables.figures);
    rules::check(input, tables, control, &mut log)?;
    let checks = CheckName::OF_VERIFIER.into_iter().filter(|&check| was_run(input, check, &log));
    let linkage = match (input.original, input.witness) {
        (Some(_), Some(_)) => Linkage::Checked,
        _ => Linkage::NotChecked,
    };
    Ok(VerifierReport { checks: checks.map(|check| log.report(check)).collect(), linkage, tables: figures })
}

/// Checks the claims of a publication on the contents of its buckets, which another engine counted in the written parts.
///
/// The checks are those that need no row: claims, guarantees of every bucket, rules with known dependencies. What needs rows the other
/// engine checks by itself.
///
/// # Errors
/// [`VerifierError`] when the caller cancels.
pub fn verify_contents(
    input: &VerifierInput<'_>,
    found: CountedTables<'_>,
    control: &Control,
) -> Result<VerifierReport, VerifierError> {
    control.check()?;
    let mut log = CheckLog::default();
    claims::check(input, &mut log);
    reference::check(input, &mut log);
    let mut tables = contents::check(input, found, &mut log);
    dependencies::check(input, &tables.constant, control, &mut log)?;
    claims::check_thresholds(input, &tables.figures, &mut log);
    let figures = std::mem::take(&mut tables.figures);
    rules::check(input, tables, control, &mut log)?;
    let needs_no_row =
        [CheckName::Buckets, CheckName::Guarantee, CheckName::Gnf, CheckName::Dependencies, CheckName::Guards];
    let checks = needs_no_row.into_iter().filter(|&check| was_run(input, check, &log) || check == CheckName::Guarantee);
    // a fault of any other check counts as well
    let others = log.0.keys().copied().filter(|check| !needs_no_row.contains(check));
    let checks = checks.chain(others).map(|check| log.report(check)).collect();
    Ok(VerifierReport { checks, linkage: Linkage::NotChecked, tables: figures })
}

/// Whether the input suffices for a check.
fn was_run(input: &VerifierInput<'_>, check: CheckName, log: &CheckLog) -> bool {
    let failed = log.0.contains_key(&check);
    match check {
        CheckName::Content => input.original.is_some(),
        CheckName::Dependencies => !input.dependencies.is_empty() || failed,
        // claims about the rows of the original need it
        CheckName::Guarantee => {
            let needs_rows = SlicingClaim::from_input(input).is_some_and(|claim| claim.needs_rows());
            input.original.is_some() || !needs_rows || failed
        }
        CheckName::Requirements => {
            details::sequential_details(input).is_some_and(|sequence| details::has_earlier(input, sequence) || failed)
        }
        _ => true,
    }
}
