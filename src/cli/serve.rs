//! `guardian serve`: runs the service until a signal stops it.

use std::io::Write;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::exit::CommandOutcome;
use crate::config::{Config, LogFormat, ObservabilityOptions};
use crate::service::{Service, StartError};
use crate::telemetry::{self, Telemetry};

pub(super) fn run(config: &Config) -> Result<CommandOutcome, CommandOutcome> {
    let _telemetry = watched(config.log_format, &config.watch)?;
    telemetry::announce(config.log_format, config.effective());
    runtime()?.block_on(async {
        // before the service announces itself, so that no signal is lost
        let stop_signal = stop_signal()?;
        let service = start(config).await?;
        // the address for a browser on this machine
        let address = format!("{}{}", service.address(), config.path_prefix.trim_end_matches('/'));
        let id = service.store_id();
        let store = service.database().map_or_else(
            || format!("embedded store in {}: for one process", config.data.display()),
            |database| format!("store {database}: shared with every process that is given it and the same master key"),
        );
        let mut out = std::io::stdout().lock();
        // a failure to print does not stop the service
        let _ = writeln!(
            out,
            "guardian listens on http://{address} (Swagger UI: http://{address}/docs)
{store}
store id {id}"
        )
        .and_then(|()| service.metrics().map_or(Ok(()), |address| writeln!(out, "metrics: http://{address}/metrics")))
        .and_then(|()| out.flush());
        drop(out);
        tokio::select! {
            () = stop_signal => {}
            () = service.evicted() => {}
        }
        tracing::info!("stopping; running jobs have the grace period");
        service.shutdown().await;
        Ok(CommandOutcome::Done)
    })
}

/// Starts logging and tracing; the result must outlive everything else.
pub(super) fn watched(format: LogFormat, watch: &ObservabilityOptions) -> Result<Telemetry, CommandOutcome> {
    let collector = watch.collector().map_err(CommandOutcome::Usage)?;
    telemetry::start_with_traces(format, collector).map_err(CommandOutcome::InputOutput)
}

pub(super) fn runtime() -> Result<Runtime, CommandOutcome> {
    Runtime::new().map_err(|error| CommandOutcome::Internal(format!("no runtime: {error}")))
}

pub(super) async fn start(config: &Config) -> Result<Service, CommandOutcome> {
    Service::start(config).await.map_err(not_started)
}

pub(super) fn not_started(error: StartError) -> CommandOutcome {
    match error {
        StartError::Config(message) => CommandOutcome::Usage(message),
        other => CommandOutcome::InputOutput(other.to_string()),
    }
}

/// Listens for an interrupt or termination; the future ends with the first signal.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()>, CommandOutcome> {
    let listen = |kind| signal(kind).map_err(|error| CommandOutcome::Internal(format!("no signals: {error}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
