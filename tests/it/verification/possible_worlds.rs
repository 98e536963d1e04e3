//! Posteriors by enumeration: every world that the published parts of a tiny table allow, one by one.
//!
//! What a world is, is said where they are counted, in `support/worlds`.

use std::collections::BTreeSet;

use guardian::engine::EngineError;
use guardian::ledger::EarlierDisclosures;
use guardian::problem::Kind;
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::bounds::Bound;
use crate::support::library::{Original, Random, cells, release, seeds, table};
use crate::support::planted::{Dependency, Planted};
use crate::support::worlds::{Part, Person, Posterior, Published, Worlds, published};

#[derive(Clone)]
struct Rule {
    known: Vec<&'static str>,
    sensitive: Vec<&'static str>,
    bound: Bound,
}

const NAMES: [&str; 5] = ["A", "B", "C", "D", "E"];

/// What is to be published: columns of a table, by rules.
struct Asked<'a> {
    data: &'a Planted,
    shape: Shape,
    used: Vec<usize>,
}

impl Asked<'_> {
    fn attributes(&self) -> Value {
        let declared = self.data.names.iter().enumerate().map(|(at, name)| {
            let mut declared =
                if self.used.contains(&at) { json!({ "publish": true }) } else { json!({ "drop": true }) };
            if self.shape == Shape::Close && self.used.contains(&at) {
                let value = |value: usize| format!("{name}{value}");
                declared["taxonomy"] = json!({"any": {"low": [value(0), value(1)], "high": [value(2), value(3)]}});
            }
            ((*name).to_owned(), declared)
        });
        declared.collect()
    }

    /// A specification over the columns, and its rules.
    fn specification(&self, random: &mut Random) -> (Value, Vec<Rule>) {
        let names: Vec<&'static str> = self.used.iter().map(|&at| self.data.names[at]).collect();
        let rules: Vec<Rule> = (0..1 + random.below(3))
            .map(|_| {
                let size = 1 + random.below((names.len() - 1).min(3));
                let mut known: Vec<&'static str> =
                    random.pick(size + 1, names.len()).iter().map(|&at| names[at]).collect();
                let sensitive = vec![known.pop().unwrap()];
                let bound = match (self.shape, random.below(5) as u128) {
                    (Shape::Close, at) => Bound::Tree((1, 2 + at)),
                    (Shape::Even, at) => Bound::Variation((1 + at % 2, 2 + at)),
                    (Shape::Limited, at) => Bound::Thresholds((1 + at % 2, 4), (1 + at % 3, 2 + at % 3)),
                    (_, 0) => Bound::Share(3),
                    _ => Bound::Share(2),
                };
                Rule { known, sensitive, bound }
            })
            .collect();
        let in_document = |rule: &Rule| {
            json!({
                "quasi_identifiers": rule.known,
                "sensitive": rule.sensitive,
                "guarantee": rule.bound.guarantee(rule.sensitive[0]),
            })
        };
        let rules_in_document: Vec<Value> = rules.iter().map(in_document).collect();
        let method = json!({"type": "versatile", "uad": { "saturate": random.below(2) == 0 }, "rules": rules_in_document,
            "functional_dependencies": self.data.declared()});
        (json!({"attributes": self.attributes(), "method": method}), rules)
    }

    /// A specification that asks for tables of the shape, and what must hold of them: of `multi_sa` also for an adversary who
    /// knows everything else.
    fn shaped(&self, random: &mut Random) -> (Value, Vec<Rule>) {
        if !self.shape.is_of_two() || self.used.len() < 3 {
            return self.specification(random);
        }
        let mut names: Vec<&'static str> = random
            .pick(self.used.len(), self.used.len())
            .into_iter()
            .map(|at| self.data.names[self.used[at]])
            .collect();
        let (s, t) = (names.remove(0), names.remove(0));
        let known = names[..1 + random.below(names.len())].to_vec();
        let bound = Bound::Share(2);
        let rule = |known: &[&'static str], sensitive: &[&'static str]| Rule {
            known: known.to_vec(),
            sensitive: sensitive.to_vec(),
            bound: bound.clone(),
        };
        let each = [rule(&known, &[s]), rule(&known, &[t])];
        let mut method = json!({"type": "versatile", "default_guarantee": bound.guarantee(s)});
        method["rules"] = json!(each.each_ref().map(|r| format!("{} -> {}", r.known.join(", "), r.sensitive[0])));
        let rules = match self.shape {
            Shape::Joint => {
                method["rules"] = json!([format!("{} -> ({s} & {t})", known.join(", "))]);
                vec![rule(&known, &[s, t])]
            }
            Shape::Multi => {
                method["algorithm"] = "multi_sa".into();
                let with_others = |other: &'static str| names.iter().copied().chain([other]).collect::<Vec<_>>();
                vec![rule(&with_others(t), &[s]), rule(&with_others(s), &[t])]
            }
            _ => {
                method["algorithm"] = "gd".into();
                method["functional_dependencies"] = json!([{ "determinant": [s], "dependent": [t] }]);
                each.to_vec()
            }
        };
        (json!({ "attributes": self.attributes(), "method": method }), rules)
    }
}

/// What came of one case.
enum Case {
    /// Nothing was published.
    Refused,
    /// There are too many worlds.
    Skipped,
    /// Number of releases, and whether some posterior reached its bound.
    Checked { releases: usize, reached: bool },
}

/// How a case is published first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// Rules of one attribute each, by UAD.
    Single,
    /// The same, of columns that determine each other; the adversary knows how often which values go together.
    Linked,
    /// The same, with distances along a taxonomy in place of shares.
    Close,
    /// The same, with the total variation.
    Even,
    /// The same, with a threshold for one value.
    Limited,
    /// A combination.
    Joint,
    /// All sensitive attributes in one part.
    Multi,
    /// Two attributes that predict each other, behind the same buckets.
    Tied,
}

impl Shape {
    /// Whether the first release is about two sensitive attributes together.
    const fn is_of_two(self) -> bool {
        matches!(self, Self::Joint | Self::Multi | Self::Tied)
    }

    /// A table of 3 to 8 people, of few values where only a combination protects them.
    fn table(self, random: &mut Random) -> Planted {
        let (columns, people) =
            (3 + random.below(3), if self.is_of_two() { 4 + random.below(3) } else { 3 + random.below(6) });
        let size = |random: &mut Random| match self {
            Self::Joint => 2 + random.below(2),
            Self::Close => 4,
            Self::Even => 2 + random.below(2),
            _ => 2 + random.below(people.min(6)),
        };
        let sizes: Vec<usize> = (0..columns).map(|_| size(random)).collect();
        let mut rows: Vec<Vec<usize>> =
            (0..people).map(|_| sizes.iter().map(|&size| random.below(size)).collect()).collect();
        let mut dependencies = Vec::new();
        for to in 1..if self == Self::Linked { columns } else { 0 } {
            let (from, fold) = (random.below(to), 1 + random.below(2));
            if random.below(2) == 0 {
                rows.iter_mut().for_each(|row| row[to] = row[from] / fold);
                dependencies.push(Dependency::new(&[from], to));
            }
        }
        Planted::new(NAMES[..columns].to_vec(), &rows, dependencies)
    }
}

/// Whether the first table has what the shape is about.
fn has(shape: Shape, released: &guardian::engine::VerifiedRelease) -> bool {
    let table = serde_json::to_value(&released.manifest.tables).unwrap();
    let tables = table.as_array().unwrap();
    tables.iter().any(|table| {
        let (guards, parts) = (table["guards"].as_array().unwrap(), table["parts"].as_array().unwrap());
        match shape {
            Shape::Single | Shape::Linked | Shape::Close | Shape::Even | Shape::Limited => true,
            Shape::Joint => guards.iter().any(|guard| guard["joint"] == true),
            Shape::Multi => guards.len() == 2 && parts.len() == 2,
            Shape::Tied => guards.len() == 2 && parts.len() == 3,
        }
    })
}

/// One table, up to three releases of it, every rule of all.
fn case(shape: Shape, random: &mut Random) -> Case {
    let data = shape.table(random);
    let (csv, columns) = (data.csv(), data.names.len());
    let original = Original::new(table(csv.as_bytes()));
    let (mut earlier, mut tables, mut rules, mut releases) = (EarlierDisclosures::default(), Vec::new(), Vec::new(), 0);
    let mut shown = false;
    for number in 0..if shape.is_of_two() { 2 } else { 3 } {
        // small releases leave room for others of the same people
        let count = if number == 0 && random.below(2) == 0 { columns } else { 2 + random.below(columns - 1) / 2 };
        let mut used = random.pick(count, columns);
        used.sort_unstable();
        let shape = if number > 0 && shape.is_of_two() { Shape::Single } else { shape };
        let (document, submitted) = Asked { data: &data, shape, used }.shaped(random);
        let Ok(job) = original.job(&document) else { continue };
        match release(&job, &earlier, &RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()))) {
            Ok((released, files)) => {
                let id = Uuid::from_u128(number + 1);
                shown |= has(shape, &released) && (number == 0 || !shape.is_of_two());
                tables.extend(published(&released.manifest, &files));
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
    let lacks = |table: &Published| table[0].rows.len() < data.rows.len();
    if !shown || tables.iter().any(lacks) && tables.len() > 1 {
        return Case::Refused;
    }
    match reached(&data, &tables, &rules) {
        Some(reached) => Case::Checked { releases, reached },
        None => Case::Skipped,
    }
}

/// Whether some posterior of the rules reaches its bound; none exceeds it. `None` where there are too many worlds.
fn reached(data: &Planted, tables: &[Published], rules: &[Rule]) -> Option<bool> {
    let shown: Vec<&str> = tables.iter().flatten().flat_map(|part| &part.attributes).map(String::as_str).collect();
    let links = data.links(&shown);
    let worlds = Worlds::new(tables.iter().chain(&links));
    let mut posteriors: Vec<Posterior> =
        rules.iter().map(|rule| Posterior::new(&worlds, &rule.known, &rule.sensitive)).collect();
    let mut see = |people: &[Person]| posteriors.iter_mut().for_each(|posterior| posterior.see(people, 1));
    if !worlds.visit(if data.rows.len() > 6 { 20_000 } else { 60_000 }, &|_| true, &mut see) {
        return None;
    }
    let mut reached = false;
    for (rule, posterior) in rules.iter().zip(&posteriors) {
        assert!(posterior.shares().next().is_some(), "the original is one of the worlds");
        let found = match &rule.bound {
            // a combination is one value
            Bound::Share(l) => posterior.against(*l),
            bound => bound.against(data, &worlds, posterior, rule.sensitive[0]),
        };
        assert!(found.is_le(), "{}\n{:?} gives {:?} beyond {:?}", data.csv(), rule.known, rule.sensitive, rule.bound);
        reached |= found.is_eq();
    }
    Some(reached)
}

#[test]
fn no_posterior_exceeds_its_bound() {
    for (shape, seeded, enough) in [
        (Shape::Single, 180, [36, 7, 1]),
        (Shape::Linked, 180, [25, 3, 1]),
        (Shape::Close, 84, [3, 3, 1]),
        (Shape::Even, 120, [3, 1, 0]),
        (Shape::Limited, 200, [5, 1, 0]),
    ] {
        // cases by number of releases
        let (mut checked, mut refused, mut skipped, mut at_the_bound) = ([0; 3], 0, 0, 0);
        for seed in 0..seeded * seeds() {
            match case(shape, &mut Random(seed)) {
                Case::Refused => refused += 1,
                Case::Skipped => skipped += 1,
                Case::Checked { releases, reached } => {
                    checked[releases - 1] += 1;
                    at_the_bound += u64::from(reached);
                }
            }
        }
        println!(
            "{shape:?}: {checked:?} checked, {at_the_bound} at a bound, {refused} refused, {skipped} too many worlds"
        );
        assert!(
            checked.iter().zip(enough).all(|(cases, enough)| *cases >= enough),
            "{shape:?}: {checked:?} by number of releases"
        );
        // a weaker method would be seen
        let expected = if matches!(shape, Shape::Single | Shape::Linked) { 12 } else { 1 };
        assert!(at_the_bound >= expected, "{shape:?}: {at_the_bound} at the bound");
    }
}

/// A combination, all sensitive attributes in one part, and attributes behind the same buckets: by themselves, and beside a second
/// release.
#[test]
fn posteriors_of_several_attributes_are_bounded() {
    for (shape, seeded, enough) in [(Shape::Joint, 260, 15), (Shape::Multi, 260, 15), (Shape::Tied, 160, 15)] {
        let (mut checked, mut pairs, mut at_the_bound) = (0, 0, 0);
        for seed in 0..seeded * seeds() {
            if let Case::Checked { releases, reached } = case(shape, &mut Random(seed)) {
                checked += 1;
                pairs += u64::from(releases == 2);
                at_the_bound += u64::from(reached);
            }
        }
        println!("{shape:?}: {checked} checked, {pairs} of them pairs of releases, {at_the_bound} at a bound");
        assert!(
            checked >= enough && at_the_bound >= enough / 2,
            "{shape:?}: {checked} checked, {at_the_bound} at a bound"
        );
    }
}

/// An adversary who knows how often each pair of the two values occurs rules out most worlds. Behind the same buckets that reveals nothing
/// more of anybody; in two tables it does.
#[test]
fn correlated_attributes_need_the_same_buckets() {
    let names = ["q", "s", "t"];
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
        let columns = |of: [usize; 2]| Part {
            attributes: of.map(|at| names[at].to_owned()).to_vec(),
            rows: rows.iter().map(|row| (of.map(|at| format!("{}{}", names[at], row[at])).to_vec(), 0)).collect(),
        };
        let known = vec![columns([1, 2])];
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
            let tables = published(&released.manifest, &files);
            assert_eq!(tables.len(), if together { 1 } else { 2 }, "{csv}");
            let worlds = Worlds::new(tables.iter().chain([&known]));
            let mut posteriors = [1, 2].map(|of| Posterior::new(&worlds, &names[..1], &names[of..=of]));
            let mut see = |people: &[Person]| posteriors.iter_mut().for_each(|posterior| posterior.see(people, 1));
            if !worlds.visit(400_000, &|_| true, &mut see) {
                continue;
            }
            for posterior in &posteriors {
                let found = posterior.against(2);
                assert!(!together || found.is_le(), "{csv}");
                distinguished += u64::from(!together && found.is_gt());
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
    let known = ["hospital", "race"];
    let worlds = Worlds::new(&tables);
    let (mut posterior, mut different) = (Posterior::new(&worlds, &known, &["zipcode"]), BTreeSet::new());
    let mut see = |people: &[Person]| {
        posterior.see(people, 1);
        let mut people = people.to_vec();
        people.sort();
        different.insert(people);
    };
    assert!(worlds.visit(200_000_000, &|_| true, &mut see));
    assert_eq!(different.len(), 64, "consistent microdata tables");
    let text = |name: &str, code: u16| worlds.value(worlds.attribute(name).unwrap(), code).to_owned();
    let mut certain = Vec::new();
    for (values, shares) in posterior.shares() {
        if let [zipcode] = shares.keys().collect::<Vec<_>>()[..] {
            let values: Vec<String> = known.iter().zip(values).map(|(name, code)| text(name, *code)).collect();
            certain.push((values.join(" "), text("zipcode", zipcode[0])));
        }
    }
    certain.sort();
    let four =
        [("111111 asian", "71000"), ("222222 black", "73000"), ("333333 black", "71000"), ("333333 white", "72000")];
    assert_eq!(certain, four.map(|(known, zipcode)| (known.to_owned(), zipcode.to_owned())));
}
