//! The processes: started, killed and started again, as a supervisor would.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use super::StoreKind;

/// What a process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Serve,
    Worker,
}

struct Slot {
    role: Role,
    child: Option<Child>,
    address: Option<String>,
}

/// A private Postgres.
pub(super) struct Cluster {
    folder: String,
    pub(super) url: String,
}

impl Cluster {
    fn start() -> Self {
        let output = Command::new(script()).arg("start").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "no Postgres: {}", String::from_utf8_lossy(&output.stderr));
        let line = |name: &str| said.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        Self { folder: line("DIR="), url: line("DATABASE_URL=") }
    }

    /// Ends the server without a checkpoint, as a crash would, and starts it again.
    pub(super) fn crash(&self) {
        assert!(Command::new(script()).args(["crash", &self.folder]).status().unwrap().success());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Command::new(script()).args(["stop", &self.folder]).status();
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/pg-tmp.sh")
}

/// All processes on one store.
pub(super) struct Fleet {
    slots: Vec<Mutex<Slot>>,
    pub(super) cluster: Option<Cluster>,
    pub(super) home: tempfile::TempDir,
}

/// The binary under torture.
pub(super) fn guardian() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_guardian"));
    for variable in ["RUST_LOG", "DATABASE_URL", "GUARDIAN_STORE", "GUARDIAN_AUTH"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

impl Fleet {
    pub(super) async fn start(store: StoreKind) -> Self {
        let roles: &[Role] = match store {
            StoreKind::Embedded => &[Role::Serve],
            StoreKind::Postgres => &[Role::Serve, Role::Serve, Role::Worker, Role::Worker],
        };
        let fleet = Self {
            slots: roles.iter().map(|&role| Mutex::new(Slot { role, child: None, address: None })).collect(),
            cluster: (store == StoreKind::Postgres).then(Cluster::start),
            home: tempfile::tempdir().unwrap(),
        };
        fleet.all_up().await;
        fleet
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn role(&self, slot: usize) -> Role {
        self.slots[slot].lock().unwrap().role
    }

    /// The folder of the embedded store, and of the master key.
    pub(super) fn data(&self) -> PathBuf {
        self.home.path().join("data-0")
    }

    fn spawn(&self, slot: usize) -> Option<(Child, Option<String>)> {
        let role = self.role(slot);
        let log = self.home.path().join(format!("{slot}.log"));
        let mut command = guardian();
        command.arg(if role == Role::Serve { "serve" } else { "worker" });
        command.arg("--data").arg(self.home.path().join(format!("data-{slot}")));
        command.args(["--grace-seconds", "2", "--workers", "2"]);
        command.arg("--master-key").arg(self.data().join("master.key"));
        if role == Role::Serve {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if let Some(cluster) = &self.cluster {
            command.arg("--store").arg(&cluster.url);
        }
        command.env("RUST_LOG", "warn").stdout(Stdio::piped());
        command.stderr(File::options().create(true).append(true).open(log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let said = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line);
        let address = line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned);
        if said.is_err() || line.is_empty() || (role == Role::Serve && address.is_none()) {
            // its store is away: a supervisor tries again
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        Some((child, address))
    }

    /// Starts what does not run.
    pub(super) async fn up(&self, slot: usize) {
        for _ in 0..600 {
            let runs = {
                let mut slot = self.slots[slot].lock().unwrap();
                slot.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
            };
            if runs {
                return;
            }
            match tokio::task::block_in_place(|| self.spawn(slot)) {
                Some((child, address)) => {
                    let mut slot = self.slots[slot].lock().unwrap();
                    (slot.child, slot.address) = (Some(child), address);
                    return;
                }
                None => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        panic!("process {slot} does not start: {}", self.last_words());
    }

    pub(super) async fn all_up(&self) {
        for slot in 0..self.len() {
            self.up(slot).await;
        }
    }

    /// Sends a signal and waits for the end of the process; how it ended.
    pub(super) fn signal(&self, slot: usize, signal: &str) -> Option<std::process::ExitStatus> {
        let taken = {
            let mut slot = self.slots[slot].lock().unwrap();
            slot.address = None;
            slot.child.take()
        };
        let mut child = taken?;
        // it may have ended already
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        child.wait().ok()
    }

    /// Where somebody serves at the moment.
    pub(super) fn addresses(&self) -> Vec<String> {
        self.slots.iter().filter_map(|slot| slot.lock().unwrap().address.clone()).collect()
    }

    pub(super) async fn stop(&self) {
        for slot in 0..self.len() {
            let ended = tokio::task::block_in_place(|| self.signal(slot, "-TERM"));
            assert!(ended.is_some_and(|ended| ended.success()), "process {slot} did not stop as it should: {ended:?}");
        }
    }

    /// The ends of the logs.
    pub(super) fn last_words(&self) -> String {
        let mut words = String::new();
        for slot in 0..self.len() {
            let log = std::fs::read_to_string(self.home.path().join(format!("{slot}.log"))).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(40)..].join("\n");
            words.push_str(&format!("--- process {slot}, {:?}\n{last}\n", self.role(slot)));
        }
        words
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for slot in 0..self.len() {
            self.signal(slot, "-KILL");
        }
    }
}
