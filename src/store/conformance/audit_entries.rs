//! Acts and their entries of the audit log: neither exists without the other.

use serde_json::json;
use uuid::Uuid;

use super::keys::api_key;
use super::{Bench, TENANT, at, begun, by, claim, commit_of, dataset, dataset_record, is_conflict, job, new_job};
use crate::ports::{
    AuditAction, AuditEntry, AuditFilter, CancelOutcome, CommitOutcome, DocumentKind, JobStatus, NewDocument,
    ReleaseAction, Store, TenantSettings, Transition, TransitionOutcome,
};
use crate::publication::ReleaseStatus;

async fn log(store: &dyn Store) -> Vec<AuditEntry> {
    let mut log = store.audit(TENANT, AuditFilter::default(), None, 99).await.unwrap().items;
    log.reverse();
    log
}

fn audit_entry(action: AuditAction) -> AuditEntry {
    by(TENANT, Some(Uuid::now_v7()), action, at(0))
}

fn policy(audit_entry: AuditEntry) -> NewDocument {
    NewDocument {
        kind: DocumentKind::Policy,
        id: Uuid::now_v7(),
        name: "p".to_owned(),
        content: json!({}),
        audit_entry,
    }
}

/// A held release.
async fn held(store: &dyn Store, reuse: u8) -> Uuid {
    store.enqueue(new_job(dataset(store).await, reuse)).await.unwrap();
    let (claimed, token) = claim(store, at(1)).await;
    let version = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
    let mut commit = commit_of(&claimed.job, token, version, at(2));
    commit.release.status = ReleaseStatus::Held;
    let release = commit.release.id;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    release
}

pub(crate) async fn what_was_done_is_logged_once(bench: &impl Bench) {
    let store = bench.store();
    let before = log(&*store).await.len();
    let mut done = Vec::new();
    let mut next = |action| {
        let audit_entry = audit_entry(action);
        done.push(audit_entry.clone());
        audit_entry
    };
    let id = begun(&*store).await;
    store.insert_dataset(&dataset_record(id, 0), &next(AuditAction::Upload)).await.unwrap();
    let mut new = new_job(id, 1);
    new.audit_entry = next(AuditAction::Submit);
    let queued = store.enqueue(new).await.unwrap().id;
    let cancelled = store.request_cancel(TENANT, queued, at(1), &next(AuditAction::Cancel)).await.unwrap();
    assert_eq!(cancelled, CancelOutcome::CancelledAtOnce);
    store.purge_dataset(TENANT, id, at(2), &next(AuditAction::Purge)).await.unwrap();
    let key = api_key(TENANT).0;
    store.insert_key(&key, &next(AuditAction::CreateKey)).await.unwrap();
    store.revoke_key(key.id, at(3), &next(AuditAction::RevokeKey)).await.unwrap();
    store.set_tenant(TENANT, TenantSettings::default(), &next(AuditAction::SetTenant)).await.unwrap();
    assert_eq!(log(&*store).await[before..], done);

    let release = held(&*store, 2).await;
    let before = log(&*store).await.len();
    let approve = audit_entry(AuditAction::Approve);
    let transition =
        Transition { release, act: ReleaseAction::Approve, reason: "why".into(), audit_entry: approve.clone() };
    assert_eq!(store.transition(&transition).await.unwrap(), TransitionOutcome::Done);
    assert_eq!(log(&*store).await[before..], [approve]);
}

pub(crate) async fn what_was_not_done_is_not_logged(bench: &impl Bench) {
    let store = bench.store();
    let id = dataset(&*store).await;
    let queued = store.enqueue(new_job(id, 1)).await.unwrap().id;
    store.request_cancel(TENANT, queued, at(1), &audit_entry(AuditAction::Cancel)).await.unwrap();
    store.purge_dataset(TENANT, id, at(2), &audit_entry(AuditAction::Purge)).await.unwrap();
    let key = api_key(TENANT).0;
    store.insert_key(&key, &audit_entry(AuditAction::CreateKey)).await.unwrap();
    store.revoke_key(key.id, at(3), &audit_entry(AuditAction::RevokeKey)).await.unwrap();
    store.put_document(&policy(audit_entry(AuditAction::PutPolicy))).await.unwrap();
    let release = held(&*store, 2).await;
    let before = log(&*store).await;

    assert!(is_conflict(&store.insert_dataset(&dataset_record(id, 0), &audit_entry(AuditAction::Upload)).await));
    let unseen = dataset_record(Uuid::now_v7(), 1);
    assert!(
        is_conflict(&store.insert_dataset(&unseen, &audit_entry(AuditAction::Upload)).await),
        "its chunk is missing"
    );
    assert!(store.enqueue(new_job(Uuid::now_v7(), 3)).await.is_err());
    let mut again = new_job(id, 3);
    again.id = queued;
    assert!(is_conflict(&store.enqueue(again).await));
    for job in [queued, Uuid::now_v7()] {
        let _ = store.request_cancel(TENANT, job, at(4), &audit_entry(AuditAction::Cancel)).await.unwrap();
    }
    store.purge_dataset(TENANT, id, at(4), &audit_entry(AuditAction::Purge)).await.unwrap();
    assert!(store.purge_dataset(TENANT, Uuid::now_v7(), at(4), &audit_entry(AuditAction::Purge)).await.is_err());
    assert!(is_conflict(&store.insert_key(&key, &audit_entry(AuditAction::CreateKey)).await));
    store.revoke_key(key.id, at(5), &audit_entry(AuditAction::RevokeKey)).await.unwrap();
    store.put_document(&policy(audit_entry(AuditAction::PutPolicy))).await.unwrap();
    for (release, act) in [(release, ReleaseAction::Withdraw), (Uuid::now_v7(), ReleaseAction::Approve)] {
        let transition = Transition { release, act, reason: "why".into(), audit_entry: audit_entry(act_name(act)) };
        assert_ne!(store.transition(&transition).await.unwrap(), TransitionOutcome::Done);
    }
    assert_eq!(log(&*store).await, before);
}

const fn act_name(act: ReleaseAction) -> AuditAction {
    match act {
        ReleaseAction::Approve => AuditAction::Approve,
        ReleaseAction::Reject => AuditAction::Reject,
        ReleaseAction::Withdraw => AuditAction::Withdraw,
    }
}

pub(crate) async fn what_cannot_be_logged_is_not_done(bench: &impl Bench) {
    let store = bench.store();
    let id = dataset(&*store).await;
    let queued = store.enqueue(new_job(id, 1)).await.unwrap().id;
    let key = api_key(TENANT).0;
    store.insert_key(&key, &audit_entry(AuditAction::CreateKey)).await.unwrap();
    // a line of this id is there already
    let taken = audit_entry(AuditAction::Plan);
    store.append_audit(&taken).await.unwrap();

    let hidden = Uuid::now_v7();
    assert!(is_conflict(&store.insert_dataset(&dataset_record(hidden, 0), &taken).await));
    assert!(store.dataset(TENANT, hidden).await.unwrap().is_none());
    let mut new = new_job(id, 2);
    (new.id, new.audit_entry) = (hidden, taken.clone());
    assert!(is_conflict(&store.enqueue(new).await));
    assert!(store.job(TENANT, hidden).await.unwrap().is_none());
    assert!(is_conflict(&store.request_cancel(TENANT, queued, at(1), &taken).await));
    assert_eq!(job(&*store, queued).await.status, JobStatus::Queued);
    assert!(is_conflict(&store.purge_dataset(TENANT, id, at(1), &taken).await));
    assert_eq!(store.dataset(TENANT, id).await.unwrap().unwrap().purged_at, None);
    let unkept = api_key(TENANT).0;
    assert!(is_conflict(&store.insert_key(&unkept, &taken).await));
    assert!(store.key(unkept.id).await.unwrap().is_none());
    assert!(is_conflict(&store.revoke_key(key.id, at(1), &taken).await));
    assert_eq!(store.key(key.id).await.unwrap().unwrap().revoked_at, None);
    assert!(is_conflict(&store.put_document(&policy(taken.clone())).await));
    assert_eq!((bench.count("policies").await, bench.count("policy_versions").await), (0, 0));
    let asks = TenantSettings { approval_by_another: true, ..TenantSettings::default() };
    assert!(is_conflict(&store.set_tenant(TENANT, asks, &taken).await));
    assert_eq!(store.tenant_settings(TENANT).await.unwrap(), TenantSettings::default());
    store.request_cancel(TENANT, queued, at(1), &audit_entry(AuditAction::Cancel)).await.unwrap();
    let release = held(&*store, 3).await;
    assert!(is_conflict(&store.mark_read(TENANT, release, at(3), &taken).await));
    let transition = Transition { release, act: ReleaseAction::Reject, reason: "why".into(), audit_entry: taken };
    assert!(is_conflict(&store.transition(&transition).await));
    assert_eq!(store.release(TENANT, release).await.unwrap().unwrap().status, ReleaseStatus::Held);
    assert_eq!(store.release_events(TENANT, release).await.unwrap(), []);
    // nothing of it was read, and it can still be rejected as if it had not been
    let transition = Transition { audit_entry: audit_entry(AuditAction::Reject), ..transition };
    assert_eq!(store.transition(&transition).await.unwrap(), TransitionOutcome::Done);
    assert!(store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().entries.is_empty());
}
