//! Populations, statements about them, and coverages.

pub(crate) const KEY_SYSTEMS: &str = "\
-- key_systems
SELECT name, body FROM key_systems WHERE tenant = $1";

pub(crate) const POPULATIONS: &str = "\
-- populations
SELECT name, body FROM populations WHERE tenant = $1";

pub(crate) const INSERT_KEY_SYSTEM: &str = "\
-- insert_key_system
INSERT INTO key_systems (tenant, name, body) VALUES ($1, $2, $3) ON CONFLICT (tenant, name) DO NOTHING";

pub(crate) const PUT_POPULATION: &str = "\
-- put_population
INSERT INTO populations (tenant, name, body) VALUES ($1, $2, $3)
ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body";

pub(crate) const SEPARATIONS: &str = "\
-- separations
SELECT body, recorded_at FROM separations WHERE tenant = $1 ORDER BY id";

pub(crate) const INSERT_SEPARATION: &str = "\
-- insert_separation
INSERT INTO separations (id, tenant, body, recorded_at) VALUES ($1, $2, $3, $4)";

/// Holds the row: who draws next waits until this one is committed, so that commits and tickets have one order.
pub(crate) const NEXT_TICKET: &str = "\
-- next_ticket
INSERT INTO ticket_counters (tenant, ticket) VALUES ($1, 1)
ON CONFLICT (tenant) DO UPDATE SET ticket = ticket_counters.ticket + 1 RETURNING ticket";

/// The last row that a transaction holds, but for a chain.
pub(crate) const PEOPLE_CHANGED: &str = "\
-- people_changed
INSERT INTO people_changes (tenant, changes) VALUES ($1, 1)
ON CONFLICT (tenant) DO UPDATE SET changes = people_changes.changes + 1";

pub(crate) const LEDGER_MOMENT: &str = "\
-- ledger_moment
SELECT COALESCE((SELECT ticket FROM ticket_counters WHERE tenant = $1), 0),
  COALESCE((SELECT changes FROM people_changes WHERE tenant = $1), 0)";

/// Of rows whose key is there, until their evidence is. Who computes it again after an interruption writes the same.
pub(crate) const PUT_PERSON_PIECE: &str = "\
-- put_person_piece
INSERT INTO dataset_persons (dataset_id, system, piece_no, hashes)
SELECT $1, $2, $3, $4
WHERE EXISTS (SELECT 1 FROM dataset_keys WHERE dataset_id = $1)
AND NOT EXISTS (SELECT 1 FROM dataset_evidence WHERE dataset_id = $1)
ON CONFLICT (dataset_id, system, piece_no) DO UPDATE SET hashes = excluded.hashes";

pub(crate) const PUT_EVIDENCE: &str = "\
-- put_evidence
INSERT INTO dataset_evidence (dataset_id, body)
SELECT $1, $2 WHERE EXISTS (SELECT 1 FROM dataset_keys WHERE dataset_id = $1)
ON CONFLICT (dataset_id) DO NOTHING";

pub(crate) const DATASETS_WITHOUT_EVIDENCE: &str = "\
-- datasets_without_evidence
SELECT tenant, id FROM datasets AS d
WHERE d.purged_at IS NULL AND NOT EXISTS (SELECT 1 FROM dataset_evidence AS e WHERE e.dataset_id = d.id) ORDER BY id";

pub(crate) const EVIDENCE: &str = "\
-- evidence
SELECT e.body FROM dataset_evidence AS e JOIN datasets AS d ON d.id = e.dataset_id
WHERE d.tenant = $1 AND d.id = $2 AND d.purged_at IS NULL";

pub(crate) const PERSON_PIECE: &str = "\
-- person_piece
SELECT p.hashes FROM dataset_persons AS p JOIN datasets AS d ON d.id = p.dataset_id
WHERE d.tenant = $1 AND d.id = $2 AND d.purged_at IS NULL AND p.system = $3 AND p.piece_no = $4";

/// Coverages keep what was published of it. That of a visible dataset stays: an upload whose answer was lost is given up
/// although it is there.
pub(crate) const DELETE_EVIDENCE: &str = "\
-- delete_evidence
DELETE FROM dataset_evidence WHERE dataset_id = $1
  AND NOT EXISTS (SELECT 1 FROM datasets WHERE id = $1 AND purged_at IS NULL)";

pub(crate) const DELETE_PERSON_PIECES: &str = "\
-- delete_person_pieces
DELETE FROM dataset_persons WHERE dataset_id = $1
  AND NOT EXISTS (SELECT 1 FROM datasets WHERE id = $1 AND purged_at IS NULL)";

pub(crate) const INSERT_COVERAGE: &str = "\
-- insert_coverage
INSERT INTO coverages (tenant, job, state, body, published, cuts) VALUES ($1, $2, 'pending', $3, $4, $5) RETURNING id";

pub(crate) const COVERAGE: &str = "\
-- coverage
SELECT id, job, state, ticket, body, published FROM coverages WHERE tenant = $1 AND id = $2";

pub(crate) const COVERAGE_CUTS: &str = "\
-- coverage_cuts
SELECT cuts FROM coverages WHERE tenant = $1 AND id = $2";

pub(crate) const SAMPLES: &str = "\
-- samples
SELECT s.sample, s.signatures FROM coverage_signatures AS s JOIN coverages AS v ON v.id = s.coverage
WHERE v.tenant = $1 AND s.coverage = $2 ORDER BY s.sample";

pub(crate) const SET_TICKET: &str = "\
-- set_ticket
UPDATE coverages SET ticket = $3 WHERE tenant = $1 AND id = $2 AND state = 'pending' AND ticket IS NULL";

pub(crate) const STANDING_COVERAGES: &str = "\
-- standing_coverages
SELECT id, job, state, ticket, body, published FROM coverages
WHERE tenant = $1 AND (state = 'live' OR state = 'pending' AND ticket < $2) ORDER BY ticket, id";

/// The same without documents, of those that have a group.
pub(crate) const GROUPED_COVERAGES: &str = "\
-- grouped_coverages
SELECT id, state, people_group FROM coverages
WHERE tenant = $1 AND people_group IS NOT NULL AND (state = 'live' OR state = 'pending' AND ticket < $2)
ORDER BY ticket, id";

/// The same of those that have none.
pub(crate) const UNGROUPED_COVERAGES: &str = "\
-- ungrouped_coverages
SELECT id, job, state, ticket, body, published FROM coverages
WHERE tenant = $1 AND people_group IS NULL AND (state = 'live' OR state = 'pending' AND ticket < $2)
ORDER BY ticket, id";

pub(crate) const LIVE_GROUPS: &str = "\
-- live_groups
SELECT DISTINCT people_group FROM coverages WHERE tenant = $1 AND state = 'live' AND people_group IS NOT NULL";

pub(crate) const LISTED_OF_DATASET: &str = "\
-- listed_of_dataset
SELECT coverage FROM coverage_datasets WHERE dataset_id = $1";

/// Coverages whose datasets are not listed are looked into.
pub(crate) const COVERAGES_OF_DATASET: &str = "\
-- coverages_of_dataset
SELECT id, job, state, ticket, body, published FROM coverages WHERE tenant = $1 AND state = 'live' AND id IN (
  SELECT id FROM coverages WHERE tenant = $1 AND state = 'live' AND people_group IS NULL
  UNION SELECT coverage FROM coverage_datasets WHERE dataset_id = $2) ORDER BY ticket, id";

pub(crate) const SET_GROUP: &str = "\
-- set_group
UPDATE coverages SET people_group = $2 WHERE id = $1";

pub(crate) const LIST_TABLE: &str = "\
-- list_table
INSERT INTO coverage_tables (mark, coverage) VALUES ($1, $2) ON CONFLICT (mark, coverage) DO NOTHING";

pub(crate) const LIST_DATASET: &str = "\
-- list_dataset
INSERT INTO coverage_datasets (dataset_id, coverage) VALUES ($1, $2) ON CONFLICT (dataset_id, coverage) DO NOTHING";

pub(crate) const SYSTEM_NUMBER: &str = "\
-- system_number
SELECT id FROM key_systems WHERE tenant = $1 AND name = $2";

pub(crate) const MOVE_PERSONS: &str = "\
-- move_persons
INSERT INTO covered (system, hash, coverage) SELECT system, hash, $2 FROM covered WHERE coverage = $1 AND system = $3
ON CONFLICT (system, hash, coverage) DO NOTHING";

pub(crate) const SET_STATE: &str = "\
-- set_state
UPDATE coverages SET state = $3 WHERE tenant = $1 AND id = $2 AND state = 'pending'";

pub(crate) const UNCOVERED_DATASETS: &str = "\
-- uncovered_datasets
SELECT dataset_id FROM uncovered_datasets WHERE tenant = $1 ORDER BY dataset_id LIMIT 100";

pub(crate) const COVERED_DATASET: &str = "\
-- covered_dataset
DELETE FROM uncovered_datasets WHERE tenant = $1 AND dataset_id = $2";

pub(crate) const HAS_CONTENT: &str = "\
-- has_content
SELECT EXISTS (SELECT 1 FROM datasets WHERE tenant = $1 AND series = $2 AND content_hash = $3)";

pub(crate) const UNCOVER_CONTENT: &str = "\
-- uncover_content
INSERT INTO uncovered_datasets (tenant, dataset_id)
SELECT tenant, id FROM datasets WHERE tenant = $1 AND series = $2 AND content_hash = $3
ON CONFLICT (tenant, dataset_id) DO NOTHING";

pub(crate) const IS_DISCLOSED: &str = "\
-- is_disclosed
SELECT EXISTS (SELECT 1 FROM disclosures AS d JOIN releases AS r ON r.id = d.release_id
WHERE r.tenant = $1 AND r.dataset_id = $2)";

pub(crate) const VOID_LIVE: &str = "\
-- void_live
UPDATE coverages SET state = 'void' WHERE tenant = $1 AND id = $2 AND state = 'live'";

pub(crate) const VOID_ANNOUNCEMENTS: &str = "\
-- void_announcements
UPDATE coverages SET state = 'void' WHERE tenant = $1 AND job = $2 AND state = 'pending'
  AND CASE WHEN $3 IS NULL THEN NOT EXISTS (SELECT 1 FROM jobs WHERE id = $2 AND status = 'running')
           ELSE EXISTS (SELECT 1 FROM jobs WHERE id = $2 AND status = 'running' AND lease_token = $3) END";

pub(crate) const DESCRIBE_COVERAGE: &str = "\
-- describe_coverage
UPDATE coverages SET body = $3, published = $4 WHERE tenant = $1 AND id = $2 AND state = 'live'";

/// Announcements of jobs that do not run: their worker vanished, or they ended otherwise.
pub(crate) const VOID_LOST: &str = "\
-- void_lost
UPDATE coverages SET state = 'void' WHERE state = 'pending'
  AND NOT EXISTS (SELECT 1 FROM jobs WHERE id = coverages.job AND status = 'running') RETURNING tenant";

pub(crate) const VOID_COVERAGES: &str = "\
-- void_coverages
SELECT id FROM coverages WHERE state = 'void' AND (EXISTS (SELECT 1 FROM covered WHERE coverage = coverages.id)
OR EXISTS (SELECT 1 FROM indexed_marks WHERE coverage = coverages.id)
OR EXISTS (SELECT 1 FROM coverage_signatures WHERE coverage = coverages.id)) ORDER BY id LIMIT 16";

pub(crate) const DELETE_INDEXED_MARKS: &str = "\
-- delete_indexed_marks
DELETE FROM indexed_marks WHERE coverage = $1";

pub(crate) const DELETE_SIGNATURES: &str = "\
-- delete_signatures
DELETE FROM coverage_signatures WHERE coverage = $1";
