-- When an object that was deleted is deleted once more: its store may complete a write that its writer has given up.
ALTER TABLE unwanted_objects ADD COLUMN again_at TEXT;
