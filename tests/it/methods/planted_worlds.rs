//! Attackers on tiny tables with planted dependencies, who count the worlds that the published files and their knowledge allow.
//!
//! What they know of a dependency: only that it holds, its function, or the counts of its values with any likelihood of them
//! (`docs/spec/dependencies.md#adversary`). No posterior may exceed the bound of a rule.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use guardian::engine::EngineError;
use guardian::ledger::EarlierDisclosures;
use guardian::problem::Kind;
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::report::Manifest;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::bounds::Bound;
use crate::support::library::{Memory, Original, Random, release, seeds, table};
use crate::support::planted::{Dependency, Planted};
use crate::support::worlds::{OPEN, Part, Person, Posterior, Published, Worlds, published};

/// Two free columns, the protected `s`, and up to three that dependencies tie to them.
fn planted(random: &mut Random) -> Planted {
    let count = 3 + random.below(6);
    let kinds = 2 + random.below(3);
    let mut order: Vec<usize> = (0..count).collect();
    (1..count).rev().for_each(|at| order.swap(at, random.below(at + 1)));
    let mut rows: Vec<Vec<usize>> =
        order.iter().map(|at| vec![random.below(2 + count / 5), random.below(3), at % kinds]).collect();
    let mut names = vec!["x", "y", "s"];
    let mut dependencies = Vec::new();
    for _ in 0..1 + random.below(3) {
        let derived: [(&'static str, &[&str]); 9] = [
            ("group", &["s"]),
            ("ward", &["group"]),
            ("joint", &["s", "x"]),
            ("code", &["s"]),
            ("name", &["x"]),
            ("dirty", &["s"]),
            ("band", &["x"]),
            ("fine", &["s"]),
            ("pair", &["x", "y"]),
        ];
        let (name, from) = derived[random.below(derived.len())];
        let place = |name: &&str| names.iter().position(|other| other == name);
        let Some(from) = from.iter().map(place).collect::<Option<Vec<usize>>>() else { continue };
        if names.contains(&name) {
            continue;
        }
        let (to, fold) = (names.len(), 1 + random.below(3));
        for row in &mut rows {
            let sum: usize = from.iter().map(|&at| row[at]).sum();
            let value = match name {
                "code" | "name" => sum * 5 % 7,
                "fine" => sum * 2 + random.below(2),
                _ => sum / fold % 2,
            };
            row.push(value);
        }
        if name == "dirty" {
            rows[0][to] = 1 - rows[0][to];
        }
        names.push(name);
        let (down, up) = (Dependency::new(&from, to), Dependency::new(&[to], from[0]));
        dependencies.extend(match name {
            "code" | "name" => vec![down, up],
            // finer than the column it comes from
            "fine" => vec![up],
            _ => vec![down],
        });
    }
    Planted::new(names, &rows, dependencies)
}

/// A method, and the columns that it publishes beside those of its rules.
struct Asked {
    method: Value,
    /// Whether every column is published, or those of the rules alone.
    publishes_all: bool,
    rules: Vec<Rule>,
}

/// What `sensitive` may be for who knows `known`.
struct Rule {
    known: Vec<&'static str>,
    sensitive: &'static str,
    bound: Bound,
}

/// A bound on the distribution of `s`, other than one on its most frequent value.
fn other_bound(random: &mut Random) -> Bound {
    let t = [(1, 2), (2, 3), (3, 4), (1, 3)][random.below(4)];
    match random.below(3) {
        0 => Bound::Variation(t),
        1 => Bound::Tree(t),
        _ => Bound::Thresholds(t, [(1, 2), (2, 3), (3, 4)][random.below(3)]),
    }
}

fn asked(data: &Planted, random: &mut Random) -> Asked {
    let others: Vec<&'static str> = data.names.iter().copied().filter(|name| *name != "s").collect();
    // what determines the protected column, and is known, leaves nothing to protect
    let likely = |name: &&str| !["code", "fine"].contains(name);
    let mut known: Vec<&'static str> =
        others.iter().copied().filter(|name| random.below(if likely(name) { 2 } else { 20 }) == 0).collect();
    if known.is_empty() {
        known.push("x");
    }
    let l = 2 + u128::from(random.below(6) == 0);
    let second = others.iter().copied().find(|name| !known.contains(name)).filter(|_| random.below(2) == 0);
    let kind = random.below(14);
    // thresholds are of other methods
    let is_of_classes = [8, 9].contains(&kind);
    let other = Some(other_bound(random)).filter(|bound| {
        let takes = [0, 1, 2, 3, 5].contains(&kind) || is_of_classes && !matches!(bound, Bound::Thresholds(..));
        takes && random.below(2) == 0
    });
    let second = second.filter(|_| other.is_none());
    let bound = other.unwrap_or(Bound::Share(l));
    let rule = |sensitive: &'static str| Rule { known: known.clone(), sensitive, bound: bound.clone() };
    let guarantee = bound.guarantee("s");
    let share = json!({"explicit": {}, "otherwise": format!("1/{l}")});
    let mut sensitive = vec!["s"];
    if [0, 1, 2, 3, 4, 8, 10].contains(&kind) {
        sensitive.extend(second);
    }
    let as_rules: Vec<String> = sensitive.iter().map(|name| format!("{} -> {name}", known.join(", "))).collect();
    let versatile = |algorithm: &str| json!({"type": "versatile", "rules": as_rules, "default_guarantee": guarantee, "algorithm": algorithm});
    let bucketize = |sizes: &str| json!({"type": "bucketize", "sensitive": "s", "quasi_identifiers": known, "thresholds": share, "sizes": sizes});
    let mut publishes_all = true;
    let method = match kind {
        0 => versatile("uad"),
        1 => versatile("gd"),
        2 => versatile("auto"),
        3 => versatile("single_attribute"),
        4 => versatile("multi_sa"),
        5 => json!({"type": "anatomy", "sensitive": "s", "quasi_identifiers": known, "guarantee": guarantee}),
        6 | 7 => bucketize(["one", "two", "multi", "optimal"][random.below(4)]),
        8 => {
            publishes_all = false;
            json!({"type": "generalize", "quasi_identifiers": known, "sensitive": sensitive, "guarantees": [guarantee], "cells": "interval"})
        }
        9 => {
            publishes_all = false;
            json!({"type": "generalize", "quasi_identifiers": known, "sensitive": ["s"], "guarantees": [guarantee], "split": "strict"})
        }
        10 | 11 => {
            publishes_all = false;
            let l: Value = sensitive.iter().map(|name| ((*name).to_owned(), json!(l as u64))).collect();
            json!({"type": "decompose", "quasi_identifiers": known, "sensitive": sensitive, "l": l, "breaches": "report"})
        }
        12 => {
            publishes_all = false;
            let x: Vec<String> = known.iter().map(|name| format!("new.{name}")).collect();
            let measure = json!({"type": "xy_linkability", "h": format!("1/{l}")});
            let requirement = json!({"x": x, "y": ["new.s"], "measure": measure});
            json!({"type": "sequential", "publish": [], "against": [], "requirements": [requirement]})
        }
        _ => {
            let mut columns: Vec<Vec<&str>> = Vec::new();
            for name in &others {
                match random.below(columns.len() + 2) {
                    at if at < columns.len() => columns[at].push(name),
                    _ => columns.push(vec![name]),
                }
            }
            match random.below(3) {
                0 => columns[0].push("s"),
                _ => columns.push(vec!["s"]),
            }
            let columns = match random.below(3) {
                0 => json!({"count": 2}),
                _ => json!({"explicit": columns}),
            };
            json!({"type": "slicing", "sensitive": "s", "columns": columns, "guarantee": guarantee})
        }
    };
    Asked { method, publishes_all, rules: sensitive.into_iter().map(rule).collect() }
}

impl Asked {
    fn document(&self, data: &Planted) -> Value {
        let is_published = |name: &str| {
            self.publishes_all || self.rules.iter().any(|rule| rule.known.contains(&name) || rule.sensitive == name)
        };
        let attributes: Value = data
            .names
            .iter()
            .map(|name| {
                (
                    (*name).to_owned(),
                    if is_published(name) {
                        let mut options = json!({"publish": true, "identifier": false});
                        let mut bounds = self.rules.iter().map(|rule| (rule.sensitive, &rule.bound));
                        if bounds.any(|of| matches!(of, (sensitive, Bound::Tree(_)) if sensitive == *name)) {
                            let leaf = |value: usize| format!("{name}{value}");
                            options["taxonomy"] =
                                json!({"any": {"low": [leaf(0), leaf(1)], "high": [leaf(2), leaf(3)]}});
                        }
                        options
                    } else {
                        json!({"drop": true})
                    },
                )
            })
            .collect();
        let mut method = self.method.clone();
        method["functional_dependencies"] = data.declared();
        json!({"attributes": attributes, "method": method})
    }
}

/// Values that only go together as listed, for some columns of a person.
struct Together {
    attributes: Vec<String>,
    tuples: BTreeSet<Vec<String>>,
    /// Whether each of the tuples is of somebody.
    is_complete: bool,
}

/// What an adversary has: tables, and which values of a person go together besides.
struct Seen {
    tables: Vec<Published>,
    together: Vec<Together>,
}

impl Seen {
    /// The files of a release. Where cells stand for several values, the adversary also has a register of all known values.
    fn new(data: &Planted, asked: &Asked, manifest: &Manifest, files: &Memory) -> Self {
        let mut seen = Self { tables: published(manifest, files), together: Vec::new() };
        match asked.method["type"].as_str() {
            Some("generalize" | "sequential") => seen.add_register(data, &asked.rules[0].known),
            Some("decompose") => {
                let details = serde_json::to_value(&manifest.method_details).unwrap();
                seen.read_lists(&details["noise"]);
            }
            _ => seen.add_suppressed(data, &asked.rules[0].known),
        }
        seen
    }

    /// A person of the register belongs to a class with fitting cells.
    fn add_register(&mut self, data: &Planted, known: &[&str]) {
        let [release] = &mut self.tables[0][..] else { panic!("one part") };
        let columns: Vec<usize> = known.iter().map(|name| place(&release.attributes, name)).collect();
        let cells = |row: &[String]| columns.iter().map(|&at| row[at].clone()).collect::<Vec<_>>();
        let classes: BTreeSet<Vec<String>> = release.rows.iter().map(|(row, _)| cells(row)).collect();
        for (row, _) in &mut release.rows {
            let class = cells(row).join(" ");
            row.push(class);
        }
        for &column in &columns {
            // what the cells say is in the class
            release.attributes[column] = format!("{} published", release.attributes[column]);
        }
        release.attributes.push("class".to_owned());
        let register = data.part(&known.iter().map(|name| place(&data.names, name)).collect::<Vec<_>>());
        let fits = |class: &[String], row: &[String]| class.iter().zip(row).all(|(cell, value)| is_within(value, cell));
        let mut tuples = BTreeSet::new();
        for (row, _) in &register.rows {
            let fitting = classes.iter().filter(|class| fits(class, row));
            tuples.extend(fitting.map(|class| row.iter().cloned().chain([class.join(" ")]).collect::<Vec<_>>()));
        }
        let attributes = register.attributes.iter().cloned().chain(["class".to_owned()]).collect();
        self.tables.insert(0, vec![register]);
        self.together.push(Together { attributes, tuples, is_complete: false });
    }

    /// People whose rows are left out. A register of all known values has them.
    fn add_suppressed(&mut self, data: &Planted, known: &[&str]) {
        let lacks = |part: &Part| data.rows.len() - part.rows.len();
        let lost = lacks(&self.tables[0][0]);
        if lost == 0 {
            return;
        }
        for part in self.tables.iter_mut().flatten() {
            assert_eq!(lacks(part), lost);
            part.rows.extend(vec![(Vec::new(), 0); lost]);
        }
        self.tables.insert(0, vec![data.part(&known.iter().map(|name| place(&data.names, name)).collect::<Vec<_>>())]);
    }

    /// The values that a bucket lists are a set.
    fn read_lists(&mut self, noise: &Value) {
        let lists: Vec<Part> = self.tables[0].drain(2..).collect();
        let rows = &mut self.tables[0][0];
        rows.attributes.push("bucket".to_owned());
        rows.rows.iter_mut().for_each(|(row, bucket)| row.push(bucket.to_string()));
        for list in lists {
            let tuples = list.rows.into_iter().map(|(row, bucket)| vec![bucket.to_string(), row[0].clone()]).collect();
            let name = list.attributes[0].clone();
            let is_complete = !noise.as_array().unwrap().contains(&json!(name));
            self.together.push(Together { attributes: vec!["bucket".to_owned(), name], tuples, is_complete });
        }
    }
}

fn place<S: AsRef<str>>(names: &[S], name: &str) -> usize {
    names.iter().position(|other| other.as_ref() == name).unwrap()
}

/// Whether a value is in a published interval `first..last`, or behind any other cell.
fn is_within(value: &str, cell: &str) -> bool {
    match cell.split_once("..") {
        Some((first, last)) => first <= value && value <= last,
        None => cell == "*" || cell == value,
    }
}

/// What the adversary knows of dependencies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Knowledge {
    /// That they hold.
    Existence,
    /// What each value determines.
    Functions,
    /// How often which values go together.
    Counts,
    /// The same, and a likelihood of the values of each person.
    Weights,
}

/// A table of tuples of some attributes, by codes.
struct Coded {
    attributes: Vec<usize>,
    tuples: BTreeSet<Person>,
}

impl Coded {
    /// `None` where some attribute is in no table.
    fn new<S: AsRef<str>>(worlds: &Worlds, names: &[S], tuples: impl IntoIterator<Item = Vec<String>>) -> Option<Self> {
        let attributes: Vec<usize> = names.iter().map(|name| worlds.attribute(name.as_ref())).collect::<Option<_>>()?;
        let code =
            |tuple: Vec<String>| attributes.iter().zip(&tuple).map(|(&at, value)| worlds.find(at, value)).collect();
        let tuples = tuples.into_iter().filter_map(code).collect();
        Some(Self { attributes, tuples })
    }

    fn of(&self, person: &[u16]) -> Person {
        self.attributes.iter().map(|&at| person[at]).collect()
    }

    /// Whether a person has one of the tuples, as far as it is known.
    fn fits(&self, person: &[u16]) -> bool {
        let own = self.of(person);
        own.contains(&OPEN) || self.tuples.contains(&own)
    }
}

/// How many steps a count of worlds may take.
const BUDGET: u64 = 60_000;

/// The greatest posterior of each rule against its bound; `None` where there are too many worlds.
fn posteriors(data: &Planted, asked: &Asked, seen: &Seen, knowledge: Knowledge, salt: u64) -> Option<Vec<Ordering>> {
    let links = match knowledge {
        Knowledge::Counts | Knowledge::Weights => {
            let shown = seen.tables.iter().flatten().flat_map(|part| &part.attributes).map(String::as_str);
            data.links(&shown.collect::<Vec<_>>())
        }
        Knowledge::Existence | Knowledge::Functions => Vec::new(),
    };
    let worlds = Worlds::new(seen.tables.iter().chain(&links));
    let mut listed: Vec<Coded> = seen
        .together
        .iter()
        .map(|of| Coded::new(&worlds, &of.attributes, of.tuples.iter().cloned()).unwrap())
        .collect();
    let complete: Vec<usize> = (0..listed.len()).filter(|&at| seen.together[at].is_complete).collect();
    // of each dependency: what it ties, the determined column last
    let mut ties: Vec<Coded> = Vec::new();
    for dependency in &data.dependencies {
        let columns: Vec<usize> = dependency.from.iter().copied().chain([dependency.to]).collect();
        let names: Vec<&str> = columns.iter().map(|&at| data.names[at]).collect();
        let tuples = data.rows.iter().map(|row| columns.iter().map(|&at| row[at].clone()).collect());
        match (knowledge, Coded::new(&worlds, &names, tuples)) {
            // functions of columns that no table shows are left to who knows the counts
            (Knowledge::Existence | Knowledge::Functions, None) => return None,
            (Knowledge::Existence, Some(tie)) if dependency.is_exact => ties.push(tie),
            (Knowledge::Functions, Some(tie)) if dependency.is_exact => listed.push(tie),
            (Knowledge::Weights, Some(tie)) => ties.push(tie),
            _ => {}
        }
    }
    let holds = |tie: &Coded, people: &[Person]| {
        let mut function: BTreeMap<Person, u16> = BTreeMap::new();
        people.iter().all(|person| {
            let mut tuple = tie.of(person);
            let to = tuple.pop().unwrap();
            *function.entry(tuple).or_insert(to) == to
        })
    };
    let likelihood = |tie: &Coded, people: &[Person]| -> u128 {
        let of = |person: &Person| {
            let mix = |mixed: u64, code: u16| Random(mixed ^ u64::from(code)).next();
            1 + u128::from(tie.of(person).into_iter().fold(salt, mix) % 4)
        };
        people.iter().map(of).product()
    };
    let mut posteriors: Vec<Posterior> =
        asked.rules.iter().map(|rule| Posterior::new(&worlds, &rule.known, &[rule.sensitive])).collect();
    let fits = |person: &[u16]| listed.iter().all(|of| of.fits(person));
    let mut see = |people: &[Person]| {
        let is_shown = |of: &Coded| of.tuples.iter().all(|tuple| people.iter().any(|person| of.of(person) == *tuple));
        if !complete.iter().all(|&at| is_shown(&listed[at])) {
            return;
        }
        let weight: u128 = match knowledge {
            Knowledge::Existence if !ties.iter().all(|tie| holds(tie, people)) => return,
            Knowledge::Weights => ties.iter().map(|tie| likelihood(tie, people)).product(),
            _ => 1,
        };
        posteriors.iter_mut().for_each(|posterior| posterior.see(people, weight));
    };
    if !worlds.visit(BUDGET, &fits, &mut see) {
        return None;
    }
    let found = asked.rules.iter().zip(&posteriors);
    Some(found.map(|(rule, posterior)| rule.bound.against(data, &worlds, posterior, rule.sensitive)).collect())
}

/// What came of the cases of one method.
#[derive(Default, Debug)]
struct Tally {
    published: usize,
    refused: usize,
    /// Posteriors of a rule that were counted, and those that reach or exceed the bound.
    counted: usize,
    at_the_bound: usize,
    exceeding: usize,
}

/// What a refusal may be about.
const REFUSALS: [Kind; 6] = [
    Kind::RuleImpossible,
    Kind::RuleIneligible,
    Kind::InfeasibleRoot,
    Kind::MultiSaEmpty,
    Kind::GuaranteeUnsupported,
    Kind::NoNoise,
];

/// Publishes a table with planted dependencies, which are declared or not, and counts worlds.
fn attack(case: u64, is_declared: bool, tallies: &mut BTreeMap<String, Tally>) {
    let random = &mut Random(case);
    let data = planted(random);
    let asked = asked(&data, random);
    let mut document = asked.document(&data);
    if !is_declared {
        document["method"]["functional_dependencies"] = json!([]);
    }
    let names = [&asked.method["type"], &asked.method["algorithm"]];
    let names = names.map(|name| name.as_str().unwrap_or_default()).join(" ");
    let kind = match asked.rules[0].bound {
        Bound::Share(_) => names,
        Bound::Variation(_) => "total variation".to_owned(),
        Bound::Tree(_) => "distance along a tree".to_owned(),
        Bound::Thresholds(..) => "thresholds".to_owned(),
    };
    let tally = tallies.entry(kind).or_default();
    let original = Original::new(table(data.csv().as_bytes()));
    let job = original.job(&document).unwrap_or_else(|faults| panic!("{case}: {document}: {faults:#?}"));
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()));
    let (released, files) = match release(&job, &EarlierDisclosures::default(), &streams) {
        Ok(done) => done,
        Err(EngineError::Refused(problem)) => {
            assert!(problem.errors.iter().all(|fault| REFUSALS.contains(&fault.kind)), "{case}: {problem:#?}");
            tally.refused += 1;
            return;
        }
        Err(error) => panic!("{case}: {error:?}\n{document}\n{}", data.csv()),
    };
    tally.published += 1;
    let manifest = released.manifest;
    let seen = Seen::new(&data, &asked, &manifest, &files);
    for knowledge in [Knowledge::Existence, Knowledge::Functions, Knowledge::Counts, Knowledge::Weights] {
        let Some(posteriors) = posteriors(&data, &asked, &seen, knowledge, case) else { continue };
        for (rule, found) in asked.rules.iter().zip(posteriors) {
            let mut listed = manifest.rules.iter().filter(|listed| listed.sensitive == [rule.sensitive]);
            if listed.any(|listed| listed.bounded == Some(false)) {
                continue;
            }
            tally.counted += 1;
            tally.at_the_bound += usize::from(found.is_eq());
            tally.exceeding += usize::from(found.is_gt());
            assert!(
                !is_declared || found.is_le(),
                "{case}, {knowledge:?}: above {:?} by {document}\n{}",
                rule.bound,
                data.csv()
            );
        }
    }
}

#[test]
fn no_method_exceeds_a_bound_with_dependencies() {
    let mut tallies = BTreeMap::new();
    // about half are refused: with ten seeds at least 5,000 are published
    let cases = if seeds() > 1 { 1_100 * seeds() } else { 400 };
    (0..cases).for_each(|case| attack(case, true, &mut tallies));
    println!("{tallies:#?}");
    assert_eq!(tallies.len(), 14, "every method, and every other bound");
    let published: usize = tallies.values().map(|tally| tally.published).sum();
    assert!(published as u64 * 5 > cases * 2, "{published} of {cases}");
    for (method, tally) in &tallies {
        let Tally { published, refused, counted, at_the_bound, .. } = tally;
        assert!(*published > 1 && *refused > 1 && *counted > 5 && *at_the_bound > 0, "{method}: {tally:?}");
    }
}

/// The same tables by a publisher who does not know of the dependencies: the attackers would find what is wrong.
#[test]
fn attackers_break_releases_of_unknown_dependencies() {
    let mut tallies = BTreeMap::new();
    (0..400).for_each(|case| attack(case, false, &mut tallies));
    println!("{tallies:#?}");
    let broken = |method: &str| tallies.iter().any(|(name, tally)| name.starts_with(method) && tally.exceeding > 0);
    let methods = ["anatomy", "bucketize", "decompose", "generalize", "sequential", "slicing", "versatile"];
    for method in methods.into_iter().chain(["total variation", "distance along a tree", "thresholds"]) {
        assert!(broken(method), "{method}: {tallies:#?}");
    }
}

/// A dependency that an earlier release of the same people recorded is known, though the new release does not declare it.
#[test]
fn recorded_dependency_binds_tables_that_stand_alone() {
    let rows = (0..8).map(|at| format!("x{},a{},s{}\n", at % 3, at % 2, at % 2));
    let original = Original::new(table(("x,a,s\n".to_owned() + &rows.collect::<String>()).as_bytes()));
    let streams = || RandomStreams::Keyed(ReleaseKey::from_bytes([7; 32]));
    let links = json!([{"determinant": ["s"], "dependent": ["a"]}]);
    let method = json!({"type": "versatile", "rules": [], "functional_dependencies": links});
    let first = json!({"attributes": {"x": {"publish": true}}, "unlisted": "drop", "no_rules_reason": "public", "method": method});
    let (first, _) = release(&original.job(&first).unwrap(), &EarlierDisclosures::default(), &streams()).unwrap();
    let mut earlier = EarlierDisclosures::default();
    earlier.disclosures.extend(first.disclosures.into_iter().map(|disclosure| (Uuid::from_u128(1), disclosure)));
    let guarantee = json!({"type": "l_diversity", "l": 2});
    let attributes = json!({"a": {"publish": true}, "s": {"publish": true}});
    for method in [
        json!({"type": "decompose", "quasi_identifiers": ["a"], "sensitive": ["s"], "l": {"s": 2}, "breaches": "report"}),
        json!({"type": "generalize", "quasi_identifiers": ["a"], "sensitive": ["s"], "guarantees": [guarantee]}),
        json!({"type": "anatomy", "quasi_identifiers": ["a"], "sensitive": "s", "guarantee": guarantee}),
    ] {
        let document = json!({"attributes": attributes, "unlisted": "drop", "method": method});
        let job = original.job(&document).unwrap();
        assert!(release(&job, &EarlierDisclosures::default(), &streams()).is_ok(), "{method}");
        assert!(release(&job, &earlier, &streams()).is_err(), "{method}");
    }
}
