//! Chains carried from one store to another.

use uuid::Uuid;

use super::chains::{begun, load, next, night, night_after};
use super::people::{define, population};
use super::{Bench, TENANT, at, audit_entry, ciphertext};
use crate::ports::{
    CarriedBytes, CommitOutcome, ImportSummary, LedgerCopy, PortableChain, PortableChainPiece, PortableChainState,
    PortablePopulation, PortableRelease, Store, StoredChainState,
};
use crate::publication::ReleaseStatus;
use crate::vault::Vault;

/// A release of the chain that was made elsewhere.
fn release_elsewhere(number: u8) -> PortableRelease {
    PortableRelease {
        id: Uuid::from_u128(u128::from(number)),
        tenant: TENANT.into(),
        series: "clinic".into(),
        content_hash: [number; 32],
        reuse_key: [number; 32],
        method: "anatomy".into(),
        created_at: at(i64::from(number)),
        status: ReleaseStatus::Published,
        was_read: false,
    }
}

/// A chain that was carried on elsewhere, up to a version.
fn elsewhere(version: u8) -> LedgerCopy {
    let (id, job) = (Uuid::from_u128(77), Uuid::from_u128(1000 + u128::from(version)));
    let piece = |piece: u32| PortableChainPiece {
        chain: id,
        piece,
        payload: CarriedBytes::of_ciphertext(&ciphertext(&[version; 3])),
    };
    let release = release_elsewhere(version).id;
    let state = PortableChainState { version: version.into(), job, attempt: 2, pieces: 2, bytes: 6, release };
    LedgerCopy {
        releases: (1..=version).map(release_elsewhere).collect(),
        populations: vec![PortablePopulation {
            tenant: TENANT.into(),
            name: "clinic".into(),
            population: population(&[]),
        }],
        chains: vec![PortableChain {
            tenant: TENANT.into(),
            population: "clinic".into(),
            id,
            wrapped_key: vec![42; 73],
            ended_at: None,
            state: Some(state),
            pending: None,
        }],
        pieces: vec![piece(0), piece(1)],
        ..LedgerCopy::default()
    }
}

async fn import(store: &dyn Store, copy: &LedgerCopy) -> Result<ImportSummary, String> {
    store.import_ledger(copy, at(50)).await.unwrap().map_err(|conflict| conflict.to_string())
}

async fn state(store: &dyn Store) -> Option<StoredChainState> {
    store.chain(TENANT, "clinic").await.unwrap().unwrap().current
}

pub(crate) async fn a_chain_is_carried_whole_and_once(bench: &impl Bench) {
    let store = bench.store();
    // a job that begins a chain here comes too late
    let unused = begun(&*store, "clinic").await;
    let late = night(&*store, 9, unused.id, 0).await;
    let first = elsewhere(1);
    let done = import(&*store, &first).await.unwrap();
    assert_eq!(done, ImportSummary { releases: 1, populations: 1, chains: 1, ..ImportSummary::default() });
    let current = state(&*store).await.unwrap();
    assert_eq!(PortableChainState::from(current), first.chains[0].state.unwrap());
    assert_eq!(store.commit(late).await.unwrap(), CommitOutcome::ChainMoved);
    let piece = store.chain_piece(first.chains[0].id, &current, 1).await.unwrap();
    assert_eq!(piece, Some(ciphertext(&[1; 3])));
    assert_eq!(store.copy_ledger(None).await.unwrap().chains, first.chains);
    assert_eq!(store.copy_ledger(Some("x")).await.unwrap().chains, []);
    assert_eq!(import(&*store, &first).await.unwrap(), ImportSummary::default());
    // what was not written here stays for the next release
    let swept = store.sweep(chrono::Utc::now(), std::time::Duration::ZERO).await.unwrap();
    assert_eq!((swept.chain_states, bench.count("chain_pieces").await), (0, 2));

    let third = elsewhere(3);
    let done = import(&*store, &third).await.unwrap();
    assert_eq!(done, ImportSummary { releases: 2, chains: 1, ..ImportSummary::default() });
    assert_eq!(state(&*store).await.map(|state| state.version), Some(3));
    assert_eq!(import(&*store, &first).await.unwrap(), ImportSummary::default(), "an older file");
    assert_eq!(state(&*store).await.map(|state| state.version), Some(3));

    // the end of a chain is carried too, and stands whatever comes later
    let mut ended = third.clone();
    ended.pieces = Vec::new();
    (ended.chains[0].ended_at, ended.chains[0].state, ended.chains[0].wrapped_key) = (Some(at(9)), None, Vec::new());
    assert_eq!(import(&*store, &ended).await.unwrap().chains, 1);
    assert_eq!((state(&*store).await, bench.count("chain_keys").await), (None, 0));
    assert_eq!(import(&*store, &elsewhere(4)).await.unwrap().chains, 0);
    let found = store.chain(TENANT, "clinic").await.unwrap().unwrap();
    assert_eq!((found.current, found.ended_at), (None, Some(at(9))));
}

pub(crate) async fn a_chain_goes_on_in_one_store_alone(bench: &impl Bench) {
    let store = bench.store();
    import(&*store, &elsewhere(1)).await.unwrap();
    // a release of this store goes on from the carried state
    let chain = store.chain(TENANT, "clinic").await.unwrap().unwrap();
    let own = night_after(&*store, 9, chain.id, 1).await;
    let here = state(&*store).await;
    assert_eq!(here.map(|state| (state.version, state.release)), Some((2, own.release.id)));
    assert_eq!(import(&*store, &elsewhere(1)).await.unwrap(), ImportSummary::default(), "it is ahead of the file");
    for version in [2, 3] {
        let refused = import(&*store, &elsewhere(version)).await.unwrap_err();
        assert!(refused.contains("in both stores since"), "{refused}");
    }
    let mut other = elsewhere(1);
    other.chains[0].id = Uuid::from_u128(78);
    let refused = import(&*store, &other).await.unwrap_err();
    assert!(refused.contains("was republished in both stores"), "{refused}");
    let mut terms = elsewhere(1);
    terms.populations[0].population.republication = Some(serde_json::json!({"l": 3}));
    let refused = import(&*store, &terms).await.unwrap_err();
    assert!(refused.contains("by other terms here"), "{refused}");
    let mut held = elsewhere(1);
    held.chains[0].pending = Some(Uuid::from_u128(5));
    let refused = import(&*store, &held).await.unwrap_err();
    assert!(refused.contains("approve or reject it"), "{refused}");
    assert_eq!((state(&*store).await, bench.count("imported_releases").await), (here, 1));
}

pub(crate) async fn a_begun_chain_is_not_carried(bench: &impl Bench) {
    let (store, vault) = (bench.store(), Vault::in_memory().unwrap());
    define(&*store, "clinic", &["k"]).await;
    load(&*store, &vault, false).await.unwrap();
    begun(&*store, "births").await;
    assert_eq!(store.copy_ledger(None).await.unwrap().chains, []);
    let chain = load(&*store, &vault, false).await.unwrap();
    let first = next(&*store, 1, &chain, b"state", ReleaseStatus::Held).await;
    let [carried] = &store.copy_ledger(None).await.unwrap().chains[..] else { panic!("one has a release") };
    assert_eq!((carried.state, carried.pending), (None, Some(first.release.id)));
    store.end_chain(TENANT, "clinic", at(9), &audit_entry()).await.unwrap();
    let [carried] = &store.copy_ledger(None).await.unwrap().chains[..] else { panic!("its end is carried") };
    assert_eq!((carried.state, carried.pending, carried.ended_at), (None, None, Some(at(9))));
    assert!(carried.wrapped_key.is_empty());
}
