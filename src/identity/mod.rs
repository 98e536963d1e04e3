//! API keys, tokens of an issuer, their scopes, and the callers of requests.

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

/// A stored API key, without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    /// The id, a part of the token.
    pub id: Uuid,
    /// The tenant whose data the key opens.
    pub tenant: String,
    /// A name for operators.
    pub name: String,
    /// The scopes of the key.
    pub scopes: Scopes,
    /// The hash of the token's secret.
    pub hash: TokenHash,
    /// The time of its creation.
    pub created_at: DateTime<Utc>,
    /// The time of its expiry, if any.
    pub expires_at: Option<DateTime<Utc>>,
    /// The time of its revocation, if any.
    pub revoked_at: Option<DateTime<Utc>>,
    /// The populations of which it may upload and publish rows; empty if of any and of none.
    pub populations: Vec<String>,
}

impl ApiKey {
    /// Whether `token` belongs to this key and is valid at `now`.
    #[must_use]
    pub fn admits(&self, token: &Token, now: DateTime<Utc>) -> bool {
        // constant time: the duration does not reveal which check failed
        self.id == token.id() && (self.hash == token.hash()) & self.works(now)
    }

    /// Whether the key is neither revoked nor expired at `now`.
    #[must_use]
    pub fn works(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_none() && !self.has_expired(now)
    }

    /// Whether the key has expired at `now`.
    #[must_use]
    pub fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// The actor of an audit log entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actor {
    /// An anonymous caller, the command line or the service itself.
    Unnamed,
    /// The caller's API key.
    Key(Uuid),
    /// The subject of an issuer's token.
    Subject {
        /// The claim `sub`.
        subject: String,
        /// The end of the token's validity.
        until: DateTime<Utc>,
    },
}

impl Actor {
    /// The id of the key, if the actor is a key.
    #[must_use]
    pub const fn key(&self) -> Option<Uuid> {
        match self {
            Self::Key(id) => Some(*id),
            Self::Unnamed | Self::Subject { .. } => None,
        }
    }

    /// The name in the audit log, if any.
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

/// The caller of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The tenant whose data the request may access.
    pub tenant: String,
    /// The scopes of the caller.
    pub scopes: Scopes,
    /// The identity of the caller.
    pub actor: Actor,
    /// The populations of which the caller may upload and publish rows; empty if of any and of none.
    pub populations: Vec<String>,
}

impl Caller {
    /// The caller of a service without authentication, which serves loopback only.
    #[must_use]
    pub fn local() -> Self {
        Self { tenant: DEFAULT_TENANT.to_owned(), scopes: Scopes::ALL, actor: Actor::Unnamed, populations: Vec::new() }
    }

    /// The service itself or its command line, for a tenant; it has no scopes.
    #[must_use]
    pub const fn upkeep(tenant: String) -> Self {
        Self { tenant, scopes: Scopes::NONE, actor: Actor::Unnamed, populations: Vec::new() }
    }

    /// The caller of a key.
    #[must_use]
    pub fn from_key(key: &ApiKey) -> Self {
        Self {
            tenant: key.tenant.clone(),
            scopes: key.scopes,
            actor: Actor::Key(key.id),
            populations: key.populations.clone(),
        }
    }

    /// Whether the caller may upload and publish rows of a population, or of none.
    #[must_use]
    pub fn may_handle_rows_of(&self, population: Option<&str>) -> bool {
        self.populations.is_empty() || population.is_some_and(|name| self.populations.iter().any(|own| own == name))
    }

    /// Whether the caller may see what a table says: with the scope, or as the one who uploaded it.
    #[must_use]
    pub fn may_inspect(&self, uploaded_by: Option<&str>) -> bool {
        let is_own = || uploaded_by.is_some() && self.actor.name().as_deref() == uploaded_by;
        self.has_scope(Scope::DatasetsInspect) || (self.has_scope(Scope::DatasetsWrite) && is_own())
    }

    /// Whether the caller has `scope`.
    #[must_use]
    pub const fn has_scope(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restricted_caller_is_for_its_populations_alone() {
        let of = |names: &[&str]| {
            let populations = names.iter().map(|name| (*name).to_owned()).collect();
            Caller { populations, ..Caller::local() }
        };
        let may = |names: &[&str]| {
            [None, Some("a"), Some("b"), Some("A"), Some("")].map(|into| of(names).may_handle_rows_of(into))
        };
        assert_eq!(may(&[]), [true; 5]);
        assert_eq!(may(&["a"]), [false, true, false, false, false]);
        assert_eq!(may(&["a", "b"]), [false, true, true, false, false]);
    }
}
