//! Circles of files that import each other.

use std::collections::{BTreeMap, BTreeSet};

use super::dependencies::program;
use crate::support::rust_source::{Token, strip, tokens};

/// Maximal number of files of a circle without an entry in the list.
const MAX_FREE_FILES: usize = 3;

/// Larger circles: a file of each, with the number of files that it may have.
const CIRCLES: &[(&str, usize)] = &[
    ("inputs/context.rs", 5),
    ("microdata/formats/mod.rs", 10),
    ("ports/portable/mod.rs", 4),
    ("publish/design.rs", 11),
    ("vault/mod.rs", 4),
];

/// Maximal number of re-exports from a name to its definition.
const MAX_REEXPORTS: usize = 8;

/// The module of a file: `engine::plan` for `engine/plan.rs`.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// A path that a file names, from the root of the crate.
#[derive(PartialEq, Eq, Debug)]
struct NamedPath {
    path: Vec<String>,
    /// The name under which an import makes it known; `None` outside imports.
    known_as: Option<String>,
}

/// The paths that start at this token, each with its end, its braces resolved.
fn paths(tokens: &[Token], mut at: usize, before: &[String], found: &mut Vec<NamedPath>) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(at) {
            Some(token) if token.is("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| !token.is("}")) {
                    at = if tokens[at].is(",") { at + 1 } else { paths(tokens, at, &path, found) };
                }
                return at + 1;
            }
            Some(token) if token.name().is_some() => {
                path.extend(token.name().filter(|name| *name != "self").map(str::to_owned));
                at += 1;
            }
            Some(token) if token.is("*") => {
                path.push("*".to_owned());
                at += 1;
            }
            _ => return at.max(1),
        }
        if tokens.get(at).is_some_and(|token| token.is("::")) {
            at += 1;
            continue;
        }
        let mut known_as = path.last().cloned();
        if tokens.get(at).is_some_and(|token| token.is("as")) {
            known_as = tokens.get(at + 1).and_then(Token::name).map(str::to_owned);
            at += 2;
        }
        found.push(NamedPath { path, known_as });
        return at;
    }
}

/// A path from the root of the crate; `None` for one of another crate.
fn from_root(module: &[String], children: &BTreeSet<String>, path: &[String]) -> Option<Vec<String>> {
    let mut base = module.to_vec();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => return Some(rest[1..].to_vec()),
        "super" => {
            while let Some("super") = rest.first().map(String::as_str) {
                base.pop();
                rest = &rest[1..];
            }
        }
        first if children.contains(first) => {}
        _ => return None,
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// The imports of a file, and the paths that its code names in full.
fn named_paths(file: &str, text: &str, modules: &BTreeMap<Vec<String>, String>) -> Vec<NamedPath> {
    let module = module_of(file);
    let is_child = |of: &&Vec<String>| of.len() == module.len() + 1 && of.starts_with(&module);
    let children: BTreeSet<String> = modules.keys().filter(is_child).filter_map(|of| of.last().cloned()).collect();
    let tokens = tokens(&strip(text));
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let mut named = Vec::new();
        let imports = tokens[at].is("use");
        let of_visibility = at > 1 && tokens[at - 1].is("in") && tokens[at - 2].is("(");
        let continues = of_visibility || at > 0 && tokens[at - 1].is("::");
        let begins = tokens[at].name().is_some() && tokens.get(at + 1).is_some_and(|token| token.is("::"));
        at = match (imports, begins && !continues) {
            (true, _) => paths(&tokens, at + 1, &[], &mut named),
            (false, true) => full_path(&tokens, at, &mut named),
            _ => at + 1,
        };
        for NamedPath { path, known_as } in named {
            let path = from_root(&module, &children, &path);
            found.extend(path.map(|path| NamedPath { path, known_as: known_as.filter(|_| imports) }));
        }
    }
    found
}

/// A path in code: names between colons.
fn full_path(tokens: &[Token], mut at: usize, found: &mut Vec<NamedPath>) -> usize {
    let mut path = Vec::new();
    while let Some(name) = tokens.get(at).and_then(Token::name) {
        path.push(name.to_owned());
        at += 1;
        if !tokens.get(at).is_some_and(|token| token.is("::")) {
            break;
        }
        at += 1;
    }
    found.push(NamedPath { path, known_as: None });
    at
}

/// The sources of a program, with the names that each file imports.
struct Imports {
    modules: BTreeMap<Vec<String>, String>,
    named: BTreeMap<String, Vec<NamedPath>>,
}

impl Imports {
    fn new(program: &[(String, String)]) -> Self {
        // the entry of the program is another crate
        let library = program.iter().filter(|(file, _)| file != "main.rs");
        let modules: BTreeMap<_, _> = library.clone().map(|(file, _)| (module_of(file), file.clone())).collect();
        let named = library.map(|(file, text)| (file.clone(), named_paths(file, text, &modules))).collect();
        Self { modules, named }
    }

    /// The file that defines what a path names, through re-exports.
    fn definition(&self, path: &[String], reexports: usize) -> Option<&String> {
        let len = (0..=path.len()).rev().find(|len| self.modules.contains_key(&path[..*len]))?;
        let file = &self.modules[&path[..len]];
        let Some(name) = path.get(len).filter(|_| reexports < MAX_REEXPORTS) else { return Some(file) };
        let imported = self.named[file].iter().find(|of| of.known_as.as_ref() == Some(name) && of.path != path);
        match imported {
            Some(of) => self.definition(&[&of.path[..], &path[len + 1..]].concat(), reexports + 1),
            None => Some(file),
        }
    }

    /// The files that each file uses.
    fn edges(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (file, named) in &self.named {
            let targets = named.iter().filter_map(|of| self.definition(&of.path, 0));
            // the root holds the macros, which import nothing
            let targets = targets.filter(|target| *target != file && *target != "lib.rs");
            edges.insert(file, targets.map(String::as_str).collect());
        }
        edges
    }
}

/// The files that can be reached from one.
fn reached<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        open.extend(edges.get(file).into_iter().flatten().filter(|next| found.insert(**next)));
    }
    found
}

/// The sets of files of which each reaches all others.
fn circles(program: &[(String, String)]) -> Vec<BTreeSet<String>> {
    let imports = Imports::new(program);
    let edges = imports.edges();
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|file| (*file, reached(&edges, file))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (file, others) in &reached {
        if !others.contains(file) || found.iter().any(|circle| circle.contains(*file)) {
            continue;
        }
        let circle = others.iter().filter(|other| reached[*other].contains(file));
        found.push(circle.map(|other| (*other).to_owned()).collect());
    }
    found
}

#[test]
fn circles_of_files_have_at_most_3_files() {
    let mut wrongs = Vec::new();
    for circle in circles(&program()).iter().filter(|circle| circle.len() > MAX_FREE_FILES) {
        let ceiling = CIRCLES.iter().find(|(file, _)| circle.contains(*file)).map_or(0, |(_, ceiling)| *ceiling);
        if circle.len() > ceiling {
            let files: Vec<&str> = circle.iter().map(String::as_str).collect();
            wrongs.push(format!("{} files, more than {ceiling}: {}", circle.len(), files.join(", ")));
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

#[test]
fn circles_of_files_are_found() {
    let found = |files: &[(&str, &str)]| {
        let program: Vec<_> = files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        circles(&program).iter().map(BTreeSet::len).collect::<Vec<_>>()
    };
    assert_eq!(found(&[("a/b.rs", "use crate::c::D;"), ("c.rs", "pub struct D;")]), [] as [usize; 0]);
    assert_eq!(found(&[("a/b.rs", "use crate::c::D;"), ("c.rs", "fn f() { crate::a::b::g() }")]), [2]);
    let visible = "pub(in crate::c) fn f() {}";
    assert_eq!(found(&[("c/b.rs", visible), ("c/mod.rs", "mod b;\nuse b::f;")]), [] as [usize; 0]);
    // a re-export is not a use of the module that has it
    let module = ("a/mod.rs", "mod b;\nmod c;\npub use b::{B, E as F};\npub use c::C;");
    assert_eq!(found(&[module, ("a/b.rs", "use super::C;"), ("a/c.rs", "")]), [] as [usize; 0]);
    assert_eq!(found(&[module, ("a/b.rs", "use super::{C};"), ("a/c.rs", "use crate::a::F;")]), [2]);
    assert_eq!(found(&[module, ("a/b.rs", "use super::c;"), ("a/c.rs", "fn f() { super::b::f() }")]), [2]);
    assert_eq!(found(&[module, ("a/b.rs", "use std::c;"), ("a/c.rs", "use super::super::a::b;")]), [] as [usize; 0]);
}
