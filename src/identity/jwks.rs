//! The keys of an issuer: a JWKS document (RFC 7517) in a file that the operator maintains.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse, RSAKeyParameters,
};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde_json::Value;

use super::Caller;
use super::jwt::{self, JwtRules, TokenError};

const MAX_FILE_BYTES: u64 = 1 << 20;
/// The pause between two reads of the file; an unknown key triggers an immediate read.
const JWKS_RELOAD_INTERVAL: TimeDelta = TimeDelta::seconds(2);
/// Members of private keys.
const PRIVATE_JWK_MEMBERS: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "oth"];

/// The reason why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    /// The file cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The file is not a JWKS document.
    #[error("the file is not a JSON object with a list of keys")]
    NotJwks,
    /// The file contains private keys.
    #[error("the file contains a private key; the service needs public keys only")]
    PrivateKey,
    /// Several keys have the same `kid`.
    #[error("two keys have the same kid")]
    SameId,
    /// No key of the file can verify a token.
    #[error("the file contains no key for signatures with RSA of 2048 to 4096 bits, P-256, P-384 or Ed25519")]
    NoKey,
}

/// The usable public keys of an issuer.
#[derive(Debug)]
pub(super) struct KeySet(Vec<PublicKey>);

/// A key with its only algorithm.
#[derive(Debug)]
pub(super) struct PublicKey {
    id: Option<String>,
    pub(super) algorithm: Algorithm,
    pub(super) verifying: DecodingKey,
}

impl KeySet {
    /// Parses a document; ignores keys for other purposes, as RFC 7517 requires.
    fn parse(document: &[u8]) -> Result<Self, KeySetError> {
        let document: Value = serde_json::from_slice(document).map_err(|_| KeySetError::NotJwks)?;
        let members = document.get("keys").and_then(Value::as_array).ok_or(KeySetError::NotJwks)?;
        let mut keys: Vec<PublicKey> = Vec::new();
        for member in members {
            if PRIVATE_JWK_MEMBERS.iter().any(|name| member.get(name).is_some()) {
                return Err(KeySetError::PrivateKey);
            }
            let Some(key) = PublicKey::from_jwk(member) else { continue };
            if key.id.is_some() && keys.iter().any(|other| other.id == key.id) {
                return Err(KeySetError::SameId);
            }
            keys.push(key);
        }
        if keys.is_empty() { Err(KeySetError::NoKey) } else { Ok(Self(keys)) }
    }

    /// The key of a token: by its `kid`, or the only key if the token or the key has no `kid`.
    pub(super) fn find(&self, id: Option<&str>) -> Option<&PublicKey> {
        match (id, self.0.as_slice()) {
            (None, [only]) => Some(only),
            (Some(_), [only]) if only.id.is_none() => Some(only),
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
            (None, _) => None,
        }
    }
}

impl PublicKey {
    fn from_jwk(member: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(member.clone()).ok()?;
        let common = &jwk.common;
        let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let verifies = common.key_operations.as_ref().is_none_or(|acts| acts.contains(&KeyOperations::Verify));
        if !signs || !verifies {
            return None;
        }
        let declared = common.key_algorithm;
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(numbers) if is_strong(numbers) => rsa_algorithm(declared)?,
            AlgorithmParameters::EllipticCurve(point) => match point.curve {
                EllipticCurve::P256 => expected_algorithm(declared, KeyAlgorithm::ES256, Algorithm::ES256)?,
                EllipticCurve::P384 => expected_algorithm(declared, KeyAlgorithm::ES384, Algorithm::ES384)?,
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(point) if point.curve == EllipticCurve::Ed25519 => {
                // the library truncates longer keys and panics on shorter ones
                bytes(&point.x).filter(|bytes| bytes.len() == 32)?;
                expected_algorithm(declared, KeyAlgorithm::EdDSA, Algorithm::EdDSA)?
            }
            _ => return None,
        };
        let verifying = DecodingKey::from_jwk(&jwk).ok()?;
        // rejects a point outside its curve
        crypto::verify("", b"", &verifying, algorithm).ok()?;
        Some(Self { id: jwk.common.key_id, algorithm, verifying })
    }
}

fn expected_algorithm(declared: Option<KeyAlgorithm>, fits: KeyAlgorithm, algorithm: Algorithm) -> Option<Algorithm> {
    declared.is_none_or(|declared| declared == fits).then_some(algorithm)
}

/// The algorithm of an RSA key, RS256 by default.
fn rsa_algorithm(declared: Option<KeyAlgorithm>) -> Option<Algorithm> {
    match declared {
        None | Some(KeyAlgorithm::RS256) => Some(Algorithm::RS256),
        Some(KeyAlgorithm::RS384) => Some(Algorithm::RS384),
        Some(KeyAlgorithm::RS512) => Some(Algorithm::RS512),
        Some(KeyAlgorithm::PS256) => Some(Algorithm::PS256),
        Some(KeyAlgorithm::PS384) => Some(Algorithm::PS384),
        Some(KeyAlgorithm::PS512) => Some(Algorithm::PS512),
        Some(_) => None,
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Whether the modulus has 2048 to 4096 bits and the exponent is sound.
fn is_strong(numbers: &RSAKeyParameters) -> bool {
    let (Some(modulus), Some(exponent)) = (bytes(&numbers.n), bytes(&numbers.e)) else { return false };
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let modulus = &modulus[zeros..];
    let bits = modulus.first().map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
    let exponent = exponent.iter().try_fold(0u32, |sum, byte| sum.checked_mul(256)?.checked_add(u32::from(*byte)));
    (2048..=4096).contains(&bits) && exponent.is_some_and(|exponent| exponent >= 3 && exponent % 2 == 1)
}

/// Verifies the tokens of an issuer with the keys of a file.
#[derive(Debug)]
pub struct Issuer {
    rules: JwtRules,
    file: PathBuf,
    state: Mutex<KeySetState>,
}

#[derive(Debug)]
struct KeySetState {
    keys: Arc<KeySet>,
    /// The last content of the file, usable or not, so that each content is parsed once.
    found: Result<Vec<u8>, io::ErrorKind>,
    looked_at: DateTime<Utc>,
}

impl Issuer {
    /// Reads the keys of the file.
    ///
    /// # Errors
    /// [`KeySetError`] if the file is missing or has no usable keys.
    pub fn open(rules: JwtRules, file: &Path, now: DateTime<Utc>) -> Result<Self, KeySetError> {
        let found = read(file)?;
        let keys = Arc::new(KeySet::parse(&found)?);
        let state = Mutex::new(KeySetState { keys, found: Ok(found), looked_at: now });
        Ok(Self { rules, file: file.to_owned(), state })
    }

    /// The caller of a token at `now`. Blocks while it reads the file and verifies the signature.
    ///
    /// # Errors
    /// [`TokenError`]
    pub fn admit(&self, token: &str, now: DateTime<Utc>) -> Result<Caller, TokenError> {
        let header = jwt::header(token)?;
        let mut keys = self.keys(now, false);
        if keys.find(header.kid.as_deref()).is_none() {
            keys = self.keys(now, true);
        }
        self.rules.admit(&header, token, &keys, now)
    }

    /// The keys, after a reload if due or requested.
    fn keys(&self, now: DateTime<Utc>, at_once: bool) -> Arc<KeySet> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let age = now - state.looked_at;
        // tolerates a clock that was set back
        if at_once || age >= JWKS_RELOAD_INTERVAL || age < TimeDelta::zero() {
            state.looked_at = now;
            self.look(&mut state);
        }
        Arc::clone(&state.keys)
    }

    fn look(&self, state: &mut KeySetState) {
        let found = read(&self.file);
        let seen = found.as_ref().map(Vec::as_slice).map_err(io::Error::kind);
        if seen == state.found.as_deref().map_err(|kind| *kind) {
            return;
        }
        let parsed = seen.map_err(io::Error::from).map_err(KeySetError::from).and_then(KeySet::parse);
        match parsed {
            Ok(keys) => {
                tracing::info!(keys = keys.0.len(), "reloaded the keys of the issuer");
                state.keys = Arc::new(keys);
            }
            Err(error) => {
                let file = self.file.display();
                tracing::warn!(file = %file, error = %error, "JWKS file is unusable; the previous keys remain valid");
            }
        }
        state.found = found.map_err(|error| error.kind());
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let open = File::open(file)?;
    if !open.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is not a regular file"));
    }
    let mut found = Vec::new();
    open.take(MAX_FILE_BYTES + 1).read_to_end(&mut found)?;
    if found.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large for a key set"));
    }
    Ok(found)
}
