//! Releases of tables in Apache Spark: the statements that count, write and audit them, and the session that runs these.
//!
//! Rows stay where they are. Keys, plans and values travel as files in the scratch folder, never in a statement or a request: both are
//! shown in the engine's pages and logs.
//!
//! # Citations
//! docs/spec/ranked.md, docs/how-to/spark.md

mod address;
mod audit;
#[cfg(feature = "spark")]
mod connect;
mod copy;
mod encryption;
#[cfg(feature = "spark")]
mod engine;
#[cfg(feature = "spark")]
mod execution;
mod files;
mod kinds;
mod relation;
mod session;
mod source;
mod statements;
mod table;
mod write;
mod written;

#[cfg(test)]
mod tests;

pub use address::{EngineAddress, EngineAddressError};
#[cfg(feature = "spark")]
pub use connect::ConnectSession;
pub use copy::SparkCopy;
pub use encryption::EngineEncryption;
#[cfg(feature = "spark")]
pub use engine::SparkEngine;
pub use files::{ScratchFolder, SharedFolders};
pub use kinds::SqlKind;
pub use relation::SqlValue;
pub use session::SqlSession;
pub use source::{SparkSource, SparkSourceError};
pub use table::SparkTable;
