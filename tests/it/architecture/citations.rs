//! Citations in sources, and the files that the page of the architecture names.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::dependencies::{files, program, root};
use super::reference_pages::{anchors, citations_of_prose, reference_keys};

/// Words of results that a paper or a page proves.
const RESULTS: &[&str] = &["Theorem", "Lemma", "Corollary", "Proposition"];

/// The blocks of comments of a source, each as one line.
fn comments(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.lines() {
        match line.trim_start().strip_prefix("//") {
            Some(comment) => {
                let block = blocks.last_mut().unwrap();
                block.push_str(comment.trim_start_matches(['/', '!']));
                block.push(' ');
            }
            None => blocks.push(String::new()),
        }
    }
    blocks.retain(|block| !block.trim().is_empty());
    blocks
}

/// The pages below `docs` that a comment names, each with its heading.
fn cited_pages(comment: &str) -> Vec<(String, Option<String>)> {
    let words = comment.split(|letter: char| letter.is_whitespace() || "()[],;`".contains(letter));
    let words = words.map(|word| word.trim_end_matches('.')).filter(|word| word.starts_with("docs/"));
    words
        .map(|word| match word.split_once('#') {
            Some((page, heading)) => (page.to_owned(), Some(heading.to_owned())),
            None => (word.to_owned(), None),
        })
        .collect()
}

/// Whether every result that a comment names stands in brackets or in front of a page.
fn results_are_cited(comment: &str) -> bool {
    let mut outside = String::new();
    for (at, piece) in comment.split('[').enumerate() {
        outside.push_str(if at == 0 { piece } else { piece.split_once(']').map_or("", |(_, rest)| rest) });
    }
    let words: Vec<&str> = outside.split_whitespace().collect();
    let is_result =
        |pair: &[&str]| RESULTS.contains(&pair[0]) && pair[1].starts_with(|first: char| first.is_ascii_digit());
    !words.windows(2).any(is_result)
}

#[test]
fn citations_of_sources_name_known_works_and_pages() {
    let keys = reference_keys();
    let headings: BTreeMap<PathBuf, _> = files(&root().join("docs"))
        .into_iter()
        .filter(|page| page.extension().is_some_and(|extension| extension == "md"))
        .map(|page| {
            (PathBuf::from("docs").join(&page), anchors(&fs::read_to_string(root().join("docs").join(page)).unwrap()))
        })
        .collect();
    let (mut wrongs, mut cited) = (Vec::new(), 0);
    for (file, text) in program() {
        for comment in comments(&text) {
            let found = citations_of_prose(&comment);
            cited += found.len();
            wrongs.extend(found.difference(&keys).map(|key| format!("{file}: [{key}] is no reference")));
            for (page, heading) in cited_pages(&comment) {
                let known = headings.get(&PathBuf::from(&page));
                let is_known =
                    known.is_some_and(|known| heading.as_ref().is_none_or(|heading| known.contains(heading)));
                if !is_known {
                    wrongs.push(format!("{file}: {page} has no heading {heading:?}"));
                }
            }
            if !results_are_cited(&comment) {
                wrongs.push(format!("{file}: a result without its paper: {comment}"));
            }
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
    assert!(cited > 50, "only {cited} citations were found");
}

#[test]
fn wrong_citations_are_found() {
    let text = "/// A bound [Xiao and\n/// Tao 2006].\nfn f() {} // no\n    // by docs/spec/slicing.md#proof.\n";
    let found = comments(text);
    assert_eq!(found.len(), 2);
    assert_eq!(citations_of_prose(&found[0]).into_iter().collect::<Vec<_>>(), ["Xiao and Tao 2006"]);
    assert_eq!(cited_pages(&found[1]), [("docs/spec/slicing.md".to_owned(), Some("proof".to_owned()))]);
    assert!(results_are_cited("as [Jin et al. 2010, Theorem 4.1] says"));
    assert!(!results_are_cited("as Theorem 4.1 says"));
    assert!(results_are_cited("a Theorem of somebody"));
}

/// The files that the walks of the page of the architecture name, without placeholders.
fn walks(page: &str) -> Vec<String> {
    let section = page.split("## How to add").nth(1).expect("the walks");
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    names.filter(|name| !name.contains('<')).map(str::to_owned).collect()
}

/// Whether a walk's name is a file or a folder.
fn exists(name: &str) -> bool {
    let path =
        if name.starts_with("tests/") || name.starts_with("docs/") { root().to_owned() } else { root().join("src") };
    path.join(name).exists() || path.join(format!("{name}.rs")).exists()
}

#[test]
fn walks_name_files_that_exist() {
    let names = walks(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    assert!(names.len() > 30, "{names:?}");
    let gone: Vec<&String> = names.iter().filter(|name| !exists(name)).collect();
    assert!(gone.is_empty(), "{gone:?}");
    assert!(!exists("publication/none") && exists("verifier/mod"));
}
