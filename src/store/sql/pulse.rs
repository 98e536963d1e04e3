//! How the store is. The only statements that look at jobs of all tenants for a caller, and they only count them.

/// The migrations that were applied.
pub(crate) const SCHEMA_VERSION: &str = "\
-- schema_version
SELECT MAX(version) FROM _sqlx_migrations WHERE success";

/// One look at each partial index.
pub(crate) const BACKLOG: &str = "\
-- backlog
SELECT (SELECT COUNT(*) FROM jobs WHERE status = 'queued') AS queued,
    (SELECT COUNT(*) FROM jobs WHERE status = 'running') AS running,
    (SELECT MIN(submitted_at) FROM jobs WHERE status = 'queued') AS oldest_queued";
