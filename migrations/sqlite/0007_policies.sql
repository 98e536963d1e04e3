-- Named specifications. A version stays as it was written: jobs name it, and must mean the same ever after.
CREATE TABLE policies (
    id     BLOB NOT NULL PRIMARY KEY,
    tenant TEXT NOT NULL,
    name   TEXT NOT NULL,
    UNIQUE (tenant, name)
) STRICT;

CREATE INDEX policies_of_tenant ON policies (tenant, id);

CREATE TABLE policy_versions (
    id            BLOB    NOT NULL PRIMARY KEY,
    policy_id     BLOB    NOT NULL REFERENCES policies (id),
    version       INTEGER NOT NULL,
    created_at    TEXT    NOT NULL,
    specification TEXT    NOT NULL,
    UNIQUE (policy_id, version)
) STRICT;

CREATE TRIGGER policy_versions_stay BEFORE UPDATE ON policy_versions
    BEGIN SELECT RAISE(ABORT, 'a version of a policy does not change'); END;
CREATE TRIGGER policy_versions_are_kept BEFORE DELETE ON policy_versions
    BEGIN SELECT RAISE(ABORT, 'a version of a policy does not change'); END;

-- What an operator decided for a tenant; who has no row has the defaults.
CREATE TABLE tenants (
    tenant   TEXT NOT NULL PRIMARY KEY,
    settings TEXT NOT NULL
) STRICT;

-- Who submitted a job, and who changed a release's status: as the audit log names an actor, where there was one.
ALTER TABLE job_details ADD COLUMN submitted_by TEXT;
ALTER TABLE release_events ADD COLUMN done_by TEXT;

CREATE INDEX jobs_of_release ON jobs (release_id) WHERE release_id IS NOT NULL;
