//! The judge: waits until nothing is under way, reads everything that was promised, and looks into the store itself.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;
use std::time::{Duration, Instant};

use guardian::clock::Clock;
use guardian::store::OpenStore;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, SqliteConnection};

use super::Dice;
use super::client::{Client, JOBS, text};
use super::known::Known;
use super::processes::{Fleet, guardian};

/// A key of a killed request is free after a minute, and a killed worker's job goes on after half of one; a slow machine may
/// need more.
const DRAIN: Duration = Duration::from_secs(240);

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn client(fleet: &Arc<Fleet>, known: &Arc<Known>) -> Client {
    Client::new(Arc::clone(fleet), Arc::clone(known), Dice::new(0, 0), 0)
}

/// Sends every key once more, and waits for the end of every job.
pub(super) async fn drain(fleet: &Arc<Fleet>, known: &Arc<Known>) {
    let mut client = client(fleet, known);
    for sent in known.all_sent().into_iter().filter(|sent| !sent.refused) {
        if client.make(&sent, DRAIN).await.is_none() {
            known.violated(format!("key {} is never answered", sent.key));
        }
    }
    let until = Instant::now() + DRAIN;
    for job in known.ids(JOBS) {
        loop {
            let answer = client.get(&format!("{JOBS}/{job}?wait=10"), DRAIN).await;
            let Some(answer) = answer.filter(|answer| answer.status == 200) else {
                known.violated(format!("job {job} was accepted and is not there"));
                break;
            };
            let job = answer.json();
            known.seen(&job);
            if !job["finished_at"].is_null() {
                judge_end(known, &job);
                break;
            }
            if Instant::now() > until {
                known.violated(format!("job {} never ends: {}", job["id"], job["status"]));
                break;
            }
        }
    }
}

fn judge_end(known: &Known, job: &Value) {
    let problem = text(&job["problem"]["type"]).rsplit('/').next().unwrap_or_default().to_owned();
    let status = text(&job["status"]);
    known.count(format!("jobs: {status} {problem}").trim_end());
    let expected = match status.as_str() {
        "succeeded" => !job["release"].is_null() && problem.is_empty(),
        "cancelled" => problem.is_empty(),
        "refused" => !problem.is_empty(),
        // by the killer's hand, or by the caller's own deadline
        "failed" => ["attempts-exhausted", "deadline"].contains(&problem.as_str()),
        _ => false,
    };
    if !expected {
        known.violated(format!("job {} ended as {status} {problem}", job["id"]));
    }
}

async fn all_items(client: &mut Client, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}?limit=1000{cursor}"), DRAIN).await.unwrap().json();
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

/// Every job is known, every release is whole.
pub(super) async fn read_everything(fleet: &Arc<Fleet>, known: &Arc<Known>) {
    let mut client = client(fleet, known);
    for (path, sent_to) in [("/v1/datasets", super::client::DATASETS), (JOBS, JOBS)] {
        let there: BTreeSet<String> = all_items(&mut client, path).await.iter().map(|item| text(&item["id"])).collect();
        let given: BTreeSet<String> = known.ids(sent_to).into_iter().collect();
        for id in there.symmetric_difference(&given) {
            known.violated(format!("{path}/{id} is either unasked for or lost"));
        }
    }
    let releases = all_items(&mut client, "/v1/releases").await;
    for release in releases.iter().filter(|release| ["published", "held"].contains(&text(&release["status"]).as_str()))
    {
        let id = text(&release["id"]);
        if client.read_release(&id, DRAIN).await.is_none() {
            known.violated(format!("release {id} cannot be read"));
        }
        verify(&mut client, known, &id).await;
    }
    // a job that succeeded has a release
    let made: BTreeSet<String> = releases.iter().map(|release| text(&release["id"])).collect();
    for (job, (status, release)) in known.ends() {
        if status == "succeeded" && !made.contains(&text(&release)) {
            known.violated(format!("job {job} succeeded with a release that is not there"));
        }
    }
}

/// `guardian verify` over an archive.
async fn verify(client: &mut Client, known: &Known, id: &str) {
    let archive = client.get(&format!("/v1/releases/{id}/archive"), DRAIN).await;
    let folder = tempfile::tempdir().unwrap();
    let archive = archive.and_then(|archive| zip::ZipArchive::new(Cursor::new(archive.body)).ok());
    let unpacked = archive.is_some_and(|mut archive| archive.extract(folder.path()).is_ok());
    let output = tokio::task::block_in_place(|| guardian().arg("verify").arg(folder.path()).output()).unwrap();
    if unpacked && output.status.success() {
        known.count("releases verified from their archives");
    } else {
        known.violated(format!(
            "the archive of release {id} is not verified: {}",
            String::from_utf8_lossy(&output.stdout)
        ));
    }
}

/// What no interface shows. Each must be none.
const NONE: &[(&str, &str)] = &[
    ("jobs that have not ended", "SELECT COUNT(*) FROM jobs WHERE status IN ('queued', 'running')"),
    (
        "jobs with more than one release",
        "SELECT COUNT(*) FROM (SELECT job_id FROM releases GROUP BY job_id HAVING COUNT(*) > 1) AS twice",
    ),
    (
        "reuse keys with more than one standing release",
        "SELECT COUNT(*) FROM (SELECT reuse_key FROM releases WHERE status IN ('held', 'published')
         GROUP BY tenant, reuse_key HAVING COUNT(*) > 1) AS twice",
    ),
    (
        "releases whose job says something else",
        "SELECT COUNT(*) FROM releases AS r JOIN jobs AS j ON j.id = r.job_id
         WHERE j.status <> 'succeeded' OR j.release_id <> r.id OR j.reused",
    ),
    (
        "jobs whose release is not there",
        "SELECT COUNT(*) FROM jobs AS j WHERE j.release_id IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM releases AS r WHERE r.id = j.release_id)",
    ),
    ("keys of jobs that have ended", "SELECT COUNT(*) FROM job_keys"),
    (
        "chunks of parts of no standing release",
        "SELECT COUNT(*) FROM part_chunks AS p WHERE NOT EXISTS (SELECT 1 FROM releases AS r
         WHERE r.job_id = p.job_id AND r.attempt = p.attempt AND r.status IN ('held', 'published'))",
    ),
    (
        "chunks of uploads that became no dataset, or of purged ones",
        "SELECT COUNT(*) FROM column_chunks AS c WHERE NOT EXISTS (SELECT 1 FROM datasets AS d
         WHERE d.id = c.dataset_id AND d.purged_at IS NULL)",
    ),
    (
        "entries of the ledger without a release that keeps them",
        "SELECT COUNT(*) FROM disclosures AS e WHERE NOT EXISTS (SELECT 1 FROM releases AS r WHERE r.id = e.release_id
         AND (r.status <> 'rejected' OR r.first_read_at IS NOT NULL))",
    ),
    (
        "releases that their ledger's version has not counted",
        "SELECT COUNT(*) FROM ledgers AS l WHERE l.version < (SELECT COUNT(*) FROM releases AS r
         WHERE r.tenant = l.tenant AND r.series = l.series AND r.content_hash = l.content_hash)",
    ),
];

/// A release, how many entries of the ledger it has, and its manifest.
const ENTRIES: &str =
    "SELECT CAST(r.status AS TEXT), (SELECT COUNT(*) FROM disclosures AS e WHERE e.release_id = r.id),
    CAST(d.manifest AS TEXT), CASE WHEN r.first_read_at IS NULL THEN 0 ELSE 1 END
    FROM releases AS r JOIN release_documents AS d ON d.release_id = r.id";

/// The store itself, when no process has it.
enum Look {
    Embedded(SqliteConnection),
    Postgres(PgConnection),
}

impl Look {
    /// Sweeps, as the next start would, and opens.
    async fn after_a_sweep(fleet: &Arc<Fleet>) -> Self {
        let Some(cluster) = &fleet.cluster else {
            // the next start sweeps
            fleet.up(0).await;
            fleet.stop().await;
            let options = SqliteConnectOptions::new().filename(fleet.data().join("guardian.db")).read_only(true);
            return Self::Embedded(options.connect().await.unwrap());
        };
        // a start leaves what is young: other processes might be uploading
        let store = OpenStore::open(Some(&cluster.url), &fleet.data()).await.unwrap();
        store.shared().sweep(Clock::system().now(), Duration::ZERO).await.unwrap();
        store.close().await;
        Self::Postgres(PgConnection::connect(&cluster.url).await.unwrap())
    }

    async fn count(&mut self, select: &'static str) -> i64 {
        match self {
            Self::Embedded(connection) => sqlx::query_scalar(select).fetch_one(connection).await.unwrap(),
            Self::Postgres(connection) => sqlx::query_scalar(select).fetch_one(connection).await.unwrap(),
        }
    }

    async fn entries(&mut self) -> Vec<(String, i64, String, i32)> {
        match self {
            Self::Embedded(connection) => sqlx::query_as(ENTRIES).fetch_all(connection).await.unwrap(),
            Self::Postgres(connection) => sqlx::query_as(ENTRIES).fetch_all(connection).await.unwrap(),
        }
    }
}

/// Counts what may not be there.
pub(super) async fn look_into_the_store(fleet: &Arc<Fleet>, known: &Arc<Known>) {
    let mut look = Look::after_a_sweep(fleet).await;
    for (what, select) in NONE {
        let found = look.count(select).await;
        if found > 0 {
            known.violated(format!("{found} {what}"));
        }
    }
    for (status, entries, manifest, read) in look.entries().await {
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let tables = manifest["tables"].as_array().map_or(0, Vec::len) as i64;
        let expected = if status == "rejected" && read == 0 { 0 } else { tables };
        if entries != expected {
            known.violated(format!("a {status} release has {entries} entries in the ledger, not {expected}"));
        }
        known.count(&format!("releases: {status}"));
    }
}
