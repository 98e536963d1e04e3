//! What a series looks like: which of its tables share attributes, and what may not be published beside them.

use std::collections::BTreeSet;

use super::{AttributeIdentities, Disclosure, EarlierDisclosures, LedgerUnion, TooManyAttributesError};
use crate::microdata::{Attr, AttrSet};
use crate::privacy::TableSchema;

/// The attributes that two disclosed tables share, as the first lists them; also under other names, and where one is computed from what
/// the other has.
#[must_use]
pub fn shared_attributes(identities: &AttributeIdentities, a: &Disclosure, b: &Disclosure) -> Vec<String> {
    let roots: BTreeSet<&str> = b.attributes.iter().flat_map(|name| identities.roots(name)).collect();
    let counts = |name: &&String| identities.roots(name).iter().any(|root| roots.contains(root));
    a.attributes.iter().filter(counts).cloned().collect()
}

/// The pairs of `names` whose exact values, published side by side, would not be admitted beside everything earlier: they would break
/// a protection rule, or stand beside a table that tolerates no other. What follows from dependencies in the data is not looked at.
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
            if union.check(&[TableSchema { attributes, guards: Vec::new() }], &[], &[]).is_err() {
                refused.push([name.clone(), other.clone()]);
            }
        }
    }
    Ok(refused)
}
