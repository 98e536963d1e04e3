//! Many hashes at once: persons and marks of coverages.

use sqlx::SqliteConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use crate::people::KeyedHash;
use crate::ports::{AlikeMark, StoreError};
use crate::store::rows::CommonMarkRow;

/// The one writer needs no lock.
pub(in crate::store) const LOCKED_COVERAGE: &str = crate::store::sql::people::COVERAGE;

/// Takes a JSON list of hexadecimal hashes.
const COMMON_PERSONS: &str = "\
-- common_persons
SELECT c.coverage, COUNT(*) FROM json_each($3) AS w
CROSS JOIN covered AS c
ON c.system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND c.hash = unhex(w.value)
JOIN coverages AS v ON v.id = c.coverage WHERE v.state <> 'void' GROUP BY c.coverage";

const PUBLISHED_PERSONS: &str = "\
-- published_persons
SELECT DISTINCT c.hash FROM json_each($3) AS w
CROSS JOIN covered AS c
ON c.system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND c.hash = unhex(w.value)
JOIN coverages AS v ON v.id = c.coverage WHERE v.state = 'live' AND ($4 IS NULL OR v.job = $4)";

const COMMON_MARKS: &str = "\
-- common_marks
SELECT a.coverage, a.hash, a.kind, a.weight FROM json_each($2) AS w
CROSS JOIN alike AS a ON a.hash = unhex(w.value)
JOIN coverages AS v ON v.id = a.coverage WHERE v.tenant = $1 AND v.state <> 'void' ORDER BY a.coverage, a.kind, a.hash";

/// Takes two JSON lists of coverages.
const SHARE_PERSONS: &str = "\
-- share_persons
SELECT EXISTS (SELECT 1 FROM json_each($1) AS w
CROSS JOIN covered AS a ON a.coverage = w.value
JOIN covered AS b ON b.system = a.system AND b.hash = a.hash
WHERE b.coverage IN (SELECT value FROM json_each($2)))";

const INSERT_PERSONS: &str = "\
-- insert_persons
INSERT INTO covered (system, hash, coverage) SELECT $1, unhex(w.value), $2 FROM json_each($3) AS w WHERE TRUE
ON CONFLICT (system, hash, coverage) DO NOTHING";

/// Takes a JSON list of hexadecimal hashes, kinds and weights.
const INSERT_MARKS: &str = "\
-- insert_marks
INSERT INTO alike (hash, coverage, kind, weight)
SELECT unhex(w.value ->> 0), $1, w.value ->> 1, w.value ->> 2 FROM json_each($2) AS w WHERE TRUE
ON CONFLICT (hash, coverage, kind) DO NOTHING";

impl SqliteStore {
    pub(in crate::store) async fn find_common_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
    ) -> Result<Vec<(i64, i64)>, StoreError> {
        run_sql!(query_as.fetch_all, &self.reader, COMMON_PERSONS, tenant, system, Json(persons)).map_err(failed)
    }

    pub(in crate::store) async fn find_published_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
        job: Option<Uuid>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        run_sql!(query_scalar.fetch_all, &self.reader, PUBLISHED_PERSONS, tenant, system, Json(persons), job)
            .map_err(failed)
    }

    pub(in crate::store) async fn find_common_marks(
        &self,
        tenant: &str,
        hashes: &[KeyedHash],
    ) -> Result<Vec<CommonMarkRow>, StoreError> {
        run_sql!(query_as.fetch_all, &self.reader, COMMON_MARKS, tenant, Json(hashes)).map_err(failed)
    }
}

/// Whether a person stands in a coverage of each list.
pub(in crate::store) async fn share_persons(
    connection: &mut SqliteConnection,
    one: &[i64],
    other: &[i64],
) -> Result<bool, sqlx::Error> {
    run_sql!(query_scalar.fetch_one, connection, SHARE_PERSONS, Json(one), Json(other))
}

pub(in crate::store) async fn insert_persons(
    connection: &mut SqliteConnection,
    system: i64,
    coverage: i64,
    persons: &[KeyedHash],
) -> Result<(), sqlx::Error> {
    run_sql!(query.execute, connection, INSERT_PERSONS, system, coverage, Json(persons))?;
    Ok(())
}

pub(in crate::store) async fn insert_marks(
    connection: &mut SqliteConnection,
    coverage: i64,
    marks: &[AlikeMark],
) -> Result<(), sqlx::Error> {
    let rows: Vec<_> = marks.iter().map(|mark| (mark.hash, mark.kind.number(), mark.weight)).collect();
    run_sql!(query.execute, connection, INSERT_MARKS, coverage, Json(rows))?;
    Ok(())
}
