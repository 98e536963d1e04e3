-- Another index finds the marks of a coverage.
DROP INDEX alike_of_coverage;
