//! What lies on disk: nothing of an original before or after its purge, and nothing that an old master key opens.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use guardian::microdata::{ChunkColumn, Interner};
use memchr::memmem;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::harness::{HOSPITAL, Process, Server, guardian, hospital_method, run, text, versatile};
use crate::support::stores::Database;

/// Where a store is.
struct Place {
    home: TempDir,
    database: Option<Database>,
}

impl Place {
    fn embedded() -> Self {
        Self { home: tempfile::tempdir().unwrap(), database: None }
    }

    async fn shared() -> Option<Self> {
        Some(Self { database: Some(Database::create().await?), ..Self::embedded() })
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn file(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    fn url(&self) -> String {
        self.database.as_ref().map_or("embedded".to_owned(), |database| database.options().to_url_lossy().into())
    }

    fn serve(&self, options: &[&str]) -> Process {
        let url = self.url();
        let mut all = vec!["--listen", "127.0.0.1:0", "--store", &url];
        all.extend(options);
        Process::serve_with(&self.data(), "info", &all)
    }

    /// A command that ends by itself.
    fn run(&self, command: &str, options: &[&str]) -> Output {
        run(guardian().args(command.split(' ')).args(["--store", &self.url(), "--data"]).arg(self.data()).args(options))
    }

    /// The wrapped keys of all datasets.
    async fn wrapped_keys(&self, data: &Path) -> Vec<Vec<u8>> {
        let sql = "SELECT wrapped_key FROM dataset_keys";
        match &self.database {
            None => {
                let options = SqliteConnectOptions::new().filename(data.join("guardian.db")).read_only(true);
                let mut connection = options.connect().await.unwrap();
                let keys = sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap();
                connection.close().await.unwrap();
                keys
            }
            Some(database) => {
                let mut connection = PgConnection::connect_with(&database.options()).await.unwrap();
                sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap()
            }
        }
    }

    /// The files of the store that hold a wrapped key, but for the server's log, which keeps it until it is recycled.
    async fn files_with_key(&self, data: &Path, wrapped: &[u8]) -> Vec<PathBuf> {
        let mut found = self.files_with(data, wrapped).await;
        found.retain(|file| !file.components().any(|part| part.as_os_str() == "pg_wal"));
        found
    }

    /// The files of the store that hold some bytes.
    async fn files_with(&self, data: &Path, bytes: &[u8]) -> Vec<PathBuf> {
        let mut folders = vec![data.to_owned()];
        if let Some(database) = &self.database {
            // what is still in the server's memory comes to its files
            database.execute("CHECKPOINT".to_owned()).await;
            let cluster = std::env::var("GUARDIAN_TEST_PGDATA").expect("the folder of the cluster's files");
            folders.push(cluster.into());
        }
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            // the server removes files while we look
            for entry in fs::read_dir(&folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if fs::read(&path).is_ok_and(|file| memmem::find(&file, bytes).is_some()) {
                    found.push(path);
                }
            }
        }
        found
    }
}

/// A value of 32 characters that no other test has, and what an unencrypted column of it would be: the value stands in it as it is.
fn marker() -> (String, Vec<u8>) {
    let marker = Uuid::now_v7().simple().to_string();
    let mut interner = Interner::default();
    interner.intern(marker.as_bytes());
    let encoded = ChunkColumn::new(interner.take(), &[1; 6]).encode();
    assert!(memmem::find(&encoded, marker.as_bytes()).is_some(), "compression hides what is not encrypted");
    (marker, encoded)
}

async fn no_file_holds_a_value(place: &Place) {
    let url = place.url();
    let server = Server::start_with(|config| config.store.url = Some(url.into())).await;
    let data = server.data();
    let (secret, encoded) = marker();
    // what is not secret is found: the files are the right ones
    let series = format!("series-{}", Uuid::now_v7().simple());
    let mut lines = HOSPITAL.lines();
    let mut csv = format!("{},note\n", lines.next().unwrap());
    lines.for_each(|line| csv.push_str(&format!("{line},{secret}\n")));
    let dataset = server.dataset_of(&series, csv).await;
    let document = json!({"method": hospital_method(), "attributes": {"note": {"drop": true}}});
    let manifest = server.publish(&dataset, document.clone()).await;

    let wrapped = place.wrapped_keys(&data).await;
    let [wrapped] = wrapped.as_slice() else { panic!("one dataset, one key") };
    let profile = b"\"mostly_distinct\"";
    assert!(!place.files_with(&data, series.as_bytes()).await.is_empty());
    assert!(!place.files_with(&data, wrapped).await.is_empty());
    for hidden in [secret.as_bytes(), &encoded, profile] {
        assert_eq!(place.files_with(&data, hidden).await, Vec::<PathBuf>::new(), "before the purge");
    }

    let receipt = server.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    assert_eq!((&receipt["key_destroyed"], &receipt["rows"]), (&json!(true), &json!(6)));
    assert_eq!(receipt["releases_kept"], json!([manifest["id"]]));
    for hidden in [secret.as_bytes(), &encoded, profile] {
        assert_eq!(place.files_with(&data, hidden).await, Vec::<PathBuf>::new(), "after the purge");
    }
    let mut purges = 1;
    while !place.files_with_key(&data, wrapped).await.is_empty() {
        // a purge gives up while a transaction of another test goes on for longer, and the next one rewrites the table
        assert!(place.database.is_some() && purges < 10, "the wrapped key outlives {purges} purges");
        let next = server.dataset_of(&format!("{series}-{purges}"), "age,disease\n1,flu\n2,cold\n").await;
        server.delete(&format!("/v1/datasets/{next}")).await.ok(200);
        purges += 1;
    }

    server.get(&format!("/v1/datasets/{dataset}")).await.problem(410, "gone");
    let listed = server.items("/v1/datasets").await;
    let purged = listed.iter().find(|of| of["id"] == json!(dataset)).unwrap();
    assert!(purged["purged_at"].is_string());
    server.part(&manifest, "t1", "qi").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_of_the_folder_holds_a_value() {
    no_file_holds_a_value(&Place::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_of_the_cluster_holds_a_value() {
    if let Some(place) = Place::shared().await {
        no_file_holds_a_value(&place).await;
    }
}

/// A table whose job is not over at once.
fn large_table() -> String {
    let mut csv = String::from("age,ward,zip,disease\n");
    for row in 0..60_000_u32 {
        let mixed = row.wrapping_mul(2_654_435_761) >> 8;
        csv.push_str(&format!("{},w{},{},d{}\n", mixed % 90, mixed / 90 % 50, mixed / 7 % 900, mixed / 11 % 40));
    }
    csv
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn a_rotated_store(place: &Place) {
    let (old, new) = (place.file("old.key"), place.file("new.key"));
    let process = place.serve(&["--master-key", &old]);
    let dataset = process.dataset_of("ward", HOSPITAL).await;
    let document = json!({"method": hospital_method()});
    let manifest = process.publish(&dataset, document.clone()).await;
    let large = process.dataset_of("large", large_table()).await;

    let refused = place.run("rotate-key", &["--master-key", &old, "--new-master-key", &new]);
    assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
    assert!(said(&refused).contains("another process has the store"), "{}", said(&refused));

    // a job that has not ended has a key, too
    let method = versatile(&["age, ward -> disease", "age, disease -> zip"]);
    let waiting = process.post("/v1/jobs", &json!({"dataset": large, "method": method})).await.ok(202);
    process.kill();

    let rotated = place.run("rotate-key", &["--master-key", &old, "--new-master-key", &new]);
    assert_eq!(rotated.status.code(), Some(0), "{}", said(&rotated));
    assert!(said(&rotated).contains("the keys of 2 datasets, 0 chains and 1 jobs"), "{}", said(&rotated));
    let again = place.run("rotate-key", &["--master-key", &new, "--new-master-key", &new]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    for command in ["serve", "migrate", "keys list", "rotate-key"] {
        let options = ["--master-key", &old, "--new-master-key", &place.file("other.key")];
        let refused = place.run(command, &options[..if command == "rotate-key" { 4 } else { 2 }]);
        assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
        assert!(said(&refused).contains("another master key"), "{}", said(&refused));
    }
    let listed = |key: &str| place.run("keys list", &["--master-key", key]);
    fs::remove_file(&old).unwrap();
    // a command that needs no key makes none
    assert!(said(&listed(&old)).contains("does not exist") && !Path::new(&old).exists(), "{}", said(&listed(&old)));
    assert_eq!(listed(&new).status.code(), Some(0), "{}", said(&listed(&new)));

    let mut process = place.serve(&["--master-key", &new]);
    let job = process.get(&format!("{}?wait=60", text(&waiting["links"]["self"]))).await.ok(200);
    assert_eq!(job["status"], "succeeded", "{job:#}");
    // equal contents hash alike still: the ledger knows them, also when they are sent again
    let repeated = process.dataset_of("ward", HOSPITAL).await;
    for dataset in [dataset, repeated] {
        let job = process.job(&dataset, document.clone()).await.ok(200);
        assert_eq!((&job["reused"], &job["release"]), (&json!(true), &manifest["id"]), "{job:#}");
    }
    process.delete(&format!("/v1/datasets/{large}")).await.ok(200);
    assert!(process.terminate().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_folder_opens_with_the_new_key_alone() {
    a_rotated_store(&Place::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_database_opens_with_the_new_key_alone() {
    if let Some(place) = Place::shared().await {
        a_rotated_store(&place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_can_hold_the_master_key() {
    let place = Place::embedded();
    let data = place.data();
    let digits = "0123456789abcdefFEDCBA9876543210".repeat(2);
    let serve = || {
        let mut command = guardian();
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("GUARDIAN_MASTER_KEY", &digits).env("RUST_LOG", "trace");
        command
    };
    let mut process = Process::serve_by(&data, &mut serve());
    let dataset = process.dataset(HOSPITAL).await;
    let manifest = process.publish(&dataset, json!({"method": hospital_method()})).await;
    assert!(process.terminate().success());
    let log = process.log();
    assert!(log.contains("job succeeded"), "the log is there");
    assert!(!log.contains(&digits) && !log.contains(&digits.to_lowercase()), "the key is in the log");
    assert!(!data.join("master.key").exists(), "no file is made");
    drop(process);

    // without it the store is closed, and with the same key in a file it opens
    let missing = place.run("serve", &["--listen", "127.0.0.1:0"]);
    assert_eq!(missing.status.code(), Some(4), "{}", said(&missing));
    let file = place.file("the.key");
    let bytes: Vec<u8> = (0..64).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    fs::write(&file, bytes).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let process = place.serve(&["--master-key", &file]);
    let job = process.job(&dataset, json!({"method": hospital_method()})).await.ok(200);
    assert_eq!((&job["reused"], &job["release"]), (&Value::Bool(true), &manifest["id"]));
    drop(process);

    let both = run(serve().args(["--master-key", &file, "--data"]).arg(&data));
    assert_eq!(both.status.code(), Some(2), "{}", said(&both));
    for wrong in ["", &digits[1..], &format!("{digits}0"), &digits.replace('a', "g")] {
        let refused = run(serve().env("GUARDIAN_MASTER_KEY", wrong).arg("--data").arg(&data));
        assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
        assert!(said(&refused).contains("GUARDIAN_MASTER_KEY"), "{}", said(&refused));
        assert!(wrong.is_empty() || !said(&refused).contains(wrong), "{}", said(&refused));
    }
    let help = said(&run(serve().arg("--help")));
    assert!(help.contains("GUARDIAN_MASTER_KEY") && !help.contains(&digits), "{help}");
}
