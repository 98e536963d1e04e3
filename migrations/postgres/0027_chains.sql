-- Chains: what the releases of a population that is republished leave behind for the next one. A chain that has ended stays,
-- so that its persons are not published anew.
CREATE TABLE chains (
    id         UUID NOT NULL PRIMARY KEY,
    tenant     TEXT NOT NULL,
    population TEXT NOT NULL,
    ended_at   TIMESTAMPTZ,
    UNIQUE (tenant, population)
);

-- The wrapped keys of their states.
CREATE TABLE chain_keys (
    chain_id    UUID NOT NULL PRIMARY KEY REFERENCES chains (id),
    wrapped_key BYTEA NOT NULL
);

-- The current state of a chain, and the one that waits for the decision on a held release.
CREATE TABLE chain_states (
    chain_id    UUID    NOT NULL REFERENCES chains (id),
    is_pending  BOOLEAN NOT NULL,
    version     BIGINT  NOT NULL,
    job_id      UUID    NOT NULL,
    attempt     BIGINT  NOT NULL,
    piece_count BIGINT  NOT NULL,
    byte_count  BIGINT  NOT NULL,
    release_id  UUID    NOT NULL,
    PRIMARY KEY (chain_id, is_pending)
);

CREATE INDEX chain_states_of_release ON chain_states (release_id);

-- States in encrypted pieces, also of attempts that have not committed, and of jobs of another store.
CREATE TABLE chain_pieces (
    chain_id UUID    NOT NULL REFERENCES chains (id),
    job_id   UUID    NOT NULL,
    attempt  BIGINT  NOT NULL,
    piece_no BIGINT  NOT NULL,
    payload  BYTEA   NOT NULL,
    PRIMARY KEY (chain_id, job_id, attempt, piece_no)
);

ALTER TABLE chain_pieces ALTER COLUMN payload SET STORAGE EXTERNAL;

CREATE INDEX chain_pieces_of_attempt ON chain_pieces (job_id, attempt);
