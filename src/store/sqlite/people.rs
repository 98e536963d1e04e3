//! Many hashes at once: persons and marks of coverages.

use std::collections::BTreeSet;

use sqlx::SqliteConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::SqliteStore;
use super::error::failed;
use crate::people::KeyedHash;
use crate::ports::{AlikeMark, CoverageSelection, SampleId, StoreError};
use crate::store::rows::{
    CommonMarkRow, CoverageRow, IndexedMarkRow, KeptSamples, LIVE_HOLDERS, PersonRange, SampleRow, joined, parted,
};

/// The one writer needs no lock.
pub(in crate::store) const LOCKED_COVERAGE: &str = crate::store::sql::people::COVERAGE;

/// A named statement about a list of hashes; `w` has a row for each. The list is one parameter with sixteen bytes for a hash: to read it as
/// JSON takes longer than to find its hashes.
macro_rules! of_hashes {
    ($name:literal, $list:literal, $statement:literal) => {
        concat!(
            "-- ",
            $name,
            "\nWITH RECURSIVE places (at) AS (SELECT 1 WHERE length(",
            $list,
            ") > 0 ",
            "UNION ALL SELECT at + 16 FROM places WHERE at + 16 < length(",
            $list,
            ")),\n",
            "w (hash) AS (SELECT substr(",
            $list,
            ", at, 16) FROM places)",
            $statement
        )
    };
}

const COMMON_PERSONS: &str = of_hashes!(
    "common_persons",
    "$3",
    "
SELECT c.coverage, COUNT(*) FROM w
CROSS JOIN covered AS c ON c.system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND c.hash = w.hash
JOIN coverages AS v ON v.id = c.coverage WHERE v.state <> 'void' AND ($4 IS NULL OR c.coverage <> $4) GROUP BY c.coverage"
);

/// In one row, like [`COMMON_MARKS`], and as hashes are kept.
const PUBLISHED_PERSONS: &str = of_hashes!(
    "published_persons",
    "$3",
    "
SELECT COALESCE(unhex(group_concat(hex(w.hash), '')), x'') FROM w WHERE EXISTS (
  SELECT 1 FROM covered AS c JOIN coverages AS v ON v.id = c.coverage
  WHERE c.system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND c.hash = w.hash
  AND v.state = 'live' AND ($4 IS NULL OR v.job = $4))"
);

/// In one row, like [`PUBLISHED_PERSONS`].
const COVERAGE_PERSONS: &str = "\
-- coverage_persons
SELECT COALESCE(unhex(group_concat(hex(hash), '')), x'') FROM (SELECT hash FROM covered
WHERE coverage = $2 AND EXISTS (SELECT 1 FROM coverages WHERE id = $2 AND tenant = $1) AND system = $3 AND hash > $4
ORDER BY hash LIMIT $5)";

/// A mark that as many live coverages have as the limit says nothing of any, hence no more of these are read; without a bound,
/// the marks of small domains would grow with each night. Nearly all that are asked for are nowhere: of these no list is begun. A
/// cross join keeps its order: from the few that have the mark, and from the few that are announced. In one row: each row that is fetched wakes the thread of the caller.
const COMMON_MARKS: &str = of_hashes!(
    "common_marks",
    "$2",
    ",
found AS MATERIALIZED (SELECT w.hash, (
  SELECT json_group_array(json_array(coverage, kind, is_live)) FROM (
    SELECT coverage, kind, 1 AS is_live FROM (
      SELECT a.coverage, a.kind FROM indexed_marks AS a CROSS JOIN coverages AS v ON v.id = a.coverage
      WHERE a.hash = w.hash AND v.tenant = $1 AND v.state = 'live' AND ($3 IS NULL OR a.coverage <> $3) LIMIT $4)
    UNION ALL SELECT v.id, a.kind, 0 FROM coverages AS v CROSS JOIN indexed_marks AS a ON a.hash = w.hash AND a.coverage = v.id
    WHERE v.tenant = $1 AND v.state = 'pending' AND ($3 IS NULL OR v.id <> $3))) AS holders
FROM w WHERE EXISTS (SELECT 1 FROM indexed_marks AS e WHERE e.hash = w.hash AND ($3 IS NULL OR e.coverage <> $3)))
SELECT json_group_array(json_array(hex(hash), json(holders))) FROM found"
);

/// In one row, like [`COMMON_MARKS`].
const MARKS_OF: &str = "\
-- marks_of
SELECT json_group_array(json_array(hash, kind, weight)) FROM (
SELECT hex(a.hash) AS hash, a.kind, a.weight FROM indexed_marks AS a JOIN coverages AS v ON v.id = a.coverage
WHERE v.tenant = $1 AND a.coverage = $2 ORDER BY a.kind, a.hash)";

/// Takes a JSON list of coverages with numbers of samples. What is cut and the signatures are of one moment.
const COVERAGE_SAMPLES: &str = "\
-- coverage_samples
SELECT v.id, w.value ->> 1 AS sample, v.cuts, s.signatures
FROM json_each($2) AS w CROSS JOIN coverages AS v ON v.id = w.value ->> 0
LEFT JOIN coverage_signatures AS s ON s.coverage = v.id AND s.sample = w.value ->> 1
WHERE v.tenant = $1 ORDER BY v.id, sample";

/// Takes values behind each other, and a JSON list of numbers of samples with the place and the length of their values.
const PUT_SAMPLES: &str = "\
-- put_samples
INSERT INTO coverage_signatures (coverage, sample, signatures)
SELECT $1, w.value ->> 0, substr($2, w.value ->> 1, w.value ->> 2) FROM json_each($3) AS w WHERE TRUE
ON CONFLICT (coverage, sample) DO UPDATE SET signatures = excluded.signatures";

/// Takes JSON lists of coverages and of hexadecimal datasets.
const SELECT_COVERAGES: &str = "\
-- select_coverages
SELECT id, job, state, ticket, body, published FROM coverages
WHERE tenant = $1 AND (state = 'live' OR state = 'pending' AND ticket < $2) AND id IN (
  SELECT id FROM coverages WHERE tenant = $1 AND state = 'pending' AND ticket < $2
  UNION SELECT id FROM coverages WHERE tenant = $1 AND state = 'live' AND people_group IS NULL
  UNION SELECT id FROM (
    SELECT id, ROW_NUMBER() OVER (PARTITION BY people_group ORDER BY ticket, id) AS place FROM coverages
    WHERE tenant = $1 AND state = 'live' AND people_group IS NOT NULL) AS g WHERE place = 1
  UNION SELECT value FROM json_each($3)
  UNION SELECT coverage FROM coverage_datasets WHERE dataset_id IN (SELECT unhex(value) FROM json_each($4))
  UNION SELECT coverage FROM coverage_tables WHERE mark = $5) ORDER BY ticket, id";

/// Takes two JSON lists of coverages.
const SHARE_PERSONS: &str = "\
-- share_persons
SELECT EXISTS (SELECT 1 FROM json_each($1) AS w
CROSS JOIN covered AS a ON a.coverage = w.value
JOIN covered AS b ON b.system = a.system AND b.hash = a.hash
WHERE b.coverage IN (SELECT value FROM json_each($2)))";

/// Takes two JSON lists of coverages.
const SHARE_TABLES: &str = "\
-- share_tables
SELECT EXISTS (SELECT 1 FROM json_each($1) AS w
CROSS JOIN coverage_tables AS a ON a.coverage = w.value
JOIN coverage_tables AS b ON b.mark = a.mark
WHERE b.coverage IN (SELECT value FROM json_each($2)))";

const INSERT_PERSONS: &str = of_hashes!(
    "insert_persons",
    "$3",
    "
INSERT INTO covered (system, hash, coverage) SELECT $1, w.hash, $2 FROM w
WHERE NOT EXISTS (SELECT 1 FROM covered WHERE system = $1 AND hash = w.hash AND coverage = $4)
ON CONFLICT (system, hash, coverage) DO NOTHING"
);

/// Takes hashes, sixteen bytes each, and in equal order a JSON list of kinds and weights.
const INSERT_MARKS: &str = "\
-- insert_marks
INSERT INTO indexed_marks (hash, coverage, kind, weight)
SELECT substr($2, 16 * w.key + 1, 16), $1, w.value ->> 0, w.value ->> 1 FROM json_each($3) AS w WHERE TRUE
ON CONFLICT (hash, coverage, kind) DO NOTHING";

/// Some persons of a coverage.
pub(in crate::store) const DELETE_PERSONS: &str = "\
-- delete_persons
DELETE FROM covered WHERE (system, hash, coverage) IN (
  SELECT system, hash, coverage FROM covered WHERE coverage = $1 LIMIT $2)";

impl SqliteStore {
    pub(in crate::store) async fn find_common_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
        except: Option<i64>,
    ) -> Result<Vec<(i64, i64)>, StoreError> {
        run_sql!(query_as.fetch_all, &self.reader, COMMON_PERSONS, tenant, system, joined(persons), except)
            .map_err(failed)
    }

    pub(in crate::store) async fn find_published_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
        job: Option<Uuid>,
    ) -> Result<BTreeSet<KeyedHash>, StoreError> {
        let found: Vec<u8> =
            run_sql!(query_scalar.fetch_one, &self.reader, PUBLISHED_PERSONS, tenant, system, joined(persons), job)
                .map_err(failed)?;
        Ok(parted(&found)?.into_iter().collect())
    }

    pub(in crate::store) async fn find_common_marks(
        &self,
        tenant: &str,
        hashes: &[KeyedHash],
        except: Option<i64>,
    ) -> Result<Vec<CommonMarkRow>, StoreError> {
        let found: Json<Vec<CommonMarkRow>> =
            run_sql!(query_scalar.fetch_one, &self.reader, COMMON_MARKS, tenant, joined(hashes), except, LIVE_HOLDERS)
                .map_err(failed)?;
        Ok(found.0)
    }
}

/// Persons of a coverage by a key system, in order.
pub(in crate::store) async fn persons_of(
    connection: &mut SqliteConnection,
    tenant: &str,
    coverage: i64,
    system: i64,
    range: PersonRange,
) -> Result<Vec<KeyedHash>, StoreError> {
    // before any hash stands the empty list of bytes
    let after = range.after.map(|hash| hash.to_bytes().to_vec()).unwrap_or_default();
    let found: Vec<u8> =
        run_sql!(query_scalar.fetch_one, connection, COVERAGE_PERSONS, tenant, coverage, system, after, range.most)
            .map_err(failed)?;
    parted(&found)
}

/// The marks of a coverage that have rows, by kind and hash.
pub(in crate::store) async fn marks_of(
    connection: &mut SqliteConnection,
    tenant: &str,
    coverage: i64,
) -> Result<Vec<IndexedMarkRow>, sqlx::Error> {
    let found: Json<Vec<IndexedMarkRow>> = run_sql!(query_scalar.fetch_one, connection, MARKS_OF, tenant, coverage)?;
    Ok(found.0)
}

/// Samples of coverages, by coverage and number.
pub(in crate::store) async fn samples_of(
    connection: &mut SqliteConnection,
    tenant: &str,
    samples: &BTreeSet<SampleId>,
) -> Result<Vec<SampleRow>, sqlx::Error> {
    let samples: Vec<_> = samples.iter().map(|of| (of.coverage.0, of.sample)).collect();
    run_sql!(query_as.fetch_all, connection, COVERAGE_SAMPLES, tenant, Json(samples))
}

/// Keeps samples of a coverage in the place of former ones.
pub(in crate::store) async fn put_samples(
    connection: &mut SqliteConnection,
    coverage: i64,
    samples: &KeptSamples,
) -> Result<(), sqlx::Error> {
    let (mut values, mut places) = (Vec::new(), Vec::new());
    for (sample, value) in samples.to_rows() {
        places.push((sample, values.len() + 1, value.len()));
        values.extend(value);
    }
    run_sql!(query.execute, connection, PUT_SAMPLES, coverage, values, Json(places))?;
    Ok(())
}

pub(in crate::store) async fn selected_coverages(
    connection: &mut SqliteConnection,
    tenant: &str,
    ticket: i64,
    selection: &CoverageSelection,
) -> Result<Vec<CoverageRow>, sqlx::Error> {
    let ids: Vec<i64> = selection.ids.iter().map(|id| id.0).collect();
    let datasets: Vec<String> = selection.datasets.iter().map(|id| id.simple().to_string()).collect();
    let mark = selection.table.map(|mark| mark.to_bytes().to_vec());
    run_sql!(query_as.fetch_all, connection, SELECT_COVERAGES, tenant, ticket, Json(ids), Json(datasets), mark)
}

/// Whether a person stands in a coverage of each list.
pub(in crate::store) async fn share_persons(
    connection: &mut SqliteConnection,
    one: &[i64],
    other: &[i64],
) -> Result<bool, sqlx::Error> {
    run_sql!(query_scalar.fetch_one, connection, SHARE_PERSONS, Json(one), Json(other))
}

/// Whether a table stands in a coverage of each list.
pub(in crate::store) async fn share_tables(
    connection: &mut SqliteConnection,
    one: &[i64],
    other: &[i64],
) -> Result<bool, sqlx::Error> {
    run_sql!(query_scalar.fetch_one, connection, SHARE_TABLES, Json(one), Json(other))
}

/// Adds persons to a coverage, without those of the one that it continues, and says how many were new.
pub(in crate::store) async fn insert_persons(
    connection: &mut SqliteConnection,
    system: i64,
    coverage: i64,
    continued: Option<i64>,
    persons: &[KeyedHash],
) -> Result<u64, sqlx::Error> {
    let inserted = run_sql!(query.execute, connection, INSERT_PERSONS, system, coverage, joined(persons), continued)?;
    Ok(inserted.rows_affected())
}

/// Gives marks a row each, those that a coverage has already excepted.
pub(in crate::store) async fn insert_marks(
    connection: &mut SqliteConnection,
    coverage: i64,
    marks: &[AlikeMark],
) -> Result<(), sqlx::Error> {
    let hashes: Vec<KeyedHash> = marks.iter().map(|mark| mark.hash).collect();
    let numbers: Vec<_> = marks.iter().map(|mark| (mark.kind.number(), mark.weight)).collect();
    run_sql!(query.execute, connection, INSERT_MARKS, coverage, joined(&hashes), Json(numbers))?;
    Ok(())
}
