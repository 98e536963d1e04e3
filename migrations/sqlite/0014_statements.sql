-- What was stated of a series: tables that were published before or elsewhere, other names of attributes, and what is computed from
-- what. Statements are never changed or removed.
CREATE TABLE series_statements (
    id          BLOB NOT NULL PRIMARY KEY,
    tenant      TEXT NOT NULL,
    series      TEXT NOT NULL,
    body        TEXT NOT NULL,
    recorded_at TEXT NOT NULL
) STRICT;

CREATE INDEX statements_of_series ON series_statements (tenant, series, id);
