//! What the ledger gets wrong about the people of a release is not released: the audit finds it by itself.

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::data_subjects::{HEADER, patients};
use crate::support::harness::{Server, kind, text, versatile};

/// Damage of a ledger, and how it is done.
const DAMAGES: &[(&str, &str)] = &[
    (
        "a coverage without some persons",
        "CREATE TRIGGER damage AFTER INSERT ON covered WHEN substr(hex(NEW.hash), 1, 1) = '0'
         BEGIN DELETE FROM covered WHERE hash = NEW.hash AND coverage = NEW.coverage; END",
    ),
    (
        "persons below the name of another key system",
        "CREATE TRIGGER damage AFTER INSERT ON covered
         BEGIN UPDATE covered SET system = (SELECT max(id) FROM key_systems) WHERE hash = NEW.hash; END",
    ),
    (
        "a coverage without some blocks",
        "CREATE TRIGGER damage AFTER INSERT ON indexed_marks WHEN NEW.kind = 0
         BEGIN DELETE FROM indexed_marks WHERE hash = NEW.hash; END",
    ),
    (
        "a coverage without some signatures",
        "CREATE TRIGGER damage AFTER INSERT ON indexed_marks WHEN NEW.kind > 0 AND substr(hex(NEW.hash), 2, 1) = '0'
         BEGIN DELETE FROM indexed_marks WHERE hash = NEW.hash; END",
    ),
    (
        "a coverage without samples",
        "CREATE TRIGGER damage AFTER INSERT ON coverage_signatures
         BEGIN DELETE FROM coverage_signatures WHERE coverage = NEW.coverage; END",
    ),
    (
        "samples without the last signature",
        "CREATE TRIGGER damage AFTER INSERT ON coverage_signatures
         BEGIN UPDATE coverage_signatures SET signatures = CAST(substr(signatures, 1, length(signatures) - 24) AS BLOB)
         WHERE coverage = NEW.coverage AND sample = NEW.sample; END",
    ),
    (
        "samples with a signature that is not there",
        "CREATE TRIGGER damage AFTER INSERT ON coverage_signatures
         BEGIN UPDATE coverage_signatures
         SET signatures = CAST(x'ffffffffffffffffffffffffffffffff' || substr(signatures, 17) AS BLOB); END",
    ),
    (
        "the mark of another table",
        "UPDATE dataset_evidence SET body = json_set(body, '$.table', '000102030405060708090a0b0c0d0e0f')",
    ),
    (
        "a column with the contents of another",
        "UPDATE dataset_evidence SET body = json_set(body, '$.contents.dx', json_extract(body, '$.contents.age'))",
    ),
    (
        "persons with the values of another column",
        "UPDATE dataset_evidence SET body = json_set(body, '$.systems.patient.columns.dx',
         json_extract(body, '$.systems.patient.columns.age'))",
    ),
    (
        "another person in the place of one",
        "UPDATE dataset_persons SET hashes = CAST(x'00000000000000000000000000000001' || substr(hashes, 17) AS BLOB)",
    ),
];

async fn execute(server: &Server, sql: &'static str) {
    let options = SqliteConnectOptions::new().filename(server.data().join("guardian.db"));
    let mut connection = options.connect().await.unwrap();
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

async fn clinic(server: &Server) -> String {
    let keys = json!([{"key_system": "patient", "columns": ["id"]}, {"key_system": "pin", "columns": ["pin"]}]);
    let population = json!({"description": "patients of the clinic", "person": keys});
    server.put("/v1/populations/clinic", &population).await.ok(201);
    text(&server.upload_with("population=clinic", patients(0..600, HEADER), &[]).await.ok(201)["id"])
}

fn document() -> Value {
    json!({"unlisted": "drop", "method": versatile(&["age -> dx"])})
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_released_of_a_damaged_ledger() {
    let mut server = Server::start().await;
    for (damage, sql) in DAMAGES {
        let dataset = clinic(&server).await;
        execute(&server, sql).await;
        server = server.restarted().await;
        let job = server.job(&dataset, document()).await.json();
        let ended = server.get(&format!("/v1/jobs/{}?wait=30", text(&job["id"]))).await.ok(200);
        assert_eq!((&ended["status"], kind(&ended["problem"])), (&json!("failed"), "internal"), "{damage}: {ended}");
        assert!(server.items("/v1/releases").await.is_empty(), "{damage}");
        assert_eq!(server.stored("releases").await, 0, "{damage}");
        server = server.anew().await;
    }
    // without damage there is a release
    let dataset = clinic(&server).await;
    let release = server.publish(&dataset, document()).await;
    assert_eq!(release["composition"], "enforced");
    server.stop().await;
}
