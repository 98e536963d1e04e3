//! Nights by what they published: which one a state goes on from, and which one a manifest describes.

use crate::publication::NightDigest;
use crate::report::{Manifest, MethodDetailsForm, RepublishForm};
use crate::republication::State;

/// The night that a state goes on from.
pub struct LastNight {
    /// Its number, from 1.
    pub night: u32,
    digest: NightDigest,
}

/// The night that a state goes on from; `None` of one that cannot be read.
#[must_use]
pub fn last_night(state: &[u8]) -> Option<LastNight> {
    let (night, digest) = State::last_night(state)?;
    Some(LastNight { night, digest })
}

/// Whether a manifest is that of a night.
#[must_use]
pub fn shows_night(manifest: &Manifest, night: &LastNight) -> bool {
    night_of(manifest).is_some_and(|form| form.night == night.night) && digest_of(manifest) == night.digest
}

/// What a manifest says of its night; `None` of a release that is none.
pub(in crate::engine) fn night_of(manifest: &Manifest) -> Option<&RepublishForm> {
    match &manifest.method_details {
        Some(MethodDetailsForm::Republish(form)) => Some(form),
        _ => None,
    }
}

/// The digest of a night, by the hashes in its manifest.
pub(in crate::engine) fn digest_of(manifest: &Manifest) -> NightDigest {
    let previous = night_of(manifest).and_then(|form| form.previous.as_ref());
    let previous = previous.map(|previous| NightDigest(previous.digest.clone()));
    let parts = manifest.tables.iter().flat_map(|table| &table.parts);
    let digests: Vec<(String, String)> = parts.map(|part| (part.csv(), part.digest())).collect();
    NightDigest::new(previous.as_ref(), digests.iter().map(|(file, digest)| (file.as_str(), digest.as_str())))
}
