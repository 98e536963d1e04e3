-- The policy that a job named, without its version. Jobs from before have none.
ALTER TABLE job_details ADD COLUMN policy TEXT;

CREATE INDEX job_details_of_policy ON job_details (policy) WHERE policy IS NOT NULL;
