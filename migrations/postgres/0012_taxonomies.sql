-- Named taxonomies. A version stays as it was written. One that is deleted keeps its name and the number of its last version, so
-- that no later version is called as an earlier one was.
CREATE TABLE taxonomies (
    id       UUID   NOT NULL PRIMARY KEY,
    tenant   TEXT   NOT NULL,
    name     TEXT   NOT NULL,
    versions BIGINT NOT NULL,
    UNIQUE (tenant, name)
);

CREATE INDEX taxonomies_of_tenant ON taxonomies (tenant, id);

CREATE TABLE taxonomy_versions (
    id          UUID        NOT NULL PRIMARY KEY,
    taxonomy_id UUID        NOT NULL REFERENCES taxonomies (id),
    version     BIGINT      NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL,
    tree        JSON        NOT NULL,
    UNIQUE (taxonomy_id, version)
);

CREATE FUNCTION taxonomy_versions_do_not_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version of a taxonomy does not change';
END
$$;

CREATE TRIGGER taxonomy_versions_stay BEFORE UPDATE ON taxonomy_versions
    FOR EACH STATEMENT EXECUTE FUNCTION taxonomy_versions_do_not_change();
