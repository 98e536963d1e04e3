-- API keys: the hash of a secret, never the secret.
CREATE TABLE api_keys (
    id         UUID        NOT NULL PRIMARY KEY,
    tenant     TEXT        NOT NULL,
    name       TEXT        NOT NULL,
    scopes     TEXT        NOT NULL,
    hash       BYTEA       NOT NULL CHECK (octet_length(hash) = 32),
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ
);

-- Who did what. Never a value of the data.
CREATE TABLE audit_log (
    id          UUID        NOT NULL PRIMARY KEY,
    recorded_at TIMESTAMPTZ NOT NULL,
    tenant      TEXT        NOT NULL,
    key_id      UUID,
    action      TEXT        NOT NULL,
    object      TEXT        NOT NULL,
    detail      TEXT
);

CREATE INDEX audit_log_of_tenant ON audit_log (tenant, id);

CREATE FUNCTION audit_log_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END
$$;

CREATE TRIGGER audit_log_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION audit_log_is_append_only();

-- Lists are a tenant's.
CREATE INDEX datasets_of_tenant ON datasets (tenant, id);
CREATE INDEX jobs_of_tenant ON jobs (tenant, id);
CREATE INDEX releases_of_tenant ON releases (tenant, id);
