//! Many hashes at once: persons and marks of coverages.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgConnection;
use uuid::Uuid;

use super::PostgresStore;
use super::error::failed;
use crate::people::KeyedHash;
use crate::ports::{AlikeMark, CoverageSelection, SampleId, StoreError};
use crate::store::rows::{
    CommonMarkRow, CoverageRow, IndexedMarkRow, KeptSamples, LIVE_HOLDERS, MarkHolder, PersonRange, SampleRow, joined,
    parted,
};

/// The relation `w` of the hashes in a list of sixteen bytes for each: an array takes longer to make and to send.
macro_rules! hashes_in {
    ($list:literal) => {
        concat!(
            "(SELECT SUBSTRING(",
            $list,
            " FROM place FOR 16) AS hash FROM GENERATE_SERIES(1, LENGTH(",
            $list,
            "), 16) AS place) AS w"
        )
    };
}

/// The shared text, holding the row.
pub(in crate::store) const LOCKED_COVERAGE: &str = "\
-- coverage_locked
SELECT id, job, state, ticket, body, published FROM coverages WHERE tenant = $1 AND id = $2 FOR UPDATE";

/// Takes hashes, sixteen bytes each. The state of a coverage is asked for by a query of its own, here and below: of a join the
/// planner may begin with the coverages, and go through all of them for each hash.
pub(super) const COMMON_PERSONS: &str = concat!(
    "\
-- common_persons
SELECT coverage, number FROM (
  SELECT c.coverage, COUNT(*) AS number FROM ",
    hashes_in!("$3"),
    " CROSS JOIN LATERAL (
    SELECT coverage FROM covered
    WHERE system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND hash = w.hash OFFSET 0) AS c
  GROUP BY c.coverage) AS g
WHERE (CAST($4 AS BIGINT) IS NULL OR coverage <> $4)
  AND (SELECT state <> 'void' FROM coverages WHERE id = g.coverage)"
);

/// In one value, as hashes are kept: a thousand rows take longer to read here than to find there.
pub(super) const PUBLISHED_PERSONS: &str = concat!(
    "\
-- published_persons
SELECT COALESCE(STRING_AGG(DISTINCT c.hash, ''), '') FROM ",
    hashes_in!("$3"),
    " CROSS JOIN LATERAL (
  SELECT hash, coverage FROM covered
  WHERE system = (SELECT id FROM key_systems WHERE tenant = $1 AND name = $2) AND hash = w.hash OFFSET 0) AS c
WHERE (SELECT state = 'live' AND (CAST($4 AS UUID) IS NULL OR job = $4) FROM coverages WHERE id = c.coverage)"
);

/// In one value, like [`PUBLISHED_PERSONS`]. By the index of coverages: without statistics the planner would go through all
/// persons of the key system, where these are in order.
pub(super) const FIRST_PERSONS: &str = "\
-- first_persons
SELECT COALESCE(STRING_AGG(hash, '' ORDER BY hash), '') FROM (
SELECT c.hash FROM (SELECT system, hash FROM covered WHERE coverage = $2 OFFSET 0) AS c
WHERE c.system = $3 AND EXISTS (SELECT 1 FROM coverages WHERE id = $2 AND tenant = $1) ORDER BY c.hash LIMIT $4) AS few";

/// Those behind a hash, of a coverage that has many.
const NEXT_PERSONS: &str = "\
-- next_persons
SELECT COALESCE(STRING_AGG(hash, '' ORDER BY hash), '') FROM (
SELECT c.hash FROM covered AS c JOIN coverages AS v ON v.id = c.coverage
WHERE v.tenant = $1 AND c.coverage = $2 AND c.system = $3 AND c.hash > $5 ORDER BY c.hash LIMIT $4) AS few";

/// Who has a mark that is not of the one coverage that is left out.
macro_rules! holders_of {
    ($hash:literal, $whose:literal) => {
        concat!(
            "SELECT s.coverage, s.kind, s.state FROM (
      SELECT a.coverage, a.kind, (SELECT state FROM coverages WHERE id = a.coverage AND tenant = $1) AS state
      FROM indexed_marks AS a WHERE a.hash = ",
            $hash,
            " AND (CAST($3 AS BIGINT) IS NULL OR a.coverage <> $3) OFFSET 0) AS s
    WHERE s.state ",
            $whose
        )
    };
}

/// A mark that as many live coverages have as the limit says nothing of any, hence no more of these are read; without a bound,
/// the marks of small domains would grow with each night. Those of which as many holders of any state were read are looked for in
/// each announced coverage. In one value, like [`PUBLISHED_PERSONS`]: for each holder the hash, and three numbers.
pub(super) const COMMON_MARKS: &str = concat!(
    "\
-- common_marks
WITH held AS MATERIALIZED (
  SELECT w.hash, h.coverage, h.kind, h.state FROM ",
    hashes_in!("$2"),
    " CROSS JOIN LATERAL (
    ",
    holders_of!("w.hash", "<> 'void' LIMIT $4"),
    ") AS h),
many AS (SELECT hash, BOOL_AND(state = 'live') AS is_frequent FROM held GROUP BY hash HAVING COUNT(*) >= $4)
SELECT COALESCE(STRING_AGG(
  hash || int8send(coverage) || int8send(kind) || int8send(CASE state WHEN 'live' THEN 1 ELSE 0 END), ''), '')
FROM (
  SELECT hash, coverage, kind, state FROM held WHERE hash NOT IN (SELECT hash FROM many)
  UNION ALL SELECT m.hash, h.coverage, h.kind, h.state FROM many AS m CROSS JOIN LATERAL (
    ",
    holders_of!("m.hash", "= 'live' LIMIT $4"),
    ") AS h WHERE NOT m.is_frequent
  UNION ALL SELECT m.hash, p.id, h.kind, 'pending' FROM many AS m
  CROSS JOIN (SELECT id FROM coverages WHERE tenant = $1 AND state = 'pending'
    AND (CAST($3 AS BIGINT) IS NULL OR id <> $3) OFFSET 0) AS p
  CROSS JOIN LATERAL (SELECT kind FROM indexed_marks WHERE hash = m.hash AND coverage = p.id OFFSET 0) AS h) AS f"
);

/// In one value, like [`COMMON_MARKS`].
pub(super) const MARKS_OF: &str = "\
-- marks_of
SELECT COALESCE(STRING_AGG(a.hash || int8send(a.kind) || int8send(a.weight), '' ORDER BY a.kind, a.hash), '')
FROM indexed_marks AS a JOIN coverages AS v ON v.id = a.coverage
WHERE v.tenant = $1 AND a.coverage = $2";

/// Takes arrays of coverages and of the numbers of their samples. What is cut and the signatures are of one moment.
const COVERAGE_SAMPLES: &str = "\
-- coverage_samples
SELECT v.id, w.sample, v.cuts, s.signatures
FROM UNNEST($2, $3) AS w (coverage, sample) JOIN coverages AS v ON v.id = w.coverage
LEFT JOIN coverage_signatures AS s ON s.coverage = w.coverage AND s.sample = w.sample
WHERE v.tenant = $1 ORDER BY v.id, w.sample";

/// Takes arrays of numbers of samples and of their values.
const PUT_SAMPLES: &str = "\
-- put_samples
INSERT INTO coverage_signatures (coverage, sample, signatures)
SELECT $1, w.sample, w.signatures FROM UNNEST($2, $3) AS w (sample, signatures)
ON CONFLICT (coverage, sample) DO UPDATE SET signatures = excluded.signatures";

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

/// Takes two arrays of coverages.
const SHARE_TABLES: &str = "\
-- share_tables
SELECT EXISTS (SELECT 1 FROM coverage_tables AS a JOIN coverage_tables AS b ON b.mark = a.mark
WHERE a.coverage = ANY($1) AND b.coverage = ANY($2))";

const INSERT_PERSONS: &str = concat!(
    "\
-- insert_persons
INSERT INTO covered (system, hash, coverage) SELECT $1, w.hash, $2 FROM ",
    hashes_in!("$3"),
    "
WHERE NOT EXISTS (SELECT 1 FROM covered WHERE system = $1 AND hash = w.hash AND coverage = $4 OFFSET 0)
ON CONFLICT (system, hash, coverage) DO NOTHING"
);

/// Counts: of `EXISTS` the planner may think that the first rows of the table have the coverage, and go through all of them.
const HAS_MARKS: &str = "\
-- has_marks
SELECT COUNT(*) > 0 FROM indexed_marks WHERE coverage = $1";

/// A named statement that enters marks. It takes hashes, sixteen bytes each, and in equal order arrays of kinds and weights.
macro_rules! marks_statement {
    ($name:literal, $end:literal) => {
        concat!(
            "-- ",
            $name,
            "\nINSERT INTO indexed_marks (hash, coverage, kind, weight)
SELECT SUBSTRING($2 FROM CAST(16 * w.place - 15 AS INTEGER) FOR 16), $1, w.kind, w.weight
FROM UNNEST($3, $4) WITH ORDINALITY AS w (kind, weight, place)",
            $end
        )
    };
}

/// The first marks of a coverage, each once: to look each one up before it is entered takes a quarter of the time.
const INSERT_FIRST_MARKS: &str = marks_statement!("insert_first_marks", "");

const INSERT_MORE_MARKS: &str = marks_statement!("insert_more_marks", " ON CONFLICT (hash, coverage, kind) DO NOTHING");

/// Some persons of a coverage, by where they are: they are found once.
pub(in crate::store) const DELETE_PERSONS: &str = "\
-- delete_persons
DELETE FROM covered WHERE ctid = ANY (ARRAY (SELECT ctid FROM covered WHERE coverage = $1 LIMIT $2))";

impl PostgresStore {
    pub(in crate::store) async fn find_common_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
        except: Option<i64>,
    ) -> Result<Vec<(i64, i64)>, StoreError> {
        let mut tx = self.begin_lookup().await.map_err(failed)?;
        run_sql!(query_as.fetch_all, &mut *tx, COMMON_PERSONS, tenant, system, joined(persons), except).map_err(failed)
    }

    pub(in crate::store) async fn find_published_persons(
        &self,
        tenant: &str,
        system: &str,
        persons: &[KeyedHash],
        job: Option<Uuid>,
    ) -> Result<BTreeSet<KeyedHash>, StoreError> {
        let mut tx = self.begin_lookup().await.map_err(failed)?;
        let found: Vec<u8> =
            run_sql!(query_scalar.fetch_one, &mut *tx, PUBLISHED_PERSONS, tenant, system, joined(persons), job)
                .map_err(failed)?;
        Ok(parted(&found)?.into_iter().collect())
    }

    pub(in crate::store) async fn find_common_marks(
        &self,
        tenant: &str,
        hashes: &[KeyedHash],
        except: Option<i64>,
    ) -> Result<Vec<CommonMarkRow>, StoreError> {
        // each once: a mark that is asked for twice would have twice as many holders
        let distinct: BTreeSet<KeyedHash> = hashes.iter().copied().collect();
        let hashes = joined(&distinct.into_iter().collect::<Vec<_>>());
        let mut tx = self.begin_lookup().await.map_err(failed)?;
        let rows: Vec<u8> =
            run_sql!(query_scalar.fetch_one, &mut *tx, COMMON_MARKS, tenant, hashes, except, LIVE_HOLDERS)
                .map_err(failed)?;
        let mut found: BTreeMap<KeyedHash, Vec<MarkHolder>> = BTreeMap::new();
        for (hash, [coverage, kind, is_live]) in hashes_with_numbers(&rows)? {
            found.entry(hash).or_default().push(MarkHolder(coverage, kind, is_live));
        }
        Ok(found.into_iter().map(|(hash, holders)| CommonMarkRow(hash, holders)).collect())
    }
}

/// Persons of a coverage by a key system, in order.
pub(in crate::store) async fn persons_of(
    connection: &mut PgConnection,
    tenant: &str,
    coverage: i64,
    system: i64,
    range: PersonRange,
) -> Result<Vec<KeyedHash>, StoreError> {
    let PersonRange { after, most } = range;
    let found: Vec<u8> = match after.map(|hash| hash.to_bytes().to_vec()) {
        None => run_sql!(query_scalar.fetch_one, connection, FIRST_PERSONS, tenant, coverage, system, most),
        Some(after) => {
            run_sql!(query_scalar.fetch_one, connection, NEXT_PERSONS, tenant, coverage, system, most, after)
        }
    }
    .map_err(failed)?;
    parted(&found)
}

/// The marks of a coverage that have rows, by kind and hash.
pub(in crate::store) async fn marks_of(
    connection: &mut PgConnection,
    tenant: &str,
    coverage: i64,
) -> Result<Vec<IndexedMarkRow>, sqlx::Error> {
    let rows: Vec<u8> = run_sql!(query_scalar.fetch_one, connection, MARKS_OF, tenant, coverage)?;
    let rows = hashes_with_numbers(&rows).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(rows.into_iter().map(|(hash, [kind, weight])| IndexedMarkRow { hash, kind, weight }).collect())
}

/// Undoes what joins hashes with `N` numbers each.
fn hashes_with_numbers<const N: usize>(bytes: &[u8]) -> Result<Vec<(KeyedHash, [i64; N])>, StoreError> {
    let cut = || StoreError::corrupt("a list of hashes is cut");
    let entry = |entry: &[u8]| {
        let (hash, numbers) = entry.split_first_chunk::<16>()?;
        let numbers: Vec<i64> = numbers.as_chunks().0.iter().map(|number| i64::from_be_bytes(*number)).collect();
        Some((KeyedHash::from_bytes(*hash), numbers.try_into().ok()?))
    };
    bytes.chunks(16 + 8 * N).map(|bytes| entry(bytes).ok_or_else(cut)).collect()
}

/// Samples of coverages, by coverage and number.
pub(in crate::store) async fn samples_of(
    connection: &mut PgConnection,
    tenant: &str,
    samples: &BTreeSet<SampleId>,
) -> Result<Vec<SampleRow>, sqlx::Error> {
    let (coverages, numbers): (Vec<i64>, Vec<i64>) =
        samples.iter().map(|of| (of.coverage.0, i64::from(of.sample))).unzip();
    run_sql!(query_as.fetch_all, connection, COVERAGE_SAMPLES, tenant, coverages, numbers)
}

/// Keeps samples of a coverage in the place of former ones.
pub(in crate::store) async fn put_samples(
    connection: &mut PgConnection,
    coverage: i64,
    samples: &KeptSamples,
) -> Result<(), sqlx::Error> {
    let (numbers, values): (Vec<i64>, Vec<Vec<u8>>) =
        samples.to_rows().into_iter().map(|(sample, value)| (i64::from(sample), value)).unzip();
    run_sql!(query.execute, connection, PUT_SAMPLES, coverage, numbers, values)?;
    Ok(())
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

/// Whether a table stands in a coverage of each list.
pub(in crate::store) async fn share_tables(
    connection: &mut PgConnection,
    one: &[i64],
    other: &[i64],
) -> Result<bool, sqlx::Error> {
    run_sql!(query_scalar.fetch_one, connection, SHARE_TABLES, one, other)
}

/// Adds persons to a coverage, without those of the one that it continues, and says how many were new.
pub(in crate::store) async fn insert_persons(
    connection: &mut PgConnection,
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
    connection: &mut PgConnection,
    coverage: i64,
    marks: &[AlikeMark],
) -> Result<(), sqlx::Error> {
    let has_some: bool = run_sql!(query_scalar.fetch_one, &mut *connection, HAS_MARKS, coverage)?;
    let statement = if has_some { INSERT_MORE_MARKS } else { INSERT_FIRST_MARKS };
    let hashes: Vec<KeyedHash> = marks.iter().map(|mark| mark.hash).collect();
    let kinds: Vec<i64> = marks.iter().map(|mark| mark.kind.number()).collect();
    let weights: Vec<i64> = marks.iter().map(|mark| mark.weight.cast_signed()).collect();
    run_sql!(query.execute, connection, statement, coverage, joined(&hashes), kinds, weights)?;
    Ok(())
}
