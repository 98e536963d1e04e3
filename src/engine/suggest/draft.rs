//! A specification in the making: columns with their roles, guarantees and known sides, and the document of them.

use serde_json::{Map, Value, json};

use super::guarantees::offered;
use super::roles::JudgedColumn;
use super::suggestion::SuggestedColumn;
use crate::microdata::ColumnProfile;
use crate::spec::{Algorithm, ColumnRole, OFFERED_K, OfferedGuarantee};

/// A column of the specification.
#[derive(Clone, Debug)]
pub(super) struct ColumnDraft {
    pub(super) name: String,
    pub(super) role: ColumnRole,
    reason: String,
    /// Whether it is published only if the document says that it is no identifier.
    declares: bool,
    /// Rows of its most frequent value.
    top: u64,
    /// The guarantees that are left to try, where it is sensitive.
    offered: Vec<OfferedGuarantee>,
    /// Sensitive columns that its rule does not count as known.
    pub(super) unknown: Vec<String>,
}

impl ColumnDraft {
    pub(super) fn new(judged: JudgedColumn, profile: &ColumnProfile, declares: bool) -> Self {
        Self {
            name: profile.name.clone(),
            role: judged.role,
            reason: judged.reason,
            declares,
            top: profile.top,
            offered: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Drops the column for a reason.
    pub(super) fn drop(&mut self, reason: &str) {
        self.role = ColumnRole::Dropped;
        self.reason = format!("{}; dropped, as {reason}", self.reason);
    }

    /// Goes on to the next guarantee, at most of diversity `l`; without one the column is dropped.
    pub(super) fn weaken(&mut self, largest_l: Option<u64>) {
        let is_lower = |offered: &OfferedGuarantee| match (offered, largest_l) {
            (OfferedGuarantee::Diversity { l }, Some(largest)) => *l <= largest,
            _ => true,
        };
        let next = (1..self.offered.len()).find(|&at| is_lower(&self.offered[at])).unwrap_or(self.offered.len());
        self.offered.drain(..next);
        if self.offered.is_empty() {
            self.drop("no guarantee of it holds together with the other columns");
        }
    }

    /// The reason of its role with the promise; `sensitive` are the columns that have rules.
    fn reason(&self, sensitive: &[&str]) -> String {
        let Some(guarantee) = self.offered.first().filter(|_| self.role == ColumnRole::Sensitive) else {
            return self.reason.clone();
        };
        let unknown = self.unknown.iter().map(String::as_str).filter(|name| sensitive.contains(name));
        let unknown: Vec<&str> = unknown.collect();
        let promise = format!("{}; {}", self.reason, guarantee.promise());
        if unknown.is_empty() {
            return promise;
        }
        format!("{promise}; it goes together with {}, which its rule does not count as known", unknown.join(", "))
    }
}

/// The specification in the making.
#[derive(Clone, Debug)]
pub(super) struct SpecificationDraft {
    pub(super) columns: Vec<ColumnDraft>,
    /// The anonymity where nothing is sensitive.
    pub(super) k: u64,
    /// What decides the tables where something is.
    pub(super) algorithm: Algorithm,
}

impl SpecificationDraft {
    /// A draft for a table of `rows` rows, of which a person has at most `per_person`.
    pub(super) fn new(mut columns: Vec<ColumnDraft>, rows: u64, per_person: u64) -> Self {
        for column in columns.iter_mut().filter(|column| column.role == ColumnRole::Sensitive) {
            column.offered = offered(column.top, rows, per_person);
            if column.offered.is_empty() {
                let reason = "a person may have more rows than its most frequent value leaves to others";
                column.drop(reason);
            }
        }
        Self { columns, k: OFFERED_K.min(rows), algorithm: Algorithm::Uad }
    }

    /// The names of the columns of a role, in the order of the table.
    pub(super) fn names(&self, role: ColumnRole) -> Vec<&str> {
        self.columns.iter().filter(|column| column.role == role).map(|column| column.name.as_str()).collect()
    }

    pub(super) fn column(&mut self, name: &str) -> Option<&mut ColumnDraft> {
        self.columns.iter_mut().find(|column| column.name == name)
    }

    /// The name of the column whose rule a pointer is in.
    pub(super) fn of_rule(&self, pointer: &str) -> Option<String> {
        let at: usize = pointer.strip_prefix("/method/rules/")?.split('/').next()?.parse().ok()?;
        self.names(ColumnRole::Sensitive).get(at).map(|name| (*name).to_owned())
    }

    /// The document of a job, without `dataset`. Every column is in it.
    pub(super) fn document(&self) -> Value {
        let options = self.columns.iter().filter_map(|column| {
            let options = match column.role.is_published() {
                false => json!({"drop": true}),
                true if column.declares => json!({"publish": true, "identifier": false}),
                true => return None,
            };
            Some((column.name.clone(), options))
        });
        let mut document = json!({"method": self.method()});
        let options: Map<String, Value> = options.collect();
        if !options.is_empty() {
            document["attributes"] = options.into();
        }
        document
    }

    /// A rule for each sensitive column, against who knows all others; without sensitive ones k-anonymity of the rows.
    fn method(&self) -> Value {
        let known = self.names(ColumnRole::QuasiIdentifier);
        let sensitive = self.columns.iter().filter(|column| column.role == ColumnRole::Sensitive);
        let rules: Vec<Value> = sensitive
            .clone()
            .filter_map(|column| {
                let others = sensitive.clone().map(|other| other.name.as_str());
                let others =
                    others.filter(|other| *other != column.name && !column.unknown.iter().any(|name| name == other));
                let known: Vec<&str> = known.iter().copied().chain(others).collect();
                let guarantee = column.offered.first()?.to_json();
                Some(json!({"quasi_identifiers": known, "sensitive": [column.name], "guarantee": guarantee}))
            })
            .collect();
        if rules.is_empty() {
            let guarantees = json!([{"type": "k_anonymity", "k": self.k}]);
            return json!({"type": "generalize", "quasi_identifiers": known, "guarantees": guarantees});
        }
        json!({"type": "versatile", "algorithm": self.algorithm.as_str(), "rules": rules})
    }

    /// Every column with its reason.
    pub(super) fn columns(&self) -> Vec<SuggestedColumn> {
        let sensitive = self.names(ColumnRole::Sensitive);
        let column = |column: &ColumnDraft| SuggestedColumn {
            name: column.name.clone(),
            role: column.role,
            reason: column.reason(&sensitive),
        };
        self.columns.iter().map(column).collect()
    }
}
