//! `guardian tenants`: sets and lists the options of tenants.

use clap::{ArgAction, Args, Subcommand};

use super::exit::CommandOutcome;
use super::keys::{StoreLocation, named, say};
use super::serve::{not_started, runtime};
use crate::service::admin::AdminOps;

/// An operation on tenants.
#[derive(Subcommand)]
pub enum Command {
    /// Sets the options of a tenant
    Set(Set),
    /// Lists tenants with keys or options, one per line: name, approval by another
    List(List),
}

/// The options of a tenant.
#[derive(Args)]
pub struct Set {
    #[command(flatten)]
    place: StoreLocation,
    /// The tenant
    #[arg(value_parser = named)]
    tenant: String,
    /// Whether the approving key of a held release must differ from the keys that submitted its jobs
    #[arg(long, action = ArgAction::Set, value_name = "true|false")]
    approval_by_another: bool,
}

/// The store.
#[derive(Args)]
pub struct List {
    #[command(flatten)]
    place: StoreLocation,
}

pub(super) fn run(command: &Command) -> Result<CommandOutcome, CommandOutcome> {
    runtime()?.block_on(async {
        match command {
            Command::Set(arguments) => set(arguments).await,
            Command::List(arguments) => list(arguments).await,
        }
    })
}

async fn set(arguments: &Set) -> Result<CommandOutcome, CommandOutcome> {
    let Set { place, tenant, approval_by_another } = arguments;
    let admin = AdminOps::open(&place.store, &place.data).await.map_err(not_started)?;
    let set = admin.set_approval_by_another(tenant, *approval_by_another).await;
    admin.close().await;
    say(&line(tenant, set.map_err(not_started)?.approval_by_another))?;
    Ok(CommandOutcome::Done)
}

async fn list(arguments: &List) -> Result<CommandOutcome, CommandOutcome> {
    let admin = AdminOps::open(&arguments.place.store, &arguments.place.data).await.map_err(not_started)?;
    let tenants = admin.tenants().await;
    admin.close().await;
    for (tenant, settings) in tenants.map_err(not_started)? {
        say(&line(&tenant, settings.approval_by_another))?;
    }
    Ok(CommandOutcome::Done)
}

fn line(tenant: &str, approval_by_another: bool) -> String {
    format!("{tenant}\tapproval-by-another={approval_by_another}")
}
