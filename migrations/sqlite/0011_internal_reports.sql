-- What a release's original says of it, sealed under the key of its dataset: it can be read as long as the original can, and is gone
-- with the end of the release.
CREATE TABLE internal_reports (
    release_id BLOB NOT NULL PRIMARY KEY REFERENCES releases (id),
    report     BLOB NOT NULL
) STRICT;
