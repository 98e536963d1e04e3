//! Wake-ups between processes: NOTIFY names what to look at, never its content. Only speed depends on it; a waiter also looks
//! by itself after a while.

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::PgListener;
use tokio_util::sync::CancellationToken;

use super::PostgresStore;
use super::error::failed;
use crate::ports::{Notifier, StoreError};
use crate::store::shared::Notification;

/// Channels belong to a database: a store in another schema of it hears these words too, and looks in vain.
const CHANNEL: &str = "guardian_jobs";

const NOTIFY: &str = "\
-- notify
SELECT pg_notify($1, $2)";

/// How long a listener that cannot listen waits before it tries again.
const LISTEN_RETRY_INTERVAL: Duration = Duration::from_secs(1);

impl Notification {
    const fn payload(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Cancel => "cancel",
            Self::Changed => "changed",
        }
    }
}

/// Notifies every process, this one too, when the transaction commits.
pub(in crate::store) async fn notify(connection: &mut PgConnection, word: Notification) -> Result<(), sqlx::Error> {
    run_sql!(query.execute, connection, NOTIFY, CHANNEL, word.payload())?;
    Ok(())
}

impl PostgresStore {
    /// Passes notifications of other processes to `signals`, until `stopping`. Listens when it returns; what it returns is to be
    /// spawned.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub async fn listen(
        &self,
        signals: Arc<Notifier>,
        stopping: CancellationToken,
    ) -> Result<impl Future<Output = ()> + Send + use<>, StoreError> {
        let mut listener = PgListener::connect_with(&self.ears).await.map_err(failed)?;
        listener.listen(CHANNEL).await.map_err(failed)?;
        Ok(async move {
            loop {
                let heard = tokio::select! {
                    () = stopping.cancelled() => return,
                    heard = listener.try_recv() => heard,
                };
                match heard {
                    Ok(Some(notification)) => pass_on(&signals, notification.payload()),
                    // the connection was lost, and words with it: let everyone look
                    Ok(None) => wake_all(&signals),
                    Err(sqlx::Error::PoolClosed) => return,
                    Err(error) => {
                        tracing::warn!(error = %error, "no wake-ups can be heard; jobs are looked for at intervals");
                        tokio::select! {
                            () = stopping.cancelled() => return,
                            () = tokio::time::sleep(LISTEN_RETRY_INTERVAL) => wake_all(&signals),
                        }
                    }
                }
            }
        })
    }
}

fn pass_on(signals: &Notifier, payload: &str) {
    match payload {
        "queued" => signals.job_queued(),
        "cancel" => signals.cancel_requested(),
        "changed" => signals.job_changed(),
        // a later version's word
        _ => wake_all(signals),
    }
}

fn wake_all(signals: &Notifier) {
    signals.job_queued();
    signals.cancel_requested();
}
