//! A short run of the torture, which `cargo test --test torture` does at length.

#[path = "../../torture/rig/mod.rs"]
mod rig;

use rig::{Dice, Plan, StoreKind};

async fn tortured(seconds: u64, store: StoreKind) {
    let violations = rig::run(Plan { seconds, jobs: 60, seed: Dice::fresh_seed(), store }).await;
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn random_kills_lose_nothing() {
    tortured(6, StoreKind::Embedded).await;
}
