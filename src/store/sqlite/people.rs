//! Whom datasets speak of.

use async_trait::async_trait;
use sqlx::types::Json;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use crate::ports::{FingerprintPiece, FingerprintRecord, FingerprintStore, StoreError};
use crate::store::rows::{PeopleRow, in_places};
use crate::store::sql::people as sql;

/// Of a list of hexadecimal ids and numbers of pieces, which is gone through in its order.
const PEOPLE_PIECES: &str = "\
-- people_pieces
SELECT w.key, p.hashes FROM json_each($2) AS w
CROSS JOIN people_pieces AS p ON p.dataset_id = unhex(w.value ->> 0) AND p.piece_no = w.value ->> 1
JOIN datasets AS d ON d.id = p.dataset_id
WHERE d.tenant = $1";

#[async_trait]
impl FingerprintStore for SqliteStore {
    async fn put_people(&self, dataset: Uuid, piece: FingerprintPiece, hashes: &[u8]) -> Result<(), StoreError> {
        let mut tx = self.begin("put_people").await?;
        let put = sqlx::query(sql::PUT_PIECE).bind(dataset).bind(piece.number()).bind(hashes);
        if put.execute(&mut *tx).await.map_err(failed)?.rows_affected() == 0 {
            return Err(StoreError::Conflict);
        }
        tx.commit().await.map_err(failed)
    }

    async fn people_pieces(
        &self,
        tenant: &str,
        wanted: &[(Uuid, FingerprintPiece)],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let list: Vec<_> = wanted.iter().map(|(dataset, piece)| (dataset.simple(), piece.number())).collect();
        let found = sqlx::query_as(PEOPLE_PIECES).bind(tenant).bind(Json(list));
        let found: Vec<(i64, Vec<u8>)> = found.fetch_all(&self.reader).await.map_err(failed)?;
        in_places(wanted.len(), found)
    }

    async fn people(&self, tenant: &str, series: Option<&str>) -> Result<(i64, Vec<FingerprintRecord>), StoreError> {
        // the number before the records: what comes between is seen twice rather than not at all
        let uploads = sqlx::query_scalar(sql::SERIES_VERSION).bind(tenant).bind(sql::UPLOADS);
        let uploads: Option<i64> = uploads.fetch_optional(&self.reader).await.map_err(failed)?;
        let people = sqlx::query_as(sql::PEOPLE).bind(tenant).bind(series);
        let people: Vec<PeopleRow> = people.fetch_all(&self.reader).await.map_err(failed)?;
        let people = people.into_iter().map(FingerprintRecord::try_from).collect::<Result<_, _>>()?;
        Ok((uploads.unwrap_or(0), people))
    }
}
