//! Options of the operator. Each option is a flag and an environment variable.

mod engines;
mod limits;
mod store;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value};

pub use engines::TableEngineOptions;
pub use limits::{JobLimits, RequestLimits};

pub use store::{MasterKeyHex, MasterKeyLocation, NewKeyOptions, StoreOptions, StoreUrl};

/// The options of a service.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Config {
    /// The address to listen on; without --auth only a loopback address
    #[arg(long, env = "GUARDIAN_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The authentication: "none" on a loopback address only, "keys" for keys of `guardian keys`, "jwt" for JSON web tokens of the
    /// issuer of --jwks and --jwt-issuer, or "keys,jwt"
    #[arg(long, env = "GUARDIAN_AUTH", value_enum, default_value_t = Auth::None)]
    pub auth: Auth,
    /// The issuer of accepted tokens
    #[command(flatten)]
    #[serde(flatten)]
    pub jwt: JwtOptions,
    /// Creates the first key, with all scopes, and writes it to this file, which must not exist
    #[arg(long, env = "GUARDIAN_BOOTSTRAP_KEY_FILE", value_name = "FILE")]
    pub bootstrap_key_file: Option<PathBuf>,
    /// The folder of the embedded store and of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = Config::DATA)]
    pub data: PathBuf,
    /// The store and the master key
    #[command(flatten)]
    #[serde(flatten)]
    pub store: StoreOptions,
    /// The place of parts
    #[command(flatten)]
    #[serde(flatten)]
    pub parts: PartOptions,
    /// Seconds that links to the objects of a part are valid, at most 3600; needs --parts. Default: no links
    #[arg(long, env = "GUARDIAN_PART_LINK_SECONDS", value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub part_link_seconds: Option<u32>,
    /// Number of concurrent jobs
    #[arg(long, env = "GUARDIAN_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// The rules of workers
    #[command(flatten)]
    #[serde(flatten)]
    pub queue: QueueOptions,
    /// Maximum size of the body of an upload
    #[arg(long, env = "GUARDIAN_MAX_UPLOAD_BYTES", value_name = "BYTES", default_value_t = 16 << 30, value_parser = limits::bytes)]
    pub max_upload_bytes: u64,
    /// The sources of uploads by reference: addresses, separated by commas, each of which allows what lies below it, such as
    /// s3://bucket/prefix,https://host/path. A segment {tenant} stands for the tenant of the caller. Default: none
    #[arg(long, env = "GUARDIAN_SOURCES", value_name = "ADDRESSES")]
    #[serde(serialize_with = "without_users")]
    pub sources: Option<String>,
    /// The engines that have tables
    #[command(flatten)]
    #[serde(flatten)]
    pub engines: TableEngineOptions,
    /// Maximum number of columns of a table
    #[arg(long, env = "GUARDIAN_MAX_COLUMNS", default_value_t = 1024)]
    pub max_columns: u64,
    /// Maximum number of queued jobs; other submissions are answered 429
    #[arg(long, env = "GUARDIAN_MAX_QUEUED_JOBS", default_value_t = 1000)]
    pub max_queued_jobs: u64,
    /// Maximum number of concurrent uploads; others are answered 429
    #[arg(long, env = "GUARDIAN_MAX_UPLOADS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_uploads: u32,
    /// Maximum number of concurrent plans, verifications, attacks and queries; others are answered 429
    #[arg(long, env = "GUARDIAN_MAX_PLANS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_plans: u32,
    /// The limits of tables and requests
    #[command(flatten)]
    #[serde(flatten)]
    pub request_limits: RequestLimits,
    /// The limits of jobs
    #[command(flatten)]
    #[serde(flatten)]
    pub job_limits: JobLimits,
    /// Days after which published releases are withdrawn and their parts deleted. Default: never
    #[arg(long, env = "GUARDIAN_RETAIN_DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub retain_days: Option<u32>,
    /// Seconds that running jobs have to finish when the service stops
    #[arg(long, env = "GUARDIAN_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u64,
    /// Seconds that a stopping service still answers requests, while /readyz reports that it stops
    #[arg(long, env = "GUARDIAN_DRAIN_SECONDS", default_value_t = 0)]
    pub drain_seconds: u64,
    /// The prefix of all paths behind a gateway, such as /guardian
    #[arg(long, env = "GUARDIAN_PATH_PREFIX", default_value = "", hide_default_value = true, value_name = "PREFIX")]
    pub path_prefix: String,
    /// Trusts X-Forwarded-For, -Host, -Proto and -Prefix; only behind a gateway that sets or removes all four
    #[arg(long, env = "GUARDIAN_TRUST_FORWARDED", value_parser = BoolishValueParser::new())]
    pub trust_forwarded: bool,
    /// The format of the log on standard error
    #[arg(long, env = "GUARDIAN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Metrics and traces
    #[command(flatten)]
    #[serde(flatten)]
    pub watch: ObservabilityOptions,
}

impl Config {
    /// The folder of the store by default.
    pub(crate) const DATA: &str = "guardian-data";
}

/// The options of workers without HTTP.
#[derive(Args, Clone, Debug, Serialize)]
pub struct WorkerOptions {
    /// The folder of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = Config::DATA)]
    pub data: PathBuf,
    /// The store and the master key
    #[command(flatten)]
    #[serde(flatten)]
    pub store: StoreOptions,
    /// The place of parts
    #[command(flatten)]
    #[serde(flatten)]
    pub parts: PartOptions,
    /// The engines that have tables
    #[command(flatten)]
    #[serde(flatten)]
    pub engines: TableEngineOptions,
    /// Number of concurrent jobs
    #[arg(long, env = "GUARDIAN_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// The limits of jobs
    #[command(flatten)]
    #[serde(flatten)]
    pub job_limits: JobLimits,
    /// The rules of workers
    #[command(flatten)]
    #[serde(flatten)]
    pub queue: QueueOptions,
    /// Seconds that running jobs have to finish when the workers stop
    #[arg(long, env = "GUARDIAN_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u64,
    /// The format of the log on standard error
    #[arg(long, env = "GUARDIAN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Metrics and traces
    #[command(flatten)]
    #[serde(flatten)]
    pub watch: ObservabilityOptions,
}

/// Options of the place of parts.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct PartOptions {
    /// The prefix in an object store for the parts of releases, such as s3://bucket/prefix, equal for all processes of a store.
    /// Default: parts are in the store
    #[arg(long, env = "GUARDIAN_PARTS", value_name = "ADDRESS")]
    #[serde(serialize_with = "without_users")]
    pub parts: Option<String>,
}

/// Options of metrics and traces.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct ObservabilityOptions {
    /// A separate address for /metrics (Prometheus), /healthz and /readyz, which need no key
    #[arg(long, env = "GUARDIAN_METRICS_LISTEN", value_name = "ADDR")]
    pub metrics_listen: Option<SocketAddr>,
    /// The collector of traces (OTLP over HTTP), such as http://127.0.0.1:4318. OTEL_EXPORTER_OTLP_ENDPOINT works too
    #[arg(long, env = "GUARDIAN_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// The collector without --otlp-endpoint
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide = true)]
    #[serde(skip)]
    pub otel_endpoint: Option<String>,
}

impl ObservabilityOptions {
    /// The collector of traces.
    ///
    /// # Errors
    /// A message for the operator without the URL, which may contain a password.
    pub fn collector(&self) -> Result<Option<&str>, String> {
        let (from, chosen) = match (&self.otlp_endpoint, &self.otel_endpoint) {
            (None, None) => return Ok(None),
            (Some(chosen), _) => ("--otlp-endpoint", chosen),
            (None, Some(chosen)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", chosen),
        };
        let authority = chosen.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"@?#".contains(&byte);
        if authority.is_some_and(|authority| !authority.is_empty()) && chosen.bytes().all(plain) {
            return Ok(Some(chosen));
        }
        Err(format!("{from} must be http://HOST:PORT, without a user; for TLS run a local collector that forwards"))
    }
}

/// The issuer of tokens for --auth jwt.
#[derive(Args, Clone, Debug, Serialize)]
pub struct JwtOptions {
    /// The file with the public keys of the issuer, a JWKS document; changes are reloaded
    #[arg(long, env = "GUARDIAN_JWKS", value_name = "FILE")]
    pub jwks: Option<PathBuf>,
    /// The issuer, the claim `iss` of tokens
    #[arg(id = "jwt_issuer", long = "jwt-issuer", env = "GUARDIAN_JWT_ISSUER", value_name = "ISSUER")]
    #[serde(rename = "jwt_issuer")]
    pub issuer: Option<String>,
    /// The name of this service, the claim `aud` of tokens
    #[arg(id = "jwt_audience", long = "jwt-audience", env = "GUARDIAN_JWT_AUDIENCE", value_name = "AUDIENCE")]
    #[serde(rename = "jwt_audience")]
    pub audience: Option<String>,
    /// The claim with the tenant
    #[arg(
        id = "jwt_tenant_claim",
        long = "jwt-tenant-claim",
        env = "GUARDIAN_JWT_TENANT_CLAIM",
        value_name = "CLAIM",
        default_value = JwtOptions::TENANT_CLAIM
    )]
    #[serde(rename = "jwt_tenant_claim")]
    pub tenant_claim: String,
}

impl JwtOptions {
    const TENANT_CLAIM: &str = "tenant";

    /// The file, the issuer and the audience, if all are given.
    #[must_use]
    pub fn complete(&self) -> Option<(&Path, &str, &str)> {
        let given = |text: &'_ Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
        let all = given(&self.issuer) && given(&self.audience) && !self.tenant_claim.is_empty();
        all.then_some((self.jwks.as_deref()?, self.issuer.as_deref()?, self.audience.as_deref()?))
    }
}

impl Default for JwtOptions {
    fn default() -> Self {
        Self { jwks: None, issuer: None, audience: None, tenant_claim: Self::TENANT_CLAIM.to_owned() }
    }
}

/// Rules of workers for claiming jobs, equal for all workers of a store.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct QueueOptions {
    /// Maximum number of attempts of a job whose worker dies; it then fails with attempts-exhausted. The pauses between attempts
    /// increase
    #[arg(long, env = "GUARDIAN_MAX_ATTEMPTS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_attempts: u32,
    /// Maximum number of concurrent jobs of a tenant on all workers of the store. Default: the number of workers
    #[arg(long, env = "GUARDIAN_MAX_RUNNING_PER_TENANT", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running_per_tenant: Option<u32>,
    /// Maximum number of concurrent jobs on tables of one engine, on all workers of the store
    #[arg(long, env = "GUARDIAN_MAX_RUNNING_PER_ENGINE", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running_per_engine: u32,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { max_attempts: 3, max_running_per_tenant: None, max_running_per_engine: 1 }
    }
}

/// Accepted authentication.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// No authentication, on a loopback address only.
    None,
    /// API keys.
    Keys,
    /// Tokens of the issuer.
    Jwt,
    /// API keys and tokens of the issuer.
    #[value(name = "keys,jwt", alias = "jwt,keys")]
    KeysAndJwt,
}

impl Auth {
    /// Whether API keys are accepted.
    #[must_use]
    pub const fn keys(self) -> bool {
        matches!(self, Self::Keys | Self::KeysAndJwt)
    }

    /// Whether tokens of an issuer are accepted.
    #[must_use]
    pub const fn jwt(self) -> bool {
        matches!(self, Self::Jwt | Self::KeysAndJwt)
    }
}

/// The format of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text lines.
    Text,
    /// One JSON object per line.
    Json,
}

impl Config {
    /// The grace period.
    #[must_use]
    pub const fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }

    /// All effective options for the log, without secrets.
    #[must_use]
    pub fn effective(&self) -> Map<String, Value> {
        effective(self, &self.store, &self.watch, &self.data)
    }

    /// Checks the combination of options.
    ///
    /// # Errors
    /// A message for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.store.database()?;
        self.watch.collector()?;
        if self.watch.metrics_listen.is_some_and(|address| address.port() != 0 && address.port() == self.listen.port())
        {
            return Err("--metrics-listen needs a separate port, because it needs no key".to_owned());
        }
        if self.part_link_seconds.is_some() && self.parts.parts.is_none() {
            return Err("--part-link-seconds needs --parts".to_owned());
        }
        match (self.auth.jwt(), &self.jwt) {
            (true, jwt) if jwt.complete().is_none() => {
                return Err("--auth jwt needs --jwks, --jwt-issuer and --jwt-audience".to_owned());
            }
            // otherwise the operator would expect authentication
            (false, JwtOptions { jwks: Some(_), .. }) => {
                return Err("--jwks requires --auth jwt or --auth keys,jwt".to_owned());
            }
            _ => {}
        }
        let address = self.listen.ip();
        if address.is_loopback() {
            return Ok(());
        }
        if self.auth == Auth::None {
            return Err(format!("{address} is not a loopback address, which --auth none requires; see --auth keys"));
        }
        // an accidentally empty ledger would permit releases that break earlier promises
        if !self.store.is_chosen() {
            return Err(format!(
                "{address} is not a loopback address: choose the store of the ledger, with DATABASE_URL or --store \
                 postgres://USER@HOST/DATABASE, or with --store embedded"
            ));
        }
        Ok(())
    }
}

impl WorkerOptions {
    /// All effective options for the log, without secrets.
    #[must_use]
    pub fn effective(&self) -> Map<String, Value> {
        effective(self, &self.store, &self.watch, &self.data)
    }
}

/// The sources, unless one has a user with a password, which is refused later.
fn without_users<S: serde::Serializer>(sources: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let shown = sources.as_deref().map(|sources| if sources.contains('@') { "(not shown)" } else { sources });
    shown.serialize(serializer)
}

/// Options as JSON, with the effective store, key and collector.
fn effective(
    options: &impl Serialize,
    store: &StoreOptions,
    watch: &ObservabilityOptions,
    data: &Path,
) -> Map<String, Value> {
    let mut shown = match serde_json::to_value(options) {
        Ok(Value::Object(shown)) => shown,
        // a path that is not UTF-8
        _ => Map::from_iter([("unreadable".to_owned(), true.into())]),
    };
    let chosen = store.url.as_ref().or(store.database_url.as_ref());
    shown.insert("store".to_owned(), chosen.map_or_else(|| "embedded".to_owned(), StoreUrl::redacted).into());
    shown.insert(
        "master_key".to_owned(),
        store.master_key(data).map(|place| place.to_string()).unwrap_or_default().into(),
    );
    shown.insert("otlp_endpoint".to_owned(), watch.collector().unwrap_or(Some("(not shown)")).into());
    shown
}
