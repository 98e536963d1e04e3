//! `guardian worker`: workers without HTTP, beside other processes on one store, until they are told to stop.

use std::io::Write;

use super::End;
use super::serve::{not_started, runtime, told_to_stop};
use crate::config::WorkerOptions;
use crate::service::WorkerService;
use crate::telemetry;

pub(super) fn run(options: &WorkerOptions) -> Result<End, End> {
    telemetry::start(options.log_format);
    runtime()?.block_on(async {
        let told_to_stop = told_to_stop()?;
        let service = WorkerService::start(options).await.map_err(not_started)?;
        // workers whose greeting nobody reads work all the same
        let _ = writeln!(std::io::stdout().lock(), "guardian works on the jobs of {}", service.database());
        tokio::select! {
            () = told_to_stop => {}
            () = service.evicted() => {}
        }
        tracing::info!("stopping: running jobs get the grace period");
        service.shutdown().await;
        Ok(End::Done)
    })
}
