-- Where the rows of a dataset are: a table of another engine, or here.
ALTER TABLE datasets ADD COLUMN place TEXT;
