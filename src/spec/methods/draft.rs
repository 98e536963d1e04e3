//! The member `method`, over columns of the dataset.

use std::collections::BTreeSet;

use super::anatomy::{self, AnatomyMembers, DraftAnatomy};
use super::bucketize::{self, BucketizeMembers, DraftBucketize};
use super::common::CommonMembers;
use super::decompose::{self, DecomposeMembers, DraftDecompose};
use super::generalize::{self, DraftGeneralize, GeneralizeMembers};
use super::sequential::{self, DraftSequential, SequentialMembers};
use super::slicing::{self, DraftSlicing, SlicingMembers};
use super::types::Algorithm;
use super::versatile::{self, DraftVersatile, VersatileMembers};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{Given, Member, union};
use crate::spec::grammar::reader::FaultList;

union! {
    /// How the release is made.
    MethodMembers as "Method" {
        Versatile(VersatileMembers) = "versatile",
        Anatomy(AnatomyMembers) = "anatomy",
        Bucketize(BucketizeMembers) = "bucketize",
        Decompose(DecomposeMembers) = "decompose",
        Generalize(GeneralizeMembers) = "generalize",
        Slicing(SlicingMembers) = "slicing",
        Sequential(SequentialMembers) = "sequential",
    }
}

/// A method over columns of the dataset.
pub(in crate::spec) enum DraftMethod {
    Versatile(DraftVersatile),
    Anatomy(DraftAnatomy),
    Bucketize(DraftBucketize),
    Decompose(DraftDecompose),
    Generalize(DraftGeneralize),
    Sequential(DraftSequential),
    Slicing(DraftSlicing),
}

impl DraftMethod {
    /// Whether the manifest states the entropy of the model by default: where tables are chosen by it.
    pub(in crate::spec) fn states_entropy(&self) -> bool {
        matches!(self, Self::Versatile(draft) if matches!(draft.members.algorithm, Algorithm::Gd | Algorithm::Auto))
    }

    /// Whether it is versatile publishing without rules.
    fn has_no_rules(&self) -> bool {
        matches!(self, Self::Versatile(draft) if draft.rules().is_empty() && draft.mentioned.is_empty())
    }

    /// The columns that occur in a rule.
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
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

    /// The members that methods have in common.
    pub(in crate::spec) const fn common(&self) -> &CommonMembers {
        match self {
            Self::Versatile(draft) => &draft.members.common,
            Self::Anatomy(draft) => &draft.members.common,
            Self::Bucketize(draft) => &draft.members.common,
            Self::Decompose(draft) => &draft.members.common,
            Self::Generalize(draft) => &draft.members.common,
            Self::Sequential(draft) => &draft.members.common,
            Self::Slicing(draft) => &draft.members.common,
        }
    }

    /// Columns that may occur in a rule, where a fault hides which: that they are not accounted for is no second fault.
    pub(in crate::spec) fn guessed(&self) -> &BTreeSet<usize> {
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

/// The method that was read, checked as a whole; `None` when it names no method.
pub(in crate::spec) fn read(
    method: Given<MethodMembers>,
    no_rules_reason: Option<String>,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) -> Option<DraftMethod> {
    let is_faulty = method.is_faulty;
    if method.value.is_none() && !is_faulty {
        faults.range("/method", &MethodMembers::allowed());
    }
    let is_explained = no_rules_reason.is_some();
    let method = match method.value? {
        MethodMembers::Versatile(members) => {
            DraftMethod::Versatile(versatile::read(members, columns, no_rules_reason, faults))
        }
        MethodMembers::Anatomy(members) => DraftMethod::Anatomy(anatomy::read(members, columns, attributes, faults)),
        MethodMembers::Bucketize(members) => {
            DraftMethod::Bucketize(bucketize::read(members, columns, attributes, faults))
        }
        MethodMembers::Decompose(members) => {
            DraftMethod::Decompose(decompose::read(members, is_faulty, columns, attributes, faults))
        }
        MethodMembers::Generalize(members) => {
            DraftMethod::Generalize(generalize::read(members, columns, attributes, faults))
        }
        MethodMembers::Sequential(members) => {
            DraftMethod::Sequential(sequential::read(members, is_faulty, columns, attributes, faults))
        }
        MethodMembers::Slicing(members) => DraftMethod::Slicing(slicing::read(members, columns, faults)),
    };
    method.common().check(faults);
    if is_explained && !method.has_no_rules() {
        let allowed = "stated only for versatile, and only when there are no rules";
        faults.range("/no_rules_reason", allowed);
    }
    Some(method)
}
