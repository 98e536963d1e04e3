//! The ledger. What was carried here from another store counts as what was published here does.

pub(crate) const LEDGER_VERSION: &str = "\
-- ledger_version
SELECT version FROM ledgers WHERE tenant = $1 AND series = $2 AND content_hash = $3";

pub(crate) const BUMP_LEDGER: &str = "\
-- bump_ledger
INSERT INTO ledgers (tenant, series, content_hash, version) VALUES ($1, $2, $3, 1)
ON CONFLICT (tenant, series, content_hash) DO UPDATE SET version = ledgers.version + 1";

pub(crate) const DISCLOSURES: &str = "\
-- disclosures
SELECT id, release_id, table_name, body, recorded_at FROM disclosures
WHERE tenant = $1 AND series = $2 AND content_hash = $3
UNION ALL
SELECT id, release_id, table_name, body, recorded_at FROM imported_disclosures
WHERE tenant = $1 AND series = $2 AND content_hash = $3
ORDER BY id";

pub(crate) const SERIES_DATASETS: &str = "\
-- series_datasets
SELECT id, created_at FROM datasets WHERE tenant = $1 AND series = $2 ORDER BY id";

pub(crate) const SERIES_DISCLOSURES: &str = "\
-- series_disclosures
SELECT d.id AS id, d.release_id, d.content_hash, d.table_name, d.body, d.recorded_at, r.status
FROM disclosures d JOIN releases r ON r.id = d.release_id WHERE d.tenant = $1 AND d.series = $2
UNION ALL
SELECT d.id AS id, d.release_id, d.content_hash, d.table_name, d.body, d.recorded_at, r.status
FROM imported_disclosures d JOIN imported_releases r ON r.id = d.release_id WHERE d.tenant = $1 AND d.series = $2
ORDER BY id";

pub(crate) const SERIES_RULES: &str = "\
-- series_rules
SELECT release_id, rule_no, content_hash, body FROM standing_rules WHERE tenant = $1 AND series = $2
UNION ALL
SELECT release_id, rule_no, content_hash, body FROM imported_rules WHERE tenant = $1 AND series = $2
ORDER BY release_id, rule_no";

/// Contents of a series whose first dataset is between two ids.
macro_rules! contents_between {
    () => {
        "(SELECT content_hash FROM (\n\
           SELECT id, content_hash, ROW_NUMBER() OVER (PARTITION BY content_hash ORDER BY id) AS place\n\
           FROM datasets WHERE tenant = $1 AND series = $2) AS c WHERE place = 1 AND id >= $3 AND id <= $4)\n"
    };
}

pub(crate) const DISCLOSURES_BETWEEN: &str = concat!(
    "-- disclosures_between\n",
    "SELECT d.id AS id, d.release_id, d.content_hash, d.table_name, d.body, d.recorded_at, r.status\n",
    "FROM disclosures d JOIN releases r ON r.id = d.release_id\n",
    "WHERE d.tenant = $1 AND d.series = $2 AND d.content_hash IN ",
    contents_between!(),
    "UNION ALL\n",
    "SELECT d.id AS id, d.release_id, d.content_hash, d.table_name, d.body, d.recorded_at, r.status\n",
    "FROM imported_disclosures d JOIN imported_releases r ON r.id = d.release_id\n",
    "WHERE d.tenant = $1 AND d.series = $2 AND d.content_hash IN ",
    contents_between!(),
    "ORDER BY id",
);

pub(crate) const RULES_BETWEEN: &str = concat!(
    "-- rules_between\n",
    "SELECT release_id, rule_no, content_hash, body FROM standing_rules\n",
    "WHERE tenant = $1 AND series = $2 AND content_hash IN ",
    contents_between!(),
    "UNION ALL\n",
    "SELECT release_id, rule_no, content_hash, body FROM imported_rules\n",
    "WHERE tenant = $1 AND series = $2 AND content_hash IN ",
    contents_between!(),
    "ORDER BY release_id, rule_no",
);

pub(crate) const STATEMENTS: &str = "\
-- statements
SELECT id, body, recorded_at FROM series_statements WHERE tenant = $1 AND series = $2 ORDER BY id";

pub(crate) const INSERT_STATEMENT: &str = "\
-- insert_statement
INSERT INTO series_statements (id, tenant, series, body, recorded_at) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const INSERT_DISCLOSURE: &str = "\
-- insert_disclosure
INSERT INTO disclosures (id, release_id, tenant, series, content_hash, table_name, body, recorded_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

pub(crate) const STANDING_RULES: &str = "\
-- standing_rules
SELECT release_id, rule_no, body FROM standing_rules
WHERE tenant = $1 AND series = $2 AND content_hash = $3
UNION ALL
SELECT release_id, rule_no, body FROM imported_rules
WHERE tenant = $1 AND series = $2 AND content_hash = $3
ORDER BY release_id, rule_no";

pub(crate) const INSERT_STANDING_RULE: &str = "\
-- insert_standing_rule
INSERT INTO standing_rules (release_id, rule_no, tenant, series, content_hash, body)
VALUES ($1, $2, $3, $4, $5, $6)";
