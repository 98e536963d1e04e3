//! The service put together: store, keys, workers and routes in one process.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::{self, App};
use crate::clock::Clock;
use crate::config::Config;
use crate::jobs::{Desk, KeySource, Publisher, Signals, Store, StoreError, WorkerConfig, Workers, WorkersHandle};
use crate::microdata::formats::Limits;
use crate::store::sqlite::SqliteStore;
use crate::vault::{Vault, VaultError};

/// How often what nobody needs any more is removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// An upload may take so long before its chunks count as left behind.
const SWEEP_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a service did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The options do not fit together.
    #[error("{0}")]
    Config(String),
    /// The store cannot be opened.
    #[error("the store cannot be opened: {0}")]
    Store(#[from] StoreError),
    /// The master key cannot be opened.
    #[error("the master key cannot be opened: {0}")]
    Vault(#[from] VaultError),
    /// The address cannot be listened on.
    #[error("{0} cannot be listened on: {1}")]
    Listen(SocketAddr, io::Error),
}

/// A running service.
pub struct Service {
    address: SocketAddr,
    router: Router,
    store: Arc<SqliteStore>,
    workers: WorkersHandle,
    server: JoinHandle<io::Result<()>>,
    stopping: CancellationToken,
    grace: Duration,
}

impl Service {
    /// Opens the store, starts the workers and listens.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        Self::start_with_keys(config, Arc::new(Vault::fresh_secret)).await
    }

    /// The same, drawing release keys from `keys`. For tests: a release is only as secret as its key.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start_with_keys(config: &Config, keys: KeySource) -> Result<Self, StartError> {
        config.check().map_err(StartError::Config)?;
        let listener =
            TcpListener::bind(config.listen).await.map_err(|error| StartError::Listen(config.listen, error))?;
        let address = listener.local_addr().map_err(|error| StartError::Listen(config.listen, error))?;
        let store = Arc::new(SqliteStore::open(&config.data).await?);
        let vault = Arc::new(Vault::open(&config.data.join("master.key"))?);
        let clock = Clock::system();
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        // this process alone has the store: whatever is leased was lost with an earlier one
        shared.expire_all_leases(clock.now()).await?;
        shared.sweep(clock.now(), Duration::ZERO).await?;

        let signals = Arc::new(Signals::default());
        let settings = WorkerConfig { workers: config.workers, grace: config.grace(), ..WorkerConfig::default() };
        let runner = Arc::new(Publisher { clock: clock.clone() });
        let workers = Workers::start(
            Arc::clone(&shared),
            clock.clone(),
            runner,
            Arc::clone(&vault),
            Arc::clone(&signals),
            settings,
        );
        let desk = Desk { store: Arc::clone(&shared), vault, clock: clock.clone(), signals, keys };
        let limits = Limits { max_columns: config.max_columns, ..Limits::default() };
        let router = api::router(App {
            desk,
            limits,
            spool: config.data.as_path().into(),
            max_upload_bytes: config.max_upload_bytes,
        });
        let stopping = CancellationToken::new();
        tokio::spawn(sweep(shared, clock, stopping.clone()));
        let stop = stopping.clone();
        let serving =
            axum::serve(listener, router.clone()).with_graceful_shutdown(async move { stop.cancelled().await });
        let server = tokio::spawn(serving.into_future());
        Ok(Self { address, router, store, workers, server, stopping, grace: config.grace() })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The routes, to be called without a connection.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Stops: no new connections, running jobs get the grace period, the others stay in the queue.
    pub async fn shutdown(self) {
        self.stopping.cancel();
        self.workers.shutdown().await;
        let mut server = self.server;
        // a connection that does not end by itself is cut
        if tokio::time::timeout(self.grace, &mut server).await.is_err() {
            server.abort();
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
        if let Err(error) = store.sweep(clock.now(), SWEEP_GRACE).await {
            tracing::warn!(error = %error, "the sweep failed and is tried again later");
        }
    }
}
