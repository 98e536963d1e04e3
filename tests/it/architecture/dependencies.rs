//! The house: arrows between rooms, sizes, and what is generated or forbidden in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::rust_source::{Token, strip, tokens};

/// What each room may use, nearest first. Whatever is not listed is forbidden.
///
/// A room is a folder or file directly under `src/`. Tests beside the code may use anything.
const ARROWS: &[(&str, &[&str])] = &[
    ("main", &["cli"]),
    (
        "cli",
        &[
            "service",
            "api",
            "identity",
            "config",
            "telemetry",
            "meter",
            "objects",
            "spark",
            "engine",
            "ledger",
            "people",
            "report",
            "model",
            "random",
            "spec",
            "problem",
            "publication",
            "microdata",
            "control",
        ],
    ),
    (
        "service",
        &[
            "api",
            "jobs",
            "app",
            "inputs",
            "ports",
            "identity",
            "store",
            "objects",
            "spark",
            "vault",
            "clock",
            "config",
            "microdata",
            "report",
            "telemetry",
        ],
    ),
    // the plan is the engine's; parts, manifests and reports are the report's; documents are read by the spec's reader
    (
        "api",
        &[
            "app",
            "inputs",
            "ports",
            "identity",
            "telemetry",
            "meter",
            "objects",
            "clock",
            "engine",
            "report",
            "model",
            "spec",
            "problem",
            "publication",
            "microdata",
            "control",
        ],
    ),
    ("telemetry", &["config"]),
    ("config", &[]),
    (
        "jobs",
        &[
            "inputs",
            "ports",
            "engine",
            "ledger",
            "people",
            "report",
            "random",
            "spec",
            "problem",
            "publication",
            "microdata",
            "control",
            "vault",
            "clock",
            "meter",
        ],
    ),
    (
        "app",
        &[
            "inputs",
            "ports",
            "identity",
            "engine",
            "ledger",
            "people",
            "report",
            "random",
            "spec",
            "problem",
            "publication",
            "microdata",
            "control",
            "vault",
            "clock",
            "meter",
        ],
    ),
    (
        "inputs",
        &[
            "ports",
            "engine",
            "verifier",
            "ledger",
            "people",
            "report",
            "spec",
            "problem",
            "publication",
            "microdata",
            "control",
            "vault",
        ],
    ),
    // implements the traits that ports declares
    ("store", &["ports", "identity", "people", "meter", "problem", "publication", "control", "vault"]),
    ("ports", &["identity", "ledger", "people", "spec", "problem", "publication", "control", "vault"]),
    // addresses and objects of object stores, with credentials of the environment
    ("objects", &[]),
    // statements and sessions of another engine, for what the core asks of it
    ("spark", &["engine", "report", "publish", "privacy", "microdata", "control"]),
    // names every metric; records calls of other modules
    ("meter", &[]),
    // keys, scopes, callers
    ("identity", &[]),
    ("vault", &[]),
    ("clock", &[]),
    (
        "engine",
        &[
            "publish",
            "verifier",
            "ledger",
            "report",
            "republication",
            "privacy",
            "utility",
            "model",
            "random",
            "spec",
            "problem",
            "publication",
            "microdata",
            "control",
        ],
    ),
    // the state of a population, and its nights
    ("republication", &["random", "publication", "control"]),
    ("publish", &["privacy", "model", "random", "spec", "problem", "publication", "microdata", "control"]),
    // shares types, no functions, with what it checks
    ("verifier", &["publication", "microdata", "control"]),
    ("ledger", &["privacy", "publication", "microdata"]),
    // who rows speak of
    ("people", &["microdata", "control"]),
    ("report", &["publication", "microdata"]),
    ("privacy", &["publication", "microdata", "control"]),
    // what only the holder of the original can: the internal report, and nothing else, has it
    ("utility", &["model", "publication", "microdata", "control"]),
    // what a reader of the parts can compute
    ("model", &["publication", "microdata", "control"]),
    ("spec", &["problem", "publication", "microdata"]),
    // maps the errors of reading
    ("problem", &["microdata"]),
    ("publication", &["microdata"]),
    ("random", &[]),
    ("microdata", &[]),
    ("control", &[]),
];

/// The rooms that know nothing of HTTP, SQL, clocks or the async runtime.
const PURE: &[&str] = &[
    "engine",
    "publish",
    "verifier",
    "ledger",
    "people",
    "report",
    "republication",
    "privacy",
    "utility",
    "model",
    "spec",
    "problem",
    "publication",
    "random",
    "microdata",
    "control",
];

const IMPURE: &[&str] = &["axum", "tokio", "sqlx", "chrono", "reqwest", "SystemTime", "Instant"];

/// What serves releases, and so must not reach datasets.
const READERS: &[&str] = &[
    "api/routes/attacks.rs",
    "api/routes/linked.rs",
    "api/routes/parts.rs",
    "api/routes/queries.rs",
    "api/routes/releases.rs",
    "api/routes/verifications.rs",
    "engine/attack/mod.rs",
    "engine/attack/play.rs",
    "engine/attack/report.rs",
    "engine/read_back/query.rs",
    "engine/read_back/external.rs",
    "engine/verification/mod.rs",
];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file under `folder`, sorted, as a path relative to it.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let skipped = next == root() && ["target", ".git", "guardian-data"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && !skipped {
                folders.push(path);
            } else if path.is_file() && !skipped {
                found.push(path);
            }
        }
    }
    let mut found: Vec<_> = found.iter().map(|path| path.strip_prefix(folder).unwrap().to_owned()).collect();
    found.sort();
    found
}

/// The files of the program itself: neither tests nor what only tests use.
pub(crate) fn program() -> Vec<(String, String)> {
    let source = root().join("src");
    let of_tests = ["tests", "conformance", "mutation", "fixture"];
    files(&source)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter(|path| !path.with_extension("").iter().any(|name| of_tests.iter().any(|test| name == *test)))
        .map(|path| (path.to_string_lossy().replace('\\', "/"), fs::read_to_string(source.join(&path)).unwrap()))
        .collect()
}

fn room_of(file: &str) -> &str {
    file.split('/').next().unwrap().trim_end_matches(".rs")
}

/// How many modules deep the module of a file lies: 1 for `engine.rs` and `engine/mod.rs`, 2 for `engine/plan.rs`.
fn depth_of(file: &str) -> usize {
    match file {
        "lib.rs" | "main.rs" => 0,
        _ => file.trim_end_matches("/mod.rs").split('/').count(),
    }
}

/// The rooms that a file names: after `crate::`, after as many `super::` as lead out of its room, after `guardian::` in the
/// program's entry, each also in braces.
fn rooms_named(file: &str, text: &str) -> Vec<String> {
    let tokens = tokens(&strip(text));
    let name = |at: usize| tokens.get(at).and_then(Token::name);
    let colons = |at: usize| tokens.get(at).is_some_and(|token| token.is("::"));
    let mut named = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut next = at + 1;
        let leads_out = match name(at) {
            Some("crate") => true,
            Some("guardian") => !colons(at.wrapping_sub(1)),
            Some("super") if !(at >= 2 && name(at - 2) == Some("super")) => {
                let mut supers = 1;
                while colons(next) && name(next + 1) == Some("super") {
                    supers += 1;
                    next += 2;
                }
                supers >= depth_of(file)
            }
            _ => false,
        };
        at = next;
        if !leads_out || !colons(next) {
            continue;
        }
        if let Some(room) = name(next + 1) {
            named.push(room.to_owned());
        } else if tokens.get(next + 1).is_some_and(|token| token.is("{")) {
            // the first name of every item at the outermost level of the braces
            let (mut level, mut first) = (0, true);
            for token in &tokens[next + 1..] {
                match token {
                    token if token.is("{") => {
                        level += 1;
                    }
                    token if token.is("}") => level -= 1,
                    token if token.is(",") => first |= level == 1,
                    token => {
                        if let (Some(room), true) = (token.name(), first && level == 1) {
                            named.push(room.to_owned());
                            first = false;
                        }
                    }
                }
                if level == 0 {
                    break;
                }
            }
        }
    }
    named
}

/// What a file does that the house forbids, in words.
fn wrongs(file: &str, text: &str) -> Vec<String> {
    let room = room_of(file);
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
        return vec![format!("{file}: the room {room} has no arrows in the table")];
    };
    let mut wrongs = Vec::new();
    for named in rooms_named(file, text) {
        // macros are exported at the root
        let target = if named == "with_codes" { "microdata" } else { &named };
        if target != room && !allowed.contains(&target) {
            wrongs.push(format!("{file}: {room} must not use {target}"));
        }
    }
    if PURE.contains(&room) {
        for token in tokens(&strip(text)) {
            if let Some(name) = token.name().filter(|name| IMPURE.contains(name)) {
                wrongs.push(format!("{file}: {room} must not know {name}"));
            }
        }
    }
    wrongs
}

#[test]
fn arrows_run_one_way() {
    let program = program();
    assert!(program.len() > 50, "the program was found");
    let wrongs: Vec<String> =
        program.iter().filter(|(file, _)| file != "lib.rs").flat_map(|(file, text)| wrongs(file, text)).collect();
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
    // the table says nothing of rooms that are gone, and runs in no circle
    for (at, (room, allowed)) in ARROWS.iter().enumerate() {
        assert!(program.iter().any(|(file, _)| room_of(file) == *room), "there is no room {room}");
        for target in *allowed {
            assert!(ARROWS[at + 1..].iter().any(|(below, _)| below == target), "{room} -> {target} does not lead down");
        }
    }
}

#[test]
fn a_forbidden_arrow_is_found() {
    let found = |file: &str, text: &str| wrongs(file, text).len();
    assert_eq!(found("verifier/mod.rs", "use crate::microdata::Table; use crate::publication::Part;"), 0);
    assert_eq!(found("verifier/mod.rs", "use crate::privacy::reduce;"), 1);
    assert_eq!(found("verifier/mod.rs", "fn f() { crate::privacy::reduce(&[]); }"), 1);
    assert_eq!(
        found("verifier/mod.rs", "use crate::{\n    microdata::{Attr, privacy},\n    privacy::{self, judge},\n};"),
        1
    );
    assert_eq!(found("verifier/mod.rs", "use super::publish::{a, b};"), 1);
    assert_eq!(found("verifier/gnf.rs", "use super::publish::{a, b};"), 0, "a module of its own room");
    assert_eq!(found("verifier/gnf.rs", "use super::super::{publish, privacy as p};"), 2);
    assert_eq!(found("verifier/gnf.rs", "pub(crate) use crate::publish as made;"), 1);
    assert_eq!(
        found("verifier/gnf.rs", "// crate::privacy\n/* crate::privacy */ const A: &str = \"crate::privacy\";"),
        0
    );
    assert_eq!(found("verifier/gnf.rs", "#[cfg(test)]\nmod tests { use crate::privacy::judge; }\n"), 0);
    assert_eq!(found("verifier/gnf.rs", "#[cfg(test)]\nuse crate::privacy::judge;\nuse crate::privacy::judge;"), 1);
    assert_eq!(found("verifier/gnf.rs", "#[cfg(not(test))]\nuse crate::privacy::judge;"), 1);
    assert_eq!(found("publish/mod.rs", "use crate::with_codes; use crate::random::Streams;"), 0);
    assert_eq!(found("publish/mod.rs", "use std::time::Instant; fn f(at: chrono::DateTime<Utc>) {}"), 2);
    assert_eq!(found("inputs/columns.rs", "use tokio::sync::mpsc;"), 0);
    assert_eq!(found("main.rs", "use guardian::cli; fn main() { guardian::jobs::go() }"), 1);
    assert_eq!(found("attic/mod.rs", ""), 1, "a room without arrows");
}

/// The names of the functions that a trait declares.
fn functions_of_trait(text: &str, name: &str) -> Vec<String> {
    let tokens = tokens(&strip(text));
    let start = tokens.windows(2).position(|pair| pair[0].is("trait") && pair[1].is(name)).expect("the trait");
    let mut level = 0;
    let mut functions = Vec::new();
    for pair in tokens[start..].windows(2) {
        match &pair[0] {
            token if token.is("{") => level += 1,
            token if token.is("}") && level == 1 => break,
            token if token.is("}") => level -= 1,
            token if token.is("fn") && level == 1 => functions.extend(pair[1].name().map(str::to_owned)),
            _ => {}
        }
    }
    functions
}

#[test]
fn release_routes_cannot_reach_datasets() {
    let declared = fs::read_to_string(root().join("src/ports/datasets.rs")).unwrap();
    let mut forbidden = functions_of_trait(&declared, "DatasetStore");
    assert!(["dataset", "get_column_chunk"].iter().all(|name| forbidden.iter().any(|found| found == name)));
    forbidden.extend(["DatasetStore", "DatasetRecord", "load", "upload"].map(str::to_owned));
    let program = program();
    for reader in READERS {
        let (_, text) = program.iter().find(|(file, _)| file == reader).expect("the file");
        for pair in tokens(&strip(text)).windows(2) {
            let name = pair[0].name().unwrap_or_default();
            let uses = pair[1].is("(") || pair[1].is("::") || name.starts_with(char::is_uppercase);
            assert!(!(uses && forbidden.iter().any(|function| function == name)), "{reader} reaches datasets: {name}");
        }
    }
}

#[test]
fn files_have_at_most_600_lines() {
    for folder in ["src", "tests"] {
        for path in files(&root().join(folder)).iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
            let lines = fs::read_to_string(root().join(folder).join(path)).unwrap().lines().count();
            assert!(lines <= 600, "{folder}/{} has {lines} lines, more than 600", path.display());
        }
    }
}

#[test]
fn bucket_columns_are_made_in_one_place() {
    let mut callers = Vec::new();
    for (file, text) in program() {
        for pair in tokens(&strip(&text)).windows(2) {
            if pair[1].is("from_secret_labels") && !pair[0].is("fn") {
                callers.push(file.clone());
            }
        }
    }
    assert_eq!(callers, ["publish/assign/labels.rs"]);
}

#[test]
fn ciphertexts_come_from_the_vault_or_a_store() {
    let mut callers = Vec::new();
    for (file, text) in program() {
        for words in tokens(&strip(&text)).windows(3) {
            if words[0].is("Ciphertext") && words[1].is("::") && words[2].is("from_stored") {
                callers.push(file.clone());
            }
        }
    }
    callers.sort();
    callers.dedup();
    assert_eq!(callers, ["store/rows.rs", "store/shared/datasets.rs"]);
}

#[test]
fn no_half_done_work_is_left_in_the_program() {
    for (file, text) in program() {
        let stripped = strip(&text);
        assert_eq!(stripped.lines().count(), text.lines().count(), "{file}: lines keep their numbers");
        for pair in tokens(&stripped).windows(2) {
            let name = pair[0].name().unwrap_or_default();
            let half_done = ["todo", "unimplemented", "dbg"].contains(&name) && pair[1].is("!");
            assert!(!half_done, "{file}: {name}!");
        }
        for (number, line) in stripped.lines().enumerate() {
            if line.contains(".unwrap()") {
                let before: Vec<&str> = text.lines().take(number).collect();
                let said = before.iter().rev().take(4).any(|line| line.contains("Unwrap safety"));
                assert!(said, "{file}:{}: unwrap() without a comment on its Unwrap safety", number + 1);
            }
        }
    }
    let ignored = ["#[ign", "ore"].concat();
    for folder in ["src", "tests"] {
        for path in files(&root().join(folder)).iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
            let text = fs::read_to_string(root().join(folder).join(path)).unwrap();
            assert!(!text.contains(&ignored), "{folder}/{} has a test that never runs", path.display());
        }
    }
}

#[test]
fn the_openapi_document_is_the_one_that_is_served() {
    let committed = fs::read_to_string(root().join("openapi/openapi.json")).unwrap();
    let served = guardian::api::openapi_text().unwrap();
    assert!(committed == served, "regenerate it: cargo run -- openapi > openapi/openapi.json");
}

#[test]
fn the_page_of_problems_is_the_catalogue() {
    let committed = fs::read_to_string(root().join("docs/problems.md")).unwrap_or_default();
    assert!(committed == guardian::problem::page(), "regenerate it: cargo run -- problems > docs/problems.md");
    for kind in guardian::problem::Kind::ALL {
        assert!(committed.contains(&format!("| `{}` | {} |", kind.name(), kind.status())));
    }
}

#[test]
fn the_page_of_metrics_is_the_table() {
    let committed = fs::read_to_string(root().join("docs/metrics.md")).unwrap_or_default();
    assert!(committed == guardian::meter::page(), "regenerate it: cargo run -- metrics > docs/metrics.md");
}

#[test]
fn every_transaction_is_in_the_table_of_metrics() {
    let mut named = Vec::new();
    for (file, text) in program().iter().filter(|(file, _)| file.starts_with("store/")) {
        // tests of a file follow its code
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let names = text.split("run_transaction(\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
        named.extend(names.map(|name| (name, file.clone())));
    }
    let table = guardian::meter::TRANSACTIONS;
    let missing: Vec<_> = named.iter().filter(|(name, _)| !table.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let gone: Vec<_> = table.iter().filter(|name| named.iter().all(|(named, _)| named != *name)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

#[test]
fn every_file_speaks_of_the_project_alone() {
    // in pieces, so that this file does not contain them
    let betraying = [["/wo", "rk/"], ["/tm", "p/w/"]].map(|pieces| pieces.concat().into_bytes());
    for path in files(root()) {
        let bytes = fs::read(root().join(&path)).unwrap();
        for text in &betraying {
            let found = bytes.windows(text.len()).any(|window| window == &text[..]);
            assert!(!found, "{} names a folder of the machine it was written on", path.display());
        }
    }
}
