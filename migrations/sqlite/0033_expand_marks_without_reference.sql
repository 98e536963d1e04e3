-- A reference costs Postgres a statement for each row; here it is a look at a page that is at hand.
SELECT 1;
