-- The evidence of the rows of a dataset. It goes with the rows. Written before the dataset is visible,
-- hence without a foreign key.
CREATE TABLE dataset_evidence (
    dataset_id UUID NOT NULL PRIMARY KEY,
    body       JSON NOT NULL
);

-- The persons of a dataset by a key system: sorted keyed hashes, in pieces from 0 on.
CREATE TABLE dataset_persons (
    dataset_id UUID   NOT NULL,
    system     TEXT   NOT NULL,
    piece_no   BIGINT NOT NULL,
    hashes     BYTEA  NOT NULL,
    PRIMARY KEY (dataset_id, system, piece_no)
);
