//! The style sheet of all pages, and the policy that lets a browser apply it and nothing else.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The style sheet.
pub(super) const STYLE: &str = include_str!("style.css");

/// The content security policy of the pages: no script, no other resource, and only the style sheet with this hash.
pub static PAGE_POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});
