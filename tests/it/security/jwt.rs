//! Tokens of an issuer: which open what, and that all others are answered alike. Keys are drawn for each test.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use guardian::config::Auth;
use guardian::identity::{Actor, Issuer, JwtRules, Preset, TokenError};
use guardian::ports::ApiKeyStore;
use guardian::store::sqlite::SqliteStore;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::Method;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::harness::{Answer, Client, HOSPITAL, Process, Server, guardian, hospital_method, run, text};
use crate::support::issuer::{AUDIENCE, ISSUER, Signer, claims, claims_at, jwks, jwt_options};

/// A service that takes the tokens of an issuer.
struct Gated {
    server: Server,
    file: PathBuf,
    _home: TempDir,
}

impl Gated {
    async fn start(auth: Auth, keys: &[Value]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("jwks.json");
        fs::write(&file, jwks(keys)).unwrap();
        let jwt = jwt_options(&file);
        let server = Server::start_with(move |config| (config.auth, config.jwt) = (auth, jwt)).await;
        Self { server, file, _home: home }
    }

    fn with(&self, token: &str) -> Client {
        self.server.with_token(token)
    }

    async fn status(&self, token: &str) -> u16 {
        self.with(token).get("/v1/releases").await.status
    }
}

/// An issuer's file, and a clock of the test's own.
struct Rules {
    file: PathBuf,
    issuer: Issuer,
    _home: TempDir,
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap() + TimeDelta::seconds(seconds)
}

impl Rules {
    fn of(keys: &[Value]) -> Self {
        Self::named(keys, "tenant")
    }

    fn named(keys: &[Value], tenant_claim: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("jwks.json");
        fs::write(&file, jwks(keys)).unwrap();
        let (issuer, audience) = (ISSUER.to_owned(), AUDIENCE.to_owned());
        let rules = JwtRules { issuer, audience, tenant_claim: tenant_claim.to_owned() };
        let issuer = Issuer::open(rules, &file, at(0)).unwrap();
        Self { file, issuer, _home: home }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_all_algorithms_grant_their_scopes() {
    use Algorithm as A;
    let rsa = Signer::rsa("rsa", A::RS256);
    let mut signers = vec![Signer::p256("es256"), Signer::p384("es384"), Signer::ed25519("ed")];
    for (kid, algorithm) in [
        ("rs256", A::RS256),
        ("rs384", A::RS384),
        ("rs512", A::RS512),
        ("ps256", A::PS256),
        ("ps384", A::PS384),
        ("ps512", A::PS512),
    ] {
        signers.push(Signer { kid, algorithm, key: rsa.key.clone() });
    }
    let gated = Gated::start(Auth::Jwt, &signers.iter().map(Signer::jwk).collect::<Vec<_>>()).await;
    for signer in &signers {
        let client = gated.with(&signer.token(&claims(json!({"scope": "releases:read"}))));
        client.get("/v1/releases").await.ok(200);
        let refused = client.get("/v1/datasets").await;
        assert_eq!(refused.problem(403, "forbidden")["scope"], "datasets:write", "{}", signer.kid);
        let challenge = "Bearer realm=\"guardian\", error=\"insufficient_scope\", scope=\"datasets:write\"";
        assert_eq!(refused.header("www-authenticate"), challenge);
    }
    let signer = &signers[0];
    for (change, status) in [
        (json!({"scope": null}), 403),
        (json!({"scope": null, "scp": ["releases:read"]}), 200),
        (json!({"scope": "preset:analyst"}), 200),
        (json!({"scope": "preset:operator RELEASES:READ admin *"}), 403),
        (json!({"aud": ["other", AUDIENCE]}), 200),
        // a tenant of whom there is nothing is a tenant
        (json!({"tenant": "nobody"}), 200),
        (json!({"sub": "x".repeat(255)}), 200),
    ] {
        assert_eq!(gated.status(&signer.token(&claims(change.clone()))).await, status, "{change}");
    }
    gated.server.stop().await;
}

fn without_occurrence(answer: &Answer) -> Value {
    let mut document = answer.json();
    document["instance"] = Value::Null;
    document
}

fn tampered(token: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut pieces: Vec<String> = token.split('.').map(str::to_owned).collect();
    let mut claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&pieces[1]).unwrap()).unwrap();
    change(&mut claims);
    pieces[1] = URL_SAFE_NO_PAD.encode(claims.to_string());
    pieces.join(".")
}

/// A token with a given header, signed by `sign` or unsigned.
fn by_hand(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> String) -> String {
    let message = [header, claims].map(|piece| URL_SAFE_NO_PAD.encode(piece.to_string())).join(".");
    let signature = sign(message.as_bytes());
    format!("{message}.{signature}")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_token_is_answered_alike() {
    let (rsa, ed, unknown_value) = (Signer::rsa("rsa", Algorithm::RS256), Signer::ed25519("ed"), Signer::ed25519("ed"));
    let gated = Gated::start(Auth::KeysAndJwt, &[rsa.jwk(), ed.jwk()]).await;
    let now = Utc::now().timestamp();
    let good = claims(json!({}));
    for signer in [&rsa, &ed] {
        assert_eq!(gated.status(&signer.token(&good)).await, 200);
    }

    let changed: Vec<(&str, Value)> = vec![
        ("another issuer", json!({"iss": "https://issuer.example/"})),
        ("no issuer", json!({"iss": null})),
        ("issuers", json!({"iss": [ISSUER]})),
        ("another audience", json!({"aud": "guardian2"})),
        ("other audiences", json!({"aud": ["a", "b"]})),
        ("no audience", json!({"aud": null})),
        ("no audiences", json!({"aud": []})),
        ("expired", json!({"exp": now - 61})),
        ("no end", json!({"exp": null})),
        ("an end as a text", json!({"exp": (now + 600).to_string()})),
        ("not yet", json!({"nbf": now + 300})),
        ("not yet, as a text", json!({"nbf": "0"})),
        ("no tenant", json!({"tenant": null})),
        ("a tenant that is a number", json!({"tenant": 7})),
        ("tenants", json!({"tenant": ["north"]})),
        ("an empty tenant", json!({"tenant": ""})),
        ("a path", json!({"tenant": "../north"})),
        ("a control character", json!({"tenant": "north\n"})),
        ("a long tenant", json!({"tenant": "x".repeat(65)})),
        ("no subject", json!({"sub": null})),
        ("an empty subject", json!({"sub": ""})),
        ("a long subject", json!({"sub": "x".repeat(256)})),
        ("a control character in the subject", json!({"sub": "jo\u{0}"})),
        ("a subject that is a number", json!({"sub": 7})),
        ("too long a token", json!({"padding": "x".repeat(16 << 10)})),
    ];
    let mut wrong: Vec<(&str, String)> =
        changed.into_iter().map(|(what, change)| (what, ed.token(&claims(change)))).collect();

    // keys
    wrong.push(("a key of somebody else", unknown_value.token(&good)));
    let mut header = ed.header();
    header.kid = Some("rsa".to_owned());
    wrong.push(("the kid of another key", ed.token_with(&header, &good)));
    header.kid = Some("unknown".to_owned());
    wrong.push(("an unknown kid", ed.token_with(&header, &good)));
    header.kid = None;
    wrong.push(("no kid, with two keys", ed.token_with(&header, &good)));
    let mut header = rsa.header();
    for algorithm in [Algorithm::PS256, Algorithm::RS384, Algorithm::RS512] {
        header.alg = algorithm;
        wrong.push(("not the algorithm of the key", rsa.token_with(&header, &good)));
    }
    let mut header = unknown_value.header();
    header.jwk = serde_json::from_value(unknown_value.jwk()).unwrap();
    wrong.push(("a key that the token brings", unknown_value.token_with(&header, &good)));

    // algorithms
    let public = rsa.jwk();
    let modulus = URL_SAFE_NO_PAD.decode(text(&public["n"])).unwrap();
    for secret in [modulus, public.to_string().into_bytes(), text(&public["n"]).into_bytes(), Vec::new()] {
        let key = EncodingKey::from_secret(&secret);
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let header = Header { kid: Some("rsa".to_owned()), ..Header::new(algorithm) };
            wrong.push(("a public key as a secret", encode(&header, &good, &key).unwrap()));
        }
    }
    for none in ["none", "None", "NONE", "nOnE", ""] {
        let header = json!({"alg": none, "typ": "JWT", "kid": "rsa"});
        wrong.push(("no algorithm", by_hand(&header, &good, |_| String::new())));
        let borrowed = rsa.token(&good).rsplit('.').next().unwrap().to_owned();
        wrong.push(("no algorithm, but a signature", by_hand(&header, &good, |_| borrowed)));
    }
    let signed = |header: &Value| {
        by_hand(header, &good, |message| jsonwebtoken::crypto::sign(message, &ed.key, Algorithm::EdDSA).unwrap())
    };
    assert_eq!(gated.status(&signed(&json!({"alg": "EdDSA", "kid": "ed"}))).await, 200, "as it would be taken");
    assert_eq!(gated.status(&signed(&json!({"alg": "EdDSA", "kid": "ed", "typ": "at+JWT"}))).await, 200);
    wrong.push(("critical extensions", signed(&json!({"alg": "EdDSA", "kid": "ed", "crit": ["exp"], "exp": 1}))));
    wrong.push(("no critical extension", signed(&json!({"alg": "EdDSA", "kid": "ed", "crit": []}))));
    wrong.push(("unencoded", signed(&json!({"alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false}))));
    wrong.push(("a token for a logout", signed(&json!({"alg": "EdDSA", "kid": "ed", "typ": "logout+jwt"}))));
    wrong.push(("a kid that is a number", signed(&json!({"alg": "EdDSA", "kid": 7}))));

    // texts
    let token = ed.token(&good);
    wrong.push(("another tenant", tampered(&token, |claims| claims["tenant"] = "south".into())));
    wrong.push(("a later end", tampered(&token, |claims| claims["exp"] = (now + 6000).into())));
    let (message, signature) = token.rsplit_once('.').unwrap();
    wrong.push(("no signature", format!("{message}.")));
    wrong.push(("two pieces", message.to_owned()));
    wrong.push(("four pieces", format!("{token}.{signature}")));
    wrong.push(("a padded signature", format!("{token}==")));
    wrong.push(("half a signature", format!("{message}.{}", &signature[..signature.len() / 2])));
    for odd in ["...", "..", ".", "x", "gk_", "e30.e30.e30", "null", "🔑.🔑.🔑"] {
        wrong.push(("no token", odd.to_owned()));
    }

    let unknown = format!("gk_{}_{}", uuid::Uuid::now_v7().simple(), "0".repeat(64));
    let expected = gated.with(&unknown).get("/v1/releases").await;
    expected.problem(401, "unauthenticated");
    let challenge = "Bearer realm=\"guardian\", error=\"invalid_token\"";
    assert_eq!(expected.header("www-authenticate"), challenge);
    for (what, token) in &wrong {
        let request = gated.server.request(Method::GET, "/v1/releases");
        // as bytes: not every odd text is one that a client sends by itself
        let header = reqwest::header::HeaderValue::from_bytes(format!("Bearer {token}").as_bytes()).unwrap();
        let answer = gated.server.send(request.header(AUTHORIZATION, header)).await;
        answer.problem(401, "unauthenticated");
        if token.is_ascii() {
            assert_eq!(without_occurrence(&answer), without_occurrence(&expected), "{what}");
            assert_eq!(answer.header("www-authenticate"), challenge, "{what}");
        }
        assert!(!answer.text().contains(token.as_str()) || token.len() < 5, "{what}");
    }

    // elsewhere than in the header
    for query in ["access_token", "token", "authorization", "jwt", "key"] {
        gated.server.get(&format!("/v1/releases?{query}={token}")).await.problem(401, "unauthenticated");
    }
    let cookie = gated.server.request(Method::GET, "/v1/releases").header("cookie", format!("access_token={token}"));
    let answer = gated.server.send(cookie).await;
    answer.problem(401, "unauthenticated");
    assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"guardian\"");
    let twice = gated.server.request(Method::GET, "/v1/releases").bearer_auth(&token).header(AUTHORIZATION, "Bearer x");
    gated.server.send(twice).await.problem(401, "unauthenticated");
    assert_eq!(gated.status(&token).await, 200);
    gated.server.stop().await;
}

#[test]
fn times_are_those_of_the_service() {
    let signer = Signer::p256("k");
    let rules = Rules::of(&[signer.jwk()]);
    let token = signer.token(&claims_at(at(0), json!({"exp": at(100).timestamp(), "nbf": at(60).timestamp()})));
    let admitted = |seconds| rules.issuer.admit(&token, at(seconds));
    assert_eq!(admitted(-1), Err(TokenError::Time));
    assert_eq!(admitted(160), Err(TokenError::Time));
    let caller = admitted(0).unwrap();
    assert_eq!(Ok(&caller), admitted(159).as_ref());
    assert_eq!((caller.tenant.as_str(), caller.scopes), ("north", Preset::Admin.scopes()));
    assert_eq!(caller.actor, Actor::Subject { subject: "jo@example.org".to_owned(), until: at(160) });
    assert_eq!(caller.actor.to_string(), "sub:jo@example.org");
}

#[test]
fn the_tenant_stands_in_the_claim_that_the_operator_names() {
    let signer = Signer::p256("k");
    let claim = "https://example.org/hospital";
    let rules = Rules::named(&[signer.jwk()], claim);
    let admitted = |change| rules.issuer.admit(&signer.token(&claims_at(at(0), change)), at(0));
    assert_eq!(admitted(json!({claim: "south"})).unwrap().tenant, "south");
    assert_eq!(admitted(json!({})), Err(TokenError::Tenant));
    assert_eq!(admitted(json!({"https://example": {"org/hospital": "south"}})), Err(TokenError::Tenant));
}

#[test]
fn a_file_that_changes_is_read_again() {
    let (old, new) = (Signer::p256("old"), Signer::ed25519("new"));
    let rules = Rules::of(&[old.jwk()]);
    let admitted = |signer: &Signer, seconds| {
        rules.issuer.admit(&signer.token(&claims_at(at(seconds), json!({}))), at(seconds)).map(drop)
    };
    assert_eq!((admitted(&old, 0), admitted(&new, 0)), (Ok(()), Err(TokenError::UnknownKey)));
    // an unknown key is looked for at once
    fs::write(&rules.file, jwks(&[old.jwk(), new.jwk()])).unwrap();
    assert_eq!((admitted(&new, 0), admitted(&old, 0)), (Ok(()), Ok(())));
    // a removed one is noticed when it is time
    fs::write(&rules.file, jwks(&[new.jwk()])).unwrap();
    assert_eq!(admitted(&old, 1), Ok(()));
    assert_eq!((admitted(&old, 2), admitted(&new, 2)), (Err(TokenError::UnknownKey), Ok(())));
    // what cannot be used changes nothing
    for broken in ["", "{", "[]", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\",\"kid\":\"new\"}]}"] {
        fs::write(&rules.file, broken).unwrap();
        assert_eq!((admitted(&new, 10), admitted(&old, 10)), (Ok(()), Err(TokenError::UnknownKey)), "{broken}");
    }
    fs::remove_file(&rules.file).unwrap();
    assert_eq!(admitted(&new, 20), Ok(()));
    // and a clock that was set back does not keep a removed key
    fs::write(&rules.file, jwks(&[old.jwk()])).unwrap();
    assert_eq!((admitted(&new, 5), admitted(&old, 5)), (Err(TokenError::UnknownKey), Ok(())));
    // the same name, another key
    let other = Signer::p256("old");
    fs::write(&rules.file, jwks(&[other.jwk()])).unwrap();
    assert_eq!((admitted(&old, 9), admitted(&other, 9)), (Err(TokenError::Claims), Ok(())));
}

#[test]
fn a_set_with_one_key_needs_no_name_for_it() {
    let signer = Signer::p256("k");
    let mut unnamed = signer.header();
    unnamed.kid = None;
    let token = signer.token_with(&unnamed, &claims_at(at(0), json!({})));
    let mut jwk = signer.jwk();
    assert!(Rules::of(std::slice::from_ref(&jwk)).issuer.admit(&token, at(0)).is_ok());
    jwk["kid"].take();
    jwk.as_object_mut().unwrap().retain(|name, _| name != "kid");
    let rules = Rules::of(&[jwk]);
    assert!(rules.issuer.admit(&token, at(0)).is_ok());
    assert!(rules.issuer.admit(&signer.token(&claims_at(at(0), json!({}))), at(0)).is_ok());
}

#[test]
fn keys_for_other_ends_are_passed_over() {
    let (signer, weak) = (Signer::p256("k"), Signer::rsa_of("weak", Algorithm::RS256, 1024));
    let changed = |name: &str, value: Value| {
        let mut jwk = signer.jwk();
        jwk[name] = value;
        jwk
    };
    let other = Signer::ed25519("other");
    let mut short = other.jwk();
    short["x"] = "AAAA".into();
    let mut trivial = Signer::rsa("trivial", Algorithm::RS256).jwk();
    trivial["e"] = "AQ".into();
    for unusable in [
        changed("use", "enc".into()),
        changed("key_ops", json!(["sign"])),
        changed("alg", "ES384".into()),
        changed("alg", "RSA-OAEP".into()),
        changed("crv", "P-521".into()),
        changed("crv", "P-384".into()),
        changed("kty", "XYZ".into()),
        changed("x", "AAAA".into()),
        changed("y", signer.jwk()["x"].clone()),
        json!({"kty": "oct", "k": "AAAA", "kid": "k", "alg": "HS256"}),
        json!({"kty": "RSA"}),
        json!(7),
        short,
        trivial,
        weak.jwk(),
    ] {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("jwks.json");
        fs::write(&file, jwks(std::slice::from_ref(&unusable))).unwrap();
        let rules = JwtRules { issuer: String::new(), audience: String::new(), tenant_claim: String::new() };
        assert!(Issuer::open(rules, &file, at(0)).is_err(), "{unusable}");
        // beside one that can be used
        let rules = Rules::of(&[unusable, other.jwk()]);
        assert!(rules.issuer.admit(&other.token(&claims_at(at(0), json!({}))), at(0)).is_ok());
        assert!(rules.issuer.admit(&signer.token(&claims_at(at(0), json!({}))), at(0)).is_err());
    }
    // an RSA key that does not say so is for RS256
    let rsa = Signer::rsa("rsa", Algorithm::RS256);
    let mut jwk = rsa.jwk();
    jwk.as_object_mut().unwrap().retain(|name, _| name != "alg" && name != "use");
    let rules = Rules::of(&[jwk]);
    assert!(rules.issuer.admit(&rsa.token(&claims_at(at(0), json!({}))), at(0)).is_ok());
    let header = Header { alg: Algorithm::PS256, ..rsa.header() };
    assert_eq!(
        rules.issuer.admit(&rsa.token_with(&header, &claims_at(at(0), json!({}))), at(0)),
        Err(TokenError::Claims)
    );
}

fn serve(options: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    run(guardian().args(["serve", "--listen", "127.0.0.1:0"]).args(options).arg("--data").arg(home.path()))
}

#[test]
fn a_service_does_not_start_with_half_an_issuer() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("jwks.json");
    let path = file.to_str().unwrap();
    let all = ["--auth", "jwt", "--jwks", path, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE];
    let said = |options: &[&str], code| {
        let output = serve(options);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
        said
    };
    for half in [&all[..2], &all[..4], &all[..6]] {
        assert!(said(half, 2).contains("--jwt-audience"));
    }
    assert!(said(&["--auth", "keys,jwt"], 2).contains("--jwks"));
    assert!(said(&[&all[..7], &[""]].concat(), 2).contains("--jwt-audience"));
    assert!(said(&["--auth", "keys", "--jwks", path], 2).contains("--auth jwt"));
    assert!(said(&all, 4).contains(path), "a missing file");
    let mut private = Signer::p256("k").jwk();
    private["d"] = "AAAA".into();
    let same = Signer::p256("k").jwk();
    for (content, why) in [
        ("not json".to_owned(), "JSON"),
        ("{}".to_owned(), "list of keys"),
        (jwks(&[]), "no key"),
        (jwks(&[private]), "private"),
        (jwks(&[same.clone(), same]), "same kid"),
        (" ".repeat(2 << 20), "too large"),
    ] {
        fs::write(&file, content).unwrap();
        assert!(said(&all, 4).contains(why), "{why}");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    said(&all, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_tokens_reach_the_same_tenant() {
    let home = tempfile::tempdir().unwrap();
    let (data, file) = (home.path().join("data"), home.path().join("jwks.json"));
    let signer = Signer::p256("k");
    fs::write(&file, jwks(&[signer.jwk()])).unwrap();
    let made = run(guardian()
        .args(["keys", "create", "--tenant", "north", "--name", "x", "--preset", "admin", "--data"])
        .arg(&data));
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let (folder, jwt) = (data.clone(), jwt_options(&file));
    let server = Server::start_with(move |config| {
        (config.auth, config.jwt, config.data) = (Auth::KeysAndJwt, jwt, folder);
    })
    .await;
    let (by_key, north) = (server.with_token(&key), server.with_token(&signer.token(&claims(json!({})))));
    let south = server.with_token(&signer.token(&claims(json!({"tenant": "south"}))));
    let dataset = north.dataset(HOSPITAL).await;
    let release = by_key.publish(&dataset, json!({"method": hospital_method()})).await;
    let path = format!("/v1/releases/{}", text(&release["id"]));
    assert_eq!(north.get(&path).await.status, 200);
    south.get(&path).await.problem(404, "not-found");
    assert!(south.items("/v1/datasets").await.is_empty());
    // an idempotency key belongs to a tenant, not to a caller
    let upload = async |client: &Client| {
        text(&client.upload_with("name=t", HOSPITAL, &[("idempotency-key", "k")]).await.ok(201)["id"])
    };
    let first = upload(&by_key).await;
    assert_eq!(upload(&north).await, first);
    assert_ne!(upload(&south).await, first);
    server.stop().await;

    let store = SqliteStore::open(&data).await.unwrap();
    let log = store.audit("north", guardian::ports::AuditFilter::default(), None, 100).await.unwrap().items;
    let actor = |action: &str| {
        let entry = log.iter().rev().find(|entry| entry.action == action).unwrap();
        (entry.key.is_some(), entry.actor.clone().unwrap_or_default())
    };
    assert_eq!(actor("dataset.upload"), (false, "sub:jo@example.org".to_owned()));
    let (named, by) = actor("job.submit");
    assert!(named && by.starts_with("key:"), "{by}");
    assert_eq!(actor("key.create"), (false, String::new()));
    store.close().await;
    drop(store);

    // each kind alone
    for (auth, token, status) in [
        (Auth::Keys, signer.token(&claims(json!({}))), 401),
        (Auth::Jwt, key.clone(), 401),
        (Auth::Keys, key.clone(), 200),
        (Auth::Jwt, signer.token(&claims(json!({}))), 200),
    ] {
        let (folder, jwt) = (data.clone(), jwt_options(&file));
        let server = Server::start_with(move |config| {
            (config.auth, config.data) = (auth, folder);
            if auth == Auth::Jwt {
                config.jwt = jwt;
            }
        })
        .await;
        assert_eq!(server.with_token(&token).get("/v1/releases").await.status, status, "{auth:?}");
        server.stop().await;
    }
}

/// Asks until the answer is another; the harness ends a test that waits for ever.
async fn until(gated: &Gated, token: &str, status: u16) {
    while gated.status(token).await != status {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_changed_while_the_service_runs() {
    let (old, new) = (Signer::p256("old"), Signer::p256("new"));
    let gated = Gated::start(Auth::Jwt, &[old.jwk()]).await;
    let (by_old, by_new) = (old.token(&claims(json!({}))), new.token(&claims(json!({}))));
    assert_eq!((gated.status(&by_old).await, gated.status(&by_new).await), (200, 401));
    fs::write(&gated.file, jwks(&[new.jwk()])).unwrap();
    assert_eq!((gated.status(&by_new).await, gated.status(&by_old).await), (200, 401));
    fs::write(&gated.file, jwks(&[old.jwk(), new.jwk()])).unwrap();
    assert_eq!(gated.status(&by_old).await, 200);
    fs::write(&gated.file, jwks(&[new.jwk()])).unwrap();
    until(&gated, &by_old, 401).await;
    fs::write(&gated.file, "{").unwrap();
    assert_eq!((gated.status(&by_old).await, gated.status(&by_new).await), (401, 200));
    gated.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_holds_a_token_or_its_claims() {
    let home = tempfile::tempdir().unwrap();
    let (data, file, first) = (home.path().join("data"), home.path().join("jwks.json"), home.path().join("first.key"));
    let (signer, unknown_value) = (Signer::p256("k"), Signer::p256("k"));
    fs::write(&file, jwks(&[signer.jwk()])).unwrap();
    let options = [
        "--listen",
        "127.0.0.1:0",
        "--log-format",
        "json",
        "--auth",
        "keys,jwt",
        "--jwt-issuer",
        ISSUER,
        "--jwt-audience",
        AUDIENCE,
        "--jwks",
        file.to_str().unwrap(),
        "--bootstrap-key-file",
        first.to_str().unwrap(),
    ];
    let mut process = Process::serve_with(&data, "trace", &options);
    let key = fs::read_to_string(&first).unwrap().trim().to_owned();
    let (good, bad) = (signer.token(&claims(json!({}))), unknown_value.token(&claims(json!({}))));
    for (token, status) in [(&key, 200), (&good, 200), (&bad, 401)] {
        let client = process.with_token(token);
        assert_eq!(client.get("/v1/releases").await.status, status);
        assert_eq!(client.upload("name=t", HOSPITAL).await.status, if status == 200 { 201 } else { 401 });
    }
    fs::write(&file, "{").unwrap();
    // an unknown kid lets the file be read
    let unknown = Signer::p256("unknown").token(&claims(json!({})));
    assert_eq!(process.with_token(&unknown).get("/v1/releases").await.status, 401);
    assert!(process.terminate().success());
    let log = process.log();
    assert!(log.contains("/v1/datasets") && log.contains("token refused"), "it was listened to");
    assert!(log.contains("JWKS file is unusable"), "the operator is warned");
    for token in [&good, &bad, &unknown] {
        for piece in token.split('.') {
            // headers are equal for all tokens of a key and reveal nothing
            assert!(piece == token.split('.').next().unwrap() || !log.contains(piece), "a piece of a token in the log");
        }
    }
    assert!(!log.contains(key.rsplit('_').next().unwrap()), "a secret in the log");
    assert!(!log.contains("jo@example.org"), "a subject in the log");
    assert!(!log.to_ascii_lowercase().contains("bearer "), "a header in the log");
}
