//! API keys and the audit log.

use uuid::Uuid;

use super::{Bench, TENANT, at, audit_entry, by, is_conflict};
use crate::identity::{Actor, ApiKey, Caller, Preset, Token};
use crate::ports::{AuditAction, AuditEntry, AuditFilter, Cursor, StoreError};

pub(crate) fn api_key(tenant: &str) -> (ApiKey, Token) {
    let id = Uuid::now_v7();
    let token = Token::draw(id).unwrap();
    let key = ApiKey {
        id,
        tenant: tenant.to_owned(),
        name: "nightly \"load\"".to_owned(),
        scopes: Preset::Pipeline.scopes(),
        hash: token.hash(),
        created_at: at(0),
        expires_at: Some(at(60)),
        revoked_at: None,
        populations: vec!["births".to_owned(), "clinic, \"b\"".to_owned()],
    };
    (key, token)
}

pub(crate) async fn a_key_is_read_as_it_was_written(bench: &impl Bench) {
    let store = bench.store();
    let (mut key, token) = api_key(TENANT);
    store.insert_key(&key, &audit_entry()).await.unwrap();
    let read = store.key(key.id).await.unwrap().unwrap();
    assert_eq!(read, key);
    assert!(read.admits(&token, at(59)) && !read.admits(&token, at(60)));
    assert!(is_conflict(&store.insert_key(&key, &audit_entry()).await));
    assert!(store.key(Uuid::now_v7()).await.unwrap().is_none());
    (key.id, key.expires_at, key.populations) = (Uuid::now_v7(), None, Vec::new());
    store.insert_key(&key, &audit_entry()).await.unwrap();
    assert_eq!(store.key(key.id).await.unwrap().unwrap(), key);
}

pub(crate) async fn a_first_key_is_the_first(bench: &impl Bench) {
    let store = bench.store();
    let (first, second) = (api_key(TENANT).0, api_key("other").0);
    assert!(store.insert_first_key(&first, &audit_entry()).await.unwrap());
    assert!(!store.insert_first_key(&second, &audit_entry()).await.unwrap());
    assert_eq!(store.keys(None).await.unwrap(), [first]);
}

pub(crate) async fn a_revoked_key_stays_revoked(bench: &impl Bench) {
    let store = bench.store();
    let (key, token) = api_key(TENANT);
    store.insert_key(&key, &audit_entry()).await.unwrap();
    assert_eq!(store.revoke_key(key.id, at(5), &audit_entry()).await.unwrap().revoked_at, Some(at(5)));
    assert_eq!(store.revoke_key(key.id, at(6), &audit_entry()).await.unwrap().revoked_at, Some(at(5)));
    assert!(!store.key(key.id).await.unwrap().unwrap().admits(&token, at(4)));
    assert!(matches!(store.revoke_key(Uuid::now_v7(), at(5), &audit_entry()).await, Err(StoreError::NotFound)));
}

pub(crate) async fn keys_are_listed_by_tenant(bench: &impl Bench) {
    let store = bench.store();
    let (here, there) = (api_key(TENANT).0, api_key("other").0);
    store.insert_key(&here, &audit_entry()).await.unwrap();
    store.insert_key(&there, &audit_entry()).await.unwrap();
    assert_eq!(store.keys(Some(TENANT)).await.unwrap(), std::slice::from_ref(&here));
    assert_eq!(store.keys(None).await.unwrap(), [here, there]);
    assert_eq!(store.keys(Some("nobody")).await.unwrap(), []);
}

pub(crate) async fn the_audit_log_is_read_by_tenant(bench: &impl Bench) {
    let store = bench.store();
    let caller = |tenant: &str, actor| Caller { tenant: tenant.to_owned(), actor, ..Caller::local() };
    let key = Uuid::now_v7();
    let mut first = AuditEntry::new(&caller(TENANT, Actor::Key(key)), AuditAction::Upload, Uuid::now_v7(), at(1));
    first.detail = Some("more".to_owned());
    assert_eq!((first.key, first.actor.clone()), (Some(key), Some(format!("key:{key}"))));
    let subject = Actor::Subject { subject: "jo@example.org".to_owned(), until: at(9) };
    let second = AuditEntry::new(&caller(TENANT, subject), AuditAction::Cancel, Uuid::now_v7(), at(2));
    assert_eq!((second.key, second.actor.as_deref()), (None, Some("sub:jo@example.org")));
    let foreign = AuditEntry::new(&caller("other", Actor::Unnamed), AuditAction::Purge, Uuid::now_v7(), at(3));
    assert_eq!(foreign.actor, None);
    for entry in [&first, &second, &foreign] {
        store.append_audit(entry).await.unwrap();
    }
    assert!(is_conflict(&store.append_audit(&first).await));
    let newest = store.audit(TENANT, AuditFilter::default(), None, 1).await.unwrap();
    assert_eq!(newest.items, [second]);
    let cursor: Cursor = newest.next.unwrap().to_string().parse().unwrap();
    let oldest = store.audit(TENANT, AuditFilter::default(), Some(cursor), 1).await.unwrap();
    assert_eq!((oldest.items, oldest.next), (vec![first], None));
    assert_eq!(store.audit("other", AuditFilter::default(), None, 9).await.unwrap().items, [foreign]);
}

pub(crate) async fn the_audit_log_is_filtered(bench: &impl Bench) {
    let store = bench.store();
    for (seconds, action) in [(1, AuditAction::Upload), (2, AuditAction::Submit), (3, AuditAction::Upload)] {
        store.append_audit(&by(TENANT, None, action, at(seconds))).await.unwrap();
    }
    let times = async |since: Option<i64>, action| {
        let filter = AuditFilter { since: since.map(at), action };
        let page = store.audit(TENANT, filter, None, 9).await.unwrap();
        page.items.iter().map(|entry| entry.at).collect::<Vec<_>>()
    };
    assert_eq!(times(None, None).await, [at(3), at(2), at(1)]);
    assert_eq!(times(Some(2), None).await, [at(3), at(2)]);
    assert_eq!(times(None, Some(AuditAction::Upload)).await, [at(3), at(1)]);
    assert_eq!(times(Some(2), Some(AuditAction::Upload)).await, [at(3)]);
    assert!(times(Some(4), None).await.is_empty());
    assert!(times(None, Some(AuditAction::Purge)).await.is_empty());
}

pub(crate) async fn the_audit_log_only_grows(bench: &impl Bench) {
    let store = bench.store();
    let entry = AuditEntry::new(&Caller::local(), AuditAction::Plan, Uuid::now_v7(), at(1));
    store.append_audit(&entry).await.unwrap();
    assert!(bench.refuses("UPDATE audit_log SET action = 'nothing'").await);
    assert!(bench.refuses("DELETE FROM audit_log").await);
    assert_eq!(store.audit(&entry.tenant, AuditFilter::default(), None, 9).await.unwrap().items, [entry]);
}
