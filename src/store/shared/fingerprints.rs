//! Subject fingerprints of datasets.

use async_trait::async_trait;
use uuid::Uuid;

use crate::ports::{FingerprintPiece, FingerprintRecord, FingerprintStore, StoreError};
use crate::store::rows::{PeopleRow, in_places};
use crate::store::sql::people as sql;

both_stores! {
    #[async_trait]
    impl FingerprintStore for Backend {
        async fn put_people(&self, dataset: Uuid, piece: FingerprintPiece, hashes: &[u8]) -> Result<(), StoreError> {
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

        async fn people_pieces(
            &self,
            tenant: &str,
            wanted: &[(Uuid, FingerprintPiece)],
        ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
            in_places(wanted.len(), self.find_pieces(tenant, wanted).await?)
        }

        async fn people(
            &self,
            tenant: &str,
            series: Option<&str>,
        ) -> Result<(i64, Vec<FingerprintRecord>), StoreError> {
            // the version is read first: an upload in between is seen twice rather than missed
            let uploads = sqlx::query_scalar(sql::SERIES_VERSION).bind(tenant).bind(sql::UPLOADS);
            let uploads: Option<i64> = uploads.fetch_optional(self.reader()).await.map_err(failed)?;
            let people = sqlx::query_as(sql::PEOPLE).bind(tenant).bind(series);
            let people: Vec<PeopleRow> = people.fetch_all(self.reader()).await.map_err(failed)?;
            let people = people.into_iter().map(FingerprintRecord::try_from).collect::<Result<_, _>>()?;
            Ok((uploads.unwrap_or(0), people))
        }
    }
}
