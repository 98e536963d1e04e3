//! Random sequences of releases of every kind of cells, by the engine: what the search says of each join is what the verifier, by its own
//! code, finds in the parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use guardian::engine::EngineError;
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::{AttributeType, CellShape, Taxonomy};
use guardian::publication::{EarlierColumn, EarlierRelease, EarlierReleases, RowCorrespondence};
use guardian::random::RandomStreams;
use guardian::spec::read_levels;
use serde_json::{Value, json};

use crate::support::library::{Job, Original, Random, release, seeds, table, verified};

const NAMES: [&str; 4] = ["tree", "word", "number", "other"];

const LEVELS: &str = "value,group,root\na,left,Any\nb,left,Any\nc,right,Any\nd,right,Any\n";

const IDS: [&str; 2] = ["018f0000-0000-7000-8000-000000000001", "018f0000-0000-7000-8000-000000000002"];

/// What of them is released without a fault is at least a fifth.
const SEQUENCES: u64 = 150;

type Rows = Vec<[String; 4]>;

fn people(random: &mut Random) -> Rows {
    let words = ["*", "u", "v w", "x,\"y\"", ""];
    let row = |random: &mut Random| {
        [
            ["a", "b", "c", "d"][random.below(4)].to_owned(),
            words[random.below(words.len())].to_owned(),
            if random.below(8) == 0 { String::new() } else { random.below(6).to_string() },
            ["p", "q"][random.below(2)].to_owned(),
        ]
    };
    let rows = 5 + random.below(8);
    let mut people: Rows = (0..rows).map(|_| row(random)).collect();
    // a value of each, so that columns are of their types
    (people[0][1], people[0][2]) = ("u".into(), "3".into());
    people
}

/// What a release shows of an attribute.
fn shown(random: &mut Random, attribute: usize, values: &[&str]) -> (CellShape, Vec<String>) {
    let value = |text: &&str| if text.is_empty() { Value::Null } else { json_of(attribute, text) };
    match random.below(5) {
        0 => {
            let others: Vec<&str> = (0..2).map(|_| values[random.below(values.len())]).collect();
            let mut set = |own: &&str| {
                let more = if random.below(2) == 0 { &others[..1] } else { &others[..] };
                let mut all: Vec<&str> = more.iter().copied().chain([*own]).collect();
                all.sort_unstable();
                all.dedup();
                Value::from(all.iter().map(value).collect::<Vec<_>>()).to_string()
            };
            (CellShape::Set, values.iter().map(&mut set).collect())
        }
        1 => (CellShape::Suppressed, vec!["*".to_owned(); values.len()]),
        2 if attribute == 0 => {
            let mut node = |leaf: &&str| {
                let above = if ["a", "b"].contains(leaf) { "left" } else { "right" };
                [*leaf, above, "Any"][random.below(3)].to_owned()
            };
            (CellShape::Node, values.iter().map(&mut node).collect())
        }
        2 if attribute == 2 => {
            let cut = random.below(6) as i64;
            let number = |text: &str| text.parse::<i64>().unwrap_or(-1);
            let interval = |own: &&str| {
                let alike: Vec<i64> =
                    values.iter().map(|text| number(text)).filter(|n| (*n < cut) == (number(own) < cut)).collect();
                let (first, last) = (alike.iter().min().unwrap(), alike.iter().max().unwrap());
                match (*first, *last) {
                    (-1, -1) => String::new(),
                    (-1, last) => format!("..{last}"),
                    (first, last) => format!("{first}..{last}"),
                }
            };
            (CellShape::Interval, values.iter().map(interval).collect())
        }
        _ => (CellShape::Exact, values.iter().map(|text| (*text).to_owned()).collect()),
    }
}

fn json_of(attribute: usize, text: &str) -> Value {
    if attribute == 2 { text.parse::<i64>().unwrap().into() } else { text.into() }
}

fn csv_of(names: &[&str], rows: &[Vec<&str>]) -> Vec<u8> {
    let field = |text: &&str| match text.is_empty() {
        true => String::new(),
        false if text.contains([',', '"', ' ']) => format!("\"{}\"", text.replace('"', "\"\"")),
        false => (*text).to_owned(),
    };
    let line = |cells: &[&str]| cells.iter().map(field).collect::<Vec<_>>().join(",") + "\n";
    (line(names) + &rows.iter().map(|row| line(row)).collect::<String>()).into_bytes()
}

fn earlier(random: &mut Random, id: &str, people: &Rows, tree: &Arc<Taxonomy>) -> EarlierRelease {
    // in an order of its own
    let order = random.pick(people.len(), people.len());
    let count = 1 + random.below(3);
    let mut attributes = random.pick(count, NAMES.len());
    attributes.sort_unstable();
    let mut columns = Vec::new();
    for attribute in attributes {
        let values: Vec<&str> = order.iter().map(|row| people[*row][attribute].as_str()).collect();
        let (shape, cells) = shown(random, attribute, &values);
        // a column beside it, so that an empty line is none
        let rows: Vec<Vec<&str>> = cells.iter().map(|cell| vec![cell.as_str(), "."]).collect();
        let read = table(&csv_of(&["cells", "point"], &rows)[..]);
        columns.push(EarlierColumn {
            name: NAMES[attribute].to_owned(),
            published: format!("{}{}", NAMES[attribute], ["", "'"][random.below(2)]),
            shape,
            nodes: shape == CellShape::Node,
            kind: match (attribute, shape) {
                (2, CellShape::Exact | CellShape::Interval | CellShape::Set) => AttributeType::Integer,
                _ => AttributeType::Text,
            },
            cells: read.column(0_usize.into()).clone(),
        });
    }
    EarlierRelease {
        release: id.to_owned(),
        columns,
        rows: people.len(),
        sequence: None,
        alone: false,
        taxonomies: BTreeMap::from([("tree".to_owned(), Arc::clone(tree))]),
        external: false,
        rows_of: RowCorrespondence::Content,
    }
}

/// A specification beside earlier releases.
fn document(random: &mut Random, earlier: &[EarlierRelease]) -> Value {
    let count = 2 + random.below(3);
    let mut publish = random.pick(count, NAMES.len());
    publish.sort_unstable();
    let mut attributes = serde_json::Map::new();
    for &attribute in &publish {
        let mut declared = serde_json::Map::new();
        if attribute == 0 && random.below(2) == 0 {
            declared.insert("taxonomy".into(), json!({"Any": {"left": ["a", "b"], "right": ["c", "d"]}}));
        }
        if random.below(3) == 0 {
            declared.insert("rename".into(), format!("my {}", NAMES[attribute]).into());
        }
        attributes.insert(NAMES[attribute].into(), declared.into());
    }
    let of_new = publish.iter().map(|attribute| format!("new.{}", NAMES[*attribute]));
    let of_earlier = earlier
        .iter()
        .flat_map(|release| release.columns.iter().map(|column| format!("{}.{}", release.release, column.name)));
    let all: Vec<String> = of_new.chain(of_earlier).collect();
    let mut requirements = Vec::new();
    for _ in 0..1 + random.below(2) {
        let y = match random.below(4) {
            0 => all[random.below(all.len())].clone(),
            1 => format!("{}.#key", earlier[random.below(earlier.len())].release),
            _ => "new.#key".to_owned(),
        };
        let mut x: Vec<&String> = all.iter().filter(|name| **name != y && random.below(2) == 0).collect();
        let first = &all[random.below(publish.len())];
        if *first != y && !x.contains(&first) {
            x.push(first);
        }
        let measure = match random.below(2) {
            0 => json!({"type": "xy_anonymity", "k": 2}),
            _ => {
                let h = ["2/3", "9/10"][random.below(2)];
                json!({"type": "xy_linkability", "h": h})
            }
        };
        if !x.is_empty() {
            requirements.push(json!({"x": x, "y": [y], "measure": measure}));
        }
    }
    let subsets = ["default", "all"][random.below(2)];
    json!({"unlisted": "drop", "attributes": attributes, "method": {"type": "sequential",
        "publish": publish.iter().map(|attribute| NAMES[*attribute]).collect::<Vec<_>>(),
        "against": earlier.iter().map(|release| release.release.clone()).collect::<Vec<_>>(),
        "requirements": requirements, "subsets": subsets}})
}

#[test]
fn search_and_join_attack_agree() {
    let tree = Arc::new(read_levels(LEVELS.as_bytes()).unwrap());
    let mut released = BTreeMap::new();
    for seed in 0..SEQUENCES * seeds() {
        let mut random = Random(seed);
        let random = &mut random;
        let people = people(random);
        let rows: Vec<Vec<&str>> = people.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
        let original = Original::new(table(&csv_of(&NAMES, &rows)[..]));
        let count = 1 + random.below(2);
        let earlier: Vec<EarlierRelease> =
            IDS.iter().take(count).map(|id| earlier(random, id, &people, &tree)).collect();
        let shapes: Vec<Vec<CellShape>> =
            earlier.iter().map(|release| release.columns.iter().map(|column| column.shape).collect()).collect();
        let document = document(random, &earlier);
        let job: Job = match original.job(&document) {
            Ok(job) => job,
            // such as an x without an attribute of the new release
            Err(_) => continue,
        };
        let earlier = EarlierDisclosures {
            releases: EarlierReleases { releases: earlier, excluded: None },
            ..EarlierDisclosures::default()
        };
        match release(&job, &earlier, &RandomStreams::Identity) {
            Ok((released_now, files)) => {
                for with_rows in [true, false] {
                    verified(&job, &released_now.manifest, &files, with_rows);
                }
                for shape in shapes.into_iter().flatten() {
                    *released.entry(format!("beside {shape:?}")).or_insert(0_u64) += 1;
                }
                for cells in released_now.manifest.tables[0].parts[0].cells.values() {
                    *released.entry(format!("{cells:?}")).or_default() += 1;
                }
                *released.entry("all".into()).or_default() += 1;
            }
            Err(EngineError::Refused(_)) => {}
            Err(other) => panic!("seed {seed}: {other:?}\n{document:#}"),
        }
    }
    println!("{released:?}");
    assert!(released["all"] > SEQUENCES / 5, "{released:?}");
    for what in [
        "beside Set",
        "beside Suppressed",
        "beside Node",
        "beside Interval",
        "beside Exact",
        "Suppressed",
        "Node",
        "Interval",
    ] {
        assert!(released.get(what).is_some_and(|count| *count > 3), "{what}: {released:?}");
    }
}
