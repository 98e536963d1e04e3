//! A transaction with a name.

use std::ops::{Deref, DerefMut};

use sqlx::{Sqlite, SqliteConnection, Transaction};

use crate::meter;
use crate::ports::StoreError;

/// A transaction whose time is taken, from the wait for its turn to its end.
pub(super) struct Tx {
    transaction: Transaction<'static, Sqlite>,
    meter: meter::Transaction,
}

impl Tx {
    /// Waits for a transaction to begin.
    pub(super) async fn begin(
        name: &'static str,
        beginning: impl Future<Output = Result<Transaction<'static, Sqlite>, StoreError>>,
    ) -> Result<Self, StoreError> {
        let meter = meter::Transaction::begin(name);
        match beginning.await {
            Ok(transaction) => Ok(Self { transaction, meter }),
            Err(error) => {
                meter.failed();
                Err(error)
            }
        }
    }

    /// Makes what was done last.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        let committed = self.transaction.commit().await;
        if committed.is_err() {
            self.meter.failed();
        }
        committed
    }
}

impl Deref for Tx {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.transaction
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}
