//! What the operator may choose. Every option is a flag and an environment variable; the defaults are the documentation.

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

pub use limits::{JobLimits, RequestLimits};

pub use store::{MasterKeyHex, MasterKeyLocation, NewKeyOptions, StoreOptions, StoreUrl};

/// The options of a service.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Config {
    /// The address to listen on; loopback only, unless --auth asks for keys or tokens
    #[arg(long, env = "GUARDIAN_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Who may call: with "none" whoever reaches the loopback address, with "keys" whoever sends a key of `guardian keys`, with
    /// "jwt" whoever sends a JSON web token of the issuer that --jwks and --jwt-issuer describe
    #[arg(long, env = "GUARDIAN_AUTH", value_enum, default_value_t = Auth::None)]
    pub auth: Auth,
    /// Whose tokens count
    #[command(flatten)]
    #[serde(flatten)]
    pub jwt: JwtOptions,
    /// When there is no key yet, make one that may do everything and write it to this file, which must not exist
    #[arg(long, env = "GUARDIAN_BOOTSTRAP_KEY_FILE", value_name = "FILE")]
    pub bootstrap_key_file: Option<PathBuf>,
    /// The folder of the embedded store and of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    pub data: PathBuf,
    /// Where what lasts is kept
    #[command(flatten)]
    #[serde(flatten)]
    pub store: StoreOptions,
    /// Jobs that run at the same time
    #[arg(long, env = "GUARDIAN_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// What workers hold to
    #[command(flatten)]
    #[serde(flatten)]
    pub queue: QueueOptions,
    /// The most bytes of an upload's body
    #[arg(long, env = "GUARDIAN_MAX_UPLOAD_BYTES", value_name = "BYTES", default_value_t = 16 << 30, value_parser = limits::bytes)]
    pub max_upload_bytes: u64,
    /// The most columns of a table
    #[arg(long, env = "GUARDIAN_MAX_COLUMNS", default_value_t = 1024)]
    pub max_columns: u64,
    /// The most jobs that may wait; beyond, submissions are answered 429
    #[arg(long, env = "GUARDIAN_MAX_QUEUED_JOBS", default_value_t = 1000)]
    pub max_queued_jobs: u64,
    /// Uploads at the same time; beyond, they are answered 429
    #[arg(long, env = "GUARDIAN_MAX_UPLOADS", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_uploads: u32,
    /// Plans, verifications, audits and documents of queries at the same time; beyond, they are answered 429
    #[arg(long, env = "GUARDIAN_MAX_PLANS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_plans: u32,
    /// What is accepted, and how much may be under way
    #[command(flatten)]
    #[serde(flatten)]
    pub request_limits: RequestLimits,
    /// What jobs may take
    #[command(flatten)]
    #[serde(flatten)]
    pub job_limits: JobLimits,
    /// Days after which published releases are withdrawn, and their parts deleted; never, unless given
    #[arg(long, env = "GUARDIAN_RETAIN_DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub retain_days: Option<u32>,
    /// Seconds that running jobs get to end when the service is stopped
    #[arg(long, env = "GUARDIAN_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u64,
    /// Seconds in which a service that is stopped still serves, while /readyz says that it stops
    #[arg(long, env = "GUARDIAN_DRAIN_SECONDS", default_value_t = 0)]
    pub drain_seconds: u64,
    /// What every path begins with, as /guardian, when a gateway passes it on
    #[arg(long, env = "GUARDIAN_PATH_PREFIX", default_value = "", hide_default_value = true, value_name = "PREFIX")]
    pub path_prefix: String,
    /// Believes X-Forwarded-For, -Host, -Proto and -Prefix; only behind a gateway that sets or removes all four
    #[arg(long, env = "GUARDIAN_TRUST_FORWARDED", value_parser = BoolishValueParser::new())]
    pub trust_forwarded: bool,
    /// How to write the log, on standard error
    #[arg(long, env = "GUARDIAN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is told to an operator's tools
    #[command(flatten)]
    #[serde(flatten)]
    pub watch: ObservabilityOptions,
}

/// The options of workers without HTTP.
#[derive(Args, Clone, Debug, Serialize)]
pub struct WorkerOptions {
    /// The folder of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    pub data: PathBuf,
    /// Where what lasts is kept
    #[command(flatten)]
    #[serde(flatten)]
    pub store: StoreOptions,
    /// Jobs that run at the same time
    #[arg(long, env = "GUARDIAN_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// What jobs may take
    #[command(flatten)]
    #[serde(flatten)]
    pub job_limits: JobLimits,
    /// What workers hold to
    #[command(flatten)]
    #[serde(flatten)]
    pub queue: QueueOptions,
    /// Seconds that running jobs get to end when the workers are stopped
    #[arg(long, env = "GUARDIAN_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u64,
    /// How to write the log, on standard error
    #[arg(long, env = "GUARDIAN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// What is told to an operator's tools
    #[command(flatten)]
    #[serde(flatten)]
    pub watch: ObservabilityOptions,
}

/// What is told to an operator's tools.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct ObservabilityOptions {
    /// An address of its own for /metrics (Prometheus), /healthz and /readyz, which ask for no key
    #[arg(long, env = "GUARDIAN_METRICS_LISTEN", value_name = "ADDR")]
    pub metrics_listen: Option<SocketAddr>,
    /// Sends traces to this collector (OTLP over HTTP), as http://127.0.0.1:4318. OTEL_EXPORTER_OTLP_ENDPOINT is taken too
    #[arg(long, env = "GUARDIAN_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// What counts where --otlp-endpoint says nothing
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide = true)]
    #[serde(skip)]
    pub otel_endpoint: Option<String>,
}

impl ObservabilityOptions {
    /// Where traces are sent.
    ///
    /// # Errors
    /// A sentence for the operator, which does not repeat what was given: it may hold a password.
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
        Err(format!("{from} must be http://HOST:PORT, without a user; a collector that wants TLS needs one beside it"))
    }
}

/// Whose tokens count with --auth jwt.
#[derive(Args, Clone, Debug, Serialize)]
pub struct JwtOptions {
    /// The file with the issuer's public keys, a JWKS document, which is read again when it changes
    #[arg(long, env = "GUARDIAN_JWKS", value_name = "FILE")]
    pub jwks: Option<PathBuf>,
    /// The issuer, as tokens state it in `iss`
    #[arg(id = "jwt_issuer", long = "jwt-issuer", env = "GUARDIAN_JWT_ISSUER", value_name = "ISSUER")]
    #[serde(rename = "jwt_issuer")]
    pub issuer: Option<String>,
    /// This service's name, as tokens state it in `aud`
    #[arg(id = "jwt_audience", long = "jwt-audience", env = "GUARDIAN_JWT_AUDIENCE", value_name = "AUDIENCE")]
    #[serde(rename = "jwt_audience")]
    pub audience: Option<String>,
    /// The claim that names the tenant
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

    /// The file, the issuer and the audience, where all are given.
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

/// What workers hold to when they take jobs; the same for all on one store.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct QueueOptions {
    /// How often a job may be begun whose worker vanishes before the end; then it fails as attempts-exhausted. Between attempts
    /// it waits, each time for longer
    #[arg(long, env = "GUARDIAN_MAX_ATTEMPTS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_attempts: u32,
    /// Jobs of one tenant that run at the same time, among all workers on the store; as many as there are workers, unless given
    #[arg(long, env = "GUARDIAN_MAX_RUNNING_PER_TENANT", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_running_per_tenant: Option<u32>,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { max_attempts: 3, max_running_per_tenant: None }
    }
}

/// Who may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// Whoever reaches the loopback address.
    None,
    /// Whoever sends a key.
    Keys,
    /// Whoever sends a token of the issuer.
    Jwt,
    /// Whoever sends a key or a token of the issuer.
    #[value(name = "keys,jwt", alias = "jwt,keys")]
    KeysAndJwt,
}

impl Auth {
    /// Whether keys are taken.
    #[must_use]
    pub const fn keys(self) -> bool {
        matches!(self, Self::Keys | Self::KeysAndJwt)
    }

    /// Whether tokens of an issuer are taken.
    #[must_use]
    pub const fn jwt(self) -> bool {
        matches!(self, Self::Jwt | Self::KeysAndJwt)
    }
}

/// How to write the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// The grace period.
    #[must_use]
    pub const fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }

    /// Every option as it counts, for the log; secrets are not in it.
    #[must_use]
    pub fn effective(&self) -> Map<String, Value> {
        effective(self, &self.store, &self.watch, &self.data)
    }

    /// What is wrong with the options together.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.store.database()?;
        self.watch.collector()?;
        if self.watch.metrics_listen.is_some_and(|address| address.port() != 0 && address.port() == self.listen.port())
        {
            return Err("--metrics-listen needs a port of its own: it asks for no key".to_owned());
        }
        match (self.auth.jwt(), &self.jwt) {
            (true, jwt) if jwt.complete().is_none() => {
                return Err("--auth jwt needs --jwks, --jwt-issuer and --jwt-audience".to_owned());
            }
            // whoever gives them believes that tokens are asked for
            (false, JwtOptions { jwks: Some(_), .. }) => {
                return Err("--jwks counts with --auth jwt or --auth keys,jwt only".to_owned());
            }
            _ => {}
        }
        let address = self.listen.ip();
        if address.is_loopback() {
            return Ok(());
        }
        if self.auth == Auth::None {
            return Err(format!(
                "{address} is not a loopback address; without authentication nothing else is served; see --auth keys"
            ));
        }
        // with an empty ledger by accident, a release could undo what was published before
        if !self.store.is_chosen() {
            return Err(format!(
                "{address} is not a loopback address: say where the ledger is kept, with DATABASE_URL or --store \
                 postgres://USER@HOST/DATABASE, or with --store embedded"
            ));
        }
        Ok(())
    }
}

impl WorkerOptions {
    /// Every option as it counts, for the log; secrets are not in it.
    #[must_use]
    pub fn effective(&self) -> Map<String, Value> {
        effective(self, &self.store, &self.watch, &self.data)
    }
}

/// Options as JSON, with what is chosen in several ways as it was chosen.
fn effective(
    options: &impl Serialize,
    store: &StoreOptions,
    watch: &ObservabilityOptions,
    data: &Path,
) -> Map<String, Value> {
    let mut shown = match serde_json::to_value(options) {
        Ok(Value::Object(shown)) => shown,
        // a path that is no text
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
