//! One language: retired words, names of constructors, errors, constants and tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use guardian::problem::Kind;

use super::dependencies::{files, root};
use crate::support::rust_source::{Token, strip, tokens};

/// Words that had many meanings or none. `docs/glossary.md` has the term for each thing.
const RETIRED: &[&str] = &[
    "whoever",
    "told",
    "tell",
    "tells",
    "deed",
    "deeds",
    "terrain",
    "terrains",
    "strange",
    "stranger",
    "strangers",
    "shelf",
    "desk",
    "aside",
    "united",
    "further",
    "beyond",
    "hung",
    "atlas",
    "growth",
    "ways",
    "nobody",
];

/// Words that English needs, and that no name of the code may have.
const RETIRED_NAMES: &[&str] = &["beside", "world"];

/// Words that names of the code lose: the public JSON has them, and rooms still do.
const FALLING_NAMES: &[&str] = &["stated", "entered"];

/// Phrases that comments lose.
const FALLING_PHRASES: &[&str] = &["so many"];

/// For each room with such words, the number of places that it may have. Ceilings only fall; other rooms have none.
const FALLING_PLACES: &[(&str, usize)] = &[
    ("examples", 2),
    ("src/api", 7),
    ("src/engine", 2),
    ("src/jobs", 1),
    ("src/privacy", 29),
    ("src/report", 4),
    ("src/spec", 13),
    ("src/utility", 2),
];

/// What an error says of its subject: a fault, a conflict, missing values. Other errors carry them.
const PARTS_OF_ERRORS: &[&str] = &["CsvFault", "ImportConflict", "UncoveredValues"];

/// Where `world` is a possible world of a table.
const WORLDS: &[&str] = &["possible_worlds", "feasible_worlds", "worlds"];

const MAX_TEST_NAME_CHARS: usize = 60;

/// Sources of the program and of its tests, with their text. This file names the words, so it is not among them.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["src", "tests/it", "tests/torture", "examples", "benches", "fuzz/fuzz_targets"] {
        for path in files(&root().join(folder)).iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
            let name = format!("{folder}/{}", path.display());
            if !name.ends_with("architecture/language.rs") {
                found.push((name, fs::read_to_string(root().join(folder).join(path)).unwrap()));
            }
        }
    }
    assert!(found.len() > 500, "the sources were found");
    found
}

/// The words of a name, in lower case: `EarlierRelease` and `earlier_release` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
        if letter != '_' {
            words.last_mut().unwrap().extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The text of the comments of a line.
fn comment(line: &str) -> &str {
    line.trim_start().strip_prefix("//").unwrap_or_default()
}

fn retired_in(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens(&strip(text)) {
        let Some(name) = token.name() else { continue };
        for word in words(name) {
            let is_world = word == "world" && (WORLDS.iter().any(|allowed| file.contains(allowed)));
            if RETIRED.contains(&word.as_str()) || (RETIRED_NAMES.contains(&word.as_str()) && !is_world) {
                found.push(format!("{file}: the name {name} has the retired word {word}"));
            }
        }
    }
    for (number, line) in text.lines().enumerate() {
        for word in comment(line).split(|letter: char| !letter.is_alphanumeric()) {
            if RETIRED.contains(&word.to_lowercase().as_str()) {
                found.push(format!("{file}:{}: the retired word {word}", number + 1));
            }
        }
    }
    found
}

#[test]
fn retired_words_are_absent_from_sources() {
    let found: Vec<String> = sources().iter().flat_map(|(file, text)| retired_in(file, text)).collect();
    assert!(found.is_empty(), "{} places\n{}", found.len(), found.join("\n"));
}

/// The room of a source: `src/engine`, or the folder of tests.
fn room(file: &str) -> String {
    let depth = if file.starts_with("src/") { 2 } else { 1 };
    file.split('/').take(depth).collect::<Vec<_>>().join("/").trim_end_matches(".rs").to_owned()
}

/// The places of words and phrases that are on their way out.
fn falling_in(file: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens(&strip(text)) {
        let Some(name) = token.name() else { continue };
        if words(name).iter().any(|word| FALLING_NAMES.contains(&word.as_str())) {
            found.push(format!("{file}: the name {name}"));
        }
    }
    for (number, line) in text.lines().enumerate() {
        let words = comment(line).split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        let spoken = format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase());
        for phrase in FALLING_PHRASES.iter().filter(|phrase| spoken.contains(&format!(" {phrase} "))) {
            found.push(format!("{file}:{}: {phrase}", number + 1));
        }
    }
    found
}

#[test]
fn falling_words_stay_below_their_ceilings() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in sources() {
        places.entry(room(&file)).or_default().extend(falling_in(&file, &text));
    }
    let ceiling = |room: &str| FALLING_PLACES.iter().find(|(of, _)| *of == room).map_or(0, |(_, ceiling)| *ceiling);
    places.retain(|room, found| found.len() > ceiling(room));
    let wrongs = places.iter().map(|(room, found)| format!("{room}: {}\n{}", found.len(), found.join("\n")));
    assert!(places.is_empty(), "{}", wrongs.collect::<Vec<_>>().join("\n"));
}

#[test]
fn falling_words_are_found() {
    let places = |text: &str| falling_in("src/x.rs", text).len();
    assert_eq!(places("fn f() { let declared = 1; }\n/// At most 10 rows, as stated; so few, many.\n"), 0);
    assert_eq!(places("fn stated_rows() {}\nstruct Entered;\n"), 2);
    assert_eq!(places("/// So many rows.\n// of so, many\n"), 2);
    assert_eq!(
        (room("src/engine/plan.rs"), room("src/clock.rs"), room("tests/it/main.rs")),
        ("src/engine".to_owned(), "src/clock".to_owned(), "tests".to_owned())
    );
}

#[test]
fn retired_words_are_found() {
    let places = |text: &str| retired_in("src/x.rs", text).len();
    assert_eq!(places("fn f() { let earlier = 1; }\n/// What was published.\n"), 0);
    assert_eq!(places("fn f() { let told = 1; }"), 1);
    assert_eq!(places("struct ToldSteps;"), 1);
    assert_eq!(places("fn beside_of() {}"), 1);
    assert_eq!(places("/// Releases beside this one.\nfn f() {}"), 0, "a preposition");
    assert_eq!(places("// what nobody knows\nfn f() {}"), 1);
    assert_eq!(retired_in("src/verifier/attack/possible_worlds.rs", "fn f(world: u8) {}").len(), 0);
}

/// Whether the function that begins at this token takes `self`.
fn takes_self(tokens: &[Token]) -> bool {
    let Some(open) = tokens.iter().position(|token| token.is("(")) else { return false };
    tokens[open + 1..].iter().take(4).any(|token| token.is("self"))
}

#[test]
fn constructors_are_new_or_from() {
    let mut found = Vec::new();
    for (file, text) in sources().iter().filter(|(file, _)| file.starts_with("src/")) {
        let tokens = tokens(&strip(text));
        for at in 1..tokens.len() {
            if tokens[at - 1].is("fn") && tokens[at].is("of") && !takes_self(&tokens[at..]) {
                found.push(format!("{file}: a constructor is named of"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn errors_end_in_error() {
    let mut found = Vec::new();
    for (file, text) in sources().iter().filter(|(file, _)| file.starts_with("src/")) {
        let mut derives = false;
        for line in strip(text).lines().map(str::trim) {
            derives |= line.contains("thiserror::Error");
            let mut names = line.split_whitespace().skip_while(|word| !["enum", "struct"].contains(word)).skip(1);
            if let Some(name) = names.next().filter(|_| !line.starts_with('#')) {
                let name = name.trim_end_matches(|letter: char| !letter.is_alphanumeric());
                let name = name.split(['(', '<', '{']).next().unwrap();
                if derives && !name.ends_with("Error") && !PARTS_OF_ERRORS.contains(&name) {
                    found.push(format!("{file}: the error {name} does not end in Error"));
                }
                derives = false;
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn constants_are_the_same_in_tests() {
    for (file, text) in sources() {
        assert!(!strip(&text).contains("cfg!(test)"), "{file}: a value depends on cfg!(test)");
    }
}

#[test]
fn test_names_have_at_most_60_characters() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (at, line) in lines.iter().enumerate() {
            let is_test = |line: &&str| line.starts_with("#[") && line.contains("test") && !line.contains("cfg(");
            let named = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            let name = named.and_then(|rest| rest.split(['(', '<']).next());
            let attributes = lines[..at].iter().rev().take_while(|before| before.starts_with("#["));
            if let Some(name) = name.filter(|_| attributes.into_iter().any(is_test))
                && name.len() > MAX_TEST_NAME_CHARS
            {
                found.push(format!("{file}: {name} has {} characters", name.len()));
            }
        }
    }
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}

/// Pages that people read, without those that the program makes.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages: Vec<PathBuf> = files(&root().join("docs")).iter().map(|path| Path::new("docs").join(path)).collect();
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(PathBuf::from));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.retain(|page| !["docs/problems.md", "docs/metrics.md"].contains(&page.to_str().unwrap()));
    pages.into_iter().map(|page| (page.clone(), fs::read_to_string(root().join(page)).unwrap())).collect()
}

#[test]
fn retired_words_are_absent_from_pages() {
    let mut found = Vec::new();
    for (page, text) in pages() {
        // titles of papers are their authors'
        if page.ends_with("references.md") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            // the name of a problem is a word of the contract
            let line = line.replace("nobody-new", "");
            for word in line.split(|letter: char| !letter.is_alphanumeric()) {
                if RETIRED.contains(&word.to_lowercase().as_str()) {
                    found.push(format!("{}:{}: {word}", page.display(), number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} places\n{}", found.len(), found.join("\n"));
}

#[test]
fn problem_titles_are_lowercase_without_full_stop() {
    for kind in Kind::ALL {
        let title = kind.title();
        let first = title.split_whitespace().next().unwrap_or_default();
        // names such as Idempotency-Key keep their capitals
        let is_name = first.contains('-') || first.chars().filter(|letter| letter.is_uppercase()).count() > 1;
        assert!(is_name || !first.starts_with(char::is_uppercase), "{title}");
        assert!(!title.ends_with('.') && !title.is_empty(), "{title}");
    }
}
