//! Making, listing and revoking API keys, beside the service: from the command line, and for the first start.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{StartError, open_store};
use crate::clock::Clock;
use crate::config::StoreOptions;
use crate::identity::{ApiKey, Caller, DEFAULT_TENANT, Preset, Scopes, Token};
use crate::jobs::{Action, AuditEntry, Store, StoreError};
use crate::store::OpenStore;

/// What a new key is to be.
pub struct NewKey {
    /// Whose data it opens.
    pub tenant: String,
    /// For people.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// How long it works; for ever when not given.
    pub lifetime: Option<std::time::Duration>,
}

/// The keys of a store, open for a command.
pub struct KeyRing {
    store: OpenStore,
    clock: Clock,
}

impl KeyRing {
    /// Opens the store.
    ///
    /// # Errors
    /// [`StartError`]; also while another process has the embedded store open.
    pub async fn open(options: &StoreOptions, data: &Path) -> Result<Self, StartError> {
        let store = open_store(options, data).await?;
        Ok(Self { store, clock: Clock::system() })
    }

    /// Makes a key; its token is in no other place than the answer.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn create(&self, wanted: NewKey) -> Result<(ApiKey, Token), StartError> {
        let (key, token) = draw(wanted, self.clock.now())?;
        keep(self.store.shared().as_ref(), &key, &self.clock).await?;
        Ok((key, token))
    }

    /// The keys of a tenant, or of all.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn list(&self, tenant: Option<&str>) -> Result<Vec<ApiKey>, StartError> {
        Ok(self.store.shared().keys(tenant).await?)
    }

    /// Ends a key; `None` when there is no such key.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn revoke(&self, id: Uuid) -> Result<Option<ApiKey>, StartError> {
        let (store, now) = (self.store.shared(), self.clock.now());
        let key = match store.revoke_key(id, now).await {
            Ok(key) => key,
            Err(StoreError::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        store.append_audit(&AuditEntry::of(&operator(&key), Action::RevokeKey, id, now)).await?;
        Ok(Some(key))
    }

    /// Ends every connection.
    pub async fn close(self) {
        self.store.close().await;
    }
}

/// Whoever has the command line: no key, on behalf of the key's tenant.
fn operator(key: &ApiKey) -> Caller {
    Caller { tenant: key.tenant.clone(), scopes: Scopes::NONE, key: None }
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
    };
    Ok((key, token))
}

async fn keep(store: &dyn Store, key: &ApiKey, clock: &Clock) -> Result<(), StartError> {
    store.insert_key(key).await?;
    let mut entry = AuditEntry::of(&operator(key), Action::CreateKey, key.id, clock.now());
    entry.detail = Some(key.scopes.to_string());
    store.append_audit(&entry).await?;
    Ok(())
}

/// The first key, when there is none, in a file that only its owner can read.
pub(super) async fn bootstrap(store: &dyn Store, clock: &Clock, file: &Path) -> Result<(), StartError> {
    if !store.keys(None).await?.is_empty() {
        return Ok(());
    }
    let wanted = NewKey {
        tenant: DEFAULT_TENANT.to_owned(),
        name: "bootstrap".to_owned(),
        scopes: Preset::Admin.scopes(),
        lifetime: None,
    };
    let (key, token) = draw(wanted, clock.now())?;
    // written first: a key whose token nobody has would stand in the way of another
    write_new(file, &token.reveal()).map_err(|error| StartError::BootstrapKey(file.to_owned(), error))?;
    let kept = keep(store, &key, clock).await;
    if kept.is_err() {
        // a token without a key opens nothing; the error is the one to tell
        let _ = std::fs::remove_file(file);
    }
    kept
}

fn write_new(file: &Path, token: &Zeroizing<String>) -> io::Result<()> {
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    writeln!(open, "{}", token.as_str())?;
    open.sync_all()
}
