use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;

use super::cuts::{is_tight, label_of_value};
use super::observed::{ObservedColumn, ObservedRelease};
use crate::control::Control;
use crate::microdata::{Attr, CellShape, Table, Taxonomy};
use crate::publication::{PublishedTable, TableWitness};
use crate::verifier::contract::checks::{CheckLog, CheckName};
use crate::verifier::contract::input::{VerifierError, VerifierInput};

/// Published rows, and the cuts and the original that should give them.
pub(super) struct CutRows<'a> {
    pub(super) input: &'a VerifierInput<'a>,
    pub(super) table: &'a PublishedTable,
    pub(super) original: &'a Table,
    pub(super) observed: &'a ObservedRelease,
    /// The labels of each cut, with its name.
    pub(super) cuts: &'a [(String, Vec<Option<String>>)],
    pub(super) trees: &'a BTreeMap<String, Arc<Taxonomy>>,
}

/// A column as the cuts give it.
struct ExpectedColumn {
    attribute: Attr,
    /// For each code of the original, the code of the published label.
    codes: Vec<u32>,
}

impl CutRows<'_> {
    /// Checks that the published rows are the cuts applied to the rows of the original.
    pub(super) fn check(&self, control: &Control, log: &mut CheckLog) -> Result<(), VerifierError> {
        if self.observed.rows != self.original.rows() {
            self.fail(log, "it does not have a row for each row of the original");
            return Ok(());
        }
        let mut expected = Vec::new();
        for (column, described) in self.observed.columns.iter().zip(&self.table.parts[0].columns) {
            control.check()?;
            let Some(column) = self.expected(column, described.attribute, log) else { return Ok(()) };
            expected.push(column);
        }
        self.compare(&expected, log);
        Ok(())
    }

    fn fail(&self, log: &mut CheckLog, detail: &str) {
        log.fail(CheckName::Content, format!("table {}: {detail}", self.table.name));
    }

    /// A column as its cut gives it; `None` when a fault leaves it unknown.
    fn expected(&self, column: &ObservedColumn, attribute: Attr, log: &mut CheckLog) -> Option<ExpectedColumn> {
        if !self.original.attributes().contains(attribute) {
            self.fail(log, "it has an attribute that the original lacks");
            return None;
        }
        let name = self.input.name(attribute);
        let domain = &self.original.column(attribute).domain;
        let cut = self.cuts.iter().find(|(name, _)| *name == column.name).map(|(_, labels)| labels);
        if column.shape == CellShape::Interval && !is_tight(cut.map_or(&[], Vec::as_slice), domain, column.kind) {
            let detail = format!("intervals of {name} are not the narrowest for the values of their rows");
            log.fail(CheckName::Dictionary, detail);
        }
        let numbers: AHashMap<Option<&[u8]>, u32> = column.labels.iter().map(Option::as_deref).zip(0..).collect();
        let label = |value: Option<&[u8]>| match cut {
            None => Some(value.map(<[u8]>::to_vec)),
            Some(labels) => label_of_value(labels, column, self.trees.get(&column.name), value),
        };
        let codes = domain.iter().map(|value| numbers.get(&label(value)?.as_deref()).copied());
        let Some(codes) = codes.collect() else {
            self.fail(log, &format!("values of {name} have no published label"));
            return None;
        };
        Some(ExpectedColumn { attribute, codes })
    }

    /// Compares the rows with the expected ones: by the witness, or in any order without one.
    fn compare(&self, expected: &[ExpectedColumn], log: &mut CheckLog) {
        let code =
            |of: &ExpectedColumn, row: usize| of.codes[self.original.column(of.attribute).codes.get(row) as usize];
        let wanted = |row: usize| -> Vec<u32> { expected.iter().map(|of| code(of, row)).collect() };
        let found = |row: usize| -> Vec<u32> { self.observed.columns.iter().map(|column| column.codes[row]).collect() };
        let rows = self.observed.rows;
        match self.input.witness.map(|witness| witness.tables.first()) {
            Some(Some(TableWitness::Rows(places))) => {
                if !are_distinct(places, rows) {
                    return self.fail(log, "rows do not have distinct positions");
                }
                let wrong = places.iter().enumerate().filter(|(row, at)| wanted(*row) != found(**at as usize)).count();
                if wrong > 0 {
                    self.fail(log, &format!("{wrong} rows are not those of the cuts"));
                }
            }
            Some(_) => self.fail(log, "the assignment of rows is of another kind"),
            None => {
                if sorted(rows, &wanted) != sorted(rows, &found) {
                    self.fail(log, "its rows are not the original under the cuts");
                }
            }
        }
    }
}

/// Whether the places are those of all rows, each once.
fn are_distinct(places: &[u32], rows: usize) -> bool {
    let mut taken = vec![false; rows];
    let is_new = |&at: &u32| taken.get_mut(at as usize).is_some_and(|taken| !std::mem::replace(taken, true));
    places.len() == rows && places.iter().all(is_new)
}

/// All rows in rising order.
fn sorted(rows: usize, row: &dyn Fn(usize) -> Vec<u32>) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = (0..rows).map(row).collect();
    all.sort_unstable();
    all
}
