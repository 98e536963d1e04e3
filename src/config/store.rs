//! The locations of the store and the master key.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Serialize, Serializer};
use uuid::Uuid;
use zeroize::Zeroizing;

/// Options of the store and the master key.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct StoreOptions {
    /// The Postgres database that processes share, postgres://USER@HOST/DATABASE, or "embedded" for a store of one process in the data
    /// folder. Default: embedded, on loopback addresses only. DATABASE_URL works too
    #[arg(long = "store", env = "GUARDIAN_STORE", hide_env_values = true, value_name = "URL")]
    #[serde(rename = "store")]
    pub url: Option<StoreUrl>,
    /// The store without --store
    #[arg(long, env = "DATABASE_URL", hide = true, hide_env_values = true)]
    #[serde(skip)]
    pub database_url: Option<StoreUrl>,
    /// The file of the master key, equal for all processes of a store. Default: master.key in the data folder. `serve` and
    /// `worker` create it for an unused store; commands that need no key check the one that is there. The environment variable
    /// GUARDIAN_MASTER_KEY can contain the key instead, as 64 hexadecimal digits
    #[arg(long, env = "GUARDIAN_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key: Option<PathBuf>,
    /// The key itself; environment only, because command lines are visible to others
    #[arg(long, env = MASTER_KEY, hide = true, hide_env_values = true)]
    #[serde(skip)]
    pub master_key_digits: Option<MasterKeyHex>,
    /// Starts only on the store with this id; `migrate` and `serve` print the id
    #[arg(long, env = "GUARDIAN_EXPECT_STORE", value_name = "ID")]
    pub expect_store: Option<Uuid>,
}

/// Environment variables of keys.
const MASTER_KEY: &str = "GUARDIAN_MASTER_KEY";
const NEW_MASTER_KEY: &str = "GUARDIAN_NEW_MASTER_KEY";

/// Options of a new master key.
#[derive(Args, Clone, Debug, Default)]
pub struct NewKeyOptions {
    /// The file of the new master key, created if absent. The environment variable GUARDIAN_NEW_MASTER_KEY can contain the key
    /// instead, as 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub new_master_key: Option<PathBuf>,
    /// The key itself; environment only
    #[arg(long, env = NEW_MASTER_KEY, hide = true, hide_env_values = true)]
    pub new_master_key_digits: Option<MasterKeyHex>,
}

impl NewKeyOptions {
    /// The location of the new key.
    ///
    /// # Errors
    /// A message for the operator, unless exactly one location is given.
    pub fn place(&self) -> Result<MasterKeyLocation<'_>, String> {
        match (&self.new_master_key, &self.new_master_key_digits) {
            (Some(file), None) => Ok(MasterKeyLocation::File(file.clone())),
            (None, Some(digits)) => Ok(MasterKeyLocation::Digits { name: NEW_MASTER_KEY, digits }),
            _ => Err(format!("give the new master key by either --new-master-key or {NEW_MASTER_KEY}")),
        }
    }
}

/// The location of a master key.
#[derive(Clone, Debug)]
pub enum MasterKeyLocation<'a> {
    /// A file, created if absent.
    File(PathBuf),
    /// An environment variable.
    Digits {
        /// The name of the variable.
        name: &'static str,
        /// The value of the variable.
        digits: &'a MasterKeyHex,
    },
}

impl fmt::Display for MasterKeyLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Digits { name, .. } => f.write_str(name),
        }
    }
}

/// The unchecked digits of a key, never shown and wiped when dropped. A check in the argument parser would print rejected values.
#[derive(Clone)]
pub struct MasterKeyHex(Zeroizing<String>);

impl MasterKeyHex {
    /// The digits as given.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for MasterKeyHex {
    fn from(digits: String) -> Self {
        Self(Zeroizing::new(digits))
    }
}

impl fmt::Debug for MasterKeyHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyDigits(..)")
    }
}

impl StoreOptions {
    /// The URL of the database; `None` for the embedded store.
    ///
    /// # Errors
    /// A message for the operator.
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

    /// Whether the operator has chosen a store explicitly.
    #[must_use]
    pub const fn is_chosen(&self) -> bool {
        self.url.is_some() || self.database_url.is_some()
    }

    /// The location of the master key.
    ///
    /// # Errors
    /// A message for the operator, if two locations are given.
    pub fn master_key(&self, data: &Path) -> Result<MasterKeyLocation<'_>, String> {
        match (&self.master_key, &self.master_key_digits) {
            (None, None) => Ok(MasterKeyLocation::File(data.join("master.key"))),
            (Some(file), None) => Ok(MasterKeyLocation::File(file.clone())),
            (None, Some(digits)) => Ok(MasterKeyLocation::Digits { name: MASTER_KEY, digits }),
            (Some(_), Some(_)) => {
                Err(format!("give the master key by either --master-key (GUARDIAN_MASTER_KEY_FILE) or {MASTER_KEY}"))
            }
        }
    }
}

/// The unchecked URL of a store, never shown because it may contain a password. A check in the argument parser would print it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl StoreUrl {
    /// The URL including its password.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Serializes the URL without its password, for the log.
impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.redacted())
    }
}

impl StoreUrl {
    /// The URL without any part that could contain a password; other texts are hidden.
    pub(super) fn redacted(&self) -> String {
        let shown = || {
            let (scheme, rest) = self.0.split_once("://")?;
            let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, _)| (rest, "?.."));
            let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
            let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
            let (user, password) = user.split_once(':').map_or((user, ""), |(user, _)| (user, ":.."));
            let plain = |text: &str, marks: &[u8]| {
                text.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-.%".contains(&byte) || marks.contains(&byte))
            };
            let port = host.rsplit_once(':').is_none_or(|(_, port)| port.ends_with(']') || port.parse::<u16>().is_ok());
            let whole = matches!(scheme, "postgres" | "postgresql")
                && plain(user, b"")
                && plain(host, b":[]")
                && port
                && plain(database, b"");
            let at = if user.is_empty() { "" } else { "@" };
            whole.then(|| format!("{scheme}://{user}{password}{at}{host}/{database}{query}"))
        };
        match self.0.as_str() {
            "embedded" => "embedded".to_owned(),
            _ => shown().unwrap_or_else(|| "(not shown)".to_owned()),
        }
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
