-- Ways to identify persons. A key system never changes.
CREATE TABLE key_systems (
    id         INTEGER NOT NULL PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    UNIQUE (tenant, name)
) STRICT;

-- Named sets of persons, each with the key systems that identify them.
CREATE TABLE populations (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;

-- Statements that two populations or tables have no person in common, or are others although alike. They are never
-- changed or removed.
CREATE TABLE separations (
    id          BLOB NOT NULL PRIMARY KEY,
    tenant      TEXT NOT NULL,
    body        TEXT NOT NULL,
    recorded_at TEXT NOT NULL
) STRICT;

CREATE INDEX separations_of_tenant ON separations (tenant, id);

-- The last ticket that a tenant has drawn.
CREATE TABLE ticket_counters (
    tenant TEXT    NOT NULL PRIMARY KEY,
    ticket INTEGER NOT NULL
) STRICT;

-- The rows of which releases were made, or are about to be: pending, live, or void.
CREATE TABLE coverages (
    id        INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT    NOT NULL,
    job       BLOB    NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('pending', 'live', 'void')),
    ticket    INTEGER,
    body      TEXT    NOT NULL,
    published TEXT    NOT NULL,
    cuts      TEXT    NOT NULL
) STRICT;

CREATE INDEX standing_coverages ON coverages (tenant, state, id);

-- The persons of pending and live coverages, as keyed hashes.
CREATE TABLE covered (
    system   INTEGER NOT NULL REFERENCES key_systems (id),
    hash     BLOB    NOT NULL,
    coverage INTEGER NOT NULL REFERENCES coverages (id),
    PRIMARY KEY (system, hash, coverage)
) STRICT, WITHOUT ROWID;

CREATE INDEX covered_of_coverage ON covered (coverage);

-- Blocks (kind 0, weight in 1/256 bit) and signatures of rows (kinds from 1 on, weight in rows).
CREATE TABLE alike (
    hash     BLOB    NOT NULL,
    coverage INTEGER NOT NULL REFERENCES coverages (id),
    kind     INTEGER NOT NULL,
    weight   INTEGER NOT NULL,
    PRIMARY KEY (hash, coverage, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX alike_of_coverage ON alike (coverage, kind, hash);
