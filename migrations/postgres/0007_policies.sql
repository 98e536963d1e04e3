-- Named specifications. A version stays as it was written: jobs name it, and must mean the same ever after.
CREATE TABLE policies (
    id     UUID NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    UNIQUE (tenant, name)
);

CREATE INDEX policies_of_tenant ON policies (tenant, id);

CREATE TABLE policy_versions (
    id            UUID        NOT NULL PRIMARY KEY,
    policy_id     UUID        NOT NULL REFERENCES policies (id),
    version       BIGINT      NOT NULL,
    created_at    TIMESTAMPTZ NOT NULL,
    specification JSON        NOT NULL,
    UNIQUE (policy_id, version)
);

CREATE FUNCTION policy_versions_do_not_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version of a policy does not change';
END
$$;

CREATE TRIGGER policy_versions_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON policy_versions
    FOR EACH STATEMENT EXECUTE FUNCTION policy_versions_do_not_change();

-- What an operator decided for a tenant; who has no row has the defaults.
CREATE TABLE tenants (
    tenant   TEXT NOT NULL PRIMARY KEY,
    settings JSON NOT NULL
);

-- Who submitted a job, and who changed a release's status: as the audit log names an actor, where there was one.
ALTER TABLE job_details ADD COLUMN submitted_by TEXT;
ALTER TABLE release_events ADD COLUMN done_by TEXT;

CREATE INDEX jobs_of_release ON jobs (release_id) WHERE release_id IS NOT NULL;
