-- One signature in four finds tables, hence has a row; all of a sample are one value: of each the hash (16 bytes) and its rows (8), in
-- order. Coverages of before have all marks in rows, and no value. The name changes because who looks for all signatures in rows
-- would miss most: such a process fails.
ALTER TABLE alike RENAME TO indexed_marks;

CREATE TABLE coverage_signatures (
    coverage   BIGINT  NOT NULL,
    sample     BIGINT  NOT NULL,
    signatures BYTEA   NOT NULL,
    PRIMARY KEY (coverage, sample)
);

-- Hashes do not compress, and samples of the column would outlive its rows.
ALTER TABLE coverage_signatures ALTER COLUMN signatures SET STORAGE EXTERNAL, ALTER COLUMN signatures SET STATISTICS 0;
