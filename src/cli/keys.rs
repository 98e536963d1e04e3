//! `guardian keys`: manages the keys of `serve --auth keys`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use uuid::Uuid;

use super::exit::CommandOutcome;
use super::serve::{not_started, runtime};
use super::standard_output::ended;
use crate::config::StoreOptions;
use crate::identity::{ApiKey, DEFAULT_TENANT, Preset, Scope, Scopes, is_tenant};
use crate::service::keys::{ApiKeyAdmin, NewKey};
use crate::spec::{POPULATION_NAME, is_population_name};

/// An operation on keys.
#[derive(Subcommand)]
pub enum KeyCommand {
    /// Creates a key and prints its token, which is shown only once
    Create(Create),
    /// Lists keys, one per line: id, state (valid, expired or revoked), tenant, name, scopes, end, populations
    List(ListedKeys),
    /// Revokes a key
    Revoke(Revoke),
}

/// The store. Only one process can open the embedded store at a time.
#[derive(Args)]
pub(super) struct StoreLocation {
    /// The folder of the embedded store
    #[arg(long, env = "GUARDIAN_DATA", default_value = "guardian-data")]
    pub(super) data: PathBuf,
    #[command(flatten)]
    pub(super) store: StoreOptions,
}

/// Options of a new key.
#[derive(Args)]
pub struct Create {
    #[command(flatten)]
    place: StoreLocation,
    /// The tenant whose data the key opens
    #[arg(long, default_value = DEFAULT_TENANT, value_parser = tenant)]
    tenant: String,
    /// The purpose of the key
    #[arg(long, value_parser = named)]
    name: String,
    /// A preset of scopes: pipeline, officer, analyst, operator or admin
    #[arg(long, value_parser = preset, required_unless_present = "scopes", conflicts_with = "scopes")]
    preset: Option<Preset>,
    /// Scopes, separated by spaces
    #[arg(long, value_parser = scopes)]
    scopes: Option<Scopes>,
    /// Lifetime as an ISO 8601 duration of at most P365D. Default: unlimited
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    expires: Option<Duration>,
    /// A population into which the key uploads, and into no other; can be given several times. Default: any
    #[arg(long = "population", value_name = "NAME", value_parser = population)]
    populations: Vec<String>,
}

/// Filter of the listed keys.
#[derive(Args)]
pub struct ListedKeys {
    #[command(flatten)]
    place: StoreLocation,
    /// Only keys of this tenant
    #[arg(long)]
    tenant: Option<String>,
}

/// The key to revoke.
#[derive(Args)]
pub struct Revoke {
    #[command(flatten)]
    place: StoreLocation,
    /// The id of the key
    id: Uuid,
}

pub(super) fn named(text: &str) -> Result<String, String> {
    let fits = (1..=100).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if fits { Ok(text.to_owned()) } else { Err("must have 1 to 100 characters without control characters".to_owned()) }
}

fn tenant(text: &str) -> Result<String, String> {
    let shape = "must have 1 to 64 letters, digits, spaces or -_.:@+, and begin and end with a letter or digit";
    is_tenant(text).then(|| text.to_owned()).ok_or_else(|| shape.to_owned())
}

fn preset(text: &str) -> Result<Preset, String> {
    text.parse().map_err(|_| format!("must be one of {}", Preset::ALL.map(Preset::name).join(", ")))
}

fn scopes(text: &str) -> Result<Scopes, String> {
    let names = || Scope::ALL.iter().map(|scope| scope.name()).collect::<Vec<_>>().join(" ");
    let scopes = text.parse().ok().filter(|scopes| *scopes != Scopes::NONE);
    scopes.ok_or_else(|| format!("must be a list of {}", names()))
}

fn population(text: &str) -> Result<String, String> {
    is_population_name(text).then(|| text.to_owned()).ok_or_else(|| format!("must be {POPULATION_NAME}"))
}

fn lifetime(text: &str) -> Result<Duration, String> {
    crate::spec::duration(text).ok_or_else(|| "must be an ISO 8601 duration such as P30D, at most P365D".to_owned())
}

pub(super) fn run(command: &KeyCommand) -> Result<CommandOutcome, CommandOutcome> {
    runtime()?.block_on(async {
        match command {
            KeyCommand::Create(arguments) => create(arguments).await,
            KeyCommand::List(arguments) => list(arguments).await,
            KeyCommand::Revoke(arguments) => revoke(arguments).await,
        }
    })
}

async fn open(place: &StoreLocation) -> Result<ApiKeyAdmin, CommandOutcome> {
    ApiKeyAdmin::open(&place.store, &place.data).await.map_err(not_started)
}

async fn create(arguments: &Create) -> Result<CommandOutcome, CommandOutcome> {
    let ring = open(&arguments.place).await?;
    let scopes = arguments.scopes.or(arguments.preset.map(Preset::scopes)).unwrap_or_default();
    let (tenant, name) = (arguments.tenant.clone(), arguments.name.clone());
    let mut populations = arguments.populations.clone();
    populations.sort_unstable();
    populations.dedup();
    let made = ring.create(NewKey { tenant, name, scopes, lifetime: arguments.expires, populations }).await;
    ring.close().await;
    let (key, token) = made.map_err(not_started)?;
    say(&token.reveal())?;
    // the token is printed; `keys list` also shows the id
    let _ = writeln!(std::io::stderr().lock(), "key {} of tenant {}: the token is shown only once", key.id, key.tenant);
    Ok(CommandOutcome::Done)
}

async fn list(arguments: &ListedKeys) -> Result<CommandOutcome, CommandOutcome> {
    let ring = open(&arguments.place).await?;
    let (keys, now) = (ring.list(arguments.tenant.as_deref()).await, ring.now());
    ring.close().await;
    for key in keys.map_err(not_started)? {
        say(&line(&key, now))?;
    }
    Ok(CommandOutcome::Done)
}

fn line(key: &ApiKey, now: DateTime<Utc>) -> String {
    let state = match key {
        key if key.revoked_at.is_some() => "revoked",
        key if key.has_expired(now) => "expired",
        _ => "valid",
    };
    let end = key.expires_at.map_or_else(|| "-".to_owned(), |end| end.format("%Y-%m-%dT%H:%M:%SZ").to_string());
    let ApiKey { id, tenant, name, scopes, populations, .. } = key;
    let populations = if populations.is_empty() { "-".to_owned() } else { populations.join(", ") };
    format!("{id}\t{state}\t{tenant}\t{name}\t{scopes}\t{end}\t{populations}")
}

async fn revoke(arguments: &Revoke) -> Result<CommandOutcome, CommandOutcome> {
    let ring = open(&arguments.place).await?;
    let (revoked, now) = (ring.revoke(arguments.id).await, ring.now());
    ring.close().await;
    let key =
        revoked.map_err(not_started)?.ok_or_else(|| CommandOutcome::Usage("the key does not exist".to_owned()))?;
    say(&line(&key, now))?;
    Ok(CommandOutcome::Done)
}

pub(super) fn say(text: &str) -> Result<(), CommandOutcome> {
    ended(writeln!(std::io::stdout().lock(), "{text}"))
}
