-- Keys that callers send with a request, so that it can be repeated. What was made stands under resource_id, which is drawn
-- before it is made: an entry whose resource exists is done, another one is under way until lease_until.
CREATE TABLE idempotency_keys (
    tenant       TEXT        NOT NULL,
    route        TEXT        NOT NULL,
    name         TEXT        NOT NULL,
    resource_id  UUID        NOT NULL UNIQUE,
    content_hash BYTEA CHECK (octet_length(content_hash) = 32),
    began_at     TIMESTAMPTZ NOT NULL,
    lease_until  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant, route, name)
);

CREATE INDEX idempotency_keys_age ON idempotency_keys (began_at);
