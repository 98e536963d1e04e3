//! The table of metrics, the source of `/metrics`, `docs/metrics.md` and the recorders.

use std::fmt::Write;

/// The type of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Never decreases; 0 when the process starts.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Counts observations below each bound.
    Histogram,
}

impl MetricKind {
    /// The name of the type in Prometheus.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric with its labels and meaning.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name, with the unit as its suffix.
    pub name: &'static str,
    /// The type, by which the name ends in `_total` or `_seconds`.
    pub sort: MetricKind,
    /// No label contains a value of the data, an id, a tenant or a name that a caller chooses.
    pub labels: &'static [&'static str],
    /// The meaning, as `docs/metrics.md` shows it.
    pub says: &'static str,
}

macro_rules! metrics {
    ($($constant:ident, $name:literal, $sort:ident, [$($label:literal),*], $says:literal;)*) => {
        $(pub(super) const $constant: &str = $name;)*

        /// Every metric, in the order of `docs/metrics.md`.
        pub const METRICS: &[Metric] =
            &[$(Metric { name: $name, sort: MetricKind::$sort, labels: &[$($label),*], says: $says },)*];
    };
}

// a library measures the constants with an underscore
metrics! {
    BUILD_INFO, "guardian_build_info", Gauge, ["version"], "always 1; the label is the version";
    HTTP_REQUESTS, "guardian_http_requests_total", Counter, ["method", "route", "status"],
        "requests with a started answer; `route` is the path template, or `unmatched`; `status` is `aborted` if the caller disconnected before the answer";
    HTTP_SECONDS, "guardian_http_request_seconds", Histogram, ["method", "route"], "time from the head of a request to the head of its answer";
    HTTP_IN_FLIGHT, "guardian_http_requests_in_flight", Gauge, [], "requests in progress";
    HTTP_RECEIVED, "guardian_http_received_bytes_total", Counter, ["method", "route"], "bytes of received bodies";
    HTTP_SENT, "guardian_http_sent_bytes_total", Counter, ["method", "route"], "bytes of sent bodies";
    UPLOADS, "guardian_uploads_total", Counter, ["format", "outcome"],
        "uploads with a started body, by table format; `outcome` is `stored`, `repeated`, `refused` or `failed`";
    JOBS, "guardian_jobs", Gauge, ["status"], "jobs of all tenants that are `queued` or `running` in the store; all processes of a store report the same number";
    OLDEST_WAITING, "guardian_job_oldest_waiting_seconds", Gauge, [], "waiting time of the oldest queued job; 0 without queued jobs";
    JOBS_SUBMITTED, "guardian_jobs_submitted_total", Counter, ["method", "outcome"],
        "jobs that this process accepted; `outcome` is `queued`, or `reused` if an equal job already has a release";
    JOBS_ENDED, "guardian_jobs_ended_total", Counter, ["method", "outcome"],
        "jobs that workers of this process ended; `outcome` is `succeeded`, `reused`, `refused`, `failed` or `cancelled`";
    JOB_SECONDS, "guardian_job_seconds", Histogram, ["method", "outcome"], "time from the claim of a job to its end";
    JOB_PHASE_SECONDS, "guardian_job_phase_seconds", Histogram, ["method", "phase"],
        "duration of a phase of a job; `phase` is `load`, `plan`, `publish`, `write`, `verify`, `compose` or `commit`";
    JOBS_RUNNING_HERE, "guardian_worker_jobs", Gauge, [], "jobs that workers of this process run";
    LEASES_LOST, "guardian_leases_lost_total", Counter, [], "jobs that a worker of this process lost because it did not extend its lease in time";
    JOBS_PUT_BACK, "guardian_jobs_put_back_total", Counter, [], "jobs that stopping workers of this process returned to the queue";
    JOBS_REAPED, "guardian_jobs_reaped_total", Counter, ["fate"],
        "jobs with an expired lease that this process reaped; `fate` is `requeued`, `exhausted` (no attempts left), `cancelled` or `overdue`";
    TRANSACTIONS_ENDED, "guardian_store_transactions_total", Counter, ["transaction"], "finished transactions of the store, by name";
    TRANSACTION_SECONDS, "guardian_store_transaction_seconds", Histogram, ["transaction"], "duration of a transaction with all its attempts";
    TRANSACTION_RETRIES, "guardian_store_transaction_retries_total", Counter, ["transaction"], "attempts after the first, caused by conflicting transactions; only on Postgres";
    TRANSACTION_FAILURES, "guardian_store_transaction_failures_total", Counter, ["transaction"],
        "failed transactions; on the embedded store only failures to begin or commit, the others count in `guardian_store_errors_total`";
    STORE_ERRORS, "guardian_store_errors_total", Counter, ["kind"], "failed statements; `kind` is `full`, `unavailable`, `corrupt` or `backend`";
    STORE_UP, "guardian_store_up", Gauge, [], "1 if the store answered this scrape, otherwise 0; the metrics read from the store are then NaN";
    _CPU_SECONDS, "guardian_process_cpu_seconds_total", Counter, [], "CPU time of this process";
    _START_TIME, "guardian_process_start_time_seconds", Gauge, [], "start time of this process, since 1970";
    _RESIDENT_BYTES, "guardian_process_resident_memory_bytes", Gauge, [], "resident memory";
    _VIRTUAL_BYTES, "guardian_process_virtual_memory_bytes", Gauge, [], "virtual memory";
    _VIRTUAL_MAX_BYTES, "guardian_process_virtual_memory_max_bytes", Gauge, [], "limit of virtual memory";
    _OPEN_FDS, "guardian_process_open_fds", Gauge, [], "open file descriptors";
    _MAX_FDS, "guardian_process_max_fds", Gauge, [], "limit of open file descriptors";
    _THREADS, "guardian_process_threads", Gauge, [], "threads of this process";
}

/// Names of the transactions of the stores, sorted.
pub const TRANSACTIONS: &[&str] = &[
    "add_alike_marks",
    "adopt_series",
    "announce_coverage",
    "append_audit",
    "begin_chain",
    "begin_upload",
    "claim",
    "commit",
    "cover_persons",
    "delete_chunks",
    "delete_dataset_key",
    "delete_taxonomy",
    "draw_ticket",
    "drop_attempt",
    "drop_chain_state",
    "end_announcement",
    "end_chain",
    "enqueue",
    "enter_people",
    "enter_statement",
    "expire_all_leases",
    "finish",
    "heartbeat",
    "import_ledger",
    "insert_dataset",
    "insert_first_key",
    "insert_key",
    "mark_covered",
    "mark_read",
    "pin",
    "purge_dataset",
    "put_chain_piece",
    "put_column_chunks",
    "put_evidence",
    "put_part_chunk",
    "put_person_piece",
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
    "sweep_void_coverages",
    "transition",
    "void_announcements",
];

/// The page `docs/metrics.md`, which a test compares.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Metrics\n\n\
         With `--metrics-listen ADDR` a process serves `/metrics` in the text format of Prometheus, `/healthz` and `/readyz` on\n\
         that address. These paths need no key: no metric contains a value of the data, a name that a caller chose, an id or a\n\
         tenant. Counters with known labels start at 0. Times are in seconds, sizes in bytes.\n\n\
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
