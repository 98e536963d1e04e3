//! Releases of tables in Apache Spark: the statements that count, write and audit them, and the session that runs these.
//!
//! Rows stay where they are. Keys, plans and values travel as rows of relations, never in the text of a statement, since texts are shown
//! in the engine's pages and logs.
//!
//! # Citations
//! docs/spec/ranked.md, docs/how-to/spark.md

mod audit;
#[cfg(feature = "spark")]
mod connect;
mod files;
mod session;
mod source;
mod statements;
mod table;
mod written;

#[cfg(test)]
mod tests;

#[cfg(feature = "spark")]
pub use connect::ConnectSession;
pub use files::SharedFolders;
pub use session::{SqlKind, SqlSession, SqlValue};
pub use source::{SparkSource, SparkSourceError};
pub use table::SparkTable;
