//! The pages under `docs/`: worked examples are published again and compared byte for byte. Links, anchors and
//! citations lead somewhere.
//!
//! The words behind the language of a fenced block say what it is.
//!
//! - `json example NAME`: a specification; `sh example NAME`: its command; `text example NAME`: its output
//! - `csv example NAME input.csv`: the input; any other file: a part of the release
//! - `json job NAME`, `csv job NAME FILE`: the same for releases that a service publishes in order
//! - `json manifest NAME /POINTER`: a member of the manifest

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::harness::{Server, run, text};

const INPUT: &str = "input.csv";

/// A fenced block of a page.
#[derive(Debug)]
struct Block {
    language: String,
    words: Vec<String>,
    body: String,
}

/// An example of a page, put together from its blocks.
#[derive(Default, Debug)]
struct Example {
    specification: Option<String>,
    command: Option<String>,
    output: Option<String>,
    input: Option<String>,
    parts: BTreeMap<String, String>,
    manifest: BTreeMap<String, Value>,
    is_job: bool,
}

/// The examples of a page in their order.
type Examples = Vec<(String, Example)>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages below a folder, and in it.
fn pages_below(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(pages_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

fn shown(page: &Path) -> String {
    page.strip_prefix(root()).unwrap_or(page).display().to_string()
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(info) if !is_open => {
                let mut words = info.split_whitespace().map(str::to_owned);
                let language = words.next().unwrap_or_default();
                found.push(Block { language, words: words.collect(), body: String::new() });
                is_open = true;
            }
            Some(_) => is_open = false,
            None if is_open => {
                let block = found.last_mut().unwrap();
                block.body.push_str(line);
                block.body.push('\n');
            }
            None => {}
        }
    }
    assert!(!is_open, "a fenced block is never closed");
    found
}

/// The lines of a page outside fenced blocks, with what stands in backticks left out.
fn prose(page: &str) -> String {
    let mut prose = String::new();
    let mut is_open = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_open = !is_open;
        } else if !is_open {
            let outside = line.split('`').step_by(2);
            prose.push_str(&outside.collect::<Vec<_>>().join("`"));
            prose.push('\n');
        }
    }
    prose
}

fn examples(page: &str) -> Examples {
    let mut found: Examples = Vec::new();
    for Block { language, words, body } in blocks(page) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let [kind @ ("example" | "job" | "manifest"), name, more @ ..] = &words[..] else { continue };
        if !found.iter().any(|(known, _)| known == name) {
            found.push(((*name).to_owned(), Example::default()));
        }
        let (_, example) = found.iter_mut().find(|(known, _)| known == name).unwrap();
        example.is_job |= *kind == "job";
        let before = match (*kind, language.as_str(), more) {
            ("example" | "job", "json", []) => example.specification.replace(body).is_some(),
            ("example", "sh", []) => example.command.replace(body).is_some(),
            ("example", "text", []) => example.output.replace(body).is_some(),
            ("example" | "job", "csv", [INPUT]) => example.input.replace(body).is_some(),
            ("example" | "job", "csv", [file]) => example.parts.insert((*file).to_owned(), body).is_some(),
            ("manifest", "json", [pointer]) => {
                let declared = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{name} {pointer}: {error}"));
                example.manifest.insert((*pointer).to_owned(), declared).is_some()
            }
            _ => panic!("unknown block: {language} {}", words.join(" ")),
        };
        assert!(!before, "declared twice: {language} {}", words.join(" "));
    }
    found
}

fn assert_manifest(name: &str, example: &Example, manifest: &Value) {
    for (pointer, declared) in &example.manifest {
        let found = manifest.pointer(pointer);
        assert_eq!(found, Some(declared), "{name}: {pointer} of {manifest:#}");
    }
}

/// Runs the command of an example as printed, in a folder with its files, and compares the results with the page.
fn run_example(name: &str, example: &Example) {
    let folder = tempfile::tempdir().unwrap();
    let path = |file: &str| folder.path().join(file);
    if let Some(specification) = &example.specification {
        fs::write(path(&format!("{name}.json")), specification).unwrap();
    }
    if let Some(input) = &example.input {
        fs::write(path(&format!("{name}.csv")), input).unwrap();
    }
    let command = example.command.as_deref().unwrap_or_else(|| panic!("{name} has no command"));
    assert!(command.starts_with("guardian "), "{name}: {command}");
    let command = command.replacen("guardian ", concat!("'", env!("CARGO_BIN_EXE_guardian"), "' "), 1);
    let command = command.replace("examples/", &format!("{}/examples/", root().display()));
    let ran = run(Command::new("bash").args(["-euo", "pipefail", "-c", &command]).current_dir(folder.path()));
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{name}: {errors}");
    if let Some(output) = &example.output {
        assert_eq!(String::from_utf8_lossy(&ran.stdout), *output, "{name}");
    }
    for (file, declared) in &example.parts {
        let published =
            fs::read_to_string(path(name).join(file)).unwrap_or_else(|error| panic!("{name} {file}: {error}"));
        assert_eq!(published, *declared, "{name}: {file}");
    }
    if !example.manifest.is_empty() {
        let manifest = fs::read(path(name).join("manifest.json")).unwrap();
        assert_manifest(name, example, &serde_json::from_slice(&manifest).unwrap());
    }
}

/// Publishes the jobs of a page in order from one dataset; `<NAME>` stands for the release of an earlier job.
async fn publish_jobs(jobs: &Examples) {
    let server = Server::start().await;
    let input = jobs.iter().find_map(|(_, job)| job.input.clone()).expect("a job of the page has the input");
    let dataset = server.dataset(input).await;
    let mut releases: Vec<(String, String)> = Vec::new();
    for (name, job) in jobs {
        let mut specification = job.specification.clone().unwrap_or_else(|| panic!("{name} has no specification"));
        for (earlier, id) in &releases {
            specification = specification.replace(&format!("<{earlier}>"), id);
        }
        let manifest = server.publish(&dataset, serde_json::from_str(&specification).unwrap()).await;
        for (file, declared) in &job.parts {
            let parts: Vec<&str> = file.split('.').collect();
            let [table, part, "csv"] = parts[..] else { panic!("{name}: {file} is no part") };
            assert_eq!(server.part(&manifest, table, part).await, *declared, "{name}: {file}");
        }
        assert_manifest(name, job, &manifest);
        releases.push((name.clone(), text(&manifest["id"])));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worked_examples_give_the_bytes_shown() {
    let mut compared = 0;
    for page in pages_below(&root().join("docs")) {
        let (jobs, examples): (Examples, Examples) =
            examples(&fs::read_to_string(&page).unwrap()).into_iter().partition(|(_, example)| example.is_job);
        for (name, example) in &examples {
            let shows = example.parts.len() + example.manifest.len() + usize::from(example.output.is_some());
            assert!(shows > 0, "{}: nothing is shown of {name}", shown(&page));
            run_example(name, example);
            compared += shows;
        }
        if !jobs.is_empty() {
            publish_jobs(&jobs).await;
            compared += jobs.iter().map(|(_, job)| job.parts.len()).sum::<usize>();
        }
    }
    assert!(compared >= 30, "only {compared} parts and members were compared");
}

#[test]
fn every_method_page_has_an_example() {
    let methods = ["versatile", "anatomy", "bucketize", "decompose", "generalize", "slicing", "sequential"];
    let pages = ["rules", "guarantees", "overlapping-slicing"];
    for name in methods.into_iter().chain(pages) {
        let page = fs::read_to_string(root().join("docs/reference").join(format!("{name}.md"))).unwrap();
        let shows_parts =
            examples(&page).iter().any(|(_, example)| example.specification.is_some() && !example.parts.is_empty());
        assert!(shows_parts, "{name}.md shows no part of a release");
    }
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let text: String = heading.trim().to_lowercase().chars().filter(|c| !"`*".contains(*c)).collect();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

pub(super) fn anchors(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_open = false;
    for line in page.lines() {
        is_open ^= line.starts_with("```");
        if let Some(heading) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| !is_open && line.starts_with('#'))
        {
            let plain = anchor(heading);
            let numbered = (1..).map(|number| format!("{plain}-{number}"));
            let free = std::iter::once(plain.clone()).chain(numbered).find(|anchor| !found.contains(anchor));
            found.insert(free.unwrap());
        }
    }
    found.extend(page.split("id=\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    found
}

/// The targets of the links of a page.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let target = |rest: &str| Some(rest[..rest.find(')')?].trim().to_owned());
    prose.split("](").skip(1).filter_map(target).collect()
}

/// A path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Why a link of a page leads nowhere.
fn dead_link(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, fragment) = link.split_once('#').map_or((link, None), |(file, fragment)| (file, Some(fragment)));
    let target = if file.is_empty() { page.to_owned() } else { normalized(&page.parent().unwrap().join(file)) };
    if !target.starts_with(root()) || !target.exists() {
        return Some(format!("{}: no file at {link}", shown(page)));
    }
    let fragment = fragment?;
    let Ok(text) = fs::read_to_string(&target) else { return Some(format!("{}: {link} is no page", shown(page))) };
    (!anchors(&text).contains(fragment)).then(|| format!("{}: no heading at {link}", shown(page)))
}

fn linking_pages() -> Vec<PathBuf> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let mut pages: Vec<PathBuf> = top.iter().map(|name| root().join(name)).collect();
    pages.extend(pages_below(&root().join("docs")));
    pages
}

#[test]
fn relative_links_lead_to_files_and_headings() {
    let mut dead = Vec::new();
    let mut seen = 0;
    for page in linking_pages() {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            seen += 1;
            dead.extend(dead_link(&page, &link));
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(seen > 50, "only {seen} links were found");
}

/// The citation keys of a page, outside its code: in brackets, from a capital letter to the first number of four digits.
fn citations(page: &str) -> BTreeSet<String> {
    citations_of_prose(&prose(page).replace('\n', " "))
}

/// The citation keys of a text without code.
pub(super) fn citations_of_prose(prose: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in prose.split('[').skip(1) {
        let Some((inside, after)) = rest.split_once(']') else { continue };
        if after.starts_with('(') || !inside.starts_with(char::is_uppercase) {
            continue;
        }
        for cited in inside.split(';').map(str::trim) {
            let words: Vec<&str> = cited.split_whitespace().collect();
            let year = words.iter().position(|word| {
                let digits = word.trim_end_matches([',', '.']);
                digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
            });
            // `errata` and sections have no key of their own
            if let Some(year) = year.filter(|_| cited.starts_with(char::is_uppercase)) {
                found.insert(words[..=year].join(" ").trim_end_matches([',', '.']).to_owned());
            }
        }
    }
    found
}

/// The keys of the page of references.
pub(super) fn reference_keys() -> BTreeSet<String> {
    let references = fs::read_to_string(root().join("docs/references.md")).unwrap();
    let lines = references.lines().filter_map(|line| line.strip_prefix("- **["));
    let keys: BTreeSet<String> = lines.filter_map(|line| Some(line.split_once("]**")?.0.to_owned())).collect();
    assert!(keys.len() > 30, "{keys:?}");
    keys
}

#[test]
fn citation_keys_stand_in_the_references() {
    let keys = reference_keys();
    let mut cited = 0;
    for page in pages_below(&root().join("docs")) {
        let found = citations(&fs::read_to_string(&page).unwrap());
        cited += found.len();
        let unknown: Vec<&String> = found.difference(&keys).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", shown(&page));
    }
    assert!(cited > 50, "only {cited} citations were found");
}

#[test]
fn broken_pages_are_noticed() {
    let page = root().join("docs/spec/README.md");
    assert_eq!(dead_link(&page, "slicing.md#diversity"), None);
    assert_eq!(dead_link(&page, "https://example.org/none.md"), None);
    for link in ["none.md", "slicing.md#none", "#none", "../../../etc/hostname"] {
        assert!(dead_link(&page, link).is_some(), "{link}");
    }
    assert_eq!(anchor("What is proved, and `what` is not"), "what-is-proved-and-what-is-not");
    assert_eq!(anchors("# A\n```sh\n# no\n```\n## A\n"), BTreeSet::from(["a".to_owned(), "a-1".to_owned()]));
    let cited =
        citations("See [Xiao and Tao 2006,\nsection 4; Ye et al. 2009], [a link 2001](x.md), `[Code 2002]` and [x].");
    assert_eq!(cited, BTreeSet::from(["Xiao and Tao 2006".to_owned(), "Ye et al. 2009".to_owned()]));
    let found = examples("```json example a\n{}\n```\n```csv example a t1.qi.csv\nbucket\n```\n```sh\nls\n```\n");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1.parts["t1.qi.csv"], "bucket\n");
    assert!(std::panic::catch_unwind(|| examples("```json example a b c\n{}\n```\n")).is_err());
}
