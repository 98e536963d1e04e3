//! Assembles store, keys, workers and routes into a service, or into workers on a shared store.

mod activity;
pub mod admin;
mod client_stream;
mod engines;
mod error;
pub mod keys;
pub mod ledger;
mod listen;
mod maintenance;
mod memory;
mod open;
mod parts;
pub mod population_file;
pub mod populations;
mod process;
mod sources;
mod tools;
mod vault;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use process::{ProcessContext, retire, retire_again};
use sources::table_sources;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::api;
use crate::api::{App, AuthMethods, Gateway, LinkSource, Prefix};
use crate::app::{AppService, ReleaseKeySource};
use crate::clock::Clock;
use crate::config::{Auth, Config, JobLimits, QueueOptions, RequestLimits, WorkerOptions};
use crate::identity::{Issuer, JwtRules};
use crate::inputs::{Engines, KeptReadings, MemoryBudget, NamedEngines};
use crate::jobs::{Publisher, WorkerConfig, Workers, WorkersHandle};
use crate::microdata::formats::IngestLimits;
use crate::vault::Vault;
pub use error::StartError;
pub use maintenance::{MigratedStore, back_up, migrate};
pub use vault::rotate;

/// Maximum number of concurrent renderings of parts for ranges: each takes a core.
const MAX_RENDERING: u32 = 4;
/// The minimum time for running requests to finish, even after the grace period of jobs.
const MIN_DRAIN_TIME: Duration = Duration::from_secs(2);

/// What submissions and the workers of a process share.
struct SharedByJobs {
    budget: MemoryBudget,
    readings: KeptReadings,
    engines: Engines,
}

impl SharedByJobs {
    fn new(limits: &JobLimits, engines: Engines) -> Self {
        Self { budget: MemoryBudget::new(memory::budget(limits)), readings: KeptReadings::default(), engines }
    }
}

/// Starts the workers of a process.
fn start_workers(
    base: &ProcessContext,
    settings: WorkerConfig,
    jobs: &JobLimits,
    shared: &SharedByJobs,
) -> WorkersHandle {
    let settings = WorkerConfig { max_job: jobs.max_job(), ..settings };
    let runner = Arc::new(Publisher {
        vault: Arc::clone(&base.vault),
        clock: base.clock.clone(),
        budget: shared.budget.clone(),
        limits: of_columns(jobs),
        readings: shared.readings.clone(),
        spool: base.spool.clone(),
        engines: shared.engines.clone(),
    });
    let workers = Workers {
        store: base.store.shared(),
        clock: base.clock.clone(),
        runner,
        vault: Arc::clone(&base.vault),
        signals: Arc::clone(&base.signals),
        config: settings,
    };
    workers.start()
}

fn app_service(config: &Config, base: &ProcessContext, shared: SharedByJobs, keys: ReleaseKeySource) -> AppService {
    AppService {
        store: base.store.shared(),
        vault: Arc::clone(&base.vault),
        clock: base.clock.clone(),
        signals: Arc::clone(&base.signals),
        keys,
        max_queued_jobs: config.max_queued_jobs,
        limits: of_columns(&config.job_limits),
        budget: shared.budget,
        readings: shared.readings,
        spool: base.spool.clone(),
        engines: shared.engines,
    }
}

fn settings(workers: u32, queue: QueueOptions, grace: Duration) -> WorkerConfig {
    let QueueOptions { max_attempts, max_running_per_tenant, max_running_per_engine } = queue;
    let max_running_per_engine = Some(max_running_per_engine);
    WorkerConfig {
        workers,
        grace,
        max_attempts,
        max_running_per_tenant,
        max_running_per_engine,
        ..WorkerConfig::default()
    }
}

/// Limits of columns.
fn of_columns(jobs: &JobLimits) -> IngestLimits {
    IngestLimits {
        max_distinct: jobs.max_distinct,
        max_dictionary_bytes: jobs.max_dictionary_bytes,
        ..IngestLimits::default()
    }
}

/// Limits of connections.
fn connections(config: &Config) -> listen::ConnectionLimits {
    let RequestLimits { max_connections, max_connections_per_address, .. } = config.request_limits;
    let RequestLimits { unread_seconds, min_bytes_per_second, .. } = config.request_limits;
    let share = if config.trust_forwarded { max_connections } else { max_connections.div_ceil(2) };
    listen::ConnectionLimits {
        connections: max_connections,
        per_address: max_connections_per_address.unwrap_or(share),
        unread: Duration::from_secs(unread_seconds),
        min_bytes: unread_seconds.saturating_mul(min_bytes_per_second),
    }
}

/// A limit that tenants share, where there may be several.
fn of_tenants(config: &Config, limit: api::ConcurrencyLimit) -> api::ConcurrencyLimit {
    if config.auth == Auth::None { limit } else { limit.shared_by_tenants() }
}

/// Limits of requests.
fn bounds(config: &Config) -> api::ConcurrencyLimits {
    let limits = &config.request_limits;
    api::ConcurrencyLimits {
        requests: of_tenants(config, api::ConcurrencyLimit::new("requests", limits.max_requests)),
        waiting: of_tenants(config, api::ConcurrencyLimit::new("waiting callers", limits.max_waiting)),
        downloads: of_tenants(config, api::ConcurrencyLimit::new("downloads", limits.max_downloads)),
        max_document_bytes: usize::try_from(limits.max_document_bytes).unwrap_or(usize::MAX),
        idle: Duration::from_secs(limits.upload_idle_seconds),
        min_bytes: limits.upload_idle_seconds.saturating_mul(limits.min_bytes_per_second),
        upload: Duration::from_secs(limits.max_upload_seconds),
    }
}

/// Renderings of parts in the data folder.
fn renderings(config: &Config) -> api::RenderingCache {
    let making = of_tenants(config, api::ConcurrencyLimit::new("renderings of parts for ranges", MAX_RENDERING));
    api::RenderingCache::new(config.data.as_path().into(), config.request_limits.max_rendered_bytes, making)
}

/// Limits of tables.
fn of_tables(config: &Config) -> IngestLimits {
    let requests = &config.request_limits;
    IngestLimits {
        max_columns: config.max_columns,
        max_field_bytes: requests.max_cell_bytes,
        max_record_bytes: requests.max_row_bytes,
        max_batch_bytes: requests.max_batch_bytes,
        max_rows: requests.max_rows,
        max_decompressed: requests.max_decompressed_bytes,
        max_ratio: requests.max_decompression_ratio,
        ..of_columns(&config.job_limits)
    }
}

/// The issuer of accepted tokens, if any.
fn issuer(config: &Config, clock: &Clock) -> Result<Option<Arc<Issuer>>, StartError> {
    let (true, Some((file, issuer, audience))) = (config.auth.jwt(), config.jwt.complete()) else { return Ok(None) };
    let rules = JwtRules {
        issuer: issuer.to_owned(),
        audience: audience.to_owned(),
        tenant_claim: config.jwt.tenant_claim.clone(),
    };
    let opened = Issuer::open(rules, file, clock.now());
    opened.map(|issuer| Some(Arc::new(issuer))).map_err(|error| StartError::Jwks(file.to_owned(), error))
}

/// Workers without HTTP on a shared store.
pub struct WorkerService {
    base: ProcessContext,
    workers: WorkersHandle,
}

impl WorkerService {
    /// Opens the store and starts the workers.
    ///
    /// # Errors
    /// [`StartError`]; also for an embedded store, which only one process can open.
    pub async fn start(options: &WorkerOptions) -> Result<Self, StartError> {
        if options.store.database().map_err(StartError::Config)?.is_none() {
            let needs = "workers of their own need a store that processes share: name a Postgres with --store; the embedded \
                         store belongs to one process, and `guardian serve` has workers";
            return Err(StartError::Config(needs.to_owned()));
        }
        options.watch.collector().map_err(StartError::Config)?;
        let engines = engines::configured(&options.engines, NamedEngines::new())?;
        let base = ProcessContext::open(&options.store, &options.parts, &options.watch, &options.data).await?;
        let shared = SharedByJobs::new(&options.job_limits, engines);
        let settings = settings(options.workers, options.queue, Duration::from_secs(options.grace_seconds));
        let workers = start_workers(&base, settings, &options.job_limits, &shared);
        Ok(Self { base, workers })
    }

    /// The database without its password.
    #[must_use]
    pub fn database(&self) -> &str {
        self.base.store.database().unwrap_or_default()
    }

    /// The address of the metrics.
    #[must_use]
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.base.metrics
    }

    /// Stops: after the grace period, running jobs return to the queue.
    pub async fn shutdown(self) {
        self.base.draining.cancel();
        self.workers.shutdown().await;
        self.base.close().await;
    }

    /// Waits until another process replaces the master key, after which this process must stop.
    pub async fn evicted(&self) {
        self.base.evicted.cancelled().await;
    }
}

/// A running service.
pub struct Service {
    address: SocketAddr,
    router: Router,
    base: ProcessContext,
    workers: WorkersHandle,
    server: JoinHandle<()>,
    grace: Duration,
    drain: Duration,
}

impl Service {
    /// Opens the store, starts the workers and listens.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        Self::start_with_keys(config, Arc::new(Vault::fresh_secret)).await
    }

    /// Like [`Self::start`], with release keys from `keys`, for tests: a release is only as secret as its key.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start_with_keys(config: &Config, keys: ReleaseKeySource) -> Result<Self, StartError> {
        Self::start_with_engines(config, keys, NamedEngines::new()).await
    }

    /// Like [`Self::start_with_keys`], with engines in addition to those of the configuration, whose tables it must list.
    ///
    /// # Errors
    /// [`StartError`]
    pub async fn start_with_engines(
        config: &Config,
        keys: ReleaseKeySource,
        engines: NamedEngines,
    ) -> Result<Self, StartError> {
        config.check().map_err(StartError::Config)?;
        let accepts = AuthMethods { keys: config.auth.keys(), issuer: issuer(config, &Clock::system())? };
        let sources = table_sources(config)?;
        let engines = engines::configured(&config.engines, engines)?;
        let prefix =
            Prefix::parse(&config.path_prefix).map_err(|said| StartError::Config(format!("--path-prefix: {said}")))?;
        let listener =
            TcpListener::bind(config.listen).await.map_err(|error| StartError::Listen(config.listen, error))?;
        let address = listener.local_addr().map_err(|error| StartError::Listen(config.listen, error))?;
        let base = ProcessContext::open(&config.store, &config.parts, &config.watch, &config.data).await?;
        if let Some(file) = &config.bootstrap_key_file {
            keys::bootstrap(base.store.shared().as_ref(), &base.clock, file).await?;
        }
        memory::open_more_files();
        let shared = SharedByJobs::new(&config.job_limits, engines);
        let settings = settings(config.workers, config.queue, config.grace());
        let workers = start_workers(&base, settings, &config.job_limits, &shared);
        let service = app_service(config, &base, shared, keys);
        if let Some(days) = config.retain_days {
            let kept = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
            // before the first request, so that no expired release is served
            retire(&service, kept).await;
            tokio::spawn(retire_again(service.clone(), kept, base.stopping.clone()));
        }
        let lifetime = config.part_link_seconds.map(|seconds| Duration::from_secs(u64::from(seconds)));
        let links = base.parts.clone().zip(lifetime).map(|(folder, lifetime)| LinkSource { folder, lifetime });
        let router = api::router(App {
            service,
            limits: of_tables(config),
            spool: config.data.as_path().into(),
            max_upload_bytes: config.max_upload_bytes,
            uploads: of_tenants(config, api::ConcurrencyLimit::new("uploads", config.max_uploads)),
            sources,
            links,
            plans: of_tenants(
                config,
                api::ConcurrencyLimit::new("plans, queries, verifications and attacks", config.max_plans),
            ),
            bounds: bounds(config),
            renderings: renderings(config),
            accepts,
            readiness: base.readiness(),
            gateway: Gateway { prefix, trusted: config.trust_forwarded },
        });
        let limits = connections(config);
        let server = tokio::spawn(listen::serve(listener, router.clone(), limits, base.stopping.clone()));
        let (grace, drain) = (config.grace(), Duration::from_secs(config.drain_seconds));
        Ok(Self { address, router, base, workers, server, grace, drain })
    }

    /// The database without its password; `None` for the embedded store.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.base.store.database()
    }

    /// The address of the metrics.
    #[must_use]
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.base.metrics
    }

    /// The id of the store.
    #[must_use]
    pub const fn store_id(&self) -> Uuid {
        self.base.id
    }

    /// The address of the service.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The routes for calls without a connection.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Stops the service.
    ///
    /// `/readyz` fails immediately. The service answers requests until the jobs end or their grace period is over, and until the drain
    /// time is over. It then accepts no connections, and running requests have the rest of the grace period. Unfinished jobs remain in
    /// the queue.
    pub async fn shutdown(self) {
        let stopped_at = Instant::now();
        self.base.draining.cancel();
        tokio::join!(self.workers.shutdown(), tokio::time::sleep(self.drain));
        self.base.stopping.cancel();
        let mut server = self.server;
        // cut connections that do not end by themselves
        let left = self.grace.saturating_sub(stopped_at.elapsed()).max(MIN_DRAIN_TIME);
        if tokio::time::timeout(left, &mut server).await.is_err() {
            server.abort();
        }
        self.base.close().await;
    }

    /// Waits until another process replaces the master key, after which this process must stop.
    pub async fn evicted(&self) {
        self.base.evicted.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;

    use super::*;
    use crate::config::StoreOptions;
    use crate::store::postgres::tests::database;

    #[derive(Parser)]
    struct Line<T: clap::Args> {
        #[command(flatten)]
        options: T,
    }

    fn options<T: clap::Args>(data: &Path, database: &str) -> T {
        let line = ["guardian", "--store", database, "--grace-seconds", "1", "--data"];
        Line::try_parse_from(line.map(Into::into).into_iter().chain([data.as_os_str().to_owned()])).unwrap().options
    }

    fn config(data: &Path, database: &str) -> Config {
        Config { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..options(data, database) }
    }

    #[tokio::test]
    async fn a_store_knows_its_master_key() {
        let home = tempfile::tempdir().unwrap();
        let (config, key) = (config(home.path(), "embedded"), home.path().join("master.key"));
        Service::start(&config).await.unwrap().shutdown().await;
        Service::start(&config).await.unwrap().shutdown().await;
        std::fs::remove_file(&key).unwrap();
        assert!(matches!(Service::start(&config).await, Err(StartError::KeyMissing(_))));
        assert!(!key.exists(), "no other key takes its place");
        crate::vault::MasterKey::open(&key).unwrap();
        assert!(matches!(Service::start(&config).await, Err(StartError::ForeignKey(_))));
    }

    #[tokio::test]
    async fn an_embedded_store_has_no_workers_of_their_own() {
        let home = tempfile::tempdir().unwrap();
        let started = WorkerService::start(&options(home.path(), "embedded")).await;
        assert!(matches!(started, Err(StartError::Config(_))));
    }

    /// Starts only on the store with an id.
    async fn expecting(config: &Config, expected: Uuid) -> Result<Uuid, StartError> {
        let mut config = config.clone();
        config.store.expect_store = Some(expected);
        let service = Service::start(&config).await?;
        let id = service.store_id();
        service.shutdown().await;
        Ok(id)
    }

    fn is_other(started: Result<Uuid, StartError>, other: Option<Uuid>) -> bool {
        matches!(started, Err(StartError::OtherStore { found, .. }) if found == other)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn another_or_an_emptied_folder_is_not_started_on() {
        let home = tempfile::tempdir().unwrap();
        let (config, unknown_value) = (config(&home.path().join("data"), "embedded"), Uuid::now_v7());
        assert!(is_other(expecting(&config, unknown_value).await, None));
        assert!(!config.data.exists(), "nothing was made");
        let id = migrate(&config.store, &config.data).await.unwrap().id;
        assert_eq!(migrate(&config.store, &config.data).await.unwrap().id, id);
        assert_eq!(expecting(&config, id).await.unwrap(), id);
        assert!(is_other(expecting(&config, unknown_value).await, Some(id)));
        // emptied: the folder is there, the store is not
        for entry in std::fs::read_dir(&config.data).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        assert!(is_other(expecting(&config, id).await, None));
        assert_eq!(std::fs::read_dir(&config.data).unwrap().count(), 0, "nothing was made");
        std::fs::write(config.data.join("guardian.db"), "").unwrap();
        assert!(is_other(expecting(&config, id).await, None));
        assert_eq!(std::fs::metadata(config.data.join("guardian.db")).unwrap().len(), 0);
        assert_ne!(migrate(&config.store, &config.data).await.unwrap().id, id, "another store in its place");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn another_or_an_emptied_database_is_not_started_on() {
        let (one, empty) = (database!(), database!());
        let home = tempfile::tempdir().unwrap();
        let config = config(home.path(), &one.url());
        let id = migrate(&config.store, &config.data).await.unwrap().id;
        assert_eq!(expecting(&config, id).await.unwrap(), id);
        assert!(is_other(expecting(&config, Uuid::now_v7()).await, Some(id)));
        let emptied =
            Config { store: StoreOptions { url: Some(empty.url().into()), ..StoreOptions::default() }, ..config };
        assert!(is_other(expecting(&emptied, id).await, None));
        assert_eq!(empty.tables().await, 0, "nothing was made");
        let mut worker: WorkerOptions = options(home.path(), &empty.url());
        worker.store.expect_store = Some(id);
        assert!(matches!(WorkerService::start(&worker).await, Err(StartError::OtherStore { found: None, .. })));
        assert_eq!(empty.tables().await, 0, "nothing was made");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn processes_share_a_database_and_need_one_master_key() {
        let database = database!();
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let service = Service::start(&config(here.path(), &database.url())).await.unwrap();
        let mut worker: WorkerOptions = options(there.path(), &database.url());
        assert!(matches!(WorkerService::start(&worker).await, Err(StartError::KeyMissing(_))));
        worker.watch.metrics_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        worker.store.master_key = Some(here.path().join("master.key"));
        let workers = WorkerService::start(&worker).await.unwrap();
        assert_eq!(Some(workers.database()), service.database());
        let tools = workers.metrics().unwrap();
        for (path, holds) in [("readyz", "ok"), ("healthz", "ok"), ("metrics", "guardian_store_up 1")] {
            let answer = reqwest::get(format!("http://{tools}/{path}")).await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            assert!(answer.text().await.unwrap().contains(holds), "{path}");
        }
        workers.shutdown().await;
        service.shutdown().await;
    }
}
