-- How often persons and marks that stand changed other than by a new announcement: some went over to another coverage, or
-- ceased to stand. What was read of them holds as long as this and the tickets stay.
CREATE TABLE people_changes (
    tenant  TEXT   NOT NULL PRIMARY KEY,
    changes BIGINT NOT NULL
);

-- Statements are judged by the tables of coverages.
CREATE INDEX tables_of_coverage ON coverage_tables (coverage, mark);
