use std::io;
use std::sync::Arc;

use crate::control::Cancelled;
use crate::microdata::{Attr, AttrSet, AttributeType, Codes, Column, Table, UploadedColumn};
use crate::publication::{
    DeclaredTaxonomy, DeclaredThresholds, DigestedThresholds, EarlierReleases, ExcludedValues, MethodDetails,
    Protected, Publication, PublishedBytes, Ratio, ReadPart, SubmittedRule, TableProtection, Witness,
};
use crate::verifier::definition::significance::is_exact;
use crate::verifier::definition::taxonomy::{DeclaredValues, TaxonomyPaths};
use crate::verifier::definition::thresholds::ThresholdBounds;

/// Input of a verification.
#[derive(Clone, Copy)]
pub struct VerifierInput<'a> {
    /// The claims: tables, parts, guards, and the reasons why rules hold.
    pub publication: &'a Publication,
    /// The rules as the caller submitted them.
    pub submitted: &'a [SubmittedRule],
    /// Dependencies that the adversary knows, as determinants and dependents.
    ///
    /// The release publishes no attribute that the original lacks.
    pub dependencies: &'a [(AttrSet, AttrSet)],
    /// What the release states of its search for dependencies; `None` where it made none.
    pub dependency_search: Option<DeclaredSearch<'a>>,
    /// The written bytes, through the reader that serves them.
    pub parts: &'a dyn PublishedBytes,
    /// The table as uploaded, rows in their original order; [`Attr`] `i` is column `i`.
    pub original: Option<&'a Table>,
    /// The other columns of the upload, rows in the order of the original.
    pub dropped: &'a [UploadedColumn<'a>],
    /// The bucket or class label of each row of the original, by published table; label 0 means no bucket.
    pub witness: Option<&'a Witness>,
    /// The names of the attributes, for details.
    pub names: &'a [String],
    /// The declared type of each attribute, which orders its values.
    ///
    /// Without one, the type of the original applies, or else the narrowest type that fits.
    pub kinds: &'a [Option<AttributeType>],
    /// The attributes that may be published.
    pub accounted: AttrSet,
    /// The excluded values of attributes, as the caller declared them.
    pub excludable: &'a [ExcludedValues],
    /// The taxonomies of attributes, as the caller declared them.
    pub taxonomies: &'a [DeclaredTaxonomy],
    /// Earlier releases of a sequential release, where they are available.
    pub earlier_releases: Option<&'a EarlierReleases>,
    /// The thresholds of attributes, as the caller declared them.
    pub thresholds: &'a [DeclaredThresholds],
    /// Whether the caller admits strata without a bound, each as one bucket.
    pub closes: bool,
}

/// A reader of tables who sees what the verifier read of them.
pub trait PartsReader {
    /// Takes the rows of a table, by its index. Tables come in their order; one with cells that are no values of the original is
    /// left out.
    ///
    /// # Errors
    /// [`Cancelled`]
    fn read(&mut self, index: usize, parts: Vec<ReadPart>) -> Result<(), Cancelled>;
}

/// What a release states of its search for dependencies in the original.
#[derive(Clone, Copy)]
pub struct DeclaredSearch<'a> {
    /// The dependencies that the search found; the others are declared and need not hold.
    pub found: &'a [(AttrSet, AttrSet)],
    /// The dependencies that the adversary is assumed not to know.
    pub withdrawn: &'a [(AttrSet, AttrSet)],
    /// The largest share of rows that a dependency may not hold for.
    pub tolerance: Ratio,
    /// Whether `found` has all that the search found, or only what the release makes use of.
    pub lists_all: bool,
}

impl<'a> VerifierInput<'a> {
    /// The values of an attribute, published or not, where the upload is given and has it.
    pub(in crate::verifier) fn column(&self, attr: Attr) -> Option<&'a Column> {
        let original = self.original?;
        match original.attributes().contains(attr) {
            true => Some(original.column(attr)),
            false => {
                let name = self.names.get(attr.index())?;
                self.dropped.iter().find(|column| column.name == name).map(|column| column.column)
            }
        }
    }

    /// Whether a dependency holds in every row; one of an attribute without rows is not seen to hold.
    pub(in crate::verifier) fn is_exact(&self, determinant: AttrSet, dependent: Attr) -> bool {
        let determining: Option<Vec<&Codes>> = determinant.iter().map(|attr| Some(&self.column(attr)?.codes)).collect();
        determining.zip(self.column(dependent)).is_some_and(|(from, to)| is_exact(&from, &to.codes))
    }

    /// The quoted name of an attribute, for details.
    pub(in crate::verifier) fn name(&self, attr: Attr) -> String {
        self.names.get(attr.index()).map_or_else(|| format!("attribute {}", attr.0), |name| format!("\"{name}\""))
    }

    /// The type of an attribute's values, where it is known.
    pub(in crate::verifier) fn kind(&self, attr: Attr) -> Option<AttributeType> {
        let original = self.original.filter(|original| attr.index() < original.attributes().len());
        let kind = original.map(|original| original.column(attr).domain.kind());
        kind.or_else(|| self.kinds.get(attr.index()).copied().flatten())
    }

    /// What the caller declares about an attribute, for `values` in the order of their codes.
    pub(in crate::verifier) fn declared<'v>(
        &self,
        attr: Attr,
        values: impl Iterator<Item = Option<&'v [u8]>> + Clone,
    ) -> DeclaredValues {
        let tree = self.taxonomies.iter().find(|declared| declared.attribute == attr).map(|declared| &declared.tree);
        let paths = tree.and_then(|tree| TaxonomyPaths::new(tree, self.kind(attr), values.clone())).map(Arc::new);
        let bound = |thresholds: &DigestedThresholds| {
            Arc::new(ThresholdBounds::new(thresholds, self.kind(attr), values.clone()))
        };
        let bounds = declared_for(self, attr).iter().map(bound).collect();
        DeclaredValues { excluded: self.excluded(attr, values), paths, bounds }
    }

    /// The codes of the excluded values.
    fn excluded<'v>(&self, attr: Attr, values: impl Iterator<Item = Option<&'v [u8]>>) -> Vec<u32> {
        let declared: Vec<&Option<String>> = self
            .excludable
            .iter()
            .filter(|declared| declared.attribute == attr)
            .flat_map(|declared| &declared.values)
            .collect();
        if declared.is_empty() {
            return Vec::new();
        }
        let kind = self.kind(attr);
        let is_number = |text: &[u8]| AttributeType::infer(std::iter::once(text)).is_number();
        let same = |declared: &str, value: &[u8]| match kind {
            // a number can have several spellings
            Some(kind) if kind.has_spellings() && is_number(declared.as_bytes()) => {
                kind.compare_by_value(declared.as_bytes(), value).is_eq()
            }
            _ => declared.as_bytes() == value,
        };
        let is_declared = |value: Option<&[u8]>| {
            declared.iter().any(|declared| match (declared, value) {
                (Some(declared), Some(value)) => same(declared, value),
                (None, None) => true,
                _ => false,
            })
        };
        values.zip(0..).filter(|(value, _)| is_declared(*value)).map(|(_, code)| code).collect()
    }

    /// The quoted names of attributes, for details.
    pub(in crate::verifier) fn list(&self, attrs: AttrSet) -> String {
        attrs.iter().map(|attr| self.name(attr)).collect::<Vec<_>>().join(", ")
    }
}

/// Reason why a verification has no result.
#[derive(Debug, thiserror::Error)]
pub enum VerifierError {
    /// The caller cancelled the verification.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The join of a sequential release with earlier ones takes too many steps.
    #[error("a join takes too many steps")]
    TooDense,
    /// A part cannot be read.
    #[error("a part could not be read")]
    Io(#[from] io::Error),
}

/// All thresholds that the caller or the release declares for an attribute.
pub(in crate::verifier) fn declared_for(input: &VerifierInput<'_>, attr: Attr) -> Vec<DigestedThresholds> {
    let declared = input.thresholds.iter().filter(|declared| declared.attribute == attr);
    let mut found: Vec<DigestedThresholds> = declared.map(|declared| declared.thresholds.clone()).collect();
    if let MethodDetails::Bucketize { thresholds, .. } = &input.publication.method_details {
        let tables = input.publication.tables.iter();
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
