//! Whose job is next.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{
    Bench, TENANT, TERMS, at, audit_entry, begun, claim, dataset_record, enqueue, job, new_job, problems, token,
};
use crate::ports::{ClaimTerms, ClaimedJob, EngineTable, JobEnd, JobStatus, NewJob, Store, WriteOutcome};

/// Jobs of a tenant on one dataset, with priorities.
pub(crate) async fn submit(store: &dyn Store, tenant: &str, priorities: &[i32]) -> Vec<Uuid> {
    submit_on(store, Some("lake"), tenant, priorities).await
}

/// On a dataset in an engine, or here.
async fn submit_on(store: &dyn Store, engine: Option<&str>, tenant: &str, priorities: &[i32]) -> Vec<Uuid> {
    let mut dataset = dataset_record(begun(store).await, 0);
    dataset.tenant = tenant.to_owned();
    dataset.place = engine.map(|engine| EngineTable { engine: engine.to_owned(), table: "t".to_owned() });
    store.insert_dataset(&dataset, &audit_entry()).await.unwrap();
    let mut ids = Vec::new();
    for (number, &priority) in (0..).zip(priorities) {
        let mut reuse_key = [number; 32];
        reuse_key[..16].copy_from_slice(dataset.id.as_bytes());
        let new = NewJob { tenant: tenant.to_owned(), priority, reuse_key, ..new_job(dataset.id, 0) };
        ids.push(store.enqueue(new).await.unwrap().id);
    }
    ids
}

pub(crate) async fn tenants_take_turns(bench: &impl Bench) {
    let store = bench.store();
    submit(&*store, "a", &[100; 60]).await;
    submit(&*store, "b", &[0; 3]).await;
    submit(&*store, "c", &[-100; 3]).await;
    // while everything runs: the tenant with the fewest
    let mut running = BTreeMap::<String, usize>::new();
    for second in 1..=6 {
        *running.entry(claim(&*store, at(second)).await.0.job.tenant).or_default() += 1;
        assert!(running.values().max().unwrap() - running.values().min().unwrap() <= 1, "{running:?}");
    }
    assert_eq!(running.into_values().collect::<Vec<_>>(), [2, 2, 2]);
    // one at a time: the tenant served least recently
    for lapsed in store.reap(at(100), 1, &problems()).await.unwrap().lapsed {
        assert_eq!(lapsed.1, 1);
    }
    let mut order = String::new();
    for second in 101..=106 {
        let (claimed, token) = claim(&*store, at(second)).await;
        order.push_str(&claimed.job.tenant);
        assert_eq!(
            store.finish(claimed.job.id, token, JobEnd::Cancelled, at(second)).await.unwrap(),
            WriteOutcome::Done
        );
    }
    // b and c have one job left each, and get it before a has had three
    assert_eq!(&order[3..], "aaa", "{order}");
    assert!(order[..3].contains('b') && order[..3].contains('c'), "{order}");
}

pub(crate) async fn a_priority_orders_a_tenants_own_jobs(bench: &impl Bench) {
    let store = bench.store();
    let ids = submit(&*store, "a", &[0, 100, 50]).await;
    submit(&*store, "b", &[-100]).await;
    let mut of_a = Vec::new();
    let mut tenants = String::new();
    for second in 1..=4 {
        let claimed = claim(&*store, at(second)).await.0.job;
        tenants.push_str(&claimed.tenant);
        if claimed.tenant == "a" {
            of_a.push(claimed.id);
        }
    }
    assert_eq!(tenants, "abaa", "the lowest priority of another is not behind all of a's");
    assert_eq!(of_a, [ids[1], ids[2], ids[0]]);
}

pub(crate) async fn a_tenant_runs_no_more_than_its_share(bench: &impl Bench) {
    let store = bench.store();
    submit(&*store, "a", &[0; 5]).await;
    submit(&*store, "b", &[0; 1]).await;
    let terms = ClaimTerms { max_running_per_tenant: Some(2), ..TERMS };
    let mut claimed = Vec::new();
    for second in 1..=3 {
        let token = token();
        let job = store.claim(token, terms, at(second)).await.unwrap().expect("a job is free").job;
        claimed.push((job, token));
    }
    assert_eq!(claimed.iter().filter(|(job, _)| job.tenant == "a").count(), 2);
    assert!(store.claim(token(), terms, at(4)).await.unwrap().is_none());
    let (ended, token_of_it) = claimed.iter().find(|(job, _)| job.tenant == "a").unwrap();
    assert_eq!(store.finish(ended.id, *token_of_it, JobEnd::Cancelled, at(5)).await.unwrap(), WriteOutcome::Done);
    assert_eq!(store.claim(token(), terms, at(6)).await.unwrap().unwrap().job.tenant, "a");
    assert!(store.claim(token(), terms, at(7)).await.unwrap().is_none());
    assert!(store.claim(token(), TERMS, at(8)).await.unwrap().is_some(), "others may have other terms");
}

pub(crate) async fn an_engine_runs_no_more_than_its_share(bench: &impl Bench) {
    let store = bench.store();
    let of_a = submit_on(&*store, Some("lake"), "a", &[100, 0]).await;
    let here = submit_on(&*store, None, "a", &[-100, -100]).await;
    let of_b = submit_on(&*store, Some("lake"), "b", &[0]).await;
    let of_c = submit_on(&*store, Some("pond"), "c", &[0]).await;
    let terms = ClaimTerms { max_running_per_engine: Some(1), ..TERMS };
    let mut claimed = BTreeMap::new();
    let mut second = 0;
    let mut claim_all = async || {
        let mut ids = Vec::new();
        loop {
            second += 1;
            let token = token();
            let Some(ClaimedJob { job, .. }) = store.claim(token, terms, at(second)).await.unwrap() else { break };
            claimed.insert(job.id, token);
            ids.push(job.id);
        }
        ids.sort();
        (ids, claimed.clone(), at(second))
    };
    let sorted = |mut ids: Vec<Uuid>| {
        ids.sort();
        ids
    };
    // who waits for an engine keeps none of the same tenant waiting that needs none
    let (ids, tokens, now) = claim_all().await;
    assert_eq!(ids, sorted(vec![of_a[0], of_c[0], here[0], here[1]]));
    assert_eq!(store.finish(of_a[0], tokens[&of_a[0]], JobEnd::Cancelled, now).await.unwrap(), WriteOutcome::Done);
    assert_eq!(claim_all().await.0, of_b, "the tenant with fewer jobs");
    assert_eq!(store.claim(token(), TERMS, now).await.unwrap().unwrap().job.id, of_a[1], "others may have other terms");
}

pub(crate) async fn a_job_whose_worker_vanished_waits(bench: &impl Bench) {
    let store = bench.store();
    let id = enqueue(&*store, 1).await.id;
    claim(&*store, at(0)).await;
    assert_eq!(store.reap(at(30), 3, &problems()).await.unwrap().requeued, [id]);
    assert!(store.claim(token(), TERMS, at(31)).await.unwrap().is_none(), "two seconds");
    let other = enqueue(&*store, 2).await.id;
    let (claimed, other_token) = claim(&*store, at(31)).await;
    assert_eq!(claimed.job.id, other, "others go first");
    assert_eq!(claim(&*store, at(32)).await.0.job.id, id);
    assert_eq!(store.reap(at(62), 3, &problems()).await.unwrap().requeued.len(), 2);
    // longer for the one than for the other
    assert_eq!(claim(&*store, at(64)).await.0.job.id, other);
    assert!(store.claim(token(), TERMS, at(65)).await.unwrap().is_none(), "four seconds");
    let (claimed, token_of_it) = claim(&*store, at(66)).await;
    assert_eq!((claimed.job.id, claimed.job.attempt), (id, 3));
    // given back, it does not wait
    assert_eq!(store.release_lease(id, token_of_it, at(67)).await.unwrap(), WriteOutcome::Done);
    assert_eq!(claim(&*store, at(67)).await.0.job.id, id);
    assert_eq!(store.finish(other, other_token, JobEnd::Cancelled, at(68)).await.unwrap(), WriteOutcome::LeaseLost);
    assert_eq!(store.reap(at(97), 3, &problems()).await.unwrap().exhausted, [id], "three lapses, in four attempts");
    let ended = store.job(TENANT, id).await.unwrap().unwrap();
    assert_eq!((ended.status, ended.attempt), (JobStatus::Failed, 4));
    assert_eq!(job(&*store, other).await.status, JobStatus::Queued);
}
