//! The `method` member.

pub(super) mod anatomy;
pub(super) mod bucketize;
pub(super) mod decompose;
pub(super) mod generalize;
pub(super) mod sequential;
pub(super) mod slicing;
pub(super) mod types;
pub(super) mod versatile;

use std::collections::BTreeSet;

use anatomy::DraftAnatomy;
use bucketize::{BucketizeSpec, DraftBucketize};
use decompose::{DecomposeSpec, DraftDecompose};
use generalize::DraftGeneralize;
use sequential::{DraftSequential, SequentialSpec};
use slicing::{DraftSlicing, SlicingSpec};
use types::{Algorithm, AnatomySpec, DeclaredDependency, GeneralizeSpec, VersatileSpec};
use versatile::DraftVersatile;

use super::grammar::attributes::{AttributeOptions, DatasetColumns};
use super::grammar::reader::{FaultList, ObjectReader, one_of};
use super::grammar::schema::DocumentSource;
use crate::publication::{SubmittedRule, XyRequirement};

/// The methods that jobs may have.
pub const METHOD_NAMES: &[&str] =
    &["versatile", "anatomy", "bucketize", "decompose", "generalize", "slicing", "sequential"];

/// A method over columns of the dataset.
pub(super) enum DraftMethod {
    Versatile(DraftVersatile),
    Anatomy(DraftAnatomy),
    Bucketize(DraftBucketize),
    Decompose(DraftDecompose),
    Generalize(DraftGeneralize),
    Sequential(DraftSequential),
    Slicing(DraftSlicing),
}

impl DraftMethod {
    /// Whether the manifest states the entropy of the model unless something else is said: where tables are chosen by it.
    pub(super) fn states_entropy(&self) -> bool {
        matches!(self, Self::Versatile(draft) if matches!(draft.members.algorithm, Algorithm::Gd | Algorithm::Auto))
    }

    /// The columns that occur in a rule.
    pub(super) fn mentioned(&self) -> BTreeSet<usize> {
        match self {
            Self::Versatile(draft) => draft.mentioned.clone(),
            Self::Anatomy(draft) => draft.mentioned(),
            Self::Bucketize(draft) => draft.mentioned(),
            Self::Decompose(draft) => draft.mentioned(),
            Self::Generalize(draft) => draft.mentioned(),
            Self::Sequential(draft) => draft.mentioned(),
            Self::Slicing(draft) => draft.mentioned(),
        }
    }

    /// Columns that may occur in a rule: a fault hides which do, and is not reported as theirs again.
    pub(super) fn guessed(&self) -> &BTreeSet<usize> {
        match self {
            Self::Versatile(draft) => &draft.guessed,
            Self::Anatomy(draft) => &draft.guessed,
            Self::Bucketize(draft) => &draft.guessed,
            Self::Decompose(draft) => &draft.guessed,
            Self::Generalize(draft) => &draft.guessed,
            Self::Sequential(draft) => &draft.guessed,
            Self::Slicing(draft) => &draft.guessed,
        }
    }
}

/// Reads `method`; `None` when which one is meant cannot be read, or is not supported.
pub(super) fn read(
    document: &mut ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    stated: &[AttributeOptions],
    origin: DocumentSource,
    faults: &mut FaultList,
) -> Option<DraftMethod> {
    let no_rules_reason =
        document.text("no_rules_reason", "a reason of 1 to 500 characters", faults, super::grammar::reader::is_reason);
    let Some(value) = document.take("method") else {
        faults.range(document.at("method"), "an object with a type");
        return None;
    };
    let mut members = ObjectReader::open(value, document.at("method"), faults)?;
    let type_ = members.take("type").and_then(|value| value.as_str());
    let reads_no_rules = "stated only for versatile, and only when there are no rules";
    match type_ {
        Some("versatile") => {
            let draft = versatile::read(members, columns, no_rules_reason, origin, faults);
            if no_rules_reason.is_some() && !(draft.rules().is_empty() && draft.mentioned.is_empty()) {
                faults.range(document.at("no_rules_reason"), reads_no_rules);
            }
            Some(DraftMethod::Versatile(draft))
        }
        Some(name @ ("anatomy" | "slicing")) => {
            if no_rules_reason.is_some() {
                faults.range(document.at("no_rules_reason"), reads_no_rules);
            }
            Some(match name {
                "slicing" => DraftMethod::Slicing(slicing::read(members, columns, faults)),
                _ => DraftMethod::Anatomy(anatomy::read(members, columns, stated, faults)),
            })
        }
        Some("bucketize") => {
            if no_rules_reason.is_some() {
                faults.range(document.at("no_rules_reason"), reads_no_rules);
            }
            Some(DraftMethod::Bucketize(bucketize::read(members, columns, stated, faults)))
        }
        Some("decompose") => {
            if no_rules_reason.is_some() {
                faults.range(document.at("no_rules_reason"), reads_no_rules);
            }
            Some(DraftMethod::Decompose(decompose::read(members, columns, stated, faults)))
        }
        Some("generalize") => {
            if no_rules_reason.is_some() {
                faults.range(document.at("no_rules_reason"), reads_no_rules);
            }
            Some(DraftMethod::Generalize(generalize::read(members, columns, stated, faults)))
        }
        Some("sequential") => {
            if no_rules_reason.is_some() {
                faults.range(document.at("no_rules_reason"), reads_no_rules);
            }
            Some(DraftMethod::Sequential(sequential::read(members, columns, stated, faults)))
        }
        _ => {
            faults.range(members.at("type"), &one_of(METHOD_NAMES));
            None
        }
    }
}

/// How a release is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MethodSpec {
    /// Many rules, several tables.
    Versatile(VersatileSpec),
    /// One sensitive attribute, one table in two parts.
    Anatomy(AnatomySpec),
    /// One sensitive attribute with a threshold for each of its values, one table in two parts.
    Bucketize(BucketizeSpec),
    /// Several sensitive attributes, buckets by one of them, and a table of their joint values.
    Decompose(DecomposeSpec),
    /// Classes of rows whose quasi-identifiers are published alike.
    Generalize(GeneralizeSpec),
    /// A table beside earlier releases, with what must hold on their join.
    Sequential(SequentialSpec),
    /// One sensitive attribute, one table in columns that are tied by bucket.
    Slicing(SlicingSpec),
}

impl MethodSpec {
    /// The method's name in the contract.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Versatile(_) => "versatile",
            Self::Anatomy(_) => "anatomy",
            Self::Bucketize(_) => "bucketize",
            Self::Decompose(_) => "decompose",
            Self::Generalize(_) => "generalize",
            Self::Sequential(_) => "sequential",
            Self::Slicing(_) => "slicing",
        }
    }

    /// The dependencies that the adversary is stated to know.
    #[must_use]
    pub fn declared(&self) -> &[DeclaredDependency] {
        match self {
            Self::Versatile(spec) => &spec.declared,
            Self::Anatomy(_)
            | Self::Bucketize(_)
            | Self::Decompose(_)
            | Self::Generalize(_)
            | Self::Sequential(_)
            | Self::Slicing(_) => &[],
        }
    }

    /// The dependencies that the adversary is stated not to know.
    #[must_use]
    pub fn assumed_unknown(&self) -> &[(DeclaredDependency, String)] {
        match self {
            Self::Versatile(spec) => &spec.assumed_unknown,
            Self::Anatomy(_)
            | Self::Bucketize(_)
            | Self::Decompose(_)
            | Self::Generalize(_)
            | Self::Sequential(_)
            | Self::Slicing(_) => &[],
        }
    }

    /// What must hold on the join with earlier releases.
    #[must_use]
    pub fn requirements(&self) -> &[XyRequirement] {
        match self {
            Self::Sequential(spec) => &spec.requirements,
            _ => &[],
        }
    }

    /// The rules, in the order of the document; one that protects several attributes each gives one for each.
    #[must_use]
    pub fn rules(&self) -> &[SubmittedRule] {
        match self {
            Self::Versatile(spec) => &spec.rules,
            Self::Anatomy(spec) => std::slice::from_ref(&spec.rule),
            Self::Bucketize(spec) => std::slice::from_ref(&spec.rule),
            Self::Decompose(spec) => &spec.rules,
            Self::Generalize(spec) => &spec.rules,
            // what it keeps are requirements over joins
            Self::Sequential(_) => &[],
            Self::Slicing(spec) => std::slice::from_ref(&spec.rule),
        }
    }
}
