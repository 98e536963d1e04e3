//! Columns of the upload that a job does not publish, and that tie what is published: published columns determine them.
//!
//! See `docs/spec/dependencies.md#dropped-columns`.

use std::borrow::Cow;

use super::known::JobDependencies;
use crate::control::{Cancelled, Control};
use crate::ledger::LedgerUnion;
use crate::microdata::{AttrSet, Table, UploadedColumn};
use crate::privacy::{self, Dependency, DeterminingEnd, DiscoveredDependency, EndColumn, TyingColumn};
use crate::spec::{DependencySearch, Specification};

/// The columns of an upload that a job does not publish, rows in the same order.
pub(in crate::engine) struct OtherColumns<'a> {
    all: Vec<UploadedColumn<'a>>,
    /// The number of those that become attributes of the job; the ledger has the others.
    dropped: usize,
}

impl<'a> OtherColumns<'a> {
    /// The columns that no release publishes, and those that earlier releases publish.
    pub(in crate::engine) fn new(
        specification: &Specification,
        dropped: &[UploadedColumn<'a>],
        extra: Option<&'a Table>,
    ) -> Self {
        let all: Vec<_> = dropped.iter().copied().chain(extra.into_iter().flat_map(Table::uploaded)).collect();
        // a release without proof is planned as the first of its series
        let dropped = if specification.unproven.is_some() { all.len() } else { dropped.len() };
        Self { all, dropped }
    }

    /// All of them.
    pub(in crate::engine) fn all(&self) -> &[UploadedColumn<'a>] {
        &self.all
    }
}

/// Dependencies of a job on columns that it does not publish.
pub(in crate::engine) struct UnpublishedLinks<'a> {
    /// The specification, in which these columns have names behind those in its own dependencies.
    pub(in crate::engine) specification: Cow<'a, Specification>,
    /// The determining and the determined column of each, by name, with its evidence.
    found: Vec<(&'a str, &'a str, DeterminingEnd)>,
}

impl<'a> UnpublishedLinks<'a> {
    /// Searches the rows of a job; `union` has the attributes that earlier releases or dependencies name.
    pub(in crate::engine) fn find(
        specification: &'a Specification,
        table: &'a Table,
        OtherColumns { all, dropped: named }: &OtherColumns<'a>,
        union: &LedgerUnion,
        control: &Control,
    ) -> Result<Self, Cancelled> {
        let mut links = Self { specification: Cow::Borrowed(specification), found: Vec::new() };
        if specification.knowledge.search == DependencySearch::None {
            return Ok(links);
        }
        let published = specification.names.iter().zip(table.uploaded());
        let published = published.map(|(name, UploadedColumn { column, .. })| UploadedColumn { name, column });
        let known = all.iter().copied().filter(|other| union.attribute(other.name).is_some());
        let ends: Vec<UploadedColumn<'a>> = published.chain(known).collect();
        let columns = ends.iter().enumerate();
        let columns: Vec<EndColumn<'_>> = columns
            .map(|(at, end)| EndColumn { column: end.column, is_published: at < specification.names.len() })
            .collect();
        let candidates: Vec<_> = all.iter().map(|other| other.column).collect();
        let tolerance = specification.knowledge.tolerance;
        let tying = privacy::discover_tying_columns(&columns, &candidates, tolerance, control)?;
        for TyingColumn { dropped, by } in tying {
            links.found.extend(by.iter().map(|by| (ends[by.end].name, all[dropped].name, *by)));
        }
        links.name(&all[..*named]);
        Ok(links)
    }

    /// Makes attributes of the job of all columns of the found dependencies that no release publishes.
    fn name(&mut self, dropped: &[UploadedColumn<'_>]) {
        for name in self.found.iter().flat_map(|(from, to, _)| [*from, *to]) {
            let is_dropped = dropped.iter().any(|column| column.name == name);
            if is_dropped && !self.specification.dropped_names.iter().any(|known| known == name) {
                self.specification.to_mut().dropped_names.push(name.to_owned());
            }
        }
    }

    /// Adds the dependencies to those of the job; `union` has all attributes.
    pub(in crate::engine) fn add_to(&self, known: &mut JobDependencies, union: &LedgerUnion) {
        for (from, to, evidence) in &self.found {
            let (Some(from), Some(dependent)) = (union.attribute(from), union.attribute(to)) else { continue };
            // a column may count as a published one by a statement
            if from == dependent {
                continue;
            }
            let dependency = Dependency { determinant: AttrSet::one(from), dependent };
            let DeterminingEnd { groups, errors, saved, .. } = *evidence;
            let found = DiscoveredDependency { dependency, groups, errors, saved };
            known.add_found(&self.specification, found);
        }
        known.settle();
    }

    /// The rows of a job with the columns that it does not publish and that its dependencies name, for strata.
    ///
    /// Where no column was found, and behind the first one without rows, such attributes make no strata.
    pub(in crate::engine) fn strata<'t>(
        &self,
        others: &OtherColumns<'_>,
        permuted: &'t Table,
        order: &[u32],
    ) -> Cow<'t, Table> {
        let column = |name: &String| {
            let column = others.all[..others.dropped].iter().find(|column| column.name == name)?.column;
            Some((name.clone(), column.reordered(order)))
        };
        match &self.specification {
            Cow::Borrowed(_) => Cow::Borrowed(permuted),
            Cow::Owned(named) => Cow::Owned(permuted.extended(named.dropped_names.iter().map_while(column))),
        }
    }
}
