//! Torture: real processes on a real store are killed at random instants while clients upload and submit; in the end everything
//! that was accepted must be there, once. `cargo test --test torture -- --store postgres --seconds 60`; it prints its seed, which
//! repeats its choices though not its instants. It talks to nothing but loopback.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and says what it did")]

mod rig;

use clap::Parser;

#[derive(Parser)]
struct Arguments {
    /// How long clients work while processes are killed
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// The most jobs that are submitted
    #[arg(long, default_value_t = 300)]
    jobs: usize,
    /// Repeats the choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// The store, `embedded` or `postgres`; the latter is a private one, by scripts/pg-tmp.sh
    #[arg(long, default_value = "embedded")]
    store: rig::StoreKind,
}

fn main() {
    let Arguments { seconds, jobs, seed, store } = Arguments::parse();
    let seed = seed.unwrap_or_else(rig::Dice::fresh_seed);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let violations = runtime.block_on(rig::run(rig::Plan { seconds, jobs, seed, store }));
    for violation in &violations {
        println!("VIOLATION {violation}");
    }
    println!("seed {seed}: {}", if violations.is_empty() { "nothing was lost" } else { "FAILED" });
    std::process::exit(i32::from(!violations.is_empty()));
}
