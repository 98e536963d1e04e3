use std::io;
use std::sync::Arc;

use crate::control::Cancelled;
use crate::microdata::{Attr, AttrSet, AttributeType, Table};
use crate::publication::{
    DeclaredTaxonomy, DeclaredThresholds, DigestedThresholds, EarlierReleases, ExcludedValues, MethodDetails,
    Protected, Publication, PublishedBytes, SubmittedRule, TableProtection, Witness,
};
use crate::verifier::definition::taxonomy::{DeclaredValues, TaxonomyPaths};
use crate::verifier::definition::thresholds::ThresholdBounds;

/// What an audit is given.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// What is claimed: tables, parts, guards, and how rules stand.
    pub publication: &'a Publication,
    /// The rules as the caller submitted them.
    pub submitted: &'a [SubmittedRule],
    /// Dependencies that the adversary knows: what stands on the left determines what stands on the right. Attributes that the
    /// original has not are not published.
    pub dependencies: &'a [(AttrSet, AttrSet)],
    /// The written bytes, through the reader that serves them.
    pub parts: &'a dyn PublishedBytes,
    /// The table as uploaded, rows in their original order; [`Attr`] `i` is column `i`.
    pub original: Option<&'a Table>,
    /// Where each row of the original went, per published table; label 0: nowhere.
    pub witness: Option<&'a Witness>,
    /// The names of the attributes, for details.
    pub names: &'a [String],
    /// The types in whose order values stand, per attribute, where they are stated; elsewhere the original's types count,
    /// or the narrowest that fit.
    pub kinds: &'a [Option<AttributeType>],
    /// The attributes that may be published at all.
    pub accounted: AttrSet,
    /// Values that an insider can rule out, as the caller stated them.
    pub excludable: &'a [ExcludedValues],
    /// The taxonomies of attributes, as the caller stated them.
    pub taxonomies: &'a [DeclaredTaxonomy],
    /// Earlier releases, where the release is made beside some and they are at hand.
    pub beside: Option<&'a EarlierReleases>,
    /// The thresholds that rules put on values of attributes, as the caller stated them.
    pub thresholds: &'a [DeclaredThresholds],
}

impl Evidence<'_> {
    /// The name of an attribute.
    pub(in crate::verifier) fn name(&self, attr: Attr) -> String {
        self.names.get(attr.index()).map_or_else(|| format!("attribute {}", attr.0), |name| format!("\"{name}\""))
    }

    /// The type of an attribute's values, as far as it is known.
    pub(in crate::verifier) fn kind(&self, attr: Attr) -> Option<AttributeType> {
        let original = self.original.filter(|original| attr.index() < original.attributes().len());
        let kind = original.map(|original| original.column(attr).domain.kind());
        kind.or_else(|| self.kinds.get(attr.index()).copied().flatten())
    }

    /// What is stated of an attribute with these values in the order of their codes.
    pub(in crate::verifier) fn stated<'v>(
        &self,
        attr: Attr,
        values: impl Iterator<Item = Option<&'v [u8]>> + Clone,
    ) -> DeclaredValues {
        let tree = self.taxonomies.iter().find(|stated| stated.attribute == attr).map(|stated| &stated.tree);
        let ways = tree.and_then(|tree| TaxonomyPaths::new(tree, self.kind(attr), values.clone())).map(Arc::new);
        let bound = |thresholds: &DigestedThresholds| {
            Arc::new(ThresholdBounds::new(thresholds, self.kind(attr), values.clone()))
        };
        let bounds = declared_for(self, attr).iter().map(bound).collect();
        DeclaredValues { excluded: self.excluded(attr, values), ways, bounds }
    }

    /// The codes of values that an insider can rule out.
    fn excluded<'v>(&self, attr: Attr, values: impl Iterator<Item = Option<&'v [u8]>>) -> Vec<u32> {
        let stated: Vec<&Option<String>> = self
            .excludable
            .iter()
            .filter(|stated| stated.attribute == attr)
            .flat_map(|stated| &stated.values)
            .collect();
        if stated.is_empty() {
            return Vec::new();
        }
        let kind = self.kind(attr);
        let is_number = |text: &[u8]| AttributeType::infer(std::iter::once(text)).is_number();
        let same = |stated: &str, value: &[u8]| match kind {
            // one number may be spelled in several ways
            Some(kind @ AttributeType::Decimal) if is_number(stated.as_bytes()) => {
                kind.compare_by_value(stated.as_bytes(), value).is_eq()
            }
            _ => stated.as_bytes() == value,
        };
        let is_stated = |value: Option<&[u8]>| {
            stated.iter().any(|stated| match (stated, value) {
                (Some(stated), Some(value)) => same(stated, value),
                (None, None) => true,
                _ => false,
            })
        };
        values.zip(0..).filter(|(value, _)| is_stated(*value)).map(|(_, code)| code).collect()
    }

    /// The names of attributes.
    pub(in crate::verifier) fn list(&self, attrs: AttrSet) -> String {
        attrs.iter().map(|attr| self.name(attr)).collect::<Vec<_>>().join(", ")
    }
}

/// Why an audit came to no answer.
#[derive(Debug, thiserror::Error)]
pub enum VerifierError {
    /// It was told to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The join of a sequential release with earlier ones has too much to be told apart.
    #[error("a join takes too many steps")]
    TooDense,
    /// A part could not be read.
    #[error("a part could not be read")]
    Io(#[from] io::Error),
}

/// All thresholds that a release states of an attribute.
pub(in crate::verifier) fn declared_for(evidence: &Evidence<'_>, attr: Attr) -> Vec<DigestedThresholds> {
    let stated = evidence.thresholds.iter().filter(|stated| stated.attribute == attr);
    let mut found: Vec<DigestedThresholds> = stated.map(|stated| stated.thresholds.clone()).collect();
    if let MethodDetails::Bucketize { thresholds, .. } = &evidence.publication.method_details {
        let tables = evidence.publication.tables.iter();
        let mut guards = tables.flat_map(|table| match &table.protection {
            TableProtection::Guarding(guards) => &guards[..],
            _ => &[],
        });
        found.extend(
            guards.any(|guard| guard.protects == Protected::Attribute(attr)).then(|| thresholds.clone().into()),
        );
    }
    found
}
