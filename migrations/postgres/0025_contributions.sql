-- What was left out of an upload that keeps a bounded number of rows of each person. Earlier datasets hold all rows.
ALTER TABLE datasets ADD COLUMN contributions JSON;
