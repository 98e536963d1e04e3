//! Overview of a series: shared attributes of tables, and pairs of attributes in conflict.

use std::collections::BTreeSet;

use super::{
    AttributeIdentities, CandidateRelease, Disclosure, EarlierDisclosures, LedgerUnion, TooManyAttributesError,
};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::TableSchema;

/// The attributes that two disclosed tables share, in the order of the first.
///
/// Also by other names, and where an attribute is computed from one of the other table.
#[must_use]
pub fn shared_attributes(identities: &AttributeIdentities, a: &Disclosure, b: &Disclosure) -> Vec<String> {
    let roots: BTreeSet<&str> = b.attributes.iter().flat_map(|name| identities.roots(name)).collect();
    let counts = |name: &&String| identities.roots(name).iter().any(|root| roots.contains(root));
    a.attributes.iter().filter(counts).cloned().collect()
}

/// The pairs of `names` whose exact values in one table would conflict with earlier disclosures.
///
/// Counts the dependencies that the ledger records; does not examine those in the data.
///
/// # Errors
/// [`TooManyAttributesError`]
pub fn conflicting_pairs(
    names: &[String],
    earlier: &EarlierDisclosures,
) -> Result<Vec<[String; 2]>, TooManyAttributesError> {
    let union = LedgerUnion::new(names, earlier)?;
    let mut refused = Vec::new();
    for (first, name) in names.iter().enumerate() {
        for (second, other) in names.iter().enumerate().skip(first + 1) {
            let attributes: AttrSet = [first, second].into_iter().map(Attr::from).collect();
            let tables = [TableSchema { attributes, guards: Vec::new() }];
            if union.check(&CandidateRelease { tables: &tables, exclusive: &[], rules: &[] }).is_err() {
                refused.push([name.clone(), other.clone()]);
            }
        }
    }
    Ok(refused)
}
