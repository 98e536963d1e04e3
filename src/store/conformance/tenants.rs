//! No query crosses from one tenant to another.

use uuid::Uuid;

use super::keys::api_key;
use super::{
    Bench, TENANT, at, audit_entry, begun, by, ciphertext, claim, commit_of, dataset_record, job, new_job, part_chunk,
};
use crate::people::UnrelatedPolicy;
use crate::ports::{
    AuditAction, AuditFilter, CancelOutcome, CommitOutcome, JobFilter, JobStatus, ReleaseFilter, StoreError,
    TenantSettings,
};

const OTHER: &str = "other";

pub(crate) async fn what_is_anothers_is_not_there(bench: &impl Bench) {
    let store = bench.store();
    let (dataset, queued) = (begun(&*store).await, Uuid::now_v7());
    store.put_column_chunk(dataset, 0, 0, ciphertext(b"x")).await.unwrap();
    store.insert_dataset(&dataset_record(dataset, 1), &audit_entry()).await.unwrap();
    let running = store.enqueue(new_job(dataset, 1)).await.unwrap().id;
    let (claimed, token) = claim(&*store, at(1)).await;
    assert_eq!(claimed.job.id, running);
    store.put_part_chunk(running, 1, &part_chunk(0, 0, 4)).await.unwrap();
    let commit = commit_of(&claimed.job, token, 0, at(2));
    let release = commit.release.id;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    let mut waiting = new_job(dataset, 2);
    waiting.id = queued;
    store.enqueue(waiting).await.unwrap();

    assert!(store.dataset(OTHER, dataset).await.unwrap().is_none());
    assert!(store.datasets(OTHER, None, 9).await.unwrap().items.is_empty());
    assert!(matches!(store.purge_dataset(OTHER, dataset, at(3), &audit_entry()).await, Err(StoreError::NotFound)));
    for id in [running, queued] {
        assert!(store.job(OTHER, id).await.unwrap().is_none());
        assert_eq!(store.request_cancel(OTHER, id, at(3), &audit_entry()).await.unwrap(), CancelOutcome::NotFound);
    }
    for filter in [JobFilter::default(), JobFilter { dataset: Some(dataset), ..JobFilter::default() }] {
        assert!(store.jobs(OTHER, &filter, None, 9).await.unwrap().items.is_empty());
        assert_eq!(store.jobs(TENANT, &filter, None, 9).await.unwrap().items.len(), 2);
    }
    assert!(store.part_chunk(OTHER, running, 1, "t1.qi.csv", 0).await.unwrap().is_none());
    assert!(store.part_chunk_at_row(OTHER, running, 1, "t1.qi.csv", 0).await.unwrap().is_none());
    assert!(store.part_chunk(TENANT, running, 1, "t1.qi.csv", 0).await.unwrap().is_some());
    assert!(store.release(OTHER, release).await.unwrap().is_none());
    for filter in [ReleaseFilter::default(), ReleaseFilter { dataset: Some(dataset), ..ReleaseFilter::default() }] {
        assert!(store.releases(OTHER, &filter, None, 9).await.unwrap().items.is_empty());
        assert_eq!(store.releases(TENANT, &filter, None, 9).await.unwrap().items.len(), 1);
    }
    assert!(store.disclosures(OTHER, "people", &[7; 32]).await.unwrap().entries.is_empty());

    // and nothing was done to it
    assert!(store.get_column_chunk(dataset, 0, 0).await.unwrap().is_some());
    assert_eq!(store.dataset(TENANT, dataset).await.unwrap().unwrap().purged_at, None);
    assert_eq!(job(&*store, queued).await.status, JobStatus::Queued);
    assert!(store.release(TENANT, release).await.unwrap().is_some());
}

pub(crate) async fn a_job_needs_a_dataset_of_its_tenant(bench: &impl Bench) {
    let store = bench.store();
    let dataset = super::dataset(&*store).await;
    let mut unknown_value = new_job(dataset, 1);
    unknown_value.tenant = OTHER.into();
    assert!(matches!(store.enqueue(unknown_value).await, Err(StoreError::NotFound)));
    assert_eq!(bench.count("jobs").await, 0);
    assert_eq!(bench.count("job_keys").await, 0);
}

pub(crate) async fn settings_are_a_tenants_own(bench: &impl Bench) {
    let store = bench.store();
    let off = TenantSettings::default();
    let on = TenantSettings { approval_by_another: true, unrelated: UnrelatedPolicy::Mark };
    assert!(!off.approval_by_another && off.unrelated == UnrelatedPolicy::Refuse);
    assert_eq!(store.tenant_settings(TENANT).await.unwrap(), off);
    assert_eq!(store.tenants().await.unwrap(), []);
    store.insert_key(&api_key("keyed").0, &audit_entry()).await.unwrap();
    let set = by(TENANT, None, AuditAction::SetTenant, at(1));
    store.set_tenant(TENANT, on, &set).await.unwrap();
    store.set_tenant(OTHER, on, &audit_entry()).await.unwrap();
    store.set_tenant(OTHER, off, &audit_entry()).await.unwrap();
    assert_eq!(store.tenant_settings(TENANT).await.unwrap(), on);
    let named = |(tenant, settings): (&str, _)| (tenant.to_owned(), settings);
    assert_eq!(store.tenants().await.unwrap(), [(TENANT, on), ("keyed", off), (OTHER, off)].map(named));
    let filter = AuditFilter { action: Some(AuditAction::SetTenant), ..AuditFilter::default() };
    assert_eq!(store.audit(TENANT, filter, None, 9).await.unwrap().items, [set]);
}
