//! Who may do what: API keys, their scopes, and the caller that a request turns out to be.

mod scope;
mod token;

pub use scope::{Preset, Scope, Scopes, UnknownName};
pub use token::{Token, TokenHash};

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// The tenant of a service without authentication.
pub const DEFAULT_TENANT: &str = "default";

/// An API key as it is kept: without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    /// Part of the token, and the name under which it is revoked.
    pub id: Uuid,
    /// Whose data it opens.
    pub tenant: String,
    /// For people.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// The hash of the secret.
    pub hash: TokenHash,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it stops working by itself.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
}

impl ApiKey {
    /// Whether `token` is this key's and works at `now`.
    #[must_use]
    pub fn admits(&self, token: &Token, now: DateTime<Utc>) -> bool {
        let alive = self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end);
        self.id == token.id() && self.hash == token.hash() && alive
    }
}

/// Whoever sends a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Whose data the request may reach.
    pub tenant: String,
    /// What it may do.
    pub scopes: Scopes,
    /// The key it came with; none where there is no authentication.
    pub key: Option<Uuid>,
}

impl Caller {
    /// The caller of a service without authentication, which serves loopback only.
    #[must_use]
    pub fn local() -> Self {
        Self { tenant: DEFAULT_TENANT.to_owned(), scopes: Scopes::ALL, key: None }
    }

    /// The caller that a key makes.
    #[must_use]
    pub fn of(key: &ApiKey) -> Self {
        Self { tenant: key.tenant.clone(), scopes: key.scopes, key: Some(key.id) }
    }

    /// Whether it may do what `scope` allows.
    #[must_use]
    pub const fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }
}
