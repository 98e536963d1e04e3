//! The reports as pages of HTML, with drawings and without scripts.
//!
//! A page is one file and loads nothing; its policy allows its own style sheet alone. Every text from a specification or a dataset
//! is escaped. Drawings differ by shape, line and label, so that they can be read without colours.

mod graph;
mod histogram;
mod internal;
mod layout;
mod nights;
mod public_page;
mod scale;
mod style;

pub use histogram::ChartError;
pub use internal::internal_report_page;
pub use public_page::report_page;
pub use style::PAGE_POLICY;
