//! The recorder of metrics, one per process and shared by its services.

use std::sync::{Mutex, PoisonError};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;

/// Bounds of histograms in seconds, from a quick answer to a long job.
const SECONDS: [f64; 18] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0];

/// The installed recorder.
static INSTALLED: Mutex<Option<Recorder>> = Mutex::new(None);

/// Another recorder is already installed.
#[derive(Debug, thiserror::Error)]
#[error("metrics cannot be recorded: {0}")]
pub struct RecorderError(String);

/// Renders recorded metrics; clones share them.
#[derive(Clone)]
pub struct Recorder {
    handle: PrometheusHandle,
    process: Collector,
}

impl Recorder {
    /// The recorder of the process; the first call installs it.
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

    /// All metrics in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.process.collect();
        self.handle.render()
    }

    /// Aggregates recorded durations; to be called regularly, since each is kept until then.
    pub fn tidy(&self) {
        self.handle.run_upkeep();
    }
}
