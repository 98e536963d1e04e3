-- When a part was first given to someone before the release was published: from then on a rejection cannot undo it.
ALTER TABLE releases ADD COLUMN first_read_at TIMESTAMPTZ;

-- Who looks back finds each change of a release's status, and why it was made.
CREATE TABLE release_events (
    release_id  UUID        NOT NULL REFERENCES releases (id),
    status      TEXT        NOT NULL,
    reason      TEXT        NOT NULL,
    happened_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (release_id, status)
);
