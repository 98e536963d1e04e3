//! Creation, listing and revocation of API keys, for the command line and the first start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::error::StartError;
use super::open::open_store_without_key;
use crate::clock::Clock;
use crate::config::StoreOptions;
use crate::identity::{ApiKey, Caller, DEFAULT_TENANT, Preset, Scopes, Token};
use crate::ports::{AuditAction, AuditEntry, Store, StoreError};
use crate::store::OpenStore;

/// Number and pause of checks for the first key of another process.
const MAX_BOOTSTRAP_POLLS: u32 = 10;
const BOOTSTRAP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// More than a token has.
const MAX_TOKEN_FILE_BYTES: u64 = 1024;

/// Properties of a new key.
pub struct NewKey {
    /// The tenant whose data the key opens.
    pub tenant: String,
    /// A name for operators.
    pub name: String,
    /// The scopes of the key.
    pub scopes: Scopes,
    /// The lifetime of the key; unlimited by default.
    pub lifetime: Option<Duration>,
    /// The populations into which the key may upload; empty if it may upload into any and into none.
    pub populations: Vec<String>,
}

/// Manages the keys of a store for a command.
pub struct ApiKeyAdmin {
    store: OpenStore,
    clock: Clock,
}

impl ApiKeyAdmin {
    /// Opens the store of the options.
    ///
    /// # Errors
    /// [`StartError`]; also while another process has the embedded store open.
    pub async fn open(options: &StoreOptions, data: &Path) -> Result<Self, StartError> {
        let store = open_store_without_key(options, data).await?;
        Ok(Self { store, clock: Clock::system() })
    }

    /// Creates a key and returns its token, which is not stored.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn create(&self, wanted: NewKey) -> Result<(ApiKey, Token), StartError> {
        let (key, token) = draw(wanted, self.clock.now())?;
        keep(self.store.shared().as_ref(), &key, &self.clock).await?;
        Ok((key, token))
    }

    /// The keys of a tenant, or of all tenants.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn list(&self, tenant: Option<&str>) -> Result<Vec<ApiKey>, StartError> {
        Ok(self.store.shared().keys(tenant).await?)
    }

    /// Revokes a key; `None` for an unknown key.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn revoke(&self, id: Uuid) -> Result<Option<ApiKey>, StartError> {
        let (store, now) = (self.store.shared(), self.clock.now());
        let Some(key) = store.key(id).await? else { return Ok(None) };
        let audit_entry = AuditEntry::new(&operator(&key.tenant), AuditAction::RevokeKey, id, now);
        Ok(Some(store.revoke_key(id, now, &audit_entry).await?))
    }

    /// The current time, for the expiry of keys.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Closes all connections of the store.
    pub async fn close(self) {
        self.store.close().await;
    }
}

/// The caller of the command line, without a key, for a tenant.
pub(super) fn operator(tenant: &str) -> Caller {
    Caller::upkeep(tenant.to_owned())
}

fn draw(wanted: NewKey, now: DateTime<Utc>) -> Result<(ApiKey, Token), StartError> {
    let id = Uuid::now_v7();
    let token = Token::draw(id).map_err(StartError::Randomness)?;
    let lifetime = wanted.lifetime.and_then(|lifetime| chrono::Duration::from_std(lifetime).ok());
    let key = ApiKey {
        id,
        tenant: wanted.tenant,
        name: wanted.name,
        scopes: wanted.scopes,
        hash: token.hash(),
        created_at: now,
        expires_at: lifetime.map(|lifetime| now + lifetime),
        revoked_at: None,
        populations: wanted.populations,
    };
    Ok((key, token))
}

async fn keep(store: &dyn Store, key: &ApiKey, clock: &Clock) -> Result<(), StartError> {
    Ok(store.insert_key(key, &made(key, clock)).await?)
}

/// The audit log entry of a new key.
fn made(key: &ApiKey, clock: &Clock) -> AuditEntry {
    let mut audit_entry = AuditEntry::new(&operator(&key.tenant), AuditAction::CreateKey, key.id, clock.now());
    let mut detail = key.scopes.to_string();
    if !key.populations.is_empty() {
        detail += &format!("; uploads into {}", key.populations.join(", "));
    }
    audit_entry.detail = Some(detail);
    audit_entry
}

/// Creates the first key in a file that only its owner can read. Of concurrent processes only one creates it. The token of another
/// store, which may be gone, is kept under a name of its own; any other file stays, and no key is made.
pub(super) async fn bootstrap(store: &dyn Store, clock: &Clock, file: &Path) -> Result<(), StartError> {
    if !store.keys(None).await?.is_empty() {
        return Ok(());
    }
    let wanted = NewKey {
        tenant: DEFAULT_TENANT.to_owned(),
        name: "bootstrap".to_owned(),
        scopes: Preset::Admin.scopes(),
        lifetime: None,
        populations: Vec::new(),
    };
    let (key, token) = draw(wanted, clock.now())?;
    // write the file first: a key without its token would block another first key
    let failed = |error| StartError::BootstrapKey(file.to_owned(), error);
    let mut written = file.to_owned();
    if let Err(error) = write_new(file, &token.reveal()) {
        // another process with the same file may be creating the key
        if error.kind() == io::ErrorKind::AlreadyExists && appears(store).await? {
            return Ok(());
        }
        if error.kind() != io::ErrorKind::AlreadyExists || !holds_token(file).map_err(failed)? {
            return Err(failed(error));
        }
        written.add_extension(key.id.simple().to_string());
        write_new(&written, &token.reveal()).map_err(failed)?;
    }
    let first = store.insert_first_key(&key, &made(&key, clock)).await;
    if !matches!(first, Ok(true)) {
        // a token without a key opens nothing
        let _ = fs::remove_file(&written);
    } else if written != file {
        let mut kept = file.to_owned();
        kept.add_extension(format!("before-{}", key.id.simple()));
        fs::rename(file, &kept).and_then(|()| fs::rename(&written, file)).map_err(failed)?;
    }
    first?;
    Ok(())
}

/// Whether a file holds a token and nothing else.
fn holds_token(file: &Path) -> io::Result<bool> {
    let mut text = Zeroizing::new(String::new());
    File::open(file)?.take(MAX_TOKEN_FILE_BYTES).read_to_string(&mut text)?;
    Ok(Token::parse(text.trim()).is_some())
}

/// Whether a key exists now or within a moment.
async fn appears(store: &dyn Store) -> Result<bool, StoreError> {
    for _ in 0..MAX_BOOTSTRAP_POLLS {
        if !store.keys(None).await?.is_empty() {
            return Ok(true);
        }
        tokio::time::sleep(BOOTSTRAP_POLL_INTERVAL).await;
    }
    Ok(false)
}

fn write_new(file: &Path, token: &Zeroizing<String>) -> io::Result<()> {
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(open, "{}", token.as_str())?;
    open.sync_all()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::ports::AuditFilter;
    use crate::store::postgres::tests::database;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        store: StoreOptions,
    }

    fn on(database: &str) -> StoreOptions {
        Line::try_parse_from(["guardian", "--store", database]).unwrap().store
    }

    fn wanted(tenant: &str, lifetime: Option<Duration>) -> NewKey {
        NewKey {
            tenant: tenant.to_owned(),
            name: "x".to_owned(),
            scopes: Preset::Analyst.scopes(),
            lifetime,
            populations: Vec::new(),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn keys_are_kept_in_a_shared_store_while_others_have_it() {
        let (database, home) = (database!(), tempfile::tempdir().unwrap());
        let options = on(&database.url());
        let (one, other) = (
            ApiKeyAdmin::open(&options, home.path()).await.unwrap(),
            ApiKeyAdmin::open(&options, home.path()).await.unwrap(),
        );
        let (key, token) = one.create(wanted("north", None)).await.unwrap();
        let (dead, _) = other.create(wanted("south", Some(Duration::ZERO))).await.unwrap();
        let listed = other.list(Some("north")).await.unwrap();
        assert!(listed == std::slice::from_ref(&key) && listed[0].admits(&token, other.now()));
        assert!(one.list(Some("south")).await.unwrap()[0].has_expired(one.now()));
        assert_eq!(one.list(None).await.unwrap().len(), 2);
        let revoked = other.revoke(key.id).await.unwrap().unwrap();
        assert!(!revoked.admits(&token, other.now()));
        assert!(!one.list(Some("north")).await.unwrap()[0].works(one.now()));
        assert!(other.revoke(Uuid::now_v7()).await.unwrap().is_none());
        let log = one.store.shared().audit("north", AuditFilter::default(), None, 9).await.unwrap().items;
        assert_eq!(log.iter().map(|entry| entry.action.as_str()).collect::<Vec<_>>(), ["key.revoke", "key.create"]);
        assert_eq!(log[0].object, key.id.to_string());
        assert_ne!(dead.id, key.id);
        one.close().await;
        other.close().await;
    }

    /// Starts several services on one database, each with its own `file`.
    async fn start_together(options: &StoreOptions, home: &Path, file: impl Fn(usize) -> String) -> Vec<String> {
        let mut rings = Vec::new();
        for _ in 0..6 {
            rings.push(ApiKeyAdmin::open(options, home).await.unwrap());
        }
        let starts = rings.iter().enumerate().map(|(number, ring)| {
            let (store, path) = (ring.store.shared(), home.join(file(number)));
            tokio::spawn(async move { bootstrap(store.as_ref(), &Clock::system(), &path).await })
        });
        for start in starts.collect::<Vec<_>>() {
            start.await.unwrap().unwrap();
        }
        let keys = rings[0].list(None).await.unwrap();
        assert_eq!(keys.len(), 1, "one key");
        let log = rings[0].store.shared().audit(DEFAULT_TENANT, AuditFilter::default(), None, 9).await.unwrap().items;
        assert_eq!(log.len(), 1);
        let files = fs::read_dir(home).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        let tokens: Vec<_> = files.collect();
        assert!(keys[0].admits(&Token::parse(tokens[0].trim()).unwrap(), rings[0].now()));
        for ring in rings {
            ring.close().await;
        }
        tokens
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn processes_that_start_together_make_one_key() {
        for _ in 0..3 {
            let (database, home) = (database!(), tempfile::tempdir().unwrap());
            let tokens = start_together(&on(&database.url()), home.path(), |number| format!("{number}.key")).await;
            assert_eq!(tokens.len(), 1, "the others leave no file");
        }
        let (database, home) = (database!(), tempfile::tempdir().unwrap());
        let tokens = start_together(&on(&database.url()), home.path(), |_| "one.key".to_owned()).await;
        assert_eq!(tokens.len(), 1, "the file of another process remains");
    }

    #[tokio::test]
    async fn the_token_of_another_store_is_kept_under_another_name() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("first.key");
        let mut tokens = Vec::new();
        for data in ["one", "two"] {
            let ring = ApiKeyAdmin::open(&StoreOptions::default(), &home.path().join(data)).await.unwrap();
            bootstrap(ring.store.shared().as_ref(), &ring.clock, &file).await.unwrap();
            let token = Token::parse(fs::read_to_string(&file).unwrap().trim()).unwrap();
            assert!(ring.list(None).await.unwrap()[0].admits(&token, ring.now()));
            tokens.push(token.reveal().to_string());
            ring.close().await;
        }
        let names = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut kept: Vec<_> = names.filter(|path| path.is_file() && *path != file).collect();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(fs::read_to_string(kept.remove(0)).unwrap().trim(), tokens[0]);
        assert_ne!(tokens[0], tokens[1]);
    }

    #[tokio::test]
    async fn a_file_that_is_there_is_kept_and_makes_no_key() {
        let home = tempfile::tempdir().unwrap();
        let ring = ApiKeyAdmin::open(&StoreOptions::default(), &home.path().join("data")).await.unwrap();
        let file = home.path().join("first.key");
        fs::write(&file, "mine").unwrap();
        let made = bootstrap(ring.store.shared().as_ref(), &ring.clock, &file).await;
        assert!(matches!(made, Err(StartError::BootstrapKey(..))));
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert!(ring.list(None).await.unwrap().is_empty());
        ring.close().await;
    }
}
