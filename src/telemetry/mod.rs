//! What an operator sees: the log on standard error, traces sent to a collector, the recorder of metrics. No value of the data
//! is ever in any of them.
//!
//! Level and targets of the log by `RUST_LOG`; traces are of this program's own spans, whatever the log shows.

mod configuration;
mod metrics;
mod panics;
mod traces;

pub use configuration::announce;
pub use metrics::{Recorder, RecorderError};
pub use panics::install_panic_hook;
pub use traces::{continue_trace, note_status};

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::LogFormat;

/// The log and the traces of a process; what is not sent yet is sent when it is dropped.
#[must_use = "traces are sent when this is dropped"]
pub struct Telemetry(Option<SdkTracerProvider>);

/// Starts the log. A second call changes nothing.
pub fn start(format: LogFormat) {
    start_all(format, None);
}

/// Starts the log, and sends traces to a collector. To be called outside of any async runtime, and dropped there: what sends
/// traces waits on a thread of its own.
///
/// # Errors
/// A sentence for the operator.
pub fn start_with_traces(format: LogFormat, collector: Option<&str>) -> Result<Telemetry, String> {
    let provider = collector.map(traces::provider).transpose()?;
    start_all(format, provider.as_ref());
    Ok(Telemetry(provider))
}

fn start_all(format: LogFormat, provider: Option<&SdkTracerProvider>) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,sqlx=warn"));
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = match format {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.json().boxed(),
    };
    let traces = provider.map(traces::layer);
    // a process that has a log keeps it
    let _ = tracing_subscriber::registry().with(log.with_filter(filter)).with(traces).try_init();
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(|provider| provider.shutdown()) {
            tracing::warn!(error = %error, "the last traces were not sent");
        }
    }
}
