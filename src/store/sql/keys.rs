//! Keys of requests that can be repeated.

pub(crate) const CLAIM_KEY: &str = "\
-- claim_key
INSERT INTO idempotency_keys (tenant, route, name, resource_id, content_hash, began_at, lease_until)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, route, name) DO NOTHING";

pub(crate) const KEY: &str = "\
-- key
SELECT resource_id, content_hash, lease_until FROM idempotency_keys WHERE tenant = $1 AND route = $2 AND name = $3";

pub(crate) const DROP_KEY: &str = "\
-- drop_key
DELETE FROM idempotency_keys WHERE resource_id = $1";

pub(crate) const RENEW_KEY: &str = "\
-- renew_key
UPDATE idempotency_keys SET lease_until = $2 WHERE resource_id = $1";

pub(crate) const NOTE_CONTENT: &str = "\
-- note_content
UPDATE idempotency_keys SET content_hash = $2 WHERE resource_id = $1";

pub(crate) const EXPIRE_KEYS: &str = "\
-- expire_keys
DELETE FROM idempotency_keys WHERE began_at < $1";

pub(crate) const LAPSE_KEYS: &str = "\
-- lapse_keys
UPDATE idempotency_keys SET lease_until = $1 WHERE lease_until > $1";
