-- An index of the marks of a coverage has their whole keys here, in whatever order.
SELECT 1;
