//! Options of `guardian publish` and `guardian plan` for a table in Apache Spark.

#[cfg(not(feature = "spark"))]
use std::path::Path;
use std::path::PathBuf;

use clap::Args;

#[cfg(not(feature = "spark"))]
use super::exit::CommandOutcome;
use super::job_files::JobFiles;
#[cfg(not(feature = "spark"))]
use crate::control::Control;
#[cfg(not(feature = "spark"))]
use crate::engine::Plan;
use crate::random::RandomStreams;

/// Options of a table in Apache Spark.
#[derive(Args)]
pub(super) struct EngineOptions {
    /// The table is one of Apache Spark and stays there: sc://HOST:PORT of Spark Connect, off this machine with /;use_ssl=true. TABLE is
    /// then its name, such as catalog.db.t, or the path of a folder of Parquet files
    #[arg(long, value_name = "URL", requires = "scratch", help_heading = "Spark")]
    pub(super) engine: Option<String>,
    /// The file with the bearer token of the engine
    #[arg(long, value_name = "FILE", requires = "engine", help_heading = "Spark")]
    pub(super) engine_token_file: Option<PathBuf>,
    /// Uses the engine only if it encrypts the files that it writes on the way (spark.io.encryption.enabled) and the messages of its
    /// processes (spark.network.crypto.enabled or spark.ssl.rpc.enabled)
    #[arg(long, requires = "engine", help_heading = "Spark")]
    pub(super) engine_require_encryption: bool,
    /// A folder that the engine and this command reach and readers of the release do not. It holds the buckets of rows until they are
    /// audited, and nothing afterwards
    #[arg(long, value_name = "FOLDER", requires = "engine", help_heading = "Spark")]
    pub(super) scratch: Option<PathBuf>,
}

/// A table of the engine, to publish or to plan.
#[cfg_attr(not(feature = "spark"), expect(dead_code, reason = "only the client of the engine reads them"))]
pub(super) struct EngineJob<'a> {
    pub(super) files: &'a JobFiles,
    pub(super) options: &'a EngineOptions,
    /// The streams of the key of the release.
    pub(super) streams: RandomStreams,
    /// Whether the caller chose the key.
    pub(super) reproducible: bool,
}

#[cfg(not(feature = "spark"))]
impl EngineJob<'_> {
    pub(super) fn publish(&self, _: &str, _: &Path, _: bool) -> Result<CommandOutcome, CommandOutcome> {
        Err(no_client())
    }

    pub(super) fn plan(&self, _: &str, _: &Control) -> Result<Plan, CommandOutcome> {
        Err(no_client())
    }
}

#[cfg(not(feature = "spark"))]
fn no_client() -> CommandOutcome {
    CommandOutcome::Usage("this program has no client of Spark: build it with --features spark".to_owned())
}
