//! Taxonomies and their versions.

macro_rules! version_columns {
    () => {
        "t.name, v.version, v.created_at"
    };
}

macro_rules! versions {
    () => {
        " FROM taxonomies AS t JOIN taxonomy_versions AS v ON v.taxonomy_id = t.id\nWHERE t.tenant = $1 "
    };
}

macro_rules! latest {
    () => {
        "v.version = (SELECT MAX(w.version) FROM taxonomy_versions AS w WHERE w.taxonomy_id = t.id)"
    };
}

/// Two who write the first version at once meet at the name; the second waits for the first.
pub(crate) const INSERT_TAXONOMY: &str = "\
-- insert_taxonomy
INSERT INTO taxonomies (id, tenant, name, versions) VALUES ($1, $2, $3, 0) ON CONFLICT (tenant, name) DO NOTHING";

/// The next version's number, taken: who takes one holds the taxonomy.
pub(crate) const NEXT_TAXONOMY_VERSION: &str = "\
-- next_taxonomy_version
UPDATE taxonomies SET versions = versions + 1 WHERE tenant = $1 AND name = $2 RETURNING id, versions";

pub(crate) const INSERT_TAXONOMY_VERSION: &str = "\
-- insert_taxonomy_version
INSERT INTO taxonomy_versions (id, taxonomy_id, version, created_at, tree) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const LATEST_TAXONOMY: &str = concat!(
    "-- latest_taxonomy\nSELECT v.id, ",
    version_columns!(),
    ", v.tree AS content",
    versions!(),
    "AND t.name = $2 AND ",
    latest!()
);

pub(crate) const TAXONOMY: &str = concat!(
    "-- taxonomy\nSELECT v.id, ",
    version_columns!(),
    ", v.tree AS content",
    versions!(),
    "AND t.name = $2 AND v.version = $3"
);

pub(crate) const TAXONOMIES: &str = concat!(
    "-- taxonomies\nSELECT t.id, ",
    version_columns!(),
    versions!(),
    "AND t.id < $2 AND ",
    latest!(),
    "\nORDER BY t.id DESC LIMIT $3"
);

pub(crate) const DELETE_TAXONOMY_VERSIONS: &str = "\
-- delete_taxonomy_versions
DELETE FROM taxonomy_versions WHERE taxonomy_id IN (SELECT id FROM taxonomies WHERE tenant = $1 AND name = $2)";
