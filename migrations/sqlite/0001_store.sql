-- Times are RFC 3339 text in UTC with at most microseconds, bound by the service's clock: they sort as text.
-- Ids are UUIDv7 in 16 bytes: they sort by time.

CREATE TABLE datasets (
    id                   BLOB    NOT NULL PRIMARY KEY,
    tenant               TEXT    NOT NULL,
    name                 TEXT,
    series               TEXT    NOT NULL,
    same_people          INTEGER,
    same_people_reason   TEXT,
    record_key           TEXT,
    subject              TEXT,
    max_rows_per_subject INTEGER,
    created_at           TEXT    NOT NULL,
    row_count            INTEGER NOT NULL,
    byte_count           INTEGER NOT NULL,
    format               TEXT    NOT NULL,
    content_hash         BLOB    NOT NULL,
    chunk_count          INTEGER NOT NULL,
    column_profiles      TEXT    NOT NULL,
    purged_at            TEXT
) STRICT;

-- Written before the dataset is visible, hence without a foreign key.
CREATE TABLE column_chunks (
    dataset_id BLOB    NOT NULL,
    column_no  INTEGER NOT NULL,
    chunk_no   INTEGER NOT NULL,
    payload    BLOB    NOT NULL,
    PRIMARY KEY (dataset_id, column_no, chunk_no)
) STRICT;

-- What claims and heartbeats touch; narrow, because it is rewritten often.
CREATE TABLE jobs (
    id               BLOB    NOT NULL PRIMARY KEY,
    tenant           TEXT    NOT NULL,
    dataset_id       BLOB    NOT NULL REFERENCES datasets (id),
    series           TEXT    NOT NULL,
    method           TEXT    NOT NULL,
    reuse_key        BLOB    NOT NULL,
    priority         INTEGER NOT NULL,
    status           TEXT    NOT NULL
        CHECK (status IN ('queued', 'running', 'succeeded', 'refused', 'failed', 'cancelled')),
    submitted_at     TEXT    NOT NULL,
    started_at       TEXT,
    finished_at      TEXT,
    deadline_at      TEXT,
    attempt          INTEGER NOT NULL,
    lapses           INTEGER NOT NULL,
    lease_token      BLOB,
    lease_expires_at TEXT,
    cancel_requested INTEGER NOT NULL,
    progress         TEXT,
    release_id       BLOB,
    reused           INTEGER NOT NULL,
    CHECK ((status = 'running') = (lease_token IS NOT NULL)),
    CHECK ((status = 'succeeded') = (release_id IS NOT NULL))
) STRICT;

CREATE INDEX jobs_waiting ON jobs (priority DESC, submitted_at, id) WHERE status = 'queued';
CREATE INDEX jobs_waiting_alike ON jobs (reuse_key) WHERE status = 'queued';
CREATE UNIQUE INDEX jobs_running_alike ON jobs (reuse_key) WHERE status = 'running';
CREATE INDEX jobs_leases ON jobs (lease_expires_at) WHERE status = 'running';
CREATE INDEX jobs_deadlines ON jobs (deadline_at) WHERE status = 'queued' AND deadline_at IS NOT NULL;

-- What is written once or read rarely.
CREATE TABLE job_details (
    job_id        BLOB NOT NULL PRIMARY KEY REFERENCES jobs (id),
    specification TEXT NOT NULL,
    reason        TEXT,
    problem       TEXT
) STRICT;

-- The wrapped release key: a row exists exactly until the job ends.
CREATE TABLE job_keys (
    job_id      BLOB NOT NULL PRIMARY KEY REFERENCES jobs (id),
    wrapped_key BLOB NOT NULL
) STRICT;

CREATE TABLE part_chunks (
    job_id    BLOB    NOT NULL REFERENCES jobs (id),
    attempt   INTEGER NOT NULL,
    file      TEXT    NOT NULL,
    chunk_no  INTEGER NOT NULL,
    first_row INTEGER NOT NULL,
    row_count INTEGER NOT NULL,
    payload   BLOB    NOT NULL,
    PRIMARY KEY (job_id, attempt, file, chunk_no)
) STRICT;

CREATE INDEX part_chunks_rows ON part_chunks (job_id, attempt, file, first_row);

CREATE TABLE releases (
    id           BLOB    NOT NULL PRIMARY KEY,
    job_id       BLOB    NOT NULL REFERENCES jobs (id),
    attempt      INTEGER NOT NULL,
    tenant       TEXT    NOT NULL,
    series       TEXT    NOT NULL,
    dataset_id   BLOB    NOT NULL REFERENCES datasets (id),
    content_hash BLOB    NOT NULL,
    reuse_key    BLOB    NOT NULL,
    method       TEXT    NOT NULL,
    created_at   TEXT    NOT NULL,
    status       TEXT    NOT NULL CHECK (status IN ('held', 'published', 'rejected', 'withdrawn')),
    UNIQUE (job_id)
) STRICT;

CREATE UNIQUE INDEX releases_standing ON releases (tenant, reuse_key) WHERE status IN ('held', 'published');

CREATE TABLE release_documents (
    release_id BLOB NOT NULL PRIMARY KEY REFERENCES releases (id),
    manifest   TEXT NOT NULL,
    report     TEXT NOT NULL
) STRICT;

-- Rises with every commit, so that a judgement can be told to be out of date.
CREATE TABLE ledgers (
    tenant       TEXT    NOT NULL,
    series       TEXT    NOT NULL,
    content_hash BLOB    NOT NULL,
    version      INTEGER NOT NULL,
    PRIMARY KEY (tenant, series, content_hash)
) STRICT;

CREATE TABLE disclosures (
    id           BLOB NOT NULL PRIMARY KEY,
    release_id   BLOB NOT NULL REFERENCES releases (id),
    tenant       TEXT NOT NULL,
    series       TEXT NOT NULL,
    content_hash BLOB NOT NULL,
    table_name   TEXT NOT NULL,
    body         TEXT NOT NULL,
    recorded_at  TEXT NOT NULL
) STRICT;

CREATE INDEX disclosures_of_content ON disclosures (tenant, series, content_hash, id);

CREATE TABLE standing_rules (
    release_id   BLOB    NOT NULL REFERENCES releases (id),
    rule_no      INTEGER NOT NULL,
    tenant       TEXT    NOT NULL,
    series       TEXT    NOT NULL,
    content_hash BLOB    NOT NULL,
    body         TEXT    NOT NULL,
    PRIMARY KEY (release_id, rule_no)
) STRICT;

CREATE INDEX standing_rules_of_content ON standing_rules (tenant, series, content_hash, release_id, rule_no);
