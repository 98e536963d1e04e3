-- ANALYZE keeps samples of columns, which would outlive the rows: of wrapped keys, and of the persons of datasets. To change a type
-- removes what was kept before, also where the type stays.
ALTER TABLE dataset_keys ALTER COLUMN wrapped_key SET STATISTICS 0, ALTER COLUMN wrapped_key TYPE BYTEA;
ALTER TABLE job_keys ALTER COLUMN wrapped_key SET STATISTICS 0, ALTER COLUMN wrapped_key TYPE BYTEA;
ALTER TABLE chain_keys ALTER COLUMN wrapped_key SET STATISTICS 0, ALTER COLUMN wrapped_key TYPE BYTEA;
ALTER TABLE pins ALTER COLUMN value SET STATISTICS 0, ALTER COLUMN value TYPE BYTEA;
ALTER TABLE dataset_persons ALTER COLUMN hashes SET STATISTICS 0, ALTER COLUMN hashes TYPE BYTEA;
