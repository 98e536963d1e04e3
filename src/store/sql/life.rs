//! The life of a release after its commit.

pub(crate) const RELEASE_STATE: &str = "\
-- release_state
SELECT status, first_read_at IS NOT NULL FROM releases WHERE id = $1";

pub(crate) const SET_RELEASE_STATUS: &str = "\
-- set_release_status
UPDATE releases SET status = $2 WHERE id = $1";

pub(crate) const INSERT_RELEASE_EVENT: &str = "\
-- insert_release_event
INSERT INTO release_events (release_id, status, reason, happened_at, done_by) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const LIFT_DISCLOSURES: &str = "\
-- lift_disclosures
DELETE FROM disclosures WHERE release_id = $1";

pub(crate) const LIFT_RULES: &str = "\
-- lift_rules
DELETE FROM standing_rules WHERE release_id = $1";

pub(crate) const MARK_READ: &str = "\
-- mark_read
UPDATE releases SET first_read_at = $2 WHERE id = $1 AND tenant = $3 AND status = 'held' AND first_read_at IS NULL";

pub(crate) const IS_SERVED: &str = "\
-- is_served
SELECT status IN ('held', 'published') FROM releases WHERE id = $1 AND tenant = $2";

/// Who submitted the jobs that a release answers.
pub(crate) const SUBMITTERS: &str = "\
-- submitters
SELECT DISTINCT d.submitted_by FROM jobs AS j JOIN job_details AS d ON d.job_id = j.id
WHERE j.release_id = $1 AND j.tenant = $2";

/// With the status, and whether the release stands. Unordered: by number SQLite would walk all releases of the tenant.
pub(crate) const RELEASES_OF_KEY: &str = "\
-- releases_of_key
SELECT id, status, status IN ('held', 'published') FROM releases
WHERE tenant = $1 AND reuse_key = $2 AND (status <> 'rejected' OR first_read_at IS NOT NULL)
UNION ALL
SELECT id, 'elsewhere', FALSE FROM imported_releases
WHERE tenant = $1 AND reuse_key = $2 AND (status <> 'rejected' OR was_read)";

pub(crate) const OLD_RELEASES: &str = "\
-- old_releases
SELECT tenant, id FROM releases WHERE status = 'published' AND created_at < $1 ORDER BY id";

pub(crate) const RELEASE_EVENTS: &str = "\
-- release_events
SELECT e.status, e.reason, e.happened_at, e.done_by FROM release_events AS e JOIN releases AS r ON r.id = e.release_id
WHERE e.release_id = $1 AND r.tenant = $2 ORDER BY e.happened_at, e.status";
