//! Whom datasets speak of.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{
    Bench, TENANT, at, audit_entry, begun, by, claim, commit_of, dataset, dataset_record, enqueue, is_conflict, release,
};
use crate::ports::{
    AuditAction, CommitOutcome, DatasetRecord, FingerprintPiece, KeyedHash, NewFingerprint, OverlapShare,
    RecordIdentity, ReleaseAction, StatementRecord, Store, SubjectFingerprint, SubjectOverlap, Transition,
};

fn mark(digit: char) -> KeyedHash {
    serde_json::from_value(digit.to_string().repeat(32).into()).unwrap()
}

/// Six people of one piece.
pub(super) fn fingerprint(uploads: i64) -> NewFingerprint {
    let fingerprint = SubjectFingerprint {
        by: RecordIdentity::Keys,
        folded: true,
        key: vec![mark('1')],
        rows: 6,
        pieces: 1,
        set: mark('f'),
        table: mark('8'),
        columns: vec![(mark('1'), mark('2'))],
        sampled: 0,
        below: Some(mark('3')),
    };
    NewFingerprint { fingerprint, uploads }
}

/// Some people of another series.
pub(super) fn overlap(dataset: Uuid) -> SubjectOverlap {
    SubjectOverlap {
        series: "other".into(),
        datasets: vec![dataset],
        rows: None,
        record_keys: Some(OverlapShare { count: 1, of: 6 }),
        decides: true,
    }
}

/// One piece.
pub(super) async fn piece(store: &dyn Store, tenant: &str, id: Uuid, piece: FingerprintPiece) -> Option<Vec<u8>> {
    store.fingerprint_pieces(tenant, &[(id, piece)]).await.unwrap().pop().unwrap()
}

async fn uploads(store: &dyn Store) -> i64 {
    store.fingerprints(TENANT, None).await.unwrap().0
}

async fn version(store: &dyn Store) -> i64 {
    store.series(TENANT, "people").await.unwrap().version
}

pub(crate) async fn people_are_read_as_they_were_written(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store).await;
    let record = DatasetRecord { overlaps: vec![overlap(id)], ..dataset_record(id, 0) };
    store.put_fingerprint_piece(id, FingerprintPiece::Set(0), &[1; 32]).await.unwrap();
    store.put_fingerprint_piece(id, FingerprintPiece::Sample, &[2; 16]).await.unwrap();
    assert!(is_conflict(&store.put_fingerprint_piece(id, FingerprintPiece::Sample, &[3; 16]).await), "twice");
    assert_eq!(piece(&*store, TENANT, id, FingerprintPiece::Sample).await, None, "not visible yet");
    let new = fingerprint(uploads(&*store).await);
    assert!(store.admit_dataset(&record, Some(&new), &audit_entry()).await.unwrap());
    assert!(
        is_conflict(&store.put_fingerprint_piece(id, FingerprintPiece::Set(1), &[3; 16]).await),
        "a visible dataset does not change"
    );
    assert_eq!(store.dataset(TENANT, id).await.unwrap().unwrap(), record);
    // it outlives the rows
    store.purge_dataset(TENANT, id, at(9), &audit_entry()).await.unwrap();
    assert_eq!(piece(&*store, TENANT, id, FingerprintPiece::Set(0)).await, Some(vec![1; 32]));
    assert_eq!(piece(&*store, TENANT, id, FingerprintPiece::Sample).await, Some(vec![2; 16]));
    let (_, found) = store.fingerprints(TENANT, Some("people")).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].dataset, found[0].content_hash, &found[0].fingerprint), (id, [7; 32], &Some(new.fingerprint)));
    // another tenant, another series
    assert_eq!(piece(&*store, "x", id, FingerprintPiece::Sample).await, None);
    assert!(store.fingerprints("x", None).await.unwrap().1.is_empty());
    assert!(store.fingerprints(TENANT, Some("x")).await.unwrap().1.is_empty());
    // one that says nothing of its people is there all the same
    let other = dataset(&*store).await;
    let (_, found) = store.fingerprints(TENANT, None).await.unwrap();
    assert_eq!((found[1].dataset, &found[1].fingerprint), (other, &None));
}

pub(crate) async fn pieces_stand_where_they_were_asked_for(bench: &impl Bench) {
    let store = bench.store();
    let (first, second) = (begun(&*store).await, begun(&*store).await);
    for (id, byte) in [(first, 0x10), (second, 0x20)] {
        for (number, last) in
            [(FingerprintPiece::Sample, 0), (FingerprintPiece::Set(0), 1), (FingerprintPiece::Set(1), 2)]
        {
            store.put_fingerprint_piece(id, number, &[byte + last; 16]).await.unwrap();
        }
    }
    let new = fingerprint(uploads(&*store).await);
    assert!(store.admit_dataset(&dataset_record(first, 0), Some(&new), &audit_entry()).await.unwrap());
    // `second` is not visible, and a piece may be asked for twice
    let wanted = [
        (first, FingerprintPiece::Set(1)),
        (second, FingerprintPiece::Set(0)),
        (first, FingerprintPiece::Set(2)),
        (first, FingerprintPiece::Sample),
        (first, FingerprintPiece::Set(1)),
        (Uuid::now_v7(), FingerprintPiece::Sample),
    ];
    let found = store.fingerprint_pieces(TENANT, &wanted).await.unwrap();
    let expected = [Some(0x12), None, None, Some(0x10), Some(0x12), None].map(|byte| byte.map(|byte| vec![byte; 16]));
    assert_eq!(found, expected);
    assert_eq!(store.fingerprint_pieces("x", &wanted).await.unwrap(), vec![None; wanted.len()]);
    assert!(store.fingerprint_pieces(TENANT, &[]).await.unwrap().is_empty());
}

pub(crate) async fn an_upload_that_was_given_up_leaves_no_people(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store).await;
    store.put_fingerprint_piece(id, FingerprintPiece::Set(0), &[1; 32]).await.unwrap();
    store.discard_upload(id).await.unwrap();
    assert_eq!(bench.count("people_pieces").await, 0);
    assert!(is_conflict(&store.put_fingerprint_piece(id, FingerprintPiece::Set(0), &[1; 32]).await));
    assert!(is_conflict(&store.put_fingerprint_piece(Uuid::now_v7(), FingerprintPiece::Set(0), &[1; 32]).await));
}

pub(crate) async fn of_two_uploads_the_second_sees_the_first(bench: &impl Bench) {
    let store = bench.store();
    let seen = uploads(&*store).await;
    let (first, second) = (begun(&*store).await, begun(&*store).await);
    let admit = |id| {
        let store = store.clone();
        async move { store.admit_dataset(&dataset_record(id, 0), Some(&fingerprint(seen)), &audit_entry()).await.unwrap() }
    };
    let admitted = tokio::join!(admit(first), admit(second));
    assert!(admitted.0 != admitted.1, "{admitted:?}");
    assert_eq!((bench.count("datasets").await, bench.count("dataset_people").await), (1, 1));
    let late = if admitted.0 { second } else { first };
    let now = fingerprint(uploads(&*store).await);
    assert!(store.admit_dataset(&dataset_record(late, 0), Some(&now), &audit_entry()).await.unwrap());
    assert_eq!(bench.count("dataset_people").await, 2);
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
