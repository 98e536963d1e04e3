//! An issuer of tokens for tests. Its keys are drawn anew each time.

use std::path::Path;

use chrono::{DateTime, Utc};
use ed25519_dalek::pkcs8::EncodePrivateKey;
use guardian::config::JwtOptions;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rsa::pkcs1::EncodeRsaPrivateKey;
use rsa::rand_core::OsRng;
use serde_json::{Value, json};

pub(crate) const ISSUER: &str = "https://issuer.example";

pub(crate) const AUDIENCE: &str = "guardian";

/// A key pair of an issuer.
pub(crate) struct Signer {
    pub(crate) kid: &'static str,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: EncodingKey,
}

impl Signer {
    pub(crate) fn rsa_of(kid: &'static str, algorithm: Algorithm, bits: usize) -> Self {
        let key = rsa::RsaPrivateKey::new(&mut OsRng, bits).unwrap().to_pkcs1_der().unwrap();
        Self { kid, algorithm, key: EncodingKey::from_rsa_der(key.as_bytes()) }
    }

    pub(crate) fn rsa(kid: &'static str, algorithm: Algorithm) -> Self {
        Self::rsa_of(kid, algorithm, 2048)
    }

    pub(crate) fn p256(kid: &'static str) -> Self {
        let key = p256::ecdsa::SigningKey::random(&mut OsRng).to_pkcs8_der().unwrap();
        Self { kid, algorithm: Algorithm::ES256, key: EncodingKey::from_ec_der(key.as_bytes()) }
    }

    pub(crate) fn p384(kid: &'static str) -> Self {
        let key = p384::ecdsa::SigningKey::random(&mut OsRng).to_pkcs8_der().unwrap();
        Self { kid, algorithm: Algorithm::ES384, key: EncodingKey::from_ec_der(key.as_bytes()) }
    }

    pub(crate) fn ed25519(kid: &'static str) -> Self {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).unwrap();
        let pair = ed25519_dalek::pkcs8::KeypairBytes { secret_key: secret, public_key: None };
        let key = pair.to_pkcs8_der().unwrap();
        Self { kid, algorithm: Algorithm::EdDSA, key: EncodingKey::from_ed_der(key.as_bytes()) }
    }

    /// The public key.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap()).unwrap();
        jwk["kid"] = self.kid.into();
        jwk["use"] = "sig".into();
        jwk
    }

    pub(crate) fn header(&self) -> Header {
        Header { kid: Some(self.kid.to_owned()), ..Header::new(self.algorithm) }
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(&self.header(), claims)
    }

    pub(crate) fn token_with(&self, header: &Header, claims: &Value) -> String {
        encode(header, claims, &self.key).unwrap()
    }
}

/// Good claims at `now`, changed by `change`; null takes a claim away.
pub(crate) fn claims_at(now: DateTime<Utc>, change: Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "jo@example.org", "tenant": "north",
        "exp": now.timestamp() + 600, "scope": "openid preset:admin"});
    for (name, value) in change.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

pub(crate) fn claims(change: Value) -> Value {
    claims_at(Utc::now(), change)
}

pub(crate) fn jwks(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

pub(crate) fn jwt_options(file: &Path) -> JwtOptions {
    let (issuer, audience) = (Some(ISSUER.to_owned()), Some(AUDIENCE.to_owned()));
    JwtOptions { jwks: Some(file.to_owned()), issuer, audience, ..JwtOptions::default() }
}
