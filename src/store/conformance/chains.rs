//! The states of chains.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use super::people::{announced, define, hash};
use super::{Bench, TENANT, WRAPPED, at, audit_entry, by, ciphertext, claim, commit_of, enqueue, is_conflict};
use crate::inputs::{ChainAttempt, ChainPlace, ChainReadError, LoadedChain, night_end};
use crate::people::{CoverageId, KeyedHash, LiveCoverage};
use crate::ports::{
    AnnouncedCoverage, AuditAction, CHAIN_PIECE_BYTES, ChainRecord, ChainStep, ClaimedJob, CommitOutcome,
    CoverageRecord, LeaseToken, NewChain, ReleaseAction, ReleaseCommit, Store, StoreError, StoredChainState,
    Transition, TransitionOutcome, WriteOutcome,
};
use crate::problem::{Kind, Problem};
use crate::publication::ReleaseStatus;
use crate::vault::Vault;

const CLINIC: &str = "clinic";

/// A chain with a key.
pub(super) async fn begun(store: &dyn Store, population: &str) -> ChainRecord {
    let (tenant, population) = (TENANT.to_owned(), population.to_owned());
    let new = NewChain { id: Uuid::now_v7(), tenant, population, wrapped_key: WRAPPED.to_vec() };
    store.begin_chain(&new).await.unwrap()
}

async fn chain(store: &dyn Store) -> ChainRecord {
    store.chain(TENANT, CLINIC).await.unwrap().unwrap()
}

/// A job that republishes, with its commit; its rows are those of no other.
pub(super) async fn night(store: &dyn Store, number: u8, chain: Uuid, from: u64) -> ReleaseCommit {
    enqueue(store, number).await;
    let (ClaimedJob { job, .. }, token) = claim(store, at(1)).await;
    for piece in 0..2 {
        let payload = ciphertext(&[number, piece]);
        store.put_chain_piece(chain, job.id, job.attempt, u32::from(piece), &payload).await.unwrap();
    }
    let mut commit = commit_of(&job, token, 0, at(2));
    commit.release.content_hash = [number; 32];
    commit.chain = Some(ChainStep { chain, from, pieces: 2, bytes: 4 });
    commit
}

/// A release that goes on from a version.
pub(super) async fn night_after(store: &dyn Store, number: u8, chain: Uuid, from: u64) -> ReleaseCommit {
    let made = night(store, number, chain, from).await;
    assert_eq!(commit(store, &made).await, CommitOutcome::Committed);
    made
}

fn held(commit: ReleaseCommit) -> ReleaseCommit {
    let mut commit = commit;
    commit.release.status = ReleaseStatus::Held;
    commit
}

/// What a commit leaves as the state of its chain.
fn state_of(commit: &ReleaseCommit, version: u64) -> StoredChainState {
    let release = &commit.release;
    StoredChainState { version, job: release.job, attempt: release.attempt, pieces: 2, bytes: 4, release: release.id }
}

async fn commit(store: &dyn Store, commit: &ReleaseCommit) -> CommitOutcome {
    store.commit(commit.clone()).await.unwrap()
}

async fn act(store: &dyn Store, release: Uuid, act: ReleaseAction) {
    let transition = Transition { release, act, reason: "why".into(), audit_entry: audit_entry() };
    assert_eq!(store.transition(&transition).await.unwrap(), TransitionOutcome::Done);
}

async fn sweep(store: &dyn Store) -> u64 {
    store.sweep(chrono::Utc::now(), Duration::from_secs(3600)).await.unwrap().chain_states
}

pub(crate) async fn a_chain_begins_once(bench: &impl Bench) {
    let store = bench.store();
    assert_eq!(store.chain(TENANT, CLINIC).await.unwrap(), None);
    let first = begun(&*store, CLINIC).await;
    assert_eq!((first.version(), first.current, first.pending, first.ended_at), (0, None, None, None));
    assert_eq!((first.tenant.as_str(), first.population.as_str()), (TENANT, CLINIC));
    assert_eq!(first.wrapped_key.as_deref(), Some(&WRAPPED[..]));
    assert_eq!(begun(&*store, CLINIC).await, first);
    assert_ne!(begun(&*store, "births").await.id, first.id);
    assert_eq!(store.chain("x", CLINIC).await.unwrap(), None);
    assert_eq!((bench.count("chains").await, bench.count("chain_keys").await), (2, 2));
    // nothing was republished of it
    let ended = store.end_chain(TENANT, CLINIC, at(3), &audit_entry()).await;
    assert!(matches!(ended, Err(StoreError::NotFound)), "{ended:?}");
    assert_eq!(chain(&*store).await, first);
}

pub(crate) async fn a_state_becomes_current_with_its_release(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store, CLINIC).await.id;
    let first = night(&*store, 1, id, 0).await;
    assert_eq!(chain(&*store).await.current, None, "nothing is current before the commit");
    let again = store.put_chain_piece(id, first.job, 1, 1, &ciphertext(b"x")).await;
    assert!(is_conflict(&again), "a piece is written once");
    assert!(is_conflict(&store.put_chain_piece(id, first.job, 2, 9, &ciphertext(b"x")).await), "another attempt");
    assert!(is_conflict(&store.put_chain_piece(Uuid::nil(), first.job, 1, 9, &ciphertext(b"x")).await), "no chain");
    assert_eq!(commit(&*store, &first).await, CommitOutcome::Committed);
    let state = state_of(&first, 1);
    assert_eq!(chain(&*store).await.current, Some(state));
    assert_eq!(store.chain_piece(id, &state, 1).await.unwrap(), Some(ciphertext(&[1, 1])));
    assert_eq!(store.chain_piece(id, &state, 2).await.unwrap(), None);
    assert_eq!(sweep(&*store).await, 0, "the current state stays");

    let second = night(&*store, 2, id, 1).await;
    assert_eq!(commit(&*store, &second).await, CommitOutcome::Committed);
    assert_eq!(chain(&*store).await.current, Some(state_of(&second, 2)));
    assert_eq!((sweep(&*store).await, bench.count("chain_pieces").await), (1, 2), "the state before is gone");
    assert_eq!(store.chain_piece(id, &state, 0).await.unwrap(), None);
    // a withdrawal changes nothing: what was published counts
    act(&*store, second.release.id, ReleaseAction::Withdraw).await;
    store.drop_attempt(second.job, 1).await.unwrap();
    assert_eq!((sweep(&*store).await, bench.count("chain_pieces").await), (0, 2));
    assert_eq!(chain(&*store).await.current, Some(state_of(&second, 2)));
}

pub(crate) async fn of_one_version_goes_on_one_release(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store, CLINIC).await.id;
    let (one, other) = (night(&*store, 1, id, 0).await, night(&*store, 2, id, 0).await);
    let outcomes = tokio::join!(store.commit(one.clone()), store.commit(other.clone()));
    let (winner, loser) = match (outcomes.0.unwrap(), outcomes.1.unwrap()) {
        (CommitOutcome::Committed, CommitOutcome::ChainMoved) => (one, other),
        (CommitOutcome::ChainMoved, CommitOutcome::Committed) => (other, one),
        outcomes => panic!("{outcomes:?}"),
    };
    assert_eq!(chain(&*store).await.current, Some(state_of(&winner, 1)));
    assert_eq!((bench.count("releases").await, bench.count("disclosures").await), (1, 2));
    assert_eq!(commit(&*store, &loser).await, CommitOutcome::ChainMoved);
    // made again, from the state that is there now
    store.drop_attempt(loser.job, 1).await.unwrap();
    assert_eq!(bench.count("chain_pieces").await, 2);
    store.put_chain_piece(id, loser.job, 1, 0, &ciphertext(b"abcd")).await.unwrap();
    let step = Some(ChainStep { chain: id, from: 1, pieces: 1, bytes: 4 });
    let again = ReleaseCommit { chain: step, ..loser };
    assert_eq!(commit(&*store, &again).await, CommitOutcome::Committed);
    let current = chain(&*store).await.current.unwrap();
    assert_eq!((current.version, current.release, current.pieces), (2, again.release.id, 1));
}

pub(crate) async fn half_a_state_is_no_state(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store, CLINIC).await.id;
    let whole = night(&*store, 1, id, 0).await;
    for (pieces, bytes) in [(3, 4), (1, 2), (2, 5), (0, 0)] {
        let step = Some(ChainStep { chain: id, from: 0, pieces, bytes });
        let half = ReleaseCommit { chain: step, ..whole.clone() };
        assert!(is_conflict(&store.commit(half).await), "{pieces} pieces of {bytes} bytes");
    }
    assert_eq!((chain(&*store).await.current, bench.count("releases").await), (None, 0));
    assert_eq!(commit(&*store, &whole).await, CommitOutcome::Committed);

    // a crash between the pieces and the commit leaves the version before
    let crashed = night(&*store, 2, id, 1).await;
    let lost = store.release_lease(crashed.job, crashed.token, at(3)).await.unwrap();
    assert_eq!((lost, sweep(&*store).await), (WriteOutcome::Done, 1));
    assert_eq!((chain(&*store).await.current, bench.count("chain_pieces").await), (Some(state_of(&whole, 1)), 2));
    assert_eq!(commit(&*store, &crashed).await, CommitOutcome::LeaseLost);
}

pub(crate) async fn a_held_release_leaves_its_state_pending(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store, CLINIC).await.id;
    let first = held(night(&*store, 1, id, 0).await);
    assert_eq!(commit(&*store, &first).await, CommitOutcome::Committed);
    let found = chain(&*store).await;
    assert_eq!((found.current, found.pending, found.version()), (None, Some(state_of(&first, 1)), 0));
    // no other goes on before it is decided
    let hasty = night(&*store, 2, id, 0).await;
    assert_eq!(commit(&*store, &hasty).await, CommitOutcome::ChainMoved);
    assert_eq!(sweep(&*store).await, 0);
    act(&*store, first.release.id, ReleaseAction::Approve).await;
    let found = chain(&*store).await;
    assert_eq!((found.current, found.pending), (Some(state_of(&first, 1)), None));

    // rejected unread: as if it had never been
    let unread = held(night(&*store, 3, id, 1).await);
    assert_eq!(commit(&*store, &unread).await, CommitOutcome::Committed);
    assert_eq!(chain(&*store).await.pending, Some(state_of(&unread, 2)));
    act(&*store, unread.release.id, ReleaseAction::Reject).await;
    let found = chain(&*store).await;
    assert_eq!((found.current, found.pending), (Some(state_of(&first, 1)), None));
    assert_eq!(sweep(&*store).await, 1);

    // rejected after somebody read a part: it counts
    let read = held(night(&*store, 4, id, 1).await);
    assert_eq!(commit(&*store, &read).await, CommitOutcome::Committed);
    assert!(store.mark_read(TENANT, read.release.id, at(5), &audit_entry()).await.unwrap());
    act(&*store, read.release.id, ReleaseAction::Reject).await;
    let found = chain(&*store).await;
    assert_eq!((found.current, found.pending), (Some(state_of(&read, 2)), None));
}

pub(crate) async fn an_ended_chain_does_not_go_on(bench: &impl Bench) {
    let store = bench.store();
    let id = begun(&*store, CLINIC).await.id;
    let first = night(&*store, 1, id, 0).await;
    assert_eq!(commit(&*store, &first).await, CommitOutcome::Committed);
    let (pending, late) = (held(night(&*store, 2, id, 1).await), night(&*store, 3, id, 1).await);
    assert_eq!(commit(&*store, &pending).await, CommitOutcome::Committed);
    let end = async |tenant, seconds| {
        let entry = by(TENANT, None, AuditAction::EndChain, at(seconds));
        store.end_chain(tenant, CLINIC, at(seconds), &entry).await
    };
    assert!(matches!(end("x", 5).await, Err(StoreError::NotFound)));
    let entries = bench.count("audit_log").await;
    let ended = end(TENANT, 5).await.unwrap();
    assert_eq!((ended.ended_at, ended.wrapped_key, ended.current, ended.pending), (Some(at(5)), None, None, None));
    assert_eq!(end(TENANT, 6).await.unwrap().ended_at, Some(at(5)), "a second time changes nothing");
    assert_eq!(bench.count("audit_log").await, entries + 1);
    assert_eq!((bench.count("chain_keys").await, bench.count("chain_states").await), (0, 0));
    // what the running attempt has written is noise, and goes with it
    assert_eq!(bench.count("chain_pieces").await, 2);
    assert!(is_conflict(&store.put_chain_piece(id, late.job, 1, 2, &ciphertext(b"x")).await));
    assert_eq!(commit(&*store, &late).await, CommitOutcome::ChainMoved);
    act(&*store, pending.release.id, ReleaseAction::Approve).await;
    let found = begun(&*store, CLINIC).await;
    assert_eq!((found.id, found.wrapped_key, found.current), (id, None, None), "it does not begin anew");
}

/// Announces a night, and commits it.
async fn covered(
    store: &dyn Store,
    night: ReleaseCommit,
    persons: &[u128],
    into: Option<CoverageRecord>,
) -> ReleaseCommit {
    let night = announced_night(store, night, persons, into).await;
    assert_eq!(commit(store, &night).await, CommitOutcome::Committed);
    night
}

/// Announces a night, which goes into a coverage.
async fn announced_night(
    store: &dyn Store,
    night: ReleaseCommit,
    persons: &[u128],
    into: Option<CoverageRecord>,
) -> ReleaseCommit {
    let table = u128::from(night.release.content_hash[0]);
    let is_held = night.release.status == ReleaseStatus::Held;
    let mut new = super::people::new_coverage(&super::people::evidence(persons, table), CLINIC, table);
    (new.job, new.coverage.chain) = (night.job, Some(CLINIC.to_owned()));
    new.coverage.continues = into.as_ref().filter(|_| !is_held).map(|chain| chain.id);
    let id = store.announce_coverage(&new).await.unwrap();
    let hashes: Vec<KeyedHash> = persons.iter().copied().map(hash).collect();
    store.cover_persons(TENANT, id, "k", &hashes).await.unwrap();
    store.draw_ticket(TENANT, id).await.unwrap();
    let chain = into.map(|CoverageRecord { id, coverage, published, .. }| LiveCoverage {
        id,
        coverage,
        published,
        common: BTreeMap::new(),
        resemblance: None,
    });
    let end = night_end(chain.as_ref(), &new.coverage, &["sex".to_owned()].into(), is_held);
    ReleaseCommit { announcement: Some(AnnouncedCoverage { id, end }), ..night }
}

/// The live coverages, each with its persons.
async fn live(store: &dyn Store) -> Vec<(CoverageRecord, Vec<KeyedHash>)> {
    let mut found = Vec::new();
    for record in store.standing_coverages(TENANT, 0).await.unwrap() {
        let persons = store.coverage_persons(TENANT, record.id, "k", None).await.unwrap();
        found.push((record, persons));
    }
    found
}

pub(crate) async fn each_person_of_a_chain_is_covered_once(bench: &impl Bench) {
    let store = bench.store();
    define(&*store, CLINIC, &["k"]).await;
    let id = begun(&*store, CLINIC).await.id;
    let persons = |numbers: std::ops::Range<u128>| numbers.map(hash).collect::<Vec<_>>();
    let only = async |count: u64, numbers: std::ops::Range<u128>| {
        let [(record, found)] = &live(&*store).await[..] else { panic!("a chain has one coverage") };
        assert_eq!((record.coverage.systems["k"].persons, found), (count, &persons(numbers)));
        assert_eq!(record.coverage.chain.as_deref(), Some(CLINIC));
        record.clone()
    };
    covered(&*store, night(&*store, 1, id, 0).await, &[1, 2, 3], None).await;
    let first = only(3, 1..4).await;
    covered(&*store, night(&*store, 2, id, 1).await, &[2, 3, 4, 5], Some(first)).await;
    let second = only(5, 1..6).await;
    assert_eq!(second.published, ["age".to_owned(), "sex".to_owned()].into());
    assert_eq!(second.coverage.datasets.len(), 2);

    // the persons of a held night stand apart from it, and come in or go with the decision
    let unread = covered(&*store, held(night(&*store, 3, id, 2).await), &[5, 6], Some(second.clone())).await;
    assert_eq!(live(&*store).await.len(), 2);
    assert_eq!(store.common_persons(TENANT, "k", &[hash(6)], None).await.unwrap().len(), 1);
    let changes = async || store.ledger_moment(TENANT).await.unwrap().changes;
    let before = changes().await;
    act(&*store, unread.release.id, ReleaseAction::Reject).await;
    only(5, 1..6).await;
    assert_eq!(changes().await, before + 1, "what was read of its persons holds no longer");
    assert_eq!(store.common_persons(TENANT, "k", &[hash(6)], None).await.unwrap().len(), 0);
    let approved = covered(&*store, held(night(&*store, 4, id, 2).await), &[5, 6, 7], Some(second.clone())).await;
    let before = changes().await;
    act(&*store, approved.release.id, ReleaseAction::Approve).await;
    let last = only(7, 1..8).await;
    assert_eq!(changes().await, before + 1, "its persons went over to the chain");
    assert_eq!(last.coverage.datasets.len(), 3);
    assert_eq!(last.id, second.id);
    store.sweep_void_coverages().await.unwrap();
    assert_eq!(bench.count("covered").await, 7);
    let _: CoverageId = announced(&*store, CLINIC, &[9], 9).await;
}

/// A held first night is rejected after a job has seen its persons in the ledger, and before the job reads the chain.
pub(crate) async fn a_rejected_first_release_is_no_lost_state(bench: &impl Bench) {
    let (store, vault) = (bench.store(), Vault::in_memory().unwrap());
    define(&*store, CLINIC, &["k"]).await;
    load(&*store, &vault, false).await.unwrap();
    let id = chain(&*store).await.id;
    let first = covered(&*store, held(night(&*store, 1, id, 0).await), &[1, 2, 3], None).await;
    let [(seen, _)] = &live(&*store).await[..] else { panic!("it stands") };
    let late = announced_night(&*store, night(&*store, 2, id, 0).await, &[2, 3, 4], Some(seen.clone())).await;
    act(&*store, first.release.id, ReleaseAction::Reject).await;
    assert!(!store.is_chain_lost(TENANT, CLINIC).await.unwrap());
    assert_eq!(load(&*store, &vault, true).await.unwrap().version(), 0);
    let place = ChainPlace { tenant: TENANT, population: CLINIC, is_begun: true };
    assert!(LoadedChain::check(&*store, &vault, place).await.is_ok());
    // nor does a release fail for good that was to join it
    assert_eq!(commit(&*store, &late).await, CommitOutcome::LedgerMoved);
    // persons in the ledger without any state are lost
    covered(&*store, commit_without_chain(&*store, 3).await, &[1, 2, 3], None).await;
    assert!(store.is_chain_lost(TENANT, CLINIC).await.unwrap());
    assert!(!store.is_chain_lost("x", CLINIC).await.unwrap());
    assert_eq!(kind(load(&*store, &vault, true).await), Some(Kind::RepublishStateLost));
    assert!(LoadedChain::check(&*store, &vault, place).await.is_err());
}

/// The commit of a release of the clinic that leaves no state.
async fn commit_without_chain(store: &dyn Store, number: u8) -> ReleaseCommit {
    enqueue(store, number).await;
    let (ClaimedJob { job, .. }, token) = claim(store, at(1)).await;
    let mut commit = commit_of(&job, token, 0, at(2));
    commit.release.content_hash = [number; 32];
    commit
}

/// Reads the chain of the clinic.
pub(crate) async fn load(store: &dyn Store, vault: &Vault, is_begun: bool) -> Result<LoadedChain, Problem> {
    let place = ChainPlace { tenant: TENANT, population: CLINIC, is_begun };
    LoadedChain::load(store, vault, place).await.map_err(refusal)
}

fn refusal(error: ChainReadError) -> Problem {
    match error {
        ChainReadError::Refused(problem) => problem,
        ChainReadError::Store(error) => error.into(),
    }
}

fn kind<T>(loaded: Result<T, Problem>) -> Option<Kind> {
    loaded.err().map(|problem| problem.kind)
}

/// What a job does with the chain: it reads the state, keeps another one, and commits.
pub(crate) async fn a_job_goes_on_from_the_state_before(bench: &impl Bench) {
    let (store, vault) = (bench.store(), Vault::in_memory().unwrap());
    // of two pieces and a bit, of one, and of none
    let states = [vec![7; 2 * CHAIN_PIECE_BYTES + 3], vec![9; CHAIN_PIECE_BYTES], Vec::new()];
    for (number, state) in (1_u8..).zip(&states) {
        let chain = load(&*store, &vault, number > 1).await.unwrap();
        assert_eq!(chain.version(), u64::from(number) - 1);
        let before = number.checked_sub(2).map(|before| &states[usize::from(before)][..]);
        assert!(chain.state() == before, "night {number}");
        next(&*store, number, &chain, state, ReleaseStatus::Published).await;
    }
    assert_eq!(sweep(&*store).await, 2);
    let other = Vault::in_memory().unwrap();
    assert_eq!(kind(load(&*store, &other, true).await), Some(Kind::RepublishStateLost), "another master key");

    let chain = load(&*store, &vault, true).await.unwrap();
    let pending = next(&*store, 4, &chain, b"pending", ReleaseStatus::Held).await;
    let refused = load(&*store, &vault, true).await.err().unwrap();
    assert_eq!(
        (refused.kind, refused.members["release"].as_str()),
        (Kind::RepublishPending, Some(pending.release.id.to_string().as_str()),)
    );
    act(&*store, pending.release.id, ReleaseAction::Approve).await;
    let chain = load(&*store, &vault, true).await.unwrap();
    assert_eq!((chain.version(), chain.state()), (4, Some(&b"pending"[..])));

    store.end_chain(TENANT, CLINIC, at(9), &audit_entry()).await.unwrap();
    for is_begun in [true, false] {
        assert_eq!(kind(load(&*store, &vault, is_begun).await), Some(Kind::RepublishStateLost));
    }
    let place = ChainPlace { tenant: TENANT, population: "births", is_begun: true };
    let lost = LoadedChain::load(&*store, &vault, place).await.map_err(refusal);
    assert_eq!(kind(lost), Some(Kind::RepublishStateLost), "the ledger has a chain, and the store no state");
}

/// A release that goes on from a loaded chain.
pub(crate) async fn next(
    store: &dyn Store,
    number: u8,
    chain: &LoadedChain,
    state: &[u8],
    status: ReleaseStatus,
) -> ReleaseCommit {
    enqueue(store, number).await;
    let (ClaimedJob { job, .. }, token): (ClaimedJob, LeaseToken) = claim(store, at(1)).await;
    let attempt = ChainAttempt { job: job.id, attempt: job.attempt };
    let step = chain.keep(store, attempt, state).await.unwrap();
    let mut made = commit_of(&job, token, 0, at(2));
    (made.release.content_hash, made.release.status, made.chain) = ([number; 32], status, Some(step));
    assert_eq!(commit(store, &made).await, CommitOutcome::Committed);
    made
}
