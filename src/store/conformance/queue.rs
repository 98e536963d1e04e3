//! The queue.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::{
    Bench, LEASE, TENANT, TERMS, at, audit_entry, claim, commit_of, dataset, enqueue, is_conflict, is_problem, job,
    new_job, problems, release, token,
};
use crate::control::{Phase, Progress};
use crate::ports::{
    CancelOutcome, CommitOutcome, Heartbeat, JobEnd, JobFilter, JobQueue, JobStatus, Store, StoreError, WriteOutcome,
};
use crate::problem::Kind;

pub(crate) async fn a_job_is_read_as_it_was_written(bench: &impl Bench) {
    let store = bench.store();
    let mut new = new_job(dataset(&*store).await, 1);
    new.reason = Some("nightly".into());
    new.deadline_at = Some(at(600));
    new.priority = -3;
    let record = store.enqueue(new.clone()).await.unwrap();
    assert_eq!(job(&*store, new.id).await, record);
    assert_eq!((record.status, record.attempt, record.priority), (JobStatus::Queued, 0, -3));
    assert_eq!((record.specification, record.reuse_key), (new.specification.clone(), new.reuse_key));
    assert_eq!((record.reason, record.deadline_at, record.submitted_at), (new.reason.clone(), Some(at(600)), at(0)));
    assert!(is_conflict(&store.enqueue(new).await));
    assert!(matches!(store.enqueue(new_job(Uuid::now_v7(), 2)).await, Err(StoreError::NotFound)));
    assert_eq!(bench.count("jobs").await, 1);
    let (claimed, _) = claim(&*store, at(5)).await;
    assert_eq!((claimed.job.attempt, claimed.job.started_at), (1, Some(at(5))));
    assert_eq!(claimed.wrapped_key, vec![1; 73]);
}

pub(crate) async fn a_claim_is_exclusive(bench: &impl Bench) {
    let store = bench.store();
    let dataset = dataset(&*store).await;
    for reuse in 0..40 {
        store.enqueue(new_job(dataset, reuse)).await.unwrap();
    }
    let claimers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                while let Some(job) = store.claim(token(), TERMS, at(1)).await.unwrap() {
                    claimed.push(job.job.id);
                }
                claimed
            })
        })
        .collect();
    let mut all = Vec::new();
    for claimer in claimers {
        all.extend(claimer.await.unwrap());
    }
    assert_eq!(all.len(), 40);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), 40);
}

pub(crate) async fn priority_goes_before_age(bench: &impl Bench) {
    let store = bench.store();
    let dataset = dataset(&*store).await;
    let mut expected = Vec::new();
    for (reuse, priority, submitted) in [(1, 0, 2), (2, 5, 3), (3, 0, 1), (4, -1, 0), (5, 5, 4)] {
        let mut new = new_job(dataset, reuse);
        (new.priority, new.submitted_at) = (priority, at(submitted));
        expected.push((-priority, submitted, new.id));
        store.enqueue(new).await.unwrap();
    }
    expected.sort_unstable();
    for (_, _, id) in expected {
        assert_eq!(claim(&*store, at(9)).await.0.job.id, id);
    }
}

/// Every write of a worker, and whether any of them was accepted.
async fn writes_something(store: &dyn Store, id: Uuid, token: crate::ports::LeaseToken, now: i64) -> bool {
    let other = Uuid::now_v7();
    let record = job(store, id).await;
    store.heartbeat(id, token, None, LEASE, at(now)).await.unwrap() != Heartbeat::Lost
        || store.lease(id, token, at(now)).await.unwrap() != Heartbeat::Lost
        || store.finish(id, token, JobEnd::Cancelled, at(now)).await.unwrap() != WriteOutcome::LeaseLost
        || store.release_lease(id, token, at(now)).await.unwrap() != WriteOutcome::LeaseLost
        || !matches!(store.succeed_with_reused(id, token, other, at(now)).await, Err(StoreError::NotFound))
        || store.commit(commit_of(&record, token, 0, at(now))).await.unwrap() != CommitOutcome::LeaseLost
}

pub(crate) async fn a_worker_without_the_lease_writes_nothing(bench: &impl Bench) {
    let store = bench.store();
    let (_, earlier) = release(&*store, 9).await;
    let queued = enqueue(&*store, 1).await;
    let (_, held) = claim(&*store, at(3)).await;
    let before = job(&*store, queued.id).await;
    assert!(!writes_something(&*store, queued.id, token(), 4).await, "a wrong token");
    assert!(!writes_something(&*store, queued.id, held, 3 + 30).await, "an expired token");
    let lost = store.succeed_with_reused(queued.id, token(), earlier, at(4)).await.unwrap();
    assert_eq!(lost, WriteOutcome::LeaseLost);
    assert_eq!(job(&*store, queued.id).await, before);
    assert_eq!(store.finish(queued.id, held, JobEnd::Cancelled, at(4)).await.unwrap(), WriteOutcome::Done);
    assert!(!writes_something(&*store, queued.id, held, 5).await, "a token of an ended job");
}

pub(crate) async fn an_expired_lease_is_not_revived(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    let (_, token) = claim(&*store, at(0)).await;
    let progress = Some(Progress { phase: Phase::Verify, done: 2, of: 3 });
    let alive = Heartbeat::Alive { cancel_requested: false };
    assert_eq!(store.heartbeat(id, token, progress, LEASE, at(20)).await.unwrap(), alive);
    assert_eq!(job(&*store, id).await.progress, progress);
    assert_eq!(store.lease(id, token, at(49)).await.unwrap(), alive);
    assert_eq!(store.heartbeat(id, token, None, LEASE, at(49)).await.unwrap(), alive);
    assert_eq!(job(&*store, id).await.progress, progress, "a silent heartbeat keeps the progress");
    assert_eq!(store.heartbeat(id, token, None, LEASE, at(79)).await.unwrap(), Heartbeat::Lost);
}

pub(crate) async fn expired_leases_are_reaped_until_attempts_are_exhausted(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    for attempt in 1..=3 {
        let now = i64::from(attempt) * 100;
        let (claimed, token) = claim(&*store, at(now)).await;
        assert_eq!(claimed.job.attempt, attempt);
        assert_eq!(claimed.wrapped_key, vec![1; 73], "every attempt has the same key");
        assert!(store.reap(at(now + 29), 3, &problems()).await.unwrap().is_empty());
        let reaped = store.reap(at(now + 30), 3, &problems()).await.unwrap();
        assert_eq!(reaped.lapsed, [(id, attempt)]);
        assert_eq!(reaped.requeued.is_empty(), attempt == 3);
        assert_eq!(reaped.exhausted.is_empty(), attempt < 3);
        let late = store.finish(id, token, JobEnd::Cancelled, at(now + 1)).await.unwrap();
        assert_eq!(late, WriteOutcome::LeaseLost);
    }
    let failed = job(&*store, id).await;
    assert_eq!((failed.status, failed.finished_at), (JobStatus::Failed, Some(at(330))));
    assert!(is_problem(failed.problem.as_ref(), Kind::AttemptsExhausted, id));
    assert!(store.claim(token(), TERMS, at(400)).await.unwrap().is_none());
}

pub(crate) async fn a_released_lease_does_not_count_against_the_job(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    for attempt in 1..=5 {
        let (claimed, token) = claim(&*store, at(1)).await;
        assert_eq!(claimed.job.attempt, attempt);
        assert_eq!(store.release_lease(id, token, at(2)).await.unwrap(), WriteOutcome::Done);
        assert_eq!(job(&*store, id).await.status, JobStatus::Queued);
    }
    claim(&*store, at(3)).await;
    assert_eq!(store.reap(at(100), 2, &problems()).await.unwrap().requeued, [id]);
}

pub(crate) async fn overdue_jobs_fail(bench: &impl Bench) {
    let store = bench.store();
    let mut new = new_job(dataset(&*store).await, 1);
    new.deadline_at = Some(at(10));
    let id = store.enqueue(new).await.unwrap().id;
    assert!(store.reap(at(9), 3, &problems()).await.unwrap().is_empty());
    assert!(store.claim(token(), TERMS, at(10)).await.unwrap().is_none(), "too late to start");
    assert_eq!(store.reap(at(10), 3, &problems()).await.unwrap().overdue, [id]);
    let failed = job(&*store, id).await;
    assert_eq!(failed.status, JobStatus::Failed);
    assert!(is_problem(failed.problem.as_ref(), Kind::Deadline, id));
}

pub(crate) async fn waiting_jobs_are_counted(bench: &impl Bench) {
    let store = bench.store();
    assert_eq!(store.queued_jobs("default").await.unwrap(), 0);
    enqueue(&*store, 1).await;
    enqueue(&*store, 2).await;
    assert_eq!(store.queued_jobs("default").await.unwrap(), 2);
    assert_eq!(store.queued_jobs("other").await.unwrap(), 0);
    claim(&*store, at(1)).await;
    assert_eq!(store.queued_jobs("default").await.unwrap(), 1);
}

pub(crate) async fn a_queued_job_is_cancelled_at_once(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    assert_eq!(store.request_cancel(TENANT, id, at(1), &audit_entry()).await.unwrap(), CancelOutcome::CancelledAtOnce);
    let cancelled = job(&*store, id).await;
    assert_eq!((cancelled.status, cancelled.finished_at), (JobStatus::Cancelled, Some(at(1))));
    let again = store.request_cancel(TENANT, id, at(2), &audit_entry()).await.unwrap();
    assert_eq!(again, CancelOutcome::Terminal(JobStatus::Cancelled));
    assert_eq!(
        store.request_cancel(TENANT, Uuid::now_v7(), at(2), &audit_entry()).await.unwrap(),
        CancelOutcome::NotFound
    );
    assert!(store.claim(token(), TERMS, at(3)).await.unwrap().is_none());
}

pub(crate) async fn a_running_job_learns_of_its_cancellation(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    let (_, token) = claim(&*store, at(0)).await;
    assert_eq!(store.request_cancel(TENANT, id, at(1), &audit_entry()).await.unwrap(), CancelOutcome::Requested);
    let expected = Heartbeat::Alive { cancel_requested: true };
    assert_eq!(store.lease(id, token, at(2)).await.unwrap(), expected);
    assert_eq!(store.heartbeat(id, token, None, LEASE, at(2)).await.unwrap(), expected);
    assert!(job(&*store, id).await.cancel_requested);
    assert_eq!(store.finish(id, token, JobEnd::Cancelled, at(3)).await.unwrap(), WriteOutcome::Done);
    assert_eq!(job(&*store, id).await.status, JobStatus::Cancelled);
}

pub(crate) async fn a_vanished_worker_does_not_undo_a_cancellation(bench: &impl Bench) {
    let store = bench.store();
    let reaped = enqueue(&*store, 1).await.id;
    claim(&*store, at(0)).await;
    store.request_cancel(TENANT, reaped, at(1), &audit_entry()).await.unwrap();
    assert_eq!(store.reap(at(99), 3, &problems()).await.unwrap().cancelled, [reaped]);
    let released = enqueue(&*store, 2).await.id;
    let (_, token) = claim(&*store, at(0)).await;
    store.request_cancel(TENANT, released, at(1), &audit_entry()).await.unwrap();
    assert_eq!(store.release_lease(released, token, at(2)).await.unwrap(), WriteOutcome::Done);
    for id in [reaped, released] {
        assert_eq!(job(&*store, id).await.status, JobStatus::Cancelled);
    }
    assert_eq!(bench.count("job_keys").await, 0);
}

pub(crate) async fn every_end_erases_the_key(bench: &impl Bench) {
    let store = bench.store();
    let ends = [JobEnd::Refused(json!({"a": 1})), JobEnd::Failed(json!({"b": 2})), JobEnd::Cancelled];
    for (reuse, end) in (10..).zip(ends) {
        let id = enqueue(&*store, reuse).await.id;
        let (_, token) = claim(&*store, at(0)).await;
        assert_eq!(bench.count("job_keys").await, 1);
        assert_eq!(store.finish(id, token, end.clone(), at(1)).await.unwrap(), WriteOutcome::Done);
        assert_eq!(bench.count("job_keys").await, 0, "{end:?}");
        let ended = job(&*store, id).await;
        assert_eq!((ended.status, ended.problem.as_ref()), (end.status(), end.problem()));
    }
    let (_, earlier) = release(&*store, 20).await;
    assert_eq!(bench.count("job_keys").await, 0, "committed");
    let reusing = enqueue(&*store, 21).await.id;
    let (_, token) = claim(&*store, at(3)).await;
    let written = store.succeed_with_reused(reusing, token, earlier, at(4)).await.unwrap();
    assert_eq!(written, WriteOutcome::Done);
    let record = job(&*store, reusing).await;
    assert_eq!((record.status, record.release, record.reused), (JobStatus::Succeeded, Some(earlier), true));
    assert_eq!(bench.count("job_keys").await, 0, "reused");
    let queued = enqueue(&*store, 22).await.id;
    store.request_cancel(TENANT, queued, at(5), &audit_entry()).await.unwrap();
    assert_eq!(bench.count("job_keys").await, 0, "cancelled while it waited");
    enqueue(&*store, 23).await;
    claim(&*store, at(6)).await;
    store.reap(at(99), 1, &problems()).await.unwrap();
    assert_eq!(bench.count("job_keys").await, 0, "exhausted");
    let mut overdue = new_job(dataset(&*store).await, 24);
    overdue.deadline_at = Some(at(7));
    store.enqueue(overdue).await.unwrap();
    store.reap(at(99), 1, &problems()).await.unwrap();
    assert_eq!(bench.count("job_keys").await, 0, "overdue");
}

pub(crate) async fn all_leases_can_be_expired(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    let (_, token) = claim(&*store, at(0)).await;
    assert_eq!(store.expire_all_leases(at(1)).await.unwrap(), 1);
    assert_eq!(store.finish(id, token, JobEnd::Cancelled, at(1)).await.unwrap(), WriteOutcome::LeaseLost);
    assert_eq!(store.reap(at(1), 3, &problems()).await.unwrap().requeued, [id]);
    assert_eq!(store.expire_all_leases(at(1)).await.unwrap(), 0);
}

pub(crate) async fn jobs_are_listed_by_filter(bench: &impl Bench) {
    let store = bench.store();
    let (a, b) = (dataset(&*store).await, dataset(&*store).await);
    let mut ids = Vec::new();
    for (reuse, dataset, method) in [(1, a, "versatile"), (2, a, "anatomy"), (3, b, "anatomy")] {
        let mut new = new_job(dataset, reuse);
        (new.method, new.series) = (method.into(), format!("series {reuse}"));
        ids.push(store.enqueue(new).await.unwrap().id);
    }
    store.request_cancel(TENANT, ids[2], at(1), &audit_entry()).await.unwrap();
    let listed = async |filter: JobFilter| -> Vec<Uuid> {
        store.jobs(TENANT, &filter, None, 10).await.unwrap().items.iter().map(|record| record.id).collect()
    };
    let any = JobFilter::default;
    assert_eq!(listed(any()).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(listed(JobFilter { dataset: Some(a), ..any() }).await, [ids[1], ids[0]]);
    assert_eq!(listed(JobFilter { method: Some("anatomy".into()), ..any() }).await, [ids[2], ids[1]]);
    assert_eq!(listed(JobFilter { status: Some(JobStatus::Cancelled), ..any() }).await, [ids[2]]);
    assert_eq!(listed(JobFilter { series: Some("series 1".into()), ..any() }).await, [ids[0]]);
    assert!(listed(JobFilter { dataset: Some(b), status: Some(JobStatus::Queued), ..any() }).await.is_empty());
    let page = store.jobs(TENANT, &any(), None, 2).await.unwrap();
    let rest = JobQueue::jobs(&*store, TENANT, &any(), page.next, 2).await.unwrap();
    assert_eq!((rest.items.len(), rest.items[0].id, rest.next), (1, ids[0], None));

    let (first, token) = claim(&*store, at(2)).await;
    let end = JobEnd::Refused(json!({"type": "of-a-test", "errors": [1]}));
    assert_eq!(store.finish(first.job.id, token, end, at(3)).await.unwrap(), WriteOutcome::Done);
    let refused = JobFilter { status: Some(JobStatus::Refused), ..any() };
    let item = &store.jobs(TENANT, &refused, None, 2).await.unwrap().items[0];
    let job = store.job(TENANT, first.job.id).await.unwrap().unwrap();
    assert_eq!(item.problem_type.as_deref(), Some("of-a-test"));
    assert_eq!(
        (item.id, item.dataset, &item.method, item.priority, item.status, item.submitted_at, item.started_at),
        (job.id, job.dataset, &job.method, job.priority, job.status, job.submitted_at, job.started_at)
    );
    assert_eq!(
        (item.finished_at, item.attempt, item.progress, item.release, item.reused),
        (Some(at(3)), job.attempt, job.progress, job.release, job.reused)
    );
}
