//! Where the store and the master key are.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Serialize, Serializer};
use uuid::Uuid;
use zeroize::Zeroizing;

/// Where what lasts is kept.
#[derive(Args, Clone, Debug, Default, Serialize)]
pub struct StoreOptions {
    /// A Postgres database that processes share, as postgres://USER@HOST/DATABASE; without it, or as "embedded", one process keeps
    /// all in the data folder, and must be told so to listen beyond loopback. DATABASE_URL is taken too
    #[arg(long = "store", env = "GUARDIAN_STORE", hide_env_values = true, value_name = "URL")]
    #[serde(rename = "store")]
    pub url: Option<StoreUrl>,
    /// What counts where --store says nothing
    #[arg(long, env = "DATABASE_URL", hide = true, hide_env_values = true)]
    #[serde(skip)]
    pub database_url: Option<StoreUrl>,
    /// The file of the master key, made when there is none; every process on one store needs the same. Default:
    /// master.key in the data folder. The environment variable GUARDIAN_MASTER_KEY can hold the key itself instead, as 64
    /// hexadecimal digits
    #[arg(long, env = "GUARDIAN_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key: Option<PathBuf>,
    /// The key itself; for the environment alone, because others can see a command line
    #[arg(long, env = MASTER_KEY, hide = true, hide_env_values = true)]
    #[serde(skip)]
    pub master_key_digits: Option<MasterKeyHex>,
    /// Start on the store with this id alone, and not on another or an emptied one; `migrate` and `serve` say the id
    #[arg(long, env = "GUARDIAN_EXPECT_STORE", value_name = "ID")]
    pub expect_store: Option<Uuid>,
}

/// The environment variables that hold keys.
const MASTER_KEY: &str = "GUARDIAN_MASTER_KEY";
const NEW_MASTER_KEY: &str = "GUARDIAN_NEW_MASTER_KEY";

/// The master key that takes the place of the present one.
#[derive(Args, Clone, Debug, Default)]
pub struct NewKeyOptions {
    /// The file of the new master key, made when there is none. The environment variable GUARDIAN_NEW_MASTER_KEY can hold the key
    /// itself instead, as 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    pub new_master_key: Option<PathBuf>,
    /// The key itself; for the environment alone
    #[arg(long, env = NEW_MASTER_KEY, hide = true, hide_env_values = true)]
    pub new_master_key_digits: Option<MasterKeyHex>,
}

impl NewKeyOptions {
    /// Where the new key is.
    ///
    /// # Errors
    /// A sentence for the operator, unless exactly one place is named.
    pub fn place(&self) -> Result<MasterKeyLocation<'_>, String> {
        match (&self.new_master_key, &self.new_master_key_digits) {
            (Some(file), None) => Ok(MasterKeyLocation::File(file.clone())),
            (None, Some(digits)) => Ok(MasterKeyLocation::Digits { name: NEW_MASTER_KEY, digits }),
            _ => Err(format!("name the new master key with either --new-master-key or {NEW_MASTER_KEY}")),
        }
    }
}

/// Where a master key is.
#[derive(Clone, Debug)]
pub enum MasterKeyLocation<'a> {
    /// In a file, made when there is none.
    File(PathBuf),
    /// In the environment.
    Digits {
        /// The variable.
        name: &'static str,
        /// What it holds.
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

/// The digits of a key. Never shown, wiped when dropped; every text is taken here and judged later, because a parser of arguments
/// repeats what it refuses.
#[derive(Clone)]
pub struct MasterKeyHex(Zeroizing<String>);

impl MasterKeyHex {
    /// The digits.
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

    /// Where the master key is.
    ///
    /// # Errors
    /// A sentence for the operator, when two places are named.
    pub fn master_key(&self, data: &Path) -> Result<MasterKeyLocation<'_>, String> {
        match (&self.master_key, &self.master_key_digits) {
            (None, None) => Ok(MasterKeyLocation::File(data.join("master.key"))),
            (Some(file), None) => Ok(MasterKeyLocation::File(file.clone())),
            (None, Some(digits)) => Ok(MasterKeyLocation::Digits { name: MASTER_KEY, digits }),
            (Some(_), Some(_)) => {
                Err(format!("name the master key with either --master-key (GUARDIAN_MASTER_KEY_FILE) or {MASTER_KEY}"))
            }
        }
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

/// The URL as it may be logged: who, where and which database.
impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.redacted())
    }
}

impl StoreUrl {
    /// The URL without a password or anything else that could hold one. What is not plainly a URL is not shown at all.
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
