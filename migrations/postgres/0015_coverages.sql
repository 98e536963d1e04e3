-- Ways to identify persons. A key system never changes.
CREATE TABLE key_systems (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    body       JSON    NOT NULL,
    UNIQUE (tenant, name)
);

-- Named sets of persons, each with the key systems that identify them.
CREATE TABLE populations (
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    body   JSON NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Statements that two populations or tables have no person in common, or are others although alike. They are never
-- changed or removed.
CREATE TABLE separations (
    id          UUID NOT NULL PRIMARY KEY,
    tenant      TEXT NOT NULL,
    body        JSON NOT NULL,
    recorded_at TIMESTAMPTZ NOT NULL
);

CREATE INDEX separations_of_tenant ON separations (tenant, id);

-- The last ticket that a tenant has drawn.
CREATE TABLE ticket_counters (
    tenant TEXT    NOT NULL PRIMARY KEY,
    ticket BIGINT NOT NULL
);

-- The rows of which releases were made, or are about to be: pending, live, or void.
CREATE TABLE coverages (
    id        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant    TEXT    NOT NULL,
    job       UUID    NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('pending', 'live', 'void')),
    ticket    BIGINT,
    body      JSON    NOT NULL,
    published JSON    NOT NULL,
    cuts      JSON    NOT NULL
);

CREATE INDEX standing_coverages ON coverages (tenant, state, id);

-- The persons of pending and live coverages, as keyed hashes.
CREATE TABLE covered (
    system   BIGINT NOT NULL REFERENCES key_systems (id),
    hash     BYTEA    NOT NULL,
    coverage BIGINT NOT NULL REFERENCES coverages (id),
    PRIMARY KEY (system, hash, coverage)
);

CREATE INDEX covered_of_coverage ON covered (coverage);

-- Blocks (kind 0, weight in 1/256 bit) and signatures of rows (kinds from 1 on, weight in rows).
CREATE TABLE alike (
    hash     BYTEA    NOT NULL,
    coverage BIGINT NOT NULL REFERENCES coverages (id),
    kind     BIGINT NOT NULL,
    weight   BIGINT NOT NULL,
    PRIMARY KEY (hash, coverage, kind)
);

CREATE INDEX alike_of_coverage ON alike (coverage, kind, hash);
