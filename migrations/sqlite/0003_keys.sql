-- API keys: the hash of a secret, never the secret.
CREATE TABLE api_keys (
    id         BLOB NOT NULL PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    scopes     TEXT NOT NULL,
    hash       BLOB NOT NULL CHECK (length(hash) = 32),
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT
) STRICT;

-- Who did what. Never a value of the data.
CREATE TABLE audit_log (
    id          BLOB NOT NULL PRIMARY KEY,
    recorded_at TEXT NOT NULL,
    tenant      TEXT NOT NULL,
    key_id      BLOB,
    action      TEXT NOT NULL,
    object      TEXT NOT NULL,
    detail      TEXT
) STRICT;

CREATE INDEX audit_log_of_tenant ON audit_log (tenant, id);

CREATE TRIGGER audit_log_stays BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_log_is_kept BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- Lists are a tenant's.
CREATE INDEX datasets_of_tenant ON datasets (tenant, id);
CREATE INDEX jobs_of_tenant ON jobs (tenant, id);
CREATE INDEX releases_of_tenant ON releases (tenant, id);
