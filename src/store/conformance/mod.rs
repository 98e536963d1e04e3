//! What every store must do, as functions over any store; [`conformance`] stamps them as tests of one.

pub(crate) mod audit_entries;
pub(crate) mod carried_chains;
pub(crate) mod carried_people;
pub(crate) mod chains;
pub(crate) mod datasets;
pub(crate) mod keys;
pub(crate) mod ledger_readings;
pub(crate) mod life;
pub(crate) mod named_documents;
pub(crate) mod parts;
pub(crate) mod people;
pub(crate) mod pins;
pub(crate) mod portable;
pub(crate) mod pulse;
pub(crate) mod queue;
pub(crate) mod releases;
pub(crate) mod repeats;
pub(crate) mod series;
pub(crate) mod tenants;
pub(crate) mod turns;
pub(crate) mod void_coverages;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::identity::{Actor, Caller};
use crate::ports::{
    AuditAction, AuditEntry, BoundedContributions, ClaimTerms, ClaimedJob, CommitOutcome, DatasetRecord, EngineTable,
    JobRecord, LeaseToken, NewDisclosure, NewJob, NewRelease, PartChunkRecord, PartObjects, ReapProblems,
    ReleaseCommit, Store, StoreError,
};
use crate::problem::{Kind, Problem};
use crate::publication::{ContributionChoice, ReleaseStatus};
use crate::vault::Ciphertext;

/// A store under test.
#[async_trait]
pub(crate) trait Bench: Send + Sync {
    /// The store, empty at first.
    fn store(&self) -> Arc<dyn Store>;

    /// Gives the store a place for the payloads of chunks.
    fn keep_parts_in(&self, objects: Arc<dyn PartObjects>);

    /// How many rows a table has, for what the traits do not show.
    async fn count(&self, table: &'static str) -> i64;

    /// Whether the database itself refuses a statement.
    async fn refuses(&self, sql: &'static str) -> bool;
}

/// Whose the fixtures are.
pub(crate) const TENANT: &str = "default";
/// What a store takes for a wrapped key.
pub(crate) const WRAPPED: [u8; 73] = [42; 73];
pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const TERMS: ClaimTerms = ClaimTerms::from_lease(LEASE);

/// A fixed time, some seconds on.
pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_000_000 + seconds, 123_456_000).unwrap()
}

pub(crate) fn token() -> LeaseToken {
    LeaseToken::draw().unwrap()
}

pub(crate) fn dataset_record(id: Uuid, chunks: u32) -> DatasetRecord {
    DatasetRecord {
        id,
        tenant: TENANT.into(),
        name: Some("six".into()),
        series: "people".into(),
        same_people: Some(false),
        same_people_reason: Some("another town".into()),
        population: Some("people".into()),
        person: [("pid".into(), vec!["a".into()]), ("name".into(), vec!["b,c".into(), "d".into()])].into(),
        record_key: Some(vec!["a".into(), "b,c".into()]),
        subject: None,
        max_rows_per_subject: Some(3),
        contributions: Some(BoundedContributions {
            choice: ContributionChoice::First("day".into()),
            left_out_rows: 7,
            cut_persons: 2,
        }),
        uploaded_by: Some("key:1".into()),
        created_at: at(0),
        rows: 6,
        bytes: 60,
        format: "text/csv".into(),
        content_hash: [7; 32],
        chunks,
        profiles: Some(ciphertext(b"profiles")),
        wrapped_key: Some(WRAPPED.to_vec()),
        purged_at: None,
        place: Some(EngineTable { engine: "lake".into(), table: "db.visits".into() }),
    }
}

/// An act of an unnamed actor.
pub(crate) fn audit_entry() -> AuditEntry {
    by(TENANT, None, AuditAction::Plan, at(0))
}

/// Something that was done with a key.
pub(crate) fn by(tenant: &str, key: Option<Uuid>, action: AuditAction, at: DateTime<Utc>) -> AuditEntry {
    let actor = key.map_or(Actor::Unnamed, Actor::Key);
    let caller = Caller { tenant: tenant.to_owned(), actor, ..Caller::local() };
    AuditEntry::new(&caller, action, Uuid::now_v7(), at)
}

/// What a store takes for encrypted: it cannot look inside.
pub(crate) fn ciphertext(bytes: &[u8]) -> Ciphertext {
    Ciphertext::from_stored(bytes.to_vec())
}

/// An upload that has begun.
pub(crate) async fn begun(store: &dyn Store) -> Uuid {
    let id = Uuid::now_v7();
    store.begin_upload(id, &WRAPPED).await.unwrap();
    id
}

/// A dataset without chunks.
pub(crate) async fn dataset(store: &dyn Store) -> Uuid {
    let id = begun(store).await;
    store.insert_dataset(&dataset_record(id, 0), &audit_entry()).await.unwrap();
    id
}

pub(crate) fn new_job(dataset: Uuid, reuse: u8) -> NewJob {
    NewJob {
        id: Uuid::now_v7(),
        tenant: TENANT.into(),
        dataset,
        series: "people".into(),
        method: "versatile".into(),
        specification: json!({"method": {"type": "versatile"}, "note": [1, null, "é"]}),
        reuse_key: [reuse; 32],
        priority: 0,
        reason: None,
        policy: None,
        submitted_at: at(0),
        deadline_at: None,
        wrapped_key: vec![reuse; 73],
        audit_entry: audit_entry(),
    }
}

pub(crate) async fn enqueue(store: &dyn Store, reuse: u8) -> JobRecord {
    let dataset = dataset(store).await;
    store.enqueue(new_job(dataset, reuse)).await.unwrap()
}

pub(crate) async fn claim(store: &dyn Store, now: DateTime<Utc>) -> (ClaimedJob, LeaseToken) {
    let token = token();
    (store.claim(token, TERMS, now).await.unwrap().expect("a job waits"), token)
}

pub(crate) async fn job(store: &dyn Store, id: Uuid) -> JobRecord {
    store.job(TENANT, id).await.unwrap().expect("the job exists")
}

pub(crate) fn part_chunk(number: u32, first_row: u64, rows: u32) -> PartChunkRecord {
    PartChunkRecord {
        file: "t1.qi.csv".into(),
        number,
        first_row,
        rows,
        payload: vec![u8::try_from(number).unwrap(); 9],
    }
}

/// A commit of a claimed job, checked against a version of the ledger.
pub(crate) fn commit_of(job: &JobRecord, token: LeaseToken, ledger_version: i64, now: DateTime<Utc>) -> ReleaseCommit {
    ReleaseCommit {
        job: job.id,
        token,
        release: NewRelease {
            id: Uuid::now_v7(),
            job: job.id,
            attempt: job.attempt,
            tenant: job.tenant.clone(),
            series: job.series.clone(),
            dataset: job.dataset,
            content_hash: [7; 32],
            reuse_key: job.reuse_key,
            method: job.method.clone(),
            created_at: now,
            manifest: json!({"contract": 2}),
            report: json!({"utility": []}),
            status: ReleaseStatus::Published,
        },
        disclosures: vec![
            NewDisclosure { id: Uuid::now_v7(), table: "t1".into(), body: json!({"attributes": ["a", "b"]}) },
            NewDisclosure { id: Uuid::now_v7(), table: "t2".into(), body: json!({"attributes": ["c"]}) },
        ],
        rules: vec![json!({"pointer": "/method/rules/0"})],
        internal_report: Some(Ciphertext::from_stored(b"what the original says".to_vec())),
        ledger_version,
        series_versions: BTreeMap::new(),
        announcement: None,
        chain: None,
        now,
    }
}

/// Takes a job from the queue to a release.
pub(crate) async fn release(store: &dyn Store, reuse: u8) -> (JobRecord, Uuid) {
    let queued = enqueue(store, reuse).await;
    let (claimed, token) = claim(store, at(1)).await;
    assert_eq!(claimed.job.id, queued.id);
    let version = store.disclosures("default", "people", &[7; 32]).await.unwrap().version;
    let commit = commit_of(&claimed.job, token, version, at(2));
    let release = commit.release.id;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    (job(store, queued.id).await, release)
}

pub(crate) fn problems() -> ReapProblems {
    ReapProblems {
        exhausted: Problem::new(Kind::AttemptsExhausted, "exhausted"),
        deadline: Problem::new(Kind::Deadline, "too late"),
    }
}

pub(crate) fn is_problem(document: Option<&Value>, kind: Kind, job: Uuid) -> bool {
    document.is_some_and(|document| document["type"] == kind.uri() && document["instance"] == job.urn().to_string())
}

pub(crate) fn is_conflict<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Conflict))
}

/// Stamps the suite for a store: `$bench` is an expression that makes an empty one.
macro_rules! conformance {
    ($bench:expr; $($concern:ident: $($name:ident)*;)*) => {
        $(mod $concern {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                crate::store::conformance::$concern::$name(&$bench).await;
            })*
        })*
    };
    ($bench:expr) => {
        crate::store::conformance::conformance! { $bench;
            datasets:
                a_dataset_is_read_as_it_was_written
                an_upload_becomes_visible_whole_or_not_at_all
                a_discarded_upload_leaves_nothing
                a_purge_destroys_the_rows_and_keeps_the_record
                an_upload_has_a_key_before_it_has_chunks
                a_dataset_keeps_its_key_until_it_is_purged
                a_dataset_from_before_seals_is_sealed_whole
                datasets_are_listed_newest_first;
            keys:
                a_key_is_read_as_it_was_written
                a_first_key_is_the_first
                a_revoked_key_stays_revoked
                keys_are_listed_by_tenant
                the_audit_log_is_read_by_tenant
                the_audit_log_is_filtered
                the_audit_log_only_grows;
            audit_entries:
                what_was_done_is_logged_once
                what_was_not_done_is_not_logged
                what_cannot_be_logged_is_not_done;
            named_documents:
                a_document_is_read_as_it_was_written
                an_equal_content_makes_no_version
                documents_are_a_tenants_own_and_listed
                versions_of_a_policy_are_listed
                deleted_versions_of_a_taxonomy_do_not_come_again
                versions_written_at_once_are_all_there
                versions_do_not_change;
            life:
                a_held_release_is_approved_and_withdrawn
                rejection_lifts_unread_release
                of_two_acts_at_once_one_wins
                an_approval_is_by_another_where_the_tenant_asks_for_it
                the_first_read_of_a_held_release_is_logged;
            parts:
                chunks_in_objects_are_read_as_they_were_written
                chunks_from_before_are_read_without_objects
                objects_of_a_dropped_attempt_are_deleted
                one_object_that_stays_keeps_no_other
                a_write_that_is_completed_later_is_deleted
                parts_that_are_written_again_outlive_the_first
                an_object_that_comes_too_late_is_deleted
                objects_of_a_release_stay
                another_object_is_never_served
                an_object_that_cannot_be_written_is_no_chunk
                a_process_without_the_place_reads_no_object;
            series:
                series_change_is_seen_by_commits;
            people:
                a_population_is_read_as_it_was_defined
                coverages_stand_in_the_order_of_tickets
                one_coverage_stands_for_its_group
                a_mark_of_many_coverages_says_nothing
                rows_of_published_people_are_left_out
                evidence_of_a_dataset_goes_with_its_rows
                evidence_of_a_visible_dataset_is_added_once
                an_upload_that_was_given_up_leaves_no_evidence
                persons_are_found_by_key_system
                marks_are_read_as_they_were_written
                a_joined_announcement_goes_over_to_the_other
                statements_are_judged_like_coverages
                a_population_comes_with_its_statements
                tickets_drawn_at_once_see_all_lower_ones
                jobs_at_once_publish_no_person_twice;
            void_coverages:
                a_void_announcement_leaves_nothing
                one_sweep_empties_all_void_coverages
                announcements_of_a_vanished_job_are_void;
            ledger_readings:
                the_ledger_moves_with_persons_and_marks
                a_kept_reading_serves_while_it_holds
                announced_copies_do_not_hide_a_table
                marks_that_go_over_to_a_chain_are_never_missed
                an_announced_night_has_the_persons_of_its_chain
                published_places_are_read_without_documents
                an_attempt_ends_no_announcement_of_another
                kept_evidence_ends_with_the_dataset;
            carried_chains:
                a_chain_is_carried_whole_and_once
                a_chain_goes_on_in_one_store_alone
                a_begun_chain_is_not_carried;
            carried_people:
                persons_of_a_coverage_are_read_in_pieces
                marks_of_a_coverage_are_read_by_kind
                marks_of_a_former_coverage_are_rows
                a_series_becomes_a_population
                a_kept_coverage_is_listed_by_its_group_anew;
            chains:
                a_chain_begins_once
                a_state_becomes_current_with_its_release
                of_one_version_goes_on_one_release
                half_a_state_is_no_state
                a_held_release_leaves_its_state_pending
                an_ended_chain_does_not_go_on
                each_person_of_a_chain_is_covered_once
                a_rejected_first_release_is_no_lost_state
                a_job_goes_on_from_the_state_before;
            pins:
                a_pin_stays_what_it_was_first
                a_rotation_wraps_every_key_anew
                a_rotation_that_fails_changes_nothing;
            portable:
                a_ledger_is_carried_whole_and_once
                datasets_and_statements_are_carried
                import_outdates_releases_in_progress
                a_contradiction_imports_nothing
                a_carried_release_goes_on_in_its_life;
            pulse:
                the_backlog_counts_what_waits_and_runs;
            queue:
                a_job_is_read_as_it_was_written
                a_claim_is_exclusive
                priority_goes_before_age
                a_worker_without_the_lease_writes_nothing
                an_expired_lease_is_not_revived
                expired_leases_are_reaped_until_attempts_are_exhausted
                a_released_lease_does_not_count_against_the_job
                overdue_jobs_fail
                waiting_jobs_are_counted
                a_queued_job_is_cancelled_at_once
                a_running_job_learns_of_its_cancellation
                a_vanished_worker_does_not_undo_a_cancellation
                every_end_erases_the_key
                all_leases_can_be_expired
                jobs_are_listed_by_filter;
            releases:
                a_commit_makes_everything_visible_at_once
                latest_release_of_a_policy_is_found
                a_series_is_all_its_contents
                a_commit_needs_the_lease_and_the_attempt
                commit_against_old_ledger_is_refused
                one_standing_release_per_reuse_key
                a_twin_of_a_running_job_waits_and_gets_its_release
                a_job_like_a_released_one_succeeds_at_once
                part_chunks_are_found_by_number_and_row
                parts_are_written_by_the_running_attempt_alone
                the_parts_of_a_release_cannot_be_dropped
                a_sweep_removes_what_no_one_can_reach
                releases_are_listed_by_filter
                internal_report_ends_with_release_or_original;
            repeats:
                a_key_is_taken_once
                a_key_that_is_let_go_of_can_be_taken_again
                keys_expire;
            tenants:
                what_is_anothers_is_not_there
                a_job_needs_a_dataset_of_its_tenant
                settings_are_a_tenants_own;
            turns:
                tenants_take_turns
                a_priority_orders_a_tenants_own_jobs
                a_tenant_runs_no_more_than_its_share
                an_engine_runs_no_more_than_its_share
                a_job_whose_worker_vanished_waits;
        }
    };
}
pub(crate) use conformance;
