//! Verification of JSON web tokens (RFC 7519) and their conversion to callers.

use chrono::{DateTime, Utc};
use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::jwks::KeySet;
use super::{Actor, Caller, Preset, Scope, Scopes, is_tenant};

/// The maximum length of a token.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// The tolerated difference between the clocks of issuer and service.
const LEEWAY_SECONDS: i64 = 60;
/// The end of the year 9999, the latest accepted expiry.
const MAX_EXPIRY_UNIX_SECONDS: i64 = 253_402_300_799;
const MAX_SUBJECT_CHARS: usize = 255;
/// Accepted types of tokens; others serve other purposes, such as logout.
const ACCEPTED_TOKEN_TYPES: [&str; 4] = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"];

/// Required claims of a token.
#[derive(Clone, Debug)]
pub struct JwtRules {
    /// The required `iss`.
    pub issuer: String,
    /// A required member of `aud`.
    pub audience: String,
    /// The name of the claim with the tenant.
    pub tenant_claim: String,
}

/// The reason why a token is rejected, for the log only: callers get a uniform answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenError {
    /// The token cannot be parsed.
    #[error("the token is malformed")]
    Malformed,
    /// The token has critical extensions or another type.
    #[error("the type of the token is not accepted")]
    Kind,
    /// The key of the token is unknown or ambiguous.
    #[error("the key of the token is unknown")]
    UnknownKey,
    /// The signature, issuer, audience or a required claim is wrong.
    #[error("algorithm, signature, issuer, audience or claims of the token are wrong")]
    Claims,
    /// The token is not valid at this time.
    #[error("the token is not valid at this time")]
    Time,
    /// The subject is missing or unusable.
    #[error("the subject of the token is missing or unusable")]
    Subject,
    /// The tenant is missing or unusable.
    #[error("the tenant of the token is missing or unusable")]
    Tenant,
}

/// The unverified header of a token.
pub(super) fn header(token: &str) -> Result<Header, TokenError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(TokenError::Malformed);
    }
    // `none` and unknown algorithms do not parse
    let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
    let usual =
        header.typ.as_ref().is_none_or(|typ| ACCEPTED_TOKEN_TYPES.iter().any(|known| known.eq_ignore_ascii_case(typ)));
    if header.crit.is_none() && usual { Ok(header) } else { Err(TokenError::Kind) }
}

impl JwtRules {
    /// The caller of a token at `now`.
    ///
    /// # Errors
    /// [`TokenError`]
    pub(super) fn admit(
        &self,
        header: &Header,
        token: &str,
        keys: &KeySet,
        now: DateTime<Utc>,
    ) -> Result<Caller, TokenError> {
        let key = keys.find(header.kid.as_deref()).ok_or(TokenError::UnknownKey)?;
        // the key determines the algorithm, not the token
        let mut validation = Validation::new(key.algorithm);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // checked below with the clock of the service
        validation.validate_exp = false;
        let claims = decode::<Map<String, Value>>(token, &key.verifying, &validation);
        let claims = claims.map_err(|_| TokenError::Claims)?.claims;
        // the library also accepts several issuers
        if text(&claims, "iss") != Some(&self.issuer) {
            return Err(TokenError::Claims);
        }
        let until = times(&claims, now)?;
        let usable = |subject: &&str| {
            (1..=MAX_SUBJECT_CHARS).contains(&subject.chars().count()) && !subject.chars().any(char::is_control)
        };
        let subject = text(&claims, "sub").filter(usable).ok_or(TokenError::Subject)?.to_owned();
        let tenant = text(&claims, &self.tenant_claim).filter(|name| is_tenant(name)).ok_or(TokenError::Tenant)?;
        let actor = Actor::Subject { subject, until };
        Ok(Caller { tenant: tenant.to_owned(), scopes: scopes(&claims), actor, populations: Vec::new() })
    }
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str)
}

/// Checks `nbf` and `exp`; returns the end of the token's validity.
fn times(claims: &Map<String, Value>, now: DateTime<Utc>) -> Result<DateTime<Utc>, TokenError> {
    let from = match claims.get("nbf") {
        None => 0,
        Some(from) => seconds(from).ok_or(TokenError::Time)?,
    };
    let end = claims.get("exp").and_then(seconds).ok_or(TokenError::Time)?;
    let until = DateTime::from_timestamp(end.saturating_add(LEEWAY_SECONDS), 0).ok_or(TokenError::Time)?;
    if now < until && from <= now.timestamp().saturating_add(LEEWAY_SECONDS) {
        Ok(until)
    } else {
        Err(TokenError::Time)
    }
}

/// A NumericDate in whole seconds.
fn seconds(claim: &Value) -> Option<i64> {
    let number = claim.as_f64().filter(|number| number.is_finite())?;
    // exact, since both bounds are integers far below 2^53
    Some(number.clamp(0.0, MAX_EXPIRY_UNIX_SECONDS as f64) as i64)
}

/// The scopes of `scope` and `scp`, as texts with spaces or lists; ignores unknown names.
fn scopes(claims: &Map<String, Value>) -> Scopes {
    let mut named = Scopes::NONE;
    for claim in ["scope", "scp"].iter().filter_map(|name| claims.get(*name)) {
        let texts = claim.as_array().map_or(std::slice::from_ref(claim), Vec::as_slice);
        for name in texts.iter().filter_map(Value::as_str).flat_map(str::split_whitespace) {
            if let Ok(scope) = name.parse::<Scope>() {
                named = named.with(Scopes::from_iter([scope]));
            } else if let Some(Ok(preset)) = name.strip_prefix("preset:").map(str::parse::<Preset>) {
                named = named.with(preset.scopes());
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn scopes_are_named_in_texts_and_lists() {
        let of = |value| scopes(&claims(value)).to_string();
        assert_eq!(of(json!({"scope": "openid jobs  releases:read profile"})), "jobs releases:read");
        assert_eq!(of(json!({"scp": ["jobs", 7, "ledger:read", "preset:analyst"]})), "jobs releases:read ledger:read");
        assert_eq!(
            of(json!({"scope": "preset:pipeline", "scp": "operate"})),
            "datasets:write jobs releases:read operate"
        );
        for nothing in
            [json!({}), json!({"scope": 7}), json!({"scope": "preset:king Jobs admin *"}), json!({"scp": {}})]
        {
            assert_eq!(of(nothing), "");
        }
    }

    #[test]
    fn times_are_judged_to_the_second_with_leeway() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let judge = |value| times(&claims(value), now);
        assert_eq!(judge(json!({"exp": 1_000_000})), Ok(DateTime::from_timestamp(1_000_060, 0).unwrap()));
        assert!(judge(json!({"exp": 999_941})).is_ok());
        assert!(judge(json!({"exp": 2_000_000, "nbf": 1_000_060})).is_ok());
        for distant in [json!({"exp": u64::MAX}), json!({"exp": 1e300}), json!({"exp": 1_000_000.5})] {
            assert!(judge(distant).is_ok());
        }
        for wrong in [
            json!({"exp": 999_940}),
            json!({"exp": 0}),
            json!({"exp": -1}),
            json!({"exp": "2000000"}),
            json!({"exp": null}),
            json!({}),
            json!({"exp": 2_000_000, "nbf": 1_000_061}),
            json!({"exp": 2_000_000, "nbf": "0"}),
            json!({"exp": 2_000_000, "nbf": null}),
        ] {
            assert_eq!(judge(wrong.clone()), Err(TokenError::Time), "{wrong}");
        }
    }
}
