//! Subject fingerprints of datasets.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ports::{FingerprintPiece, FingerprintRecord, FingerprintStore, StoreError};
use crate::store::rows::{FingerprintRow, in_places, records};
use crate::store::sql::fingerprints as sql;

both_stores! {
    #[async_trait]
    impl FingerprintStore for Backend {
        async fn put_fingerprint_piece(&self, dataset: Uuid, piece: FingerprintPiece, hashes: &[u8]) -> Result<(), StoreError> {
            let put = || async {
                let mut tx = self.begin().await?;
                share_dataset(&mut tx, dataset).await?;
                let put = sqlx::query(sql::PUT_PIECE).bind(dataset).bind(piece.number()).bind(hashes);
                if put.execute(&mut *tx).await?.rows_affected() == 0 {
                    return Err(StoreError::Conflict.into());
                }
                Ok(tx.commit().await?)
            };
            run_transaction("put_people", put).await
        }

        async fn fingerprint_pieces(
            &self,
            tenant: &str,
            wanted: &[(Uuid, FingerprintPiece)],
        ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
            in_places(wanted.len(), self.find_pieces(tenant, wanted).await?)
        }

        async fn fingerprints(
            &self,
            tenant: &str,
            series: Option<&str>,
        ) -> Result<(i64, Vec<FingerprintRecord>), StoreError> {
            // the version is read first: an upload in between is seen twice rather than missed
            let uploads: Option<i64> = run_sql!(
                query_scalar.fetch_optional, self.reader(), sql::SERIES_VERSION, tenant, sql::UPLOADS
            ).map_err(failed)?;
            let rows: Vec<FingerprintRow> =
                run_sql!(query_as.fetch_all, self.reader(), sql::FINGERPRINTS, tenant, series).map_err(failed)?;
            Ok((uploads.unwrap_or(0), records(rows)?))
        }
    }
}
