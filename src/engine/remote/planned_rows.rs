//! Tables of a release in another engine that are chosen by the rows: these are counted there and ranked here.

use super::counted::RemoteOrder;
use super::counts::RemoteCounts;
use super::planned_tables::{DistinctColumns, UnplannedError};
use super::port::RemoteTable;
use crate::engine::error::EngineError;
use crate::microdata::{Attr, AttrSet, Table};
use crate::publish::ranked::{RankedRows, RankingColumn, compare_rows};
use crate::random::ReleaseKey;

/// All rows of a table in the columns of a release, in canonical order, with what ranks them.
pub(super) struct RowsToRank {
    pub(super) table: Table,
    columns: Vec<RankingColumn>,
}

impl RowsToRank {
    /// The rows with their ranks, under the key of the release.
    pub(super) fn ranked<'a>(&'a self, key: &'a ReleaseKey) -> RankedRows<'a> {
        RankedRows::new(&self.table, &self.columns, key)
    }
}

impl RemoteOrder<'_> {
    /// The rows of a table in the columns of the release, from its distinct ones.
    ///
    /// # Errors
    /// [`UnplannedError`]: refused where there are too many.
    pub(super) fn rows_to_rank(
        &self,
        table: &mut dyn RemoteTable,
        counts: &RemoteCounts,
        protected: AttrSet,
    ) -> Result<RowsToRank, UnplannedError> {
        let all = AttrSet::first(self.specification.names.len());
        let columns = DistinctColumns { known: all.minus(protected), sensitive: protected, counts };
        let (distinct, weights) = self.distinct_rows(table, columns)?;
        // each row is held by itself: no more than were counted
        if weights.of_all(distinct.rows()) != counts.rows {
            return Err(EngineError::bug("the engine has other rows in distinct rows than it counted").into());
        }
        let mut attributes: Vec<Attr> = all.iter().collect();
        attributes.sort_unstable_by_key(|attr| self.specification.used[attr.index()]);
        let mut order: Vec<u32> = (0..distinct.rows() as u32).collect();
        order.sort_unstable_by(|&one, &other| compare_rows(&distinct, &attributes, one, other));
        let copies = |row: u32| std::iter::repeat_n(row, weights.of(&[row]) as usize);
        let order: Vec<u32> = order.into_iter().flat_map(copies).collect();
        let encoded = |&attribute: &Attr| {
            let domain = distinct.domain(attribute);
            let place = self.specification.used[attribute.index()];
            let cell = |value: Option<&[u8]>| table.encoded_cell(place, value.map(String::from_utf8_lossy).as_deref());
            RankingColumn { attribute, cells: domain.iter().map(cell).collect() }
        };
        let columns = attributes.iter().map(encoded).collect();
        Ok(RowsToRank { table: distinct.reordered(&order), columns })
    }

    /// The columns that rank rows where tables are chosen by the rows: all of the release, so that no choice changes a rank.
    pub(super) fn ranking_places(&self) -> Vec<usize> {
        self.places(AttrSet::first(self.specification.names.len()))
    }
}
