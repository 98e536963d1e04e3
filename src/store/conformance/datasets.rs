//! Datasets and their chunks.

use std::time::Duration;

use uuid::Uuid;

use super::{Bench, TENANT, at, dataset, dataset_record, deed, is_conflict};
use crate::jobs::{Cursor, StoreError};

pub(crate) async fn a_dataset_is_read_as_it_was_written(bench: &impl Bench) {
    let store = bench.store();
    let mut record = dataset_record(Uuid::now_v7(), 0);
    store.insert_dataset(&record, &deed()).await.unwrap();
    assert_eq!(store.dataset(TENANT, record.id).await.unwrap().unwrap(), record);
    assert!(is_conflict(&store.insert_dataset(&record, &deed()).await));
    record.id = Uuid::now_v7();
    (record.name, record.same_people, record.record_key, record.max_rows_per_subject) = (None, None, None, None);
    store.insert_dataset(&record, &deed()).await.unwrap();
    assert_eq!(store.dataset(TENANT, record.id).await.unwrap().unwrap(), record);
    assert!(store.dataset(TENANT, Uuid::now_v7()).await.unwrap().is_none());
}

pub(crate) async fn an_upload_becomes_visible_whole_or_not_at_all(bench: &impl Bench) {
    let store = bench.store();
    let id = Uuid::now_v7();
    for chunk in 0..2 {
        store.put_column_chunks(id, chunk, &[(0, b"zero"), (1, &[u8::try_from(chunk).unwrap()])]).await.unwrap();
    }
    assert!(store.dataset(TENANT, id).await.unwrap().is_none());
    assert!(is_conflict(&store.insert_dataset(&dataset_record(id, 3), &deed()).await), "a chunk is missing");
    // a batch is kept whole or not at all
    assert!(is_conflict(&store.put_column_chunks(id, 1, &[(2, b"new"), (0, b"again")]).await));
    assert_eq!(store.get_column_chunk(id, 1, 2).await.unwrap(), None);
    store.insert_dataset(&dataset_record(id, 2), &deed()).await.unwrap();
    assert_eq!(store.get_column_chunk(id, 1, 1).await.unwrap().unwrap(), [1]);
    assert_eq!(store.get_column_chunk(id, 0, 0).await.unwrap().unwrap(), b"zero");
    assert_eq!(store.get_column_chunk(id, 2, 0).await.unwrap(), None);
    assert!(is_conflict(&store.put_column_chunk(id, 2, 0, b"late").await), "a visible dataset does not change");
}

pub(crate) async fn a_discarded_upload_leaves_nothing(bench: &impl Bench) {
    let store = bench.store();
    let (failed, kept) = (Uuid::now_v7(), Uuid::now_v7());
    for chunk in 0..100 {
        store.put_column_chunks(failed, chunk, &[(0, b"x"), (1, b"y")]).await.unwrap();
    }
    store.put_column_chunk(kept, 0, 0, b"z").await.unwrap();
    store.insert_dataset(&dataset_record(kept, 1), &deed()).await.unwrap();
    store.discard_upload(failed).await.unwrap();
    store.discard_upload(kept).await.unwrap();
    assert_eq!(bench.count("column_chunks").await, 1);
    assert!(store.get_column_chunk(kept, 0, 0).await.unwrap().is_some());
}

pub(crate) async fn a_purge_destroys_the_rows_and_keeps_the_record(bench: &impl Bench) {
    let store = bench.store();
    let id = Uuid::now_v7();
    store.put_column_chunks(id, 0, &[(0, b"x"), (1, b"y")]).await.unwrap();
    store.insert_dataset(&dataset_record(id, 1), &deed()).await.unwrap();
    let purged = store.purge_dataset(TENANT, id, at(9), &deed()).await.unwrap();
    assert_eq!(purged.purged_at, Some(at(9)));
    assert_eq!(store.dataset(TENANT, id).await.unwrap().unwrap(), purged);
    assert_eq!(bench.count("column_chunks").await, 0);
    assert_eq!(store.purge_dataset(TENANT, id, at(10), &deed()).await.unwrap().purged_at, Some(at(9)));
    assert!(matches!(store.purge_dataset(TENANT, Uuid::now_v7(), at(9), &deed()).await, Err(StoreError::NotFound)));
    assert_eq!(store.sweep(at(10), Duration::ZERO).await.unwrap().uploads, 0);
}

pub(crate) async fn datasets_are_listed_newest_first(bench: &impl Bench) {
    let store = bench.store();
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(dataset(&*store).await);
    }
    ids.reverse();
    let first = store.datasets(TENANT, None, 3).await.unwrap();
    let cursor: Cursor = first.next.unwrap().to_string().parse().unwrap();
    let second = store.datasets(TENANT, Some(cursor), 3).await.unwrap();
    assert_eq!(second.next, None);
    let listed: Vec<_> = first.items.iter().chain(&second.items).map(|record| record.id).collect();
    assert_eq!(listed, ids);
    assert_eq!(store.datasets(TENANT, None, 5).await.unwrap().next, None);
}
