-- One signature in four finds tables, hence has a row; all of a coverage are one value: of each the hash (16 bytes), the number of its
-- sample (2) and its rows (8). Coverages of before have all marks in rows, and no value. The name changes because who looks for all
-- signatures in rows would miss most: such a process fails.
ALTER TABLE alike RENAME TO indexed_marks;

CREATE TABLE coverage_signatures (
    coverage   INTEGER NOT NULL PRIMARY KEY,
    signatures BLOB    NOT NULL
) STRICT;
