//! State of the store and length of the queue.

use async_trait::async_trait;

use crate::ports::{Backlog, QueueStatsStore, StoreError};
use crate::store::pulse::{self, BacklogRow};
use crate::store::sql::pulse as sql;

both_stores! {
    #[async_trait]
    impl QueueStatsStore for Backend {
        async fn check(&self) -> Result<(), StoreError> {
            let opened = self.schema_version();
            let found = run_sql!(query_scalar.fetch_one, self.reader(), sql::SCHEMA_VERSION, opened).map_err(failed)?;
            pulse::check_version(found, opened)
        }

        async fn backlog(&self) -> Result<Backlog, StoreError> {
            let found: BacklogRow = run_sql!(query_as.fetch_one, self.reader(), sql::BACKLOG).map_err(failed)?;
            pulse::backlog(&found)
        }
    }
}
