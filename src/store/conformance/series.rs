//! Statements and releases of a series.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Bench, TENANT, at, audit_entry, by, claim, commit_of, enqueue, release};
use crate::ports::{AuditAction, CommitOutcome, ReleaseAction, StatementRecord, Store, Transition};

async fn version(store: &dyn Store) -> i64 {
    store.series(TENANT, "people").await.unwrap().version
}

pub(crate) async fn series_change_is_seen_by_commits(bench: &impl Bench) {
    let store = bench.store();
    assert_eq!(version(&*store).await, 0);
    let (_, released) = release(&*store, 1).await;
    assert_eq!(version(&*store).await, 1);
    enqueue(&*store, 2).await;
    let (claimed, token) = claim(&*store, at(1)).await;
    let content = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
    let mut commit = commit_of(&claimed.job, token, content, at(2));
    commit.series_versions = BTreeMap::from([("people".to_owned(), version(&*store).await)]);
    let statement =
        StatementRecord { id: Uuid::now_v7(), body: serde_json::json!({"reason": "é"}), recorded_at: at(3) };
    store.enter_statement(TENANT, "people", &statement, &audit_entry()).await.unwrap();
    assert_eq!(store.series(TENANT, "people").await.unwrap().statements, std::slice::from_ref(&statement));
    assert!(store.series(TENANT, "x").await.unwrap().statements.is_empty());
    assert_eq!(store.commit(commit.clone()).await.unwrap(), CommitOutcome::LedgerMoved);
    commit.series_versions = BTreeMap::from([("people".to_owned(), version(&*store).await)]);
    let done = by(TENANT, None, AuditAction::Withdraw, at(4));
    let withdrawn =
        Transition { release: released, act: ReleaseAction::Withdraw, reason: "r".into(), audit_entry: done };
    let _ = store.transition(&withdrawn).await.unwrap();
    commit.ledger_version = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version;
    assert_eq!(store.commit(commit.clone()).await.unwrap(), CommitOutcome::LedgerMoved);
    commit.series_versions = BTreeMap::from([("people".to_owned(), version(&*store).await)]);
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    assert_eq!(version(&*store).await, 4);
}
