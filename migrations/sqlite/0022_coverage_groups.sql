-- Coverages of equal populations and key systems stand alike to rows that share neither people nor cells with them. One of
-- each group is read for all. A coverage without a group is always read, as are all from before there were groups.
ALTER TABLE coverages ADD COLUMN people_group TEXT;

CREATE INDEX coverages_of_group ON coverages (tenant, state, people_group, ticket, id);

-- The marks of the tables of coverages that have a group, and their datasets.
CREATE TABLE coverage_tables (
    mark     BLOB    NOT NULL,
    coverage INTEGER NOT NULL REFERENCES coverages (id),
    PRIMARY KEY (mark, coverage)
) STRICT, WITHOUT ROWID;

CREATE TABLE coverage_datasets (
    dataset_id BLOB    NOT NULL,
    coverage   INTEGER NOT NULL REFERENCES coverages (id),
    PRIMARY KEY (dataset_id, coverage)
) STRICT, WITHOUT ROWID;
