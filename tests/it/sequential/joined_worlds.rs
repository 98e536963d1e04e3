//! Attackers who join two or three releases of a small table, tuple by tuple, and know which values go together.
//!
//! Of the tuples on a join they leave out those that no person with the known values can stand behind. What is left keeps the
//! bound of each requirement.

use std::collections::{BTreeMap, BTreeSet};

use guardian::microdata::CellShape;
use guardian::problem::{Fault, Kind};
use guardian::report::Manifest;
use serde_json::{Value, json};

use crate::methods::repairs::merge;
use crate::support::knowledge::{Knowledge, Values};
use crate::support::library::{Random, seeds};
use crate::support::planted::{Dependency, Planted};
use crate::support::sequence::{Sequence, Shown, ShownColumn, above};

/// A requirement as a manifest lists it. Releases are numbered by their place in the sequence.
struct Requirement {
    /// Releases and names of attributes.
    x: Vec<(usize, String)>,
    y: Vec<(usize, String)>,
    measure: Value,
    /// Joined releases, and the measure that the manifest prints.
    joins: Vec<(Vec<usize>, Value)>,
}

impl Requirement {
    fn listed(manifest: &Manifest, shown: &[Shown]) -> Vec<Self> {
        let details = serde_json::to_value(&manifest.method_details).unwrap();
        let release = |id: &str| match id {
            "new" => shown.len() - 1,
            id => shown.iter().position(|shown| shown.id == id).unwrap(),
        };
        let reference = |text: &Value| {
            let (id, name) = text.as_str().unwrap().split_once('.').unwrap();
            (release(id), name.to_owned())
        };
        let references = |list: &Value| list.as_array().unwrap().iter().map(reference).collect();
        let join = |of: &Value| {
            let releases = of["releases"].as_array().unwrap().iter().map(|id| release(id.as_str().unwrap()));
            (releases.collect(), of["achieved"].clone())
        };
        let requirement = |of: &Value| Self {
            x: references(&of["x"]),
            y: references(&of["y"]),
            measure: of["measure"].clone(),
            joins: of["subsets"].as_array().unwrap().iter().map(join).collect(),
        };
        details["requirements"].as_array().unwrap().iter().map(requirement).collect()
    }
}

/// The least number of values on Y in a group, or the largest share of one, as a fraction.
type Level = (u64, u64);

/// A fraction as it is written, also a decimal one.
fn fraction(text: &str) -> Level {
    match text.split_once('.') {
        Some((whole, decimals)) => ((whole.to_owned() + decimals).parse().unwrap(), 10_u64.pow(decimals.len() as u32)),
        None => {
            let (count, of) = text.split_once('/').unwrap_or((text, "1"));
            (count.parse().unwrap(), of.parse().unwrap())
        }
    }
}

/// Whether a level exceeds a bound, or else reaches it.
fn against(level: Level, measure: &Value) -> std::cmp::Ordering {
    match measure["k"].as_u64() {
        Some(k) => k.cmp(&level.0),
        None => {
            let h = fraction(measure["h"].as_str().unwrap());
            (level.0 * h.1).cmp(&(h.0 * level.1))
        }
    }
}

/// A tuple of a join: a row of each release.
struct Tuple {
    rows: Vec<usize>,
    /// The values that somebody behind these rows may have.
    person: Vec<Values>,
}

/// What came of an attack.
#[derive(Default, Debug)]
struct Attacked {
    /// Groups of people with equal known values on a join, and those of them at a bound.
    counted: u64,
    at_the_bound: u64,
    /// Those that exceed it, in words.
    broken: Vec<String>,
}

/// Releases of one table with what is known of its people.
struct Attacker<'a> {
    knowledge: Knowledge,
    sequence: &'a Sequence,
    /// For each release and each of its columns, the values behind the label of each row.
    behind: Vec<Vec<Vec<Values>>>,
}

impl<'a> Attacker<'a> {
    fn new(sequence: &'a Sequence) -> Self {
        let shown = sequence.shown.iter().flat_map(|shown| &shown.columns).map(|column| column.name.as_str());
        let knowledge = Knowledge::new(&sequence.data, sequence.data.active(&shown.collect::<Vec<_>>()));
        let column = |name: &str| sequence.data.names.iter().position(|other| *other == name).unwrap();
        let behind = sequence.shown.iter().map(|shown| {
            let columns = shown.columns.iter().map(|of| {
                let at = column(&of.name);
                let values = knowledge.values(at).iter();
                let stands = |label: &String| {
                    let covered = values.clone().filter(|value| covers(of.shape, &of.name, label, value));
                    covered.fold(0, |all, value| all | knowledge.one(at, value))
                };
                of.labels.iter().map(stands).collect()
            });
            columns.collect()
        });
        let behind = behind.collect();
        Self { knowledge, sequence, behind }
    }

    fn column(&self, name: &str) -> usize {
        self.sequence.data.names.iter().position(|other| *other == name).unwrap()
    }

    fn label(&self, (release, name): &(usize, String), rows: &[usize], joined: &[usize]) -> String {
        let row = rows[joined.iter().position(|other| other == release).unwrap()];
        match name.as_str() {
            "#key" => row.to_string(),
            name => {
                let shown = &self.sequence.shown[*release].columns;
                shown.iter().find(|column| column.name == name).unwrap().labels[row].clone()
            }
        }
    }

    /// The tuples of rows of which every two match.
    fn join(&self, joined: &[usize]) -> Vec<Tuple> {
        let mut tuples = vec![Tuple { rows: Vec::new(), person: self.knowledge.anything() }];
        for &release in joined {
            let people = 0..self.sequence.data.rows.len();
            let extended = tuples.iter().flat_map(|tuple| {
                people.clone().filter_map(|row| {
                    let mut person = tuple.person.clone();
                    for (column, behind) in self.sequence.shown[release].columns.iter().zip(&self.behind[release]) {
                        person[self.column(&column.name)] &= behind[row];
                    }
                    let rows = tuple.rows.iter().copied().chain([row]).collect();
                    (!person.contains(&0)).then_some(Tuple { rows, person })
                })
            });
            tuples = extended.collect();
        }
        tuples
    }

    /// The worst group of a requirement among some tuples.
    fn level<'t>(
        &self,
        requirement: &Requirement,
        joined: &[usize],
        tuples: impl Iterator<Item = &'t Tuple>,
    ) -> Option<Level> {
        let mut groups: BTreeMap<Vec<String>, BTreeMap<Vec<String>, u64>> = BTreeMap::new();
        let labels = |of: &[(usize, String)], rows: &[usize]| {
            of.iter().map(|of| self.label(of, rows, joined)).collect::<Vec<_>>()
        };
        for Tuple { rows, .. } in tuples {
            let group = groups.entry(labels(&requirement.x, rows)).or_default();
            *group.entry(labels(&requirement.y, rows)).or_default() += 1;
        }
        let is_anonymity = requirement.measure["k"].is_u64();
        let level = |group: &BTreeMap<Vec<String>, u64>| match is_anonymity {
            true => (group.len() as u64, 1),
            false => (*group.values().max().unwrap(), group.values().sum()),
        };
        let levels = groups.values().map(level);
        levels.max_by(|a, b| match is_anonymity {
            true => b.0.cmp(&a.0),
            false => (a.0 * b.1).cmp(&(b.0 * a.1)),
        })
    }

    /// The values of a person on X that the adversary has from elsewhere.
    fn targets(&self, requirement: &Requirement) -> BTreeSet<Vec<(usize, Values)>> {
        let columns: BTreeSet<usize> = requirement.x.iter().map(|(_, name)| self.column(name)).collect();
        let known = |row: &Vec<String>| columns.iter().map(|&at| (at, self.knowledge.one(at, &row[at]))).collect();
        self.sequence.data.rows.iter().map(known).collect()
    }

    /// Compares each requirement with what is left of its joins for who knows the values of X.
    fn attack(&self, manifest: &Manifest) -> Attacked {
        let mut attacked = Attacked::default();
        for requirement in Requirement::listed(manifest, &self.sequence.shown) {
            for (joined, listed) in &requirement.joins {
                let tuples = self.join(joined);
                let level = self.level(&requirement, joined, tuples.iter());
                let level = level.unwrap_or_else(|| panic!("no tuples on {joined:?}: {:?}", self.sequence.shown));
                let share = || (listed["h"]["count"].as_u64().unwrap(), listed["h"]["of"].as_u64().unwrap());
                let printed = listed["k"].as_u64().map_or_else(share, |k| (k, 1));
                assert_eq!(level.0 * printed.1, printed.0 * level.1, "what labels alone come to");
                for known in self.targets(&requirement) {
                    let possible = |tuple: &&Tuple| {
                        let mut person = tuple.person.clone();
                        known.iter().for_each(|(at, value)| person[*at] &= value);
                        self.knowledge.allows(&person)
                    };
                    let Some(level) = self.level(&requirement, joined, tuples.iter().filter(possible)) else {
                        continue;
                    };
                    let found = against(level, &requirement.measure);
                    attacked.counted += 1;
                    attacked.at_the_bound += u64::from(found.is_eq());
                    if found.is_gt() {
                        let Requirement { x, y, measure, .. } = &requirement;
                        attacked.broken.push(format!("{x:?} gives {y:?} on {joined:?}: {level:?} against {measure}"));
                    }
                }
            }
        }
        attacked
    }
}

/// Whether a label may stand for a value.
fn covers(shape: CellShape, name: &str, label: &str, value: &str) -> bool {
    match shape {
        CellShape::Exact => label == value,
        CellShape::Suppressed => true,
        CellShape::Node => above(name, value).iter().any(|node| node == label),
        CellShape::Interval => {
            let (first, last) = label.split_once("..").unwrap_or((label, label));
            first <= value && value <= last
        }
        CellShape::Set => {
            let members: Vec<Value> = serde_json::from_str(label).unwrap();
            members.iter().any(|of| of.as_str().map_or_else(|| of.to_string(), str::to_owned) == value)
        }
    }
}

/// What came of random sequences.
#[derive(Default, Debug)]
struct Tally {
    /// Sequential releases that were attacked, by the number of releases on their join.
    published: [u64; 3],
    refused: BTreeMap<String, u64>,
    /// Groups of people with equal known values on a join, and those of them at a bound.
    counted: u64,
    at_the_bound: u64,
    /// Releases of which some bound is broken.
    broken: u64,
}

/// What a refusal may be about.
const REFUSALS: [Kind; 7] = [
    Kind::BadColumns,
    Kind::CompositionViolated,
    Kind::GuaranteeUnsupported,
    Kind::InfeasibleRoot,
    Kind::PriorReleaseViolates,
    Kind::RuleMalformed,
    Kind::TaxonomyConflict,
];

/// Publishes one to three releases of a table, and attacks those that are checked on a join. Documents declare the
/// dependencies, or none.
fn case(seed: u64, declares: bool, tally: &mut Tally) {
    let random = &mut Random(seed);
    let mut sequence = Sequence::new(random);
    if !declares {
        sequence.declared = json!([]);
    }
    for number in 0..[1, 2, 3, 3][random.below(4)] {
        let document = match (number, random.below(3)) {
            (0, 0) => sequence.exact(random),
            (0 | 1, 1) => {
                sequence.add_labelled(random);
                continue;
            }
            _ => sequence.joined(random),
        };
        let is_joined = document["method"]["type"] == "sequential";
        match sequence.publish(&document, random) {
            Ok(manifest) if is_joined => {
                tally.published[sequence.shown.len() - 1] += 1;
                let attacked = Attacker::new(&sequence).attack(&manifest);
                tally.counted += attacked.counted;
                tally.at_the_bound += attacked.at_the_bound;
                tally.broken += u64::from(!attacked.broken.is_empty());
                let broken = &attacked.broken;
                assert!(!declares || broken.is_empty(), "{seed}: {broken:#?}\n{document}\n{}", sequence.data.csv());
            }
            Ok(_) => {}
            Err(faults) => {
                for fault in faults {
                    assert!(REFUSALS.contains(&fault.kind), "{seed}: {fault:#?}\n{document}");
                    *tally.refused.entry(format!("{:?}", fault.kind)).or_default() += 1;
                }
            }
        }
    }
}

#[test]
fn joins_of_releases_keep_bounds_with_dependencies() {
    let mut tally = Tally::default();
    // at least 5,000 releases where more seeds are asked for
    let cases = if seeds() > 1 { 2_000 * seeds() } else { 500 };
    (0..cases).for_each(|seed| case(seed, true, &mut tally));
    println!("{tally:#?}");
    let [alone, two, three] = tally.published;
    assert!(alone > 50 && two > 100 && three > 15 && tally.at_the_bound > 200, "{tally:#?}");
    assert!(tally.refused["GuaranteeUnsupported"] > 20 && tally.refused["InfeasibleRoot"] > 20, "{tally:#?}");
}

/// The same tables by a publisher who does not know of the dependencies: the attacker would find what is wrong.
#[test]
fn joins_of_unknown_dependencies_are_broken() {
    let mut tally = Tally::default();
    (0..200).for_each(|seed| case(seed, false, &mut tally));
    println!("{tally:#?}");
    assert!(tally.broken > 5, "{tally:#?}");
}

/// A table of three columns, and releases of it.
fn three(names: [&'static str; 3], rows: &[[usize; 3]]) -> Sequence {
    let rows: Vec<Vec<usize>> = rows.iter().map(|row| row.to_vec()).collect();
    Sequence::of(Planted::new(names.to_vec(), &rows, Vec::new()))
}

/// A document of a sequential release with one requirement of at most one half.
fn at_most_half(sequence: &Sequence, publish: &[&str], x: &[&str], y: &str) -> Value {
    let against: Vec<&str> = sequence.shown.iter().map(|shown| shown.id.as_str()).collect();
    let attributes: Value = publish.iter().map(|name| ((*name).to_owned(), json!({"identifier": false}))).collect();
    json!({"unlisted": "drop", "attributes": attributes, "method": {"type": "sequential", "publish": publish,
        "against": against,
        "requirements": [{"x": x, "y": [y], "measure": {"type": "xy_linkability", "h": "1/2"}}]}})
}

/// Exact jobs with values of `s`, and the outcome of a later release that generalizes the job and requires a half of `s` for it.
fn job_after_job(rows: &[[usize; 3]]) -> Result<Manifest, Vec<Fault>> {
    let mut sequence = three(["job", "city", "s"], rows);
    let exact = json!({"unlisted": "drop", "no_rules_reason": "public", "method": {"type": "versatile", "rules": []},
        "attributes": {"job": {"publish": true, "identifier": false}, "s": {"publish": true, "identifier": false}}});
    let random = &mut Random(0);
    sequence.publish(&exact, random).unwrap();
    let counted = format!("{}.s", sequence.shown[0].id);
    let document = at_most_half(&sequence, &["job", "city"], &["new.job"], &counted);
    let manifest = sequence.publish(&document, random)?;
    let attacked = Attacker::new(&sequence).attack(&manifest);
    assert!(attacked.counted > 0 && attacked.broken.is_empty(), "{attacked:?}");
    Ok(manifest)
}

/// Behind `*` the new release hides which job has which `s`, and an earlier one says it.
#[test]
fn jobs_that_an_earlier_release_shows_are_known() {
    let revealing = [[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1]];
    let faults = job_after_job(&revealing).unwrap_err();
    let [fault] = &faults[..] else { panic!("{faults:#?}") };
    assert_eq!(fault.kind, Kind::PriorReleaseViolates);
    assert!(fault.detail.contains("00000.job too"), "{}", fault.detail);
    let even = [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]];
    let manifest = serde_json::to_value(job_after_job(&even).unwrap()).unwrap();
    assert_eq!(
        manifest["method_details"]["requirements"][0]["subsets"][0]["achieved"],
        json!({"h": {"count": 1, "of": 2}})
    );
    let notices = manifest["warnings"].as_array().unwrap();
    assert!(notices.iter().any(|notice| notice["type"] == "tuples-counted"), "{notices:#?}");
}

/// The only row of an earlier release that fits one person fits no other, so that the rows of the others are theirs. The shares of
/// tuples do not say so.
#[test]
fn a_share_of_tuples_is_no_posterior() {
    let mut sequence = three(["name", "job", "s"], &[[0, 0, 0], [1, 1, 1], [2, 2, 2]]);
    let any = r#"["job0","job1","job2"]"#.to_owned();
    let jobs = vec![any.clone(), any, r#"["job2"]"#.to_owned()];
    let values = ["s0", "s1", "s2"].map(str::to_owned).to_vec();
    sequence.add(vec![
        ShownColumn { name: "job".to_owned(), shape: CellShape::Set, labels: jobs },
        ShownColumn { name: "s".to_owned(), shape: CellShape::Exact, labels: values },
    ]);
    let counted = format!("{}.s", sequence.shown[0].id);
    let document = at_most_half(&sequence, &["name", "job"], &["new.name"], &counted);
    let manifest = sequence.publish(&document, &mut Random(0)).unwrap();
    let attacker = Attacker::new(&sequence);
    assert_eq!(attacker.attack(&manifest).broken, Vec::<String>::new());
    let of_last = |tuple: &&Tuple| attacker.label(&(1, "name".to_owned()), &tuple.rows, &[0, 1]) == "name2";
    let pairs = attacker.join(&[0, 1]);
    assert_eq!(pairs.iter().filter(of_last).count(), 3, "one third of the tuples for each value");
    // a world gives each person of the new release another row of the earlier one
    let matches = |new: usize, old: usize| pairs.iter().any(|tuple| tuple.rows == [old, new]);
    let name = |row: usize| attacker.label(&(1, "name".to_owned()), &[0, row], &[0, 1]);
    let last = (0..3).find(|&row| name(row) == "name2").unwrap();
    let worlds = (0..27).map(|at| [at % 3, at / 3 % 3, at / 9]);
    let worlds = worlds.filter(|rows| rows.iter().collect::<BTreeSet<_>>().len() == 3);
    let worlds: Vec<[usize; 3]> = worlds.filter(|rows| (0..3).all(|new| matches(new, rows[new]))).collect();
    assert!(worlds.len() == 2 && worlds.iter().all(|rows| rows[last] == 2), "{worlds:?}: s2 for certain");
}

/// The repairs of a release of `s` with the ward that it determines, after one that shows these columns and hides wards.
fn repairs_after_hidden_wards(shows_s: bool) -> (Sequence, Value, Vec<Value>) {
    let rows: Vec<Vec<usize>> = (0..8).map(|at| vec![at / 4, at % 4 / 2, at % 4]).collect();
    let data = Planted::new(vec!["age", "ward", "s"], &rows, vec![Dependency::new(&[2], 1)]);
    let declared = data.declared();
    let mut sequence = Sequence::of(data);
    let s = sequence.data.rows.iter().map(|row| row[2].clone()).collect();
    let wards = ShownColumn { name: "ward".to_owned(), shape: CellShape::Suppressed, labels: vec!["*".to_owned(); 8] };
    let values = ShownColumn { name: "s".to_owned(), shape: CellShape::Exact, labels: s };
    sequence.add(if shows_s { vec![wards, values] } else { vec![wards] });
    let mut document = at_most_half(&sequence, &["age", "ward", "s"], &["new.age"], "new.s");
    document["method"]["functional_dependencies"] = declared;
    let faults = sequence.publish(&document, &mut Random(0)).unwrap_err();
    let [fault] = &faults[..] else { panic!("{faults:#?}") };
    assert_eq!(fault.kind, Kind::GuaranteeUnsupported, "{faults:#?}");
    let repairs = fault.members["repairs"].as_array().unwrap().clone();
    (sequence, document, repairs)
}

#[test]
fn listed_repair_of_hidden_labels_can_be_published() {
    let (mut sequence, mut document, repairs) = repairs_after_hidden_wards(true);
    let [repair] = &repairs[..] else { panic!("{repairs:#?}") };
    assert_eq!(repair["drop"], json!(["ward"]));
    merge(&mut document, &repair["patch"]);
    let manifest = sequence.publish(&document, &mut Random(0)).unwrap();
    assert_eq!(manifest.tables[0].attributes, ["age", "s"]);
    // a release of wards alone is tied to one of `s` alone
    assert_eq!(repairs_after_hidden_wards(false).2, Vec::<Value>::new());
}
