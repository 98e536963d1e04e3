//! `guardian tenants`: what holds for one tenant.

use clap::{ArgAction, Args, Subcommand};

use super::exit::CommandOutcome;
use super::keys::{StoreLocation, named, say};
use super::serve::{not_started, runtime};
use crate::service::books::AdminOps;

/// What to do with tenants.
#[derive(Subcommand)]
pub enum Command {
    /// Decides what holds for a tenant
    Set(Set),
    /// Lists the tenants that have keys or settings, one a line: name, approval by another
    List(List),
}

/// What is to hold.
#[derive(Args)]
pub struct Set {
    #[command(flatten)]
    place: StoreLocation,
    /// Which tenant
    #[arg(value_parser = named)]
    tenant: String,
    /// Whether a held release is approved by another key only than those that submitted its jobs
    #[arg(long, action = ArgAction::Set, value_name = "true|false")]
    approval_by_another: bool,
}

/// Where.
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
    let books = AdminOps::open(&place.store, &place.data).await.map_err(not_started)?;
    let set = books.set_approval_by_another(tenant, *approval_by_another).await;
    books.close().await;
    say(&line(tenant, set.map_err(not_started)?.approval_by_another))?;
    Ok(CommandOutcome::Done)
}

async fn list(arguments: &List) -> Result<CommandOutcome, CommandOutcome> {
    let books = AdminOps::open(&arguments.place.store, &arguments.place.data).await.map_err(not_started)?;
    let tenants = books.tenants().await;
    books.close().await;
    for (tenant, settings) in tenants.map_err(not_started)? {
        say(&line(&tenant, settings.approval_by_another))?;
    }
    Ok(CommandOutcome::Done)
}

fn line(tenant: &str, approval_by_another: bool) -> String {
    format!("{tenant}\tapproval-by-another={approval_by_another}")
}
