//! Releases, their parts and the ledger.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::{
    Bench, TENANT, TERMS, at, audit_entry, begun, ciphertext, claim, commit_of, dataset, dataset_record, enqueue,
    is_conflict, job, new_job, part_chunk, release, token,
};
use crate::ports::{
    CommitOutcome, DisclosureRecord, JobEnd, JobStatus, LedgerSnapshot, NewJob, ReleaseAction, ReleaseFilter,
    SeriesEntry, SeriesRecord, SweepCounts, Transition, TransitionOutcome, WriteOutcome,
};

pub(crate) async fn a_commit_makes_everything_visible_at_once(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    let (claimed, token) = claim(&*store, at(1)).await;
    assert_eq!(store.disclosures("default", "people", &[7; 32]).await.unwrap(), LedgerSnapshot::default());
    let commit = commit_of(&claimed.job, token, 0, at(2));
    assert_eq!(store.commit(commit.clone()).await.unwrap(), CommitOutcome::Committed);
    assert_eq!(store.release(TENANT, commit.release.id).await.unwrap().unwrap(), commit.release);
    let done = job(&*store, id).await;
    assert_eq!((done.status, done.release, done.reused), (JobStatus::Succeeded, Some(commit.release.id), false));
    assert_eq!(done.finished_at, Some(at(2)));
    let ledger = store.disclosures("default", "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (1, 2, 1));
    assert_eq!((ledger.entries[1].table.as_str(), ledger.entries[1].recorded_at), ("t2", at(2)));
    assert_eq!(ledger.entries[0].body, json!({"attributes": ["a", "b"]}));
    assert_eq!((ledger.rules[0].release, &ledger.rules[0].body), (commit.release.id, &commit.rules[0]));
    for (tenant, series, hash) in [("x", "people", [7; 32]), ("default", "x", [7; 32]), ("default", "people", [8; 32])]
    {
        assert_eq!(store.disclosures(tenant, series, &hash).await.unwrap(), LedgerSnapshot::default());
    }
}

pub(crate) async fn latest_release_of_a_policy_is_found(bench: &impl Bench) {
    let store = bench.store();
    let found =
        async |tenant: &str, series: &str, policy: &str| store.release_of_policy(tenant, series, policy).await.unwrap();
    assert_eq!(found(TENANT, "people", "nightly").await, None);
    let mut releases = Vec::new();
    for (reuse, policy) in [(1, Some("nightly")), (2, Some("nightly")), (3, Some("other")), (4, None)] {
        let job = NewJob { policy: policy.map(str::to_owned), ..new_job(dataset(&*store).await, reuse) };
        store.enqueue(job.clone()).await.unwrap();
        let (claimed, token) = claim(&*store, at(10 * i64::from(reuse))).await;
        let version = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
        let commit = commit_of(&claimed.job, token, version, at(10 * i64::from(reuse) + 1));
        let release = commit.release.id;
        assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
        releases.push((job, release));
    }
    assert_eq!(found(TENANT, "people", "nightly").await, Some(releases[1].1));
    assert_eq!(found(TENANT, "people", "other").await, Some(releases[2].1));
    assert_eq!((found("x", "people", "nightly").await, found(TENANT, "x", "nightly").await), (None, None));
    // a job of the policy that an earlier release answers gave that release
    let reusing = NewJob {
        id: Uuid::now_v7(),
        policy: Some("reusing".into()),
        audit_entry: audit_entry(),
        ..releases[0].0.clone()
    };
    store.enqueue(reusing).await.unwrap();
    assert_eq!(found(TENANT, "people", "reusing").await, Some(releases[0].1));
    // what has ended is not named
    let (release, act) = (releases[1].1, ReleaseAction::Withdraw);
    let withdrawal = Transition { release, act, reason: "why".into(), audit_entry: audit_entry() };
    assert_eq!(store.transition(&withdrawal).await.unwrap(), TransitionOutcome::Done);
    assert_eq!(found(TENANT, "people", "nightly").await, Some(releases[0].1));
}

pub(crate) async fn a_series_is_all_its_contents(bench: &impl Bench) {
    let store = bench.store();
    assert_eq!(store.series(TENANT, "people").await.unwrap(), SeriesRecord::default());
    let id = enqueue(&*store, 1).await.id;
    let (claimed, token) = claim(&*store, at(1)).await;
    let commit = commit_of(&claimed.job, token, 0, at(2));
    assert_eq!(store.commit(commit.clone()).await.unwrap(), CommitOutcome::Committed);
    let series = store.series(TENANT, "people").await.unwrap();
    let job = job(&*store, id).await;
    assert_eq!(series.datasets.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [job.dataset]);
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    let entry = |entry: &DisclosureRecord| SeriesEntry {
        content_hash: [7; 32],
        status: commit.release.status,
        entry: entry.clone(),
    };
    assert_eq!(series.entries, ledger.entries.iter().map(entry).collect::<Vec<_>>());
    assert_eq!(series.rules, ledger.rules.iter().map(|rule| ([7; 32], rule.clone())).collect::<Vec<_>>());
    for (tenant, name) in [("x", "people"), (TENANT, "x")] {
        assert_eq!(store.series(tenant, name).await.unwrap(), SeriesRecord::default());
    }
    // a content is found with its first dataset
    let second = dataset(&*store).await;
    let between = async |from, to| store.series_between(TENANT, "people", from, to).await.unwrap();
    let all = store.series(TENANT, "people").await.unwrap();
    assert!(!all.entries.is_empty() && !all.rules.is_empty());
    assert_eq!(between(Uuid::nil(), Uuid::max()).await, all);
    assert_eq!(between(job.dataset, job.dataset).await, all);
    let none = SeriesRecord { entries: Vec::new(), rules: Vec::new(), ..all };
    assert_eq!(between(second, Uuid::max()).await, none, "equal datasets");
    assert_eq!(store.series_between("x", "people", Uuid::nil(), Uuid::max()).await.unwrap(), SeriesRecord::default());
}

pub(crate) async fn a_commit_needs_the_lease_and_the_attempt(bench: &impl Bench) {
    let store = bench.store();
    enqueue(&*store, 1).await;
    let (claimed, held) = claim(&*store, at(1)).await;
    let good = commit_of(&claimed.job, held, 0, at(2));
    let mut wrong_token = good.clone();
    wrong_token.token = token();
    let mut expired = good.clone();
    expired.now = at(1 + 30);
    let mut wrong_attempt = good.clone();
    wrong_attempt.release.attempt += 1;
    let mut wrong_job = good.clone();
    wrong_job.release.job = Uuid::now_v7();
    for commit in [wrong_token, expired, wrong_attempt, wrong_job] {
        assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::LeaseLost);
    }
    for table in ["releases", "release_documents", "disclosures", "standing_rules", "ledgers"] {
        assert_eq!(bench.count(table).await, 0, "{table}");
    }
    assert_eq!(store.commit(good.clone()).await.unwrap(), CommitOutcome::Committed);
    assert_eq!(store.commit(good).await.unwrap(), CommitOutcome::LeaseLost, "once");
}

pub(crate) async fn commit_against_old_ledger_is_refused(bench: &impl Bench) {
    let store = bench.store();
    enqueue(&*store, 1).await;
    enqueue(&*store, 2).await;
    let (first, first_token) = claim(&*store, at(1)).await;
    let (second, second_token) = claim(&*store, at(1)).await;
    let committed = store.commit(commit_of(&first.job, first_token, 0, at(2))).await.unwrap();
    assert_eq!(committed, CommitOutcome::Committed);
    let mut commit = commit_of(&second.job, second_token, 0, at(3));
    assert_eq!(store.commit(commit.clone()).await.unwrap(), CommitOutcome::LedgerMoved);
    assert_eq!((bench.count("releases").await, bench.count("disclosures").await), (1, 2));
    assert_eq!(job(&*store, second.job.id).await.status, JobStatus::Running, "to be checked again");
    commit.ledger_version = store.disclosures("default", "people", &[7; 32]).await.unwrap().version;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    assert_eq!(store.disclosures("default", "people", &[7; 32]).await.unwrap().version, 2);
}

pub(crate) async fn one_standing_release_per_reuse_key(bench: &impl Bench) {
    let store = bench.store();
    let (_, protection) = release(&*store, 1).await;
    // a job whose key became that of a release while it ran
    enqueue(&*store, 2).await;
    let (claimed, token) = claim(&*store, at(3)).await;
    let mut commit = commit_of(&claimed.job, token, 1, at(4));
    commit.release.reuse_key = [1; 32];
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::AlreadyReleased(protection));
    assert_eq!(store.succeed_with_reused(claimed.job.id, token, protection, at(5)).await.unwrap(), WriteOutcome::Done);
    assert_eq!(bench.count("releases").await, 1);
}

pub(crate) async fn a_twin_of_a_running_job_waits_and_gets_its_release(bench: &impl Bench) {
    let store = bench.store();
    let dataset = dataset(&*store).await;
    store.enqueue(new_job(dataset, 1)).await.unwrap();
    let (first, first_token) = claim(&*store, at(1)).await;
    let twin = store.enqueue(new_job(dataset, 1)).await.unwrap();
    let other = store.enqueue(new_job(dataset, 2)).await.unwrap();
    assert_eq!(claim(&*store, at(2)).await.0.job.id, other.id, "the twin is passed over");
    assert!(store.claim(token(), TERMS, at(2)).await.unwrap().is_none());
    // the first ends without a release: the twin's turn
    let end = JobEnd::Failed(json!({}));
    assert_eq!(store.finish(first.job.id, first_token, end, at(3)).await.unwrap(), WriteOutcome::Done);
    let (second, second_token) = claim(&*store, at(4)).await;
    assert_eq!(second.job.id, twin.id);
    // the second ends with a release, which a third that waits gets too
    let third = store.enqueue(new_job(dataset, 1)).await.unwrap();
    let commit = commit_of(&second.job, second_token, 0, at(5));
    let released = commit.release.id;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    let third = job(&*store, third.id).await;
    assert_eq!((third.status, third.release, third.reused), (JobStatus::Succeeded, Some(released), true));
    assert_eq!(third.finished_at, Some(at(5)));
    assert_eq!(bench.count("job_keys").await, 1, "of the other job alone");
}

pub(crate) async fn a_job_like_a_released_one_succeeds_at_once(bench: &impl Bench) {
    let store = bench.store();
    let (_, released) = release(&*store, 1).await;
    let reusing = enqueue(&*store, 1).await;
    assert_eq!((reusing.status, reusing.release, reusing.reused), (JobStatus::Succeeded, Some(released), true));
    assert_eq!((reusing.finished_at, reusing.attempt), (Some(reusing.submitted_at), 0));
    assert_eq!(bench.count("job_keys").await, 0);
    assert!(store.claim(token(), TERMS, at(9)).await.unwrap().is_none());
    let mut foreign = dataset_record(begun(&*store).await, 0);
    foreign.tenant = "other".into();
    store.insert_dataset(&foreign, &audit_entry()).await.unwrap();
    let mut unknown_value = new_job(foreign.id, 1);
    unknown_value.tenant = foreign.tenant;
    assert_eq!(store.enqueue(unknown_value).await.unwrap().status, JobStatus::Queued);
}

pub(crate) async fn part_chunks_are_found_by_number_and_row(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    claim(&*store, at(1)).await;
    let chunks = [part_chunk(0, 0, 4), part_chunk(1, 4, 4), part_chunk(2, 8, 1)];
    for chunk in &chunks {
        store.put_part_chunk(id, 1, chunk).await.unwrap();
    }
    assert!(is_conflict(&store.put_part_chunk(id, 1, &chunks[0]).await));
    let file = "t1.qi.csv";
    assert_eq!(store.part_chunk(TENANT, id, 1, file, 1).await.unwrap().as_ref(), Some(&chunks[1]));
    assert_eq!(store.part_chunk(TENANT, id, 1, file, 3).await.unwrap(), None);
    assert_eq!(store.part_chunk(TENANT, id, 1, "t1.sa.csv", 0).await.unwrap(), None);
    for (row, number) in [(0, Some(0)), (3, Some(0)), (4, Some(1)), (7, Some(1)), (8, Some(2)), (9, None)] {
        let found = store.part_chunk_at_row(TENANT, id, 1, file, row).await.unwrap();
        assert_eq!(found.map(|chunk| chunk.number), number, "row {row}");
    }
}

pub(crate) async fn parts_are_written_by_the_running_attempt_alone(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    assert!(is_conflict(&store.put_part_chunk(id, 0, &part_chunk(0, 0, 1)).await), "not running");
    let (_, token) = claim(&*store, at(1)).await;
    store.put_part_chunk(id, 1, &part_chunk(0, 0, 1)).await.unwrap();
    assert_eq!(store.release_lease(id, token, at(2)).await.unwrap(), WriteOutcome::Done);
    assert!(is_conflict(&store.put_part_chunk(id, 1, &part_chunk(1, 1, 1)).await), "put back");
    claim(&*store, at(3)).await;
    assert!(is_conflict(&store.put_part_chunk(id, 1, &part_chunk(1, 1, 1)).await), "an earlier attempt");
    store.put_part_chunk(id, 2, &part_chunk(0, 0, 1)).await.unwrap();
    store.drop_attempt(id, 1).await.unwrap();
    assert_eq!(bench.count("part_chunks").await, 1);
}

pub(crate) async fn the_parts_of_a_release_cannot_be_dropped(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    let (claimed, token) = claim(&*store, at(1)).await;
    store.put_part_chunk(id, 1, &part_chunk(0, 0, 1)).await.unwrap();
    assert_eq!(store.commit(commit_of(&claimed.job, token, 0, at(2))).await.unwrap(), CommitOutcome::Committed);
    store.drop_attempt(id, 1).await.unwrap();
    assert_eq!(bench.count("part_chunks").await, 1);
    assert!(is_conflict(&store.put_part_chunk(id, 1, &part_chunk(1, 1, 1)).await), "nor added to");
}

pub(crate) async fn a_sweep_removes_what_no_one_can_reach(bench: &impl Bench) {
    let store = bench.store();
    let released = enqueue(&*store, 1).await.id;
    let (claimed, released_token) = claim(&*store, at(1)).await;
    store.put_part_chunk(released, 1, &part_chunk(0, 0, 1)).await.unwrap();
    let committed = store.commit(commit_of(&claimed.job, released_token, 0, at(2))).await.unwrap();
    assert_eq!(committed, CommitOutcome::Committed);
    let failed = enqueue(&*store, 2).await.id;
    let (_, failed_token) = claim(&*store, at(1)).await;
    store.put_part_chunk(failed, 1, &part_chunk(0, 0, 1)).await.unwrap();
    assert_eq!(store.finish(failed, failed_token, JobEnd::Failed(json!({})), at(2)).await.unwrap(), WriteOutcome::Done);
    let running = enqueue(&*store, 3).await.id;
    let (_, crashed_token) = claim(&*store, at(1)).await;
    store.put_part_chunk(running, 1, &part_chunk(0, 0, 1)).await.unwrap();
    assert_eq!(store.release_lease(running, crashed_token, at(2)).await.unwrap(), WriteOutcome::Done);
    claim(&*store, at(3)).await;
    store.put_part_chunk(running, 2, &part_chunk(0, 0, 1)).await.unwrap();

    let (uploading, kept) = (begun(&*store).await, begun(&*store).await);
    store.put_column_chunk(uploading, 0, 0, ciphertext(b"x")).await.unwrap();
    store.put_column_chunk(kept, 0, 0, ciphertext(b"x")).await.unwrap();
    store.insert_dataset(&dataset_record(kept, 1), &audit_entry()).await.unwrap();

    let now = chrono::Utc::now();
    let hour = Duration::from_secs(3600);
    assert_eq!(store.sweep(now, hour).await.unwrap(), SweepCounts { attempts: 2, ..SweepCounts::default() });
    assert_eq!(bench.count("part_chunks").await, 2);
    assert!(store.part_chunk(TENANT, released, 1, "t1.qi.csv", 0).await.unwrap().is_some());
    assert!(store.part_chunk(TENANT, running, 2, "t1.qi.csv", 0).await.unwrap().is_some());
    assert_eq!(store.sweep(now + hour * 2, hour).await.unwrap(), SweepCounts { uploads: 1, ..SweepCounts::default() });
    assert!(store.get_column_chunk(kept, 0, 0).await.unwrap().is_some());
    assert_eq!(bench.count("column_chunks").await, 1);
}

pub(crate) async fn releases_are_listed_by_filter(bench: &impl Bench) {
    let store = bench.store();
    let (first_job, first) = release(&*store, 1).await;
    let (_, second) = release(&*store, 2).await;
    let listed = async |filter: ReleaseFilter| -> Vec<Uuid> {
        store.releases(TENANT, &filter, None, 10).await.unwrap().items.iter().map(|record| record.id).collect()
    };
    let any = ReleaseFilter::default;
    assert_eq!(listed(any()).await, [second, first]);
    assert_eq!(listed(ReleaseFilter { dataset: Some(first_job.dataset), ..any() }).await, [first]);
    assert_eq!(listed(ReleaseFilter { series: Some("people".into()), ..any() }).await.len(), 2);
    assert!(listed(ReleaseFilter { method: Some("anatomy".into()), ..any() }).await.is_empty());
    assert_eq!(listed(ReleaseFilter { status: Some("published".into()), ..any() }).await.len(), 2);
    let page = store.releases(TENANT, &any(), None, 1).await.unwrap();
    assert_eq!(store.releases(TENANT, &any(), page.next, 1).await.unwrap().items[0].id, first);
    assert!(store.release(TENANT, Uuid::now_v7()).await.unwrap().is_none());
}

pub(crate) async fn internal_report_ends_with_release_or_original(bench: &impl Bench) {
    let store = bench.store();
    let report = |release: Uuid, tenant: &'static str| {
        let store = Arc::clone(&store);
        async move { store.internal_report(tenant, release).await.unwrap() }
    };
    let (_, withdrawn) = release(&*store, 1).await;
    let (of_purged, purged) = release(&*store, 2).await;
    enqueue(&*store, 3).await;
    let (claimed, token) = claim(&*store, at(3)).await;
    let version = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
    let mut commit = commit_of(&claimed.job, token, version, at(4));
    let (written, without) = (commit.internal_report.take(), commit.release.id);
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    assert!(written.is_some());
    assert_eq!(report(withdrawn, TENANT).await, written);
    assert_eq!(report(purged, TENANT).await, written);
    assert_eq!(report(without, TENANT).await, None);
    assert_eq!(report(purged, "other").await, None);
    assert_eq!(report(Uuid::now_v7(), TENANT).await, None);
    assert_eq!(bench.count("internal_reports").await, 2);
    let withdrawal = Transition {
        release: withdrawn,
        act: ReleaseAction::Withdraw,
        reason: "why".into(),
        audit_entry: audit_entry(),
    };
    assert_eq!(store.transition(&withdrawal).await.unwrap(), TransitionOutcome::Done);
    assert_eq!(report(withdrawn, TENANT).await, None);
    assert_eq!(report(purged, TENANT).await, written, "of another release");
    store.purge_dataset(TENANT, of_purged.dataset, at(9), &audit_entry()).await.unwrap();
    assert_eq!(report(purged, TENANT).await, None);
    assert_eq!(bench.count("internal_reports").await, 0);
}
