//! The log, on standard error. Level and targets by `RUST_LOG`. No value of the data is ever logged.

mod panics;

pub use panics::install_panic_hook;

use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

/// Starts the log. A second call changes nothing.
pub fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    // a process that has a log keeps it
    let _ = started;
}
