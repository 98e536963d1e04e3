//! The image and what runs beside it: what can be said of them without an engine that runs containers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::examples::{python, succeeded};
use crate::support::harness::run;

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
    for expected in ["--locked", "USER 10001:10001", "STOPSIGNAL SIGTERM", "GUARDIAN_AUTH=keys", "\"healthcheck\"]"] {
        assert!(image.contains(expected), "{expected}");
    }
    // the settings alone, without comments
    let settings: String = image.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!settings.contains("GUARDIAN_STORE") && !settings.contains("DATABASE_URL"), "no store by default");
}

#[test]
fn the_password_of_the_database_may_stand_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    let (fake, secret) = (home.path().join("guardian"), home.path().join("password"));
    fs::write(&fake, "#!/bin/sh\necho \"$* ${PGPASSWORD:-none} ${PGPASSWORD_FILE:-none}\"\n").unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&secret, "pass word\n").unwrap();
    let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap());
    let entry = || {
        let mut entry = Command::new(root().join("docker/entrypoint.sh"));
        entry.args(["serve", "--x"]).env("PATH", &path).env_remove("PGPASSWORD").env_remove("PGPASSWORD_FILE");
        entry
    };
    assert_eq!(succeeded(&run(&mut entry())), "serve --x none none\n");
    assert_eq!(succeeded(&run(entry().env("PGPASSWORD_FILE", &secret))), "serve --x pass word none\n");
    assert!(!run(entry().env("PGPASSWORD_FILE", home.path().join("nowhere"))).status.success());
}

#[test]
fn the_services_are_composed_as_they_should_be() {
    let Some(python) = python() else { return };
    let checked =
        run(Command::new(python).arg(root().join("tests/python/compose.py")).arg(root().join("docker-compose.yml")));
    assert!(succeeded(&checked).contains("as it should be"));
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
