//! The life of a release after its commit.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    AuditEntry, LifecycleStore, ReleaseAction, ReleaseEvent, ReleaseStore, StoreError, Transition, TransitionOutcome,
    approved_by_another,
};
use crate::store::rows::{ReleaseEventRow, release_status};
use crate::store::shared::Notification;
use crate::store::sql::{disclosures, life as sql, people, releases};

both_stores! {
    #[async_trait]
    impl LifecycleStore for Backend {
        async fn transition(&self, transition: &Transition) -> Result<TransitionOutcome, StoreError> {
            run_transaction("transition", || self.try_transition(transition)).await
        }

        async fn mark_read(
            &self,
            tenant: &str,
            release: Uuid,
            at: DateTime<Utc>,
            audit_entry: &AuditEntry,
        ) -> Result<bool, StoreError> {
            let mark = || async {
                let mut tx = self.begin().await?;
                let marked = sqlx::query(sql::MARK_READ).bind(release).bind(at).bind(tenant).execute(&mut *tx).await?;
                if marked.rows_affected() > 0 {
                    log(&mut tx, audit_entry).await?;
                }
                let served: Option<bool> =
                    sqlx::query_scalar(sql::IS_SERVED).bind(release).bind(tenant).fetch_optional(&mut *tx).await?;
                tx.commit().await?;
                Ok(served == Some(true))
            };
            run_transaction("mark_read", mark).await
        }

        async fn ended_release(
            &self,
            tenant: &str,
            reuse_key: &[u8; 32],
        ) -> Result<Option<(Uuid, String)>, StoreError> {
            let ended = sqlx::query_as(sql::ENDED_RELEASE).bind(tenant).bind(reuse_key.as_slice());
            ended.fetch_optional(self.reader()).await.map_err(failed)
        }

        async fn old_releases(&self, before: DateTime<Utc>) -> Result<Vec<(String, Uuid)>, StoreError> {
            sqlx::query_as(sql::OLD_RELEASES).bind(before).fetch_all(self.reader()).await.map_err(failed)
        }

        async fn release_events(&self, tenant: &str, release: Uuid) -> Result<Vec<ReleaseEvent>, StoreError> {
            let events: Vec<ReleaseEventRow> = sqlx::query_as(sql::RELEASE_EVENTS)
                .bind(release)
                .bind(tenant)
                .fetch_all(self.reader())
                .await
                .map_err(failed)?;
            events.into_iter().map(ReleaseEvent::try_from).collect()
        }
    }

    impl Backend {
        /// Locks the reuse key and the ledger, as a commit does, then the release; only then reads its status.
        async fn try_transition(&self, transition: &Transition) -> Result<TransitionOutcome, TransactionError> {
            let Transition { release, act, reason, audit_entry } = transition;
            let actor = audit_entry.actor.clone();
            // its tenant and content never change, so it can be read before any lock
            let Some(record) = self.release(&audit_entry.tenant, *release).await? else {
                return Ok(TransitionOutcome::NotFound);
            };
            let mut tx = self.begin().await?;
            lock_reuse_key(&mut tx, &record.reuse_key).await?;
            lock_ledger(&mut tx, &record).await?;
            let (status, was_read): (String, bool) =
                sqlx::query_as(RELEASE_STATE).bind(release).fetch_one(&mut *tx).await?;
            let status = release_status(&status)?;
            if status != act.from() {
                return Ok(TransitionOutcome::WrongState(status));
            }
            if *act == ReleaseAction::Approve && settings_of(&mut tx, &audit_entry.tenant).await?.approval_by_another {
                // under the lock of the reuse key no equal job comes between
                let submitters = sqlx::query_scalar(sql::SUBMITTERS).bind(release).bind(&audit_entry.tenant);
                let submitters: Vec<Option<String>> = submitters.fetch_all(&mut *tx).await?;
                if !approved_by_another(actor.as_deref(), &submitters) {
                    return Ok(TransitionOutcome::NotByAnother);
                }
            }
            sqlx::query(sql::SET_RELEASE_STATUS).bind(release).bind(act.to().as_str()).execute(&mut *tx).await?;
            let event = sqlx::query(sql::INSERT_RELEASE_EVENT).bind(release).bind(act.to().as_str()).bind(reason);
            let event = event.bind(audit_entry.at).bind(actor);
            event.execute(&mut *tx).await?;
            if *act != ReleaseAction::Approve {
                sqlx::query(releases::DELETE_INTERNAL_REPORT).bind(release).execute(&mut *tx).await?;
            }
            if *act == ReleaseAction::Reject && !was_read {
                for lift in [sql::LIFT_DISCLOSURES, sql::LIFT_RULES] {
                    sqlx::query(lift).bind(release).execute(&mut *tx).await?;
                }
            }
            sqlx::query(disclosures::BUMP_LEDGER)
                .bind(&record.tenant)
                .bind(&record.series)
                .bind(record.content_hash.as_slice())
                .execute(&mut *tx)
                .await?;
            let series = sqlx::query(people::BUMP_SERIES).bind(&record.tenant).bind(&record.series);
            series.execute(&mut *tx).await?;
            log(&mut tx, audit_entry).await?;
            notify(&mut tx, Notification::Changed).await?;
            tx.commit().await?;
            Ok(TransitionOutcome::Done)
        }
    }
}
