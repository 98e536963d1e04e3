//! `guardian serve`: the service, until it is told to stop.

use std::io::Write;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::End;
use crate::config::Config;
use crate::service::{Service, StartError};
use crate::telemetry;

pub(super) fn run(config: &Config) -> Result<End, End> {
    telemetry::start(config.log_format);
    runtime()?.block_on(async {
        // before anyone can be told that it serves: a signal from then on is heard
        let told_to_stop = told_to_stop()?;
        let service = start(config).await?;
        let (address, id) = (service.address(), service.store_id());
        let store = service.database().map_or_else(
            || format!("embedded store in {}: for one process", config.data.display()),
            |database| format!("store {database}: shared with every process that is given it and the same master key"),
        );
        let mut out = std::io::stdout().lock();
        // a service whose greeting nobody reads serves all the same
        let _ = writeln!(
            out,
            "guardian listens on http://{address} (Swagger UI: http://{address}/docs)
{store}
store id {id}"
        )
        .and_then(|()| out.flush());
        drop(out);
        told_to_stop.await;
        tracing::info!("stopping: running jobs get the grace period");
        service.shutdown().await;
        Ok(End::Done)
    })
}

pub(super) fn runtime() -> Result<Runtime, End> {
    Runtime::new().map_err(|error| End::Internal(format!("no runtime: {error}")))
}

pub(super) async fn start(config: &Config) -> Result<Service, End> {
    Service::start(config).await.map_err(not_started)
}

pub(super) fn not_started(error: StartError) -> End {
    match error {
        StartError::Config(message) => End::Usage(message),
        other => End::InputOutput(other.to_string()),
    }
}

/// Listens for an interrupt or a termination from now on; the future ends with the first.
pub(super) fn told_to_stop() -> Result<impl Future<Output = ()>, End> {
    let listen = |kind| signal(kind).map_err(|error| End::Internal(format!("no signals: {error}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
