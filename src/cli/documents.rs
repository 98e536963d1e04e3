//! What the documents of a release say of a release without a server, and how they are written.

use super::exit::CommandOutcome;
use crate::publication::CompositionMode;
use crate::report::Provenance;

/// The provenance of a release without a server.
pub(super) fn provenance(reproducible: bool) -> Provenance {
    Provenance {
        id: None,
        series: None,
        created_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        composition: CompositionMode::None,
        identity: None,
        reproducible,
    }
}

/// A document as it is written to its file.
pub(super) fn pretty(value: &impl serde::Serialize) -> Result<Vec<u8>, CommandOutcome> {
    let mut json = serde_json::to_vec_pretty(value).map_err(|error| CommandOutcome::Internal(error.to_string()))?;
    json.push(b'\n');
    Ok(json)
}
