//! Idempotency keys.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{IdempotencyRecord, IdempotencyStore, NewIdempotencyKey, StoreError};
use crate::store::rows::RepeatRow;
use crate::store::sql::repeats as sql;

both_stores! {
    #[async_trait]
    impl IdempotencyStore for Backend {
        async fn claim_idempotency_key(
            &self,
            key: &NewIdempotencyKey,
        ) -> Result<Option<IdempotencyRecord>, StoreError> {
            loop {
                let claimed = sqlx::query(sql::CLAIM_REPEAT)
                    .bind(&key.tenant)
                    .bind(key.route)
                    .bind(&key.name)
                    .bind(key.resource)
                    .bind(key.content_hash.as_ref().map(<[u8; 32]>::as_slice))
                    .bind(key.began_at)
                    .bind(key.lease_until)
                    .execute(self.writer())
                    .await
                    .map_err(failed)?;
                if claimed.rows_affected() > 0 {
                    return Ok(None);
                }
                let held: Option<RepeatRow> = sqlx::query_as(sql::REPEAT)
                    .bind(&key.tenant)
                    .bind(key.route)
                    .bind(&key.name)
                    .fetch_optional(self.writer())
                    .await
                    .map_err(failed)?;
                // let go of between the two: it is free
                if let Some(held) = held {
                    return IdempotencyRecord::try_from(held).map(Some);
                }
            }
        }

        async fn drop_idempotency_key(&self, resource: Uuid) -> Result<(), StoreError> {
            sqlx::query(sql::DROP_REPEAT).bind(resource).execute(self.writer()).await.map_err(failed)?;
            Ok(())
        }

        async fn renew_idempotency_key(&self, resource: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError> {
            let renewed = sqlx::query(sql::RENEW_REPEAT).bind(resource).bind(until).execute(self.writer()).await;
            Ok(renewed.map_err(failed)?.rows_affected() > 0)
        }

        async fn note_content(&self, resource: Uuid, content_hash: &[u8; 32]) -> Result<bool, StoreError> {
            let hash = content_hash.as_slice();
            let noted = sqlx::query(sql::NOTE_CONTENT).bind(resource).bind(hash).execute(self.writer()).await;
            Ok(noted.map_err(failed)?.rows_affected() > 0)
        }

        async fn expire_idempotency_keys(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
            let expired = sqlx::query(sql::EXPIRE_REPEATS).bind(before).execute(self.writer()).await.map_err(failed)?;
            Ok(expired.rows_affected())
        }

        async fn lapse_idempotency_keys(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
            sqlx::query(sql::LAPSE_REPEATS).bind(now).execute(self.writer()).await.map_err(failed)?;
            Ok(())
        }
    }
}
