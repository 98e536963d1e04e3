//! Taxonomies and their versions.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Bench, TENANT, at, by, is_conflict};
use crate::ports::{AuditAction, AuditFilter, DocumentKind, NamedDocument, NewDocument, Store};

fn new_taxonomy(tenant: &str, name: &str, tree: Value) -> NewDocument {
    let audit_entry = by(tenant, Some(Uuid::now_v7()), AuditAction::PutTaxonomy, at(1));
    NewDocument { kind: DocumentKind::Taxonomy, id: Uuid::now_v7(), name: name.to_owned(), content: tree, audit_entry }
}

async fn put(store: &dyn Store, name: &str, tree: Value) -> (NamedDocument, bool) {
    store.put_document(&new_taxonomy(TENANT, name, tree)).await.unwrap()
}

pub(crate) async fn a_taxonomy_is_read_as_it_was_written(bench: &impl Bench) {
    let store = bench.store();
    let tree = json!({"Any": {"a": ["x", null, "\u{e9}\u{0}"], "b": ["1"]}});
    let new = new_taxonomy(TENANT, "job", tree.clone());
    let (made, fresh) = store.put_document(&new).await.unwrap();
    assert!(fresh);
    assert_eq!((made.version.name.as_str(), made.version.version, made.version.created_at), ("job", 1, at(1)));
    assert_eq!((made.version.id, made.version.pin().as_str(), &made.content), (new.id, "job-v1", &tree));
    for version in [None, Some(1)] {
        assert_eq!(store.document(DocumentKind::Taxonomy, TENANT, "job", version).await.unwrap().as_ref(), Some(&made));
    }
    for (name, version) in [("job", Some(0)), ("job", Some(2)), ("jo", None), ("job-v1", None)] {
        assert_eq!(
            store.document(DocumentKind::Taxonomy, TENANT, name, version).await.unwrap(),
            None,
            "{name} {version:?}"
        );
    }
    let log = store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items;
    assert_eq!(log, [new.audit_entry_for(1)]);
    assert_eq!((log[0].object.as_str(), log[0].action.as_str()), ("job-v1", "taxonomy.put"));
    // what cannot be logged is not done
    let taken = NewDocument { name: "other".to_owned(), id: Uuid::now_v7(), ..new };
    assert!(is_conflict(&store.put_document(&taken).await));
    assert_eq!((bench.count("taxonomies").await, bench.count("taxonomy_versions").await), (1, 1));
}

pub(crate) async fn an_equal_tree_makes_no_version(bench: &impl Bench) {
    let store = bench.store();
    let (first, _) = put(&*store, "t", json!({"r": ["a", "b"]})).await;
    assert_eq!(put(&*store, "t", json!({"r": ["a", "b"]})).await, (first.clone(), false));
    let (second, fresh) = put(&*store, "t", json!({"r": ["b", "a"]})).await;
    assert_eq!((second.version.version, fresh), (2, true));
    // equal to an earlier one only: it is the next version all the same
    let (third, fresh) = put(&*store, "t", first.content.clone()).await;
    assert_eq!((third.version.version, fresh), (3, true));
    assert_eq!(store.document(DocumentKind::Taxonomy, TENANT, "t", None).await.unwrap(), Some(third));
    assert_eq!(store.document(DocumentKind::Taxonomy, TENANT, "t", Some(1)).await.unwrap(), Some(first));
    assert_eq!(store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items.len(), 3);
}

pub(crate) async fn taxonomies_are_a_tenants_own_and_listed(bench: &impl Bench) {
    let store = bench.store();
    for (name, leaf) in [("x", "1"), ("y", "1"), ("z", "1"), ("x", "2")] {
        put(&*store, name, json!({"r": [leaf]})).await;
    }
    let (foreign, _) = store.put_document(&new_taxonomy("other", "x", json!({"r": ["9"]}))).await.unwrap();
    assert_eq!(foreign.version.version, 1);
    assert_eq!(
        store.document(DocumentKind::Taxonomy, TENANT, "x", None).await.unwrap().unwrap().content,
        json!({"r": ["2"]})
    );
    assert_eq!(store.document(DocumentKind::Taxonomy, "other", "y", None).await.unwrap(), None);
    assert_eq!(store.document(DocumentKind::Taxonomy, "other", "x", Some(2)).await.unwrap(), None);
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.documents(DocumentKind::Taxonomy, TENANT, cursor, 2).await.unwrap();
        listed.extend(page.items.into_iter().map(|item| item.pin()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, ["z-v1", "y-v1", "x-v2"]);
    assert_eq!(store.documents(DocumentKind::Taxonomy, "other", None, 9).await.unwrap().items.len(), 1);
}

pub(crate) async fn deleted_versions_do_not_come_again(bench: &impl Bench) {
    let store = bench.store();
    put(&*store, "t", json!({"r": ["a"]})).await;
    let (second, _) = put(&*store, "t", json!({"r": ["b"]})).await;
    let audit_entry = |tenant: &str| by(tenant, Some(Uuid::now_v7()), AuditAction::DeleteTaxonomy, at(2));
    assert_eq!(store.delete_taxonomy("t", &audit_entry("other")).await.unwrap(), None);
    assert_eq!(store.delete_taxonomy("u", &audit_entry(TENANT)).await.unwrap(), None);
    assert_eq!(store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items.len(), 2);
    let done = audit_entry(TENANT);
    assert_eq!(store.delete_taxonomy("t", &done).await.unwrap(), Some(second.version.clone()));
    assert_eq!(store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items[0], done);
    assert_eq!(store.delete_taxonomy("t", &audit_entry(TENANT)).await.unwrap(), None);
    assert_eq!(store.document(DocumentKind::Taxonomy, TENANT, "t", Some(2)).await.unwrap(), None);
    assert!(store.documents(DocumentKind::Taxonomy, TENANT, None, 9).await.unwrap().items.is_empty());
    let (third, fresh) = put(&*store, "t", second.content).await;
    assert_eq!((third.version.version, fresh), (3, true));
    assert_eq!(store.document(DocumentKind::Taxonomy, TENANT, "t", Some(1)).await.unwrap(), None);
    // what cannot be logged is not done
    assert!(is_conflict(&store.delete_taxonomy("t", &done).await));
    assert_eq!(store.document(DocumentKind::Taxonomy, TENANT, "t", None).await.unwrap(), Some(third));
}

pub(crate) async fn versions_written_at_once_are_all_there(bench: &impl Bench) {
    let store = bench.store();
    let writers: Vec<_> = (0..8)
        .map(|leaf| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move { put(&*store, "t", json!({"r": [leaf.to_string()]})).await.0 })
        })
        .collect();
    let mut written = Vec::new();
    for writer in writers {
        written.push(writer.await.unwrap());
    }
    written.sort_by_key(|record| record.version.version);
    assert_eq!(written.iter().map(|record| record.version.version).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    for record in written {
        let read = store.document(DocumentKind::Taxonomy, TENANT, "t", Some(record.version.version)).await.unwrap();
        assert_eq!(read, Some(record));
    }
}

pub(crate) async fn versions_do_not_change(bench: &impl Bench) {
    let store = bench.store();
    let (made, _) = put(&*store, "t", json!({"r": ["a"]})).await;
    assert!(bench.refuses("UPDATE taxonomy_versions SET tree = '{}'").await);
    assert_eq!(store.document(DocumentKind::Taxonomy, TENANT, "t", Some(1)).await.unwrap(), Some(made));
}
