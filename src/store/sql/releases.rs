//! Releases.

macro_rules! release_columns {
    () => {
        "r.id, r.job_id, r.attempt, r.tenant, r.series, r.dataset_id, r.content_hash, r.reuse_key, r.method, r.created_at, \
         r.status, d.manifest, d.report FROM releases AS r JOIN release_documents AS d ON d.release_id = r.id"
    };
}

pub(crate) const LEASE_OF_ATTEMPT: &str = "\
-- lease_of_attempt
SELECT attempt FROM jobs
WHERE id = $1 AND lease_token = $2 AND status = 'running' AND lease_expires_at > $3 AND attempt = $4";

pub(crate) const INSERT_RELEASE: &str = "\
-- insert_release
INSERT INTO releases (id, job_id, attempt, tenant, series, dataset_id, content_hash, reuse_key, method, created_at, status)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

pub(crate) const INSERT_RELEASE_DOCUMENTS: &str = "\
-- insert_release_documents
INSERT INTO release_documents (release_id, manifest, report) VALUES ($1, $2, $3)";

pub(crate) const RELEASE_EXISTS: &str = "\
-- release_exists
SELECT id FROM releases WHERE id = $1";

pub(crate) const RELEASE: &str =
    concat!("-- release\nSELECT ", release_columns!(), " WHERE r.id = $1 AND r.tenant = $2");

pub(crate) const RELEASES: &str = "\
-- releases
SELECT id, series, dataset_id, method, created_at, status FROM releases
WHERE tenant = $7 AND id < $1 AND ($2 IS NULL OR series = $2) AND ($3 IS NULL OR dataset_id = $3)
    AND ($4 IS NULL OR method = $4) AND ($5 IS NULL OR status = $5)
ORDER BY id DESC LIMIT $6";

pub(crate) const RELEASE_OF_POLICY: &str = "\
-- release_of_policy
SELECT r.id FROM job_details AS d JOIN jobs AS j ON j.id = d.job_id JOIN releases AS r ON r.id = j.release_id
WHERE d.policy = $3 AND j.tenant = $1 AND r.tenant = $1 AND r.series = $2 AND r.status = 'published'
ORDER BY r.created_at DESC, r.id DESC LIMIT 1";

pub(crate) const INSERT_INTERNAL_REPORT: &str = "\
-- insert_internal_report
INSERT INTO internal_reports (release_id, report) VALUES ($1, $2)";

pub(crate) const INTERNAL_REPORT: &str = "\
-- internal_report
SELECT i.report FROM internal_reports AS i JOIN releases AS r ON r.id = i.release_id WHERE r.id = $1 AND r.tenant = $2";

pub(crate) const DELETE_INTERNAL_REPORT: &str = "\
-- delete_internal_report
DELETE FROM internal_reports WHERE release_id = $1";

pub(crate) const DELETE_INTERNAL_REPORTS_OF_DATASET: &str = "\
-- delete_internal_reports_of_dataset
DELETE FROM internal_reports WHERE release_id IN (SELECT id FROM releases WHERE dataset_id = $1)";
