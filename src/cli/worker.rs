//! `guardian worker`: runs workers without HTTP on a shared store until a signal stops them.

use std::io::Write;

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime, stop_signal, watched};
use crate::config::WorkerOptions;
use crate::service::WorkerService;
use crate::telemetry;

pub(super) fn run(options: &WorkerOptions) -> Result<CommandOutcome, CommandOutcome> {
    let _telemetry = watched(options.log_format, &options.watch)?;
    telemetry::announce(options.log_format, options.effective());
    runtime()?.block_on(async {
        let stop_signal = stop_signal()?;
        let service = WorkerService::start(options).await.map_err(not_started)?;
        // a failure to print does not stop the workers
        let metrics =
            service.metrics().map_or_else(String::new, |address| format!(" (metrics: http://{address}/metrics)"));
        let _ = writeln!(std::io::stdout().lock(), "guardian works on the jobs of {}{metrics}", service.database());
        tokio::select! {
            () = stop_signal => {}
            () = service.evicted() => {}
        }
        tracing::info!("stopping; running jobs have the grace period");
        service.shutdown().await;
        Ok(CommandOutcome::Done)
    })
}
