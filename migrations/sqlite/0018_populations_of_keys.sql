-- The populations into which a key may upload, as a JSON list; any of an empty one.
ALTER TABLE api_keys ADD COLUMN populations TEXT NOT NULL DEFAULT '[]';
