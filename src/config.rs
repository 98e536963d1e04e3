//! What the operator may choose. Every option is a flag and an environment variable; the defaults are the documentation.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// The options of a service.
#[derive(Args, Clone, Debug)]
pub struct Config {
    /// The address to listen on; loopback only, as long as there is no authentication
    #[arg(long, env = "GUARDIAN_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The folder of the embedded store
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    pub data: PathBuf,
    /// Jobs that run at the same time
    #[arg(long, env = "GUARDIAN_WORKERS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,
    /// The most bytes of an upload's body
    #[arg(long, env = "GUARDIAN_MAX_UPLOAD_BYTES", default_value_t = 16 << 30)]
    pub max_upload_bytes: u64,
    /// The most columns of a table
    #[arg(long, env = "GUARDIAN_MAX_COLUMNS", default_value_t = 1024)]
    pub max_columns: u64,
    /// Seconds that running jobs get to end when the service is stopped
    #[arg(long, env = "GUARDIAN_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u64,
    /// How to write the log, on standard error
    #[arg(long, env = "GUARDIAN_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How to write the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// The grace period.
    #[must_use]
    pub const fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }

    /// What is wrong with the options together.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.ip().is_loopback() {
            Ok(())
        } else {
            Err(format!(
                "{} is not a loopback address; without authentication nothing else is served",
                self.listen.ip()
            ))
        }
    }
}
