//! Health of a store.

use super::{Bench, at, claim, enqueue};
use crate::ports::Backlog;

pub(crate) async fn the_backlog_counts_what_waits_and_runs(bench: &impl Bench) {
    let store = bench.store();
    store.check().await.unwrap();
    assert_eq!(store.backlog().await.unwrap(), Backlog { queued: 0, running: 0, oldest_queued: None });
    let first = enqueue(&*store, 1).await;
    let second = enqueue(&*store, 2).await;
    let oldest = first.submitted_at.min(second.submitted_at);
    assert_eq!(store.backlog().await.unwrap(), Backlog { queued: 2, running: 0, oldest_queued: Some(oldest) });
    let (claimed, _) = claim(&*store, at(1)).await;
    let left = if claimed.job.id == first.id { second } else { first };
    let expected = Backlog { queued: 1, running: 1, oldest_queued: Some(left.submitted_at) };
    assert_eq!(store.backlog().await.unwrap(), expected);
}
