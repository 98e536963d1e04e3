//! The service behind the real nginx, with the configuration of the container.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::harness::{Client, HOSPITAL, Process, hospital_method, kind, run, text};

/// Generous: a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A header that sends no key.
const ANONYMOUS: &str = "Authorization:";

fn nginx() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]).map(|folder| folder.join("nginx"));
    let found = found.into_iter().find(|program| program.is_file());
    if found.is_none() {
        assert!(std::env::var("CI").is_err(), "no nginx here");
        println!("SKIPPED: no nginx here");
    }
    found
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// nginx before a service. Killed when dropped.
struct Gateway {
    child: Child,
    home: TempDir,
    plain: u16,
    tls: u16,
    token: String,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // it may have ended already; a fast shutdown takes its workers along
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

/// What curl was answered.
struct Answered {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.headers.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next_back()
    }
}

impl Gateway {
    /// The configuration of the container, at other places.
    fn start(program: &Path, service: &Client, token: &str) -> Self {
        Self::before(program, service.authority(), token, &[])
    }

    /// The same, with other changes.
    fn before(program: &Path, service: &str, token: &str, changes: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
        let made = run(Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args([
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout",
                &at("tls.key"),
                "-out",
                &at("tls.crt"),
            ]));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        fs::create_dir(home.path().join("cache")).unwrap();

        let (plain, tls) = (free_port(), free_port());
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut conf = fs::read_to_string(root.join("docker/nginx.conf")).unwrap();
        for (from, to) in [
            ("/run/nginx.pid", at("nginx.pid")),
            ("/var/cache/nginx", at("cache")),
            ("access_log /dev/stdout", format!("access_log {}", at("access.log"))),
            ("listen 8080;", format!("listen 127.0.0.1:{plain};")),
            ("listen 8443 ssl;", format!("listen 127.0.0.1:{tls} ssl;")),
            ("/run/secrets/tls_certificate", at("tls.crt")),
            ("/run/secrets/tls_key", at("tls.key")),
            ("serve:8080", service.split('/').next().unwrap().to_owned()),
        ]
        .into_iter()
        .chain(changes.iter().map(|(from, to)| (*from, (*to).to_owned())))
        {
            assert!(conf.contains(from), "{from}");
            conf = conf.replace(from, &to);
        }
        fs::write(home.path().join("nginx.conf"), conf).unwrap();
        // workers of root run as another user, who may not enter the folder
        let id = String::from_utf8(run(Command::new("id").arg("-u")).stdout).unwrap();
        let directives = if id.trim() == "0" { "daemon off; user root;" } else { "daemon off;" };
        let child = Command::new(program)
            .args(["-e", &at("error.log"), "-c", &at("nginx.conf"), "-g", directives])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let gateway = Self { child, home, plain, tls, token: token.to_owned() };
        gateway.until("the gateway to answer", || gateway.curl("GET", "/guardian/healthz", &[]).status == 200);
        gateway
    }

    fn base(&self) -> String {
        format!("https://localhost:{}", self.tls)
    }

    fn command(&self, method: &str, url: &str, options: &[&str]) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--noproxy", "*", "--cacert", self.home.path().join("tls.crt").to_str().unwrap()]);
        curl.args(["--request", method]);
        if !options.contains(&ANONYMOUS) {
            curl.args(["--header", &format!("Authorization: Bearer {}", self.token)]);
        }
        curl.args(options).arg(url);
        curl
    }

    /// A request through the gateway.
    fn curl(&self, method: &str, path: &str, options: &[&str]) -> Answered {
        self.curl_at(&format!("{}{path}", self.base()), method, options)
    }

    fn curl_at(&self, url: &str, method: &str, options: &[&str]) -> Answered {
        let (headers, body) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let mut curl = self.command(method, url, options);
        curl.arg("--dump-header").arg(headers.path()).arg("--output").arg(body.path());
        curl.args(["--write-out", "%{http_code}"]).stdin(Stdio::null());
        let status = String::from_utf8(run(&mut curl).stdout).unwrap();
        Answered {
            status: status.parse().unwrap_or(0),
            headers: fs::read_to_string(headers.path()).unwrap(),
            body: fs::read(body.path()).unwrap(),
        }
    }

    #[track_caller]
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds() {
            let log = fs::read_to_string(self.home.path().join("error.log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "waited in vain for {what}: {log}");
            std::thread::yield_now();
        }
    }

    /// What the gateway wrote to its folder of temporary files.
    fn spooled(&self) -> usize {
        let mut folders = vec![self.home.path().join("cache")];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { files += 1 }
            }
        }
        files
    }
}

/// A service as the containers run it, and the token of a key that may do everything.
fn served(home: &TempDir, options: &[&str]) -> (Process, String) {
    let file = home.path().join("first.key");
    let mut all = vec!["--listen", "127.0.0.1:0", "--auth", "keys", "--bootstrap-key-file", file.to_str().unwrap()];
    all.extend(["--path-prefix", "/guardian", "--trust-forwarded", "--log-format", "json"]);
    all.extend(options);
    let process = Process::serve_with(&home.path().join("data"), "info", &all);
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    (process, token)
}

fn post(document: &str) -> Vec<&str> {
    vec!["--header", "Content-Type: application/json", "--data-binary", document]
}

fn upload(gateway: &Gateway, csv: &str) -> Answered {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), csv).unwrap();
    let body = format!("@{}", file.path().display());
    gateway.curl("POST", "/guardian/v1/datasets", &["--header", "Content-Type: text/csv", "--data-binary", &body])
}

/// Rows of which none repeats another, about 50 MB of them.
fn big_table() -> String {
    let mut csv = String::from("age,clinic,remark\n");
    let filler = "x".repeat(80);
    for row in 0..600_000_u32 {
        csv.push_str(&format!("{},{},{filler}{}\n", row % 90, row % 7, row % 11));
    }
    assert!(csv.len() > 50_000_000);
    csv
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_lead_on_through_the_gateway() {
    let Some(program) = nginx() else { return };
    let home = tempfile::tempdir().unwrap();
    let (mut process, token) = served(&home, &["--metrics-listen", "127.0.0.1:0"]);
    let gateway = Gateway::start(&program, &process, &token);

    let dataset = upload(&gateway, HOSPITAL);
    assert_eq!(dataset.status, 201, "{}", String::from_utf8_lossy(&dataset.body));
    let location = dataset.header("location").unwrap().to_owned();
    assert!(location.starts_with("/guardian/v1/datasets/"), "{location}");
    let mut read = gateway.curl("GET", &location, &[]).json();
    // the uploader alone is warned
    read["warnings"] = dataset.json()["warnings"].clone();
    assert_eq!(read, dataset.json());
    let document = json!({"dataset": dataset.json()["id"], "method": hospital_method()}).to_string();
    let job = gateway.curl("POST", "/guardian/v1/jobs?wait=60", &post(&document));
    assert_eq!(job.status, 200, "{}", String::from_utf8_lossy(&job.body));
    assert!(job.header("location").unwrap().starts_with("/guardian/v1/jobs/"));
    for (name, link) in job.json()["links"].as_object().unwrap() {
        let followed = gateway.curl("GET", &text(link), &[]);
        assert!(text(link).starts_with("/guardian/") && followed.status == 200, "{name}: {link} {}", followed.status);
    }
    let served = gateway.curl("GET", "/guardian/openapi.json", &[]).json();
    assert_eq!(served["servers"][0]["url"], "/guardian");
    assert_eq!(gateway.curl("GET", "/guardian/docs/", &[]).status, 200);

    // text is compressed on its way when asked for, and what is compressed already is not
    let part = format!("{}/tables/t1/parts/qi", text(&job.json()["links"]["release"]));
    for format in ["parquet", "arrow"] {
        let answer = gateway.curl("GET", &format!("{part}?format={format}"), &["--header", "Accept-Encoding: gzip"]);
        assert_eq!((answer.status, answer.header("content-encoding")), (200, None), "{format}");
    }
    let document = gateway.curl("GET", "/guardian/openapi.json", &["--header", "Accept-Encoding: gzip"]);
    assert_eq!(document.header("content-encoding"), Some("gzip"));

    // the caller's name for a request is kept, on both sides
    let named = gateway.curl("GET", "/guardian/v1/jobs", &["--header", "X-Request-Id: nightly-7"]);
    assert_eq!((named.status, named.header("x-request-id")), (200, Some("nightly-7")));
    assert!(gateway.curl("GET", "/guardian/v1/jobs", &[]).header("x-request-id").is_some_and(|id| id.len() >= 32));
    assert_eq!(named.header("strict-transport-security"), Some("max-age=31536000"));
    assert_eq!(named.header("server"), Some("nginx"), "no version is revealed");

    for inside in ["/metrics", "/guardian/metrics", "/guardian/metrics/", "/v1/jobs", "/"] {
        assert_eq!(gateway.curl("GET", inside, &[]).status, 404, "{inside}");
    }
    let plain = format!("http://localhost:{}/guardian/v1/jobs?limit=1", gateway.plain);
    let redirected = gateway.curl_at(&plain, "POST", &[]);
    assert_eq!(
        (redirected.status, redirected.header("location")),
        (308, Some("https://localhost/guardian/v1/jobs?limit=1"))
    );
    let old = gateway.command("GET", &gateway.base(), &["--tls-max", "1.1", "--output", "/dev/null"]).status().unwrap();
    assert!(!old.success(), "TLS 1.1 is spoken");

    // what a gateway says of itself is a problem document too
    assert!(process.terminate().success());
    let away = gateway.curl("GET", "/guardian/v1/jobs", &[]);
    assert_eq!((away.status, kind(&away.json())), (503, "unavailable"));
    assert_eq!(
        (away.header("content-type"), away.header("retry-after")),
        (Some("application/problem+json"), Some("5"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn forwarded_headers_of_callers_are_ignored() {
    let Some(program) = nginx() else { return };
    let home = tempfile::tempdir().unwrap();
    let (process, token) = served(&home, &[]);
    let gateway = Gateway::start(&program, &process, &token);
    let claims = [
        "X-Forwarded-For: 203.0.113.7",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Proto: http",
        "X-Forwarded-Prefix: /evil",
        "Forwarded: for=203.0.113.7;host=evil.example",
    ];
    let claimed: Vec<&str> = claims.iter().flat_map(|claim| ["--header", *claim]).collect();
    let dataset = text(&upload(&gateway, HOSPITAL).json()["id"]);
    let document = json!({"dataset": dataset, "method": hospital_method()}).to_string();
    let job = gateway.curl("POST", "/guardian/v1/jobs?wait=60", &[post(&document), claimed.clone()].concat());
    assert_eq!(job.status, 200);
    let job_answer = format!("{}{}", job.headers, String::from_utf8_lossy(&job.body));
    assert!(job_answer.contains("/guardian/v1/jobs/") && !job_answer.contains("evil"), "{job_answer}");
    assert!(!process.log().contains("203.0.113.7"), "the log believes the caller");
    assert!(process.log().contains("127.0.0.1"), "the log names the caller");

    // a page of another origin does not become one of ours by saying so
    let origin = ["--header", "Origin: https://evil.example", "--header", ANONYMOUS];
    let page = gateway.curl("GET", "/guardian/v1/jobs", &[&claimed[..], &origin[..]].concat());
    assert_eq!((page.status, kind(&page.json())), (403, "foreign-origin"));
    let own = format!("Origin: {}", gateway.base());
    let page = gateway.curl("GET", "/guardian/v1/jobs", &["--header", &own, "--header", ANONYMOUS]);
    assert_eq!((page.status, kind(&page.json())), (401, "unauthenticated"), "our own pages may ask");
}

/// A request whose body is written bit by bit.
struct Slow {
    child: Child,
    body: Option<ChildStdin>,
}

impl Slow {
    fn upload(gateway: &Gateway) -> Self {
        let url = format!("{}/guardian/v1/datasets", gateway.base());
        let options = ["--header", "Content-Type: text/csv", "--upload-file", "-", "--write-out", "\n%{http_code}"];
        let mut curl = gateway.command("POST", &url, &options);
        let mut child = curl.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let body = child.stdin.take();
        Self { child, body }
    }

    fn send(&mut self, piece: &str) {
        self.body.as_mut().unwrap().write_all(piece.as_bytes()).unwrap();
    }

    /// The answer, after the end of the body.
    fn end(mut self) -> (String, Value) {
        drop(self.body.take());
        let mut said = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        let (body, status) = said.rsplit_once('\n').unwrap();
        (status.to_owned(), serde_json::from_str(body).unwrap_or_default())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_and_events_pass_through_as_they_come() {
    let Some(program) = nginx() else { return };
    let home = tempfile::tempdir().unwrap();
    let (process, token) = served(&home, &["--max-uploads", "1"]);
    let gateway = Gateway::start(&program, &process, &token);
    let table = big_table();
    let half = table[..table.len() / 2].rfind('\n').unwrap() + 1;

    let mut slow = Slow::upload(&gateway);
    slow.send(&table[..half]);
    // the service is at it before the body has ended: it has no place for another upload
    gateway.until("the upload to reach the service", || upload(&gateway, "a\n1\n").status == 429);
    slow.send(&table[half..]);
    let (status, dataset) = slow.end();
    assert_eq!((status.as_str(), &dataset["rows"]), ("201", &json!(600_000)), "{dataset}");
    assert_eq!(dataset["bytes"], table.len());
    assert_eq!(gateway.spooled(), 0, "a part of the upload was written to disk");

    // one worker is busy with the big table, so that the second job waits
    let publish = |column: &str| json!({"publish": column != "remark", "drop": column == "remark"});
    let columns: serde_json::Map<_, _> =
        ["age", "clinic", "remark"].into_iter().map(|column| (column.to_owned(), publish(column))).collect();
    let document = json!({"dataset": dataset["id"], "attributes": columns, "no_rules_reason": "nobody is in this table",
        "method": {"type": "versatile", "rules": []}});
    let busy = gateway.curl("POST", "/guardian/v1/jobs", &post(&document.to_string()));
    assert_eq!(busy.status, 202);
    let mut other = document.clone();
    other["attributes"]["clinic"] = json!({"drop": true});
    let waiting = gateway.curl("POST", "/guardian/v1/jobs", &post(&other.to_string())).json();

    let url = format!("{}{}", gateway.base(), text(&waiting["links"]["events"]));
    let mut stream = gateway.command("GET", &url, &["--no-buffer"]);
    let mut stream = stream.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(stream.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut next = || -> Option<Value> {
        let data = lines.find_map(|line| line.strip_prefix("data:").map(str::to_owned))?;
        Some(serde_json::from_str(&data).unwrap())
    };
    // the first event arrives before the others exist
    assert_eq!(next().unwrap()["status"], "queued");
    let cancelled = gateway.curl("DELETE", &text(&waiting["links"]["self"]), &[]);
    assert_eq!(cancelled.status, 202, "{}", String::from_utf8_lossy(&cancelled.body));
    let mut last = Value::Null;
    while let Some(event) = next() {
        last = event;
    }
    assert_eq!(last["status"], "cancelled", "the stream has ended with the job");
    assert!(stream.wait().unwrap().success());

    // a large answer is not kept on the way either
    let done = gateway.curl("GET", &format!("{}?wait=60", text(&busy.json()["links"]["self"])), &[]).json();
    if done["status"] == "succeeded" {
        let part = format!("{}/tables/t1/parts/rows", text(&done["links"]["release"]));
        assert_eq!(gateway.curl("GET", &part, &[]).status, 200);
        assert_eq!(gateway.spooled(), 0);
    }
}

/// A service that takes three seconds for everything but its health; its address.
fn slow_service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let head = BufReader::new(&stream).lines().map_while(Result::ok).next().unwrap_or_default();
                if !head.contains("/healthz") {
                    std::thread::sleep(Duration::from_secs(3));
                }
                // the gateway may have gone
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            });
        }
    });
    address
}

#[test]
fn answers_to_uploads_may_take_their_time() {
    let Some(program) = nginx() else { return };
    let impatient = [("proxy_read_timeout 300s;", "proxy_read_timeout 1s;")];
    let gateway = Gateway::before(&program, &slow_service(), "none", &impatient);
    assert_eq!(gateway.curl("GET", "/guardian/v1/datasets/1", &[]).status, 503);
    assert_eq!(gateway.curl("POST", "/guardian/v1/datasets?name=large", &["--data", ""]).status, 200);
}
