//! The life of releases after their commit.

use uuid::Uuid;

use super::{Bench, TENANT, at, claim, commit_of, enqueue, part_chunk};
use crate::jobs::{Act, CommitOutcome, JobStatus, Store, Transition, Transitioned};

/// A held release with a part, and its job.
async fn held(store: &dyn Store, reuse: u8) -> (Uuid, Uuid) {
    let job = enqueue(store, reuse).await.id;
    let (claimed, token) = claim(store, at(1)).await;
    store.put_part_chunk(job, 1, &part_chunk(0, 0, 1)).await.unwrap();
    let version = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
    let mut commit = commit_of(&claimed.job, token, version, at(2));
    commit.release.status = "held".into();
    let release = commit.release.id;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    (job, release)
}

async fn act(store: &dyn Store, release: Uuid, act: Act) -> Transitioned {
    store
        .transition(&Transition { tenant: TENANT.into(), release, act, reason: "why".into(), at: at(9) })
        .await
        .unwrap()
}

pub(crate) async fn a_held_release_is_approved_and_withdrawn(bench: &impl Bench) {
    let store = bench.store();
    let (job, release) = held(&*store, 1).await;
    assert_eq!(enqueue(&*store, 1).await.release, Some(release), "an equal job gets it");
    assert_eq!(act(&*store, release, Act::Withdraw).await, Transitioned::WrongState("held".into()));
    let foreign = Transition { tenant: "other".into(), release, act: Act::Approve, reason: "why".into(), at: at(9) };
    assert_eq!(store.transition(&foreign).await.unwrap(), Transitioned::NotFound);
    assert!(!store.mark_read("other", release, at(9)).await.unwrap());
    assert_eq!(store.old_releases(at(100)).await.unwrap(), []);
    assert_eq!(act(&*store, release, Act::Approve).await, Transitioned::Done);
    assert_eq!(act(&*store, release, Act::Approve).await, Transitioned::WrongState("published".into()));
    assert_eq!(store.old_releases(at(2)).await.unwrap(), []);
    assert_eq!(store.old_releases(at(3)).await.unwrap(), [(TENANT.to_owned(), release)]);
    assert_eq!(store.release_events("other", release).await.unwrap(), []);
    assert!(store.mark_read(TENANT, release, at(10)).await.unwrap());
    store.drop_attempt(job, 1).await.unwrap();
    assert!(store.part_chunk(TENANT, job, 1, "t1.qi.csv", 0).await.unwrap().is_some(), "a served part stays");
    assert_eq!(store.ended_release(TENANT, &[1; 32]).await.unwrap(), None);
    assert_eq!(act(&*store, release, Act::Withdraw).await, Transitioned::Done);
    assert_eq!(store.release(TENANT, release).await.unwrap().unwrap().status, "withdrawn");
    assert!(!store.mark_read(TENANT, release, at(11)).await.unwrap());
    store.drop_attempt(job, 1).await.unwrap();
    assert!(store.part_chunk(TENANT, job, 1, "t1.qi.csv", 0).await.unwrap().is_none());
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (3, 2, 1));
    let ended = Some((release, "withdrawn".to_owned()));
    assert_eq!(store.ended_release(TENANT, &[1; 32]).await.unwrap(), ended);
    assert_eq!(store.ended_release("other", &[1; 32]).await.unwrap(), None);
    let events = store.release_events(TENANT, release).await.unwrap();
    assert_eq!(events.iter().map(|event| event.status.as_str()).collect::<Vec<_>>(), ["published", "withdrawn"]);
    assert!(events.iter().all(|event| event.reason == "why" && event.at == at(9)));
    assert_eq!(act(&*store, Uuid::now_v7(), Act::Approve).await, Transitioned::NotFound);
}

pub(crate) async fn a_rejection_lifts_what_nobody_read(bench: &impl Bench) {
    let store = bench.store();
    let (_, release) = held(&*store, 1).await;
    assert_eq!(act(&*store, release, Act::Reject).await, Transitioned::Done);
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (2, 0, 0));
    assert_eq!(store.ended_release(TENANT, &[1; 32]).await.unwrap(), None);
    store.sweep(chrono::Utc::now(), std::time::Duration::ZERO).await.unwrap();
    assert_eq!(bench.count("part_chunks").await, 0);
    let again = enqueue(&*store, 1).await;
    assert_eq!(again.status, JobStatus::Queued, "it is made anew");
    store.request_cancel(TENANT, again.id, at(5)).await.unwrap();

    let (_, read) = held(&*store, 1).await;
    assert!(store.mark_read(TENANT, read, at(3)).await.unwrap());
    assert_eq!(act(&*store, read, Act::Reject).await, Transitioned::Done);
    assert_eq!(store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().entries.len(), 2);
    let ended = Some((read, "rejected".to_owned()));
    assert_eq!(store.ended_release(TENANT, &[1; 32]).await.unwrap(), ended);
}

pub(crate) async fn of_two_acts_at_once_one_wins(bench: &impl Bench) {
    let store = bench.store();
    for round in 0..8 {
        let (_, release) = held(&*store, round).await;
        let before = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
        let (approved, rejected) =
            tokio::join!(act(&*store, release, Act::Approve), act(&*store, release, Act::Reject));
        let won = [&approved, &rejected].into_iter().filter(|outcome| **outcome == Transitioned::Done).count();
        assert_eq!(won, 1, "{approved:?} {rejected:?}");
        let status = store.release(TENANT, release).await.unwrap().unwrap().status;
        let after = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
        assert_eq!(after.version, before.version + 1);
        let lifted = if status == "rejected" { 2 } else { 0 };
        assert_eq!(after.entries.len(), before.entries.len() - lifted);
        assert_eq!(store.release_events(TENANT, release).await.unwrap().len(), 1);
    }
}
