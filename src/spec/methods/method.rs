//! How a release is made, over its attributes.

use super::bucketize::BucketizeSpec;
use super::decompose::DecomposeSpec;
use super::sequential::SequentialSpec;
use super::slicing::SlicingSpec;
use super::types::{AnatomySpec, GeneralizeSpec, VersatileSpec};
use crate::publication::{SubmittedRule, XyRequirement};

/// The names of the methods in documents.
pub const METHOD_NAMES: &[&str] =
    &["versatile", "anatomy", "bucketize", "decompose", "generalize", "slicing", "sequential"];

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
    /// A table that is joined with earlier releases, and requirements on the join.
    Sequential(SequentialSpec),
    /// One sensitive attribute, one table in columns that are linked by bucket.
    Slicing(SlicingSpec),
}

impl MethodSpec {
    /// The name of the method in documents.
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

    /// The rules, to be changed.
    pub fn rules_mut(&mut self) -> &mut [SubmittedRule] {
        match self {
            Self::Versatile(spec) => &mut spec.rules,
            Self::Anatomy(spec) => std::slice::from_mut(&mut spec.rule),
            Self::Bucketize(spec) => std::slice::from_mut(&mut spec.rule),
            Self::Decompose(spec) => &mut spec.rules,
            Self::Generalize(spec) => &mut spec.rules,
            Self::Sequential(_) => &mut [],
            Self::Slicing(spec) => std::slice::from_mut(&mut spec.rule),
        }
    }

    /// Why strata that break a guarantee are published without a bound; `None`: they are refused.
    #[must_use]
    pub fn closed_reason(&self) -> Option<&str> {
        match self {
            Self::Versatile(spec) => spec.closed.as_deref(),
            Self::Anatomy(spec) => spec.closed.as_deref(),
            _ => None,
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
            // its requirements are over joins
            Self::Sequential(_) => &[],
            Self::Slicing(spec) => std::slice::from_ref(&spec.rule),
        }
    }
}
