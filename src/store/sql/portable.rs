//! The ledger as a whole, and what was carried here from another store.

pub(crate) const ALL_RELEASES: &str = "\
-- all_releases
SELECT id, tenant, series, content_hash, reuse_key, method, created_at, status, first_read_at IS NOT NULL AS was_read,
    FALSE AS imported
FROM releases WHERE $1 IS NULL OR tenant = $1
UNION ALL
SELECT id, tenant, series, content_hash, reuse_key, method, created_at, status, was_read, TRUE
FROM imported_releases WHERE $1 IS NULL OR tenant = $1
ORDER BY id";

pub(crate) const ALL_DISCLOSURES: &str = "\
-- all_disclosures
SELECT id, release_id, table_name, body, recorded_at FROM disclosures WHERE $1 IS NULL OR tenant = $1
UNION ALL
SELECT id, release_id, table_name, body, recorded_at FROM imported_disclosures WHERE $1 IS NULL OR tenant = $1
ORDER BY id";

pub(crate) const ALL_RULES: &str = "\
-- all_rules
SELECT release_id, rule_no, body FROM standing_rules WHERE $1 IS NULL OR tenant = $1
UNION ALL
SELECT release_id, rule_no, body FROM imported_rules WHERE $1 IS NULL OR tenant = $1
ORDER BY release_id, rule_no";

pub(crate) const ALL_VERSIONS: &str = "\
-- all_versions
SELECT tenant, series, content_hash, version FROM ledgers WHERE $1 IS NULL OR tenant = $1
ORDER BY tenant, series, content_hash";

pub(crate) const ALL_STATEMENTS: &str = "\
-- all_statements
SELECT id, tenant, series, body, recorded_at FROM series_statements WHERE $1 IS NULL OR tenant = $1
ORDER BY id";

pub(crate) const ALL_KEY_SYSTEMS: &str = "\
-- all_key_systems
SELECT tenant, name, body FROM key_systems WHERE $1 IS NULL OR tenant = $1 ORDER BY tenant, name";

pub(crate) const ALL_POPULATIONS: &str = "\
-- all_populations
SELECT tenant, name, body FROM populations WHERE $1 IS NULL OR tenant = $1 ORDER BY tenant, name";

pub(crate) const ALL_SEPARATIONS: &str = "\
-- all_separations
SELECT tenant, body, recorded_at FROM separations WHERE $1 IS NULL OR tenant = $1 ORDER BY id";

pub(crate) const ALL_COVERAGES: &str = "\
-- all_coverages
SELECT tenant, id, body, published, cuts FROM coverages
WHERE state = 'live' AND ($1 IS NULL OR tenant = $1) ORDER BY id";

pub(crate) const IMPORT_COVERAGE: &str = "\
-- import_coverage
INSERT INTO coverages (tenant, job, state, ticket, body, published, cuts) VALUES ($1, $2, 'live', $3, $4, $5, $6)
RETURNING id";

pub(crate) const IMPORT_RELEASE: &str = "\
-- import_release
INSERT INTO imported_releases (id, tenant, series, content_hash, reuse_key, method, created_at, status, was_read, imported_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

pub(crate) const ADVANCE_RELEASE: &str = "\
-- advance_release
UPDATE imported_releases SET status = $2, was_read = $3 WHERE id = $1";

pub(crate) const IMPORT_DISCLOSURE: &str = "\
-- import_disclosure
INSERT INTO imported_disclosures (id, release_id, tenant, series, content_hash, table_name, body, recorded_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

pub(crate) const IMPORT_RULE: &str = "\
-- import_rule
INSERT INTO imported_rules (release_id, rule_no, tenant, series, content_hash, body)
VALUES ($1, $2, $3, $4, $5, $6)";

pub(crate) const SET_VERSION: &str = "\
-- set_version
INSERT INTO ledgers (tenant, series, content_hash, version) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, series, content_hash) DO UPDATE SET version = $4";

pub(crate) const IS_IMPORTED: &str = "\
-- is_imported
SELECT COUNT(*) FROM imported_releases WHERE tenant = $1 AND id = $2";
