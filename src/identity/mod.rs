//! Who may do what: API keys, tokens of an issuer, their scopes, and the caller that a request turns out to be.

mod jwks;
mod jwt;
mod scope;
mod tenant;
mod token;

use std::fmt;

pub use jwks::{Issuer, KeySetError};
pub use jwt::{JwtRules, TokenError};
pub use scope::{Preset, Scope, Scopes, UnknownScopeError};
pub use tenant::is_tenant;
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
        // no short cut: how long an answer takes does not tell what was wrong
        self.id == token.id() && (self.hash == token.hash()) & self.works(now)
    }

    /// Whether it was neither revoked nor has it expired at `now`.
    #[must_use]
    pub fn works(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && !self.has_expired(now)
    }

    /// Whether it has come to its end by itself.
    #[must_use]
    pub fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// Who acts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actor {
    /// Nobody who has a name: there is no authentication, or the command line or the service itself acts.
    Unnamed,
    /// A key.
    Key(Uuid),
    /// The subject of an issuer's token.
    Subject {
        /// Its `sub`.
        subject: String,
        /// When the token stops working.
        until: DateTime<Utc>,
    },
}

impl Actor {
    /// The key, if it is one.
    #[must_use]
    pub const fn key(&self) -> Option<Uuid> {
        match self {
            Self::Key(id) => Some(*id),
            Self::Unnamed | Self::Subject { .. } => None,
        }
    }

    /// The name in the audit log, if there is one.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        (*self != Self::Unnamed).then(|| self.to_string())
    }
}

/// `key:ID`, `sub:SUBJECT`, or `-`.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => f.write_str("-"),
            Self::Key(id) => write!(f, "key:{id}"),
            Self::Subject { subject, .. } => write!(f, "sub:{subject}"),
        }
    }
}

/// Whoever sends a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Whose data the request may reach.
    pub tenant: String,
    /// What it may do.
    pub scopes: Scopes,
    /// Who it is.
    pub actor: Actor,
}

impl Caller {
    /// The caller of a service without authentication, which serves loopback only.
    #[must_use]
    pub fn local() -> Self {
        Self { tenant: DEFAULT_TENANT.to_owned(), scopes: Scopes::ALL, actor: Actor::Unnamed }
    }

    /// The service itself, or whoever has its command line, on behalf of a tenant. Asks for nothing, so that it needs no scope.
    #[must_use]
    pub const fn upkeep(tenant: String) -> Self {
        Self { tenant, scopes: Scopes::NONE, actor: Actor::Unnamed }
    }

    /// The caller that a key makes.
    #[must_use]
    pub fn from_key(key: &ApiKey) -> Self {
        Self { tenant: key.tenant.clone(), scopes: key.scopes, actor: Actor::Key(key.id) }
    }

    /// Whether it may do what `scope` allows.
    #[must_use]
    pub const fn has_scope(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }
}
