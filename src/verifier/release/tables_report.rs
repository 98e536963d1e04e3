//! What the checks of tables find, for the checks of rules.

use std::collections::BTreeMap;

use super::decomposed::BothTables;
use super::posteriors::count;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, MAX_ATTRIBUTES};
use crate::verifier::contract::checks::TableFigures;
use crate::verifier::contract::claim;
use crate::verifier::contract::claim::ValueCounts;
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::definition::taxonomy::DeclaredValues;
use crate::verifier::read::joint_column::JointColumn;
use crate::verifier::read::part::ParsedPart;

/// Figures and counts of all tables.
pub(in crate::verifier) struct TablesReport {
    pub(in crate::verifier) figures: Vec<TableFigures>,
    /// The counts of each attribute, from the part with its most frequent value.
    ///
    /// Only without an original.
    pub(in crate::verifier) counts: Vec<Option<ValueCounts>>,
    /// For each attribute, what the caller declares about the values of these counts.
    pub(in crate::verifier) declared: Vec<DeclaredValues>,
    /// The counts of each combination that a rule or guard protects and one part holds.
    pub(in crate::verifier) combined: BTreeMap<AttrSet, ValueCounts>,
    /// For each table, the attributes in which its buckets are constant by its parts.
    pub(in crate::verifier) constant: Vec<AttrSet>,
    /// The parts of a decomposition.
    pub(super) decomposition: BothTables,
}

impl TablesReport {
    /// A report on this number of tables before any is read.
    pub(super) fn of_tables(tables: usize) -> Self {
        Self {
            figures: Vec::new(),
            counts: vec![None; MAX_ATTRIBUTES],
            declared: vec![DeclaredValues::default(); MAX_ATTRIBUTES],
            combined: BTreeMap::new(),
            constant: vec![AttrSet::EMPTY; tables],
            decomposition: BothTables::default(),
        }
    }

    /// Adds the counts of an attribute, with what the caller declares about its values.
    pub(super) fn add_known_counts(&mut self, attribute: Attr, counts: ValueCounts, declared: DeclaredValues) {
        self.counts[attribute.index()] = Some(counts);
        self.declared[attribute.index()] = declared;
    }

    /// Adds the counts of a part.
    pub(super) fn add_counts(
        &mut self,
        input: &VerifierInput<'_>,
        part: &ParsedPart,
        control: &Control,
    ) -> Result<(), VerifierError> {
        let more = |known: &ValueCounts, shown: &ValueCounts| known.iter().max() < shown.iter().max();
        for column in &part.columns {
            let shown = count(column);
            let known = &mut self.counts[column.attribute.index()];
            if known.as_ref().is_none_or(|known| more(known, &shown)) {
                *known = Some(shown);
                self.declared[column.attribute.index()].clone_from(&column.declared);
            }
        }
        for attrs in claim::combinations(input) {
            let Some(joint) = JointColumn::new(part, attrs, control)? else { continue };
            let shown = joint.counts();
            if self.combined.get(&attrs).is_none_or(|known| more(known, &shown)) {
                self.combined.insert(attrs, shown);
            }
        }
        Ok(())
    }
}
