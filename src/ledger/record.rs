//! Disclosures of a publication, as the ledger records them.

use super::exclusions;
use super::{Disclosure, RecordedGuard, RecordedProtection};
use crate::microdata::{Attr, AttrSet, Taxonomy};
use crate::publication::{
    DeclaredTaxonomy, ExcludedValues, Guarantee, MethodDetails, Protected, Publication, PublishedTable, TableGuard,
    TableProtection,
};

/// The digest of an attribute's taxonomy, where a guarantee uses it.
#[must_use]
pub fn taxonomy_of(attribute: Attr, guarantee: Guarantee, taxonomies: &[DeclaredTaxonomy]) -> Option<String> {
    let declared = taxonomies
        .iter()
        .find(|declared| declared.attribute == attribute)
        .filter(|_| exclusions::uses_taxonomy(guarantee));
    declared.map(|declared| digest(&declared.tree))
}

/// The digest of a taxonomy, as the ledger records it.
pub(super) fn digest(tree: &Taxonomy) -> String {
    tree.digest().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The disclosures of a publication; `names` are the dataset names of its attributes.
#[must_use]
pub fn disclosures(
    publication: &Publication,
    names: &[String],
    excludable: &[ExcludedValues],
    taxonomies: &[DeclaredTaxonomy],
) -> Vec<Disclosure> {
    let excludable = |protected: AttrSet| {
        let of = excludable.iter().filter(move |excluded| protected.contains(excluded.attribute));
        of.map(|excluded| (names[excluded.attribute.index()].clone(), excluded.values.clone())).collect()
    };
    let along = |guard: &TableGuard| {
        let of = |attr: Attr| {
            let digest = guard.guarantees.iter().find_map(|guarantee| taxonomy_of(attr, *guarantee, taxonomies));
            digest.map(|digest| (names[attr.index()].clone(), digest))
        };
        guard.protects.attributes().iter().filter_map(of).collect()
    };
    let named = |set: AttrSet| set.iter().map(|attr| names[attr.index()].clone()).collect();
    let recorded = |protection: &TableProtection| match protection {
        TableProtection::Plain => RecordedProtection::Plain,
        TableProtection::Exclusive => RecordedProtection::Exclusive,
        TableProtection::Guarding(guards) => RecordedProtection::Guarding(
            guards
                .iter()
                .map(|guard| RecordedGuard {
                    quasi_identifiers: named(guard.known),
                    sensitive: named(guard.protects.attributes()),
                    joint: matches!(guard.protects, Protected::Joint(_)),
                    guarantees: guard.guarantees.clone(),
                    constant: named(guard.constant),
                    closes: guard.closes,
                    excludable: excludable(guard.protects.attributes()),
                    taxonomies: along(guard),
                })
                .collect(),
        ),
    };
    // slicing suppresses no rows
    let is_sliced = matches!(publication.method_details, MethodDetails::Slicing { .. });
    let tables = publication.tables.iter();
    tables
        .map(|table| Disclosure {
            table: table.name.0.clone(),
            attributes: named(table.attributes()),
            protection: recorded(&table.protection),
            partial: publication.suppressed > 0 || (!is_sliced && knows_attribute_of_protected_part(table)),
            unproven: None,
            dependencies: Vec::new(),
            withdrawn: Vec::new(),
        })
        .collect()
}

/// Whether a guard of a bucketized table knows attributes that share a part with a protected one.
///
/// Such a table may lack rows, and whether it does depends on the data.
fn knows_attribute_of_protected_part(table: &PublishedTable) -> bool {
    let TableProtection::Guarding(guards) = &table.protection else { return false };
    let parts = table
        .parts
        .iter()
        .filter(|part| part.bucketed)
        .map(|part| part.columns.iter().map(|column| column.attribute).collect::<AttrSet>());
    let parts: Vec<AttrSet> = parts.collect();
    guards
        .iter()
        .any(|guard| parts.iter().any(|part| part.meets(guard.protects.attributes()) && part.meets(guard.known)))
}
