//! What every process on a store has and does: store and keys, signals, sweeps.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::StartError;
use super::open::open_store;
use super::parts::{keep_parts, part_address};
use super::{tools, vault};
use crate::api::Readiness;
use crate::app::{AppService, IDEMPOTENCY_KEY_LIFETIME, adopt_series, collect_missing_evidence, encrypt_datasets};
use crate::clock::Clock;
use crate::config::{ObservabilityOptions, PartOptions, StoreOptions};
use crate::objects::ObjectFolder;
use crate::ports::{Notifier, Store};
use crate::store::OpenStore;
use crate::vault::Vault;

/// The pause between two sweeps of expired data.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The age from which the chunks of an unfinished upload are garbage.
const SWEEP_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// State of every process on a store: the store, its keys and the signals of other processes.
pub(super) struct ProcessContext {
    pub(super) store: OpenStore,
    pub(super) id: Uuid,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) signals: Arc<Notifier>,
    /// Cancelled when the process starts to stop.
    pub(super) draining: CancellationToken,
    pub(super) stopping: CancellationToken,
    pub(super) metrics: Option<SocketAddr>,
    /// Cancelled when another process replaces the master key.
    pub(super) evicted: CancellationToken,
    pub(super) watch: Option<JoinHandle<()>>,
    /// The folder of files without names for what memory cannot hold.
    pub(super) spool: PathBuf,
    /// Where parts are, unless in the store.
    pub(super) parts: Option<ObjectFolder>,
}

impl ProcessContext {
    pub(super) async fn open(
        options: &StoreOptions,
        parts: &PartOptions,
        watch: &ObservabilityOptions,
        data: &Path,
    ) -> Result<Self, StartError> {
        let address = part_address(parts)?;
        let place = options.master_key(data).map_err(StartError::Config)?;
        // first, so that all events are counted
        let tools = match watch.metrics_listen {
            Some(address) => Some(tools::AdminListener::bind(address).await?),
            None => None,
        };
        let store = open_store(options, data).await?;
        let id = store.id().await?;
        let shared = store.shared();
        let (clock, signals) = (Clock::system(), Arc::default());
        let (draining, stopping) = (CancellationToken::new(), CancellationToken::new());
        let evicted = CancellationToken::new();
        // from here on the master key cannot change
        let attendance = store.attend().await?;
        let vault = Arc::new(vault::open(shared.as_ref(), &place).await?);
        let fingerprint = *vault.fingerprint();
        store.wraps_under(fingerprint);
        let watch = attendance.map(|there| tokio::spawn(there.watch(fingerprint, stopping.clone(), evicted.clone())));
        let ciphertext = encrypt_datasets(shared.as_ref(), &vault).await?;
        if ciphertext > 0 {
            tracing::info!(datasets = ciphertext, "encrypted datasets of earlier versions");
        }
        let adopted = adopt_series(&shared, &clock).await?;
        if adopted > 0 {
            tracing::info!(series = adopted, "made populations of the series of earlier versions");
        }
        let collected = collect_missing_evidence(&shared, &vault, data).await?;
        if collected > 0 {
            tracing::info!(datasets = collected, "collected the evidence of datasets of earlier versions");
        }
        let parts = keep_parts(&store, address.as_ref()).await?;
        store.listen(&signals, &stopping).await?;
        if store.is_shared() {
            // other processes may run: reapers and sweeps collect what they lost
            shared.sweep(clock.now(), SWEEP_GRACE).await?;
        } else {
            // no other process has the store: all leases belong to an earlier one
            shared.expire_all_leases(clock.now()).await?;
            shared.lapse_idempotency_keys(clock.now()).await?;
            shared.sweep(clock.now(), Duration::ZERO).await?;
        }
        tokio::spawn(sweep(shared, clock.clone(), stopping.clone()));
        let metrics = tools.as_ref().map(tools::AdminListener::address);
        let spool = data.to_owned();
        let base = Self { store, vault, clock, signals, draining, stopping, metrics, evicted, watch, id, spool, parts };
        if let Some(tools) = tools {
            tools.serve(base.readiness(), base.clock.clone(), base.stopping.clone());
        }
        Ok(base)
    }

    pub(super) fn readiness(&self) -> Readiness {
        Readiness { store: self.store.shared(), draining: self.draining.clone() }
    }

    /// Closes the store, after all its users.
    pub(super) async fn close(self) {
        self.stopping.cancel();
        if let Some(watch) = self.watch {
            // the task ends by itself; its panic was logged
            let _ = watch.await;
        }
        self.store.close().await;
    }
}

async fn sweep(store: Arc<dyn Store>, clock: Clock, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_INTERVAL) => {}
        }
        if let Err(error) = store.expire_idempotency_keys(clock.now() - IDEMPOTENCY_KEY_LIFETIME).await {
            tracing::warn!(error = %error, "removal of expired idempotency keys failed; retried later");
        }
        if let Err(error) = store.sweep(clock.now(), SWEEP_GRACE).await {
            tracing::warn!(error = %error, "sweep failed; retried later");
        }
        if let Err(error) = store.sweep_void_coverages().await {
            tracing::warn!(error = %error, "removal of what void coverages left failed; retried later");
        }
    }
}

pub(super) async fn retire(service: &AppService, kept: Duration) {
    if let Err(problem) = service.retire(service.clock.now() - kept).await {
        tracing::warn!(problem = problem.detail, "withdrawal of expired releases failed; retried later");
    }
}

pub(super) async fn retire_again(service: AppService, kept: Duration, stopping: CancellationToken) {
    loop {
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(SWEEP_INTERVAL) => retire(&service, kept).await,
        }
    }
}
