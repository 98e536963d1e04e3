//! Chains and their states.

macro_rules! chain_columns {
    () => {
        "SELECT c.id, c.tenant, c.population, c.ended_at, k.wrapped_key\n\
         FROM chains AS c LEFT JOIN chain_keys AS k ON k.chain_id = c.id\n"
    };
}

pub(crate) const CHAIN: &str = concat!("-- chain\n", chain_columns!(), "WHERE c.tenant = $1 AND c.population = $2");

pub(crate) const ALL_CHAINS: &str =
    concat!("-- all_chains\n", chain_columns!(), "WHERE $1 IS NULL OR c.tenant = $1 ORDER BY c.id");

pub(crate) const CHAIN_STATES: &str = "\
-- chain_states
SELECT is_pending, version, job_id, attempt, piece_count, byte_count, release_id FROM chain_states WHERE chain_id = $1";

pub(crate) const INSERT_CHAIN: &str = "\
-- insert_chain
INSERT INTO chains (id, tenant, population, ended_at) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, population) DO NOTHING";

/// What goes with a chain of which nothing was released, in this order.
pub(crate) const FORGET_CHAIN: [&str; 3] = [
    "-- forget_chain_pieces
DELETE FROM chain_pieces WHERE chain_id IN (SELECT id FROM chains WHERE tenant = $1 AND population = $2)",
    "-- forget_chain_key
DELETE FROM chain_keys WHERE chain_id IN (SELECT id FROM chains WHERE tenant = $1 AND population = $2)",
    "-- forget_chain
DELETE FROM chains WHERE tenant = $1 AND population = $2",
];

pub(crate) const INSERT_CHAIN_KEY: &str = "\
-- insert_chain_key
INSERT INTO chain_keys (chain_id, wrapped_key) VALUES ($1, $2)";

pub(crate) const DELETE_CHAIN_KEY: &str = "\
-- delete_chain_key
DELETE FROM chain_keys WHERE chain_id = $1";

/// Whether a chain has its key. One that has ended has none.
pub(crate) const HAS_CHAIN_KEY: &str = "\
-- has_chain_key
SELECT EXISTS (SELECT 1 FROM chain_keys WHERE chain_id = $1)";

pub(crate) const SET_CHAIN_ENDED: &str = "\
-- set_chain_ended
UPDATE chains SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL";

pub(crate) const PUT_CHAIN_PIECE: &str = "\
-- put_chain_piece
INSERT INTO chain_pieces (chain_id, job_id, attempt, piece_no, payload)
SELECT $1, id, attempt, $4, $5 FROM jobs WHERE id = $2 AND attempt = $3 AND status = 'running'
AND EXISTS (SELECT 1 FROM chain_keys WHERE chain_id = $1)";

pub(crate) const IMPORT_CHAIN_PIECE: &str = "\
-- import_chain_piece
INSERT INTO chain_pieces (chain_id, job_id, attempt, piece_no, payload) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const CHAIN_PIECE: &str = "\
-- chain_piece
SELECT payload FROM chain_pieces WHERE chain_id = $1 AND job_id = $2 AND attempt = $3 AND piece_no = $4";

/// The pieces of a state that is whole: none where a number is missing or bytes are.
pub(crate) const IS_WHOLE_STATE: &str = "\
-- is_whole_state
SELECT COUNT(*) = $4 AND COALESCE(SUM(LENGTH(payload)), 0) = $5 AND COALESCE(MAX(piece_no), -1) = $4 - 1
FROM chain_pieces WHERE chain_id = $1 AND job_id = $2 AND attempt = $3";

pub(crate) const INSERT_CHAIN_STATE: &str = "\
-- insert_chain_state
INSERT INTO chain_states (chain_id, is_pending, version, job_id, attempt, piece_count, byte_count, release_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

pub(crate) const DELETE_CHAIN_STATE: &str = "\
-- delete_chain_state
DELETE FROM chain_states WHERE chain_id = $1 AND is_pending = $2";

pub(crate) const DELETE_CHAIN_STATES: &str = "\
-- delete_chain_states
DELETE FROM chain_states WHERE chain_id = $1";

pub(crate) const PENDING_STATE_OF_RELEASE: &str = "\
-- pending_state_of_release
SELECT chain_id FROM chain_states WHERE release_id = $1 AND is_pending";

pub(crate) const SETTLE_CHAIN_STATE: &str = "\
-- settle_chain_state
UPDATE chain_states SET is_pending = FALSE WHERE chain_id = $1 AND is_pending";

/// Attempts whose states no chain has, and that do not run.
pub(crate) const UNREACHABLE_CHAIN_STATES: &str = "\
-- unreachable_chain_states
SELECT DISTINCT p.job_id, p.attempt FROM chain_pieces AS p
WHERE NOT EXISTS (SELECT 1 FROM chain_states AS s
                  WHERE s.chain_id = p.chain_id AND s.job_id = p.job_id AND s.attempt = p.attempt)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.id = p.job_id AND j.attempt = p.attempt AND j.status = 'running')";

pub(crate) const DELETE_SOME_CHAIN_PIECES: &str = "\
-- delete_some_chain_pieces
DELETE FROM chain_pieces
WHERE (chain_id, job_id, attempt, piece_no) IN
    (SELECT chain_id, job_id, attempt, piece_no FROM chain_pieces AS p WHERE job_id = $1 AND attempt = $2
     AND NOT EXISTS (SELECT 1 FROM chain_states AS s
                     WHERE s.chain_id = p.chain_id AND s.job_id = p.job_id AND s.attempt = p.attempt) LIMIT $3)";

/// The live coverage that a job announced, if it can be of a chain.
pub(crate) const CHAIN_COVERAGE_OF_JOB: &str = "\
-- chain_coverage_of_job
SELECT id, job, state, ticket, body, published FROM coverages
WHERE tenant = $1 AND state = 'live' AND people_group IS NULL AND job = $2";

/// The live coverages that can be of chains.
pub(crate) const CHAIN_COVERAGES: &str = "\
-- chain_coverages
SELECT id, job, state, ticket, body, published FROM coverages
WHERE tenant = $1 AND state = 'live' AND people_group IS NULL ORDER BY ticket, id";

pub(crate) const MOVE_INDEXED_MARKS: &str = "\
-- move_indexed_marks
UPDATE indexed_marks SET coverage = $2 WHERE coverage = $1";

pub(crate) const MOVE_SIGNATURES: &str = "\
-- move_signatures
UPDATE coverage_signatures SET coverage = $2 WHERE coverage = $1";

pub(crate) const TAKE_CUTS: &str = "\
-- take_cuts
UPDATE coverages SET cuts = (SELECT o.cuts FROM coverages AS o WHERE o.id = $1) WHERE id = $2";

pub(crate) const CHAIN_KEYS_AFTER: &str = "\
-- chain_keys_after
SELECT chain_id, wrapped_key FROM chain_keys WHERE chain_id > $1 ORDER BY chain_id LIMIT $2";

pub(crate) const SET_CHAIN_KEY: &str = "\
-- set_chain_key
UPDATE chain_keys SET wrapped_key = $2 WHERE chain_id = $1";
