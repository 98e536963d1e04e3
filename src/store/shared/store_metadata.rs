//! The rotation of the master key.

use uuid::Uuid;

use crate::ports::{HASHING_KEY_PIN, MASTER_KEY_PIN, Rotation, RotationCounts, StoreError};
use crate::store::rows::count_key;
use crate::store::sql::pins as sql;

both_stores! {
    /// Wraps every key under the new master key and pins it, within a transaction that no other process disturbs.
    pub(in crate::store) async fn rewrap_keys(
        connection: &mut Connection,
        rotation: &Rotation<'_>,
    ) -> Result<RotationCounts, TransactionError> {
        let pinned: Option<Vec<u8>> =
            run_sql!(query_scalar.fetch_optional, &mut *connection, sql::PINNED, MASTER_KEY_PIN)?;
        if pinned.as_deref() != Some(&rotation.from) {
            return Err(StoreError::Conflict.into());
        }
        let mut rotated = RotationCounts::default();
        for (purpose, keys, set) in sql::KEYS {
            let mut last = Uuid::nil();
            loop {
                let some: Vec<(Uuid, Vec<u8>)> =
                    run_sql!(query_as.fetch_all, &mut *connection, keys, last, sql::KEYS_AT_ONCE)?;
                let Some(&(id, _)) = some.last() else { break };
                last = id;
                for (id, wrapped) in some {
                    run_sql!(query.execute, &mut *connection, set, id, (rotation.rewrap)(purpose, id, &wrapped)?)?;
                    count_key(&mut rotated, purpose);
                }
            }
        }
        run_sql!(query.execute, &mut *connection, sql::SET_PIN, HASHING_KEY_PIN, rotation.hashing_key.as_slice())?;
        run_sql!(query.execute, connection, sql::SET_PIN, MASTER_KEY_PIN, rotation.to.as_slice())?;
        Ok(rotated)
    }
}
