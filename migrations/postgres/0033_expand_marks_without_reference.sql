-- Marks are entered by those who hold the row of their coverage, which is never deleted. A reference looks the row up once more for
-- each of thousands of marks, which takes a third of their time.
ALTER TABLE alike DROP CONSTRAINT alike_coverage_fkey;
