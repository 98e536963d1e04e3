//! Every route, every preset, and everybody who may not: what foreign ids are answered with is what ids are answered with that
//! never were. The routes are those of `identity`, which a test holds equal to the document's.

use std::fs;
use std::time::Duration;

use chrono::Utc;
use guardian::config::{Auth, StoreOptions};
use guardian::identity::{Preset, Scope};
use guardian::service::keys::{ApiKeyAdmin, NewKey};
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use super::identity::{POLICY, ROUTES, Route, Things, call, renew, specification, tree};
use crate::support::harness::{Answer, Client, HOSPITAL, Server, hospital_method, text};
use crate::support::issuer::{Signer, claims, jwks, jwt_options};

/// A caller with the scopes of a preset.
struct Cast {
    preset: Preset,
    /// Of the tenant whose things there are, with a key and with a token.
    own: [Client; 2],
    /// Of another tenant, with a key and with a token.
    foreign: [Client; 2],
    /// Revoked and expired keys, and an expired token.
    dead: [Client; 3],
}

struct Stage {
    server: Server,
    casts: Vec<Cast>,
    /// A caller without a readable key.
    nobodies: Vec<Client>,
    _home: TempDir,
}

impl Stage {
    async fn set() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (data, file, signer) = (home.path().join("data"), home.path().join("jwks.json"), Signer::p256("k"));
        fs::write(&file, jwks(&[signer.jwk()])).unwrap();
        let ring = ApiKeyAdmin::open(&StoreOptions::default(), &data).await.unwrap();
        let draw = async |tenant: &str, preset: Preset, lifetime| {
            let (tenant, name) = (tenant.to_owned(), "test".to_owned());
            let wanted = NewKey { tenant, name, scopes: preset.scopes(), lifetime, populations: Vec::new() };
            let (key, token) = ring.create(wanted).await.unwrap();
            (key.id, token.reveal().to_string())
        };
        let mut tokens = Vec::new();
        for preset in Preset::ALL {
            let sign = |tenant: &str, end: i64| {
                let (scope, end) = (format!("preset:{}", preset.name()), Utc::now().timestamp() + end);
                signer.token(&claims(json!({"tenant": tenant, "scope": scope, "exp": end})))
            };
            let (id, revoked) = draw("default", preset, None).await;
            ring.revoke(id).await.unwrap().unwrap();
            let own = [draw("default", preset, None).await.1, sign("default", 3600)];
            let foreign = [draw("other", preset, Some(Duration::from_secs(3600))).await.1, sign("other", 3600)];
            let expired = draw("default", preset, Some(Duration::ZERO)).await.1;
            tokens.push((preset, own, foreign, [revoked, expired, sign("default", -3600)]));
        }
        ring.close().await;
        let jwt = jwt_options(&file);
        let server = Server::start_with(move |config| {
            (config.data, config.auth, config.jwt) = (data, Auth::KeysAndJwt, jwt);
        })
        .await;
        let client = |token: String| server.with_token(&token);
        let casts = tokens.into_iter().map(|(preset, own, foreign, dead)| Cast {
            preset,
            own: own.map(client),
            foreign: foreign.map(client),
            dead: dead.map(client),
        });
        let casts = casts.collect();
        let malformed = ["", "x", "gk_1_2", "gk_", "a.b.c", "undefined"];
        let nobodies =
            malformed.map(|token| server.with_token(token)).into_iter().chain([Client::new(server.base.clone())]);
        let nobodies = nobodies.collect();
        Self { server, casts, nobodies, _home: home }
    }

    fn cast(&self, wanted: Preset) -> &Cast {
        self.casts.iter().find(|cast| cast.preset == wanted).unwrap()
    }

    fn admin(&self) -> &Client {
        &self.cast(Preset::Admin).own[0]
    }

    async fn things(&self) -> Things {
        let dataset = self.admin().newcomers(HOSPITAL).await;
        let job = self.admin().job(&dataset, json!({"unlisted": "drop", "method": hospital_method()})).await.ok(200);
        self.admin().put(&format!("/v1/policies/{POLICY}"), &specification()).await.ok(201);
        self.admin().put(&format!("/v1/taxonomies/{POLICY}"), &tree("x")).await.ok(201);
        self.admin().put(&format!("/v1/populations/{POLICY}"), &json!({})).await.ok(201);
        Things { dataset, job: text(&job["id"]), release: text(&job["release"]) }
    }
}

/// Things that never were.
fn nowhere() -> Things {
    let id = || Uuid::now_v7().to_string();
    Things { dataset: id(), job: id(), release: id() }
}

/// An answer without its own ids and the ids of the requested resources.
fn normalized(status: u16, headers: &HeaderMap, body: &[u8], things: &Things) -> (u16, Vec<(String, String)>, String) {
    let mut headers: Vec<_> = headers
        .iter()
        .filter(|(name, _)| *name != "date" && *name != "x-request-id")
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    let mut body = String::from_utf8(body.to_vec()).unwrap();
    if let Some(at) = body.find("urn:uuid:") {
        body.replace_range(at..at + "urn:uuid:".len() + 36, "urn");
    }
    for id in [&things.dataset, &things.job, &things.release] {
        body = body.replace(id, "ID");
    }
    (status, headers, body)
}

fn normalized_answer(answer: &Answer, things: &Things) -> (u16, Vec<(String, String)>, String) {
    normalized(answer.status, &answer.headers, &answer.body, things)
}

/// Whether a key of the preset may call routes of the scope for the tables that it uploaded.
fn sees_own_tables(scope: Scope, preset: Preset) -> bool {
    scope == Scope::DatasetsInspect && preset == Preset::Pipeline
}

/// Whether a call of the route names a resource; uploads, statements and calculators name none.
fn names_a_thing(&(method, path, ..): &Route) -> bool {
    let of_nothing = matches!(path, "/v1/datasets" | "/v1/datasets/by-reference")
        || path.starts_with("/v1/analyses/")
        || path.ends_with("/disclosures");
    path.contains("{id}") || (method == "POST" && !of_nothing)
}

#[tokio::test(flavor = "multi_thread")]
async fn access_is_limited_to_scope_and_tenant() {
    let stage = Stage::set().await;
    let (mut things, never) = (stage.things().await, nowhere());
    for route in ROUTES {
        let &(method, path, scope, allowed, well, unknown_value) = route;
        let Some(scope) = scope else { continue };
        let what = |cast: &Cast| format!("{method} {path} {}", cast.preset.name());
        for cast in &stage.casts {
            // other tenants
            for client in &cast.foreign {
                let (real, none) =
                    (call(client, method, path, &things).await, call(client, method, path, &never).await);
                if allowed.contains(&cast.preset) || sees_own_tables(scope, cast.preset) {
                    assert_eq!(real.status, unknown_value, "{}: {}", what(cast), real.text());
                } else {
                    assert_eq!(real.problem(403, "forbidden")["scope"], scope.name(), "{}", what(cast));
                }
                if names_a_thing(route) {
                    assert!([403, 404].contains(&real.status), "{}", what(cast));
                    assert_eq!(normalized_answer(&real, &things), normalized_answer(&none, &never), "{}", what(cast));
                }
            }
            // those who could, once
            for client in &cast.dead {
                let (real, none) =
                    (call(client, method, path, &things).await, call(client, method, path, &never).await);
                real.problem(401, "unauthenticated");
                assert_eq!(normalized_answer(&real, &things), normalized_answer(&none, &never), "{}", what(cast));
            }
            // a token does what a key does; the walk in `identity` is with keys
            renew(stage.admin(), method, path, &mut things).await;
            let answer = call(&cast.own[1], method, path, &things).await;
            if allowed.contains(&cast.preset) {
                assert_eq!(answer.status, well, "{}: {}", what(cast), answer.text());
            } else {
                assert_eq!(answer.problem(403, "forbidden")["scope"], scope.name(), "{}", what(cast));
                if sees_own_tables(scope, cast.preset) {
                    // who uploads may list datasets, and so knows which there are
                    continue;
                }
                let none = call(&cast.own[1], method, path, &never).await;
                assert_eq!(normalized_answer(&answer, &things), normalized_answer(&none, &never), "{}", what(cast));
            }
            renew(stage.admin(), method, path, &mut things).await;
        }
        for unauthenticated in &stage.nobodies {
            let (real, none) =
                (call(unauthenticated, method, path, &things).await, call(unauthenticated, method, path, &never).await);
            real.problem(401, "unauthenticated");
            assert_eq!(normalized_answer(&real, &things), normalized_answer(&none, &never), "{method} {path}");
        }
    }
    // and all of that left the things where they are
    stage.admin().get(&format!("/v1/releases/{}", things.release)).await.ok(200);
    stage.server.stop().await;
}

fn filled(path: &str, things: &Things) -> String {
    let id = match path.split('/').nth(2) {
        Some("datasets") => &things.dataset,
        Some("jobs") => &things.job,
        _ => &things.release,
    };
    path.replace("{id}", id)
        .replace("{table}", "t1")
        .replace("{part}", "qi")
        .replace("attributes/{name}", "attributes/race")
}

async fn ask(client: &Client, method: &Method, path: &str, things: &Things) -> (u16, Vec<(String, String)>, String) {
    let answer = client.request(method.clone(), &filled(path, things)).send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    normalized(status, &headers, &answer.bytes().await.unwrap(), things)
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_reveal_no_existence() {
    let stage = Stage::set().await;
    let (things, never) = (stage.things().await, nowhere());
    let others = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];
    let (own, foreign) = (stage.admin(), &stage.cast(Preset::Admin).foreign[0]);
    let callers = [own, foreign, &stage.nobodies[0], &*stage.server];
    for &(_, path, ..) in ROUTES {
        let known = |method: &str| ROUTES.iter().any(|(of, route, ..)| *of == method && *route == path);
        for method in others.iter().filter(|method| !known(method)) {
            let method: Method = method.parse().unwrap();
            for client in callers {
                let real = ask(client, &method, path, &things).await;
                assert_eq!(real.0, 405, "{method} {path}");
                assert_eq!(real, ask(client, &method, path, &never).await, "{method} {path}");
            }
        }
        // HEAD is GET without a body
        for client in [foreign, &stage.nobodies[0], &*stage.server] {
            let (real, none) =
                (ask(client, &Method::HEAD, path, &things).await, ask(client, &Method::HEAD, path, &never).await);
            if known("GET") {
                let get = ask(client, &Method::GET, path, &never).await;
                assert_eq!(none.0, get.0, "{path}");
                assert_eq!(real.0, none.0, "{path}");
                assert_eq!(real.2, "", "{path}");
            } else {
                assert_eq!(real.0, 405, "{path}");
            }
            assert_eq!(real, none, "{path}");
        }
        // unauthenticated callers learn nothing about unread bodies or accepted types
        let odd = async |client: &Client, things: &Things| {
            let request = client.request(Method::POST, &filled(path, things));
            client.send(request.header("content-type", "text/html").body("<")).await
        };
        if known("POST") {
            for unauthenticated in &stage.nobodies {
                odd(unauthenticated, &things).await.problem(401, "unauthenticated");
            }
            odd(&stage.cast(Preset::Operator).own[0], &things).await.problem(403, "forbidden");
        }
    }
    stage.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_release_is_there_for_approvers_alone() {
    let stage = Stage::set().await;
    let dataset = stage.admin().dataset(HOSPITAL).await;
    let job = stage.admin().job(&dataset, json!({"hold": true, "method": hospital_method()})).await.ok(200);
    let (mut things, never) = (nowhere(), nowhere());
    things.release = text(&job["release"]);
    let views = ROUTES.iter().filter(|(method, path, ..)| *method == "GET" && path.starts_with("/v1/releases/{id}"));
    for (method, path, _, _, of_approver, _) in views {
        for cast in &stage.casts {
            let may = |scope| cast.preset.scopes().contains(scope);
            for client in &cast.own {
                let (real, none) =
                    (call(client, method, path, &things).await, call(client, method, path, &never).await);
                // what became of it is for approvers, whatever its status
                let reads = may(match path.rsplit('/').next() {
                    Some("history") => Scope::ReleasesApprove,
                    Some("internal-report") => Scope::ReleasesInternal,
                    _ => Scope::ReleasesRead,
                });
                match (reads, may(Scope::ReleasesApprove)) {
                    (true, true) => assert_eq!(real.status, *of_approver, "{path}: {}", real.text()),
                    (true, false) => drop(real.problem(404, "not-found")),
                    (false, _) => drop(real.problem(403, "forbidden")),
                }
                if !(reads && may(Scope::ReleasesApprove)) {
                    assert_eq!(
                        normalized_answer(&real, &things),
                        normalized_answer(&none, &never),
                        "{path} {}",
                        cast.preset.name()
                    );
                }
            }
        }
    }
    for cast in stage.casts.iter().filter(|cast| cast.preset.scopes().contains(Scope::ReleasesRead)) {
        let listed = cast.own[0].items("/v1/releases").await.len();
        let seen = usize::from(cast.preset.scopes().contains(Scope::ReleasesApprove));
        assert_eq!(listed, seen, "{}", cast.preset.name());
    }
    stage.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schemes_and_shapes_of_the_header() {
    let stage = Stage::set().await;
    let token = {
        let request = stage.admin().request(Method::GET, "/").build().unwrap();
        request.headers()[AUTHORIZATION].to_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned()
    };
    let status = async |header: &str| {
        let request = stage.server.request(Method::GET, "/v1/releases").header(AUTHORIZATION, header);
        stage.server.send(request).await.status
    };
    for good in [format!("Bearer {token}"), format!("bearer {token}"), format!("BEARER  {token} ")] {
        assert_eq!(status(&good).await, 200, "a scheme has no case");
    }
    for odd in [
        token.clone(),
        format!("Bearer{token}"),
        format!("Bearer:{token}"),
        format!("Basic {token}"),
        format!("Bearer Bearer {token}"),
        format!("Bearer {token},{token}"),
        format!("Bearer {token} x"),
        format!("Bearer \"{token}\""),
        "Bearer".to_owned(),
        format!("Token {token}"),
        format!("DPoP {token}"),
    ] {
        assert_eq!(status(&odd).await, 401);
    }
    stage.server.stop().await;
}
