//! How the log and the traces of a process start.

use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use super::traces;
use crate::config::LogFormat;

/// Logging and tracing of a process; dropping it sends the remaining traces.
#[must_use = "traces are sent when this is dropped"]
pub struct Telemetry(Option<SdkTracerProvider>);

/// Starts logging; a second call has no effect.
pub fn start(format: LogFormat) {
    start_all(format, None, INFO);
}

/// As [`start`], with warnings and errors alone unless the environment asks for more.
pub fn start_quiet(format: LogFormat) {
    start_all(format, None, "warn");
}

/// What is logged by default.
const INFO: &str = "info,sqlx=warn,object_store=warn";

/// Starts logging and tracing. Call and drop it outside of async runtimes, because the exporter blocks its own thread.
///
/// # Errors
/// A message for the operator.
pub fn start_with_traces(format: LogFormat, collector: Option<&str>) -> Result<Telemetry, String> {
    let provider = collector.map(traces::provider).transpose()?;
    start_all(format, provider.as_ref(), INFO);
    Ok(Telemetry(provider))
}

fn start_all(format: LogFormat, provider: Option<&SdkTracerProvider>, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    // a file or a collector wants the text alone
    let is_coloured = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(is_coloured);
    let log = match format {
        LogFormat::Text => log.boxed(),
        LogFormat::Json => log.json().boxed(),
    };
    let traces = provider.map(traces::layer);
    // an installed logger remains
    let _ = tracing_subscriber::registry().with(log.with_filter(filter)).with(traces).try_init();
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(|provider| provider.shutdown()) {
            tracing::warn!(error = %error, "sending the last traces failed");
        }
    }
}
