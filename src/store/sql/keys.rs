//! API keys and the audit log.

macro_rules! key_columns {
    () => {
        "id, tenant, name, scopes, hash, created_at, expires_at, revoked_at, populations"
    };
}

macro_rules! audit_columns {
    () => {
        "id, recorded_at, tenant, key_id, actor, action, object, detail"
    };
}

pub(crate) const INSERT_KEY: &str =
    concat!("-- insert_key\nINSERT INTO api_keys (", key_columns!(), ")\nVALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");

pub(crate) const INSERT_FIRST_KEY: &str = concat!(
    "-- insert_first_key\nINSERT INTO api_keys (",
    key_columns!(),
    ")\nSELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 WHERE NOT EXISTS (SELECT 1 FROM api_keys)"
);

pub(crate) const KEY: &str = concat!("-- key\nSELECT ", key_columns!(), " FROM api_keys WHERE id = $1");

pub(crate) const KEYS: &str =
    concat!("-- keys\nSELECT ", key_columns!(), " FROM api_keys WHERE ($1 IS NULL OR tenant = $1) ORDER BY id");

pub(crate) const REVOKE_KEY: &str = concat!(
    "-- revoke_key\nUPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING ",
    key_columns!()
);

pub(crate) const APPEND_AUDIT: &str =
    concat!("-- append_audit\nINSERT INTO audit_log (", audit_columns!(), ")\nVALUES ($1, $2, $3, $4, $5, $6, $7, $8)");

pub(crate) const AUDIT: &str = concat!(
    "-- audit\nSELECT ",
    audit_columns!(),
    " FROM audit_log WHERE tenant = $1 AND id < $2 AND ($4 IS NULL OR recorded_at >= $4) AND ($5 IS NULL OR action = $5)\n",
    "ORDER BY id DESC LIMIT $3"
);
