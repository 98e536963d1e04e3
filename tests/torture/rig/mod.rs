//! The rig: processes, clients, somebody who kills, and a judge.

mod client;
mod judge;
mod killer;
mod known;
mod processes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use known::Known;
use processes::Fleet;

/// What is tortured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreKind {
    Embedded,
    Postgres,
}

impl std::str::FromStr for StoreKind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "embedded" => Ok(Self::Embedded),
            "postgres" => Ok(Self::Postgres),
            _ => Err("embedded or postgres"),
        }
    }
}

/// How much of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seconds: u64,
    pub(crate) jobs: usize,
    pub(crate) seed: u64,
    pub(crate) store: StoreKind,
}

/// Choices that a seed repeats (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn fresh_seed() -> u64 {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).unwrap();
        u64::from(u32::from_le_bytes(bytes))
    }

    fn new(seed: u64, stream: u64) -> Self {
        Self(seed ^ stream.wrapping_mul(0xA076_1D64_78BD_642F))
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.roll() % bound as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())].clone()) }
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.roll() % (to - from))
    }
}

/// How many clients work at the same time.
const CLIENTS: u64 = 5;

/// Tortures a store; what was promised and not kept.
pub(crate) async fn run(plan: Plan) -> Vec<String> {
    println!("{plan:?}");
    let began = Instant::now();
    let fleet = Arc::new(Fleet::start(plan.store).await);
    let known = Arc::new(Known::default());
    let stop = Arc::new(AtomicBool::new(false));
    client::Client::new(Arc::clone(&fleet), Arc::clone(&known), Dice::new(plan.seed, 0), 0).declare_people().await;
    let killer = tokio::spawn(killer::kill(Arc::clone(&fleet), Dice::new(plan.seed, 0), Arc::clone(&stop)));
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| {
            let client =
                client::Client::new(Arc::clone(&fleet), Arc::clone(&known), Dice::new(plan.seed, number), number);
            tokio::spawn(client.work(plan.jobs / CLIENTS as usize, Arc::clone(&stop)))
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(plan.seconds)).await;
    stop.store(true, Ordering::SeqCst);
    let kills = killer.await.unwrap();
    for client in clients {
        client.await.unwrap();
    }
    let worked = began.elapsed();
    fleet.all_up().await;
    judge::drain(&fleet, &known).await;
    let drained = began.elapsed();
    judge::read_everything(&fleet, &known).await;
    fleet.stop().await;
    judge::look_into_the_store(&fleet, &known).await;
    let mut table = known.table();
    table.extend(kills);
    table.insert("time: seconds under fire".to_owned(), worked.as_secs());
    table.insert("time: seconds to drain".to_owned(), (drained - worked).as_secs());
    table.insert("time: seconds to judge".to_owned(), (began.elapsed() - drained).as_secs());
    show(&table);
    let violations = known.violations();
    if !violations.is_empty() {
        println!("{}", fleet.last_words());
    }
    drop(fleet);
    violations
}

fn show(table: &BTreeMap<String, u64>) {
    for (what, number) in table {
        println!("{what:<40} {number:>8}");
    }
}
