//! What a table is: attributes, values in one canonical order, dictionary-encoded columns, and the chunks that uploads
//! are kept in. Knows nothing of rules or of what is published.

mod attrs;
mod domain;
mod table;
mod value;

pub use attrs::{Attr, AttrSet, MAX_ATTRIBUTES};
pub use domain::{Arena, Domain};
pub use table::{Codes, Column, Counts, Table};
pub use value::{AttributeType, parse_integer};
