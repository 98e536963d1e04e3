use std::collections::{BTreeSet, HashMap};

use super::common::CommonMembers;
use super::types::AnatomySpec;
use crate::microdata::Attr;
use crate::publication::{Protected, SubmittedRule};
use crate::spec::grammar::attributes::{AttributeOptions, DatasetColumns};
use crate::spec::grammar::document::{ColumnName, Document, Names, document};
use crate::spec::grammar::guarantee::{RuleGuarantee, ThresholdsByDigest};
use crate::spec::grammar::ineligible_strata::IneligibleStrata;
use crate::spec::grammar::known_and_sensitive::KnownAndSensitive;
use crate::spec::grammar::reader::FaultList;

document! {
    /// One sensitive attribute, and one table in two parts that are linked by buckets.
    AnatomyMembers as "AnatomyMethod" tagged "anatomy" {
        /// What stays protected.
        required sensitive: ColumnName => "the name of the sensitive attribute",
        /// What may be known. When not given, every attribute that is marked with `publish`.
        optional quasi_identifiers: Names,
        required guarantee: RuleGuarantee,
        include common: CommonMembers,
        /// What becomes of strata that break the guarantee by themselves. `refuse` when not given.
        optional ineligible_strata: IneligibleStrata = IneligibleStrata::default(),
    }
}

/// Anatomy over columns of the dataset.
pub(in crate::spec) struct DraftAnatomy {
    /// The document, with its quasi-identifiers filled in.
    pub(in crate::spec) members: AnatomyMembers,
    /// Columns that may have been meant where a fault hides which.
    pub(in crate::spec) guessed: BTreeSet<usize>,
}

pub(in crate::spec) fn read(
    mut members: AnatomyMembers,
    columns: &DatasetColumns<'_>,
    attributes: &[AttributeOptions],
    faults: &mut FaultList,
) -> DraftAnatomy {
    let pointer = members.at("quasi_identifiers");
    let sides = KnownAndSensitive { known: &mut members.quasi_identifiers, pointer, sensitive: &members.sensitive };
    let guessed = sides.complete(columns, attributes, faults);
    DraftAnatomy { members, guessed }
}

impl DraftAnatomy {
    pub(in crate::spec) fn mentioned(&self) -> BTreeSet<usize> {
        self.members.quasi_identifiers.columns().iter().copied().chain(self.members.sensitive.column()).collect()
    }

    /// The thresholds that the guarantee names.
    pub(in crate::spec) fn thresholds(&self) -> ThresholdsByDigest {
        self.members.guarantee.value.as_ref().map(|of_rule| of_rule.thresholds.clone()).unwrap_or_default()
    }

    /// The method over attributes; `None` after faults.
    pub(in crate::spec) fn resolve(
        &self,
        columns: &DatasetColumns<'_>,
        attrs: &HashMap<usize, Attr>,
    ) -> Option<AnatomySpec> {
        let sensitive = self.members.sensitive.column().filter(|column| !columns.facts[*column].overflow)?;
        let known = self.members.quasi_identifiers.columns().iter().filter(|column| **column != sensitive);
        let rule = SubmittedRule {
            pointer: "/method".to_owned(),
            known: known.map(|column| attrs[column]).collect(),
            protects: Protected::Attribute(attrs[&sensitive]),
            guarantee: self.members.guarantee.value.as_ref()?.guarantee,
        };
        Some(AnatomySpec { rule, closed: self.members.ineligible_strata.closed.clone() })
    }
}
