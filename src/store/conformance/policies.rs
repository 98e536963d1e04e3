//! Policies and their versions.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Bench, TENANT, at, by};
use crate::ports::{AuditAction, AuditFilter, DocumentKind, NamedDocument, NewDocument, Store};

fn new_policy(tenant: &str, name: &str, specification: Value) -> NewDocument {
    let audit_entry = by(tenant, Some(Uuid::now_v7()), AuditAction::PutPolicy, at(1));
    NewDocument {
        kind: DocumentKind::Policy,
        id: Uuid::now_v7(),
        name: name.to_owned(),
        content: specification,
        audit_entry,
    }
}

async fn put(store: &dyn Store, name: &str, specification: Value) -> (NamedDocument, bool) {
    store.put_document(&new_policy(TENANT, name, specification)).await.unwrap()
}

pub(crate) async fn a_policy_is_read_as_it_was_written(bench: &impl Bench) {
    let store = bench.store();
    let specification =
        json!({"method": {"type": "versatile", "rules": ["a -> \"b\""]}, "note": [1, 1.5, null, "é\u{0}"]});
    let new = new_policy(TENANT, "hospital", specification.clone());
    let (made, fresh) = store.put_document(&new).await.unwrap();
    assert!(fresh);
    assert_eq!((made.version.name.as_str(), made.version.version, made.version.created_at), ("hospital", 1, at(1)));
    assert_eq!((made.version.id, made.version.pin().as_str(), &made.content), (new.id, "hospital-v1", &specification));
    for version in [None, Some(1)] {
        assert_eq!(
            store.document(DocumentKind::Policy, TENANT, "hospital", version).await.unwrap().as_ref(),
            Some(&made)
        );
    }
    for (name, version) in [("hospital", Some(0)), ("hospital", Some(2)), ("hospita", None), ("hospital-v1", None)] {
        assert_eq!(
            store.document(DocumentKind::Policy, TENANT, name, version).await.unwrap(),
            None,
            "{name} {version:?}"
        );
    }
    let log = store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items;
    assert_eq!(log, [new.audit_entry_for(1)]);
    assert_eq!(log[0].object, "hospital-v1");
}

pub(crate) async fn an_equal_specification_makes_no_version(bench: &impl Bench) {
    let store = bench.store();
    let (first, _) = put(&*store, "p", json!({"a": 1, "b": [2]})).await;
    let (again, fresh) = put(&*store, "p", json!({"b": [2], "a": 1})).await;
    assert_eq!((again, fresh), (first.clone(), false));
    let (second, fresh) = put(&*store, "p", json!({"a": 2})).await;
    assert_eq!((second.version.version, fresh), (2, true));
    // equal to an earlier one only: it is the next version all the same
    let (third, fresh) = put(&*store, "p", first.content.clone()).await;
    assert_eq!((third.version.version, fresh), (3, true));
    assert_eq!(store.document(DocumentKind::Policy, TENANT, "p", None).await.unwrap(), Some(third));
    assert_eq!(store.document(DocumentKind::Policy, TENANT, "p", Some(1)).await.unwrap(), Some(first));
    assert_eq!(store.audit(TENANT, AuditFilter::default(), None, 9).await.unwrap().items.len(), 3);
}

pub(crate) async fn policies_are_a_tenants_own_and_listed(bench: &impl Bench) {
    let store = bench.store();
    for (name, a) in [("x", 1), ("y", 1), ("z", 1), ("x", 2)] {
        put(&*store, name, json!({"a": a})).await;
    }
    let (foreign, _) = store.put_document(&new_policy("other", "x", json!({"a": 9}))).await.unwrap();
    assert_eq!(foreign.version.version, 1);
    assert_eq!(
        store.document(DocumentKind::Policy, TENANT, "x", None).await.unwrap().unwrap().content,
        json!({"a": 2})
    );
    assert_eq!(store.document(DocumentKind::Policy, "other", "y", None).await.unwrap(), None);
    assert_eq!(store.document(DocumentKind::Policy, "other", "x", Some(2)).await.unwrap(), None);
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.documents(DocumentKind::Policy, TENANT, cursor, 2).await.unwrap();
        listed.extend(page.items.into_iter().map(|item| item.pin()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, ["z-v1", "y-v1", "x-v2"]);
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
    assert_eq!(store.documents(DocumentKind::Policy, "other", None, 9).await.unwrap().items.len(), 1);
}

pub(crate) async fn versions_written_at_once_are_all_there(bench: &impl Bench) {
    let store = bench.store();
    let writers: Vec<_> = (0..8)
        .map(|a| {
            let store = std::sync::Arc::clone(&store);
            tokio::spawn(async move { put(&*store, "p", json!({"a": a})).await.0 })
        })
        .collect();
    let mut written = Vec::new();
    for writer in writers {
        written.push(writer.await.unwrap());
    }
    written.sort_by_key(|record| record.version.version);
    assert_eq!(written.iter().map(|record| record.version.version).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    for record in written {
        let read = store.document(DocumentKind::Policy, TENANT, "p", Some(record.version.version)).await.unwrap();
        assert_eq!(read, Some(record));
    }
}

pub(crate) async fn versions_do_not_change(bench: &impl Bench) {
    let store = bench.store();
    let (made, _) = put(&*store, "p", json!({"a": 1})).await;
    assert!(bench.refuses("UPDATE policy_versions SET specification = '{}'").await);
    assert!(bench.refuses("DELETE FROM policy_versions").await);
    assert_eq!(store.document(DocumentKind::Policy, TENANT, "p", Some(1)).await.unwrap(), Some(made));
}
