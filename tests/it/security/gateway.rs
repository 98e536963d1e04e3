//! Behind a gateway: one that passes the prefix of paths on, one that takes it off, and callers who only say that they are one.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::harness::{Answer, Client, HOSPITAL, Process, Server, guardian, hospital_method, run, text};

/// Every link of a document: members of `links`, wherever they stand.
fn links(document: &Value, found: &mut Vec<String>) {
    match document {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::Object(linked) if name == "links" => {
                        found.extend(linked.values().filter_map(Value::as_str).map(str::to_owned));
                    }
                    other => links(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| links(item, found)),
        _ => {}
    }
}

/// A client on the public side: where the gateway finds the service, and what it does with paths and headers.
struct Public<'s> {
    service: &'s Client,
    /// What the public puts before every path.
    prefix: &'static str,
    strips: bool,
}

impl Public<'_> {
    /// A path of the public.
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let inner = path.strip_prefix(self.prefix).unwrap_or_else(|| panic!("{path} leads out of {}", self.prefix));
        let request = if self.strips {
            self.service.request(method, inner).header("x-forwarded-prefix", self.prefix)
        } else {
            self.service.request(method, path)
        };
        let request = if let Some(body) = body { request.json(&body) } else { request };
        self.service.send(request).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None).await
    }

    /// Every link and `Location` of every answer leads on; the OpenAPI document and Swagger UI are found.
    async fn assert_links(&self, dataset_path: &str) {
        let Self { prefix, .. } = self;
        let dataset = self.get(dataset_path).await.ok(200);
        let document = json!({"dataset": dataset["id"], "method": hospital_method()});
        let submitted = self.call(Method::POST, &format!("{prefix}/v1/jobs?wait=60"), Some(document)).await;
        let job = submitted.ok(200);
        let mut found = vec![submitted.header("location").to_owned()];
        links(&job, &mut found);
        links(&self.get(&format!("{prefix}/v1/jobs")).await.ok(200), &mut found);
        let events = self.get(&text(&job["links"]["events"])).await.text();
        let event_data = events.lines().find_map(|line| line.strip_prefix("data:")).unwrap();
        links(&serde_json::from_str(event_data.trim()).unwrap(), &mut found);
        assert!(found.len() >= 10, "{found:?}");
        for link in &found {
            assert_eq!(self.get(link).await.status, 200, "{link}");
        }
        // a next page, as one follows it
        let page = format!("{prefix}/v1/datasets?limit=1");
        let next = text(&self.get(&page).await.ok(200)["next"]);
        self.get(&format!("{page}&cursor={next}")).await.ok(200);

        let openapi = self.get(&format!("{prefix}/openapi.json")).await.ok(200);
        assert_eq!(openapi["servers"], json!([{"url": prefix}]));
        let docs = self.get(&format!("{prefix}/docs/")).await.text();
        let initializer = self.get(&format!("{prefix}/docs/swagger-initializer.js")).await.text();
        assert!(initializer.contains("\"../openapi.json\""), "{initializer}");
        let assets = docs.split(['"', '\'']).filter(|piece| piece.starts_with("./"));
        let assets: Vec<&str> = assets.collect();
        assert!(assets.len() >= 4, "{docs}");
        for asset in assets {
            assert_eq!(self.get(&format!("{prefix}/docs/{}", &asset[2..])).await.status, 200, "{asset}");
        }
        // the headers of /docs
        let plain = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let inner = if self.strips { "/docs".to_owned() } else { format!("{prefix}/docs") };
        let mut request = plain.get(format!("{}{inner}", self.service.base));
        if self.strips {
            request = request.header("x-forwarded-prefix", *prefix);
        }
        let led = request.send().await.unwrap();
        assert_eq!(led.headers()["location"], format!("{prefix}/docs/"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_on_behind_a_gateway_that_passes_the_prefix() {
    let server = Server::start_with(|config| config.path_prefix = "/apps/guardian/".into()).await;
    let public = Public { service: &server, prefix: "/apps/guardian", strips: false };
    let mut uploaded = String::new();
    for name in ["a", "b"] {
        let path = format!("/apps/guardian/v1/datasets?name={name}");
        let answer = server.send(server.request(Method::POST, &path).header("content-type", "text/csv").body(HOSPITAL));
        let answer = answer.await;
        answer.ok(201);
        uploaded = answer.header("location").to_owned();
    }
    public.assert_links(&uploaded).await;
    // nothing but health is served beside the prefix
    for path in ["/v1/datasets", "/docs", "/openapi.json", "/", "/apps", "/apps/guardians/v1/datasets"] {
        server.get(path).await.problem(404, "not-found");
    }
    for path in ["/healthz", "/readyz", "/apps/guardian/healthz"] {
        server.get(path).await.ok(200);
    }
    // not trusted: what a caller says of a prefix is nothing
    let request = server.request(Method::GET, "/apps/guardian/v1/jobs").header("x-forwarded-prefix", "/evil");
    assert!(!server.send(request).await.text().contains("evil"));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_on_behind_a_gateway_that_takes_the_prefix_off() {
    let server = Server::start_with(|config| config.trust_forwarded = true).await;
    let public = Public { service: &server, prefix: "/guardian", strips: true };
    server.dataset(HOSPITAL).await;
    let request = server.request(Method::POST, "/v1/datasets").header("x-forwarded-prefix", "/guardian");
    let uploaded = server.send(request.header("content-type", "text/csv").body(HOSPITAL)).await;
    uploaded.ok(201);
    public.assert_links(uploaded.header("location")).await;
    // what is no plain prefix is passed over
    for prefix in ["//evil.com", "/../x", "evil", "/a?b", "https://evil.com", "/a/%2e%2e", "/evil, /evil"] {
        let request = server.request(Method::GET, "/v1/jobs").header("x-forwarded-prefix", prefix);
        let mut found = Vec::new();
        links(&server.send(request).await.ok(200), &mut found);
        assert!(!found.is_empty() && found.iter().all(|link| link.starts_with("/v1/")), "{prefix}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_trust_nothing_forwarded_counts() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let request = server.request(Method::POST, "/v1/jobs?wait=60").header("x-forwarded-prefix", "/guardian");
    let request = request.header("x-forwarded-host", "evil.com").header("x-forwarded-proto", "https");
    let request = request.header("x-forwarded-for", "203.0.113.9");
    let answer = server.send(request.json(&json!({"dataset": dataset, "method": hospital_method()}))).await;
    let job = answer.ok(200);
    assert_eq!(answer.header("location"), format!("/v1/jobs/{}", text(&job["id"])));
    let mut found = Vec::new();
    links(&job, &mut found);
    assert_eq!(found.len(), 3);
    for link in found {
        assert!(link.starts_with("/v1/"), "{link}");
    }
    let document = server.get("/openapi.json").await.ok(200);
    assert_eq!(document["servers"], json!([{"url": "/", "description": "This service"}]));
}

#[test]
fn a_malformed_prefix_is_refused_at_the_start() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    for prefix in ["//evil.com", "/a\r\nX-Evil: 1", "../", "/../a", "guardian", "/a//b", "/a?b"] {
        let mut command = guardian();
        command.args(["serve", "--listen", "127.0.0.1:0", "--path-prefix", prefix, "--data"]).arg(&data);
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(2), "{prefix:?}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("--path-prefix"), "{prefix:?}");
    }
    assert!(!data.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_security_and_cache_headers() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let manifest = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let release = format!("/v1/releases/{}", text(&manifest["id"]));
    let part = format!("{release}/tables/t1/parts/qi");
    for (path, cache) in [
        ("/v1/datasets", "no-store"),
        (release.as_str(), "no-store"),
        (part.as_str(), "private, no-cache"),
        (&format!("{release}/archive"), "private, no-cache"),
        ("/healthz", "no-store"),
        ("/nowhere", "no-store"),
        ("/docs/", "private, max-age=3600"),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("cache-control"), cache, "{path}");
        assert!(!answer.headers.contains_key("server"), "{path}");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
    }
    let etag = server.get(&part).await.header("etag").to_owned();
    let request = server.request(Method::GET, &part).header("if-none-match", etag);
    assert_eq!(server.send(request).await.status, 304);
    // Swagger UI runs under its policy: scripts of its own and nothing written into the page
    let docs = server.get("/docs/").await;
    assert!(docs.header("content-security-policy").contains("script-src 'self';"));
    for script in docs.text().split("<script").skip(1) {
        let (attributes, rest) = script.split_once('>').unwrap();
        assert!(attributes.contains("src=") && rest.trim_start().starts_with("</script>"), "{script}");
    }
    assert!(!docs.text().contains("http://") && !docs.text().contains("https://"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_process_is_not_ready_and_still_serves() {
    let home = tempfile::tempdir().unwrap();
    let options = ["--listen", "127.0.0.1:0", "--drain-seconds", "600"];
    let mut process = Process::serve_with(&home.path().join("data"), "info", &options);
    process.dataset(HOSPITAL).await;
    let asked = |url: String| run(guardian().args(["healthcheck", "--url", &url])).status.code();
    assert_eq!(asked(process.base.clone()), Some(0));
    process.send_stop_signal();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    // until the signal has arrived
    let refused = loop {
        let answer = http.get(format!("{}/readyz", process.base)).send().await.unwrap();
        if answer.status() == 503 {
            break answer;
        }
    };
    assert!(refused.headers()["retry-after"].to_str().unwrap().parse::<u32>().is_ok());
    let problem: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(crate::support::harness::kind(&problem), "unavailable");
    process.get("/healthz").await.ok(200);
    assert_eq!(process.items("/v1/datasets").await.len(), 1);
    process.dataset(HOSPITAL).await;
    assert_eq!(asked(process.base.clone()), Some(1));
    let base = process.base.clone();
    process.kill();
    assert_eq!(asked(base), Some(1), "nobody answers");
    for url in ["https://127.0.0.1:1", "127.0.0.1:1", "http://me@127.0.0.1:1", "http://"] {
        assert_eq!(asked(url.to_owned()), Some(2), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_another_version_are_not_ready() {
    use sqlx::{ConnectOptions, Connection};

    let server = Server::start().await;
    let router = server.router();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(server.data().join("guardian.db"));
    let mut connection = options.connect().await.unwrap();
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9000, 'later', TRUE, x'', 0)";
    sqlx::query(later).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let request = axum::http::Request::builder().uri("/readyz").header("host", "localhost");
    let request = request.body(axum::body::Body::empty()).unwrap();
    let answer = tower::ServiceExt::oneshot(router, request).await.unwrap();
    assert_eq!(answer.status(), 503);
    server.get("/healthz").await.ok(200);
}
