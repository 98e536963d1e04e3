//! Whom datasets speak of.

use async_trait::async_trait;
use uuid::Uuid;

use super::{SqliteStore, failed};
use crate::jobs::{PeopleRecord, Peoples, Piece, StoreError};
use crate::store::rows::PeopleRow;
use crate::store::sql::people as sql;

#[async_trait]
impl Peoples for SqliteStore {
    async fn put_people(&self, dataset: Uuid, piece: Piece, hashes: &[u8]) -> Result<(), StoreError> {
        let mut tx = self.begin("put_people").await?;
        let put = sqlx::query(sql::PUT_PIECE).bind(dataset).bind(piece.number()).bind(hashes);
        if put.execute(&mut *tx).await.map_err(failed)?.rows_affected() == 0 {
            return Err(StoreError::Conflict);
        }
        tx.commit().await.map_err(failed)
    }

    async fn people_piece(&self, tenant: &str, dataset: Uuid, piece: Piece) -> Result<Option<Vec<u8>>, StoreError> {
        let piece = sqlx::query_scalar(sql::PEOPLE_PIECE).bind(tenant).bind(dataset).bind(piece.number());
        piece.fetch_optional(&self.reader).await.map_err(failed)
    }

    async fn people(&self, tenant: &str, series: Option<&str>) -> Result<(i64, Vec<PeopleRecord>), StoreError> {
        // the number before the records: what comes between is seen twice rather than not at all
        let uploads = sqlx::query_scalar(sql::SERIES_VERSION).bind(tenant).bind(sql::UPLOADS);
        let uploads: Option<i64> = uploads.fetch_optional(&self.reader).await.map_err(failed)?;
        let people = sqlx::query_as(sql::PEOPLE).bind(tenant).bind(series);
        let people: Vec<PeopleRow> = people.fetch_all(&self.reader).await.map_err(failed)?;
        let people = people.into_iter().map(PeopleRecord::try_from).collect::<Result<_, _>>()?;
        Ok((uploads.unwrap_or(0), people))
    }
}
