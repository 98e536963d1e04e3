-- Uploads are no longer compared when they come: what is published is compared by its coverage.
DROP TABLE dataset_people;
DROP TABLE people_pieces;
