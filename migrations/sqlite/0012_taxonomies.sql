-- Named taxonomies. A version stays as it was written. One that is deleted keeps its name and the number of its last version, so
-- that no later version is called as an earlier one was.
CREATE TABLE taxonomies (
    id       BLOB    NOT NULL PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    versions INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT;

CREATE INDEX taxonomies_of_tenant ON taxonomies (tenant, id);

CREATE TABLE taxonomy_versions (
    id          BLOB    NOT NULL PRIMARY KEY,
    taxonomy_id BLOB    NOT NULL REFERENCES taxonomies (id),
    version     INTEGER NOT NULL,
    created_at  TEXT    NOT NULL,
    tree        TEXT    NOT NULL,
    UNIQUE (taxonomy_id, version)
) STRICT;

CREATE TRIGGER taxonomy_versions_stay BEFORE UPDATE ON taxonomy_versions
    BEGIN SELECT RAISE(ABORT, 'a version of a taxonomy does not change'); END;
