-- The wrapped key that everything of a dataset is sealed under: from the beginning of its upload, hence without a foreign key,
-- exactly until its purge.
CREATE TABLE dataset_keys (
    dataset_id  UUID  NOT NULL PRIMARY KEY,
    wrapped_key BYTEA NOT NULL
);

-- Profiles are sealed too, and gone with the purge. Those of a dataset that has no key yet are sealed at the next start, as its
-- chunks are. The change of the type writes the table anew: no old row keeps what stood there.
ALTER TABLE datasets ALTER COLUMN column_profiles DROP NOT NULL;
ALTER TABLE datasets ALTER COLUMN column_profiles TYPE BYTEA
    USING CASE WHEN purged_at IS NULL THEN convert_to(column_profiles::TEXT, 'UTF8') END;
ALTER TABLE datasets RENAME COLUMN column_profiles TO profiles;
