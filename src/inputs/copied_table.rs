//! The table of a dataset whose rows are in another engine: copied there, and read here once, to know it again.

use std::sync::Arc;

use super::content_hash::TableContentHash;
use super::context::JobContext;
use super::env::InputEnv;
use crate::control::{Control, Phase};
use crate::engine;
use crate::engine::{CopiedTable, EngineError, RemoteColumn, RemoteTable};
use crate::ledger::EarlierDisclosures;
use crate::microdata::formats::parquet::ParquetFiles;
use crate::microdata::formats::{IngestError, IngestLimits, TableReader};
use crate::microdata::{ChunkFile, ColumnProfile};
use crate::ports::{DatasetRecord, EngineTable};
use crate::problem::{Kind, Problem};

/// A copy of the table, whose rows were read.
struct CopiedRows {
    /// The copy.
    table: Box<dyn CopiedTable>,
    /// Its rows.
    chunks: ChunkFile,
}

impl DatasetRecord {
    /// Whether its rows may be read here: they are here, or another engine has few of them.
    pub(crate) const fn is_readable_here(&self) -> bool {
        self.place.is_none() || self.rows <= engine::MOST_HELD_ROWS
    }
}

impl JobContext {
    /// Has the table of the dataset copied, and keeps its rows for the audit of its people; on a blocking thread. `None` of a dataset
    /// whose rows are here.
    ///
    /// # Errors
    /// `source-unreadable` with the reason `changed` if it is not the table that was registered, and what the engine fails with.
    pub(crate) fn copy_rows(
        &mut self,
        env: &InputEnv,
        control: &Control,
    ) -> Result<Option<Box<dyn CopiedTable>>, EngineError> {
        let Some(CopiedRows { table, chunks }) = self.copied_rows(env, control)? else { return Ok(None) };
        self.copied = Some(Arc::new(chunks));
        Ok(Some(table))
    }

    /// Whether the release is made here, given the earlier disclosures, without asking an engine that has the rows.
    pub(crate) fn is_made_here(&self, earlier: &EarlierDisclosures) -> bool {
        let DatasetRecord { place, rows, .. } = &self.dataset;
        let needs_rows = || engine::needs_rows_here(&self.specification, earlier, *rows);
        place.is_none() || (self.dataset.is_readable_here() && needs_rows())
    }

    /// Another copy of the table, of the same rows.
    ///
    /// # Errors
    /// As [`JobContext::copy_rows`].
    pub(crate) fn copy_again(
        &self,
        env: &InputEnv,
        control: &Control,
    ) -> Result<Option<Box<dyn CopiedTable>>, EngineError> {
        Ok(self.copied_rows(env, control)?.map(|copied| copied.table))
    }

    /// The counted copy, which has the columns that the specification was read against.
    ///
    /// # Errors
    /// As [`JobContext::copy_rows`].
    pub(crate) fn counted<'a>(&self, table: &'a mut dyn CopiedTable) -> Result<&'a mut dyn RemoteTable, EngineError> {
        let counted = table.counted()?;
        let is_known = |(column, profile): (&RemoteColumn, &ColumnProfile)| {
            column.name == profile.name && column.kind == profile.kind && column.missing == profile.missing
        };
        let columns = counted.columns();
        let is_same = columns.len() == self.profiles.len() && columns.iter().zip(&self.profiles).all(is_known);
        match (&self.dataset.place, is_same && counted.rows() == self.dataset.rows) {
            (Some(place), false) => Err(changed(place)),
            _ => Ok(counted),
        }
    }

    fn copied_rows(&self, env: &InputEnv, control: &Control) -> Result<Option<CopiedRows>, EngineError> {
        let DatasetRecord { tenant, place, rows, content_hash, .. } = &self.dataset;
        let Some(place) = place else { return Ok(None) };
        let engine = env.engines.find(tenant, place).map_err(EngineError::Refused)?;
        control.begin(Phase::Load, 1)?;
        let table = engine.copy(&place.table, control)?;
        let mut reader =
            ParquetFiles::new(table.files()?, &IngestLimits::of_own_parts()).map_err(|error| self.unread(error))?;
        if reader.names() != self.columns {
            return Err(changed(place));
        }
        let mut content = TableContentHash::new(env.vault.content_hasher(tenant), &self.columns);
        let mut chunks = ChunkFile::new(&env.spool)?;
        let mut found = 0;
        while let Some(chunk) = reader.next_chunk().map_err(|error| self.unread(error))? {
            control.check()?;
            found += u64::from(chunk.rows);
            content.add(&chunk);
            chunks.push(&chunk)?;
        }
        if found != *rows || content.finish() != *content_hash {
            return Err(changed(place));
        }
        control.advance(1)?;
        Ok(Some(CopiedRows { table, chunks }))
    }

    fn unread(&self, error: IngestError) -> EngineError {
        match (&self.dataset.place, error) {
            // what was read before was not malformed
            (Some(place), IngestError::Malformed { .. } | IngestError::Empty | IngestError::TooManyColumns { .. }) => {
                changed(place)
            }
            (_, error) => EngineError::Refused(error.into()),
        }
    }
}

fn changed(EngineTable { engine, .. }: &EngineTable) -> EngineError {
    let detail = format!(
        "the table in the engine {engine:?} is not the one that was registered: rows, names or types of columns changed; register it \
         again"
    );
    EngineError::Refused(Problem::new(Kind::SourceUnreadable, detail).with("reason", "changed"))
}
