//! What clients were promised: every id they were given, every key they sent, and the ends of jobs they have seen.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

/// A request under a key.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) key: String,
    /// The path and what is sent: a table, or a job's document.
    pub(super) path: &'static str,
    pub(super) body: String,
    /// What was answered: the id of what was made.
    pub(super) id: Option<String>,
    /// It was refused as a whole, and made nothing.
    pub(super) refused: bool,
}

#[derive(Default)]
struct Inner {
    sent: BTreeMap<String, Sent>,
    /// The status and the release that a job was seen to end with.
    ends: BTreeMap<String, (String, Value)>,
    /// Ids of jobs whose cancellation was accepted, and of datasets that were purged.
    counts: BTreeMap<String, u64>,
    violations: Vec<String>,
}

/// What is known, shared by all.
#[derive(Default)]
pub(super) struct Known(Mutex<Inner>);

impl Known {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(super) fn violated(&self, what: impl Into<String>) {
        let what = what.into();
        println!("violation: {what}");
        self.inner().violations.push(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.inner().violations.clone()
    }

    pub(super) fn count(&self, what: &str) {
        *self.inner().counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn table(&self) -> BTreeMap<String, u64> {
        self.inner().counts.clone()
    }

    /// Before a request leaves: from now on its key may stand for something.
    pub(super) fn sending(&self, sent: &Sent) {
        self.inner().sent.entry(sent.key.clone()).or_insert_with(|| sent.clone());
    }

    /// A key was answered with an id: always the same one.
    pub(super) fn answered(&self, key: &str, id: &str) {
        let mut inner = self.inner();
        let sent = inner.sent.get_mut(key).unwrap();
        let earlier = sent.id.get_or_insert_with(|| id.to_owned()).clone();
        let refused = sent.refused;
        drop(inner);
        if earlier != id || refused {
            self.violated(format!("key {key} stands for {earlier} and for {id} (refused before: {refused})"));
        }
    }

    /// A key was refused: it stands for nothing.
    pub(super) fn refused(&self, key: &str) {
        let mut inner = self.inner();
        let sent = inner.sent.get_mut(key).unwrap();
        sent.refused = true;
        if let Some(id) = sent.id.clone() {
            drop(inner);
            self.violated(format!("key {key} stood for {id} and is refused now"));
        }
    }

    pub(super) fn all_sent(&self) -> Vec<Sent> {
        self.inner().sent.values().cloned().collect()
    }

    /// The ids made at a path.
    pub(super) fn ids(&self, path: &str) -> Vec<String> {
        self.inner().sent.values().filter(|sent| sent.path == path).filter_map(|sent| sent.id.clone()).collect()
    }

    /// A job as it was read: an end is for ever.
    pub(super) fn seen(&self, job: &Value) {
        if job["finished_at"].is_null() {
            return;
        }
        let (id, status) = (super::client::text(&job["id"]), super::client::text(&job["status"]));
        let now = (status, job["release"].clone());
        let before = self.inner().ends.entry(id.clone()).or_insert_with(|| now.clone()).clone();
        if before != now {
            self.violated(format!("job {id} ended as {before:?} and then as {now:?}"));
        }
    }

    pub(super) fn ends(&self) -> BTreeMap<String, (String, Value)> {
        self.inner().ends.clone()
    }
}
