//! Reports as officers read them: figures against the parts, pages that load and run nothing, and a printed page.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use guardian::publication::TableKind;
use guardian::report::{Manifest, ManifestTable, PAGE_POLICY, PublicReport, public_report, readme, report_page};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::browser;
use crate::support::harness::{HOSPITAL, Server, hospital_method, text};
use crate::support::library::{Memory, Original, cells, publish, table};

/// The first rows of the Adult table.
fn adult(rows: usize) -> String {
    let mut csv = String::new();
    GzDecoder::new(&include_bytes!("../../data/adult-7.csv.gz")[..]).read_to_string(&mut csv).unwrap();
    csv.lines().take(rows + 1).map(|line| format!("{line}\n")).collect()
}

/// One release of each kind of table.
fn methods() -> Vec<(&'static str, Value)> {
    let known = json!(["age", "country", "sex"]);
    let two = json!({"type": "l_diversity", "l": 2});
    vec![
        (
            "versatile",
            json!({"type": "versatile", "rules": ["age, sex -> education", "country, income -> occupation"],
            "default_guarantee": two}),
        ),
        ("anatomy", json!({"type": "anatomy", "quasi_identifiers": known, "sensitive": "education", "guarantee": two})),
        (
            "bucketize",
            json!({"type": "bucketize", "quasi_identifiers": known, "sensitive": "education",
            "thresholds": {"explicit": {"university": "3/4"}, "otherwise": "3/4"}}),
        ),
        (
            "slicing",
            json!({"type": "slicing", "sensitive": "education",
            "columns": {"explicit": [["age", "sex"], ["education"]]}, "guarantee": two}),
        ),
        (
            "decompose",
            json!({"type": "decompose", "quasi_identifiers": known, "sensitive": ["education", "marital_status"],
            "l": {"education": 2, "marital_status": 2}, "breaches": "report"}),
        ),
        (
            "generalize",
            json!({"type": "generalize", "quasi_identifiers": known, "sensitive": ["education"],
            "guarantees": [{"type": "k_anonymity", "k": 5}, {"type": "t_closeness", "t": "0.6"}]}),
        ),
    ]
}

fn released(method: &Value) -> (Manifest, PublicReport, Memory) {
    released_from(&adult(1500), method)
}

fn released_from(csv: &str, method: &Value) -> (Manifest, PublicReport, Memory) {
    let original = Original::new(table(csv.as_bytes()));
    let document = json!({"unlisted": "drop", "method": method});
    let (manifest, files) = publish(&original, &document).unwrap_or_else(|faults| panic!("{method}: {faults:#?}"));
    let report = public_report(&manifest);
    (manifest, report, files)
}

/// The largest share of a value of a column: of all rows, and of the rows of any bucket or class.
fn shares(manifest: &Manifest, files: &Memory, table: &str, sensitive: &str) -> [(u64, u64); 2] {
    let table = manifest.tables.iter().find(|of| of.name == table).unwrap();
    let part = table.parts.iter().find(|part| part.attributes.iter().any(|name| name == sensitive)).unwrap();
    let (header, rows) = cells(&files.0[&part.csv()]);
    let column = header.iter().position(|name| name == sensitive).unwrap();
    let key = |row: &Vec<String>| -> Vec<String> {
        if part.bucketed {
            return vec![row[0].clone()];
        }
        // the rows of a class agree on all other columns
        row.iter().enumerate().filter(|(at, _)| *at != column).map(|(_, cell)| cell.clone()).collect()
    };
    let mut all: HashMap<&str, u64> = HashMap::new();
    let mut groups: HashMap<Vec<String>, HashMap<&str, u64>> = HashMap::new();
    for row in &rows {
        *all.entry(&row[column]).or_default() += 1;
        *groups.entry(key(row)).or_default().entry(&row[column]).or_default() += 1;
    }
    let most = |counts: &HashMap<&str, u64>| (*counts.values().max().unwrap(), counts.values().sum::<u64>());
    let worst = groups.values().map(most).max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).unwrap();
    [most(&all), worst]
}

#[test]
fn figures_of_rules_follow_from_the_parts() {
    let mut compared = 0;
    for (name, method) in methods() {
        let (manifest, report, files) = released(&method);
        assert_eq!(report.figures.len(), manifest.rules.len(), "{name}");
        for (rule, figures) in manifest.rules.iter().zip(&report.figures) {
            let (Some(of), [sensitive]) = (&figures.table, &rule.sensitive[..]) else { continue };
            let Some(worst) = figures.worst else { continue };
            let [all, largest] = shares(&manifest, &files, of, sensitive);
            assert_eq!(
                u128::from(worst.count) * u128::from(largest.1),
                u128::from(largest.0) * u128::from(worst.of),
                "{name}"
            );
            let prior = figures.prior.unwrap();
            assert_eq!((prior.count, prior.of), all, "{name}: {}", figures.rule);
            assert!(figures.bound.is_none_or(|bound| !worst.exceeds(bound)), "{name}: {figures:?}");
            compared += 1;
        }
    }
    assert!(compared >= 6, "{compared}");
}

/// The values that a cell spells: of a set or interval of numbers its ends, of all others itself.
fn spelled(cell: &str) -> Vec<String> {
    if let Ok(values) = serde_json::from_str::<Vec<Value>>(cell) {
        return values.iter().map(Value::to_string).collect();
    }
    if cell == "*" {
        return vec![String::new(); 2];
    }
    match cell.split_once("..") {
        Some((from, to)) if from != to => vec![from.to_owned(), to.to_owned()],
        Some((from, _)) => vec![from.to_owned()],
        None => vec![cell.to_owned()],
    }
}

/// The table with ages in years in place of groups of ages.
fn with_years(csv: &str) -> String {
    let years = |(at, line): (usize, &str)| {
        let parted =
            line.split_once('-').and_then(|(from, rest)| Some((from.parse::<usize>().ok()?, rest.split_once(',')?.1)));
        parted.map_or_else(|| format!("{line}\n"), |(from, rest)| format!("{},{rest}\n", from + at % 10))
    };
    csv.lines().enumerate().map(years).collect()
}

#[test]
fn figures_of_columns_follow_from_the_parts() {
    let (mut shown, mut several) = (0, 0);
    let known = json!(["age", "country", "sex"]);
    let guarantees = json!([{"type": "k_anonymity", "k": 5}]);
    let generalize = |cells: &str| {
        let of = json!({"type": "generalize", "quasi_identifiers": known, "sensitive": ["education"],
            "guarantees": guarantees, "cells": cells});
        ("generalize", of)
    };
    let sliced = json!({"type": "slicing", "sensitive": "education", "guarantee": {"type": "l_diversity", "l": 2},
        "columns": {"explicit": [["age", "sex"], ["country"], ["education"]]}});
    let more = [generalize("interval"), generalize("set"), ("three columns", sliced)];
    for (name, method) in methods().into_iter().chain(more) {
        let csv = if method["cells"] == "interval" { with_years(&adult(1500)) } else { adult(1500) };
        let (manifest, report, files) = released_from(&csv, &method);
        let page = report_page(&report, &manifest).unwrap();
        let columns = &manifest.utility.columns;
        let is_counted = |table: &ManifestTable| matches!(table.kind, TableKind::Generalized | TableKind::Sliced);
        assert_eq!(!columns.is_empty(), manifest.tables.iter().any(is_counted), "{name}");
        assert_eq!(report.cells.len(), columns.len());
        for of in columns {
            let table = manifest.tables.iter().find(|table| table.name == of.table).unwrap();
            let part = table.parts.iter().find(|part| part.name == of.part).unwrap();
            let (header, rows) = cells(&files.0[&part.csv()]);
            let at = header.iter().position(|name| *name == of.attribute).unwrap();
            let cells: Vec<&String> = rows.iter().map(|row| &row[at]).collect();
            let distinct: HashSet<&&String> = cells.iter().collect();
            let exact = cells.iter().filter(|cell| spelled(cell).len() == 1).count() as u64;
            assert_eq!((of.distinct, of.exact.count), (distinct.len() as u64, exact), "{name}: {of:?}");
            assert_eq!((of.exact.of, of.whole.of), (part.rows, part.rows), "{name}: {of:?}");
            assert!(of.exact.count + of.whole.count <= part.rows, "{name}: {of:?}");
            if let Some(values) = of.values {
                let all: usize = cells.iter().map(|cell| spelled(cell).len()).sum();
                assert_eq!(values.count, all as u64, "{name}: {of:?}");
            }
            if let Some(width) = of.mean_width {
                let ends = |cell: &&String| {
                    cell.split_once("..").map(|(a, b)| (a.parse::<f64>().unwrap(), b.parse::<f64>().unwrap()))
                };
                let ends: Vec<(f64, f64)> = cells.iter().map(|cell| ends(cell).unwrap()).collect();
                let least = ends.iter().map(|(from, _)| *from).fold(f64::INFINITY, f64::min);
                let most = ends.iter().map(|(_, to)| *to).fold(f64::NEG_INFINITY, f64::max);
                let mean = ends.iter().map(|(from, to)| (to - from) / (most - least)).sum::<f64>() / ends.len() as f64;
                assert!((mean - width).abs() < 1e-4, "{name}: {mean} {of:?}");
                let whole = ends.iter().filter(|(from, to)| from < to && *from <= least && *to >= most).count() as u64;
                assert_eq!(of.whole.count, whole, "{name}: {of:?}");
                several += 1;
            }
            assert!(page.contains(&of.in_words()), "{name}: {of:?}");
            shown += 1;
        }
    }
    assert!(shown >= 10 && several >= 1, "{shown} {several}");
}

/// Of a release without rules, the requirements are what is promised.
#[test]
fn requirements_are_promises_of_a_report() {
    let requirement = |y: &str, measure: Value| json!({"x": ["new.age", "new.sex"], "y": [y], "measure": measure});
    let share = requirement("new.education", json!({"type": "xy_linkability", "h": "0.9"}));
    let group = requirement("new.#key", json!({"type": "xy_anonymity", "k": 3}));
    let (manifest, report, files) = released(&json!({"type": "sequential", "publish": ["age", "sex", "education"],
        "requirements": [share, group]}));
    assert_eq!(report.summary, "1500 rows in 1 table under 2 requirements; the unit of protection is a row");
    // the groups of equal cells are counted anew
    let (_, rows) = cells(&files.0["t1.rows.csv"]);
    let mut groups: HashMap<(&str, &str), HashMap<&str, u64>> = HashMap::new();
    for row in &rows {
        let at =
            |name: &str| row[manifest.tables[0].parts[0].attributes.iter().position(|of| of == name).unwrap()].as_str();
        *groups.entry((at("age"), at("sex"))).or_default().entry(at("education")).or_default() += 1;
    }
    let share = |of: &HashMap<&str, u64>| *of.values().max().unwrap() as f64 / of.values().sum::<u64>() as f64;
    let worst = groups.values().map(share).fold(0.0, f64::max);
    let least = groups.values().map(|of| of.values().sum::<u64>()).min().unwrap();
    let promised = "an adversary who knows age, sex of a person learns each value of education with probability at most 0.9: the \
                    worst group gives ";
    let said = report.rules[0].strip_prefix(promised).unwrap_or_else(|| panic!("{:#?}", report.rules));
    let (count, of) = said.split_once('/').unwrap();
    assert!((count.parse::<f64>().unwrap() / of.parse::<f64>().unwrap() - worst).abs() < 1e-9, "{said} {worst}");
    let grouped = format!("each group of equal age, sex has at least 3 different rows: the smallest has {least}");
    assert_eq!(report.rules[1], grouped);
    let page = report_page(&report, &manifest).unwrap();
    assert!(page.contains(&grouped) && !page.contains("no privacy rule") && !page.contains("0 classes"));
    let open = page.split_once("No rule protects").unwrap().1.split_once("</strong>").unwrap().0;
    assert!(open.contains("age") && !open.contains("education"), "{open}");
    let exposures = manifest.exposures.as_ref().unwrap();
    assert_eq!(exposures.unprotected, ["age", "sex"], "a requirement protects what it bounds");
    let inferred = exposures.values.iter().filter(|of| of.attribute == "education");
    assert!(inferred.clone().count() > 0 && inferred.clone().all(|of| of.protected), "{:#?}", exposures.values);
    assert!(!report.reading.contains("bucket"), "{}", report.reading);
}

#[test]
fn lists_of_values_are_no_rows_of_a_report() {
    let (_, decomposed) = methods().swap_remove(4);
    let (_, report, _) = released(&decomposed);
    assert!(report.summary.starts_with("1500 rows in 2 tables under 2 rules"), "{}", report.summary);
    assert!(report.premises.iter().all(|premise| !premise.contains("learns no bound")), "{:#?}", report.premises);
}

#[test]
fn report_names_the_distance_of_a_guarantee() {
    let delta = |distance: &str| json!({"type": "delta", "distance": distance, "b": "0.9"});
    let ordered = json!({"type": "t_closeness", "t": "0.9", "distance": "ordered"});
    for (guarantee, words) in [
        (delta("emd"), "within 0.9 of that of the whole table (earth mover's distance, values in their order)"),
        (delta("total_variation"), "within 0.9 of that of the whole table (total variation)"),
        (ordered, "within 0.9 of that of the whole table (earth mover's distance, values in their order)"),
    ] {
        let method = json!({"type": "anatomy", "quasi_identifiers": ["country", "sex"], "sensitive": "education",
            "guarantee": guarantee});
        let (_, report, _) = released(&method);
        let premises = &report.premises;
        assert!(premises.iter().any(|premise| premise.contains(words)), "{guarantee}: {premises:#?}");
    }
}

#[test]
fn pages_show_every_figure_and_run_nothing() {
    for (name, method) in methods() {
        let (manifest, report, _) = released(&method);
        let page = report_page(&report, &manifest).unwrap();
        for forbidden in ["<script", " style=", "src=", "href=", "url(", "@import", "javascript:", "onload", "onerror"]
        {
            assert!(!page.contains(forbidden), "{name}: {forbidden}");
        }
        let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        let hash = STANDARD.encode(Sha256::digest(style));
        assert!(PAGE_POLICY.contains(&format!("style-src 'sha256-{hash}'")), "{name}");
        for figures in &report.figures {
            for ratio in [figures.prior, figures.bound, figures.worst].into_iter().flatten() {
                assert!(page.contains(&ratio.percent()), "{name}: {figures:?}");
            }
        }
        let exposures = manifest.exposures.as_ref().unwrap();
        for rows in &exposures.rows {
            assert!(page.contains(&format!("{} of {}", rows.unique.count, rows.unique.of)), "{name}: {rows:?}");
        }
        assert!(exposures.unprotected.iter().all(|attribute| page.contains(attribute)), "{name}");
        let readme = readme(&manifest);
        for heading in ["What is promised", "What is not promised"] {
            assert!(page.contains(&format!("<h2>{heading}</h2>")) && readme.contains(heading), "{name}");
        }
        let of_words = ["<svg role=\"img\" aria-label=", "<svg aria-hidden=", "<div role=\"img\" aria-label="];
        let with_words: usize = of_words.iter().map(|kind| page.matches(kind).count()).sum();
        assert_eq!(page.matches("<svg").count(), with_words, "{name}: a drawing without words");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_applies_the_style_and_prints_the_page() {
    let Some(browser) = browser::found() else { return };
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let document = json!({"unlisted": "drop", "internal": {"utility": ["kl"]}, "method": hospital_method()});
    let release = server.publish(&dataset, document).await;
    let report = server.get(&format!("/v1/releases/{}/report", text(&release["id"]))).await.ok(200);
    let folder = tempfile::tempdir().unwrap();
    for (kind, headings) in [
        ("report", ["What is promised", "What is not promised"]),
        ("internal-report", ["Internal report", "Divergence"]),
    ] {
        let address = format!("http://{}/v1/releases/{}/{kind}?format=html", server.authority(), text(&release["id"]));
        let pdf = folder.path().join(format!("{kind}.pdf"));
        browser.print(&address, &pdf);
        let printed = Command::new("pdftotext").arg(&pdf).arg("-").output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(headings.iter().all(|heading| printed.contains(heading)), "{kind}: {printed}");
        if kind == "report" {
            for rule in report["rules"].as_array().unwrap() {
                let words = text(rule).split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(printed.contains(&words), "{words}: {printed}");
            }
        }
        // a style sheet that the policy refuses leaves the margins of the browser
        let fonts = Command::new("pdffonts").arg(&pdf).output().unwrap();
        let fonts = String::from_utf8(fonts.stdout).unwrap();
        assert!(fonts.contains("Sans") && !fonts.contains("Serif"), "{kind}: {fonts}");
    }
    server.stop().await;
}
