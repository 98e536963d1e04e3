//! The one table of metrics: `/metrics`, `docs/metrics.md` and the recorders go by it.

use std::fmt::Write;

/// How a metric behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Only rises, from 0 when the process starts.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts what falls under each bound.
    Histogram,
}

impl MetricKind {
    /// The name that Prometheus has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, with its unit.
    pub name: &'static str,
    /// How it behaves.
    pub sort: MetricKind,
    /// Its labels. None holds a value of the data, an id, a tenant or anything else that a caller chooses.
    pub labels: &'static [&'static str],
    /// What it tells.
    pub says: &'static str,
}

macro_rules! metrics {
    ($($constant:ident, $name:literal, $sort:ident, [$($label:literal),*], $says:literal;)*) => {
        $(pub(super) const $constant: &str = $name;)*

        /// Every metric.
        pub const METRICS: &[Metric] =
            &[$(Metric { name: $name, sort: MetricKind::$sort, labels: &[$($label),*], says: $says },)*];
    };
}

// those that begin with an underscore are measured by a library
metrics! {
    BUILD_INFO, "guardian_build_info", Gauge, ["version"], "1; the version is in the label";
    HTTP_REQUESTS, "guardian_http_requests_total", Counter, ["method", "route", "status"],
        "requests whose answer has begun; `route` is the template, `unmatched` for paths that are none; `status` is `aborted` when the caller left before";
    HTTP_SECONDS, "guardian_http_request_seconds", Histogram, ["method", "route"], "from a request's head to its answer's head";
    HTTP_IN_FLIGHT, "guardian_http_requests_in_flight", Gauge, [], "requests that are read, worked on or answered now";
    HTTP_RECEIVED, "guardian_http_received_bytes_total", Counter, ["method", "route"], "bytes of bodies that callers sent";
    HTTP_SENT, "guardian_http_sent_bytes_total", Counter, ["method", "route"], "bytes of bodies that callers were sent";
    UPLOADS, "guardian_uploads_total", Counter, ["format", "outcome"],
        "uploads whose body was begun, by format of the table; `outcome` is `stored`, `repeated`, `refused` or `failed`";
    JOBS, "guardian_jobs", Gauge, ["status"], "jobs of all tenants that are `queued` or `running`, as the store has them when it is asked; every process on a store tells the same";
    OLDEST_WAITING, "guardian_job_oldest_waiting_seconds", Gauge, [], "how long the oldest queued job has waited; 0 when none waits";
    JOBS_SUBMITTED, "guardian_jobs_submitted_total", Counter, ["method", "outcome"],
        "jobs that this process accepted; `outcome` is `queued`, or `reused` when an equal job's release answered at once";
    JOBS_ENDED, "guardian_jobs_ended_total", Counter, ["method", "outcome"],
        "jobs that workers of this process ended; `outcome` is `succeeded`, `reused`, `refused`, `failed` or `cancelled`";
    JOB_SECONDS, "guardian_job_seconds", Histogram, ["method", "outcome"], "from a worker's claim of a job to its end";
    JOB_PHASE_SECONDS, "guardian_job_phase_seconds", Histogram, ["method", "phase"],
        "how long a phase of a job took; `phase` is `load`, `plan`, `publish`, `write`, `verify`, `compose` or `commit`";
    JOBS_RUNNING_HERE, "guardian_worker_jobs", Gauge, [], "jobs that workers of this process have now";
    LEASES_LOST, "guardian_leases_lost_total", Counter, [], "jobs that a worker of this process lost to another because it did not extend its lease in time";
    JOBS_PUT_BACK, "guardian_jobs_put_back_total", Counter, [], "jobs that workers of this process put back into the queue when they were stopped";
    JOBS_REAPED, "guardian_jobs_reaped_total", Counter, ["fate"],
        "jobs without a worker that this process moved; `fate` is `requeued`, `exhausted` (started too often), `cancelled` or `overdue`";
    TRANSACTIONS_ENDED, "guardian_store_transactions_total", Counter, ["transaction"], "transactions of the store that ended, by name";
    TRANSACTION_SECONDS, "guardian_store_transaction_seconds", Histogram, ["transaction"], "how long they took, with every try";
    TRANSACTION_RETRIES, "guardian_store_transaction_retries_total", Counter, ["transaction"], "tries after the first, because other transactions were in the way; only on Postgres";
    TRANSACTION_FAILURES, "guardian_store_transaction_failures_total", Counter, ["transaction"],
        "transactions that failed; on the embedded store those that could not begin or commit, what fails in between is in `guardian_store_errors_total`";
    STORE_ERRORS, "guardian_store_errors_total", Counter, ["kind"], "statements that failed; `kind` is `full`, `unavailable`, `corrupt` or `backend`";
    STORE_UP, "guardian_store_up", Gauge, [], "1 when the store answered this scrape, else 0, and what is read from it is NaN";
    _CPU_SECONDS, "guardian_process_cpu_seconds_total", Counter, [], "processor time of this process";
    _START_TIME, "guardian_process_start_time_seconds", Gauge, [], "when this process started, since 1970";
    _RESIDENT_BYTES, "guardian_process_resident_memory_bytes", Gauge, [], "memory in use";
    _VIRTUAL_BYTES, "guardian_process_virtual_memory_bytes", Gauge, [], "memory mapped";
    _VIRTUAL_MAX_BYTES, "guardian_process_virtual_memory_max_bytes", Gauge, [], "the most memory that may be mapped";
    _OPEN_FDS, "guardian_process_open_fds", Gauge, [], "open files and connections";
    _MAX_FDS, "guardian_process_max_fds", Gauge, [], "the most that may be open";
    _THREADS, "guardian_process_threads", Gauge, [], "threads";
}

/// The transactions of the stores.
pub const TRANSACTIONS: &[&str] = &[
    "admit_dataset",
    "append_audit",
    "begin_upload",
    "claim",
    "commit",
    "delete_chunks",
    "delete_dataset_key",
    "delete_taxonomy",
    "drop_attempt",
    "enqueue",
    "enter_statement",
    "expire_all_leases",
    "finish",
    "heartbeat",
    "import_ledger",
    "insert_first_key",
    "insert_key",
    "mark_read",
    "pin",
    "purge_dataset",
    "put_column_chunks",
    "put_part_chunk",
    "put_people",
    "put_policy",
    "put_taxonomy",
    "reap",
    "release_lease",
    "request_cancel",
    "revoke_key",
    "rotate",
    "seal_dataset",
    "set_tenant",
    "succeed_with_reused",
    "transition",
];

/// `docs/metrics.md`
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         With `--metrics-listen ADDR` a process answers `GET /metrics` there, in the text format of Prometheus, and `/healthz` and\n\
         `/readyz` with it. Nobody is asked for a key: no metric holds a value of the data, a name that a caller chose, an id or a\n\
         tenant. Counters whose labels are known beforehand are there from the start, at 0. Times are in seconds, sizes in bytes.\n\n\
         | name | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for Metric { name, sort, labels, says } in METRICS {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        // writing to a text cannot fail
        let _ = writeln!(page, "| `{name}` | {} | {} | {says} |", sort.name(), labels.join(", "));
    }
    let names: Vec<String> = TRANSACTIONS.iter().map(|name| format!("`{name}`")).collect();
    let _ = writeln!(page, "\nTransactions: {}.", names.join(", "));
    page
}
