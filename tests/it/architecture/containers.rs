//! The image and what runs beside it: what can be said of them without an engine that runs containers.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::examples::{python, succeeded};
use crate::support::harness::{run, text};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The files of a folder and its folders.
fn walk(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, found) } else { found.push(path) }
    }
}

#[test]
fn the_image_is_built_from_all_that_the_build_reads() {
    let sent: Vec<String> =
        read(".dockerignore").lines().filter_map(|line| line.strip_prefix('!')).map(str::to_owned).collect();
    let is_sent = |path: &Path| sent.iter().any(|sent| path.starts_with(root().join(sent)));
    let mut sources = Vec::new();
    walk(&root().join("src"), &mut sources);
    let mut included = 0;
    let of_tests = |path: &Path| path.iter().any(|name| name == "tests" || name == "tests.rs" || name == "conformance");
    for source in sources.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        if of_tests(source.strip_prefix(root()).unwrap()) {
            continue;
        }
        let text = fs::read_to_string(source).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        for called in ["include_str!(\"", "include_bytes!(\""] {
            for rest in text.split(called).skip(1) {
                let path = source.parent().unwrap().join(rest.split('"').next().unwrap());
                let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert!(is_sent(&path), "{} reads {}, which is not sent", source.display(), path.display());
                included += 1;
            }
        }
    }
    assert!(included > 0);
    for read in ["Cargo.toml", "Cargo.lock", "build.rs", "src/main.rs", "migrations", "openapi/examples"] {
        assert!(is_sent(&root().join(read)), "{read} is not sent");
    }
    for kept in ["guardian-data", ".git", "target", "docker/secrets", "docs"] {
        assert!(!is_sent(&root().join(kept)), "{kept} is sent");
    }
    // the paths that the manifest names must be there for it to be read
    let manifest = read("Cargo.toml");
    for path in manifest.lines().filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"')) {
        assert!(is_sent(&root().join(path)), "{path} is not sent");
    }
    let image = read("Dockerfile");
    assert!(
        image
            .lines()
            .filter(|line| line.starts_with("FROM"))
            .all(|line| line.contains(':') && !line.contains("latest"))
    );
    let version = format!("image.version=\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(image.contains(&version), "the label says another version");
    let base = image.lines().filter_map(|line| line.strip_prefix("FROM ")).next_back().unwrap();
    assert!(image.contains(&format!("image.base.name=\"{base}\"")), "the label says another base");
    for file in ["docker-compose.yml", "docker/single-node.yml", "deploy/kubernetes/serve.yaml"] {
        assert!(read(file).contains(&format!("image: guardian:{}\n", env!("CARGO_PKG_VERSION"))), "{file}");
    }
    for expected in ["--locked", "USER 10001:10001", "STOPSIGNAL SIGTERM", "GUARDIAN_AUTH=keys", "\"healthcheck\"]"] {
        assert!(image.contains(expected), "{expected}");
    }
    // the settings alone, without comments
    let settings: String = image.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!settings.contains("GUARDIAN_STORE") && !settings.contains("DATABASE_URL"), "no store by default");
}

/// The entry of the image before a program that prints its arguments and the password.
struct Entry {
    home: tempfile::TempDir,
}

impl Entry {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let fake = home.path().join("guardian");
        fs::write(&fake, "#!/bin/sh\necho \"$* ${PGPASSWORD:-none} ${PGPASSWORD_FILE:-none}\"\n").unwrap();
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
        Self { home }
    }

    fn command(&self, arguments: &str) -> Command {
        let mut entry = Command::new(root().join("docker/entrypoint.sh"));
        let path = format!("{}:{}", self.home.path().display(), std::env::var("PATH").unwrap());
        entry.args(arguments.split(' ')).env_clear().env("PATH", &path);
        entry
    }
}

#[test]
fn the_password_of_the_database_may_stand_in_a_file() {
    let image = Entry::new();
    let secret = image.home.path().join("password");
    fs::write(&secret, "pass word\n").unwrap();
    let entry = || image.command("migrate --x");
    assert_eq!(succeeded(&run(&mut entry())), "migrate --x none none\n");
    assert_eq!(succeeded(&run(entry().env("PGPASSWORD_FILE", &secret))), "migrate --x pass word none\n");
    assert!(!run(entry().env("PGPASSWORD_FILE", image.home.path().join("nowhere"))).status.success());
}

/// It would be gone with the container.
#[test]
fn a_container_of_a_shared_store_makes_no_key() {
    let image = Entry::new();
    let ends = |arguments: &str, variable: &str| {
        let mut entry = image.command(arguments);
        if let Some((name, value)) = variable.split_once('=') {
            entry.env(name, value);
        }
        run(&mut entry).status.code().unwrap()
    };
    for (arguments, variable) in [
        ("serve", ""),
        ("worker --workers 2", "DATABASE_URL=postgres://db/guardian"),
        ("serve --store postgres://db/embedded", ""),
        ("serve", "GUARDIAN_STORE=postgres://db/guardian"),
    ] {
        assert_eq!(ends(arguments, variable), 2, "{arguments} {variable}");
    }
    for (arguments, variable) in [
        ("serve", "GUARDIAN_STORE=embedded"),
        ("serve --store embedded", ""),
        ("serve --master-key /run/key", ""),
        ("worker", "GUARDIAN_MASTER_KEY_FILE=/run/key"),
        ("serve", "GUARDIAN_CONFIG=/etc/guardian.toml"),
        ("keys list", ""),
    ] {
        assert_eq!(ends(arguments, variable), 0, "{arguments} {variable}");
    }
}

/// Runs a script of `tests/python` on files of the repository.
fn checked(script: &str, arguments: &[&str]) {
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    command.arg(root().join("tests/python").join(script)).args(arguments.iter().map(|path| root().join(path)));
    assert!(succeeded(&run(&mut command)).contains("as it should be"));
}

#[test]
fn the_services_are_composed_as_they_should_be() {
    checked("compose.py", &["docker-compose.yml", "docker/single-node.yml"]);
}

/// They are of the schemas of Kubernetes, and agree with each other.
#[test]
fn the_manifests_of_kubernetes_are_as_they_should_be() {
    checked("kubernetes.py", &["deploy/kubernetes"]);
}

/// A variable that no option reads would be a setting without effect.
#[test]
fn variables_of_deployments_are_options() {
    let options = read("docs/reference/configuration.md");
    let mut files = vec!["Dockerfile", "docker-compose.yml", "docker/single-node.yml", "examples/guardian.service"];
    let manifests = ["config.yaml", "migrate.yaml", "serve.yaml", "worker.yaml"];
    let manifests = manifests.map(|name| format!("deploy/kubernetes/{name}"));
    files.extend(manifests.iter().map(String::as_str));
    for file in files {
        let text = read(file);
        let words = text.split(|mark: char| !(mark.is_ascii_uppercase() || mark == '_'));
        let named: Vec<&str> = words.filter(|word| word.starts_with("GUARDIAN_")).collect();
        assert!(!named.is_empty() || file.ends_with("migrate.yaml"), "{file}");
        for name in named {
            assert!(options.contains(&format!("(`{name}`")), "{file}: no option reads {name}");
        }
    }
}

/// An alert over a metric that is not there never fires.
#[test]
fn alerts_are_over_metrics_that_there_are() {
    let metrics = read("docs/metrics.md");
    let alerts = read("docker/alerts.yml");
    let names = alerts.split(|mark: char| !(mark.is_ascii_lowercase() || mark == '_'));
    let names: Vec<&str> = names.filter(|word| word.starts_with("guardian_")).collect();
    assert!(names.len() >= 8, "{names:?}");
    for name in names {
        assert!(metrics.contains(&format!("| `{name}` |")), "there is no metric {name}");
    }
}

/// The list of what is built in has what cargo builds in, each with the checksum of the lock file.
#[test]
fn the_bill_of_materials_lists_what_is_built_in() {
    // as the image is built
    let list = || succeeded(&run(Command::new(root().join("scripts/sbom.sh")).env("FEATURES", "spark")));
    let listed = list();
    assert_eq!(listed, list(), "it differs between runs");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let components = listed["components"].as_array().unwrap();
    let found: BTreeSet<String> =
        components.iter().map(|one| format!("{} v{}", text(&one["name"]), text(&one["version"]))).collect();
    let mut tree = Command::new(env!("CARGO"));
    tree.args([
        "tree",
        "--locked",
        "--features",
        "spark",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let tree = succeeded(&run(tree.current_dir(root())));
    // what follows name and version says where a package is from
    let built = tree.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
    let built: BTreeSet<String> = built.filter(|package| !package.starts_with("guardian v")).collect();
    assert!(built.len() > 100 && found.is_superset(&built), "{:?}", built.difference(&found));
    assert!(read("Dockerfile").contains("ARG FEATURES=spark\n"));
    let lock = read("Cargo.lock");
    for component in components {
        let sum = text(&component["hashes"][0]["content"]);
        assert!(lock.contains(&format!("checksum = \"{sum}\"")), "{component}");
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
    }
}
