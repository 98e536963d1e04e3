-- The wrapped key that everything of a dataset is sealed under: from the beginning of its upload, hence without a foreign key,
-- exactly until its purge.
CREATE TABLE dataset_keys (
    dataset_id  BLOB NOT NULL PRIMARY KEY,
    wrapped_key BLOB NOT NULL
) STRICT;

-- Profiles are sealed too, and gone with the purge. Those of a dataset that has no key yet are sealed at the next start, as its
-- chunks are.
ALTER TABLE datasets ADD COLUMN profiles BLOB;
UPDATE datasets SET profiles = CAST(column_profiles AS BLOB) WHERE purged_at IS NULL;
ALTER TABLE datasets DROP COLUMN column_profiles;
