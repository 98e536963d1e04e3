-- Marks are found by their coverage alone. Entries of one coverage are then put behind each other, while in the order of kinds and
-- hashes each has a place of its own.
CREATE INDEX alike_by_coverage ON alike (coverage);
