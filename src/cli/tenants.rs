//! `guardian tenants`: sets and lists the options of tenants.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Args, Subcommand};

use super::exit::CommandOutcome;
use super::keys::{StoreLocation, named, say};
use super::serve::{not_started, runtime};
use crate::service::admin::{AdminOps, TenantChange, TenantSettings, UnrelatedPolicy};

/// An operation on tenants.
#[derive(Subcommand)]
pub enum TenantCommand {
    /// Sets the options of a tenant
    Set(Set),
    /// Lists tenants with keys or options, one per line: name, options
    List(ListedTenants),
}

/// The options of a tenant.
#[derive(Args)]
#[group(id = "options", required = true, multiple = true, args = ["approval_by_another", "unrelated"])]
pub struct Set {
    #[command(flatten)]
    place: StoreLocation,
    /// The tenant
    #[arg(value_parser = named)]
    tenant: String,
    /// Whether the approving key of a held release must differ from the keys that submitted its jobs
    #[arg(long, action = ArgAction::Set, value_name = "true|false")]
    approval_by_another: Option<bool>,
    /// What happens to a job of a population with person keys while it is unknown whether another published population
    /// with person keys has persons of it: the job is refused, or its release says so
    #[arg(long, value_name = "refuse|mark", value_parser = PossibleValuesParser::new(["refuse", "mark"]).map(policy))]
    unrelated: Option<UnrelatedPolicy>,
}

/// The store.
#[derive(Args)]
pub struct ListedTenants {
    #[command(flatten)]
    place: StoreLocation,
}

pub(super) fn run(command: &TenantCommand) -> Result<CommandOutcome, CommandOutcome> {
    runtime()?.block_on(async {
        match command {
            TenantCommand::Set(arguments) => set(arguments).await,
            TenantCommand::List(arguments) => list(arguments).await,
        }
    })
}

async fn set(arguments: &Set) -> Result<CommandOutcome, CommandOutcome> {
    let Set { place, tenant, approval_by_another, unrelated } = arguments;
    let change = TenantChange { approval_by_another: *approval_by_another, unrelated: *unrelated };
    let admin = AdminOps::open(&place.store, &place.data).await.map_err(not_started)?;
    let set = admin.set_tenant(tenant, change).await;
    admin.close().await;
    say(&line(tenant, set.map_err(not_started)?))?;
    Ok(CommandOutcome::Done)
}

async fn list(arguments: &ListedTenants) -> Result<CommandOutcome, CommandOutcome> {
    let admin = AdminOps::open(&arguments.place.store, &arguments.place.data).await.map_err(not_started)?;
    let tenants = admin.tenants().await;
    admin.close().await;
    for (tenant, settings) in tenants.map_err(not_started)? {
        say(&line(&tenant, settings))?;
    }
    Ok(CommandOutcome::Done)
}

fn line(tenant: &str, settings: TenantSettings) -> String {
    let TenantSettings { approval_by_another, unrelated } = settings;
    format!("{tenant}\tapproval-by-another={approval_by_another}\tunrelated={}", unrelated.name())
}

fn policy(name: String) -> UnrelatedPolicy {
    if name == UnrelatedPolicy::Mark.name() { UnrelatedPolicy::Mark } else { UnrelatedPolicy::Refuse }
}
