-- When a job may be tried again after its worker vanished.
ALTER TABLE jobs ADD COLUMN not_before TEXT;

-- Tenants take turns: a claim asks, for each tenant that waits, how many of its jobs run, when it was last served, and which of
-- its jobs is next.
DROP INDEX jobs_waiting;
CREATE INDEX jobs_waiting_of_tenant ON jobs (tenant, priority DESC, submitted_at, id) WHERE status = 'queued';
CREATE INDEX jobs_running_of_tenant ON jobs (tenant) WHERE status = 'running';
CREATE INDEX jobs_served_of_tenant ON jobs (tenant, started_at) WHERE started_at IS NOT NULL;

-- What was published from another store. It stands in the way of new releases as this store's own does, but its parts are not
-- here: no job, no dataset, no release that could be served.
CREATE TABLE imported_releases (
    id           BLOB    NOT NULL PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    series       TEXT    NOT NULL,
    content_hash BLOB    NOT NULL,
    reuse_key    BLOB    NOT NULL,
    method       TEXT    NOT NULL,
    created_at   TEXT    NOT NULL,
    status       TEXT    NOT NULL CHECK (status IN ('held', 'published', 'rejected', 'withdrawn')),
    was_read     INTEGER NOT NULL,
    imported_at  TEXT    NOT NULL
) STRICT;

CREATE INDEX imported_releases_alike ON imported_releases (tenant, reuse_key);

CREATE TABLE imported_disclosures (
    id           BLOB NOT NULL PRIMARY KEY,
    release_id   BLOB NOT NULL REFERENCES imported_releases (id),
    tenant       TEXT NOT NULL,
    series       TEXT NOT NULL,
    content_hash BLOB NOT NULL,
    table_name   TEXT NOT NULL,
    body         TEXT NOT NULL,
    recorded_at  TEXT NOT NULL
) STRICT;

CREATE INDEX imported_disclosures_of_content ON imported_disclosures (tenant, series, content_hash, id);

CREATE TABLE imported_rules (
    release_id   BLOB    NOT NULL REFERENCES imported_releases (id),
    rule_no      INTEGER NOT NULL,
    tenant       TEXT    NOT NULL,
    series       TEXT    NOT NULL,
    content_hash BLOB    NOT NULL,
    body         TEXT    NOT NULL,
    PRIMARY KEY (release_id, rule_no)
) STRICT;

CREATE INDEX imported_rules_of_content ON imported_rules (tenant, series, content_hash, release_id, rule_no);
