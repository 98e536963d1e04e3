//! Who kills.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::{Connection, PgConnection};

use super::Dice;
use super::processes::{Fleet, Role};

/// Kills at random instants until it must stop; returns how often it killed what.
pub(super) async fn kill(fleet: Arc<Fleet>, mut dice: Dice, stop: Arc<AtomicBool>) -> BTreeMap<String, u64> {
    let mut kills = BTreeMap::new();
    while !stop.load(Ordering::SeqCst) {
        tokio::time::sleep(dice.millis(200, 1500)).await;
        let what = match (dice.below(10), &fleet.cluster) {
            (0, Some(_)) => {
                let fleet = Arc::clone(&fleet);
                let crash = move || fleet.cluster.as_ref().map(super::processes::Cluster::crash);
                tokio::task::spawn_blocking(crash).await.unwrap();
                "Postgres crashed and restarted"
            }
            (1, Some(cluster)) => {
                backends(&cluster.url, "SELECT pg_terminate_backend(pid)", 3).await;
                "Postgres connections cut"
            }
            (2, Some(cluster)) => {
                kill_a_backend(&cluster.url).await;
                "Postgres backends killed"
            }
            (3, _) => {
                let slot = dice.below(fleet.len());
                tokio::task::block_in_place(|| fleet.signal(slot, "-TERM"));
                fleet.up(slot).await;
                "processes stopped by SIGTERM"
            }
            _ => {
                let slot = dice.below(fleet.len());
                tokio::task::block_in_place(|| fleet.signal(slot, "-KILL"));
                tokio::time::sleep(dice.millis(0, 300)).await;
                fleet.up(slot).await;
                if fleet.role(slot) == Role::Serve { "servers killed" } else { "workers killed" }
            }
        };
        *kills.entry(format!("kill: {what}")).or_default() += 1;
    }
    kills
}

/// The first column over some connections of the processes; nothing when the server is just away.
async fn backends(url: &str, select: &str, most: u32) -> Vec<i32> {
    let Ok(mut connection) = PgConnection::connect(url).await else { return Vec::new() };
    let sql = format!(
        "{select} FROM pg_stat_activity WHERE application_name = 'guardian' AND pid <> pg_backend_pid() \
         ORDER BY random() LIMIT {most}"
    );
    if select.contains("terminate") {
        let _ = sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await;
        return Vec::new();
    }
    sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap_or_default()
}

/// The server takes this for a crash: it ends every connection and recovers.
async fn kill_a_backend(url: &str) {
    for backend in backends(url, "SELECT pid", 1).await {
        let _ = std::process::Command::new("kill").args(["-KILL", &backend.to_string()]).status();
    }
}
