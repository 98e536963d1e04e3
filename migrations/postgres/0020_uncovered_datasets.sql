-- Datasets of which something is published, and whose rows no coverage has yet: releases from before coverages existed,
-- and those of another store.
CREATE TABLE uncovered_datasets (
    tenant     TEXT NOT NULL,
    dataset_id UUID NOT NULL,
    PRIMARY KEY (tenant, dataset_id)
);

INSERT INTO uncovered_datasets (tenant, dataset_id)
SELECT d.tenant, d.id FROM datasets AS d
WHERE EXISTS (SELECT 1 FROM disclosures AS own JOIN releases AS r ON r.id = own.release_id WHERE r.dataset_id = d.id)
   OR EXISTS (SELECT 1 FROM imported_disclosures AS other
              WHERE other.tenant = d.tenant AND other.series = d.series AND other.content_hash = d.content_hash);
