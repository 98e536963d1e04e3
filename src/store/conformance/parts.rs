//! Parts whose payloads are objects of an object store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::json;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{Bench, TENANT, at, claim, commit_of, enqueue, is_conflict, part_chunk};
use crate::ports::{
    CommitOutcome, JobEnd, PartChunkRecord, PartObjectRecord, PartObjects, Store, StoreError, WriteOutcome,
};

const FILE: &str = "t1.qi.csv";

/// In seconds.
const DAY: i64 = 24 * 60 * 60;

/// Objects in memory, and what befalls them.
#[derive(Default)]
struct MemoryObjects(Mutex<MemoryState>);

#[derive(Default)]
struct MemoryState {
    objects: BTreeMap<String, Vec<u8>>,
    /// Whether nothing is answered.
    is_down: bool,
    /// The key that is not deleted.
    kept: Option<String>,
    /// The attempt that is dropped before the next object is there.
    drops: Option<(Weak<dyn Store>, Uuid)>,
}

impl MemoryObjects {
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.0.lock().unwrap()
    }

    fn keys(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    fn answer(&self) -> Result<(), StoreError> {
        if self.state().is_down { Err(StoreError::Unavailable("down".into())) } else { Ok(()) }
    }

    async fn drop_meanwhile(&self) {
        let drops = self.state().drops.take();
        if let Some((store, job)) = drops {
            store.upgrade().unwrap().drop_attempt(job, 1).await.unwrap();
        }
    }
}

#[async_trait]
impl PartObjects for MemoryObjects {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.answer()?;
        self.drop_meanwhile().await;
        self.state().objects.insert(key.to_owned(), bytes);
        Ok(())
    }

    async fn get(&self, key: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
        self.answer()?;
        self.drop_meanwhile().await;
        let found = self.state().objects.get(key).cloned().ok_or(StoreError::NotFound)?;
        assert!(found.len() as u64 <= limit);
        Ok(found)
    }

    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.answer()?;
        if self.state().kept.as_deref() == Some(key) {
            return Err(StoreError::Unavailable("it is retained".into()));
        }
        self.state().objects.remove(key);
        Ok(())
    }
}

/// A store with objects, and a job that runs.
struct Stage {
    store: Arc<dyn Store>,
    objects: Arc<MemoryObjects>,
    claimed: super::ClaimedJob,
    token: super::LeaseToken,
}

impl Stage {
    async fn set(bench: &impl Bench) -> Self {
        let (store, objects) = (bench.store(), Arc::<MemoryObjects>::default());
        bench.keep_parts_in(Arc::<MemoryObjects>::clone(&objects));
        enqueue(&*store, 1).await;
        let (claimed, token) = claim(&*store, at(1)).await;
        Self { store, objects, claimed, token }
    }

    fn job(&self) -> Uuid {
        self.claimed.job.id
    }

    async fn put(&self, chunk: &PartChunkRecord) -> Result<(), StoreError> {
        self.store.put_part_chunk(self.job(), 1, chunk).await
    }

    async fn chunk(&self, number: u32) -> Result<Option<PartChunkRecord>, StoreError> {
        self.store.part_chunk(TENANT, self.job(), 1, FILE, number).await
    }

    async fn listed(&self, from: u32) -> Vec<PartObjectRecord> {
        self.store.part_objects(TENANT, self.job(), 1, FILE, from).await.unwrap()
    }

    async fn fail(&self) {
        let end = JobEnd::Failed(json!({}));
        assert_eq!(self.store.finish(self.job(), self.token, end, at(2)).await.unwrap(), WriteOutcome::Done);
    }

    async fn sweep(&self, now: DateTime<Utc>) {
        self.store.sweep(now, Duration::from_secs(3600)).await.unwrap();
    }

    fn drop_meanwhile(&self) {
        self.objects.state().drops = Some((Arc::downgrade(&self.store), self.job()));
    }
}

pub(crate) async fn chunks_in_objects_are_read_as_they_were_written(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    let chunks = [part_chunk(0, 0, 4), part_chunk(1, 4, 4)];
    for chunk in &chunks {
        stage.put(chunk).await.unwrap();
    }
    assert!(is_conflict(&stage.put(&chunks[0]).await));
    let keys = stage.objects.keys();
    for (number, key) in keys.iter().enumerate() {
        let begin = format!("{TENANT}/{}-1/t1.qi/0000{number}-", stage.job());
        assert!(key.starts_with(&begin) && key.ends_with(".csv.zst"), "{key}");
    }
    assert_eq!(bench.count("part_chunks WHERE length(payload) > 0").await, 0, "the database has no row of them");
    for (number, chunk) in (0..).zip(&chunks) {
        assert_eq!(stage.chunk(number).await.unwrap().as_ref(), Some(chunk));
        let found = stage.store.part_chunk_at_row(TENANT, stage.job(), 1, FILE, chunk.first_row + 3).await.unwrap();
        assert_eq!(found.as_ref(), Some(chunk));
    }
    assert_eq!(stage.store.part_chunk("other", stage.job(), 1, FILE, 0).await.unwrap(), None);
    let record = |number: u32| PartObjectRecord {
        number,
        rows: 4,
        key: keys[number as usize].clone(),
        sha256: Sha256::digest(&chunks[number as usize].payload).into(),
        bytes: 9,
    };
    assert_eq!(stage.listed(0).await, [record(0), record(1)]);
    assert_eq!(stage.listed(1).await, [record(1)]);
    assert_eq!(stage.store.part_objects("other", stage.job(), 1, FILE, 0).await.unwrap(), []);
    assert_eq!(stage.store.any_part_object().await.unwrap(), None, "no release has one");
}

pub(crate) async fn chunks_from_before_are_read_without_objects(bench: &impl Bench) {
    let store = bench.store();
    let job = enqueue(&*store, 1).await.id;
    claim(&*store, at(1)).await;
    let (before, after) = (part_chunk(0, 0, 4), part_chunk(1, 4, 4));
    store.put_part_chunk(job, 1, &before).await.unwrap();
    let objects = Arc::<MemoryObjects>::default();
    bench.keep_parts_in(Arc::<MemoryObjects>::clone(&objects));
    store.put_part_chunk(job, 1, &after).await.unwrap();
    assert_eq!(objects.keys().len(), 1);
    assert_eq!(store.part_chunk(TENANT, job, 1, FILE, 0).await.unwrap(), Some(before));
    assert_eq!(store.part_chunk(TENANT, job, 1, FILE, 1).await.unwrap(), Some(after));
    store.drop_attempt(job, 1).await.unwrap();
    assert_eq!((bench.count("part_chunks").await, objects.keys().len()), (0, 0));
}

pub(crate) async fn objects_of_a_dropped_attempt_are_deleted(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    // more than one transaction and one page
    for number in 0..70 {
        stage.put(&part_chunk(number, u64::from(number), 1)).await.unwrap();
    }
    stage.objects.set_down(true);
    stage.store.drop_attempt(stage.job(), 1).await.unwrap();
    assert_eq!((bench.count("part_chunks").await, bench.count("unwanted_objects").await), (0, 70));
    stage.fail().await;
    stage.sweep(at(3)).await;
    assert_eq!((stage.objects.keys().len(), bench.count("unwanted_objects").await), (70, 70), "none can be deleted");
    stage.objects.set_down(false);
    stage.sweep(at(4)).await;
    assert_eq!((stage.objects.keys().len(), bench.count("unwanted_objects").await), (0, 70));
    // for good
    stage.sweep(at(4 + DAY)).await;
    assert_eq!(bench.count("unwanted_objects").await, 0);
}

pub(crate) async fn one_object_that_stays_keeps_no_other(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    for number in 0..4 {
        stage.put(&part_chunk(number, u64::from(number), 1)).await.unwrap();
    }
    let kept = stage.objects.keys().remove(0);
    stage.objects.set_down(true);
    stage.store.drop_attempt(stage.job(), 1).await.unwrap();
    stage.objects.set_down(false);
    stage.objects.state().kept = Some(kept.clone());
    stage.fail().await;
    stage.sweep(at(3)).await;
    assert_eq!(stage.objects.keys(), [kept]);
    stage.objects.state().kept = None;
    stage.sweep(at(4)).await;
    assert_eq!(stage.objects.keys().len(), 0);
}

pub(crate) async fn a_write_that_is_completed_later_is_deleted(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    stage.put(&part_chunk(0, 0, 1)).await.unwrap();
    let written = stage.objects.state().objects.clone();
    stage.store.drop_attempt(stage.job(), 1).await.unwrap();
    assert_eq!(stage.objects.keys().len(), 0, "at once");
    stage.fail().await;
    stage.sweep(at(3)).await;
    // the store does now what the writer has given up
    stage.objects.state().objects.extend(written);
    stage.sweep(at(4)).await;
    assert_eq!(stage.objects.keys().len(), 1, "it is not asked each hour");
    stage.sweep(at(3 + DAY)).await;
    assert_eq!((stage.objects.keys().len(), bench.count("unwanted_objects").await), (0, 0));
}

/// An attempt that makes its parts again, after others came first, while the first ones cannot be deleted.
pub(crate) async fn parts_that_are_written_again_outlive_the_first(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    stage.put(&part_chunk(0, 0, 4)).await.unwrap();
    let first = stage.objects.keys().remove(0);
    stage.objects.state().kept = Some(first.clone());
    stage.store.drop_attempt(stage.job(), 1).await.unwrap();
    let again = PartChunkRecord { payload: vec![9; 9], ..part_chunk(0, 0, 4) };
    stage.put(&again).await.unwrap();
    let commit = commit_of(&stage.claimed.job, stage.token, 0, at(2));
    assert_eq!(stage.store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    stage.objects.state().kept = None;
    for time in [3, 3 + DAY] {
        stage.sweep(at(time)).await;
        assert!(!stage.objects.keys().contains(&first));
        assert_eq!(stage.chunk(0).await.unwrap().as_ref(), Some(&again));
    }
}

pub(crate) async fn an_object_that_comes_too_late_is_deleted(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    stage.drop_meanwhile();
    assert!(is_conflict(&stage.put(&part_chunk(0, 0, 1)).await));
    assert_eq!(stage.objects.keys().len(), 0);
    assert_eq!(stage.chunk(0).await.unwrap(), None);
}

pub(crate) async fn objects_of_a_release_stay(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    stage.put(&part_chunk(0, 0, 1)).await.unwrap();
    let commit = commit_of(&stage.claimed.job, stage.token, 0, at(2));
    assert_eq!(stage.store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    stage.store.drop_attempt(stage.job(), 1).await.unwrap();
    stage.store.sweep(chrono::Utc::now(), std::time::Duration::ZERO).await.unwrap();
    assert_eq!(stage.objects.keys().len(), 1);
    assert_eq!(stage.store.any_part_object().await.unwrap(), Some(stage.listed(0).await.remove(0)));
    stage.objects.state().objects.clear();
    assert!(matches!(stage.chunk(0).await, Err(StoreError::Corrupt(_))), "an object is missing");
}

pub(crate) async fn another_object_is_never_served(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    stage.put(&part_chunk(0, 0, 4)).await.unwrap();
    let key = stage.objects.keys().remove(0);
    for other in [&[1; 9][..], b"", &[0; 8]] {
        stage.objects.state().objects.insert(key.clone(), other.to_vec());
        assert!(matches!(stage.chunk(0).await, Err(StoreError::Corrupt(_))));
    }
    // of an attempt that is dropped while its object is read, there is no chunk
    stage.objects.state().objects.clear();
    stage.drop_meanwhile();
    assert_eq!(stage.chunk(0).await.unwrap(), None);
}

pub(crate) async fn an_object_that_cannot_be_written_is_no_chunk(bench: &impl Bench) {
    let stage = Stage::set(bench).await;
    stage.objects.set_down(true);
    assert!(matches!(stage.put(&part_chunk(0, 0, 1)).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(stage.chunk(0).await, Err(StoreError::Unavailable(_))));
    stage.objects.set_down(false);
    assert!(matches!(stage.chunk(0).await, Err(StoreError::Corrupt(_))), "it is not there");
    stage.store.drop_attempt(stage.job(), 1).await.unwrap();
    assert_eq!((bench.count("part_chunks").await, stage.objects.keys().len()), (0, 0));
}

pub(crate) async fn a_process_without_the_place_reads_no_object(bench: &impl Bench) {
    let store = bench.store();
    let job = enqueue(&*store, 1).await.id;
    claim(&*store, at(1)).await;
    let chunk = PartChunkRecord { payload: vec![7; 32], ..part_chunk(0, 0, 4) };
    store.put_part_chunk(job, 1, &chunk).await.unwrap();
    let elsewhere = "UPDATE part_chunks SET object = 'k', object_sha256 = payload, object_bytes = 9";
    assert!(!bench.refuses(elsewhere).await);
    assert!(matches!(store.part_chunk(TENANT, job, 1, FILE, 0).await, Err(StoreError::Unavailable(_))));
    assert!(bench.refuses("UPDATE part_chunks SET object_bytes = NULL").await, "half an object");
    store.drop_attempt(job, 1).await.unwrap();
    assert_eq!(bench.count("unwanted_objects").await, 1, "for a process that can delete it");
}
