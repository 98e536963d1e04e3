//! The catalogue as a Markdown page, `docs/problems.md`.

use std::fmt::Write as _;

use super::{Kind, TYPE_PREFIX};

/// The page in Markdown; a test compares it with `docs/problems.md`.
#[must_use]
pub fn page() -> String {
    let mut page = format!(
        "# Problems\n\n\
         Every refusal is a problem document (RFC 9457, `application/problem+json`). Its `type` is `{TYPE_PREFIX}` followed by a \
         name of this table. Failed jobs and the command line use the same documents. A problem contains attribute names, row \
         numbers, counts and pointers into the request, but no value of the data.\n\n\
         `guardian problems` writes this page; a test compares it with the catalogue.\n\n\
         | name | status | title | remedy |\n\
         |---|---|---|---|\n"
    );
    for kind in Kind::ALL {
        // writing to a string cannot fail
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", kind.name(), kind.status(), kind.title(), kind.remedy());
    }
    page
}
