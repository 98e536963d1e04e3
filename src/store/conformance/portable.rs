//! The ledger carried from one store to another.

use serde::de::IgnoredAny;
use serde_json::json;
use uuid::Uuid;

use super::{Bench, TENANT, at, by, claim, commit_of, dataset_record, enqueue, job, release};
use crate::ports::{
    AuditAction, CommitOutcome, ImportSummary, JobStatus, LedgerCopy, PortableDataset, PortableDisclosure,
    PortableRelease, PortableRule, PortableStatement, PortableVersion, StatementRecord, Store,
};
use crate::publication::ReleaseStatus;

/// An upload that was made elsewhere, with whom it speaks of, and a statement of its series.
fn uploaded_elsewhere() -> LedgerCopy {
    let dataset = Uuid::now_v7();
    let record = dataset_record(dataset, 0);
    LedgerCopy {
        datasets: vec![PortableDataset {
            id: dataset,
            tenant: record.tenant,
            name: record.name,
            series: record.series,
            same_people: record.same_people,
            same_people_reason: record.same_people_reason,
            population: record.population,
            person: record.person,
            record_key: record.record_key,
            subject: Some("s".into()),
            max_rows_per_subject: record.max_rows_per_subject,
            created_at: record.created_at,
            rows: record.rows,
            bytes: record.bytes,
            format: record.format,
            content_hash: record.content_hash,
            overlaps: IgnoredAny,
            fingerprint: IgnoredAny,
        }],
        statements: vec![PortableStatement {
            id: Uuid::now_v7(),
            tenant: TENANT.into(),
            series: "declared".into(),
            body: json!({"reason": "é", "aliases": {"a": "b"}}),
            recorded_at: at(1),
        }],
        ..LedgerCopy::default()
    }
}

async fn whole(store: &dyn Store, tenant: Option<&str>) -> LedgerCopy {
    store.copy_ledger(tenant).await.unwrap()
}

/// A release that was made elsewhere, with one table and one rule.
fn elsewhere(reuse: u8, status: &str, was_read: bool) -> LedgerCopy {
    let id = Uuid::now_v7();
    LedgerCopy {
        releases: vec![PortableRelease {
            id,
            tenant: TENANT.into(),
            series: "people".into(),
            content_hash: [7; 32],
            reuse_key: [reuse; 32],
            method: "versatile".into(),
            created_at: at(1),
            status: ReleaseStatus::try_from(status).unwrap(),
            was_read,
        }],
        disclosures: vec![PortableDisclosure {
            id: Uuid::now_v7(),
            release: id,
            table: "t1".into(),
            body: json!({"attributes": ["a"], "standing": "plain", "large": 1e16}),
            recorded_at: at(1),
        }],
        rules: vec![PortableRule { release: id, number: 0, body: json!({"pointer": "/method/rules/0"}) }],
        versions: vec![PortableVersion {
            tenant: TENANT.into(),
            series: "people".into(),
            content_hash: [7; 32],
            version: 3,
        }],
        ..LedgerCopy::default()
    }
}

pub(crate) async fn a_ledger_is_carried_whole_and_once(bench: &impl Bench) {
    let store = bench.store();
    let copy = elsewhere(9, "published", false);
    let id = copy.releases[0].id;
    let done = store.import_ledger(&copy, at(5)).await.unwrap().unwrap();
    assert_eq!(done, ImportSummary { releases: 1, disclosures: 1, rules: 1, ..ImportSummary::default() });
    assert_eq!(whole(&*store, None).await, copy);
    assert_eq!(whole(&*store, Some(TENANT)).await, copy);
    assert_eq!(whole(&*store, Some("other")).await, LedgerCopy::default());
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (3, 1, 1));
    assert_eq!((ledger.entries[0].release, &ledger.entries[0].body), (id, &copy.disclosures[0].body));
    assert_eq!(store.releases_of_key(TENANT, &[9; 32]).await.unwrap().ended, Some((id, "elsewhere".to_owned())));
    assert_eq!(store.releases_of_key("other", &[9; 32]).await.unwrap().ended, None);
    assert!(store.is_imported(TENANT, id).await.unwrap());
    assert!(!store.is_imported("other", id).await.unwrap());
    // it is not there to be served, nor to be given to an equal job
    assert!(store.release(TENANT, id).await.unwrap().is_none());
    assert_eq!(enqueue(&*store, 9).await.status, JobStatus::Queued);

    assert_eq!(store.import_ledger(&copy, at(6)).await.unwrap().unwrap(), ImportSummary::default());
    // but for the dataset of the job
    let now = whole(&*store, None).await;
    assert_eq!(now.datasets.len(), 1);
    assert_eq!(LedgerCopy { datasets: Vec::new(), ..now }, copy);
}

pub(crate) async fn datasets_and_statements_are_carried(bench: &impl Bench) {
    let store = bench.store();
    let copy = uploaded_elsewhere();
    let id = copy.datasets[0].id;
    let done = store.import_ledger(&copy, at(5)).await.unwrap().unwrap();
    assert_eq!(done, ImportSummary { datasets: 1, statements: 1, ..ImportSummary::default() });
    assert_eq!(whole(&*store, None).await, copy);
    assert_eq!(whole(&*store, Some(TENANT)).await, copy);
    assert_eq!(whole(&*store, Some("other")).await, LedgerCopy::default());
    // it is there as one that was purged
    let there = store.dataset(TENANT, id).await.unwrap().unwrap();
    assert_eq!((there.purged_at, there.profiles, there.wrapped_key, there.chunks), (Some(at(5)), None, None, 0));
    assert_eq!((there.content_hash, there.subject.as_deref()), ([7; 32], Some("s")));
    let series = store.series(TENANT, "declared").await.unwrap();
    let PortableStatement { id: statement, body, recorded_at, .. } = copy.statements[0].clone();
    assert_eq!((series.version, series.statements), (1, vec![StatementRecord { id: statement, body, recorded_at }]));
    // nothing of it is for the sweep or for a purge
    store.purge_dataset(TENANT, id, at(6), &by(TENANT, None, AuditAction::Purge, at(6))).await.unwrap();

    let now = whole(&*store, None).await;
    assert_eq!(now.datasets.len(), 1);
    for again in [&copy, &now] {
        assert_eq!(store.import_ledger(again, at(7)).await.unwrap().unwrap(), ImportSummary::default());
    }
    assert_eq!(whole(&*store, None).await, now);
    assert_eq!(store.series(TENANT, "declared").await.unwrap().version, 1);
}

pub(crate) async fn import_outdates_releases_in_progress(bench: &impl Bench) {
    let store = bench.store();
    let (_, protection) = release(&*store, 1).await;
    let queued = enqueue(&*store, 2).await.id;
    let (claimed, token) = claim(&*store, at(3)).await;
    assert_eq!(claimed.job.id, queued);
    store.import_ledger(&elsewhere(9, "held", false), at(4)).await.unwrap().unwrap();
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (3, 3, 2));
    assert!(ledger.entries.iter().any(|entry| entry.release == protection));
    let mut commit = commit_of(&claimed.job, token, 1, at(5));
    assert_eq!(store.commit(commit.clone()).await.unwrap(), CommitOutcome::LedgerMoved);
    commit.ledger_version = 3;
    assert_eq!(store.commit(commit).await.unwrap(), CommitOutcome::Committed);
    // with entries of its own a store exceeds the version of the file
    store.import_ledger(&elsewhere(10, "held", false), at(6)).await.unwrap().unwrap();
    assert_eq!(store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().version, 5);
    assert_eq!(job(&*store, queued).await.status, JobStatus::Succeeded);
    // and its own ledger is nothing new to it
    let own = whole(&*store, None).await;
    assert_eq!((own.releases.len(), own.disclosures.len(), own.rules.len()), (4, 6, 4));
    assert_eq!(store.import_ledger(&own, at(7)).await.unwrap().unwrap(), ImportSummary::default());
    assert_eq!(whole(&*store, None).await, own);
}

pub(crate) async fn a_contradiction_imports_nothing(bench: &impl Bench) {
    let store = bench.store();
    let first = elsewhere(9, "held", false);
    store.import_ledger(&first, at(5)).await.unwrap().unwrap();
    release(&*store, 1).await;
    let before = whole(&*store, None).await;
    let own = whole(&*store, None).await.releases;
    let own = own.iter().find(|release| release.id != first.releases[0].id).unwrap();
    let changed = |change: &dyn Fn(&mut LedgerCopy)| {
        let mut copy = first.clone();
        change(&mut copy);
        // and something that could be recorded
        let other = elsewhere(11, "published", false);
        copy.releases.extend(other.releases);
        copy.disclosures.extend(other.disclosures);
        copy
    };
    let contradictions = [
        changed(&|copy| copy.releases[0].reuse_key = [1; 32]),
        changed(&|copy| copy.disclosures[0].body = json!({"attributes": []})),
        changed(&|copy| copy.rules[0].body = json!({"pointer": "/method/rules/1"})),
        // a release of this store: another status, a table more
        changed(&|copy| copy.releases.push(PortableRelease { status: ReleaseStatus::Withdrawn, ..own.clone() })),
        changed(&|copy| copy.releases.push(PortableRelease { status: ReleaseStatus::Rejected, ..own.clone() })),
        changed(&|copy| {
            copy.releases.push(own.clone());
            copy.disclosures[0].id = Uuid::now_v7();
            copy.disclosures[0].release = own.id;
        }),
    ];
    let there = uploaded_elsewhere();
    store.import_ledger(&there, at(5)).await.unwrap().unwrap();
    let before =
        LedgerCopy { datasets: whole(&*store, None).await.datasets, statements: there.statements.clone(), ..before };
    let importing = |change: &dyn Fn(&mut LedgerCopy)| {
        let mut copy = there.clone();
        change(&mut copy);
        let other = elsewhere(11, "published", false);
        LedgerCopy { datasets: copy.datasets, statements: copy.statements, ..other }
    };
    let unknown = |body: serde_json::Value| {
        importing(&move |copy: &mut LedgerCopy| {
            copy.statements[0] =
                PortableStatement { id: Uuid::now_v7(), body: body.clone(), ..copy.statements[0].clone() };
        })
    };
    let more = [
        importing(&|copy| copy.datasets[0].rows += 1),
        importing(&|copy| copy.statements[0].body = json!({"reason": "r", "aliases": {"a": "c"}})),
        // not the same statement, but the opposite
        unknown(json!({"reason": "r", "aliases": {"a": "c"}})),
        unknown(json!({"reason": "r", "aliases": {"b": "a"}})),
        unknown(json!({"reason": "r", "functions": {"b": ["a"]}})),
        unknown(json!({"states": "nothing"})),
    ];
    for (number, copy) in contradictions.iter().chain(&more).enumerate() {
        assert!(store.import_ledger(copy, at(6)).await.unwrap().is_err(), "contradiction {number}");
        assert_eq!(whole(&*store, None).await, before, "contradiction {number}");
    }
}

pub(crate) async fn a_carried_release_goes_on_in_its_life(bench: &impl Bench) {
    let store = bench.store();
    let held = elsewhere(9, "held", false);
    let id = held.releases[0].id;
    store.import_ledger(&held, at(5)).await.unwrap().unwrap();
    let advance = async |status: &str, was_read: bool| {
        let mut copy = held.clone();
        (copy.releases[0].status, copy.releases[0].was_read) = (ReleaseStatus::try_from(status).unwrap(), was_read);
        let done = store.import_ledger(&copy, at(6)).await.unwrap().map(|done| done.advanced);
        (done.ok(), whole(&*store, None).await.releases[0].status.to_string())
    };
    assert_eq!(advance("held", true).await, (Some(1), "held".into()));
    assert_eq!(advance("published", false).await, (Some(1), "published".into()));
    assert_eq!(advance("held", false).await, (Some(0), "published".into()), "an older file");
    assert_eq!(advance("rejected", true).await, (None, "published".into()));
    assert_eq!(advance("withdrawn", true).await, (Some(1), "withdrawn".into()));
    let ledger = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap();
    assert_eq!((ledger.version, ledger.entries.len(), ledger.rules.len()), (6, 1, 1));

    // one that was rejected before anybody read it blocks no release, also when an older file comes after
    let mut rejected = elsewhere(10, "rejected", false);
    let disclosed = (std::mem::take(&mut rejected.disclosures), std::mem::take(&mut rejected.rules));
    store.import_ledger(&rejected, at(7)).await.unwrap().unwrap();
    assert_eq!(store.releases_of_key(TENANT, &[10; 32]).await.unwrap().ended, None);
    (rejected.disclosures, rejected.rules) = disclosed;
    rejected.releases[0].status = ReleaseStatus::Held;
    assert_eq!(store.import_ledger(&rejected, at(8)).await.unwrap().unwrap(), ImportSummary::default());
    let entries = store.disclosures(TENANT, "people", &[7; 32]).await.unwrap().entries;
    assert!(entries.iter().all(|entry| entry.release == id));
}
