//! Chains and their states.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::people::CoverageId;
use crate::ports::{
    AnnouncementEnd, AuditEntry, ChainRecord, ChainStep, ChainStore, CoverageRecord, CoverageState, NewChain,
    ReleaseCommit, ReleaseRecord, StoreError, StoredChainState,
};
use crate::publication::ReleaseStatus;
use crate::store::rows::{ChainRow, ChainStateRow, CoverageRow, chain_states, ciphertext, stored};
use crate::store::sql::{chains as sql, people};
use crate::vault::Ciphertext;

both_stores! {
    #[async_trait]
    impl ChainStore for Backend {
        async fn chain(&self, tenant: &str, population: &str) -> Result<Option<ChainRecord>, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let row: Option<ChainRow> =
                run_sql!(query_as.fetch_optional, &mut *tx, sql::CHAIN, tenant, population).map_err(failed)?;
            let Some(row) = row else { return Ok(None) };
            chain_of(&mut tx, row).await.map(Some)
        }

        async fn is_chain_lost(&self, tenant: &str, population: &str) -> Result<bool, StoreError> {
            let mut tx = self.begin_snapshot().await.map_err(failed)?;
            let row: Option<ChainRow> =
                run_sql!(query_as.fetch_optional, &mut *tx, sql::CHAIN, tenant, population).map_err(failed)?;
            if let Some(row) = row {
                let chain = chain_of(&mut tx, row).await?;
                if chain.current.or(chain.pending).is_some() {
                    return Ok(false);
                }
            }
            let live: Vec<CoverageRow> =
                run_sql!(query_as.fetch_all, &mut *tx, sql::CHAIN_COVERAGES, tenant).map_err(failed)?;
            let mut chains = live.into_iter().map(|row| CoverageRecord::from(row).coverage.chain);
            Ok(chains.any(|chain| chain.as_deref() == Some(population)))
        }

        async fn begin_chain(&self, new: &NewChain) -> Result<ChainRecord, StoreError> {
            let begin = || async {
                let mut tx = self.begin().await?;
                self.check_master_key(&mut tx).await?;
                let NewChain { id, tenant, population, wrapped_key } = new;
                let never: Option<DateTime<Utc>> = None;
                let begun = run_sql!(query.execute, &mut *tx, sql::INSERT_CHAIN, id, tenant, population, never)?;
                if begun.rows_affected() > 0 {
                    run_sql!(query.execute, &mut *tx, sql::INSERT_CHAIN_KEY, id, wrapped_key)?;
                }
                Ok(tx.commit().await?)
            };
            run_transaction("begin_chain", begin).await?;
            self.chain(&new.tenant, &new.population).await?.ok_or(StoreError::NotFound)
        }

        async fn put_chain_piece(
            &self,
            chain: Uuid,
            job: Uuid,
            attempt: u32,
            piece: u32,
            payload: &Ciphertext,
        ) -> Result<(), StoreError> {
            let put = || async {
                let mut tx = self.begin().await?;
                let (attempt, piece) = (i64::from(attempt), i64::from(piece));
                let put = run_sql!(
                    query.execute, &mut *tx, PUT_CHAIN_PIECE, chain, job, attempt, piece, payload.as_bytes()
                )?;
                if put.rows_affected() == 0 {
                    return Err(StoreError::Conflict.into());
                }
                Ok(tx.commit().await?)
            };
            run_transaction("put_chain_piece", put).await
        }

        async fn chain_piece(
            &self,
            chain: Uuid,
            state: &StoredChainState,
            piece: u32,
        ) -> Result<Option<Ciphertext>, StoreError> {
            let (attempt, piece) = (i64::from(state.attempt), i64::from(piece));
            let payload = run_sql!(
                query_scalar.fetch_optional, self.reader(), sql::CHAIN_PIECE, chain, state.job, attempt, piece
            );
            Ok(ciphertext(payload.map_err(failed)?))
        }

        async fn end_chain(
            &self,
            tenant: &str,
            population: &str,
            at: DateTime<Utc>,
            audit_entry: &AuditEntry,
        ) -> Result<ChainRecord, StoreError> {
            let known = self.chain(tenant, population).await?;
            let begun = known.filter(|chain| chain.current.or(chain.pending).is_some() || chain.ended_at.is_some());
            let id = begun.ok_or(StoreError::NotFound)?.id;
            // the key goes first: pieces are noise then, and the sweep removes them
            let end = || async {
                let mut tx = self.begin().await?;
                lock_chain(&mut tx, id).await?;
                if run_sql!(query.execute, &mut *tx, sql::SET_CHAIN_ENDED, id, at)?.rows_affected() > 0 {
                    log(&mut tx, audit_entry).await?;
                }
                run_sql!(query.execute, &mut *tx, sql::DELETE_CHAIN_KEY, id)?;
                run_sql!(query.execute, &mut *tx, sql::DELETE_CHAIN_STATES, id)?;
                Ok(tx.commit().await?)
            };
            run_transaction("end_chain", end).await?;
            self.forget_chain_keys().await?;
            self.sweep_chain_states().await?;
            self.empty_journal().await?;
            self.chain(tenant, population).await?.ok_or(StoreError::NotFound)
        }
    }

    impl Backend {
        /// Removes the states of chains that no one can reach, and says of how many attempts they were.
        pub(in crate::store) async fn sweep_chain_states(&self) -> Result<u64, StoreError> {
            let attempts: Vec<(Uuid, i64)> =
                run_sql!(query_as.fetch_all, self.reader(), sql::UNREACHABLE_CHAIN_STATES).map_err(failed)?;
            for (job, attempt) in &attempts {
                self.drop_chain_state(*job, *attempt).await?;
            }
            Ok(attempts.len() as u64)
        }

        /// Removes what an attempt wrote of a state, unless a chain has it.
        pub(in crate::store) async fn drop_chain_state(&self, job: Uuid, attempt: i64) -> Result<(), StoreError> {
            let some = || async {
                let mut tx = self.begin().await?;
                // a commit whose worker lost its connection may still run: it holds the job's row until it ends
                lock_job(&mut tx, job).await?;
                let deleted = run_sql!(
                    query.execute, &mut *tx, sql::DELETE_SOME_CHAIN_PIECES, job, attempt, CHUNKS_PER_DELETE
                )?;
                tx.commit().await?;
                Ok(deleted.rows_affected())
            };
            while run_transaction("drop_chain_state", some).await? > 0 {}
            Ok(())
        }
    }

    /// A chain with its states.
    pub(in crate::store) async fn chain_of(
        connection: &mut Connection,
        row: ChainRow,
    ) -> Result<ChainRecord, StoreError> {
        let states: Vec<ChainStateRow> =
            run_sql!(query_as.fetch_all, connection, sql::CHAIN_STATES, row.id).map_err(failed)?;
        row.with(&states)
    }

    /// Makes the state of a commit current, or pending with a held release; says whether it may. It may not if another
    /// release came first, one is held, or the chain has ended.
    pub(in crate::store) async fn step_chain(
        connection: &mut Connection,
        commit: &ReleaseCommit,
        step: &ChainStep,
    ) -> Result<bool, TransactionError> {
        let ChainStep { chain, from, pieces, bytes } = *step;
        lock_chain(connection, chain).await?;
        let has_key: bool = run_sql!(query_scalar.fetch_one, &mut *connection, sql::HAS_CHAIN_KEY, chain)?;
        let states: Vec<ChainStateRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::CHAIN_STATES, chain)?;
        let [current, pending] = chain_states(&states)?;
        if !has_key || pending.is_some() || current.map_or(0, |state| state.version) != from {
            return Ok(false);
        }
        let release = &commit.release;
        let (attempt, pieces, bytes) = (i64::from(release.attempt), i64::from(pieces), stored(bytes)?);
        let is_whole: bool = run_sql!(
            query_scalar.fetch_one, &mut *connection, sql::IS_WHOLE_STATE, chain, release.job, attempt, pieces, bytes
        )?;
        if !is_whole {
            return Err(StoreError::Conflict.into());
        }
        let is_pending = release.status == ReleaseStatus::Held;
        if !is_pending {
            run_sql!(query.execute, &mut *connection, sql::DELETE_CHAIN_STATE, chain, false)?;
        }
        run_sql!(
            query.execute, connection, sql::INSERT_CHAIN_STATE, chain, is_pending, stored(from + 1)?, release.job,
            attempt, pieces, bytes, release.id
        )?;
        Ok(true)
    }

    /// Settles what a held release left pending: its state becomes current and its persons those of the chain, or both
    /// are as if it had never been.
    pub(in crate::store) async fn settle_chain(
        connection: &mut Connection,
        release: &ReleaseRecord,
        counts: bool,
    ) -> Result<(), TransactionError> {
        settle_coverage(connection, release, counts).await?;
        let chain: Option<Uuid> =
            run_sql!(query_scalar.fetch_optional, &mut *connection, sql::PENDING_STATE_OF_RELEASE, release.id)?;
        let Some(chain) = chain else { return Ok(()) };
        lock_chain(connection, chain).await?;
        // it replaces the current one, or is gone
        run_sql!(query.execute, &mut *connection, sql::DELETE_CHAIN_STATE, chain, !counts)?;
        if counts {
            run_sql!(query.execute, connection, sql::SETTLE_CHAIN_STATE, chain)?;
        }
        Ok(())
    }

    async fn settle_coverage(
        connection: &mut Connection,
        release: &ReleaseRecord,
        counts: bool,
    ) -> Result<(), TransactionError> {
        let tenant = &release.tenant;
        let own: Vec<CoverageRow> =
            run_sql!(query_as.fetch_all, &mut *connection, sql::CHAIN_COVERAGE_OF_JOB, tenant, release.job)?;
        let own = own.into_iter().map(CoverageRecord::from).find(|of| of.coverage.chain.is_some());
        let Some(own) = own else { return Ok(()) };
        if !counts {
            run_sql!(query.execute, &mut *connection, people::VOID_LIVE, tenant, own.id.0)?;
            people_changed(connection, tenant).await?;
            return Ok(());
        }
        let all: Vec<CoverageRow> = run_sql!(query_as.fetch_all, &mut *connection, sql::CHAIN_COVERAGES, tenant)?;
        let is_chain = |of: &CoverageRecord| of.id != own.id && of.coverage.chain == own.coverage.chain;
        match all.into_iter().map(CoverageRecord::from).find(is_chain) {
            Some(chain) => join_chain(connection, tenant, own.id, chain.id).await,
            // it is the first release
            None => Ok(()),
        }
    }

    /// Takes the persons and the description of a held release into the coverage of its chain.
    async fn join_chain(
        connection: &mut Connection,
        tenant: &str,
        own: CoverageId,
        chain: CoverageId,
    ) -> Result<(), TransactionError> {
        let night = locked(connection, tenant, own).await?;
        let learned = night.coverage.systems.keys().cloned().collect();
        let end = AnnouncementEnd::Joined {
            target: chain, coverage: Box::new(night.coverage), published: night.published, learned,
        };
        if !join_coverage(connection, tenant, own, &end).await? {
            return Err(StoreError::Conflict.into());
        }
        run_sql!(query.execute, &mut *connection, people::VOID_LIVE, tenant, own.0)?;
        people_changed(connection, tenant).await?;
        Ok(())
    }

    /// Takes the rows of a coverage into another one, as an announcement ends that joins it; says whether that one is live.
    pub(in crate::store) async fn join_coverage(
        connection: &mut Connection,
        tenant: &str,
        own: CoverageId,
        end: &AnnouncementEnd,
    ) -> Result<bool, TransactionError> {
        let AnnouncementEnd::Joined { target, coverage: known, published, learned } = end else { return Ok(true) };
        let mut joined = locked(connection, tenant, *target).await?;
        if joined.state != CoverageState::Live {
            return Ok(false);
        }
        // others may have joined since it was read
        joined.coverage.absorb((**known).clone(), &joined.published);
        joined.published.extend(published.iter().cloned());
        for system in learned {
            let number = system_number(connection, tenant, system).await?;
            let moved = run_sql!(query.execute, &mut *connection, people::MOVE_PERSONS, own.0, target.0, number)?;
            joined.coverage.count_new_persons(system, moved.rows_affected());
        }
        if joined.coverage.chain.is_some() {
            // the cells of the last release are those that a later table resembles
            delete_marks(connection, target.0).await?;
            run_sql!(query.execute, &mut *connection, sql::MOVE_INDEXED_MARKS, own.0, target.0)?;
            run_sql!(query.execute, &mut *connection, sql::MOVE_SIGNATURES, own.0, target.0)?;
            run_sql!(query.execute, &mut *connection, sql::TAKE_CUTS, own.0, target.0)?;
        }
        let (known, published) = (Json(&joined.coverage), Json(&joined.published));
        run_sql!(query.execute, &mut *connection, people::DESCRIBE_COVERAGE, tenant, target.0, known, published)?;
        list_coverage(connection, target.0, &joined.coverage).await?;
        Ok(true)
    }
}
