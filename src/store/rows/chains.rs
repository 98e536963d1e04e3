//! Rows of chains and their states.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::numbers::number;
use crate::ports::{ChainRecord, StoreError, StoredChainState};

#[derive(FromRow)]
pub(in crate::store) struct ChainRow {
    pub(in crate::store) id: Uuid,
    tenant: String,
    population: String,
    ended_at: Option<DateTime<Utc>>,
    wrapped_key: Option<Vec<u8>>,
}

#[derive(FromRow)]
pub(in crate::store) struct ChainStateRow {
    is_pending: bool,
    version: i64,
    job_id: Uuid,
    attempt: i64,
    piece_count: i64,
    byte_count: i64,
    release_id: Uuid,
}

impl TryFrom<&ChainStateRow> for StoredChainState {
    type Error = StoreError;

    fn try_from(row: &ChainStateRow) -> Result<Self, StoreError> {
        Ok(Self {
            version: number(row.version)?,
            job: row.job_id,
            attempt: number(row.attempt)?,
            pieces: number(row.piece_count)?,
            bytes: number(row.byte_count)?,
            release: row.release_id,
        })
    }
}

/// The current and the pending state among the rows of a chain.
pub(in crate::store) fn chain_states(rows: &[ChainStateRow]) -> Result<[Option<StoredChainState>; 2], StoreError> {
    let state = |is_pending| {
        let row = rows.iter().find(|row| row.is_pending == is_pending);
        row.map(StoredChainState::try_from).transpose()
    };
    Ok([state(false)?, state(true)?])
}

impl ChainRow {
    /// The chain with its states.
    pub(in crate::store) fn with(self, states: &[ChainStateRow]) -> Result<ChainRecord, StoreError> {
        let [current, pending] = chain_states(states)?;
        Ok(ChainRecord {
            id: self.id,
            tenant: self.tenant,
            population: self.population,
            wrapped_key: self.wrapped_key,
            ended_at: self.ended_at,
            current,
            pending,
        })
    }
}
