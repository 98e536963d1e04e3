-- The population whose persons a dataset is about, and per key system the columns that identify them.
ALTER TABLE datasets ADD COLUMN population TEXT;
ALTER TABLE datasets ADD COLUMN person TEXT;
