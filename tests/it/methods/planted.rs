//! An attacker on random tables with planted dependencies: they know every published column that can be tied to a
//! person, and what each dependency lets occur, and count the values of the bucket that fit.

use std::collections::BTreeMap;

use guardian::problem::Kind;
use serde_json::{Value, json};

use crate::support::library::{Original, Random, ReadPart, parts, publish, seeds, table};

fn methods(known: &[&str], l: u64) -> Vec<Value> {
    let guarantee = json!({"type": "l_diversity", "l": l});
    let rule = format!("{} -> s", known.join(", "));
    vec![
        json!({"type": "anatomy", "sensitive": "s", "quasi_identifiers": known, "guarantee": guarantee}),
        json!({"type": "versatile", "rules": [rule], "default_guarantee": guarantee, "algorithm": "uad"}),
        json!({"type": "versatile", "rules": [rule], "default_guarantee": guarantee, "algorithm": "gd"}),
        json!({"type": "versatile", "rules": [rule], "default_guarantee": guarantee, "algorithm": "auto"}),
    ]
}

/// A table of 240 people with planted dependencies, by the values of each column.
struct Planted {
    names: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// Columns that determine another one: who knows the values of the first knows that of the second.
    functions: Vec<(Vec<usize>, usize)>,
}

/// Two free columns `a`, `b`, the protected `s`, and columns that follow: from `s`, from `a`, from both, and a recoding of `s`.
fn planted(random: &mut Random) -> Planted {
    let groups = 2 + random.below(2);
    let values = 6 + 2 * random.below(3);
    let row = |random: &mut Random| {
        let (a, b, s) = (random.below(4), random.below(40), random.below(values));
        let cells = [a, b, s, s % groups, a / 2, (s + a) % 3, (s * 5 + 1) % values];
        cells.iter().zip(["a", "b", "s", "g", "h", "c", "r"]).map(|(value, name)| format!("{name}{value}")).collect()
    };
    let mut table =
        Planted { names: vec!["a", "b", "s"], rows: (0..240).map(|_| row(random)).collect(), functions: Vec::new() };
    let derived: [(&str, Vec<usize>); 4] = [("g", vec![2]), ("h", vec![0]), ("c", vec![2, 0]), ("r", vec![2])];
    for (name, from) in derived {
        match random.below(2) {
            0 => table.rows.iter_mut().for_each(|row| drop(row.remove(table.names.len()))),
            _ => {
                if name == "r" {
                    table.functions.push((vec![table.names.len()], 2));
                }
                table.functions.push((from, table.names.len()));
                table.names.push(name);
            }
        }
    }
    table
}

impl Planted {
    fn csv(&self) -> String {
        let rows = self.rows.iter().map(|row| row.join(",") + "\n");
        self.names.join(",") + "\n" + &rows.collect::<String>()
    }

    fn column(&self, name: &str) -> usize {
        self.names.iter().position(|other| *other == name).unwrap()
    }

    /// Whether some row of the table has these values in these columns: what is known of a dependency.
    fn occurs(&self, cells: &[(usize, &str)]) -> bool {
        self.rows.iter().any(|row| cells.iter().all(|(column, value)| row[*column] == *value))
    }

    /// What an adversary who knows some columns of a person learns of others for certain from the parts.
    fn learn<'a>(&'a self, known: &mut BTreeMap<usize, &'a str>, tables: &'a [Vec<ReadPart>]) {
        loop {
            let before = known.len();
            for part in tables.iter().flatten() {
                let columns: Vec<usize> = part.attributes.iter().map(|name| self.column(name)).collect();
                let fits = |row: &&Vec<String>| {
                    columns.iter().zip(*row).all(|(column, cell)| known.get(column).is_none_or(|value| value == cell))
                };
                // a part whose columns the adversary does not know at all says nothing of a person
                if !columns.iter().any(|column| known.contains_key(column)) {
                    continue;
                }
                let fitting: Vec<&Vec<String>> = part.rows.iter().filter(fits).collect();
                for (at, column) in columns.iter().enumerate().filter(|(_, column)| **column != 2) {
                    if let Some(first) = fitting.first().filter(|first| fitting.iter().all(|row| row[at] == first[at]))
                    {
                        known.entry(*column).or_insert(&first[at]);
                    }
                }
            }
            if known.len() == before {
                return;
            }
        }
    }

    /// The share of the most likely value of `s` for an adversary who knows `known` of row `row`: count and all, in one bucket.
    fn posterior(&self, row: usize, known: &[usize], tables: &[Vec<ReadPart>]) -> Option<(u64, u64)> {
        let mut facts: BTreeMap<usize, &str> = known.iter().map(|&at| (at, self.rows[row][at].as_str())).collect();
        self.learn(&mut facts, tables);
        let table = tables.iter().find(|table| table.iter().any(|part| part.attributes.contains(&"s".to_owned())))?;
        let sensitive = table.iter().find(|part| part.attributes.contains(&"s".to_owned()))?;
        let at = sensitive.attributes.iter().position(|name| name == "s")?;
        let buckets = sensitive.buckets.as_ref()?;
        let rows = table.iter().find(|part| !part.attributes.contains(&"s".to_owned()))?;
        // the buckets in which a row fits what is known; each of its rows is equally likely the person
        let columns: Vec<usize> = rows.attributes.iter().map(|name| self.column(name)).collect();
        let mut weights: BTreeMap<u32, u64> = BTreeMap::new();
        for (bucket, cells) in rows.buckets.as_ref()?.iter().zip(&rows.rows) {
            if columns.iter().zip(cells).all(|(column, cell)| facts.get(column).is_none_or(|value| value == cell)) {
                *weights.entry(*bucket).or_default() += 1;
            }
        }
        let (&bucket, _) = weights.iter().next().filter(|_| weights.len() == 1)?;
        let own: Vec<&Vec<String>> = rows
            .buckets
            .as_ref()?
            .iter()
            .zip(&rows.rows)
            .filter(|(of, _)| **of == bucket)
            .map(|(_, row)| row)
            .collect();
        for (column, cells) in columns.iter().enumerate() {
            if own.iter().all(|row| row[column] == own[0][column]) {
                facts.entry(*cells).or_insert(&own[0][column]);
            }
        }
        let consistent = |value: &str| {
            self.functions.iter().all(|(from, to)| {
                let cells: Vec<(usize, &str)> = from
                    .iter()
                    .chain([to])
                    .filter_map(
                        |column| if *column == 2 { Some((2, value)) } else { Some((*column, *facts.get(column)?)) },
                    )
                    .collect();
                self.occurs(&cells)
            })
        };
        let values: Vec<&str> = buckets
            .iter()
            .zip(&sensitive.rows)
            .filter(|(of, row)| **of == bucket && consistent(&row[at]))
            .map(|(_, row)| row[at].as_str())
            .collect();
        let most = values.iter().map(|value| values.iter().filter(|other| other == &value).count() as u64).max()?;
        Some((most, values.len() as u64))
    }
}

#[test]
fn planted_dependencies_leave_every_posterior_its_bound() {
    let mut random = Random(16);
    let (mut published, mut refused, mut attacked) = (0, 0, 0);
    for case in 0..40 * seeds() {
        let data = planted(&mut random);
        let original = Original::new(table(data.csv().as_bytes()));
        let known: Vec<usize> =
            (0..data.names.len()).filter(|&at| at != 2 && (at < 2 || random.below(3) == 0)).collect();
        let names: Vec<&str> = known.iter().map(|&at| data.names[at]).collect();
        let attributes: Value = data.names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
        for method in methods(&names, 2) {
            let (manifest, files) = match publish(&original, &json!({ "attributes": attributes, "method": method })) {
                Ok(done) => done,
                Err(faults) => {
                    let known_kinds = [Kind::RuleImpossible, Kind::RuleIneligible];
                    assert!(faults.iter().all(|fault| known_kinds.contains(&fault.kind)), "{case}: {faults:#?}");
                    refused += 1;
                    continue;
                }
            };
            published += 1;
            let tables = parts(&manifest, &files);
            for row in 0..40 {
                if let Some((count, of)) = data.posterior(row, &known, &tables) {
                    attacked += 1;
                    assert!(count * 2 <= of, "case {case}, row {row}: {count}/{of} with {method}\n{}", data.csv());
                }
            }
        }
    }
    assert!(published > 20 && refused > 5 && attacked > 200, "{published} published, {refused} refused, {attacked}");
}

/// The diagnosis stands alone with the zip code. Its chapter would tie it to the age in another table, and joins it.
#[test]
fn dependency_that_moves_an_attribute_is_listed() {
    let row = |at: usize| {
        let diagnosis = at % 8;
        format!(
            "{},{},z{},c{},d{diagnosis},i{}\n",
            at * 7 % 30,
            at * 5 / 3 % 2,
            at / 8 % 5,
            diagnosis / 4,
            at * 3 / 8 % 4
        )
    };
    let csv = "age,sex,zip,chapter,dx,inc\n".to_owned() + &(0..160).map(row).collect::<String>();
    let original = Original::new(table(csv.as_bytes()));
    let names = ["age", "sex", "zip", "chapter", "dx", "inc"];
    let attributes: Value =
        names.map(|name| (name.to_owned(), json!({"publish": true, "identifier": false}))).into_iter().collect();
    // with the paper's colors the chapter would stand beside the age
    let method = json!({"type": "versatile", "uad": {"coloring": "paper"},
        "rules": ["age -> dx", "age, sex -> dx", "zip, dx -> inc"],
        "default_guarantee": {"type": "l_diversity", "l": 2}});
    let part_of_chapter = |document: &Value| {
        let (manifest, files) = publish(&original, document).unwrap();
        let mut parts = parts(&manifest, &files).into_iter().flatten().map(|part| part.attributes);
        let part = parts.find(|attributes| attributes.contains(&"chapter".to_owned())).unwrap();
        (part, serde_json::to_value(&manifest).unwrap()["dependencies"]["discovered"].clone())
    };
    let mut document = json!({"attributes": attributes, "method": method});
    let (part, discovered) = part_of_chapter(&document);
    assert_eq!(part, ["zip", "chapter", "dx"]);
    assert_eq!(discovered, json!([{"determinant": ["dx"], "dependent": ["chapter"], "used": ["path"]}]));
    // who does not know it sees no path
    let unknown = json!([{"determinant": ["dx"], "dependent": ["chapter"], "reason": "a secret classification"}]);
    document["method"]["assume_unknown"] = unknown;
    let (part, discovered) = part_of_chapter(&document);
    assert!(part.contains(&"age".to_owned()) && discovered == json!([]), "{part:?}, {discovered}");
}
