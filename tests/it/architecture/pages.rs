//! The pages for readers: each command runs as it is printed, and each list that can be generated is the generated one.
//!
//! - Blocks ` ```sh NAME ` of a page are one bash script, in order, in one empty folder that has `examples` and `guardian`. A
//!   block ` ```text NAME ` is what the block before it prints; a block without one prints nothing. `…` in it stands for any text
//!   within a line.
//! - A page that names `http://127.0.0.1:8080` gets a service of its own there, unless it starts one.
//! - Blocks ` ```console ` are not run: their commands and options exist.
//! - Between `<!-- generated: NAME -->` and `<!-- end -->` stands what [`generated`] makes.
//!
//! `GUARDIAN_BLESS=1 cargo test --test it pages` writes outputs and lists into the pages; a second run holds
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::{fs, thread};

use serde_json::Value;

use crate::support::harness::{guardian, unconfigured};

/// The address that pages name.
const PAGE_ADDRESS: &str = "127.0.0.1:8080";
/// Ends the output of a block.
const SEPARATOR: char = '\u{1e}';
/// Stands for text that differs between runs.
const MASK: char = '…';
/// The width of generated lists.
const MAX_LINE_CHARS: usize = 118;
/// Commands in the order of the page of options.
const COMMANDS: &str = "serve, worker, demo, migrate, healthcheck, backup, rotate-key, keys create, keys list, keys revoke, \
    tenants set, tenants list, populations list, populations relate, audit-log, ledger export, \
    ledger import, init, plan, publish, verify, nights, query, report, completions, man, openapi, problems, metrics";

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Pages of the repository, relative to its root.
fn pages() -> Vec<String> {
    let outside =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docker/README.md", "deploy/kubernetes/README.md"];
    let mut pages: Vec<String> = outside.map(str::to_owned).into();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

fn is_blessing() -> bool {
    std::env::var_os("GUARDIAN_BLESS").is_some()
}

/// A fenced block: what follows the fence, its body and where that stands in the page.
struct Block<'a> {
    info: &'a str,
    body: &'a str,
    start: usize,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let (mut at, mut open): (usize, Option<(&str, usize)>) = (0, None);
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("```") {
            match open.take() {
                Some((info, start)) => found.push(Block { info, body: &text[start..at], start }),
                None => open = Some((rest.trim_end(), at + line.len())),
            }
        }
        at += line.len();
    }
    assert!(open.is_none(), "a block has no end");
    found
}

/// What one block runs and prints.
struct Step<'a> {
    script: &'a str,
    output: Option<Block<'a>>,
}

/// The scripts of a page, by name.
fn sessions(text: &str) -> BTreeMap<&str, Vec<Step<'_>>> {
    let mut sessions: BTreeMap<&str, Vec<Step<'_>>> = BTreeMap::new();
    for block in blocks(text) {
        let words: Vec<&str> = block.info.split_whitespace().collect();
        match words[..] {
            ["sh", name] => sessions.entry(name).or_default().push(Step { script: block.body, output: None }),
            ["text", name] => {
                let step = sessions.get_mut(name).and_then(|steps| steps.last_mut());
                let step = step.unwrap_or_else(|| panic!("the output of {name} stands before its commands"));
                assert!(step.output.replace(block).is_none(), "a block of {name} has two outputs");
            }
            _ => {}
        }
    }
    sessions
}

/// Whether `text` is `expected`, in which [`MASK`] stands for any text within a line.
fn matches(expected: &str, text: &str) -> bool {
    let (expected, text): (Vec<&str>, Vec<&str>) = (expected.split('\n').collect(), text.split('\n').collect());
    expected.len() == text.len() && expected.iter().zip(text).all(|(expected, line)| matches_line(expected, line))
}

fn matches_line(expected: &str, line: &str) -> bool {
    let mut pieces = expected.split(MASK);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// The text with ids, digests and times masked.
fn masked(text: &str) -> String {
    let is_id = |word: &str| {
        let hexadecimal = |c: char| c.is_ascii_hexdigit() || c == '-';
        let dashes = word.matches('-').count();
        word.chars().all(hexadecimal) && (word.len() == 36 && dashes == 4 || word.len() == 64 && dashes == 0)
    };
    let is_time = |word: &str| word.len() >= 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.');
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let word = &rest[..end];
        if is_word(first) && (is_id(word) || is_time(word)) {
            out.push(MASK)
        } else {
            out.push_str(word)
        }
        rest = &rest[end..];
    }
    out
}

/// An address below the ports that systems hand out by themselves: no other test gets it before the script binds it.
fn free_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 9_000).unwrap();
    loop {
        let port = 21_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 9_000;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().unwrap().to_string();
        }
    }
}

/// A service for a page, and where it is.
fn serve(folder: &Path) -> (Server, String) {
    let mut command = guardian();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map(Server).unwrap();
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split_whitespace().find_map(|word| word.strip_prefix("http://")).unwrap();
    (server, url.to_owned())
}

/// Runs a script of a page and gives what each block printed.
fn run(steps: &[Step<'_>]) -> Result<Vec<String>, String> {
    let home = tempfile::tempdir().unwrap();
    let (folder, programs) = (home.path().join("work"), home.path().join("bin"));
    for made in [&folder, &programs] {
        fs::create_dir(made).unwrap();
    }
    symlink(root().join("examples"), folder.join("examples")).unwrap();
    symlink(env!("CARGO_BIN_EXE_guardian"), programs.join("guardian")).unwrap();

    let script: Vec<&str> = steps.iter().map(|step| step.script).collect();
    let script = script.join(&format!("printf '\\{:03o}'\n", u32::from(SEPARATOR)));
    let own = script.contains("guardian serve");
    let served = (!own && script.contains(PAGE_ADDRESS)).then(|| serve(&home.path().join("data")));
    let address = served.as_ref().map_or_else(free_address, |(_, address)| address.clone());
    // what a script leaves running ends with it
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{}", script.replace(PAGE_ADDRESS, &address));

    let mut command = Command::new("timeout");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    command.args(["300", "bash", "-euo", "pipefail", "-c", &script]).current_dir(&folder).env("PATH", path);
    command.env("GUARDIAN_LISTEN", &address).env("GUARDIAN_HEALTHCHECK_URL", format!("http://{address}"));
    let ran = unconfigured(&mut command).stdin(Stdio::null()).output().unwrap();
    let output = String::from_utf8(ran.stdout).unwrap();
    let outputs: Vec<String> = output.split(SEPARATOR).map(str::to_owned).collect();
    if ran.status.success() && outputs.len() == steps.len() {
        return Ok(outputs);
    }
    let errors = String::from_utf8_lossy(&ran.stderr);
    let script = steps[outputs.len().min(steps.len()) - 1].script;
    Err(format!("{}\n{script}{errors}{}", ran.status, outputs.last().map_or("", String::as_str)))
}

/// Runs the scripts of a page. Gives what is wrong, and the page as it should be.
fn check_page(text: &str) -> (Vec<String>, String) {
    let (mut wrong, mut edits) = (Vec::new(), Vec::new());
    for (name, steps) in sessions(text) {
        let outputs = match run(&steps) {
            Ok(outputs) => outputs,
            Err(failed) => {
                wrong.push(format!("{name}: {failed}"));
                continue;
            }
        };
        for (step, output) in steps.iter().zip(outputs) {
            let expected = step.output.as_ref().map_or("", |block| block.body);
            if !matches(expected, &output) {
                wrong.push(format!("{name}:\n{}prints\n{output}in place of\n{expected}", step.script));
                edits.extend(step.output.as_ref().map(|block| (block.start, block.body.len(), masked(&output))));
            }
        }
    }
    let mut page = text.to_owned();
    edits.sort_unstable();
    for (start, length, output) in edits.into_iter().rev() {
        page.replace_range(start..start + length, &output);
    }
    (wrong, page)
}

#[test]
fn commands_of_pages_print_the_shown_output() {
    let waiting = Mutex::new(pages());
    let wrong = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(page) = waiting.lock().unwrap().pop() else { return };
            let text = read(&page);
            let (found, corrected) = check_page(&text);
            if is_blessing() && corrected != text {
                fs::write(root().join(&page), corrected).unwrap();
            }
            wrong.lock().unwrap().extend(found.into_iter().map(|what| format!("{page}, {what}")));
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn wrong_output_is_found_and_corrected() {
    let page = |output: &str| {
        format!(
            "```sh a\necho {}; x=1\n```\n\n```text a\n{output}\n```\n\n```sh a\necho $x\n```\n\n```text a\n1\n```\n",
            "b c"
        )
    };
    assert_eq!(check_page(&page("b c")), (vec![], page("b c")));
    assert!(check_page(&page("b …")).0.is_empty());
    let (wrong, corrected) = check_page(&page("b d"));
    assert!(wrong.len() == 1 && wrong[0].contains("b d"), "{wrong:?}");
    assert_eq!(corrected, page("b c"));
    let (wrong, _) = check_page("```sh a\necho silent\n```\n");
    assert_eq!(wrong.len(), 1, "an output that is not shown");
    let (wrong, _) = check_page("```sh a\nfalse\n```\n\n```sh a\ntrue\n```\n");
    assert!(wrong.len() == 1 && wrong[0].contains("false"), "{wrong:?}");
}

#[test]
fn masks_stay_within_a_line() {
    assert!(matches("a … c\nd", "a b b c\nd"));
    assert!(matches("{\"id\": \"…\"}", "{\"id\": \"1\"}"));
    for (expected, text) in
        [("a…c", "a\nc"), ("a … c", "a b d"), ("a…", "b"), ("a", "a\n"), ("…b…c…", "xcxb"), ("", "a")]
    {
        assert!(!matches(expected, text), "{expected:?} {text:?}");
    }
    let id = "018f0000-0000-7000-8000-000000000000";
    assert_eq!(masked(&format!("[\"{id}\",\"2026-11-22T10:41:49.466801Z\",0.5]")), "[\"…\",\"…\",0.5]");
}

/// Every command is run, or says that it is not and exists.
#[test]
fn commands_that_are_not_run_exist() {
    let help: BTreeMap<&str, String> = COMMANDS.split(", ").map(|command| (command, help(command))).collect();
    for page in pages() {
        let text = read(&page);
        for block in blocks(&text) {
            assert!(block.info != "sh" || page.starts_with("docker/"), "{page}: name the block, or call it console");
            if block.info != "console" {
                continue;
            }
            for line in block.body.replace("\\\n", " ").lines().filter(|line| line.starts_with("guardian ")) {
                let words: Vec<&str> = line.split_whitespace().skip(1).collect();
                let command = [words.get(..2).unwrap_or_default().join(" "), words[0].to_owned()];
                let command = command.iter().find_map(|command| help.get_key_value(command.as_str()));
                let (command, help) = command.unwrap_or_else(|| panic!("{page}: {line}"));
                for option in words.iter().filter(|word| word.starts_with("--")) {
                    let option = option.split('=').next().unwrap();
                    assert!(help.contains(&format!("{option} ")), "{page}: {command} has no {option}");
                }
            }
        }
    }
}

fn help(command: &str) -> String {
    let mut guardian = guardian();
    guardian.args(command.split(' ')).arg("-h").env_clear();
    let ran = guardian.output().unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// An item of a list, in lines of at most [`MAX_LINE_CHARS`].
fn item(text: &str) -> String {
    let mut lines = vec!["-".to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        if line.chars().count() + 1 + word.chars().count() > MAX_LINE_CHARS {
            lines.push(format!("  {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

/// The same as a paragraph.
fn paragraph(text: &str) -> String {
    item(text).trim_start_matches("- ").replace("\n  ", "\n")
}

/// Takes `[key: …]` out of what is said of an option.
fn take_note(text: &mut String, key: &str) -> Option<String> {
    let start = text.find(&format!("[{key}: "))?;
    let end = start + text[start..].find(']')?;
    let note = text[start + key.len() + 3..end].to_owned();
    text.replace_range(start..=end, "");
    Some(note)
}

/// The options of a command, by name, as items of a list.
fn options(help: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = help.lines();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if !line.starts_with("--") && !line.starts_with('<') && !line.starts_with('[') {
            continue;
        }
        let (name, rest) = line.split_once("  ").unwrap_or((line, ""));
        let mut rest = if rest.is_empty() { lines.next().unwrap_or_default() } else { rest }.trim().to_owned();
        let variable = take_note(&mut rest, "env").map(|note| format!("`{}`", note.trim_end_matches('=')));
        let default = take_note(&mut rest, "default").map(|note| format!("default `{note}`"));
        let values = take_note(&mut rest, "possible values").map(|note| format!("one of `{note}`"));
        let notes: Vec<String> = [variable, default, values].into_iter().flatten().collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        found.push((name.to_owned(), item(&format!("`{name}`{notes}: {}", rest.trim()))));
    }
    found
}

fn page_of_options() -> String {
    let mut page = String::new();
    let serve: BTreeMap<String, String> = options(&help("serve")).into_iter().collect();
    for command in COMMANDS.split(", ") {
        let help = help(command);
        let _ = write!(page, "\n## guardian {command}\n\n{}", paragraph(&format!("{}.", help.lines().next().unwrap())));
        let options = options(&help);
        let is_shared = |(name, text): &&(String, String)| command != "serve" && serve.get(name) == Some(text);
        let (shared, own): (Vec<_>, Vec<_>) = options.iter().partition(is_shared);
        if !own.is_empty() {
            page.push('\n');
            page.extend(own.iter().map(|(_, text)| text.as_str()));
        }
        if !shared.is_empty() {
            let names: Vec<String> =
                shared.iter().map(|(name, _)| format!("`{}`", name.split(' ').next().unwrap())).collect();
            let _ = write!(page, "\n{}", item(&format!("as `serve`: {}", names.join(", "))));
        }
    }
    page
}

fn document() -> Value {
    serde_json::from_str(&read("openapi/openapi.json")).unwrap()
}

/// The calls of a document, by tag.
fn page_of_calls(document: &Value) -> String {
    let mut by_tag: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let scopes = operation["security"].as_array().into_iter().flatten();
            let scopes: Vec<String> = scopes
                .flat_map(|one| one.as_object().unwrap().values())
                .flat_map(|scopes| scopes.as_array().unwrap())
                .map(|scope| format!("`{}`", scope.as_str().unwrap()))
                .collect();
            let scopes = if scopes.is_empty() { "open".to_owned() } else { scopes.join(" or ") };
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters: Vec<String> = parameters
                .filter(|parameter| parameter["in"] != "path")
                .map(|parameter| format!("`{}`", parameter["name"].as_str().unwrap()))
                .collect();
            let parameters =
                if parameters.is_empty() { String::new() } else { format!(". Parameters: {}", parameters.join(", ")) };
            let summary = operation["summary"].as_str().unwrap();
            let call = format!("`{} {path}` ({scopes}): {summary}{parameters}", method.to_uppercase());
            by_tag.entry(operation["tags"][0].as_str().unwrap()).or_default().push(item(&call));
        }
    }
    let mut page = String::new();
    for (tag, calls) in by_tag {
        let _ = write!(page, "\n### {tag}\n\n{}", calls.concat());
    }
    page
}

/// The name of the schema that a value refers to.
fn referred(schema: &Value) -> Option<&str> {
    let direct = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let among = |key: &str| schema[key].as_array().into_iter().flatten().find_map(referred);
    let below = |key: &str| schema.get(key).and_then(referred);
    direct
        .or_else(|| among("allOf"))
        .or_else(|| among("oneOf"))
        .or_else(|| among("anyOf"))
        .or_else(|| below("items"))
        .or_else(|| below("additionalProperties"))
}

/// The members of a schema and of all that it refers to.
fn page_of_members(document: &Value, start: &str) -> String {
    let schemas = &document["components"]["schemas"];
    let (mut page, mut seen, mut next) = (String::new(), BTreeSet::new(), vec![start]);
    while let Some(name) = next.pop() {
        let Some(members) = schemas[name]["properties"].as_object() else { continue };
        if !seen.insert(name) {
            continue;
        }
        let said = schemas[name]["description"].as_str().unwrap_or_default();
        let _ = write!(page, "\n### {name}\n\n");
        if !said.is_empty() {
            page.push_str(&paragraph(said));
            page.push('\n');
        }
        let mut of_members = Vec::new();
        for (member, schema) in members {
            let of = referred(schema);
            let of_text = of.filter(|of| schemas[of]["properties"].is_object());
            let of_text = of_text.map_or_else(String::new, |of| format!(" ([{of}](#{}))", of.to_lowercase()));
            let said = schema["description"].as_str().unwrap_or("see the OpenAPI document");
            page.push_str(&item(&format!("`{member}`{of_text}: {said}")));
            of_members.extend(of);
        }
        next.extend(of_members.into_iter().rev());
    }
    page
}

/// The kinds of notices with what they say, from their declaration.
fn page_of_notices(source: &str) -> String {
    let (_, declared) = source.split_once("NoticeKind: \"kind of notice\" {\n").unwrap();
    let (declared, _) = declared.split_once("\n    }").unwrap();
    let (mut list, mut said) = (String::new(), Vec::new());
    for line in declared.lines().map(str::trim) {
        match line.strip_prefix("/// ") {
            Some(words) => said.push(words),
            None => {
                let name = line.split('"').nth(1).unwrap();
                list += &item(&format!("`{name}`: {}", std::mem::take(&mut said).join(" ")));
            }
        }
    }
    list.trim_end().to_owned()
}

/// What stands in a page under this name.
fn generated(name: &str) -> Option<String> {
    Some(match name {
        "options" => page_of_options(),
        "calls" => page_of_calls(&document()),
        "manifest" => page_of_members(&document(), "Manifest"),
        "notices" => page_of_notices(&fs::read_to_string(root().join("src/publication/notice_kind.rs")).unwrap()),
        _ => return None,
    })
}

#[test]
fn generated_lists_are_up_to_date() {
    let (mut found, mut stale) = (0, Vec::new());
    for page in pages() {
        let text = read(&page);
        let Some((head, rest)) = text.split_once("<!-- generated: ") else { continue };
        let (name, rest) = rest.split_once(" -->\n").unwrap();
        let (_, tail) = rest.split_once("<!-- end -->").expect("the list ends");
        let list = generated(name).unwrap_or_else(|| panic!("{page}: nothing generates {name}"));
        let wanted = format!("{head}<!-- generated: {name} -->\n{list}\n<!-- end -->{tail}");
        found += 1;
        if wanted != text {
            if is_blessing() {
                fs::write(root().join(&page), &wanted).unwrap();
            }
            stale.push(page);
        }
    }
    assert_eq!(found, 4);
    assert!(stale.is_empty(), "regenerate {stale:?}: GUARDIAN_BLESS=1 cargo test --test it pages, twice");
}

#[test]
fn pages_are_short_and_narrow() {
    for (page, most) in [("README.md", 150), ("ARCHITECTURE.md", 200)] {
        assert!(read(page).lines().count() <= most, "{page} has more than {most} lines");
    }
    // pages that the binary makes have rows as long as their sentences
    let is_free = |page: &str| page.starts_with("docker/") || matches!(page, "docs/problems.md" | "docs/metrics.md");
    for page in pages().iter().filter(|page| !is_free(page)) {
        let text = read(page);
        let long = text.lines().position(|line| line.chars().count() > 120);
        assert!(long.is_none(), "{page}, line {}, has more than 120 characters", long.unwrap_or_default() + 1);
    }
}

#[test]
fn demo_publishes_both_tables() {
    let folder = tempfile::tempdir().unwrap();
    let ran = guardian()
        .args(["demo", "--exit", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    for expected in ["hospital: 6 rows", "adult: 45222 rows", "linkage checked", "Swagger UI: http://127.0.0.1:"] {
        assert!(said.contains(expected), "{expected} is missing in:\n{said}");
    }
    assert!(said.matches("is in a part of its own").count() >= 2, "each table has a bucketized sub-table:\n{said}");
}
