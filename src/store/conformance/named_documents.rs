//! Named documents and their versions: what holds for policies and taxonomies alike, and what holds for one of them.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Bench, TENANT, at, by, is_conflict};
use crate::ports::{AuditAction, AuditFilter, DocumentKind, NamedDocument, NewDocument, Store};

const KINDS: [DocumentKind; 2] = [DocumentKind::Policy, DocumentKind::Taxonomy];

/// The tables of a kind: of names, and of versions.
const fn tables(kind: DocumentKind) -> [&'static str; 2] {
    match kind {
        DocumentKind::Policy => ["policies", "policy_versions"],
        DocumentKind::Taxonomy => ["taxonomies", "taxonomy_versions"],
    }
}

/// A content that differs by number.
fn content(kind: DocumentKind, number: u32) -> Value {
    match kind {
        DocumentKind::Policy => json!({"a": number}),
        DocumentKind::Taxonomy => json!({"r": [number.to_string()]}),
    }
}

fn new_document(kind: DocumentKind, tenant: &str, name: &str, content: Value) -> NewDocument {
    let audit_entry = by(tenant, Some(Uuid::now_v7()), kind.put_action(), at(1));
    NewDocument { kind, id: Uuid::now_v7(), name: name.to_owned(), content, audit_entry }
}

async fn put(store: &dyn Store, kind: DocumentKind, name: &str, content: Value) -> (NamedDocument, bool) {
    store.put_document(&new_document(kind, TENANT, name, content)).await.unwrap()
}

/// The number of logged writes of a kind.
async fn logged(store: &dyn Store, kind: DocumentKind) -> usize {
    let filter = AuditFilter { action: Some(kind.put_action()), ..AuditFilter::default() };
    store.audit(TENANT, filter, None, 9).await.unwrap().items.len()
}

pub(crate) async fn a_document_is_read_as_it_was_written(bench: &impl Bench) {
    let store = bench.store();
    let contents = [
        (DocumentKind::Policy, json!({"method": {"rules": ["a -> \"b\""]}, "note": [1, 1.5, null, "\u{e9}\u{0}"]})),
        (DocumentKind::Taxonomy, json!({"Any": {"a": ["x", null, "\u{e9}\u{0}"], "b": ["1"]}})),
    ];
    for (kind, content) in contents {
        let new = new_document(kind, TENANT, "job", content.clone());
        let (made, fresh) = store.put_document(&new).await.unwrap();
        assert!(fresh);
        assert_eq!((made.version.name.as_str(), made.version.version, made.version.created_at), ("job", 1, at(1)));
        assert_eq!((made.version.id, made.version.pin().as_str(), &made.content), (new.id, "job-v1", &content));
        for version in [None, Some(1)] {
            assert_eq!(store.document(kind, TENANT, "job", version).await.unwrap().as_ref(), Some(&made));
        }
        for (name, version) in [("job", Some(0)), ("job", Some(2)), ("jo", None), ("job-v1", None)] {
            assert_eq!(store.document(kind, TENANT, name, version).await.unwrap(), None, "{name} {version:?}");
        }
        let log = store.audit(TENANT, AuditFilter::default(), None, 1).await.unwrap().items;
        assert_eq!(log, [new.audit_entry_for(1)]);
        assert_eq!((log[0].object.as_str(), log[0].action.as_str()), ("job-v1", kind.put_action().as_str()));
        // what cannot be logged is not done
        let taken = NewDocument { name: "other".to_owned(), id: Uuid::now_v7(), ..new };
        assert!(is_conflict(&store.put_document(&taken).await));
        for table in tables(kind) {
            assert_eq!(bench.count(table).await, 1, "{table}");
        }
    }
}

pub(crate) async fn an_equal_content_makes_no_version(bench: &impl Bench) {
    let store = bench.store();
    let contents = [
        // the order of members says nothing, that of elements does
        (DocumentKind::Policy, json!({"a": 1, "b": [2]}), json!({"b": [2], "a": 1}), json!({"a": 2})),
        (DocumentKind::Taxonomy, json!({"r": ["a", "b"]}), json!({"r": ["a", "b"]}), json!({"r": ["b", "a"]})),
    ];
    for (kind, content, equal, other) in contents {
        let (first, _) = put(&*store, kind, "d", content).await;
        assert_eq!(put(&*store, kind, "d", equal).await, (first.clone(), false));
        let (second, fresh) = put(&*store, kind, "d", other).await;
        assert_eq!((second.version.version, fresh), (2, true));
        // equal to an earlier one only: it is the next version all the same
        let (third, fresh) = put(&*store, kind, "d", first.content.clone()).await;
        assert_eq!((third.version.version, fresh), (3, true));
        assert_eq!(store.document(kind, TENANT, "d", None).await.unwrap(), Some(third));
        assert_eq!(store.document(kind, TENANT, "d", Some(1)).await.unwrap(), Some(first));
        assert_eq!(logged(&*store, kind).await, 3);
    }
}

pub(crate) async fn documents_are_a_tenants_own_and_listed(bench: &impl Bench) {
    let store = bench.store();
    for kind in KINDS {
        for (name, number) in [("x", 1), ("y", 1), ("z", 1), ("x", 2)] {
            put(&*store, kind, name, content(kind, number)).await;
        }
        let (foreign, _) = store.put_document(&new_document(kind, "other", "x", content(kind, 9))).await.unwrap();
        assert_eq!(foreign.version.version, 1);
        assert_eq!(store.document(kind, TENANT, "x", None).await.unwrap().unwrap().content, content(kind, 2));
        assert_eq!(store.document(kind, "other", "y", None).await.unwrap(), None);
        assert_eq!(store.document(kind, "other", "x", Some(2)).await.unwrap(), None);
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = store.documents(kind, TENANT, cursor, 2).await.unwrap();
            listed.extend(page.items.into_iter().map(|item| item.pin()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed, ["z-v1", "y-v1", "x-v2"]);
        assert_eq!(store.documents(kind, "other", None, 9).await.unwrap().items.len(), 1);
    }
}

pub(crate) async fn versions_of_a_policy_are_listed(bench: &impl Bench) {
    let store = bench.store();
    for (name, number) in [("x", 1), ("y", 1), ("x", 2)] {
        put(&*store, DocumentKind::Policy, name, content(DocumentKind::Policy, number)).await;
    }
    let foreign = new_document(DocumentKind::Policy, "other", "x", content(DocumentKind::Policy, 9));
    store.put_document(&foreign).await.unwrap();
    let pins = async |tenant: &str, name: &str| {
        let page = store.policy_versions(tenant, name, None, 9).await.unwrap();
        page.items.iter().map(|item| item.pin()).collect::<Vec<_>>()
    };
    assert_eq!(pins(TENANT, "x").await, ["x-v2", "x-v1"]);
    assert_eq!(pins("other", "x").await, ["x-v1"]);
    assert!(pins("other", "y").await.is_empty());
    let first = store.policy_versions(TENANT, "x", None, 1).await.unwrap();
    let second = store.policy_versions(TENANT, "x", first.next, 1).await.unwrap();
    assert_eq!((second.items[0].version, second.next), (1, None));
}

pub(crate) async fn deleted_versions_of_a_taxonomy_do_not_come_again(bench: &impl Bench) {
    let (store, kind) = (bench.store(), DocumentKind::Taxonomy);
    put(&*store, kind, "t", json!({"r": ["a"]})).await;
    let (second, _) = put(&*store, kind, "t", json!({"r": ["b"]})).await;
    let audit_entry = |tenant: &str| by(tenant, Some(Uuid::now_v7()), AuditAction::DeleteTaxonomy, at(2));
    assert_eq!(store.delete_taxonomy("t", &audit_entry("other")).await.unwrap(), None);
    assert_eq!(store.delete_taxonomy("u", &audit_entry(TENANT)).await.unwrap(), None);
    assert_eq!(store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items.len(), 2);
    let done = audit_entry(TENANT);
    assert_eq!(store.delete_taxonomy("t", &done).await.unwrap(), Some(second.version.clone()));
    assert_eq!(store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items[0], done);
    assert_eq!(store.delete_taxonomy("t", &audit_entry(TENANT)).await.unwrap(), None);
    assert_eq!(store.document(kind, TENANT, "t", Some(2)).await.unwrap(), None);
    assert!(store.documents(kind, TENANT, None, 9).await.unwrap().items.is_empty());
    let (third, fresh) = put(&*store, kind, "t", second.content).await;
    assert_eq!((third.version.version, fresh), (3, true));
    assert_eq!(store.document(kind, TENANT, "t", Some(1)).await.unwrap(), None);
    // what cannot be logged is not done
    assert!(is_conflict(&store.delete_taxonomy("t", &done).await));
    assert_eq!(store.document(kind, TENANT, "t", None).await.unwrap(), Some(third));
}

pub(crate) async fn versions_written_at_once_are_all_there(bench: &impl Bench) {
    let store = bench.store();
    for kind in KINDS {
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let store = std::sync::Arc::clone(&store);
                tokio::spawn(async move { put(&*store, kind, "d", content(kind, number)).await.0 })
            })
            .collect();
        let mut written = Vec::new();
        for writer in writers {
            written.push(writer.await.unwrap());
        }
        written.sort_by_key(|record| record.version.version);
        let numbers: Vec<u32> = written.iter().map(|record| record.version.version).collect();
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
        for record in written {
            let read = store.document(kind, TENANT, "d", Some(record.version.version)).await.unwrap();
            assert_eq!(read, Some(record));
        }
    }
}

pub(crate) async fn versions_do_not_change(bench: &impl Bench) {
    let store = bench.store();
    for kind in KINDS {
        let (made, _) = put(&*store, kind, "d", content(kind, 1)).await;
        let update = match kind {
            DocumentKind::Policy => "UPDATE policy_versions SET specification = '{}'",
            DocumentKind::Taxonomy => "UPDATE taxonomy_versions SET tree = '{}'",
        };
        assert!(bench.refuses(update).await);
        assert_eq!(store.document(kind, TENANT, "d", Some(1)).await.unwrap(), Some(made));
    }
    // a policy is kept for ever
    assert!(bench.refuses("DELETE FROM policy_versions").await);
    assert!(store.document(DocumentKind::Policy, TENANT, "d", Some(1)).await.unwrap().is_some());
}
