//! Many hashes at once: persons and marks of coverages.

use sqlx::PgConnection;
use uuid::Uuid;

use super::PostgresStore;
use super::error::failed;
use crate::people::KeyedHash;
use crate::ports::{AlikeMark, CoverageSelection, StoreError};
use crate::store::rows::{AlikeRow, CommonMarkRow, CoverageRow};

/// The shared text, holding the row.
pub(in crate::store) const LOCKED_COVERAGE: &str = "\
-- coverage_locked
SELECT id, job, state, ticket, body, published FROM coverages WHERE tenant = $1 AND id = $2 FOR UPDATE";

/// Takes an array of hashes.
const COMMON_PERSONS: &str = "\
-- common_persons
SELECT c.coverage, COUNT(*) FROM UNNEST($3) AS w (hash)
JOIN covered AS c ON c.system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND c.hash = w.hash
JOIN coverages AS v ON v.id = c.coverage WHERE v.state <> 'void' GROUP BY c.coverage";

const PUBLISHED_PERSONS: &str = "\
-- published_persons
SELECT DISTINCT c.hash FROM UNNEST($3) AS w (hash)
JOIN covered AS c ON c.system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND c.hash = w.hash
JOIN coverages AS v ON v.id = c.coverage WHERE v.state = 'live' AND (CAST($4 AS UUID) IS NULL OR v.job = $4)";

/// A mark that more than four other coverages have says nothing of any; without a bound, the marks of small domains would grow
/// with each night.
const COMMON_MARKS: &str = "\
-- common_marks
SELECT a.coverage, a.hash, a.kind, a.weight FROM UNNEST($2) AS w (hash)
JOIN alike AS a ON a.hash = w.hash
JOIN coverages AS v ON v.id = a.coverage WHERE v.tenant = $1 AND v.state <> 'void'
AND (SELECT COUNT(*) FROM (SELECT 1 FROM alike AS b JOIN coverages AS o ON o.id = b.coverage
  WHERE b.hash = w.hash AND o.state <> 'void' LIMIT 6) AS others) < 6
ORDER BY a.coverage, a.kind, a.hash";

const MARKS_OF: &str = "\
-- marks_of
SELECT a.hash, a.kind, a.weight FROM alike AS a JOIN coverages AS v ON v.id = a.coverage
WHERE v.tenant = $1 AND a.coverage = $2 AND a.kind >= $3 ORDER BY a.kind, a.hash";

/// Takes arrays of coverages and of datasets.
const SELECT_COVERAGES: &str = "\
-- select_coverages
SELECT id, job, state, ticket, body, published FROM coverages
WHERE tenant = $1 AND (state = 'live' OR state = 'pending' AND ticket < $2) AND id IN (
  SELECT id FROM coverages WHERE tenant = $1 AND state = 'pending' AND ticket < $2
  UNION SELECT id FROM coverages WHERE tenant = $1 AND state = 'live' AND people_group IS NULL
  UNION SELECT id FROM (
    SELECT id, ROW_NUMBER() OVER (PARTITION BY people_group ORDER BY ticket, id) AS place FROM coverages
    WHERE tenant = $1 AND state = 'live' AND people_group IS NOT NULL) AS g WHERE place = 1
  UNION SELECT UNNEST($3)
  UNION SELECT coverage FROM coverage_datasets WHERE dataset_id IN (SELECT UNNEST($4))
  UNION SELECT coverage FROM coverage_tables WHERE mark = $5) ORDER BY ticket, id";

/// Takes two arrays of coverages.
const SHARE_PERSONS: &str = "\
-- share_persons
SELECT EXISTS (SELECT 1 FROM covered AS a JOIN covered AS b ON b.system = a.system AND b.hash = a.hash
WHERE a.coverage = ANY($1) AND b.coverage = ANY($2))";

const INSERT_PERSONS: &str = "\
-- insert_persons
INSERT INTO covered (system, hash, coverage) SELECT $1, w.hash, $2 FROM UNNEST($3) AS w (hash)
ON CONFLICT (system, hash, coverage) DO NOTHING";

/// Takes arrays of hashes, kinds and weights, in equal order.
const INSERT_MARKS: &str = "\
-- insert_marks
INSERT INTO alike (hash, coverage, kind, weight)
SELECT w.hash, $1, w.kind, w.weight FROM UNNEST($2, $3, $4) AS w (hash, kind, weight)
ON CONFLICT (hash, coverage, kind) DO NOTHING";

fn bytes(hashes: &[KeyedHash]) -> Vec<Vec<u8>> {
    hashes.iter().map(|hash| hash.to_bytes().to_vec()).collect()
}

impl PostgresStore {
    pub(in crate::store) async fn find_common_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
    ) -> Result<Vec<(i64, i64)>, StoreError> {
        run_sql!(query_as.fetch_all, &self.pool, COMMON_PERSONS, tenant, system, bytes(persons)).map_err(failed)
    }

    pub(in crate::store) async fn find_published_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
        job: Option<Uuid>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        run_sql!(query_scalar.fetch_all, &self.pool, PUBLISHED_PERSONS, tenant, system, bytes(persons), job)
            .map_err(failed)
    }

    pub(in crate::store) async fn find_common_marks(
        &self,
        tenant: &str,
        hashes: &[KeyedHash],
    ) -> Result<Vec<CommonMarkRow>, StoreError> {
        run_sql!(query_as.fetch_all, &self.pool, COMMON_MARKS, tenant, bytes(hashes)).map_err(failed)
    }
}

/// The marks of a coverage from a kind on, by kind and hash.
pub(in crate::store) async fn marks_of(
    connection: &mut PgConnection,
    tenant: &str,
    coverage: i64,
    least_kind: i64,
) -> Result<Vec<AlikeRow>, sqlx::Error> {
    run_sql!(query_as.fetch_all, connection, MARKS_OF, tenant, coverage, least_kind)
}

pub(in crate::store) async fn selected_coverages(
    connection: &mut PgConnection,
    tenant: &str,
    ticket: i64,
    selection: &CoverageSelection,
) -> Result<Vec<CoverageRow>, sqlx::Error> {
    let ids: Vec<i64> = selection.ids.iter().map(|id| id.0).collect();
    let datasets: Vec<Uuid> = selection.datasets.iter().copied().collect();
    let mark = selection.table.map(|mark| mark.to_bytes().to_vec());
    run_sql!(query_as.fetch_all, connection, SELECT_COVERAGES, tenant, ticket, ids, datasets, mark)
}

/// Whether a person stands in a coverage of each list.
pub(in crate::store) async fn share_persons(
    connection: &mut PgConnection,
    one: &[i64],
    other: &[i64],
) -> Result<bool, sqlx::Error> {
    run_sql!(query_scalar.fetch_one, connection, SHARE_PERSONS, one, other)
}

/// Adds persons to a coverage, and says how many were new.
pub(in crate::store) async fn insert_persons(
    connection: &mut PgConnection,
    system: i64,
    coverage: i64,
    persons: &[KeyedHash],
) -> Result<u64, sqlx::Error> {
    Ok(run_sql!(query.execute, connection, INSERT_PERSONS, system, coverage, bytes(persons))?.rows_affected())
}

pub(in crate::store) async fn insert_marks(
    connection: &mut PgConnection,
    coverage: i64,
    marks: &[AlikeMark],
) -> Result<(), sqlx::Error> {
    let hashes: Vec<Vec<u8>> = marks.iter().map(|mark| mark.hash.to_bytes().to_vec()).collect();
    let kinds: Vec<i64> = marks.iter().map(|mark| mark.kind.number()).collect();
    let weights: Vec<i64> = marks.iter().map(|mark| mark.weight.cast_signed()).collect();
    run_sql!(query.execute, connection, INSERT_MARKS, coverage, hashes, kinds, weights)?;
    Ok(())
}
