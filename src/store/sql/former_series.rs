//! Named series of earlier versions.

pub(crate) use super::people::{DESCRIBE_COVERAGE, VOID_LIVE};

pub(crate) const UNDECLARED_DATASETS: &str = "\
-- undeclared_datasets
SELECT tenant, series, id, record_key, subject, max_rows_per_subject, purged_at FROM datasets WHERE population IS NULL ORDER BY id";

pub(crate) const SET_POPULATION: &str = "\
-- set_population
UPDATE datasets SET population = $3, person = $4 WHERE tenant = $1 AND id = $2 AND population IS NULL";

pub(crate) const FORGET_EVIDENCE: &str = "\
-- forget_evidence
DELETE FROM dataset_evidence WHERE dataset_id = $1";

pub(crate) const FORGET_PERSONS: &str = "\
-- forget_persons
DELETE FROM dataset_persons WHERE dataset_id = $1";

pub(crate) const UNCOVER_DATASET: &str = "\
-- uncover_dataset
INSERT INTO uncovered_datasets (tenant, dataset_id) VALUES ($1, $2) ON CONFLICT (tenant, dataset_id) DO NOTHING";
