//! How many pages are touched to look persons and marks up, whatever the planner knows of the tables.

use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;
use sqlx::{AssertSqlSafe, Executor, PgConnection, Postgres};
use uuid::Uuid;

use super::database;
use crate::store::postgres::people::{COMMON_MARKS, COMMON_PERSONS, FIRST_PERSONS, MARKS_OF, PUBLISHED_PERSONS};
use crate::store::postgres::pool::PostgresStore;

/// Of an index, of the table, and of the coverage that was found.
const MAX_PAGES_PER_HASH: u64 = 20;

const ASKED: usize = 500;

/// Of a coverage.
const PERSONS: u64 = 100;

type ExplainQuery = QueryScalar<'static, Postgres, String, PgArguments>;

/// 300 coverages of 100 persons and marks each, and of 60 marks that all have.
const ROWS: &str = "
INSERT INTO key_systems (tenant, name, body) VALUES ('t', 'k', '{}');
INSERT INTO coverages (tenant, job, state, ticket, body, published, cuts)
SELECT 't', gen_random_uuid(), 'live', n, '{}', '[]', '[]' FROM generate_series(1, 300) AS n;
INSERT INTO indexed_marks (hash, coverage, kind, weight)
SELECT substring(sha256(convert_to(c.id || '-' || n, 'UTF8')) FOR 16), c.id, 1, 1
FROM coverages AS c, generate_series(1, 100) AS n;
INSERT INTO covered (system, hash, coverage) SELECT k.id, a.hash, a.coverage FROM indexed_marks AS a, key_systems AS k;
INSERT INTO indexed_marks (hash, coverage, kind, weight)
SELECT substring(sha256(convert_to('all' || n, 'UTF8')) FOR 16), c.id, 0, 1 FROM coverages AS c, generate_series(1, 60) AS n";

/// A statement that says how it was run, with the tenant as its first value.
fn explained(statement: &str) -> ExplainQuery {
    sqlx::query_scalar(AssertSqlSafe(format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {statement}"))).bind("t")
}

/// The pages that were touched.
async fn touched(connection: &mut PgConnection, query: ExplainQuery) -> u64 {
    let plan: Vec<String> = query.fetch_all(connection).await.unwrap();
    let number = |word: &str| ["hit=", "read="].iter().find_map(|of| word.strip_prefix(of))?.parse::<u64>().ok();
    // the first line is that of the whole plan
    let buffers = plan.iter().find(|line| line.contains("Buffers:")).expect("EXPLAIN counts pages");
    buffers.split_whitespace().filter_map(number).sum()
}

async fn assert_few_pages(store: &PostgresStore, hashes: &[Vec<u8>]) {
    let marks = explained(COMMON_MARKS).bind(hashes.concat()).bind(None::<i64>).bind(6_i64);
    let persons = explained(COMMON_PERSONS).bind("k").bind(hashes.concat()).bind(None::<i64>);
    let published = explained(PUBLISHED_PERSONS).bind("k").bind(hashes.concat()).bind(None::<Uuid>);
    for (number, query) in [marks, persons, published].into_iter().enumerate() {
        let pages = touched(&mut store.begin_lookup().await.unwrap(), query).await;
        assert!(pages < MAX_PAGES_PER_HASH * ASKED as u64, "statement {number}: {pages} pages");
    }
    let mut connection = store.pool.acquire().await.unwrap();
    let some = "SELECT coverage, system FROM covered LIMIT 1";
    let (coverage, system): (i64, i64) = sqlx::query_as(some).fetch_one(&mut *connection).await.unwrap();
    let first = explained(FIRST_PERSONS).bind(coverage).bind(system).bind(1_000_i64);
    let marks = explained(MARKS_OF).bind(coverage);
    for query in [first, marks] {
        let pages = touched(&mut connection, query).await;
        assert!(pages < MAX_PAGES_PER_HASH * PERSONS, "{pages} pages");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_are_found_by_index_with_and_without_statistics() {
    let database = database!();
    let store = database.store_by_its_clock().await;
    let mut connection = store.pool.acquire().await.unwrap();
    connection.execute("ALTER TABLE indexed_marks SET (autovacuum_enabled = off)").await.unwrap();
    connection.execute("ALTER TABLE covered SET (autovacuum_enabled = off)").await.unwrap();
    connection.execute("ALTER TABLE coverages SET (autovacuum_enabled = off)").await.unwrap();
    connection.execute(ROWS).await.unwrap();
    let asked = "SELECT DISTINCT hash FROM indexed_marks WHERE kind = 0
                 UNION ALL (SELECT hash FROM indexed_marks WHERE kind = 1 ORDER BY hash LIMIT 440)";
    let hashes: Vec<Vec<u8>> = sqlx::query_scalar(asked).fetch_all(&mut *connection).await.unwrap();
    assert_eq!(hashes.len(), ASKED);
    assert_few_pages(&store, &hashes).await;
    connection.execute("ANALYZE").await.unwrap();
    assert_few_pages(&store, &hashes).await;
}
