//! An independent re-check of written parts, from definitions. Shares types, no functions, with what it checks.
//!
//! The audit reads the bytes of every part through the reader that will serve them and holds them against the original,
//! the secret witness and the rules as they were submitted. Integers only. It fails closed: what it cannot check is a
//! failure, and a check is left out of the answer only where its premise (the original) was not given.
//!
//! Details name tables, parts, row numbers of parts, attributes and counts, never a value.

mod claims;
mod classes;
mod concluding;
mod content;
mod cover;
mod crossing;
mod decomposed;
mod dictionary;
mod fit;
mod generalized;
mod given;
mod gnf;
mod groups;
mod guarantee;
mod judge;
mod keys;
mod measure;
mod membership;
mod overlapping;
mod part;
mod possible;
mod proxy;
mod reading;
mod rules;
mod sequential;
mod slicing;
mod tables;
mod thresholds;
mod together;
mod tree;
mod worlds;

#[cfg(test)]
mod bucketized;
#[cfg(test)]
mod covered;
#[cfg(test)]
mod decomposing;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod mutation;
#[cfg(test)]
mod several;
#[cfg(test)]
mod sliced;
#[cfg(test)]
mod tests;

pub use concluding::{DecompositionView, InferenceQuestion, InferenceReport, InferredValue, infer_values};
pub use crossing::{NegativeAssociationFinding, NegativeAssociationReport, find_negative_associations};
pub use given::{CellText, ExternalPart, ExternalTable};
pub use groups::{ClassMeasures, ViolatingClass, ViolatingClasses};
pub use judge::{EvaluationReport, ExternalEnforcement, ExternalTableFigures, RuleOutcome, Submission, evaluate};
pub use measure::BucketMeasure;
pub use membership::{MembershipError, MembershipReport, TupleEstimate, members};
pub use proxy::{ProxyFinding, infer_by_proxy};
pub use sequential::{JoinError, JoinMeasures, ObservedRelease, ReleaseJoin};
pub use worlds::{AttackError, PossibleWorldsReport, PosteriorFinding, count_worlds};

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, AttrSet, AttributeType, Table};
use crate::publication::{
    DeclaredTaxonomy, DeclaredThresholds, DigestedThresholds, EarlierReleases, ExcludedValues, Publication,
    PublishedBytes, SubmittedRule, Witness,
};
use thresholds::ThresholdBounds;
use tree::{DeclaredValues, TaxonomyPaths};

/// What an audit is given.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// What is claimed: tables, parts, seals, and how rules stand.
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
    pub uninformative: &'a [ExcludedValues],
    /// The taxonomies of attributes, as the caller stated them.
    pub taxonomies: &'a [DeclaredTaxonomy],
    /// Earlier releases, where the release is made beside some and they are at hand.
    pub beside: Option<&'a EarlierReleases>,
    /// The thresholds that rules put on values of attributes, as the caller stated them.
    pub thresholds: &'a [DeclaredThresholds],
}

impl Evidence<'_> {
    /// The name of an attribute.
    fn name(&self, attr: Attr) -> String {
        self.names.get(attr.index()).map_or_else(|| format!("attribute {}", attr.0), |name| format!("\"{name}\""))
    }

    /// The type of an attribute's values, as far as it is known.
    fn kind(&self, attr: Attr) -> Option<AttributeType> {
        let original = self.original.filter(|original| attr.index() < original.attributes().len());
        let kind = original.map(|original| original.column(attr).domain.kind());
        kind.or_else(|| self.kinds.get(attr.index()).copied().flatten())
    }

    /// What is stated of an attribute with these values in the order of their codes.
    fn stated<'v>(&self, attr: Attr, values: impl Iterator<Item = Option<&'v [u8]>> + Clone) -> DeclaredValues {
        let tree = self.taxonomies.iter().find(|stated| stated.attribute == attr).map(|stated| &stated.tree);
        let ways = tree.and_then(|tree| TaxonomyPaths::of(tree, self.kind(attr), values.clone())).map(Arc::new);
        let bound = |thresholds: &DigestedThresholds| {
            Arc::new(ThresholdBounds::of(thresholds, self.kind(attr), values.clone()))
        };
        let bounds = thresholds::declared_for(self, attr).iter().map(bound).collect();
        DeclaredValues { ruled_out: self.ruled_out(attr, values), ways, bounds }
    }

    /// The codes of values that an insider can rule out.
    fn ruled_out<'v>(&self, attr: Attr, values: impl Iterator<Item = Option<&'v [u8]>>) -> Vec<u32> {
        let stated: Vec<&Option<String>> = self
            .uninformative
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
    fn list(&self, attrs: AttrSet) -> String {
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

/// The names of the checks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckName {
    /// Each part is the projection of the original that the witness states. Only with an original.
    Content,
    /// The parts of a table agree on their buckets, which together hold all rows; labels tell nothing.
    Buckets,
    /// Every bucket keeps the guarantees of its table's seals; what a sliced table claims over all buckets together holds of the rows of
    /// the original. Without the original, the latter is left out.
    Guarantee,
    /// The tables are in Guardian Normal Form for all submitted rules, and the rules stand as claimed.
    Gnf,
    /// Rows and labels are in canonical order.
    Order,
    /// Parts hold exactly the values that the original holds.
    Dictionary,
    /// Parts have exactly the claimed columns and rows, and nothing else is published.
    Columns,
    /// Tables have the shape that their standing claims.
    Seals,
    /// What a sequential release is to keep on its join with earlier ones holds, and its cuts are such. Of such releases alone, where
    /// the earlier ones are at hand.
    Requirements,
}

impl CheckName {
    /// All checks, in the order of an answer.
    pub const ALL: [Self; 9] = [
        Self::Content,
        Self::Buckets,
        Self::Guarantee,
        Self::Gnf,
        Self::Order,
        Self::Dictionary,
        Self::Columns,
        Self::Seals,
        Self::Requirements,
    ];
}

/// A check and how it went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Which one.
    pub check: CheckName,
    /// Whether nothing was found.
    pub passed: bool,
    /// The first thing found; no values of the data.
    pub detail: Option<String>,
}

/// Whether the parts were held against the assignment of rows to buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Linkage {
    /// Original and witness were there.
    Checked,
    /// One of them was not.
    NotChecked,
}

/// What an audit found.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifierReport {
    /// The checks that were made.
    pub checks: Vec<Check>,
    /// Whether the assignment was checked.
    pub linkage: Linkage,
    /// Figures of each published table, from the parts alone.
    pub tables: Vec<TableFigures>,
}

impl VerifierReport {
    /// Whether every check passed.
    #[must_use]
    pub fn verified(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

/// What the parts of a table show.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableFigures {
    /// How many rows it has.
    pub rows: u64,
    /// How many buckets; 0 in a table without.
    pub buckets: u64,
    /// Per size of a bucket, how many have it.
    pub sizes: BTreeMap<u64, u64>,
    /// Per attribute that a seal protects: the posteriors of its buckets.
    pub posteriors: BTreeMap<Attr, PosteriorSummary>,
    /// The same per combination.
    pub combined: BTreeMap<AttrSet, PosteriorSummary>,
    /// Per rule (by its index in the publication) that leans on this table and asks for more than l-diversity: what its worst
    /// bucket shows.
    pub measures: BTreeMap<usize, BucketMeasure>,
}

/// The largest share that a value takes of a bucket, over the buckets of a table; where something is known beside it in the
/// same part, of the rows of a bucket that agree in that. Where an insider can rule values out, such a value is counted of all these
/// rows, and any other of those that are left. Shares are `(count, of)`, not reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PosteriorSummary {
    /// Of the worst bucket; of equal ones the smallest.
    pub worst: (u64, u64),
    /// Of the middle bucket in rising order, the stricter of two.
    pub median: (u64, u64),
    /// The size of the smallest bucket.
    pub smallest_bucket: u64,
}

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
    if let Some(sequence) = sequential::sequential_details(evidence) {
        sequential::check(evidence, sequence, control, &mut findings)?;
    }
    thresholds::check_thresholds(evidence, &tables.figures, &mut findings);
    rules::check(evidence, (tables.counts, tables.stated), tables.combined, &mut findings);
    // what is claimed of the rows of the original cannot be checked without them
    let unchecked = |check| match check {
        CheckName::Content => true,
        CheckName::Guarantee => {
            let of_rows = slicing::SlicingClaim::of(evidence).is_some_and(|claim| claim.needs_rows());
            of_rows && !findings.0.contains_key(&check)
        }
        _ => false,
    };
    let required = match sequential::sequential_details(evidence) {
        None => false,
        Some(sequence) => {
            sequential::is_beside(evidence, sequence) || findings.0.contains_key(&CheckName::Requirements)
        }
    };
    let checks = CheckName::ALL
        .into_iter()
        .filter(|&check| evidence.original.is_some() || !unchecked(check))
        .filter(|&check| required || check != CheckName::Requirements);
    let linkage = match (evidence.original, evidence.witness) {
        (Some(_), Some(_)) => Linkage::Checked,
        _ => Linkage::NotChecked,
    };
    Ok(VerifierReport { checks: checks.map(|check| findings.report(check)).collect(), linkage, tables: tables.figures })
}

/// The first fault of each check.
#[derive(Default)]
struct CheckLog(BTreeMap<CheckName, String>);

impl CheckLog {
    /// Notes that a check failed.
    fn fail(&mut self, check: CheckName, detail: impl Into<String>) {
        self.0.entry(check).or_insert_with(|| detail.into());
    }

    fn report(&self, check: CheckName) -> Check {
        let detail = self.0.get(&check).cloned();
        Check { check, passed: detail.is_none(), detail }
    }
}
