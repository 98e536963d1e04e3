//! Tables and releases in object stores, from the command line.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use guardian::microdata::AttributeType;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::support::folder::stderr;
use crate::support::harness::{HOSPITAL, guardian, hospital_method, run};
use crate::support::object_server::{ObjectServer, SECRET_KEY};
use crate::support::table_engine::{PartColumn, write_file};

const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A folder with a specification, and a server with a table.
struct Stage {
    server: ObjectServer,
    folder: TempDir,
}

impl Stage {
    fn set() -> Self {
        let stage = Self { server: ObjectServer::start(), folder: tempfile::tempdir().unwrap() };
        let specification = json!({"unlisted": "drop", "method": hospital_method()});
        fs::write(stage.folder.path().join("S.json"), specification.to_string()).unwrap();
        fs::write(stage.folder.path().join("T.csv"), HOSPITAL).unwrap();
        stage.server.put("bucket/in/T.csv", HOSPITAL);
        stage
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.server.guardian();
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(&mut self.command(arguments))
    }

    /// The only message of a command that must fail in reading or writing.
    #[track_caller]
    fn refusal(&self, command: &mut Command) -> String {
        let output = run(command.current_dir(self.folder.path()));
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(4), 1), "{said}");
        assert!(!said.contains(SECRET_KEY), "{said}");
        said
    }

    fn published(&self, out: &str) -> Output {
        self.run(&["publish", "s3://bucket/in/T.csv", "S.json", "--out", out, "--reproduce", KEY])
    }
}

#[track_caller]
fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

/// The files of a release without the time of the manifest, and without the digest of it in the report.
fn comparable(name: &str, bytes: &[u8]) -> Vec<u8> {
    if name != "manifest.json" && name != "report.json" {
        return bytes.to_vec();
    }
    let mut document: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    document["created_at"] = "now".into();
    document["manifest_sha256"] = "any".into();
    document.to_string().into_bytes()
}

#[test]
fn a_release_in_a_store_equals_that_in_a_folder() {
    let stage = Stage::set();
    done(&stage.run(&["publish", "T.csv", "S.json", "--out", "local", "--reproduce", KEY]));
    done(&stage.published("s3://bucket/out/night/"));
    let mut files: Vec<_> =
        fs::read_dir(stage.folder.path().join("local")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let names: Vec<String> =
        files.iter().map(|path| format!("bucket/out/night/{}", path.file_name().unwrap().display())).collect();
    assert!(names.len() > 4);
    let kept: Vec<String> = stage.server.names().into_iter().filter(|name| name.contains("/out/")).collect();
    assert_eq!(kept, names, "nothing but the release is there");
    for (path, name) in files.iter().zip(&names) {
        let file = path.file_name().unwrap().to_str().unwrap();
        let there = comparable(file, &stage.server.get(name).unwrap());
        assert!(comparable(file, &fs::read(path).unwrap()) == there, "{file}");
    }
    // documents follow the parts, and nothing the manifest but the end of the claim
    let asked = stage.server.asked();
    let writes: Vec<&String> = asked.iter().filter(|asked| ["PUT", "DEL", "END"].contains(&&asked[..3])).collect();
    assert_eq!(writes[0], "PUT bucket/out/night/guardian-publication");
    let place = |file: &str| writes.iter().position(|write| write.ends_with(file)).unwrap();
    assert!(place(".csv") < place("report.json") && place("t1.sa.csv") < place("report.json"));
    let last = ["PUT bucket/out/night/manifest.json", "DELETE bucket/out/night/guardian-publication"];
    assert_eq!(writes[writes.len() - 2..], last);

    let verified = stage.run(&["verify", "s3://bucket/out/night", "--original", "s3://bucket/in/T.csv"]);
    done(&verified);
    assert!(String::from_utf8_lossy(&verified.stdout).contains("\nverified"));
    let part = names.iter().find(|name| name.ends_with("qi.csv")).unwrap();
    stage.server.put(part, "bucket\n");
    assert_eq!(stage.run(&["verify", "s3://bucket/out/night"]).status.code(), Some(1));
}

#[test]
fn every_command_that_takes_a_table_takes_an_address() {
    let stage = Stage::set();
    done(&stage.run(&["plan", "s3://bucket/in/T.csv", "S.json"]));
    done(&stage.run(&["init", "s3://bucket/in/T.csv", "--yes"]));
    assert!(stage.folder.path().join("T.spec.json").is_file());
    let local = format!("file://{}", stage.folder.path().join("T.csv").display());
    done(&stage.run(&["init", &local, "--yes", "--force"]));
    let guarantee = r#"{"type":"l_diversity","l":2}"#;
    let judged = |table: &str| {
        let rules = ["verify", table, "--rules", "age -> race", "--guarantee", guarantee];
        let output = stage.run(&rules);
        (output.status.code(), output.stdout)
    };
    assert_eq!(judged("s3://bucket/in/T.csv"), judged("T.csv"));
    assert_eq!(judged(&local), judged("T.csv"));
    let out = format!("file://{}", stage.folder.path().join("out").display());
    done(&stage.published(&out));
    assert!(stage.folder.path().join("out/manifest.json").is_file());
}

#[test]
fn a_large_part_is_uploaded_in_blocks() {
    let stage = Stage::set();
    let rows: String = (0..30_000).map(|row| format!("{row:0300},{}\n", row % 7)).collect();
    stage.server.put("bucket/in/T.csv", format!("a,b\n{rows}"));
    let attributes = json!({"a": {"publish": true, "identifier": false}});
    let method = json!({"type": "anatomy", "quasi_identifiers": ["a"], "sensitive": "b",
        "guarantee": {"type": "l_diversity", "l": 2}});
    let specification = json!({"attributes": attributes, "method": method}).to_string();
    fs::write(stage.folder.path().join("S.json"), specification).unwrap();
    done(&stage.published("s3://bucket/large"));
    done(&stage.run(&["verify", "s3://bucket/large"]));
    assert!(stage.server.asked().contains(&"PART 2 bucket/large/t1.qi.csv".to_owned()));
    assert_eq!(stage.server.open_uploads(), 0);

    // what is denied in its middle leaves neither blocks nor objects
    stage.server.deny("PART 2 bucket/denied/t1.qi.csv");
    let denied = stage.published("s3://bucket/denied");
    assert_eq!(denied.status.code(), Some(4), "{}", stderr(&denied));
    assert_eq!(stage.server.open_uploads(), 0);
    assert!(!stage.server.names().iter().any(|name| name.contains("/denied/")));
}

#[test]
fn nothing_is_overwritten() {
    let stage = Stage::set();
    for (prefix, name) in [("a", "manifest.json"), ("b", "another/object"), ("c", "guardian-publication")] {
        stage.server.put(&format!("bucket/{prefix}/{name}"), "before");
        let before = stage.server.names();
        let output = stage.published(&format!("s3://bucket/{prefix}"));
        assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
        assert!(stderr(&output).contains("choose another prefix"), "{}", stderr(&output));
        assert_eq!(stage.server.names(), before);
    }
    // a neighbour whose name begins alike is not below the prefix
    done(&stage.published("s3://bucket/b/anoth"));
}

#[test]
fn without_its_manifest_nothing_stays() {
    let stage = Stage::set();
    for denied in ["out/report.json", "out/t1.sa.csv", "out/manifest.json"] {
        stage.server.deny(&format!("PUT bucket/{denied}"));
    }
    let said = stage.refusal(stage.command(&["publish", "T.csv", "S.json"]).args(["--out", "s3://bucket/out"]));
    assert!(said.contains("denies access"), "{said}");
    assert_eq!(stage.server.names(), ["bucket/in/T.csv"]);

    // a refused specification does not keep the prefix
    fs::write(stage.folder.path().join("S.json"), "{\"method\": {}}").unwrap();
    assert_eq!(stage.published("s3://bucket/refused").status.code(), Some(3));
    assert_eq!(stage.server.names(), ["bucket/in/T.csv"]);
}

#[test]
fn a_denied_manifest_takes_the_parts_with_it() {
    let stage = Stage::set();
    stage.server.deny("PUT bucket/out/manifest.json");
    assert_eq!(stage.published("s3://bucket/out").status.code(), Some(4));
    assert!(stage.server.asked().iter().any(|asked| asked.ends_with("out/specification.json")));
    assert_eq!(stage.server.names(), ["bucket/in/T.csv"]);
}

#[test]
fn a_killed_publication_leaves_no_manifest() {
    let stage = Stage::set();
    let rows: String = (0..100_000).map(|row| format!("{row},{}\n", row % 7)).collect();
    stage.server.put("bucket/in/T.csv", format!("a,b\n{rows}"));
    let specification = json!({"attributes": {"a": {"publish": true, "identifier": false}}, "method":
        {"type": "anatomy", "quasi_identifiers": ["a"], "sensitive": "b", "guarantee": {"type": "l_diversity", "l": 2}}});
    fs::write(stage.folder.path().join("S.json"), specification.to_string()).unwrap();
    let mut command = stage.command(&["publish", "s3://bucket/in/T.csv", "S.json", "--out", "s3://bucket/out"]);
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !stage.server.asked().iter().any(|asked| asked.starts_with("GET bucket/in")) && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<String> = stage.server.names().into_iter().filter(|name| name.contains("/out/")).collect();
    assert_eq!(left, ["bucket/out/guardian-publication"]);
    let said = stage.refusal(&mut stage.command(&["publish", "T.csv", "S.json", "--out", "s3://bucket/out"]));
    assert!(said.contains("was interrupted there"), "{said}");
}

#[test]
fn what_cannot_be_read_is_one_refusal() {
    let stage = Stage::set();
    let plan = |table: &str| stage.command(&["plan", table, "S.json"]);
    let missing = stage.refusal(&mut plan("s3://bucket/in/missing.csv"));
    assert!(missing.contains("s3://bucket/in/missing.csv: there is no such object"), "{missing}");
    stage.server.deny("GET bucket/denied.csv");
    assert!(stage.refusal(&mut plan("s3://bucket/denied.csv")).contains("denies access"));
    let mut other_key = plan("s3://bucket/in/T.csv");
    assert!(stage.refusal(other_key.env("AWS_SECRET_ACCESS_KEY", "another")).contains("denies access"));
    let mut half_a_key = plan("s3://bucket/in/T.csv");
    let half = stage.refusal(half_a_key.env_remove("AWS_SECRET_ACCESS_KEY"));
    assert!(half.contains("no credentials; set AWS_ACCESS_KEY_ID"), "{half}");
    let mut without = plan("s3://bucket/in/T.csv");
    without.env_remove("AWS_SECRET_ACCESS_KEY").env_remove("AWS_ACCESS_KEY_ID");
    assert!(stage.refusal(without.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")).contains("no credentials"));
    assert!(stage.refusal(without.env("AWS_EC2_METADATA_DISABLED", "true")).contains("no credentials"));
    let mut nowhere = plan("s3://bucket/in/T.csv");
    assert!(stage.refusal(nowhere.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")).contains("does not answer"));
    let mut plain = plan("s3://bucket/in/T.csv");
    assert!(stage.refusal(plain.env_remove("AWS_ALLOW_HTTP")).contains("does not configure the store"));
    let web = stage.refusal(&mut stage.command(&["publish", "T.csv", "S.json", "--out", "https://localhost/out"]));
    assert!(web.contains("choose one of these"), "{web}");
    assert!(stage.refusal(&mut stage.command(&["verify", "s3://bucket/in"])).contains("manifest.json"));
}

#[test]
fn an_object_that_changes_while_it_is_read_is_refused() {
    let stage = Stage::set();
    stage.server.change_while_read("bucket/in/T.csv", HOSPITAL.replace('3', "4"));
    let said = stage.refusal(&mut stage.command(&["publish", "s3://bucket/in/T.csv", "S.json", "--out", "out"]));
    assert!(said.contains("changed while it was read"), "{said}");
    assert!(!stage.folder.path().join("out").exists());
    done(&stage.published("out"));
}

/// Serves one file over TLS with a certificate of its own; the address, and the file of the certificate.
fn tls_server(folder: &Path) -> (SocketAddr, PathBuf) {
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let chain = vec![CertificateDer::from_pem_file(&certificate).unwrap()];
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(&key).unwrap())
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut connection = rustls::StreamOwned::new(session, connection.unwrap());
            let mut head = [0; 4096];
            // a client that does not know the certificate leaves
            let Ok(length) = connection.read(&mut head) else { continue };
            let body = if head[..length].starts_with(b"HEAD") { "" } else { HOSPITAL };
            let length = HOSPITAL.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            let _ = connection.write_all(answer.as_bytes());
            connection.conn.send_close_notify();
            let _ = connection.flush();
        }
    });
    (address, certificate)
}

#[test]
fn web_servers_are_known_by_their_certificate() {
    let stage = Stage::set();
    let (address, certificate) = tls_server(stage.folder.path());
    let plan = |host: &str| stage.command(&["plan", &format!("https://{host}:{}/T.csv", address.port()), "S.json"]);
    done(&run(plan("localhost").env("SSL_CERT_FILE", &certificate)));
    let unknown = stage.refusal(&mut plan("localhost"));
    assert!(unknown.contains("does not answer; check its address, the network and its certificate"), "{unknown}");
    let mut other_name = plan("127.0.0.1");
    assert!(stage.refusal(other_name.env("SSL_CERT_FILE", &certificate)).contains("does not answer"));
}

#[test]
fn addresses_with_credentials_are_not_repeated() {
    let stage = Stage::set();
    for address in ["s3://key:hidden@bucket/T.csv", "https://h/T.csv?X-Amz-Signature=hidden", "ftp://hidden/T.csv"] {
        let output = run(guardian().args(["plan", address, "S.json"]).current_dir(stage.folder.path()));
        assert_eq!(output.status.code(), Some(2));
        assert!(!stderr(&output).contains("hidden"), "{}", stderr(&output));
    }
}

/// Replaces the parts of a release in a folder by Parquet files of two, as another engine leaves them.
fn in_parquet(folder: &Path) -> serde_json::Value {
    let read = fs::read(folder.join("manifest.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&read).unwrap();
    let tables = manifest["tables"].as_array_mut().unwrap();
    for part in tables.iter_mut().flat_map(|table| table["parts"].as_array_mut().unwrap()) {
        let csv = folder.join(part["file"].as_str().unwrap());
        let mut reader = csv::Reader::from_path(&csv).unwrap();
        let bucketed = usize::from(part["bucketed"] == true);
        let names: Vec<String> = reader.headers().unwrap().iter().skip(bucketed).map(str::to_owned).collect();
        let kind = |name: &str| AttributeType::ALL.into_iter().find(|kind| part["types"][name] == json!(kind)).unwrap();
        let columns = names.iter().enumerate();
        let columns: Vec<PartColumn> =
            columns.map(|(place, name)| PartColumn { place, name: name.clone(), kind: kind(name) }).collect();
        let rows = reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect());
        let rows: Vec<Vec<String>> = rows.collect();
        let written = csv.with_extension("");
        fs::create_dir(&written).unwrap();
        let write = |(number, rows): (usize, &[Vec<String>])| {
            let file = format!("{}/{number:05}.parquet", written.file_name().unwrap().display());
            let labels = rows.iter().take(rows.len() * bucketed).map(|row| row[0].parse().unwrap());
            let cells: Vec<Vec<String>> = rows.iter().map(|row| row[bucketed..].to_vec()).collect();
            write_file(&folder.join(&file), &labels.collect::<Vec<u64>>(), &cells, &columns);
            let bytes = fs::read(folder.join(&file)).unwrap();
            json!({"file": file, "rows": rows.len(), "bytes": bytes.len(), "sha256": hex::encode(Sha256::digest(&bytes))})
        };
        part["files"] = rows.chunks(rows.len().div_ceil(2)).enumerate().map(write).collect();
        (part["file"], part["sha256"]) = (json!(null), json!(null));
        fs::remove_file(csv).unwrap();
    }
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    manifest
}

#[test]
fn a_release_of_an_engine_is_verified_in_a_store() {
    let stage = Stage::set();
    done(&stage.run(&["publish", "T.csv", "S.json", "--out", "local", "--reproduce", KEY]));
    let folder = stage.folder.path().join("local");
    let manifest = in_parquet(&folder);
    let parts = manifest["tables"].as_array().unwrap().iter().flat_map(|table| table["parts"].as_array().unwrap());
    let files: Vec<&str> =
        parts.flat_map(|part| part["files"].as_array().unwrap()).map(|of| of["file"].as_str().unwrap()).collect();
    assert!(files.len() >= 4 && files.iter().all(|file| file.ends_with(".parquet")), "{files:?}");
    for file in files.iter().chain(&["manifest.json", "specification.json"]) {
        stage.server.put(&format!("bucket/out/{file}"), fs::read(folder.join(file)).unwrap());
    }
    let verify = ["verify", "s3://bucket/out", "--original", "s3://bucket/in/T.csv"];
    let verified = stage.run(&verify);
    done(&verified);
    assert!(String::from_utf8_lossy(&verified.stdout).contains("\nverified"));
    // a file that belongs to another part, and names that lead elsewhere
    stage.server.put(&format!("bucket/out/{}", files[0]), fs::read(folder.join(files[1])).unwrap());
    assert_eq!(stage.run(&verify).status.code(), Some(1));
    for name in
        ["t1.qi/../manifest.json", "t1.qi/a/b.parquet", "/t1.qi/b.parquet", "t1.qi/.b", ".t1/b.parquet", files[1]]
    {
        stage.server.put("bucket/out/manifest.json", manifest.to_string().replace(files[0], name));
        let said = stage.refusal(&mut stage.command(&verify));
        assert!(said.contains("names a file twice, or one that is not in its folder"), "{name}: {said}");
    }
}

#[test]
fn a_hostile_manifest_names_no_file_elsewhere() {
    let stage = Stage::set();
    done(&stage.published("s3://bucket/out"));
    let manifest = String::from_utf8(stage.server.get("bucket/out/manifest.json").unwrap()).unwrap();
    for name in ["../in/T.csv", "/etc/hostname", ".hidden", "manifest.json", "t1.sa.csv"] {
        stage.server.put("bucket/out/manifest.json", manifest.replace("t1.qi.csv", name));
        let said = stage.refusal(&mut stage.command(&["verify", "s3://bucket/out"]));
        assert!(said.contains("names a file twice, or one that is not in its folder"), "{name}: {said}");
    }
}
