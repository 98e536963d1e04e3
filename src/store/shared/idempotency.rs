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
                let claimed = run_sql!(
                    query.execute, self.writer(), sql::CLAIM_REPEAT, &key.tenant, key.route, &key.name, key.resource,
                    key.content_hash.as_ref().map(<[u8; 32]>::as_slice), key.began_at, key.lease_until
                ).map_err(failed)?;
                if claimed.rows_affected() > 0 {
                    return Ok(None);
                }
                let held: Option<RepeatRow> = run_sql!(
                    query_as.fetch_optional, self.writer(), sql::REPEAT, &key.tenant, key.route, &key.name
                ).map_err(failed)?;
                // let go of between the two: it is free
                if let Some(held) = held {
                    return IdempotencyRecord::try_from(held).map(Some);
                }
            }
        }

        async fn drop_idempotency_key(&self, resource: Uuid) -> Result<(), StoreError> {
            run_sql!(query.execute, self.writer(), sql::DROP_REPEAT, resource).map_err(failed)?;
            Ok(())
        }

        async fn renew_idempotency_key(&self, resource: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError> {
            let renewed = run_sql!(query.execute, self.writer(), sql::RENEW_REPEAT, resource, until);
            Ok(renewed.map_err(failed)?.rows_affected() > 0)
        }

        async fn note_content(&self, resource: Uuid, content_hash: &[u8; 32]) -> Result<bool, StoreError> {
            let hash = content_hash.as_slice();
            let noted = run_sql!(query.execute, self.writer(), sql::NOTE_CONTENT, resource, hash);
            Ok(noted.map_err(failed)?.rows_affected() > 0)
        }

        async fn expire_idempotency_keys(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
            let expired = run_sql!(query.execute, self.writer(), sql::EXPIRE_REPEATS, before).map_err(failed)?;
            Ok(expired.rows_affected())
        }

        async fn lapse_idempotency_keys(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
            run_sql!(query.execute, self.writer(), sql::LAPSE_REPEATS, now).map_err(failed)?;
            Ok(())
        }
    }
}
