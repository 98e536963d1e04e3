//! The catalogue as a page for people: `docs/problems.md`.

use std::fmt::Write as _;

use super::{Kind, TYPE_PREFIX};

/// The page, in Markdown. A copy stands in `docs/problems.md`; a test holds them equal.
#[must_use]
pub fn page() -> String {
    let mut page = format!(
        "# Problems\n\n\
         Every refusal is a document of RFC 9457 (`application/problem+json`) whose `type` is `{TYPE_PREFIX}` and one of these \
         names. The same documents end failed and refused jobs, and are what the command line prints. A problem names \
         attributes, rows, counts and places of the request, never a value of the data.\n\n\
         Made by `guardian problems`; a test holds this page to the catalogue.\n\n\
         | name | status | what it says | what to do |\n\
         |---|---|---|---|\n"
    );
    for kind in Kind::ALL {
        // writing to a string cannot fail
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", kind.name(), kind.status(), kind.title(), kind.remedy());
    }
    page
}
