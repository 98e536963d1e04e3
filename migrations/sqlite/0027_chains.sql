-- Chains: what the releases of a population that is republished leave behind for the next one. A chain that has ended stays,
-- so that its persons are not published anew.
CREATE TABLE chains (
    id         BLOB NOT NULL PRIMARY KEY,
    tenant     TEXT NOT NULL,
    population TEXT NOT NULL,
    ended_at   TEXT,
    UNIQUE (tenant, population)
) STRICT;

-- The wrapped keys of their states.
CREATE TABLE chain_keys (
    chain_id    BLOB NOT NULL PRIMARY KEY REFERENCES chains (id),
    wrapped_key BLOB NOT NULL
) STRICT;

-- The current state of a chain, and the one that waits for the decision on a held release.
CREATE TABLE chain_states (
    chain_id    BLOB    NOT NULL REFERENCES chains (id),
    is_pending  INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    job_id      BLOB    NOT NULL,
    attempt     INTEGER NOT NULL,
    piece_count INTEGER NOT NULL,
    byte_count  INTEGER NOT NULL,
    release_id  BLOB    NOT NULL,
    PRIMARY KEY (chain_id, is_pending)
) STRICT;

CREATE INDEX chain_states_of_release ON chain_states (release_id);

-- States in encrypted pieces, also of attempts that have not committed, and of jobs of another store.
CREATE TABLE chain_pieces (
    chain_id BLOB    NOT NULL REFERENCES chains (id),
    job_id   BLOB    NOT NULL,
    attempt  INTEGER NOT NULL,
    piece_no INTEGER NOT NULL,
    payload  BLOB    NOT NULL,
    PRIMARY KEY (chain_id, job_id, attempt, piece_no)
) STRICT;

CREATE INDEX chain_pieces_of_attempt ON chain_pieces (job_id, attempt);
