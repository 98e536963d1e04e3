//! The life of a release after its commit.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    AuditEntry, KeyedReleases, LifecycleStore, ReleaseAction, ReleaseEvent, ReleaseStore, StoreError, Transition,
    TransitionOutcome, approved_by_another,
};
use crate::publication::ReleaseStatus;
use crate::store::rows::{ReleaseEventRow, records, release_status};
use crate::store::shared::Notification;
use crate::store::sql::{disclosures, life as sql, releases, series as series_sql};

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
                let marked = run_sql!(query.execute, &mut *tx, sql::MARK_READ, release, at, tenant)?;
                if marked.rows_affected() > 0 {
                    log(&mut tx, audit_entry).await?;
                }
                let served: Option<bool> =
                    run_sql!(query_scalar.fetch_optional, &mut *tx, sql::IS_SERVED, release, tenant)?;
                tx.commit().await?;
                Ok(served == Some(true))
            };
            run_transaction("mark_read", mark).await
        }

        async fn releases_of_key(&self, tenant: &str, reuse_key: &[u8; 32]) -> Result<KeyedReleases, StoreError> {
            let mut found: Vec<(Uuid, String, bool)> = run_sql!(
                query_as.fetch_all, self.reader(), sql::RELEASES_OF_KEY, tenant, reuse_key.as_slice()
            ).map_err(failed)?;
            found.sort_unstable_by_key(|(release, ..)| *release);
            let mut releases = KeyedReleases::default();
            for (release, status, stands) in found {
                if stands {
                    releases.standing = Some(release);
                } else {
                    releases.ended.get_or_insert((release, status));
                }
            }
            Ok(releases)
        }

        async fn old_releases(&self, before: DateTime<Utc>) -> Result<Vec<(String, Uuid)>, StoreError> {
            run_sql!(query_as.fetch_all, self.reader(), sql::OLD_RELEASES, before).map_err(failed)
        }

        async fn release_events(&self, tenant: &str, release: Uuid) -> Result<Vec<ReleaseEvent>, StoreError> {
            let events: Vec<ReleaseEventRow> =
                run_sql!(query_as.fetch_all, self.reader(), sql::RELEASE_EVENTS, release, tenant).map_err(failed)?;
            records(events)
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
                run_sql!(query_as.fetch_one, &mut *tx, RELEASE_STATE, release)?;
            let status = release_status(&status)?;
            if status != act.from() {
                return Ok(TransitionOutcome::WrongState(status));
            }
            if *act == ReleaseAction::Approve && settings_of(&mut tx, &audit_entry.tenant).await?.approval_by_another {
                // under the lock of the reuse key no equal job comes between
                let submitters: Vec<Option<String>> =
                    run_sql!(query_scalar.fetch_all, &mut *tx, sql::SUBMITTERS, release, &audit_entry.tenant)?;
                if !approved_by_another(actor.as_deref(), &submitters) {
                    return Ok(TransitionOutcome::NotByAnother);
                }
            }
            run_sql!(query.execute, &mut *tx, sql::SET_RELEASE_STATUS, release, act.to().as_str())?;
            let event = sqlx::query(sql::INSERT_RELEASE_EVENT).bind(release).bind(act.to().as_str()).bind(reason);
            let event = event.bind(audit_entry.at).bind(actor);
            event.execute(&mut *tx).await?;
            if *act != ReleaseAction::Approve {
                run_sql!(query.execute, &mut *tx, releases::DELETE_INTERNAL_REPORT, release)?;
            }
            if *act == ReleaseAction::Reject && !was_read {
                for lift in [sql::LIFT_DISCLOSURES, sql::LIFT_RULES] {
                    run_sql!(query.execute, &mut *tx, lift, release)?;
                }
            }
            run_sql!(
                query.execute, &mut *tx, disclosures::BUMP_LEDGER, &record.tenant, &record.series,
                record.content_hash.as_slice()
            )?;
            run_sql!(query.execute, &mut *tx, series_sql::BUMP_SERIES, &record.tenant, &record.series)?;
            if *act == ReleaseAction::Reject && !was_read {
                void_unpublished(&mut tx, &record.tenant, record.dataset).await?;
            }
            if status == ReleaseStatus::Held {
                settle_chain(&mut tx, &record, *act == ReleaseAction::Approve || was_read).await?;
            }
            log(&mut tx, audit_entry).await?;
            notify(&mut tx, Notification::Changed).await?;
            tx.commit().await?;
            Ok(TransitionOutcome::Done)
        }
    }
}
