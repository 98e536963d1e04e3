//! Whom datasets speak of.

use async_trait::async_trait;
use sqlx::PgConnection;
use uuid::Uuid;

use super::PostgresStore;
use super::datasets::lock;
use super::error::failed;
use super::pool::retried;
use crate::ports::{FingerprintPiece, FingerprintRecord, FingerprintStore, StoreError};
use crate::store::rows::{PeopleRow, in_places};
use crate::store::sql::people as sql;

/// Writers of chunks do not exclude each other.
pub(super) const SHARE_DATASET: &str = "\
-- share_dataset
SELECT pg_advisory_xact_lock_shared($1)";

/// A row to lock, also for the first entry. It goes again when the transaction does not come through.
const BEGIN_SERIES: &str = "\
-- begin_series
INSERT INTO series_versions (tenant, series, version) VALUES ($1, $2, 0) ON CONFLICT (tenant, series) DO NOTHING";

const LOCK_SERIES: &str = "\
-- lock_series
SELECT version FROM series_versions WHERE tenant = $1 AND series = $2 FOR UPDATE";

/// Of ids and numbers of pieces side by side.
const PEOPLE_PIECES: &str = "\
-- people_pieces
SELECT w.at - 1, p.hashes FROM UNNEST($2, $3) WITH ORDINALITY AS w (dataset_id, piece_no, at)
JOIN people_pieces AS p ON p.dataset_id = w.dataset_id AND p.piece_no = w.piece_no
JOIN datasets AS d ON d.id = p.dataset_id
WHERE d.tenant = $1";

/// Keeps others from entering anything into a series, and gives its version.
pub(super) async fn lock_series(connection: &mut PgConnection, tenant: &str, series: &str) -> Result<i64, sqlx::Error> {
    sqlx::query(BEGIN_SERIES).bind(tenant).bind(series).execute(&mut *connection).await?;
    sqlx::query_scalar(LOCK_SERIES).bind(tenant).bind(series).fetch_one(connection).await
}

#[async_trait]
impl FingerprintStore for PostgresStore {
    async fn put_people(&self, dataset: Uuid, piece: FingerprintPiece, hashes: &[u8]) -> Result<(), StoreError> {
        let put = || async {
            let mut tx = self.begin().await?;
            lock(&mut tx, SHARE_DATASET, dataset).await?;
            let put = sqlx::query(sql::PUT_PIECE).bind(dataset).bind(piece.number()).bind(hashes);
            if put.execute(&mut *tx).await?.rows_affected() == 0 {
                return Err(StoreError::Conflict.into());
            }
            Ok(tx.commit().await?)
        };
        retried("put_people", put).await
    }

    async fn people_pieces(
        &self,
        tenant: &str,
        wanted: &[(Uuid, FingerprintPiece)],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let (datasets, pieces): (Vec<Uuid>, Vec<i64>) =
            wanted.iter().map(|(dataset, piece)| (dataset, piece.number())).unzip();
        let found = sqlx::query_as(PEOPLE_PIECES).bind(tenant).bind(datasets).bind(pieces);
        let found: Vec<(i64, Vec<u8>)> = found.fetch_all(&self.pool).await.map_err(failed)?;
        in_places(wanted.len(), found)
    }

    async fn people(&self, tenant: &str, series: Option<&str>) -> Result<(i64, Vec<FingerprintRecord>), StoreError> {
        // the number before the records: what comes between is seen twice rather than not at all
        let uploads = sqlx::query_scalar(sql::SERIES_VERSION).bind(tenant).bind(sql::UPLOADS);
        let uploads: Option<i64> = uploads.fetch_optional(&self.pool).await.map_err(failed)?;
        let people = sqlx::query_as(sql::PEOPLE).bind(tenant).bind(series);
        let people: Vec<PeopleRow> = people.fetch_all(&self.pool).await.map_err(failed)?;
        let people = people.into_iter().map(FingerprintRecord::try_from).collect::<Result<_, _>>()?;
        Ok((uploads.unwrap_or(0), people))
    }
}
