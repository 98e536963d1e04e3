//! The life of a release after its commit.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use super::keys::log;
use super::tenants::settings_of;
use crate::ports::{
    AuditEntry, LifecycleStore, ReleaseAction, ReleaseEvent, ReleaseRecord, StoreError, Transition, TransitionOutcome,
    approved_by_another,
};
use crate::store::rows::{ReleaseEventRow, ReleaseRow, release_status};
use crate::store::sql::{disclosures, life as sql, people, releases};

#[async_trait]
impl LifecycleStore for SqliteStore {
    async fn transition(&self, transition: &Transition) -> Result<TransitionOutcome, StoreError> {
        let Transition { release, act, reason, audit_entry } = transition;
        let actor = audit_entry.actor.clone();
        let mut tx = self.begin("transition").await?;
        let row: Option<ReleaseRow> = sqlx::query_as(releases::RELEASE)
            .bind(release)
            .bind(&audit_entry.tenant)
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(TransitionOutcome::NotFound) };
        let record = ReleaseRecord::try_from(row)?;
        let (status, was_read): (String, bool) =
            sqlx::query_as(sql::RELEASE_STATE).bind(release).fetch_one(&mut *tx).await.map_err(failed)?;
        let status = release_status(&status)?;
        if status != act.from() {
            return Ok(TransitionOutcome::WrongState(status));
        }
        if *act == ReleaseAction::Approve && settings_of(&mut tx, &audit_entry.tenant).await?.approval_by_another {
            let submitters = sqlx::query_scalar(sql::SUBMITTERS).bind(release).bind(&audit_entry.tenant);
            let submitters: Vec<Option<String>> = submitters.fetch_all(&mut *tx).await.map_err(failed)?;
            if !approved_by_another(actor.as_deref(), &submitters) {
                return Ok(TransitionOutcome::NotByAnother);
            }
        }
        let set = sqlx::query(sql::SET_RELEASE_STATUS).bind(release).bind(act.to().as_str());
        set.execute(&mut *tx).await.map_err(failed)?;
        let event = sqlx::query(sql::INSERT_RELEASE_EVENT).bind(release).bind(act.to().as_str()).bind(reason);
        let event = event.bind(audit_entry.at).bind(actor);
        event.execute(&mut *tx).await.map_err(failed)?;
        if *act != ReleaseAction::Approve {
            let report = sqlx::query(releases::DELETE_INTERNAL_REPORT).bind(release);
            report.execute(&mut *tx).await.map_err(failed)?;
        }
        if *act == ReleaseAction::Reject && !was_read {
            for lift in [sql::LIFT_DISCLOSURES, sql::LIFT_RULES] {
                sqlx::query(lift).bind(release).execute(&mut *tx).await.map_err(failed)?;
            }
        }
        sqlx::query(disclosures::BUMP_LEDGER)
            .bind(&record.tenant)
            .bind(&record.series)
            .bind(record.content_hash.as_slice())
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
        let series = sqlx::query(people::BUMP_SERIES).bind(&record.tenant).bind(&record.series);
        series.execute(&mut *tx).await.map_err(failed)?;
        log(&mut tx, audit_entry).await?;
        tx.commit().await.map_err(failed)?;
        Ok(TransitionOutcome::Done)
    }

    async fn mark_read(
        &self,
        tenant: &str,
        release: Uuid,
        at: DateTime<Utc>,
        audit_entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin("mark_read").await?;
        let marked = sqlx::query(sql::MARK_READ).bind(release).bind(at).bind(tenant);
        if marked.execute(&mut *tx).await.map_err(failed)?.rows_affected() > 0 {
            log(&mut tx, audit_entry).await?;
        }
        let served: Option<bool> = sqlx::query_scalar(sql::IS_SERVED)
            .bind(release)
            .bind(tenant)
            .fetch_optional(&mut *tx)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(served == Some(true))
    }

    async fn ended_release(&self, tenant: &str, reuse_key: &[u8; 32]) -> Result<Option<(Uuid, String)>, StoreError> {
        let ended = sqlx::query_as(sql::ENDED_RELEASE).bind(tenant).bind(reuse_key.as_slice());
        ended.fetch_optional(&self.reader).await.map_err(failed)
    }

    async fn old_releases(&self, before: DateTime<Utc>) -> Result<Vec<(String, Uuid)>, StoreError> {
        sqlx::query_as(sql::OLD_RELEASES).bind(before).fetch_all(&self.reader).await.map_err(failed)
    }

    async fn release_events(&self, tenant: &str, release: Uuid) -> Result<Vec<ReleaseEvent>, StoreError> {
        let events: Vec<ReleaseEventRow> = sqlx::query_as(sql::RELEASE_EVENTS)
            .bind(release)
            .bind(tenant)
            .fetch_all(&self.reader)
            .await
            .map_err(failed)?;
        events.into_iter().map(ReleaseEvent::try_from).collect()
    }
}
