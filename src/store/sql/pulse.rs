//! How the store is. The only statements that look at jobs of all tenants for a caller, and they only count them.

/// The migrations that were applied.
/// The version of the tables, without what a later guardian than that of version `$1` only expanded.
pub(crate) const SCHEMA_VERSION: &str = "\
-- schema_version
SELECT MAX(version) FROM _sqlx_migrations WHERE success AND NOT (version > $1 AND description LIKE 'expand %')";

/// One look at each partial index.
pub(crate) const BACKLOG: &str = "\
-- backlog
SELECT (SELECT COUNT(*) FROM jobs WHERE status = 'queued') AS queued,
    (SELECT COUNT(*) FROM jobs WHERE status = 'running') AS running,
    (SELECT MIN(submitted_at) FROM jobs WHERE status = 'queued') AS oldest_queued";
