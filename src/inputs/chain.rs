//! The state of the chain of a population: what a job that republishes goes on from, and what it leaves behind.
//!
//! To this module a state is bytes. It is encrypted in pieces, each bound to its place and to the attempt that wrote it.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::error::InputError;
use crate::people::{Coverage, LiveCoverage};
use crate::ports::{
    AnnouncementEnd, CHAIN_PIECE_BYTES, ChainRecord, ChainStep, ChainStore, NewChain, StoreError, StoredChainState,
};
use crate::problem::{Kind, Problem};
use crate::vault::{Ciphertext, CiphertextContext, DataKey, Vault};

/// How often a state is read again that was replaced meanwhile.
const MAX_READS: u32 = 5;

/// A chain as a job finds it.
pub struct LoadedChain {
    id: Uuid,
    key: DataKey,
    version: u64,
    release: Option<Uuid>,
    state: Option<Vec<u8>>,
}

/// Why a chain is not read.
#[derive(Debug, thiserror::Error)]
pub enum ChainReadError {
    /// The job is refused with this.
    #[error("refused")]
    Refused(Problem),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ChainReadError> for InputError {
    fn from(error: ChainReadError) -> Self {
        match error {
            ChainReadError::Refused(problem) => Self::Refused(problem),
            ChainReadError::Store(error) => Self::Store(error),
        }
    }
}

/// A population whose chain a job continues, or begins.
#[derive(Clone, Copy, Debug)]
pub struct ChainPlace<'a> {
    /// Whose it is.
    pub tenant: &'a str,
    /// The population.
    pub population: &'a str,
    /// Whether the ledger had a chain of it at the last look.
    pub is_begun: bool,
}

/// An attempt that writes a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChainAttempt {
    /// The job.
    pub job: Uuid,
    /// Its attempt.
    pub attempt: u32,
}

impl LoadedChain {
    /// The version that the next release goes on from; 0 of the first.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The last release; none before the first.
    #[must_use]
    pub const fn release(&self) -> Option<Uuid> {
        self.release
    }

    /// The state that the last release left behind; none before the first.
    #[must_use]
    pub fn state(&self) -> Option<&[u8]> {
        self.state.as_deref()
    }

    /// Whether a release may go on from the chain of a population, without its state.
    ///
    /// # Errors
    /// As of [`LoadedChain::load`].
    pub async fn check(store: &dyn ChainStore, vault: &Vault, place: ChainPlace<'_>) -> Result<(), ChainReadError> {
        let ChainPlace { tenant, population, is_begun } = place;
        let Some(record) = store.chain(tenant, population).await? else {
            return if is_begun { Err(lost(population)) } else { Ok(()) };
        };
        if let Some(pending) = record.pending {
            return Err(undecided(population, pending.release));
        }
        let key = record.wrapped_key.as_deref().and_then(|key| vault.chain_key(record.id, key).ok());
        let is_stateless = is_begun && record.current.is_none();
        if key.is_none() || is_stateless && store.is_chain_lost(tenant, population).await? {
            return Err(lost(population));
        }
        Ok(())
    }

    /// Reads the chain of a population, or begins it.
    ///
    /// # Errors
    /// [`ChainReadError::Refused`] with `republish-pending` while a release is held, and with `republish-state-lost` when
    /// the state cannot be read; or the store's.
    pub async fn load(store: &dyn ChainStore, vault: &Vault, place: ChainPlace<'_>) -> Result<Self, ChainReadError> {
        let ChainPlace { tenant, population, is_begun } = place;
        let mut tries = 0;
        loop {
            let record = match store.chain(tenant, population).await? {
                Some(record) => record,
                None if is_begun => return Err(lost(population)),
                None => begin(store, vault, place).await?,
            };
            if let Some(pending) = record.pending {
                return Err(undecided(population, pending.release));
            }
            let Some(key) = record.wrapped_key.as_deref().and_then(|key| vault.chain_key(record.id, key).ok()) else {
                return Err(lost(population));
            };
            let release = record.current.map(|state| state.release);
            let chain = Self { id: record.id, key, version: record.version(), release, state: None };
            let Some(current) = record.current else {
                // its persons are in the ledger and in no state, unless they were those of a held release rejected since
                let is_lost = is_begun && store.is_chain_lost(tenant, population).await?;
                return if is_lost { Err(lost(population)) } else { Ok(chain) };
            };
            if let Some(state) = chain.read(store, &current).await? {
                return Ok(Self { state: Some(state), ..chain });
            }
            tries += 1;
            // what is missing was replaced, unless it is still the current one
            let now = store.chain(tenant, population).await?;
            if now.is_none_or(|now| now.current == Some(current)) {
                return Err(lost(population));
            }
            if tries == MAX_READS {
                return Err(StoreError::Unavailable("other releases of the population kept coming first".into()).into());
            }
        }
    }

    /// The bytes of a state; none if a piece is missing or does not open.
    async fn read(&self, store: &dyn ChainStore, state: &StoredChainState) -> Result<Option<Vec<u8>>, StoreError> {
        let mut bytes = Vec::new();
        for number in 0..state.pieces {
            let Some(piece) = store.chain_piece(self.id, state, number).await? else { return Ok(None) };
            let of = ChainAttempt { job: state.job, attempt: state.attempt };
            let Ok(plain) = self.key.decrypt(of.piece(number, number + 1 == state.pieces), &piece) else {
                return Ok(None);
            };
            bytes.extend_from_slice(&plain);
        }
        Ok((state.pieces > 0).then_some(bytes))
    }

    /// Keeps a new state, which the commit of the attempt makes current.
    ///
    /// # Errors
    /// Those of the store, which also refuses an attempt that does not run any more, and a chain that has ended.
    pub async fn keep(
        &self,
        store: &dyn ChainStore,
        attempt: ChainAttempt,
        state: &[u8],
    ) -> Result<ChainStep, StoreError> {
        // an empty state has a piece too
        let pieces = state.len().div_ceil(CHAIN_PIECE_BYTES).max(1);
        let count = u32::try_from(pieces).map_err(|_| StoreError::Backend("a state of too many pieces".into()))?;
        let mut bytes = 0;
        for number in 0..count {
            let begin = number as usize * CHAIN_PIECE_BYTES;
            let plain = &state[begin..state.len().min(begin + CHAIN_PIECE_BYTES)];
            let piece: Ciphertext = self.key.encrypt(attempt.piece(number, number + 1 == count), plain)?;
            store.put_chain_piece(self.id, attempt.job, attempt.attempt, number, &piece).await?;
            bytes += piece.as_bytes().len() as u64;
        }
        Ok(ChainStep { chain: self.id, from: self.version, pieces: count, bytes })
    }
}

/// How the announcement of a release that republishes ends: its persons go over to the coverage of the chain. Those of the
/// first release begin it, and those of a held one stand by themselves until it is decided.
#[must_use]
pub fn night_end(
    chain: Option<&LiveCoverage>,
    night: &Coverage,
    columns: &BTreeSet<String>,
    is_held: bool,
) -> AnnouncementEnd {
    let Some(LiveCoverage { id, coverage, published, .. }) = chain.filter(|_| !is_held) else {
        return AnnouncementEnd::Live;
    };
    let mut coverage = coverage.clone();
    coverage.absorb(night.clone(), published);
    let published = published.union(columns).cloned().collect();
    let learned = night.systems.keys().cloned().collect();
    AnnouncementEnd::Joined { target: *id, coverage: Box::new(coverage), published, learned }
}

impl ChainAttempt {
    const fn piece(self, piece: u32, is_last: bool) -> CiphertextContext {
        CiphertextContext::ChainPiece { job: self.job, attempt: self.attempt, piece, is_last }
    }
}

async fn begin(store: &dyn ChainStore, vault: &Vault, place: ChainPlace<'_>) -> Result<ChainRecord, StoreError> {
    let id = Uuid::now_v7();
    let (_, wrapped_key) = vault.fresh_chain_key(id)?;
    let (tenant, population) = (place.tenant.to_owned(), place.population.to_owned());
    store.begin_chain(&NewChain { id, tenant, population, wrapped_key }).await
}

fn lost(population: &str) -> ChainReadError {
    let detail = format!(
        "the state of the republished population {population} cannot be read; its persons cannot be published in it again"
    );
    ChainReadError::Refused(Problem::new(Kind::RepublishStateLost, detail).with("population", population))
}

fn undecided(population: &str, release: Uuid) -> ChainReadError {
    let detail = format!("the release {release} of the population {population} is held, and not decided");
    let problem = Problem::new(Kind::RepublishPending, detail).with("population", population);
    ChainReadError::Refused(problem.with("release", release.to_string()))
}
