-- As marks. The number of a key system is read before, and key systems are never deleted either.
ALTER TABLE covered DROP CONSTRAINT covered_coverage_fkey, DROP CONSTRAINT covered_system_fkey;
