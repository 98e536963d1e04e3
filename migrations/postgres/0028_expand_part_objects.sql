-- Chunks of parts in an object store. Such a chunk has an empty payload, the key of its object below the prefix that the operator
-- names, and the SHA-256 and length of what the payload would be.
ALTER TABLE part_chunks ADD COLUMN object TEXT;
ALTER TABLE part_chunks ADD COLUMN object_sha256 BYTEA;
ALTER TABLE part_chunks ADD COLUMN object_bytes BIGINT;
ALTER TABLE part_chunks ADD CONSTRAINT part_chunks_object
    CHECK ((object IS NULL) = (object_sha256 IS NULL) AND (object IS NULL) = (object_bytes IS NULL));

CREATE INDEX part_chunks_objects ON part_chunks (object) WHERE object IS NOT NULL;

-- Keys of objects that no chunk has any more, until they are deleted.
CREATE TABLE unwanted_objects (
    object TEXT NOT NULL PRIMARY KEY
);
