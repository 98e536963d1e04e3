-- Who did it, as key:ID or sub:SUBJECT. Entries from before have a key, or nobody.
ALTER TABLE audit_log ADD COLUMN actor TEXT;
