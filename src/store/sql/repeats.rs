//! Keys of requests that can be repeated.

pub(crate) const CLAIM_REPEAT: &str = "\
-- claim_repeat
INSERT INTO idempotency_keys (tenant, route, name, resource_id, content_hash, began_at, lease_until)
VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tenant, route, name) DO NOTHING";

pub(crate) const REPEAT: &str = "\
-- repeat
SELECT resource_id, content_hash, lease_until FROM idempotency_keys WHERE tenant = $1 AND route = $2 AND name = $3";

pub(crate) const DROP_REPEAT: &str = "\
-- drop_repeat
DELETE FROM idempotency_keys WHERE resource_id = $1";

pub(crate) const RENEW_REPEAT: &str = "\
-- renew_repeat
UPDATE idempotency_keys SET lease_until = $2 WHERE resource_id = $1";

pub(crate) const NOTE_CONTENT: &str = "\
-- note_content
UPDATE idempotency_keys SET content_hash = $2 WHERE resource_id = $1";

pub(crate) const EXPIRE_REPEATS: &str = "\
-- expire_repeats
DELETE FROM idempotency_keys WHERE began_at < $1";

pub(crate) const LAPSE_REPEATS: &str = "\
-- lapse_repeats
UPDATE idempotency_keys SET lease_until = $1 WHERE lease_until > $1";
