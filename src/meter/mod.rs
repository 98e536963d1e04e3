//! Metrics for operators. Only this module names and records metrics; without the recorder of `telemetry` it does nothing.
//!
//! Labels are constants of this program: a method, a route, a phase, an outcome. No label comes from a request.

mod table;

use std::time::{Duration, Instant};

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

pub use table::{METRICS, Metric, MetricKind, TRANSACTIONS, page};

/// Describes every metric and sets counters with known labels to 0.
pub fn begin(routes: &[(&'static str, &'static str)], methods: &[&'static str], formats: &[&'static str]) {
    for Metric { name, sort, says, .. } in METRICS {
        match sort {
            MetricKind::Counter => describe_counter!(*name, *says),
            MetricKind::Gauge => describe_gauge!(*name, *says),
            MetricKind::Histogram => describe_histogram!(*name, *says),
        }
    }
    gauge!(table::BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1);
    gauge!(table::HTTP_IN_FLIGHT).increment(0);
    gauge!(table::JOBS_RUNNING_HERE).increment(0);
    for &(method, route) in routes {
        for status in ["200", "500", "503"] {
            counter!(table::HTTP_REQUESTS, "method" => method, "route" => route, "status" => status).increment(0);
        }
        received(method, route, 0);
        sent(method, route, 0);
    }
    for &format in formats {
        for outcome in UploadOutcome::ALL {
            counter!(table::UPLOADS, "format" => format, "outcome" => outcome.name()).increment(0);
        }
    }
    for &method in methods {
        for outcome in ["queued", "reused"] {
            submissions(method, outcome, 0);
        }
        for outcome in ["succeeded", "reused", "refused", "failed", "cancelled"] {
            ends(method, outcome, 0);
        }
    }
    counter!(table::LEASES_LOST).increment(0);
    counter!(table::JOBS_PUT_BACK).increment(0);
    for fate in ["requeued", "exhausted", "cancelled", "overdue"] {
        reaped(fate, 0);
    }
    for &transaction in TRANSACTIONS {
        for name in [table::TRANSACTIONS_ENDED, table::TRANSACTION_RETRIES, table::TRANSACTION_FAILURES] {
            counter!(name, "transaction" => transaction).increment(0);
        }
    }
    for kind in ["full", "unavailable", "corrupt", "backend"] {
        counter!(table::STORE_ERRORS, "kind" => kind).increment(0);
    }
}

/// Counts a request in progress until it is dropped.
pub struct InFlight(());

impl InFlight {
    /// Increments the gauge of requests in progress.
    #[must_use]
    pub fn begin() -> Self {
        gauge!(table::HTTP_IN_FLIGHT).increment(1);
        Self(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        gauge!(table::HTTP_IN_FLIGHT).decrement(1);
    }
}

/// Records an answered request; without a status the caller disconnected before the answer.
pub fn answered(method: &'static str, route: &str, status: Option<u16>, took: Duration) {
    let status = status.map_or_else(|| "aborted".to_owned(), |status| status.to_string());
    counter!(table::HTTP_REQUESTS, "method" => method, "route" => route.to_owned(), "status" => status).increment(1);
    histogram!(table::HTTP_SECONDS, "method" => method, "route" => route.to_owned()).record(took);
}

/// Records received bytes of a request's body.
pub fn received(method: &'static str, route: &str, bytes: u64) {
    counter!(table::HTTP_RECEIVED, "method" => method, "route" => route.to_owned()).increment(bytes);
}

/// Records sent bytes of an answer's body.
pub fn sent(method: &'static str, route: &str, bytes: u64) {
    counter!(table::HTTP_SENT, "method" => method, "route" => route.to_owned()).increment(bytes);
}

/// The outcome of an upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UploadOutcome {
    /// It made a dataset.
    Stored,
    /// It repeated an earlier upload under the same idempotency key.
    Repeated,
    /// The request was faulty.
    Refused,
    /// The service failed.
    Failed,
}

impl UploadOutcome {
    const ALL: [Self; 4] = [Self::Stored, Self::Repeated, Self::Refused, Self::Failed];

    const fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Repeated => "repeated",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Records the end of an upload.
pub fn uploaded(format: &'static str, outcome: UploadOutcome) {
    counter!(table::UPLOADS, "format" => format, "outcome" => outcome.name()).increment(1);
}

/// Records an accepted job; `reused` if an equal job already has a release.
pub fn submitted(method: &str, reused: bool) {
    submissions(method, if reused { "reused" } else { "queued" }, 1);
}

fn submissions(method: &str, outcome: &'static str, number: u64) {
    counter!(table::JOBS_SUBMITTED, "method" => method.to_owned(), "outcome" => outcome).increment(number);
}

/// Counts a job of a worker until it is dropped.
pub struct RunningJob(());

impl RunningJob {
    /// Increments the gauge of running jobs.
    #[must_use]
    pub fn begin() -> Self {
        gauge!(table::JOBS_RUNNING_HERE).increment(1);
        Self(())
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        gauge!(table::JOBS_RUNNING_HERE).decrement(1);
    }
}

/// Records the end of a job of a worker.
pub fn ended(method: &str, outcome: &'static str, took: Duration) {
    ends(method, outcome, 1);
    histogram!(table::JOB_SECONDS, "method" => method.to_owned(), "outcome" => outcome).record(took);
}

fn ends(method: &str, outcome: &'static str, number: u64) {
    counter!(table::JOBS_ENDED, "method" => method.to_owned(), "outcome" => outcome).increment(number);
}

/// Records the end of a phase of a job.
pub fn phase(method: &str, phase: &'static str, took: Duration) {
    histogram!(table::JOB_PHASE_SECONDS, "method" => method.to_owned(), "phase" => phase).record(took);
}

/// Records that a worker lost the lease of its job.
pub fn lease_lost() {
    counter!(table::LEASES_LOST).increment(1);
}

/// Records that a worker returned its job to the queue.
pub fn put_back() {
    counter!(table::JOBS_PUT_BACK).increment(1);
}

/// Records jobs reaped after their lease expired.
pub fn reaped(fate: &'static str, jobs: usize) {
    counter!(table::JOBS_REAPED, "fate" => fate).increment(jobs as u64);
}

/// Sets the numbers of queued and running jobs and the longest waiting time; `None` if the store did not answer.
pub fn backlog(found: Option<(u64, u64, Duration)>) {
    let (queued, running, oldest) = found.map_or((f64::NAN, f64::NAN, f64::NAN), |(queued, running, oldest)| {
        (queued as f64, running as f64, oldest.as_secs_f64())
    });
    gauge!(table::JOBS, "status" => "queued").set(queued);
    gauge!(table::JOBS, "status" => "running").set(running);
    gauge!(table::OLDEST_WAITING).set(oldest);
    gauge!(table::STORE_UP).set(u32::from(found.is_some()));
}

/// Measures a transaction of the store until it is dropped.
pub struct Transaction {
    name: &'static str,
    since: Instant,
}

impl Transaction {
    /// Starts the measurement; `name` is one of [`TRANSACTIONS`].
    #[must_use]
    pub fn begin(name: &'static str) -> Self {
        Self { name, since: Instant::now() }
    }

    /// Records another attempt.
    pub fn again(&self) {
        counter!(table::TRANSACTION_RETRIES, "transaction" => self.name).increment(1);
    }

    /// Records the failure of the transaction.
    pub fn failed(&self) {
        counter!(table::TRANSACTION_FAILURES, "transaction" => self.name).increment(1);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        counter!(table::TRANSACTIONS_ENDED, "transaction" => self.name).increment(1);
        histogram!(table::TRANSACTION_SECONDS, "transaction" => self.name).record(self.since.elapsed());
    }
}

/// Records a failed statement of the store.
pub fn store_error(kind: &'static str) {
    counter!(table::STORE_ERRORS, "kind" => kind).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_have_units_and_are_unique() {
        for (at, metric) in METRICS.iter().enumerate() {
            let name = metric.name;
            assert!(name.starts_with("guardian_"), "{name}");
            assert!(METRICS[..at].iter().all(|other| other.name != name), "{name}");
            assert_eq!(name.ends_with("_total"), metric.sort == MetricKind::Counter, "{name}");
            assert!(metric.sort != MetricKind::Histogram || name.ends_with("_seconds"), "{name}");
            assert!(!metric.says.contains('|') && !metric.says.is_empty(), "{name}");
        }
        assert!(TRANSACTIONS.is_sorted());
    }
}
