-- What a dataset says of its people, in keyed hashes: it outlives the rows.
CREATE TABLE dataset_people (
    dataset_id UUID NOT NULL PRIMARY KEY REFERENCES datasets (id),
    people     JSON NOT NULL,
    "overlaps" JSON NOT NULL
);

-- The sorted hashes of its records in pieces from 0 on, and the sample that is compared across series as piece -1. Written before
-- the dataset is visible, hence without a foreign key.
CREATE TABLE people_pieces (
    dataset_id UUID    NOT NULL,
    piece_no   BIGINT  NOT NULL,
    hashes     BYTEA   NOT NULL,
    PRIMARY KEY (dataset_id, piece_no)
);

-- Rises with whatever is entered into a series, so that a judgement can be told to be out of date; of the series with the empty
-- name, which no dataset has, with every dataset of the tenant.
CREATE TABLE series_versions (
    tenant  TEXT    NOT NULL,
    series  TEXT    NOT NULL,
    version BIGINT  NOT NULL,
    PRIMARY KEY (tenant, series)
);

CREATE INDEX datasets_of_series ON datasets (tenant, series, id);
