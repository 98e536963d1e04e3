//! Datasets and their chunks.

use std::time::Duration;

use uuid::Uuid;

use super::{Bench, TENANT, WRAPPED, at, audit_entry, begun, ciphertext, dataset, dataset_record, is_conflict};
use crate::app::encrypt_datasets;
use crate::ports::{Cursor, StoreError};
use crate::vault::{CiphertextContext, Vault};

pub(crate) async fn a_dataset_is_read_as_it_was_written(bench: &impl Bench) {
    let store = bench.store();
    let mut record = dataset_record(begun(&*store).await, 0);
    store.insert_dataset(&record, &audit_entry()).await.unwrap();
    assert_eq!(store.dataset(TENANT, record.id).await.unwrap().unwrap(), record);
    assert!(is_conflict(&store.insert_dataset(&record, &audit_entry()).await));
    record.id = begun(&*store).await;
    (record.name, record.same_people, record.record_key, record.max_rows_per_subject) = (None, None, None, None);
    store.insert_dataset(&record, &audit_entry()).await.unwrap();
    assert_eq!(store.dataset(TENANT, record.id).await.unwrap().unwrap(), record);
    assert!(store.dataset(TENANT, Uuid::now_v7()).await.unwrap().is_none());
}

pub(crate) async fn an_upload_becomes_visible_whole_or_not_at_all(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store).await;
    for chunk in 0..2 {
        store
            .put_column_chunks(id, chunk, &[(0, ciphertext(b"zero")), (1, ciphertext(&[u8::try_from(chunk).unwrap()]))])
            .await
            .unwrap();
    }
    assert!(store.dataset(TENANT, id).await.unwrap().is_none());
    assert!(is_conflict(&store.insert_dataset(&dataset_record(id, 3), &audit_entry()).await), "a chunk is missing");
    // a batch is kept whole or not at all
    assert!(is_conflict(&store.put_column_chunks(id, 1, &[(2, ciphertext(b"new")), (0, ciphertext(b"again"))]).await));
    assert_eq!(store.get_column_chunk(id, 1, 2).await.unwrap(), None);
    store.insert_dataset(&dataset_record(id, 2), &audit_entry()).await.unwrap();
    assert_eq!(store.get_column_chunk(id, 1, 1).await.unwrap().unwrap(), ciphertext(&[1]));
    assert_eq!(store.get_column_chunk(id, 0, 0).await.unwrap().unwrap(), ciphertext(b"zero"));
    assert_eq!(store.get_column_chunk(id, 2, 0).await.unwrap(), None);
    let (zero, one) = (Some(ciphertext(b"zero")), Some(ciphertext(&[1])));
    let asked = [1, 2, 0, 1];
    assert_eq!(store.get_columns(id, 1, &asked).await.unwrap(), [one.clone(), None, zero, one], "in the order asked");
    assert_eq!(store.get_columns(id, 2, &[0, 1]).await.unwrap(), [None, None]);
    assert_eq!(store.get_columns(id, 1, &[]).await.unwrap(), []);
    assert!(
        is_conflict(&store.put_column_chunk(id, 2, 0, ciphertext(b"late")).await),
        "a visible dataset does not change"
    );
}

pub(crate) async fn a_discarded_upload_leaves_nothing(bench: &impl Bench) {
    let store = bench.store();
    let (failed, kept) = (begun(&*store).await, begun(&*store).await);
    for chunk in 0..100 {
        store.put_column_chunks(failed, chunk, &[(0, ciphertext(b"x")), (1, ciphertext(b"y"))]).await.unwrap();
    }
    store.put_column_chunk(kept, 0, 0, ciphertext(b"z")).await.unwrap();
    store.insert_dataset(&dataset_record(kept, 1), &audit_entry()).await.unwrap();
    store.discard_upload(failed).await.unwrap();
    store.discard_upload(kept).await.unwrap();
    assert_eq!((bench.count("column_chunks").await, bench.count("dataset_keys").await), (1, 1));
    assert!(store.get_column_chunk(kept, 0, 0).await.unwrap().is_some());
}

pub(crate) async fn a_purge_destroys_the_rows_and_keeps_the_record(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store).await;
    store.put_column_chunks(id, 0, &[(0, ciphertext(b"x")), (1, ciphertext(b"y"))]).await.unwrap();
    store.insert_dataset(&dataset_record(id, 1), &audit_entry()).await.unwrap();
    let purged = store.purge_dataset(TENANT, id, at(9), &audit_entry()).await.unwrap();
    assert_eq!((purged.purged_at, &purged.profiles, &purged.wrapped_key), (Some(at(9)), &None, &None));
    assert_eq!(store.dataset(TENANT, id).await.unwrap().unwrap(), purged);
    assert_eq!((bench.count("column_chunks").await, bench.count("dataset_keys").await), (0, 0));
    assert_eq!(store.purge_dataset(TENANT, id, at(10), &audit_entry()).await.unwrap().purged_at, Some(at(9)));
    assert!(matches!(
        store.purge_dataset(TENANT, Uuid::now_v7(), at(9), &audit_entry()).await,
        Err(StoreError::NotFound)
    ));
    assert_eq!(store.sweep(at(10), Duration::ZERO).await.unwrap().uploads, 0);
}

pub(crate) async fn an_upload_has_a_key_before_it_has_chunks(bench: &impl Bench) {
    let store = bench.store();
    let id = Uuid::now_v7();
    assert!(is_conflict(&store.put_column_chunk(id, 0, 0, ciphertext(b"x")).await));
    assert!(is_conflict(&store.insert_dataset(&dataset_record(id, 0), &audit_entry()).await));
    store.begin_upload(id, &WRAPPED).await.unwrap();
    assert!(is_conflict(&store.begin_upload(id, &[1; 73]).await), "the first key counts");
    store.put_column_chunk(id, 0, 0, ciphertext(b"x")).await.unwrap();
    // once it is given up, what comes late is not kept
    store.discard_upload(id).await.unwrap();
    assert!(is_conflict(&store.put_column_chunk(id, 1, 0, ciphertext(b"x")).await));
    assert!(is_conflict(&store.insert_dataset(&dataset_record(id, 0), &audit_entry()).await));
    assert_eq!((bench.count("column_chunks").await, bench.count("dataset_keys").await), (0, 0));
}

pub(crate) async fn a_dataset_keeps_its_key_until_it_is_purged(bench: &impl Bench) {
    let store = bench.store();
    let (kept, purged) = (dataset(&*store).await, dataset(&*store).await);
    // an upload that ended before its first chunk
    begun(&*store).await;
    store.purge_dataset(TENANT, purged, at(9), &audit_entry()).await.unwrap();
    assert_eq!(bench.count("dataset_keys").await, 2);
    let tomorrow = chrono::Utc::now() + Duration::from_secs(24 * 3600);
    assert_eq!(store.sweep(tomorrow, Duration::ZERO).await.unwrap().uploads, 1);
    assert_eq!(bench.count("dataset_keys").await, 1);
    let listed: Vec<_> = store.datasets(TENANT, None, 9).await.unwrap().items.iter().map(|item| item.id).collect();
    assert_eq!(listed, [purged, kept]);
    for (id, key) in [(purged, None), (kept, Some(WRAPPED.to_vec()))] {
        assert_eq!(store.dataset(TENANT, id).await.unwrap().unwrap().wrapped_key, key);
    }
}

pub(crate) async fn a_dataset_from_before_seals_is_sealed_whole(bench: &impl Bench) {
    let store = bench.store();
    let (old, new, purged) = (begun(&*store).await, dataset(&*store).await, dataset(&*store).await);
    for chunk in 0..3 {
        store.put_column_chunks(old, chunk, &[(0, ciphertext(&[chunk as u8])), (1, ciphertext(b"y"))]).await.unwrap();
    }
    store.insert_dataset(&dataset_record(old, 3), &audit_entry()).await.unwrap();
    store.purge_dataset(TENANT, purged, at(9), &audit_entry()).await.unwrap();
    assert!(store.unencrypted_datasets().await.unwrap().is_empty());
    // what has no key was never encrypted
    assert!(
        !bench.refuses("DELETE FROM dataset_keys WHERE dataset_id IN (SELECT dataset_id FROM column_chunks)").await
    );
    assert_eq!(store.unencrypted_datasets().await.unwrap(), [old]);

    // a ciphertext that fails half-way leaves it as it was
    let half = store.encrypt_dataset(old, &WRAPPED, &|place, _| match place {
        CiphertextContext::Chunk { chunk: 2, .. } => Err(StoreError::Full),
        _ => Ok(ciphertext(b"half")),
    });
    assert!(matches!(half.await, Err(StoreError::Full)));
    assert_eq!(store.unencrypted_datasets().await.unwrap(), [old]);

    let vault = Vault::in_memory().unwrap();
    assert_eq!(encrypt_datasets(&*store, &vault).await.unwrap(), 1);
    assert_eq!(encrypt_datasets(&*store, &vault).await.unwrap(), 0);
    let record = store.dataset(TENANT, old).await.unwrap().unwrap();
    let key = vault.data_key(old, &record.wrapped_key.unwrap()).unwrap();
    assert_eq!(key.decrypt(CiphertextContext::Profiles, &record.profiles.unwrap()).unwrap(), b"profiles");
    for chunk in 0..3 {
        for (column, plain) in [(0, [chunk as u8]), (1, *b"y")] {
            let read = store.get_column_chunk(old, chunk, column).await.unwrap().unwrap();
            assert_eq!(key.decrypt(CiphertextContext::Chunk { chunk, column }, &read).unwrap(), plain);
        }
    }
    let other = store.dataset(TENANT, new).await.unwrap().unwrap();
    assert_eq!((other.profiles, other.wrapped_key), (Some(ciphertext(b"profiles")), Some(WRAPPED.to_vec())));
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
