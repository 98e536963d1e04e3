//! Stores of a test: the embedded one, and a database of its own on the server that `DATABASE_URL` names.

use std::path::{Path, PathBuf};

use guardian::config::{Config, StoreOptions};
use guardian::identity::Preset;
use guardian::ports::TenantChange;
use guardian::service::admin::AdminOps;
use guardian::service::keys::{ApiKeyAdmin, NewKey};
use guardian::store::OpenStore;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use tempfile::TempDir;
use uuid::Uuid;

use super::harness::Server;

/// A database that goes when it is dropped.
pub(crate) struct Database {
    server: PgConnectOptions,
    name: String,
}

/// A database with all tables and no row of a store, of which those of tests are copies: migrations take longer than many tests.
const TEMPLATE: &str = "guardian_tables";

impl Database {
    /// A database for a new store; `None`, and a line that says so, where there is no server.
    pub(crate) async fn create() -> Option<Self> {
        let Ok(url) = std::env::var("DATABASE_URL") else {
            let required = std::env::var("REQUIRE_POSTGRES").is_ok_and(|required| required == "1");
            assert!(!required, "REQUIRE_POSTGRES is 1, but DATABASE_URL names no Postgres");
            println!("skipped: DATABASE_URL names no Postgres; try scripts/pg-tmp.sh run cargo test");
            return None;
        };
        let database = Self { server: url.parse().unwrap(), name: format!("guardian_it_{}", Uuid::now_v7().simple()) };
        let mut create = format!("CREATE DATABASE {}", database.name);
        // a server that outlives the run might have the tables of an earlier version
        if std::env::var_os("GUARDIAN_TEST_PGDATA").is_some() {
            make_template(&database.server).await;
            // files are copied faster than pages through the log
            create += &format!(" TEMPLATE {TEMPLATE} STRATEGY FILE_COPY");
        }
        execute(&database.server, create).await;
        Some(database)
    }

    /// On the server, outside of the database.
    pub(crate) async fn execute(&self, sql: String) {
        execute(&self.server, sql).await;
    }

    pub(crate) fn options(&self) -> PgConnectOptions {
        self.server.clone().database(&self.name)
    }

    pub(crate) fn url(&self) -> String {
        self.options().to_url_lossy().into()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, drop) = (self.server.clone(), format!("DROP DATABASE {} WITH (FORCE)", self.name));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(execute(&server, drop));
        });
        if thread.join().is_err() {
            println!("{} was left behind", self.name);
        }
    }
}

/// Makes the template, unless another test has.
async fn make_template(server: &PgConnectOptions) {
    let mut connection = PgConnection::connect_with(server).await.unwrap();
    // until the connection is closed; tests that run at the same time wait for the first
    connection.execute("SELECT pg_advisory_lock(hashtext('guardian_tables'))").await.unwrap();
    let made = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)";
    let made: bool = sqlx::query_scalar(made).bind(TEMPLATE).fetch_one(&mut connection).await.unwrap();
    if !made {
        let new = format!("{TEMPLATE}_new");
        execute(server, format!("DROP DATABASE IF EXISTS {new}")).await;
        execute(server, format!("CREATE DATABASE {new}")).await;
        let url: String = server.clone().database(&new).to_url_lossy().into();
        OpenStore::open(Some(&url), Path::new("")).await.unwrap().close().await;
        execute(server, format!("ALTER DATABASE {new} RENAME TO {TEMPLATE}")).await;
    }
    connection.close().await.unwrap();
}

async fn execute(options: &PgConnectOptions, sql: String) {
    let mut connection = PgConnection::connect_with(options).await.unwrap();
    sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A store that services are started on, one after the other.
pub(crate) struct TestStore {
    home: TempDir,
    database: Option<Database>,
}

impl TestStore {
    pub(crate) fn embedded() -> Self {
        Self { home: tempfile::tempdir().unwrap(), database: None }
    }

    /// On Postgres; `None` where there is none.
    pub(crate) async fn shared() -> Option<Self> {
        Some(Self { database: Some(Database::create().await?), ..Self::embedded() })
    }

    fn options(&self) -> StoreOptions {
        let url = self.database.as_ref().map(|database| database.url().into());
        StoreOptions { url, ..StoreOptions::default() }
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A key of each tenant and preset, while no service runs.
    pub(crate) async fn tokens(&self, wanted: &[(&str, Preset)]) -> Vec<String> {
        let ring = ApiKeyAdmin::open(&self.options(), &self.data()).await.unwrap();
        let mut tokens = Vec::new();
        for (tenant, preset) in wanted {
            let (tenant, name) = ((*tenant).to_owned(), "test".to_owned());
            let wanted = NewKey { tenant, name, scopes: preset.scopes(), lifetime: None, populations: Vec::new() };
            tokens.push(ring.create(wanted).await.unwrap().1.reveal().to_string());
        }
        ring.close().await;
        tokens
    }

    /// Decides on a tenant, while no service runs.
    pub(crate) async fn set_tenant(&self, tenant: &str, change: TenantChange) {
        let admin = AdminOps::open(&self.options(), &self.data()).await.unwrap();
        admin.set_tenant(tenant, change).await.unwrap();
        admin.close().await;
    }

    pub(crate) async fn serve(&self, change: impl FnOnce(&mut Config)) -> Server {
        let (options, data) = (self.options(), self.data());
        Server::start_with(move |config| {
            (config.store, config.data) = (options, data);
            change(config);
        })
        .await
    }
}
