//! Limits of memory and open files of the process.

use std::fs;
use std::path::Path;

use crate::config::JobLimits;

/// The default share of the memory for jobs; uploads, requests and the cache of the store use the rest.
const MEMORY_DIVISOR: u64 = 2;

/// The memory budget of jobs and plans in bytes; `None` for no bound.
pub(super) fn budget(limits: &JobLimits) -> Option<u64> {
    match limits.memory_budget {
        Some(0) => None,
        Some(bytes) => Some(bytes),
        None => available(Path::new("/")).map(|bytes| bytes / MEMORY_DIVISOR),
    }
}

/// The memory of the machine or of the control group, whichever is smaller; `None` if both are unknown.
fn available(root: &Path) -> Option<u64> {
    [machine(root), group(root)].into_iter().flatten().min()
}

fn machine(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let kib: u64 =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// The smallest limit of the control group and its ancestors, version 2 or else version 1.
fn group(root: &Path) -> Option<u64> {
    let limit = |file: &Path| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next()?, fields.next()?);
        let (mount, name) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let mount = root.join(mount);
        let inside = Path::new(path.trim_start_matches('/'));
        limits.extend(inside.ancestors().filter_map(|ancestor| limit(&mount.join(ancestor).join(name))));
    }
    limits.into_iter().min()
}

/// Raises the limit of open files to its maximum, since connections are files.
pub(super) fn open_more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(error = %error, files = limit.current, "raising the limit of open files failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_tightest_bound_counts() {
        let memory = ("proc/meminfo", "MemTotal:        1000 kB\nMemFree: 1 kB\n");
        let own = ("proc/self/cgroup", "0::/a/b\n");
        let found = |files: &[(&str, &str)]| available(machine_with(files).path());
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[memory]), Some(1_024_000));
        assert_eq!(found(&[memory, own, ("sys/fs/cgroup/a/b/memory.max", "max\n")]), Some(1_024_000));
        assert_eq!(found(&[memory, own, ("sys/fs/cgroup/a/b/memory.max", "4096\n")]), Some(4096));
        let outer = ("sys/fs/cgroup/a/memory.max", "2048\n");
        assert_eq!(found(&[memory, own, outer, ("sys/fs/cgroup/a/b/memory.max", "4096\n")]), Some(2048));
        let first = ("proc/self/cgroup", "9:cpu:/x\n4:memory:/d\n");
        assert_eq!(found(&[memory, first, ("sys/fs/cgroup/memory/d/memory.limit_in_bytes", "8192\n")]), Some(8192));
        // a namespaced group sees itself as the root
        let contained = ("proc/self/cgroup", "0::/\n");
        assert_eq!(found(&[memory, contained, ("sys/fs/cgroup/memory.max", "512\n")]), Some(512));
    }

    #[test]
    fn the_budget_is_what_was_said_or_a_share() {
        let said = |memory_budget| budget(&JobLimits { memory_budget, ..JobLimits::default() });
        assert_eq!((said(Some(0)), said(Some(77))), (None, Some(77)));
        assert!(said(None).is_none_or(|bytes| bytes > 0));
    }
}
