//! Jobs. A worker's statements require its token and a lease that has not expired; those that end a job clear the lease.

macro_rules! job_columns {
    () => {
        "j.id, j.tenant, j.dataset_id, j.series, j.method, d.specification, j.reuse_key, j.priority, d.reason, j.status, \
         j.submitted_at, j.started_at, j.finished_at, j.deadline_at, j.attempt, j.progress, j.cancel_requested, \
         j.release_id, j.reused, d.problem FROM jobs AS j JOIN job_details AS d ON d.job_id = j.id"
    };
}

/// The tenants that wait, each with how many of its jobs run and when one of them was last begun, and the engines that run as many
/// jobs as they may. The recursion goes from tenant to tenant through the index, so that a claim costs a few look-ups a tenant, however
/// many jobs wait.
macro_rules! turns {
    () => {
        "\
WITH RECURSIVE waiting (tenant) AS (
    SELECT MIN(j.tenant) FROM jobs AS j WHERE j.status = 'queued'
    UNION ALL
    SELECT (SELECT MIN(j.tenant) FROM jobs AS j WHERE j.status = 'queued' AND j.tenant > w.tenant)
    FROM waiting AS w WHERE w.tenant IS NOT NULL),
turns AS MATERIALIZED (
    SELECT w.tenant,
        (SELECT COUNT(*) FROM jobs AS r WHERE r.status = 'running' AND r.tenant = w.tenant) AS running,
        (SELECT MAX(s.started_at) FROM jobs AS s WHERE s.tenant = w.tenant AND s.started_at IS NOT NULL) AS served_at
    FROM waiting AS w WHERE w.tenant IS NOT NULL),
busy_engines AS MATERIALIZED (
    SELECT d.place ->> 'engine' AS engine FROM jobs AS r JOIN datasets AS d ON d.id = r.dataset_id
    WHERE r.status = 'running' AND d.place IS NOT NULL
    GROUP BY d.place ->> 'engine' HAVING COUNT(*) >= $5)"
    };
}
pub(crate) use turns;

/// The next job of the tenant `t.tenant`; `$3` is the time, and `$5` the most running jobs on tables of one engine.
macro_rules! next_of_tenant {
    () => {
        "\
SELECT q.id FROM jobs AS q
        WHERE q.status = 'queued' AND q.tenant = t.tenant AND (q.deadline_at IS NULL OR q.deadline_at > $3)
          AND (q.not_before IS NULL OR q.not_before <= $3)
          AND NOT EXISTS (SELECT 1 FROM jobs AS r WHERE r.status = 'running' AND r.reuse_key = q.reuse_key)
          AND NOT EXISTS (
            SELECT 1 FROM datasets AS d JOIN busy_engines AS b ON b.engine = d.place ->> 'engine' WHERE d.id = q.dataset_id)
        ORDER BY q.priority DESC, q.submitted_at, q.id LIMIT 1"
    };
}
pub(crate) use next_of_tenant;

pub(crate) const IS_ANY_QUEUED: &str = "\
-- is_any_queued
SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'queued')";

pub(crate) const STANDING_RELEASE: &str = "\
-- standing_release
SELECT id FROM releases WHERE tenant = $1 AND reuse_key = $2 AND status IN ('held', 'published')";

pub(crate) const INSERT_JOB: &str = "\
-- insert_job
INSERT INTO jobs (id, tenant, dataset_id, series, method, reuse_key, priority, status, submitted_at, finished_at, deadline_at,
                  attempt, lapses, cancel_requested, release_id, reused)
SELECT $1, $2, id, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0, FALSE, $12, $13 FROM datasets WHERE id = $3 AND tenant = $2";

pub(crate) const INSERT_JOB_DETAILS: &str = "\
-- insert_job_details
INSERT INTO job_details (job_id, specification, reason, submitted_by, policy) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const INSERT_JOB_KEY: &str = "\
-- insert_job_key
INSERT INTO job_keys (job_id, wrapped_key) VALUES ($1, $2)";

pub(crate) const JOB_KEY: &str = "\
-- job_key
SELECT wrapped_key FROM job_keys WHERE job_id = $1";

pub(crate) const ERASE_JOB_KEY: &str = "\
-- erase_job_key
DELETE FROM job_keys WHERE job_id = $1";

pub(crate) const HEARTBEAT: &str = "\
-- heartbeat
UPDATE jobs SET lease_expires_at = $3, progress = COALESCE($4, progress)
WHERE id = $1 AND lease_token = $2 AND status = 'running' AND lease_expires_at > $5
RETURNING cancel_requested";

pub(crate) const LEASE: &str = "\
-- lease
SELECT cancel_requested FROM jobs
WHERE id = $1 AND lease_token = $2 AND status = 'running' AND lease_expires_at > $3";

pub(crate) const FINISH: &str = "\
-- finish
UPDATE jobs SET status = $4, finished_at = $3, lease_token = NULL, lease_expires_at = NULL, release_id = $5, reused = $6
WHERE id = $1 AND lease_token = $2 AND status = 'running' AND lease_expires_at > $3";

pub(crate) const SET_PROBLEM: &str = "\
-- set_problem
UPDATE job_details SET problem = $2 WHERE job_id = $1";

pub(crate) const RELEASE_LEASE: &str = "\
-- release_lease
UPDATE jobs SET status = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'queued' END,
    finished_at = CASE WHEN cancel_requested THEN $3 ELSE NULL END,
    lease_token = NULL, lease_expires_at = NULL, progress = NULL
WHERE id = $1 AND lease_token = $2 AND status = 'running' AND lease_expires_at > $3
RETURNING cancel_requested";

pub(crate) const CANCEL_QUEUED: &str = "\
-- cancel_queued
UPDATE jobs SET status = 'cancelled', cancel_requested = TRUE, finished_at = $2 WHERE id = $1 AND status = 'queued'";

pub(crate) const CANCEL_RUNNING: &str = "\
-- cancel_running
UPDATE jobs SET cancel_requested = TRUE WHERE id = $1 AND status = 'running'";

pub(crate) const QUEUED_JOBS: &str = "\
-- queued_jobs
SELECT COUNT(*) FROM jobs WHERE status = 'queued' AND tenant = $1";

pub(crate) const STATUS: &str = "\
-- status
SELECT status FROM jobs WHERE id = $1 AND tenant = $2";

pub(crate) const EXPIRED: &str = "\
-- expired
SELECT id, attempt, lapses, cancel_requested FROM jobs WHERE status = 'running' AND lease_expires_at <= $1";

pub(crate) const OVERDUE: &str = "\
-- overdue
SELECT id FROM jobs WHERE status = 'queued' AND deadline_at IS NOT NULL AND deadline_at <= $1";

pub(crate) const REAP: &str = "\
-- reap
UPDATE jobs SET status = $2, finished_at = $3, lease_token = NULL, lease_expires_at = NULL, progress = NULL,
    lapses = lapses + $4, not_before = $5
WHERE id = $1";

pub(crate) const EXPIRE_ALL: &str = "\
-- expire_all
UPDATE jobs SET lease_expires_at = $1 WHERE status = 'running'";

/// The tenant is compared such that SQLite looks up the key, not all that waits for the tenant.
pub(crate) const WAITING_ALIKE: &str = "\
-- waiting_alike
SELECT id FROM jobs WHERE status = 'queued' AND (tenant = $1) IS TRUE AND reuse_key = $2";

pub(crate) const ANSWER_WAITING: &str = "\
-- answer_waiting
UPDATE jobs SET status = 'succeeded', finished_at = $2, release_id = $3, reused = TRUE WHERE id = $1";

pub(crate) const JOB: &str = concat!("-- job\nSELECT ", job_columns!(), " WHERE j.id = $1 AND j.tenant = $2");

pub(crate) const JOBS: &str = "\
-- jobs
SELECT j.id, j.dataset_id, j.method, j.priority, j.status, j.submitted_at, j.started_at, j.finished_at, j.attempt,
    j.progress, j.release_id, j.reused, d.problem ->> 'type' AS problem_type
FROM jobs AS j JOIN job_details AS d ON d.job_id = j.id
WHERE j.tenant = $7 AND j.id < $1 AND ($2 IS NULL OR j.status = $2) AND ($3 IS NULL OR j.dataset_id = $3)
    AND ($4 IS NULL OR j.series = $4) AND ($5 IS NULL OR j.method = $5)
ORDER BY j.id DESC LIMIT $6";
