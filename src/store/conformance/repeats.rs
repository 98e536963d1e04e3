//! Keys of requests that can be repeated.

use uuid::Uuid;

use super::{Bench, at};
use crate::ports::{IdempotencyRecord, NewIdempotencyKey};

fn key(tenant: &str, route: &'static str, name: &str) -> NewIdempotencyKey {
    NewIdempotencyKey {
        tenant: tenant.into(),
        route,
        name: name.into(),
        resource: Uuid::now_v7(),
        content_hash: None,
        began_at: at(0),
        lease_until: at(60),
    }
}

pub(crate) async fn a_key_is_taken_once(bench: &impl Bench) {
    let store = bench.store();
    let first = key("default", "jobs", "k");
    assert_eq!(store.claim_idempotency_key(&first).await.unwrap(), None);
    let held = IdempotencyRecord { resource: first.resource, content_hash: None, lease_until: at(60) };
    assert_eq!(store.claim_idempotency_key(&key("default", "jobs", "k")).await.unwrap(), Some(held.clone()));
    for other in [key("other", "jobs", "k"), key("default", "datasets", "k"), key("default", "jobs", "K")] {
        assert_eq!(store.claim_idempotency_key(&other).await.unwrap(), None, "{other:?}");
    }
    assert!(store.note_content(first.resource, &[3; 32]).await.unwrap());
    assert!(store.renew_idempotency_key(first.resource, at(90)).await.unwrap());
    let noted = IdempotencyRecord { content_hash: Some([3; 32]), lease_until: at(90), ..held };
    assert_eq!(store.claim_idempotency_key(&key("default", "jobs", "k")).await.unwrap(), Some(noted));
    // of many at once one wins
    let racing: Vec<NewIdempotencyKey> = (0..8).map(|_| key("default", "jobs", "race")).collect();
    let claims = racing.iter().map(|key| store.claim_idempotency_key(key));
    let won =
        futures_util::future::join_all(claims).await.into_iter().filter(|claim| claim.as_ref().unwrap().is_none());
    assert_eq!(won.count(), 1);
}

pub(crate) async fn a_key_that_is_let_go_of_can_be_taken_again(bench: &impl Bench) {
    let store = bench.store();
    let (first, second) = (key("default", "jobs", "k"), key("default", "jobs", "k"));
    store.claim_idempotency_key(&first).await.unwrap();
    store.drop_idempotency_key(first.resource).await.unwrap();
    assert_eq!(store.claim_idempotency_key(&second).await.unwrap(), None);
    // a holder that lost it learns so, and cannot take it from the next
    assert!(!store.renew_idempotency_key(first.resource, at(90)).await.unwrap());
    assert!(!store.note_content(first.resource, &[3; 32]).await.unwrap());
    store.drop_idempotency_key(first.resource).await.unwrap();
    assert_eq!(bench.count("idempotency_keys").await, 1);
    store.lapse_idempotency_keys(at(5)).await.unwrap();
    let held = store.claim_idempotency_key(&first).await.unwrap().unwrap();
    assert_eq!((held.resource, held.lease_until), (second.resource, at(5)));
}

pub(crate) async fn keys_expire(bench: &impl Bench) {
    let store = bench.store();
    let (old, mut young) = (key("default", "jobs", "old"), key("default", "jobs", "young"));
    young.began_at = at(10);
    for key in [&old, &young] {
        store.claim_idempotency_key(key).await.unwrap();
    }
    assert_eq!(store.expire_idempotency_keys(at(10)).await.unwrap(), 1);
    assert_eq!(store.claim_idempotency_key(&old).await.unwrap(), None);
    assert!(store.claim_idempotency_key(&key("default", "jobs", "young")).await.unwrap().is_some());
}
