//! What the operator may choose. Every option is a flag and an environment variable; the defaults are the documentation.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

/// The options of a service.
#[derive(Args, Clone, Debug)]
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
    pub jwt: JwtOptions,
    /// When there is no key yet, make one that may do everything and write it to this file, which must not exist
    #[arg(long, env = "GUARDIAN_BOOTSTRAP_KEY_FILE", value_name = "FILE")]
    pub bootstrap_key_file: Option<PathBuf>,
    /// The folder of the embedded store and of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    pub data: PathBuf,
    /// Where what lasts is kept
    #[command(flatten)]
    pub store: StoreOptions,
    /// Jobs that run at the same time
    #[arg(long, env = "GUARDIAN_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// The most bytes of an upload's body
    #[arg(long, env = "GUARDIAN_MAX_UPLOAD_BYTES", default_value_t = 16 << 30)]
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
    /// Plans at the same time; beyond, they are answered 429
    #[arg(long, env = "GUARDIAN_MAX_PLANS", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub max_plans: u32,
    /// Days after which published releases are withdrawn, and their parts deleted; never, unless given
    #[arg(long, env = "GUARDIAN_RETAIN_DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub retain_days: Option<u32>,
    /// Seconds that running jobs get to end when the service is stopped
    #[arg(long, env = "GUARDIAN_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u64,
    /// How to write the log, on standard error
    #[arg(long, env = "GUARDIAN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// The options of workers without HTTP.
#[derive(Args, Clone, Debug)]
pub struct WorkerOptions {
    /// The folder of the master key
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    pub data: PathBuf,
    /// Where what lasts is kept
    #[command(flatten)]
    pub store: StoreOptions,
    /// Jobs that run at the same time
    #[arg(long, env = "GUARDIAN_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// Seconds that running jobs get to end when the workers are stopped
    #[arg(long, env = "GUARDIAN_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u64,
    /// How to write the log, on standard error
    #[arg(long, env = "GUARDIAN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// Whose tokens count with --auth jwt.
#[derive(Args, Clone, Debug)]
pub struct JwtOptions {
    /// The file with the issuer's public keys, a JWKS document, which is read again when it changes
    #[arg(long, env = "GUARDIAN_JWKS", value_name = "FILE")]
    pub jwks: Option<PathBuf>,
    /// The issuer, as tokens state it in `iss`
    #[arg(long = "jwt-issuer", env = "GUARDIAN_JWT_ISSUER", value_name = "ISSUER")]
    pub issuer: Option<String>,
    /// This service's name, as tokens state it in `aud`
    #[arg(long = "jwt-audience", env = "GUARDIAN_JWT_AUDIENCE", value_name = "AUDIENCE")]
    pub audience: Option<String>,
    /// The claim that names the tenant
    #[arg(
        long = "jwt-tenant-claim",
        env = "GUARDIAN_JWT_TENANT_CLAIM",
        value_name = "CLAIM",
        default_value = JwtOptions::TENANT_CLAIM
    )]
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

/// Where what lasts is kept.
#[derive(Args, Clone, Debug, Default)]
pub struct StoreOptions {
    /// A Postgres database that processes share, as postgres://USER@HOST/DATABASE; without it, or as "embedded", one process keeps
    /// all in the data folder, and must be told so to listen beyond loopback. DATABASE_URL is taken too
    #[arg(long = "store", env = "GUARDIAN_STORE", hide_env_values = true, value_name = "URL")]
    pub url: Option<StoreUrl>,
    /// What counts where --store says nothing
    #[arg(long, env = "DATABASE_URL", hide = true, hide_env_values = true)]
    pub database_url: Option<StoreUrl>,
    /// The file of the master key, made when there is none; every process on one store needs the same. Default:
    /// master.key in the data folder
    #[arg(long, env = "GUARDIAN_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key: Option<PathBuf>,
}

impl StoreOptions {
    /// The database, unless the store is the embedded one.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn database(&self) -> Result<Option<&str>, String> {
        let chosen = self.url.as_ref().or(self.database_url.as_ref());
        match chosen.map(StoreUrl::reveal) {
            None | Some("embedded") => Ok(None),
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => Ok(Some(url)),
            Some(_) => {
                let from = if self.url.is_some() { "--store" } else { "DATABASE_URL" };
                Err(format!("{from} must be postgres://USER@HOST/DATABASE, or embedded"))
            }
        }
    }

    /// Whether the operator has named a store, be it the embedded one.
    #[must_use]
    pub const fn is_chosen(&self) -> bool {
        self.url.is_some() || self.database_url.is_some()
    }

    /// The file of the master key.
    #[must_use]
    pub fn master_key(&self, data: &Path) -> PathBuf {
        self.master_key.clone().unwrap_or_else(|| data.join("master.key"))
    }
}

/// The URL of a store. It may hold a password, so that it is never shown; every text is taken here and judged later, because a
/// parser of arguments repeats what it refuses.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// The URL, with its password.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreUrl(..)")
    }
}

/// Who may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
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

    /// What is wrong with the options together.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.store.database()?;
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        store: StoreOptions,
    }

    fn parse(arguments: &[&str]) -> StoreOptions {
        Line::try_parse_from(["guardian"].iter().chain(arguments)).unwrap().store
    }

    #[test]
    fn the_store_that_is_named_outright_counts() {
        let options = parse(&["--store", "postgres://a/b", "--database-url", "postgres://c/d"]);
        assert_eq!(options.database(), Ok(Some("postgres://a/b")));
        let options = parse(&["--store", "embedded", "--database-url", "postgres://c/d"]);
        assert_eq!(options.database(), Ok(None));
        assert_eq!(StoreOptions::default().database(), Ok(None));
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in ["mysql://me:secret@host/db", "postgres://me:secret@host/db"] {
            let options = parse(&["--store", url]);
            assert!(!format!("{options:?} {:?}", options.database().err()).contains("secret"));
        }
        assert!(parse(&["--store", "mysql://me:secret@host/db"]).database().is_err());
    }
}
