//! `guardian audit-log`: prints the audit log of a tenant.

use chrono::{DateTime, Utc};
use clap::Args;

use super::exit::CommandOutcome;
use super::keys::{StoreLocation, say};
use super::serve::{not_started, runtime};
use crate::identity::DEFAULT_TENANT;
use crate::service::admin::AdminOps;

/// The tenant and the start of the printed log.
#[derive(Args)]
pub struct AuditLogArguments {
    #[command(flatten)]
    place: StoreLocation,
    /// The tenant
    #[arg(long, default_value = DEFAULT_TENANT)]
    tenant: String,
    /// Only entries of this time or later, such as 2026-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<DateTime<Utc>>,
}

pub(super) fn run(arguments: &AuditLogArguments) -> Result<CommandOutcome, CommandOutcome> {
    runtime()?.block_on(async {
        let admin = AdminOps::open(&arguments.place.store, &arguments.place.data).await.map_err(not_started)?;
        let written = write(&admin, arguments).await;
        admin.close().await;
        written
    })
}

/// Writes one object per line, newest first.
async fn write(admin: &AdminOps, arguments: &AuditLogArguments) -> Result<CommandOutcome, CommandOutcome> {
    let mut cursor = None;
    loop {
        let page = admin.audit_log(&arguments.tenant, arguments.since, cursor).await;
        let page = page.map_err(not_started)?;
        for entry in page.items {
            say(&serde_json::to_string(&entry).map_err(|error| CommandOutcome::Internal(error.to_string()))?)?;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(CommandOutcome::Done);
        }
    }
}
