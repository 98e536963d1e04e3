//! The life of releases after their commit.

use uuid::Uuid;

use super::{Bench, TENANT, at, audit_entry, by, claim, commit_of, dataset, enqueue, new_job, part_chunk};
use crate::ports::{
    AuditAction, AuditFilter, CommitOutcome, JobStatus, KeyedReleases, ReleaseAction, Store, TenantSettings,
    Transition, TransitionOutcome,
};
use crate::publication::ReleaseStatus;

/// A held release with a part, and its job.
async fn held(store: &dyn Store, reuse: u8) -> (Uuid, Uuid) {
    enforced_by(store, reuse, None).await
}

async fn enforced_by(store: &dyn Store, reuse: u8, submitter: Option<Uuid>) -> (Uuid, Uuid) {
    let job = submit(store, reuse, submitter).await;
    let (claimed, token) = claim(store, at(1)).await;
    store.put_part_chunk(job, 1, &part_chunk(0, 0, 1)).await.unwrap();
    let version = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
    let mut commit = commit_of(&claimed.job, token, version, at(2));
    commit.release.status = ReleaseStatus::Held;
    let release = commit.release.id;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    (job, release)
}

async fn submit(store: &dyn Store, reuse: u8, submitter: Option<Uuid>) -> Uuid {
    let mut job = new_job(dataset(store).await, reuse);
    job.audit_entry = by(TENANT, submitter, AuditAction::Submit, at(0));
    store.enqueue(job).await.unwrap().id
}

async fn act(store: &dyn Store, release: Uuid, act: ReleaseAction) -> TransitionOutcome {
    act_by(store, release, act, TENANT, None).await
}

async fn act_by(
    store: &dyn Store,
    release: Uuid,
    act: ReleaseAction,
    tenant: &str,
    key: Option<Uuid>,
) -> TransitionOutcome {
    let audit_entry = by(tenant, key, AuditAction::Approve, at(9));
    store.transition(&Transition { release, act, reason: "why".into(), audit_entry }).await.unwrap()
}

pub(crate) async fn a_held_release_is_approved_and_withdrawn(bench: &impl Bench) {
    let store = bench.store();
    let (job, release) = held(&*store, 1).await;
    assert_eq!(enqueue(&*store, 1).await.release, Some(release), "an equal job gets it");
    assert_eq!(
        act(&*store, release, ReleaseAction::Withdraw).await,
        TransitionOutcome::WrongState(ReleaseStatus::Held)
    );
    assert_eq!(act_by(&*store, release, ReleaseAction::Approve, "other", None).await, TransitionOutcome::NotFound);
    assert!(!store.mark_read("other", release, at(9), &audit_entry()).await.unwrap());
    assert_eq!(store.old_releases(at(100)).await.unwrap(), []);
    assert_eq!(act(&*store, release, ReleaseAction::Approve).await, TransitionOutcome::Done);
    assert_eq!(
        act(&*store, release, ReleaseAction::Approve).await,
        TransitionOutcome::WrongState(ReleaseStatus::Published)
    );
    assert_eq!(store.old_releases(at(2)).await.unwrap(), []);
    assert_eq!(store.old_releases(at(3)).await.unwrap(), [(TENANT.to_owned(), release)]);
    assert_eq!(store.release_events("other", release).await.unwrap(), []);
    assert!(store.mark_read(TENANT, release, at(10), &audit_entry()).await.unwrap());
    store.drop_attempt(job, 1).await.unwrap();
    assert!(store.part_chunk(TENANT, job, 1, "t1.qi.csv", 0).await.unwrap().is_some(), "a served part stays");
    let stands = KeyedReleases { standing: Some(release), ended: None };
    assert_eq!(store.releases_of_key(TENANT, &[1; 32]).await.unwrap(), stands);
    assert_eq!(act(&*store, release, ReleaseAction::Withdraw).await, TransitionOutcome::Done);
    assert_eq!(store.release(TENANT, release).await.unwrap().unwrap().status, ReleaseStatus::Withdrawn);
    assert!(!store.mark_read(TENANT, release, at(11), &audit_entry()).await.unwrap());
    store.drop_attempt(job, 1).await.unwrap();
    assert!(store.part_chunk(TENANT, job, 1, "t1.qi.csv", 0).await.unwrap().is_none());
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (3, 2, 1));
    let ended = KeyedReleases { standing: None, ended: Some((release, "withdrawn".to_owned())) };
    assert_eq!(store.releases_of_key(TENANT, &[1; 32]).await.unwrap(), ended);
    assert_eq!(store.releases_of_key("other", &[1; 32]).await.unwrap(), KeyedReleases::default());
    let events = store.release_events(TENANT, release).await.unwrap();
    assert_eq!(events.iter().map(|event| event.status.as_str()).collect::<Vec<_>>(), ["published", "withdrawn"]);
    assert!(events.iter().all(|event| event.reason == "why" && event.happened_at == at(9) && event.actor.is_none()));
    assert_eq!(act(&*store, Uuid::now_v7(), ReleaseAction::Approve).await, TransitionOutcome::NotFound);
}

pub(crate) async fn rejection_lifts_unread_release(bench: &impl Bench) {
    let store = bench.store();
    let (_, release) = held(&*store, 1).await;
    assert_eq!(act(&*store, release, ReleaseAction::Reject).await, TransitionOutcome::Done);
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (2, 0, 0));
    assert_eq!(store.releases_of_key(TENANT, &[1; 32]).await.unwrap().ended, None);
    store.sweep(chrono::Utc::now(), std::time::Duration::ZERO).await.unwrap();
    assert_eq!(bench.count("part_chunks").await, 0);
    let again = enqueue(&*store, 1).await;
    assert_eq!(again.status, JobStatus::Queued, "it is made anew");
    store.request_cancel(TENANT, again.id, at(5), &audit_entry()).await.unwrap();

    let (_, read) = held(&*store, 1).await;
    assert!(store.mark_read(TENANT, read, at(3), &audit_entry()).await.unwrap());
    assert_eq!(act(&*store, read, ReleaseAction::Reject).await, TransitionOutcome::Done);
    assert_eq!(store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().entries.len(), 2);
    let ended = Some((read, "rejected".to_owned()));
    assert_eq!(store.releases_of_key(TENANT, &[1; 32]).await.unwrap().ended, ended);
}

pub(crate) async fn of_two_acts_at_once_one_wins(bench: &impl Bench) {
    let store = bench.store();
    for round in 0..8 {
        let (_, release) = held(&*store, round).await;
        let before = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
        let (approved, rejected) =
            tokio::join!(act(&*store, release, ReleaseAction::Approve), act(&*store, release, ReleaseAction::Reject));
        let won = [&approved, &rejected].into_iter().filter(|outcome| **outcome == TransitionOutcome::Done).count();
        assert_eq!(won, 1, "{approved:?} {rejected:?}");
        let status = store.release(TENANT, release).await.unwrap().unwrap().status;
        let after = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
        assert_eq!(after.version, before.version + 1);
        let lifted = if status == ReleaseStatus::Rejected { 2 } else { 0 };
        assert_eq!(after.entries.len(), before.entries.len() - lifted);
        assert_eq!(store.release_events(TENANT, release).await.unwrap().len(), 1);
    }
}

pub(crate) async fn an_approval_is_by_another_where_the_tenant_asks_for_it(bench: &impl Bench) {
    let store = bench.store();
    let asks = TenantSettings { approval_by_another: true, ..TenantSettings::default() };
    let keys: Vec<Uuid> = (0..4).map(|_| Uuid::now_v7()).collect();
    let [first, twin, late, officer] = keys[..] else { unreachable!() };
    store.set_tenant("other", asks, &audit_entry()).await.unwrap();
    let (_, release) = enforced_by(&*store, 1, Some(first)).await;
    assert_eq!(
        act_by(&*store, release, ReleaseAction::Approve, TENANT, Some(first)).await,
        TransitionOutcome::Done,
        "not asked for here"
    );
    let event = store.release_events(TENANT, release).await.unwrap().remove(0);
    assert_eq!(event.actor, Some(format!("key:{first}")));

    store.set_tenant(TENANT, asks, &audit_entry()).await.unwrap();
    let job = submit(&*store, 2, Some(first)).await;
    let waiting = submit(&*store, 2, Some(twin)).await;
    let (claimed, token) = claim(&*store, at(1)).await;
    assert_eq!(claimed.job.id, job);
    let version = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
    let mut commit = commit_of(&claimed.job, token, version, at(2));
    commit.release.status = ReleaseStatus::Held;
    let release = commit.release.id;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    let after = submit(&*store, 2, Some(late)).await;
    for job in [waiting, after] {
        assert_eq!(store.job(TENANT, job).await.unwrap().unwrap().release, Some(release));
    }
    let logged = store.audit(TENANT, AuditFilter::default(), None, 99).await.unwrap().items.len();
    for own in [Some(first), Some(twin), Some(late), None] {
        let refused = act_by(&*store, release, ReleaseAction::Approve, TENANT, own).await;
        assert_eq!(refused, TransitionOutcome::NotByAnother, "{own:?}");
    }
    assert_eq!(store.audit(TENANT, AuditFilter::default(), None, 99).await.unwrap().items.len(), logged);
    assert_eq!(store.release_events(TENANT, release).await.unwrap(), []);
    assert_eq!(act_by(&*store, release, ReleaseAction::Approve, TENANT, Some(officer)).await, TransitionOutcome::Done);

    // an unnamed actor may be anyone
    let (_, release) = held(&*store, 3).await;
    assert_eq!(
        act_by(&*store, release, ReleaseAction::Approve, TENANT, Some(officer)).await,
        TransitionOutcome::NotByAnother
    );
    assert_eq!(
        act_by(&*store, release, ReleaseAction::Reject, TENANT, None).await,
        TransitionOutcome::Done,
        "only approvals are asked about"
    );
}

pub(crate) async fn the_first_read_of_a_held_release_is_logged(bench: &impl Bench) {
    let store = bench.store();
    let reads = async || {
        let filter = AuditFilter { action: Some(AuditAction::ReadHeld), ..AuditFilter::default() };
        store.audit(TENANT, filter, None, 99).await.unwrap().items
    };
    let (_, release) = held(&*store, 1).await;
    let read = async |tenant: &str| {
        let audit_entry = by(tenant, None, AuditAction::ReadHeld, at(5));
        (store.mark_read(tenant, release, at(5), &audit_entry).await.unwrap(), audit_entry)
    };
    assert!(!read("other").await.0);
    assert_eq!(reads().await, []);
    let (served, first) = read(TENANT).await;
    assert!(served && read(TENANT).await.0);
    assert_eq!(reads().await, [first]);
    assert_eq!(act(&*store, release, ReleaseAction::Reject).await, TransitionOutcome::Done);
    assert!(!read(TENANT).await.0);
    assert_eq!(reads().await.len(), 1);
}
