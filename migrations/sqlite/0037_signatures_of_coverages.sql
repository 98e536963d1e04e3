-- One signature in four finds tables, hence has a row; all of a sample are one value: of each the hash (16 bytes) and its rows (8), in
-- order. Coverages of before have all marks in rows, and no value. The name changes because who looks for all signatures in rows
-- would miss most: such a process fails.
ALTER TABLE alike RENAME TO indexed_marks;

CREATE TABLE coverage_signatures (
    coverage   INTEGER NOT NULL,
    sample     INTEGER NOT NULL,
    signatures BLOB    NOT NULL,
    PRIMARY KEY (coverage, sample)
) STRICT;
