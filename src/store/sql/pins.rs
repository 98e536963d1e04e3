//! What is fixed, and the keys that the master key wraps.

use super::chains::{CHAIN_KEYS_AFTER, SET_CHAIN_KEY};
use crate::vault::Purpose;

pub(crate) const PIN: &str = "\
-- pin
INSERT INTO pins (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";

pub(crate) const PINNED: &str = "\
-- pinned
SELECT value FROM pins WHERE name = $1";

pub(crate) const SET_PIN: &str = "\
-- set_pin
INSERT INTO pins (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value";

pub(crate) const DATASET_KEYS_AFTER: &str = "\
-- dataset_keys_after
SELECT dataset_id, wrapped_key FROM dataset_keys WHERE dataset_id > $1 ORDER BY dataset_id LIMIT $2";

pub(crate) const SET_DATASET_KEY: &str = "\
-- set_dataset_key
UPDATE dataset_keys SET wrapped_key = $2 WHERE dataset_id = $1";

pub(crate) const JOB_KEYS_AFTER: &str = "\
-- job_keys_after
SELECT job_id, wrapped_key FROM job_keys WHERE job_id > $1 ORDER BY job_id LIMIT $2";

pub(crate) const SET_JOB_KEY: &str = "\
-- set_job_key
UPDATE job_keys SET wrapped_key = $2 WHERE job_id = $1";

/// The keys of a purpose: what gives some of them in their order, and what sets one.
pub(crate) const KEYS: [(Purpose, &str, &str); 3] = [
    (Purpose::Dataset, DATASET_KEYS_AFTER, SET_DATASET_KEY),
    (Purpose::Chain, CHAIN_KEYS_AFTER, SET_CHAIN_KEY),
    (Purpose::Release, JOB_KEYS_AFTER, SET_JOB_KEY),
];

/// How many keys are read at a time.
pub(crate) const KEYS_AT_ONCE: i64 = 1000;
