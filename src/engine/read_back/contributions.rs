//! Verification of a release that keeps a bounded number of rows of each person against all rows of its original.

use super::verify::may_lack_rows;
use crate::control::Control;
use crate::engine::error::EngineError;
use crate::microdata::Table;
use crate::publication::{CheckName, PublishedBytes};
use crate::report::{CheckResult, Manifest, publication_of};
use crate::verifier::{ContributionClaim, check_contributions};

/// An original with all rows of every person.
pub struct WholeOriginal<'a> {
    /// All rows; attribute `i` is column `i`.
    pub table: &'a Table,
    /// The published names of its attributes.
    pub names: &'a [String],
    /// The person of each row, as a number.
    pub persons: &'a [u32],
    /// The place of each row in the order by which rows were chosen; equal where only the draw decided.
    pub ranks: &'a [u32],
}

/// Checks that the parts hold rows of the original, of each person at most as many as the manifest says.
///
/// # Errors
/// [`EngineError::Cancelled`], or [`EngineError::Failed`] when a part cannot be read.
pub fn verify_contributions(
    manifest: &Manifest,
    original: &WholeOriginal<'_>,
    parts: &dyn PublishedBytes,
    control: &Control,
) -> Result<CheckResult, EngineError> {
    let detail = match publication_of(manifest, original.names) {
        Err(detail) => Some(detail),
        Ok(publication) => {
            let claim = ContributionClaim {
                publication: &publication,
                parts,
                original: original.table,
                persons: original.persons,
                ranks: original.ranks,
                max_rows: manifest.unit.rows(),
                may_lack_rows: may_lack_rows(manifest),
            };
            check_contributions(&claim, control)?
        }
    };
    Ok(CheckResult { check: CheckName::Unit, passed: detail.is_none(), detail })
}
