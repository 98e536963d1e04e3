//! `guardian worker`: workers without HTTP, beside other processes on one store, until they are told to stop.

use std::io::Write;

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime, told_to_stop, watched};
use crate::config::WorkerOptions;
use crate::service::WorkerService;
use crate::telemetry;

pub(super) fn run(options: &WorkerOptions) -> Result<CommandOutcome, CommandOutcome> {
    let _telemetry = watched(options.log_format, &options.watch)?;
    telemetry::announce(options.log_format, options.effective());
    runtime()?.block_on(async {
        let told_to_stop = told_to_stop()?;
        let service = WorkerService::start(options).await.map_err(not_started)?;
        // workers whose greeting nobody reads work all the same
        let metrics =
            service.metrics().map_or_else(String::new, |address| format!(" (metrics: http://{address}/metrics)"));
        let _ = writeln!(std::io::stdout().lock(), "guardian works on the jobs of {}{metrics}", service.database());
        tokio::select! {
            () = told_to_stop => {}
            () = service.evicted() => {}
        }
        tracing::info!("stopping: running jobs get the grace period");
        service.shutdown().await;
        Ok(CommandOutcome::Done)
    })
}
