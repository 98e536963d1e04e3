//! Policies and their versions.

macro_rules! version_columns {
    () => {
        "p.name, v.version, v.created_at"
    };
}

macro_rules! versions {
    () => {
        " FROM policies AS p JOIN policy_versions AS v ON v.policy_id = p.id\nWHERE p.tenant = $1 "
    };
}

macro_rules! latest {
    () => {
        "v.version = (SELECT MAX(w.version) FROM policy_versions AS w WHERE w.policy_id = p.id)"
    };
}

/// Two who write the first version at once meet at the name; the second waits for the first.
pub(crate) const INSERT_POLICY: &str = "\
-- insert_policy
INSERT INTO policies (id, tenant, name) VALUES ($1, $2, $3) ON CONFLICT (tenant, name) DO NOTHING";

pub(crate) const POLICY_ID: &str = "\
-- policy_id
SELECT id FROM policies WHERE tenant = $1 AND name = $2";

pub(crate) const INSERT_POLICY_VERSION: &str = "\
-- insert_policy_version
INSERT INTO policy_versions (id, policy_id, version, created_at, specification) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const LATEST_POLICY: &str = concat!(
    "-- latest_policy\nSELECT v.id, ",
    version_columns!(),
    ", v.specification AS content",
    versions!(),
    "AND p.name = $2 AND ",
    latest!()
);

pub(crate) const POLICY: &str = concat!(
    "-- policy\nSELECT v.id, ",
    version_columns!(),
    ", v.specification AS content",
    versions!(),
    "AND p.name = $2 AND v.version = $3"
);

pub(crate) const POLICIES: &str = concat!(
    "-- policies\nSELECT p.id, ",
    version_columns!(),
    versions!(),
    "AND p.id < $2 AND ",
    latest!(),
    "\nORDER BY p.id DESC LIMIT $3"
);

pub(crate) const POLICY_VERSIONS: &str = concat!(
    "-- policy_versions\nSELECT v.id, ",
    version_columns!(),
    versions!(),
    "AND p.name = $2 AND v.id < $3\nORDER BY v.id DESC LIMIT $4"
);
