-- One signature in four finds tables, hence has a row; all of a coverage are one value: of each the hash (16 bytes), the number of its
-- sample (2) and its rows (8). Coverages of before have all marks in rows, and no value. The name changes because who looks for all
-- signatures in rows would miss most: such a process fails.
ALTER TABLE alike RENAME TO indexed_marks;

CREATE TABLE coverage_signatures (
    coverage   BIGINT  NOT NULL PRIMARY KEY,
    signatures BYTEA   NOT NULL
);

-- Hashes do not compress, and samples of the column would outlive its rows.
ALTER TABLE coverage_signatures ALTER COLUMN signatures SET STORAGE EXTERNAL, ALTER COLUMN signatures SET STATISTICS 0;
