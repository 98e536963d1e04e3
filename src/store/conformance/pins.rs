//! What is fixed, and the rotation of the master key.

use uuid::Uuid;

use super::chains::begun;
use super::{Bench, TENANT, at, claim, dataset, enqueue, is_conflict};
use crate::ports::{HASHING_KEY_PIN, MASTER_KEY_PIN, Rotation, RotationCounts, StoreError};
use crate::vault::Purpose;

const OLD: [u8; 32] = [1; 32];
const NEW: [u8; 32] = [2; 32];

pub(crate) async fn a_pin_stays_what_it_was_first(bench: &impl Bench) {
    let store = bench.store();
    assert_eq!(store.pinned("key").await.unwrap(), None);
    assert_eq!(store.pin("key", b"first").await.unwrap(), b"first");
    assert_eq!(store.pin("key", b"second").await.unwrap(), b"first");
    assert_eq!(store.pinned("key").await.unwrap().unwrap(), b"first");
}

pub(crate) async fn a_rotation_wraps_every_key_anew(bench: &impl Bench) {
    let store = bench.store();
    store.pin(MASTER_KEY_PIN, &OLD).await.unwrap();
    let mut datasets = Vec::new();
    for _ in 0..3 {
        datasets.push(dataset(&*store).await);
    }
    let job = enqueue(&*store, 7).await;
    datasets.push(job.dataset);
    let chain = begun(&*store, "clinic").await;
    let rewrap = |purpose: Purpose, id: Uuid, wrapped: &[u8]| {
        Ok([format!("{purpose:?} {id} ").as_bytes(), &wrapped[..1]].concat())
    };
    let rotation = |from| Rotation { from, to: NEW, hashing_key: b"hashing".to_vec(), rewrap: &rewrap };
    assert!(is_conflict(&store.rotate(rotation(NEW)).await), "another master key");
    assert_eq!(store.rotate(rotation(OLD)).await.unwrap(), RotationCounts { datasets: 4, jobs: 1, chains: 1 });
    assert!(is_conflict(&store.rotate(rotation(OLD)).await), "the old one counts no more");
    assert_eq!(store.pinned(MASTER_KEY_PIN).await.unwrap().unwrap(), NEW);
    assert_eq!(store.pinned(HASHING_KEY_PIN).await.unwrap().unwrap(), b"hashing");
    for id in datasets {
        let wrapped = store.dataset(TENANT, id).await.unwrap().unwrap().wrapped_key.unwrap();
        assert_eq!(wrapped, [format!("Dataset {id} ").as_bytes(), &[42]].concat());
    }
    let wrapped = store.chain(TENANT, "clinic").await.unwrap().unwrap().wrapped_key.unwrap();
    assert_eq!(wrapped, [format!("Chain {} ", chain.id).as_bytes(), &[42]].concat());
    let (claimed, _) = claim(&*store, at(1)).await;
    assert_eq!(claimed.wrapped_key, [format!("Release {} ", job.id).as_bytes(), &[7]].concat());
}

pub(crate) async fn a_rotation_that_fails_changes_nothing(bench: &impl Bench) {
    let store = bench.store();
    store.pin(MASTER_KEY_PIN, &OLD).await.unwrap();
    store.pin(HASHING_KEY_PIN, b"before").await.unwrap();
    let before = dataset(&*store).await;
    let job = enqueue(&*store, 7).await;
    // the keys of jobs come last: those of datasets were written by then
    let rewrap = |purpose: Purpose, _: Uuid, _: &[u8]| match purpose {
        Purpose::Release => Err(StoreError::Full),
        _ => Ok(b"anew".to_vec()),
    };
    let rotation = Rotation { from: OLD, to: NEW, hashing_key: b"after".to_vec(), rewrap: &rewrap };
    assert!(matches!(store.rotate(rotation).await, Err(StoreError::Full)));
    assert_eq!(store.pinned(MASTER_KEY_PIN).await.unwrap().unwrap(), OLD);
    assert_eq!(store.pinned(HASHING_KEY_PIN).await.unwrap().unwrap(), b"before");
    for id in [before, job.dataset] {
        let wrapped = store.dataset(TENANT, id).await.unwrap().unwrap().wrapped_key.unwrap();
        assert_eq!(wrapped, super::WRAPPED);
    }
    assert_eq!(claim(&*store, at(1)).await.0.wrapped_key, [7; 73]);
}
