//! Whom datasets speak of.

pub(crate) const PUT_PIECE: &str = "\
-- put_piece
INSERT INTO people_pieces (dataset_id, piece_no, hashes)
SELECT $1, $2, $3
WHERE EXISTS (SELECT 1 FROM dataset_keys WHERE dataset_id = $1) AND NOT EXISTS (SELECT 1 FROM datasets WHERE id = $1)";

/// Those of a dataset stay, also when it is purged.
pub(crate) const DELETE_PIECES: &str = "\
-- delete_pieces
DELETE FROM people_pieces WHERE dataset_id = $1 AND NOT EXISTS (SELECT 1 FROM datasets AS d WHERE d.id = $1)";

/// In quotes what Postgres takes for an operator.
pub(crate) const INSERT_FINGERPRINT: &str = "\
-- insert_people
INSERT INTO dataset_people (dataset_id, people, \"overlaps\") VALUES ($1, $2, $3)";

pub(crate) const FINGERPRINTS: &str = "\
-- people
SELECT d.id, d.series, d.content_hash, p.people AS fingerprint FROM datasets AS d LEFT JOIN dataset_people AS p ON p.dataset_id = d.id
WHERE d.tenant = $1 AND ($2 IS NULL OR d.series = $2) ORDER BY d.id";

pub(crate) const SERIES_VERSION: &str = "\
-- series_version
SELECT version FROM series_versions WHERE tenant = $1 AND series = $2";

pub(crate) const BUMP_SERIES: &str = "\
-- bump_series
INSERT INTO series_versions (tenant, series, version) VALUES ($1, $2, 1)
ON CONFLICT (tenant, series) DO UPDATE SET version = series_versions.version + 1";

/// The name under which the uploads of a tenant are counted; no dataset has it.
pub(crate) const UPLOADS: &str = "";
