//! State of the store and length of the queue.

use async_trait::async_trait;

use crate::ports::{Backlog, QueueStatsStore, StoreError};
use crate::store::pulse::{self, BacklogRow};
use crate::store::sql::pulse as sql;

both_stores! {
    #[async_trait]
    impl QueueStatsStore for Backend {
        async fn check(&self) -> Result<(), StoreError> {
            let found = sqlx::query_scalar(sql::SCHEMA_VERSION).fetch_one(self.reader()).await.map_err(failed)?;
            pulse::check_version(found, self.schema_version())
        }

        async fn backlog(&self) -> Result<Backlog, StoreError> {
            let found: BacklogRow = sqlx::query_as(sql::BACKLOG).fetch_one(self.reader()).await.map_err(failed)?;
            pulse::backlog(found)
        }
    }
}
