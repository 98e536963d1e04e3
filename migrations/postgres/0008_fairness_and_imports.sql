-- When a job may be tried again after its worker vanished.
ALTER TABLE jobs ADD COLUMN not_before TIMESTAMPTZ;

-- Tenants take turns: a claim asks, for each tenant that waits, how many of its jobs run, when it was last served, and which of
-- its jobs is next.
DROP INDEX jobs_waiting;
CREATE INDEX jobs_waiting_of_tenant ON jobs (tenant, priority DESC, submitted_at, id) WHERE status = 'queued';
CREATE INDEX jobs_running_of_tenant ON jobs (tenant) WHERE status = 'running';
CREATE INDEX jobs_served_of_tenant ON jobs (tenant, started_at) WHERE started_at IS NOT NULL;

-- What was published from another store. It stands in the way of new releases as this store's own does, but its parts are not
-- here: no job, no dataset, no release that could be served.
CREATE TABLE imported_releases (
    id           UUID        NOT NULL PRIMARY KEY,
    tenant       TEXT        NOT NULL,
    series       TEXT        NOT NULL,
    content_hash BYTEA       NOT NULL CHECK (octet_length(content_hash) = 32),
    reuse_key    BYTEA       NOT NULL CHECK (octet_length(reuse_key) = 32),
    method       TEXT        NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    status       TEXT        NOT NULL CHECK (status IN ('held', 'published', 'rejected', 'withdrawn')),
    was_read     BOOLEAN     NOT NULL,
    imported_at  TIMESTAMPTZ NOT NULL
);

CREATE INDEX imported_releases_alike ON imported_releases (tenant, reuse_key);

CREATE TABLE imported_disclosures (
    id           UUID        NOT NULL PRIMARY KEY,
    release_id   UUID        NOT NULL REFERENCES imported_releases (id),
    tenant       TEXT        NOT NULL,
    series       TEXT        NOT NULL,
    content_hash BYTEA       NOT NULL CHECK (octet_length(content_hash) = 32),
    table_name   TEXT        NOT NULL,
    body         JSON        NOT NULL,
    recorded_at  TIMESTAMPTZ NOT NULL
);

CREATE INDEX imported_disclosures_of_content ON imported_disclosures (tenant, series, content_hash, id);

CREATE TABLE imported_rules (
    release_id   UUID        NOT NULL REFERENCES imported_releases (id),
    rule_no      BIGINT      NOT NULL,
    tenant       TEXT        NOT NULL,
    series       TEXT        NOT NULL,
    content_hash BYTEA       NOT NULL CHECK (octet_length(content_hash) = 32),
    body         JSON        NOT NULL,
    PRIMARY KEY (release_id, rule_no)
);

CREATE INDEX imported_rules_of_content ON imported_rules (tenant, series, content_hash, release_id, rule_no);
