-- The tables of the SQLite store, in Postgres' types. Times are bound by the service in whole microseconds; ids are UUIDv7 and
-- sort by time. Documents are JSON, not JSONB: they are given back as they were written, byte for byte, and never searched.

CREATE TABLE datasets (
    id                   UUID        NOT NULL PRIMARY KEY,
    tenant               TEXT        NOT NULL,
    name                 TEXT,
    series               TEXT        NOT NULL,
    same_people          BOOLEAN,
    same_people_reason   TEXT,
    record_key           JSON,
    subject              TEXT,
    max_rows_per_subject BIGINT,
    created_at           TIMESTAMPTZ NOT NULL,
    row_count            BIGINT      NOT NULL,
    byte_count           BIGINT      NOT NULL,
    format               TEXT        NOT NULL,
    content_hash         BYTEA       NOT NULL CHECK (octet_length(content_hash) = 32),
    chunk_count          BIGINT      NOT NULL,
    column_profiles      JSON        NOT NULL,
    purged_at            TIMESTAMPTZ
);

-- Written before the dataset is visible, hence without a foreign key.
CREATE TABLE column_chunks (
    dataset_id UUID   NOT NULL,
    column_no  BIGINT NOT NULL,
    chunk_no   BIGINT NOT NULL,
    payload    BYTEA  NOT NULL,
    PRIMARY KEY (dataset_id, column_no, chunk_no)
);

-- compressed already
ALTER TABLE column_chunks ALTER COLUMN payload SET STORAGE EXTERNAL;

-- What claims and heartbeats touch; narrow, because it is rewritten often.
CREATE TABLE jobs (
    id               UUID        NOT NULL PRIMARY KEY,
    tenant           TEXT        NOT NULL,
    dataset_id       UUID        NOT NULL REFERENCES datasets (id),
    series           TEXT        NOT NULL,
    method           TEXT        NOT NULL,
    reuse_key        BYTEA       NOT NULL CHECK (octet_length(reuse_key) = 32),
    priority         BIGINT      NOT NULL,
    status           TEXT        NOT NULL
        CHECK (status IN ('queued', 'running', 'succeeded', 'refused', 'failed', 'cancelled')),
    submitted_at     TIMESTAMPTZ NOT NULL,
    started_at       TIMESTAMPTZ,
    finished_at      TIMESTAMPTZ,
    deadline_at      TIMESTAMPTZ,
    attempt          BIGINT      NOT NULL,
    lapses           BIGINT      NOT NULL,
    lease_token      UUID,
    lease_expires_at TIMESTAMPTZ,
    cancel_requested BOOLEAN     NOT NULL,
    progress         JSON,
    release_id       UUID,
    reused           BOOLEAN     NOT NULL,
    CHECK ((status = 'running') = (lease_token IS NOT NULL)),
    CHECK ((status = 'running') = (lease_expires_at IS NOT NULL)),
    CHECK ((status = 'succeeded') = (release_id IS NOT NULL))
);

-- every heartbeat leaves a dead row: room for the next version, and an early clean-up
ALTER TABLE jobs SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX jobs_waiting ON jobs (priority DESC, submitted_at, id) WHERE status = 'queued';
CREATE INDEX jobs_waiting_alike ON jobs (reuse_key) WHERE status = 'queued';
-- Two claims of jobs with one reuse key meet here: the second is tried again and then passes its job over.
CREATE UNIQUE INDEX jobs_running_alike ON jobs (reuse_key) WHERE status = 'running';
CREATE INDEX jobs_leases ON jobs (lease_expires_at) WHERE status = 'running';
CREATE INDEX jobs_deadlines ON jobs (deadline_at) WHERE status = 'queued' AND deadline_at IS NOT NULL;

-- What is written once or read rarely.
CREATE TABLE job_details (
    job_id        UUID NOT NULL PRIMARY KEY REFERENCES jobs (id),
    specification JSON NOT NULL,
    reason        TEXT,
    problem       JSON
);

-- The wrapped release key: a row exists exactly until the job ends.
CREATE TABLE job_keys (
    job_id      UUID  NOT NULL PRIMARY KEY REFERENCES jobs (id),
    wrapped_key BYTEA NOT NULL
);

-- an erased key stays in its page until a vacuum: let it come soon
ALTER TABLE job_keys SET (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0);

CREATE TABLE part_chunks (
    job_id    UUID   NOT NULL REFERENCES jobs (id),
    attempt   BIGINT NOT NULL,
    file      TEXT   NOT NULL,
    chunk_no  BIGINT NOT NULL,
    first_row BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    payload   BYTEA  NOT NULL,
    PRIMARY KEY (job_id, attempt, file, chunk_no)
);

ALTER TABLE part_chunks ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE INDEX part_chunks_rows ON part_chunks (job_id, attempt, file, first_row);

CREATE TABLE releases (
    id           UUID        NOT NULL PRIMARY KEY,
    job_id       UUID        NOT NULL REFERENCES jobs (id),
    attempt      BIGINT      NOT NULL,
    tenant       TEXT        NOT NULL,
    series       TEXT        NOT NULL,
    dataset_id   UUID        NOT NULL REFERENCES datasets (id),
    content_hash BYTEA       NOT NULL CHECK (octet_length(content_hash) = 32),
    reuse_key    BYTEA       NOT NULL CHECK (octet_length(reuse_key) = 32),
    method       TEXT        NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    status       TEXT        NOT NULL CHECK (status IN ('held', 'published', 'rejected', 'withdrawn')),
    UNIQUE (job_id)
);

CREATE UNIQUE INDEX releases_standing ON releases (tenant, reuse_key) WHERE status IN ('held', 'published');

CREATE TABLE release_documents (
    release_id UUID NOT NULL PRIMARY KEY REFERENCES releases (id),
    manifest   JSON NOT NULL,
    report     JSON NOT NULL
);

-- Rises with every commit, so that a judgement can be told to be out of date. A commit locks its row first of all.
CREATE TABLE ledgers (
    tenant       TEXT   NOT NULL,
    series       TEXT   NOT NULL,
    content_hash BYTEA  NOT NULL,
    version      BIGINT NOT NULL,
    PRIMARY KEY (tenant, series, content_hash)
);

CREATE TABLE disclosures (
    id           UUID        NOT NULL PRIMARY KEY,
    release_id   UUID        NOT NULL REFERENCES releases (id),
    tenant       TEXT        NOT NULL,
    series       TEXT        NOT NULL,
    content_hash BYTEA       NOT NULL,
    table_name   TEXT        NOT NULL,
    body         JSON        NOT NULL,
    recorded_at  TIMESTAMPTZ NOT NULL
);

CREATE INDEX disclosures_of_content ON disclosures (tenant, series, content_hash, id);

CREATE TABLE standing_rules (
    release_id   UUID   NOT NULL REFERENCES releases (id),
    rule_no      BIGINT NOT NULL,
    tenant       TEXT   NOT NULL,
    series       TEXT   NOT NULL,
    content_hash BYTEA  NOT NULL,
    body         JSON   NOT NULL,
    PRIMARY KEY (release_id, rule_no)
);

CREATE INDEX standing_rules_of_content ON standing_rules (tenant, series, content_hash, release_id, rule_no);
