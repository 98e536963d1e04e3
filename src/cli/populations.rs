//! `guardian populations`: lists populations, and relates all that are published.

use clap::{Args, Subcommand};

use super::exit::CommandOutcome;
use super::keys::{StoreLocation, named, say};
use super::serve::{not_started, runtime};
use crate::report::PopulationItem;
use crate::service::admin::AdminOps;
use crate::service::populations::RelateError;

/// An operation on populations.
#[derive(Subcommand)]
pub enum PopulationCommand {
    /// Lists the populations of a tenant, one per line: name, key systems with their columns, description
    List(ListedPopulations),
    /// States that all published populations, and tables without one, have no person in common, pair by pair
    Relate(RelatedPopulations),
}

/// Whose populations.
#[derive(Args)]
pub struct ListedPopulations {
    #[command(flatten)]
    place: StoreLocation,
    /// The tenant
    #[arg(long, default_value = crate::identity::DEFAULT_TENANT, value_parser = named)]
    tenant: String,
}

/// What is declared.
#[derive(Args)]
pub struct RelatedPopulations {
    #[command(flatten)]
    place: StoreLocation,
    /// The tenant
    #[arg(long, value_parser = named)]
    tenant: String,
    /// Say so of all pairs. Pairs that have persons in common are listed and left out; then the exit code is 3
    #[arg(long, required = true)]
    all_disjoint: bool,
    /// Why, in 1 to 500 characters. Statements are never taken back
    #[arg(long, value_parser = reason)]
    reason: String,
}

fn reason(text: &str) -> Result<String, String> {
    let fits = !text.trim().is_empty() && text.chars().count() <= 500 && !text.contains('\0');
    if fits { Ok(text.to_owned()) } else { Err("must have 1 to 500 characters".to_owned()) }
}

pub(super) fn run(command: &PopulationCommand) -> Result<CommandOutcome, CommandOutcome> {
    runtime()?.block_on(async {
        match command {
            PopulationCommand::List(arguments) => list(arguments).await,
            PopulationCommand::Relate(arguments) => relate(arguments).await,
        }
    })
}

async fn open(place: &StoreLocation) -> Result<AdminOps, CommandOutcome> {
    AdminOps::open(&place.store, &place.data).await.map_err(not_started)
}

async fn list(arguments: &ListedPopulations) -> Result<CommandOutcome, CommandOutcome> {
    let admin = open(&arguments.place).await?;
    let populations = admin.populations(&arguments.tenant).await;
    admin.close().await;
    for population in populations.map_err(not_started)? {
        say(&line(&population))?;
    }
    Ok(CommandOutcome::Done)
}

fn line(population: &PopulationItem) -> String {
    let keys = population.person.iter().map(|key| format!("{}:{}", key.key_system, key.columns.join("+")));
    let keys = keys.collect::<Vec<_>>().join(",");
    let keys = if keys.is_empty() { "-" } else { &keys };
    // a description may have lines of its own
    let description = population.description.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}\t{keys}\t{description}", population.name)
}

async fn relate(arguments: &RelatedPopulations) -> Result<CommandOutcome, CommandOutcome> {
    let admin = open(&arguments.place).await?;
    let related = admin.relate_published(&arguments.tenant, &arguments.reason).await;
    admin.close().await;
    let related = related.map_err(|error| match error {
        RelateError::Refused(problem) => CommandOutcome::Refused(problem),
        RelateError::Store(error) => CommandOutcome::InputOutput(error.to_string()),
    })?;
    for [one, other] in &related.contradicted_pairs {
        say(&format!("in common\t{one}\t{other}"))?;
    }
    say(&format!("{} pairs are declared to have no person in common", related.disjoint_pairs))?;
    Ok(related.problem.map_or(CommandOutcome::Done, |problem| CommandOutcome::Refused(Box::new(problem))))
}
