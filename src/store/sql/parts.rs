//! Parts: their chunks, and the objects that hold them.

macro_rules! chunk_columns {
    () => {
        "p.file, p.chunk_no, p.first_row, p.row_count, p.payload, p.object, p.object_sha256, p.object_bytes\n\
         FROM part_chunks AS p JOIN jobs AS j ON j.id = p.job_id\n\
         WHERE p.job_id = $1 AND p.attempt = $2 AND p.file = $3 AND j.tenant = $5"
    };
}

/// Keeps a chunk of an attempt that runs; its object, if it has one, gets a key that begins with its tenant.
macro_rules! put_part_chunk {
    ($lock:literal) => {
        concat!(
            "-- put_part_chunk\n\
             INSERT INTO part_chunks (job_id, attempt, file, chunk_no, first_row, row_count, payload, object, object_sha256, object_bytes)\n\
             SELECT id, attempt, $3, $4, $5, $6, $7, tenant || $8, $9, $10 FROM jobs\n\
             WHERE id = $1 AND attempt = $2 AND status = 'running'",
            $lock,
            " RETURNING object"
        )
    };
}
pub(crate) use put_part_chunk;

pub(crate) const PUT_PART_CHUNK: &str = put_part_chunk!("");

pub(crate) const PART_CHUNK: &str = concat!("-- part_chunk\nSELECT ", chunk_columns!(), " AND p.chunk_no = $4");

pub(crate) const PART_CHUNK_AT_ROW: &str = concat!(
    "-- part_chunk_at_row\nSELECT ",
    chunk_columns!(),
    " AND p.first_row <= $4 AND p.row_count > 0 ORDER BY p.first_row DESC LIMIT 1"
);

pub(crate) const UNREACHABLE_ATTEMPTS: &str = "\
-- unreachable_attempts
SELECT DISTINCT p.job_id, p.attempt FROM part_chunks AS p
WHERE NOT EXISTS (SELECT 1 FROM releases AS r
                  WHERE r.job_id = p.job_id AND r.attempt = p.attempt AND r.status IN ('held', 'published'))
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = p.job_id AND j.attempt = p.attempt AND j.status = 'running')";

pub(crate) const DELETE_SOME_PART_CHUNKS: &str = "\
-- delete_some_part_chunks
DELETE FROM part_chunks
WHERE job_id = $1 AND attempt = $2
  AND (job_id, attempt, file, chunk_no) IN
    (SELECT job_id, attempt, file, chunk_no FROM part_chunks WHERE job_id = $1 AND attempt = $2 LIMIT $3)
  AND NOT EXISTS (SELECT 1 FROM releases AS r
                  WHERE r.job_id = $1 AND r.attempt = $2 AND r.status IN ('held', 'published'))
RETURNING object";

pub(crate) const PART_OBJECTS: &str = "\
-- part_objects
SELECT p.chunk_no, p.row_count, p.object, p.object_sha256, p.object_bytes
FROM part_chunks AS p JOIN jobs AS j ON j.id = p.job_id
WHERE p.job_id = $1 AND p.attempt = $2 AND p.file = $3 AND p.chunk_no >= $4 AND j.tenant = $5 AND p.object IS NOT NULL
ORDER BY p.chunk_no LIMIT $6";

pub(crate) const ANY_PART_OBJECT: &str = "\
-- any_part_object
SELECT p.chunk_no, p.row_count, p.object, p.object_sha256, p.object_bytes
FROM part_chunks AS p JOIN releases AS r ON r.job_id = p.job_id AND r.attempt = p.attempt
WHERE p.object IS NOT NULL AND r.status IN ('held', 'published') ORDER BY p.object DESC LIMIT 1";

/// An object of a chunk that went while it was written.
pub(crate) const MARK_UNWANTED_WITHOUT_CHUNK: &str = "\
-- mark_unwanted_without_chunk
INSERT INTO unwanted_objects (object)
SELECT CAST($1 AS TEXT) WHERE NOT EXISTS (SELECT 1 FROM part_chunks WHERE object = $1)
ON CONFLICT (object) DO UPDATE SET again_at = NULL";

pub(crate) const MARK_UNWANTED: &str = "\
-- mark_unwanted
INSERT INTO unwanted_objects (object) VALUES ($1) ON CONFLICT DO NOTHING";

/// Those whose last deletion has no date yet, and those whose date has come.
pub(crate) const UNWANTED_OBJECTS: &str = "\
-- unwanted_objects
SELECT object, again_at IS NOT NULL FROM unwanted_objects AS u
WHERE object > $1 AND (again_at IS NULL OR again_at <= $2)
  AND NOT EXISTS (SELECT 1 FROM part_chunks AS p WHERE p.object = u.object)
ORDER BY object LIMIT $3";

/// Sets the date of the last deletion.
pub(crate) const DELETE_OBJECT_AGAIN: &str = "\
-- delete_object_again
UPDATE unwanted_objects SET again_at = $2 WHERE object = $1";

pub(crate) const FORGET_OBJECT: &str = "\
-- forget_object
DELETE FROM unwanted_objects WHERE object = $1";

pub(crate) const OBJECT_IS_KEPT: &str = "\
-- object_is_kept
SELECT chunk_no FROM part_chunks WHERE object = $1";
