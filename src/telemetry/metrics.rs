//! The recorder of metrics. A process has one, however many services it holds: it is installed once and shared.

use std::sync::{Mutex, PoisonError};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;

/// Bounds of what is timed, from a quick answer to a long job.
const SECONDS: [f64; 18] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0];

/// The recorder, once it is installed.
static INSTALLED: Mutex<Option<Recorder>> = Mutex::new(None);

/// Another library has installed a recorder of its own.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be recorded: {0}")]
pub struct RecorderError(String);

/// Renders what was recorded. Clones show the same.
#[derive(Clone)]
pub struct Recorder {
    handle: PrometheusHandle,
    process: Collector,
}

impl Recorder {
    /// The process's recorder, installed with the first call.
    ///
    /// # Errors
    /// [`RecorderError`]
    pub fn install() -> Result<Self, RecorderError> {
        let unavailable = |error: &dyn std::error::Error| RecorderError(error.to_string());
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorder) = &*installed {
            return Ok(recorder.clone());
        }
        let builder = PrometheusBuilder::new().set_buckets(&SECONDS).map_err(|error| unavailable(&error))?;
        let handle = builder.install_recorder().map_err(|error| unavailable(&error))?;
        let recorder = Self { handle, process: Collector::new("guardian_") };
        *installed = Some(recorder.clone());
        Ok(recorder)
    }

    /// Everything, in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.process.collect();
        self.handle.render()
    }

    /// Sums up what was timed since, which is kept singly until then. To be called now and then when nobody asks.
    pub fn tidy(&self) {
        self.handle.run_upkeep();
    }
}
