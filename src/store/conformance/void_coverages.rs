//! What is left of coverages that are void.

use uuid::Uuid;

use super::people::{announced, common, define, hash, live};
use super::{Bench, TENANT, is_conflict};
use crate::people::KeyedHash;
use crate::ports::{AlikeKind, AlikeMark, AnnouncementEnd, HASHES_PER_CALL};

pub(crate) async fn a_void_announcement_leaves_nothing(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let id = announced(&*store, "clinic", &[1, 2], 1).await;
    let block = AlikeMark { hash: hash(5), kind: AlikeKind::Block, weight: 4000 };
    let signature = AlikeMark { hash: hash(6), kind: AlikeKind::Signature(0), weight: 2 };
    store.add_alike_marks(TENANT, id, &[block, signature]).await.unwrap();
    for _ in 0..2 {
        store.end_announcement(TENANT, id, &AnnouncementEnd::Void).await.unwrap();
    }
    assert!(common(&*store, TENANT, "k", &[1, 2]).await.is_empty());
    assert_eq!(store.common_marks(TENANT, &[hash(5)], None).await.unwrap(), []);
    assert!(is_conflict(&store.draw_ticket(TENANT, id).await));
    assert!(is_conflict(&store.end_announcement(TENANT, id, &AnnouncementEnd::Live).await));
    live(&*store, "clinic", &[3], 2).await;
    assert_eq!((store.sweep_void_coverages().await.unwrap(), store.sweep_void_coverages().await.unwrap()), (3, 0));
    assert_eq!((bench.count("covered").await, bench.count("indexed_marks").await), (1, 0));
    assert_eq!(bench.count("coverage_signatures").await, 0);
}

pub(crate) async fn one_sweep_empties_all_void_coverages(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let large = announced(&*store, "clinic", &[1, 2], 100).await;
    let many: Vec<KeyedHash> = (100..21_100).map(hash).collect();
    for some in many.chunks(HASHES_PER_CALL) {
        store.cover_persons(TENANT, large, "k", some).await.unwrap();
    }
    store.end_announcement(TENANT, large, &AnnouncementEnd::Void).await.unwrap();
    for number in 1..20 {
        let small = announced(&*store, "clinic", &[number], number).await;
        store.end_announcement(TENANT, small, &AnnouncementEnd::Void).await.unwrap();
    }
    assert_eq!((store.sweep_void_coverages().await.unwrap(), bench.count("covered").await), (21_021, 0));
}

pub(crate) async fn announcements_of_a_vanished_job_are_void(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, "clinic", &["k"]).await;
    let done = live(&*store, "clinic", &[1], 1).await;
    let lost = announced(&*store, "clinic", &[2], 1).await;
    store.draw_ticket(TENANT, lost).await.unwrap();
    let other = announced(&*store, "clinic", &[3], 2).await;
    let job = Uuid::from_u128(1);
    assert_eq!(store.void_announcements("x", job, None).await.unwrap(), 0);
    assert_eq!(store.void_announcements(TENANT, job, None).await.unwrap(), 1);
    assert_eq!(store.void_announcements(TENANT, job, None).await.unwrap(), 0);
    let ticket = store.draw_ticket(TENANT, other).await.unwrap();
    let standing = store.standing_coverages(TENANT, ticket).await.unwrap();
    assert_eq!(standing.iter().map(|record| record.id).collect::<Vec<_>>(), [done]);
    // of the third job nothing is known either: it does not run
    assert_eq!(store.sweep_void_coverages().await.unwrap(), 2);
    assert_eq!(bench.count("covered").await, 1);
}
