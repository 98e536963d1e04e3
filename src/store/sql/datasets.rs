//! Datasets and their chunks.

macro_rules! dataset_columns {
    () => {
        "id, tenant, name, series, same_people, same_people_reason, record_key, subject, max_rows_per_subject, created_at, \
         row_count, byte_count, format, content_hash, chunk_count, profiles, purged_at, population, person, uploaded_by, \
         contributions, place"
    };
}

macro_rules! dataset_and_key {
    () => {
        concat!(
            dataset_columns!(),
            ", (SELECT k.wrapped_key FROM dataset_keys AS k WHERE k.dataset_id = datasets.id) AS wrapped_key"
        )
    };
}

pub(crate) const INSERT_DATASET_KEY: &str = "\
-- insert_dataset_key
INSERT INTO dataset_keys (dataset_id, wrapped_key) VALUES ($1, $2)";

/// A visible dataset keeps its key until it is purged.
pub(crate) const DELETE_DATASET_KEY: &str = "\
-- delete_dataset_key
DELETE FROM dataset_keys
WHERE dataset_id = $1 AND NOT EXISTS (SELECT 1 FROM datasets AS d WHERE d.id = $1 AND d.purged_at IS NULL)";

pub(crate) const PUT_COLUMN_CHUNK: &str = "\
-- put_column_chunk
INSERT INTO column_chunks (dataset_id, column_no, chunk_no, payload)
SELECT $1, $2, $3, $4
WHERE EXISTS (SELECT 1 FROM dataset_keys WHERE dataset_id = $1) AND NOT EXISTS (SELECT 1 FROM datasets WHERE id = $1)";

pub(crate) const GET_COLUMN_CHUNK: &str = "\
-- get_column_chunk
SELECT payload FROM column_chunks WHERE dataset_id = $1 AND column_no = $2 AND chunk_no = $3";

pub(crate) const COUNT_CHUNKS: &str = "\
-- count_chunks
SELECT COUNT(DISTINCT chunk_no) FROM column_chunks WHERE dataset_id = $1";

pub(crate) const INSERT_DATASET: &str = concat!(
    "-- insert_dataset\nINSERT INTO datasets (",
    dataset_columns!(),
    ")\nSELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22\n",
    "WHERE EXISTS (SELECT 1 FROM dataset_keys WHERE dataset_id = $1)"
);

/// Without rows, hence without a key.
pub(crate) const IMPORT_DATASET: &str = concat!(
    "-- import_dataset\nINSERT INTO datasets (",
    dataset_columns!(),
    ")\nVALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, NULL, $15, $16, $17, NULL, NULL, NULL)"
);

/// Purged ones too, without those that stand for releases of a file that had no datasets.
pub(crate) const ALL_DATASETS: &str = concat!(
    "-- all_datasets\nSELECT ",
    dataset_and_key!(),
    "\nFROM datasets WHERE ($1 IS NULL OR tenant = $1) AND format <> 'unknown' ORDER BY id"
);

pub(crate) const DATASET: &str =
    concat!("-- dataset\nSELECT ", dataset_and_key!(), " FROM datasets WHERE id = $1 AND tenant = $2");

pub(crate) const DATASETS: &str = "\
-- datasets
SELECT id, name, series, population, person, record_key, subject, max_rows_per_subject, created_at, row_count,
    byte_count, format, purged_at
FROM datasets WHERE tenant = $3 AND id < $1 ORDER BY id DESC LIMIT $2";

pub(crate) const MARK_PURGED: &str = "\
-- mark_purged
UPDATE datasets SET purged_at = $2, profiles = NULL WHERE id = $1 AND tenant = $3 AND purged_at IS NULL";

pub(crate) const UNREACHABLE_UPLOADS: &str = "\
-- unreachable_uploads
SELECT DISTINCT dataset_id FROM
    (SELECT dataset_id FROM column_chunks UNION SELECT dataset_id FROM dataset_keys) AS c
WHERE (c.dataset_id < $1 AND NOT EXISTS (SELECT 1 FROM datasets AS d WHERE d.id = c.dataset_id))
   OR EXISTS (SELECT 1 FROM datasets AS d WHERE d.id = c.dataset_id AND d.purged_at IS NOT NULL)";

pub(crate) const DELETE_SOME_CHUNKS: &str = "\
-- delete_some_chunks
DELETE FROM column_chunks
WHERE dataset_id = $1
  AND (dataset_id, column_no, chunk_no) IN
    (SELECT dataset_id, column_no, chunk_no FROM column_chunks WHERE dataset_id = $1 LIMIT $2)
  AND NOT EXISTS (SELECT 1 FROM datasets AS d WHERE d.id = $1 AND d.purged_at IS NULL)";

pub(crate) const UNSEALED_DATASETS: &str = "\
-- unsealed_datasets
SELECT id FROM datasets AS d
WHERE d.purged_at IS NULL AND NOT EXISTS (SELECT 1 FROM dataset_keys AS k WHERE k.dataset_id = d.id) ORDER BY id";

pub(crate) const PROFILES_TO_SEAL: &str = "\
-- profiles_to_seal
SELECT profiles FROM datasets AS d
WHERE d.id = $1 AND d.purged_at IS NULL AND NOT EXISTS (SELECT 1 FROM dataset_keys AS k WHERE k.dataset_id = d.id)";

pub(crate) const SET_PROFILES: &str = "\
-- set_profiles
UPDATE datasets SET profiles = $2 WHERE id = $1";

pub(crate) const CHUNKS_OF_DATASET: &str = "\
-- chunks_of_dataset
SELECT column_no, chunk_no FROM column_chunks WHERE dataset_id = $1";

pub(crate) const SET_COLUMN_CHUNK: &str = "\
-- set_column_chunk
UPDATE column_chunks SET payload = $4 WHERE dataset_id = $1 AND column_no = $2 AND chunk_no = $3";
