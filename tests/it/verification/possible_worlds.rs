//! Posteriors by enumeration: every world that the published parts of a tiny table allow, one by one.
//!
//! A world gives each person one row in every published table and, in a bucketized one, one row of each of its other parts in the
//! same bucket, no row twice, so that tables which share an attribute agree on it (row-labelled worlds, all equally probable).
//! The adversary's posterior is a share of worlds. Literal and slow on purpose: nothing here is taken from the library.

use std::collections::{BTreeMap, BTreeSet};

use guardian::engine::EngineError;
use guardian::ledger::EarlierDisclosures;
use guardian::problem::Kind;
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::library::{Memory, Original, Random, cells, parts, release, seeds, table};

/// A part of a published table as a reader has it.
struct Part {
    /// The attributes of a row.
    attributes: Vec<String>,
    /// The rows, each with its bucket; 0 where there are none.
    rows: Vec<(Vec<String>, u32)>,
}

/// A published table: its parts, tied by bucket where there are several.
type Published = Vec<Part>;

/// What a person is in a world.
type Person = BTreeMap<String, String>;

struct Worlds<'a, F> {
    /// Every part, and whether it begins a table.
    parts: Vec<(&'a Part, bool)>,
    taken: Vec<Vec<bool>>,
    people: Vec<Person>,
    steps: u64,
    budget: u64,
    visit: F,
}

impl<F: FnMut(&[Person])> Worlds<'_, F> {
    /// Gives the next person rows of the parts from `at` on, those of a table of one bucket; false when there are too many worlds.
    fn place(&mut self, at: usize, person: &Person, bucket: u32) -> bool {
        self.steps += 1;
        if self.steps > self.budget {
            return false;
        }
        let people = self.people.len();
        let all = self.parts[0].0.rows.len();
        if at == self.parts.len() {
            self.people.push(person.clone());
            let within = if people + 1 == all {
                (self.visit)(&self.people);
                true
            } else {
                self.place(0, &Person::new(), 0)
            };
            self.people.pop();
            return within;
        }
        // in the first part people are named by their rows
        let choices = if at == 0 { people..people + 1 } else { 0..all };
        let (part, first) = self.parts[at];
        for row in choices {
            let (values, here) = &part.rows[row];
            if self.taken[at][row] || !first && *here != bucket {
                continue;
            }
            let Some(known) = agreeing(person, part.attributes.iter().zip(values)) else { continue };
            self.taken[at][row] = true;
            let within = self.place(at + 1, &known, *here);
            self.taken[at][row] = false;
            if !within {
                return false;
            }
        }
        true
    }
}

/// The person with these values too, unless one contradicts what is known.
fn agreeing<'a>(person: &Person, values: impl IntoIterator<Item = (&'a String, &'a String)>) -> Option<Person> {
    let mut person = person.clone();
    for (attribute, value) in values {
        if person.insert(attribute.clone(), value.clone()).is_some_and(|known| known != *value) {
            return None;
        }
    }
    Some(person)
}

/// Visits every world; false when there are more than `budget` allows.
fn worlds(tables: &[Published], budget: u64, visit: impl FnMut(&[Person])) -> bool {
    let parts: Vec<(&Part, bool)> =
        tables.iter().flat_map(|table| table.iter().enumerate().map(|(at, part)| (part, at == 0))).collect();
    let taken = parts.iter().map(|(part, _)| vec![false; part.rows.len()]).collect();
    let mut worlds = Worlds { parts, taken, people: Vec::new(), steps: 0, budget, visit };
    worlds.place(0, &Person::new(), 0)
}

/// Of the people with each combination of the `known` attributes, how many have each combination of the sensitive ones, over all
/// worlds.
type Posterior = BTreeMap<Vec<String>, BTreeMap<Vec<String>, u64>>;

fn look(posterior: &mut Posterior, people: &[Person], known: &[String], sensitive: &[String]) {
    let of = |person: &Person, attributes: &[String]| -> Vec<String> {
        attributes.iter().map(|attribute| person[attribute].clone()).collect()
    };
    for person in people {
        *posterior.entry(of(person, known)).or_default().entry(of(person, sensitive)).or_insert(0) += 1;
    }
}

/// The largest posterior, as a fraction.
fn worst(posterior: &Posterior) -> (u64, u64) {
    let shares = posterior.values().flat_map(|values| {
        let total = values.values().sum();
        values.values().map(move |&count| (count, total))
    });
    shares.fold((0, 1), |worst, share| if share.0 * worst.1 > worst.0 * share.1 { share } else { worst })
}

#[derive(Clone)]
struct Rule {
    known: Vec<String>,
    sensitive: Vec<String>,
    l: u64,
}

/// The tables of a release, from its files.
fn published(released: &guardian::engine::VerifiedRelease, files: &Memory) -> Vec<Published> {
    let part = |part: crate::support::library::ReadPart| {
        let buckets = part.buckets.unwrap_or_else(|| vec![0; part.rows.len()]);
        Part { attributes: part.attributes, rows: part.rows.into_iter().zip(buckets).collect() }
    };
    parts(&released.manifest, files).into_iter().map(|parts| parts.into_iter().map(part).collect()).collect()
}

const NAMES: [&str; 5] = ["A", "B", "C", "D", "E"];

/// A specification over some of the attributes, and its rules.
fn specification(random: &mut Random, used: &[usize], columns: usize) -> (Value, Vec<Rule>) {
    let rules: Vec<Rule> = (0..1 + random.below(3))
        .map(|_| {
            let size = 1 + random.below((used.len() - 1).min(3));
            let mut attributes: Vec<String> =
                random.pick(size + 1, used.len()).iter().map(|&at| NAMES[used[at]].to_owned()).collect();
            let sensitive = attributes.pop().unwrap();
            Rule { known: attributes, sensitive: vec![sensitive], l: if random.below(5) == 0 { 3 } else { 2 } }
        })
        .collect();
    let declared = (0..columns).map(|at| {
        let declared = if used.contains(&at) { json!({ "publish": true }) } else { json!({ "drop": true }) };
        (NAMES[at].to_owned(), declared)
    });
    let in_document = |rule: &Rule| {
        json!({
            "quasi_identifiers": rule.known,
            "sensitive": rule.sensitive,
            "guarantee": { "type": "l_diversity", "l": rule.l },
        })
    };
    let rules_in_document: Vec<Value> = rules.iter().map(in_document).collect();
    let document = json!({
        "attributes": declared.collect::<serde_json::Map<_, _>>(),
        "method": { "type": "versatile", "uad": { "saturate": random.below(2) == 0 }, "rules": rules_in_document },
    });
    (document, rules)
}

/// What came of one case.
enum Case {
    /// Nothing was published.
    Refused,
    /// There are too many worlds.
    Skipped,
    /// Number of releases, and whether some posterior reached its bound.
    Checked(usize, bool),
}

/// How a case is published first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// Rules of one attribute each, by UAD.
    Single,
    /// A combination.
    Joint,
    /// All sensitive attributes in one part.
    Multi,
    /// Two attributes that predict each other, behind the same buckets.
    Tied,
}

/// A specification that asks for tables of such a shape, and what must hold of them: of `multi_sa` also for an adversary who knows
/// everything else.
fn shaped(shape: Shape, random: &mut Random, used: &[usize], columns: usize) -> (Value, Vec<Rule>) {
    if shape == Shape::Single || used.len() < 3 {
        return specification(random, used, columns);
    }
    let mut names: Vec<String> =
        random.pick(used.len(), used.len()).into_iter().map(|at| NAMES[used[at]].to_owned()).collect();
    let (s, t) = (names.remove(0), names.remove(0));
    let l = 2;
    let known = names[..1 + random.below(names.len())].to_vec();
    let rule = |known: &[String], sensitive: &[&String]| Rule {
        known: known.to_vec(),
        sensitive: sensitive.iter().map(|&name| name.clone()).collect(),
        l,
    };
    let each = [rule(&known, &[&s]), rule(&known, &[&t])];
    let mut method = json!({ "type": "versatile", "default_guarantee": { "type": "l_diversity", "l": l } });
    let rules = match shape {
        Shape::Joint => {
            method["rules"] = json!([format!("{} -> ({s} & {t})", known.join(", "))]);
            vec![rule(&known, &[&s, &t])]
        }
        _ => {
            method["rules"] = json!(each.each_ref().map(|r| format!("{} -> {}", r.known.join(", "), r.sensitive[0])));
            each.to_vec()
        }
    };
    let rules = match shape {
        Shape::Multi => {
            method["algorithm"] = "multi_sa".into();
            let earlier = |other: &String| names.iter().chain([other]).cloned().collect::<Vec<String>>();
            vec![rule(&earlier(&t), &[&s]), rule(&earlier(&s), &[&t])]
        }
        Shape::Tied => {
            method["algorithm"] = "gd".into();
            method["functional_dependencies"] = json!([{ "determinant": [s], "dependent": [t] }]);
            rules
        }
        _ => rules,
    };
    let declared = (0..columns).map(|at| {
        let declared = if used.contains(&at) { json!({ "publish": true }) } else { json!({ "drop": true }) };
        (NAMES[at].to_owned(), declared)
    });
    (json!({ "attributes": declared.collect::<serde_json::Map<_, _>>(), "method": method }), rules)
}

/// Whether the first table has what the shape is about.
fn has(shape: Shape, released: &guardian::engine::VerifiedRelease) -> bool {
    let table = serde_json::to_value(&released.manifest.tables).unwrap();
    let tables = table.as_array().unwrap();
    tables.iter().any(|table| {
        let (guards, parts) = (table["guards"].as_array().unwrap(), table["parts"].as_array().unwrap());
        match shape {
            Shape::Single => true,
            Shape::Joint => guards.iter().any(|guard| guard["joint"] == true),
            Shape::Multi => guards.len() == 2 && parts.len() == 2,
            Shape::Tied => guards.len() == 2 && parts.len() == 3,
        }
    })
}

/// One table, one release or two of them, every rule of both.
fn case(shape: Shape, random: &mut Random) -> Case {
    let single = shape == Shape::Single;
    let (columns, rows) = (3 + random.below(3), if single { 2 + random.below(4) } else { 4 + random.below(3) });
    // what only a combination protects has few values
    let domain: Vec<usize> =
        (0..columns).map(|_| 2 + random.below(if shape == Shape::Joint { 2 } else { rows })).collect();
    let mut csv = format!("{}\n", NAMES[..columns].join(","));
    for _ in 0..rows {
        let cells: Vec<String> = domain.iter().map(|&size| format!("v{}", random.below(size))).collect();
        csv += &format!("{}\n", cells.join(","));
    }
    let original = Original::new(table(csv.as_bytes()));
    let (mut earlier, mut tables, mut rules, mut releases) = (EarlierDisclosures::default(), Vec::new(), Vec::new(), 0);
    let mut shown = false;
    for number in 0..2 {
        let count = if number == 0 && random.below(2) == 0 { columns } else { 2 + random.below(columns - 1) };
        let mut used = random.pick(count, columns);
        used.sort_unstable();
        let first = if number == 0 { shape } else { Shape::Single };
        let (document, submitted) = shaped(first, random, &used, columns);
        let Ok(job) = original.job(&document) else { continue };
        match release(&job, &earlier, &RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()))) {
            Ok((released, files)) => {
                let id = Uuid::from_u128(number + 1);
                shown |= (number == 0 || single) && has(first, &released);
                tables.extend(published(&released, &files));
                rules.extend(submitted);
                earlier.disclosures.extend(released.disclosures.into_iter().map(|kept| (id, kept)));
                earlier.rules.extend(released.rules.into_iter().map(|rule| (id, rule)));
                releases += 1;
            }
            Err(EngineError::Refused(problem)) => {
                assert!([Kind::InvalidSpecification, Kind::CompositionViolated].contains(&problem.kind), "{problem:?}");
            }
            Err(other) => panic!("{csv}\n{document}\n{other:?}"),
        }
    }
    // a table that lacks rows speaks of fewer people than one of a later release
    let lacks = |table: &Published| table[0].rows.len() < rows;
    if !shown || tables.iter().any(lacks) && tables.len() > 1 {
        return Case::Refused;
    }
    let mut posteriors = vec![Posterior::new(); rules.len()];
    let within = worlds(&tables, if single { 100_000 } else { 400_000 }, |people| {
        for (rule, posterior) in rules.iter().zip(&mut posteriors) {
            look(posterior, people, &rule.known, &rule.sensitive);
        }
    });
    if !within {
        return Case::Skipped;
    }
    let mut reached = false;
    for (rule, posterior) in rules.iter().zip(&posteriors) {
        assert!(!posterior.is_empty(), "the original is one of the worlds");
        for (known, values) in posterior {
            let total: u64 = values.values().sum();
            for (value, count) in values {
                let Rule { known: attributes, sensitive, l } = rule;
                assert!(
                    count * l <= total,
                    "{csv}\n{attributes:?} = {known:?} gives {sensitive:?} = {value:?} in {count} of {total}, l = {l}"
                );
                reached |= count * l == total;
            }
        }
    }
    Case::Checked(releases, reached)
}

#[test]
fn no_posterior_exceeds_its_bound() {
    let (mut refused, mut skipped, mut one, mut two, mut reached) = (0, 0, 0, 0, 0);
    for seed in 0..2000 * seeds() {
        match case(Shape::Single, &mut Random(seed)) {
            Case::Refused => refused += 1,
            Case::Skipped => skipped += 1,
            Case::Checked(releases, bound) => {
                one += u64::from(releases == 1);
                two += u64::from(releases == 2);
                reached += u64::from(bound);
            }
        }
    }
    println!(
        "{one} single releases, {two} pairs, {reached} at a bound, {refused} refused, {skipped} with too many worlds"
    );
    assert!(one >= 300 && two >= 50, "enough cases were checked: {one} and {two}");
    assert!(reached >= 50, "the bound is tight, so that a weaker method would be seen: {reached}");
}

/// A combination, all sensitive attributes in one part, and attributes behind the same buckets: by themselves, and beside a second
/// release.
#[test]
fn posteriors_of_several_attributes_are_bounded() {
    for (shape, seeded, enough) in [(Shape::Joint, 3_000, 60), (Shape::Multi, 3_000, 60), (Shape::Tied, 600, 60)] {
        let (mut checked, mut pairs, mut reached) = (0, 0, 0);
        for seed in 0..seeded * seeds() {
            if let Case::Checked(releases, bound) = case(shape, &mut Random(seed)) {
                checked += 1;
                pairs += u64::from(releases == 2);
                reached += u64::from(bound);
            }
        }
        println!("{shape:?}: {checked} checked, {pairs} of them pairs of releases, {reached} at a bound");
        assert!(checked >= enough && reached >= enough / 2, "{shape:?}: {checked} checked, {reached} at a bound");
    }
}

/// An adversary who knows how often each pair of the two values occurs rules out most worlds. Behind the same buckets that reveals nothing
/// more of anybody; in two tables it does.
#[test]
fn correlated_attributes_need_the_same_buckets() {
    let names = ["q".to_owned(), "s".to_owned(), "t".to_owned()];
    let (mut checked, mut distinguished) = (0, 0);
    for seed in 0..80 * seeds() {
        let random = &mut Random(seed);
        let rows: Vec<[usize; 3]> = (0..6)
            .map(|row| {
                let s = random.below(4);
                [row, s, if random.below(4) == 0 { random.below(4) } else { s }]
            })
            .collect();
        let line = |[q, s, t]: &[usize; 3]| format!("q{q},s{s},t{t}\n");
        let csv = "q,s,t\n".to_owned() + &rows.iter().map(line).collect::<String>();
        let original = Original::new(table(csv.as_bytes()));
        let pairs = |people: &[Person]| -> BTreeMap<(String, String), usize> {
            people.iter().fold(BTreeMap::new(), |mut pairs, person| {
                *pairs.entry((person["s"].clone(), person["t"].clone())).or_default() += 1;
                pairs
            })
        };
        let mut known: BTreeMap<(String, String), usize> = BTreeMap::new();
        rows.iter().for_each(|[_, s, t]| *known.entry((format!("s{s}"), format!("t{t}"))).or_default() += 1);
        for together in [true, false] {
            // so few rows show no association by themselves
            let dependencies = if together { json!([{ "determinant": ["s"], "dependent": ["t"] }]) } else { json!([]) };
            let document = json!({"attributes": {"q": {"publish": true, "identifier": false}},
                "method": {"type": "versatile", "algorithm": "gd", "rules": ["q -> s", "q -> t"],
                    "functional_dependencies": dependencies, "default_guarantee": {"type": "l_diversity", "l": 2}}});
            let job = original.job(&document);
            let Ok(job) = job else { continue };
            let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()));
            let Ok((released, files)) = release(&job, &EarlierDisclosures::default(), &streams) else { continue };
            let tables = published(&released, &files);
            assert_eq!(tables.len(), if together { 1 } else { 2 }, "{csv}");
            let mut posteriors = [Posterior::new(), Posterior::new()];
            let within = worlds(&tables, 400_000, |people| {
                if pairs(people) == known {
                    look(&mut posteriors[0], people, &names[..1], &names[1..2]);
                    look(&mut posteriors[1], people, &names[..1], &names[2..]);
                }
            });
            if !within {
                continue;
            }
            for posterior in &posteriors {
                let (count, of) = worst(posterior);
                assert!(!together || count * 2 <= of, "{csv}\n{count} of {of}");
                distinguished += u64::from(!together && count * 2 > of);
            }
            checked += u64::from(together);
        }
    }
    assert!(checked >= 20 && distinguished >= 10, "{checked} checked, {distinguished} distinguished in two tables");
}

/// The tables of section 1 of versatile publishing: each of three tables is 2-diverse by itself, and together they give four
/// people away.
#[test]
fn three_tables_that_are_safe_alone_give_four_people_away() {
    let (header, original) = cells(include_bytes!("../../../examples/data/hospital.csv"));
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let bucketized = |known: [&str; 2], sensitive: &str, buckets: [[usize; 2]; 3]| -> Published {
        let part = |names: &[&str]| {
            let row = |row: usize| names.iter().map(|name| original[row - 1][column(name)].clone()).collect();
            let of_bucket = |(label, rows): (u32, [usize; 2])| rows.map(|at| (row(at), label));
            Part {
                attributes: names.iter().map(|&name| name.to_owned()).collect(),
                rows: (1..).zip(buckets).flat_map(of_bucket).collect(),
            }
        };
        vec![part(&known), part(&[sensitive])]
    };
    let same = [[1, 6], [4, 5], [2, 3]];
    let tables = [
        bucketized(["age", "icd9"], "race", same),
        bucketized(["gender", "icd9"], "zipcode", same),
        bucketized(["hospital", "race"], "zipcode", [[1, 3], [2, 4], [5, 6]]),
    ];
    let known = ["hospital".to_owned(), "race".to_owned()];
    let (mut posterior, mut different) = (Posterior::new(), BTreeSet::new());
    let within = worlds(&tables, 200_000_000, |people| {
        look(&mut posterior, people, &known, &["zipcode".to_owned()]);
        let mut people = people.to_vec();
        people.sort();
        different.insert(people);
    });
    assert!(within);
    assert_eq!(different.len(), 64, "consistent microdata tables");
    let mut certain = Vec::new();
    for (known, values) in &posterior {
        if let [(zipcode, _)] = values.iter().collect::<Vec<_>>()[..] {
            certain.push((known.join(" "), zipcode[0].as_str()));
        }
    }
    let four =
        [("111111 asian", "71000"), ("222222 black", "73000"), ("333333 black", "71000"), ("333333 white", "72000")];
    assert_eq!(certain, four.map(|(known, zipcode)| (known.to_owned(), zipcode)));
}
