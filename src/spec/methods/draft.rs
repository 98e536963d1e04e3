//! The member `method`, over columns of the dataset.

use std::collections::BTreeSet;

use super::anatomy::{self, DraftAnatomy};
use super::bucketize::{self, DraftBucketize};
use super::decompose::{self, DraftDecompose};
use super::generalize::{self, DraftGeneralize};
use super::method::METHOD_NAMES;
use super::sequential::{self, DraftSequential};
use super::slicing::{self, DraftSlicing};
use super::types::Algorithm;
use super::versatile::{self, DraftVersatile};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{Member, Reason};
use crate::spec::grammar::reader::{FaultList, ObjectReader, is_reason, one_of};
use crate::spec::grammar::schema::DocumentSource;

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

/// Reads `method`; `None` when it names no method.
pub(in crate::spec) fn read(
    document: &mut ObjectReader<'_>,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    origin: DocumentSource,
    faults: &mut FaultList,
) -> Option<DraftMethod> {
    let no_rules_reason = document.text("no_rules_reason", &Reason::allowed(), faults, is_reason);
    let Some(value) = document.take("method") else {
        faults.range(document.at("method"), "an object with a type");
        return None;
    };
    let mut members = ObjectReader::open(value, document.at("method"), faults)?;
    let method = match members.take("type").and_then(|value| value.as_str()) {
        Some("versatile") => DraftMethod::Versatile(versatile::read(members, columns, no_rules_reason, origin, faults)),
        Some("anatomy") => DraftMethod::Anatomy(anatomy::read(members, columns, attributes, faults)),
        Some("bucketize") => DraftMethod::Bucketize(bucketize::read(members, columns, attributes, faults)),
        Some("decompose") => DraftMethod::Decompose(decompose::read(members, columns, attributes, faults)),
        Some("generalize") => DraftMethod::Generalize(generalize::read(members, columns, attributes, faults)),
        Some("sequential") => DraftMethod::Sequential(sequential::read(members, columns, attributes, faults)),
        Some("slicing") => DraftMethod::Slicing(slicing::read(members, columns, faults)),
        _ => {
            faults.range(members.at("type"), &one_of(METHOD_NAMES));
            return None;
        }
    };
    if no_rules_reason.is_some() && !method.has_no_rules() {
        let allowed = "stated only for versatile, and only when there are no rules";
        faults.range(document.at("no_rules_reason"), allowed);
    }
    Some(method)
}
