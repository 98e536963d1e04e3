//! Who holds the table or reads all nights, and tries to learn of a person more than one night promises.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::folder::{code, read_json, stderr};
use crate::support::harness::{guardian, run};
use crate::support::nights::{Churn, Intersection, Night, Population, Published, adult, csv, document, shown};

const L: usize = 3;

fn terms() -> Value {
    document(L as u64, json!({"min_newcomers": 6, "grace": 1}))
}

/// What an adversary sees of each person who knows under which number the person stands on every night.
fn seen(published: &Published, number_of: impl Fn(usize) -> String, keys: &Night) -> BTreeMap<String, Vec<String>> {
    let shown = shown(&published.manifest, &published.files);
    let keys = keys.keys().filter_map(|key| Some((format!("p{key}"), shown.get(&number_of(*key))?.clone())));
    keys.collect()
}

#[test]
fn who_returns_with_other_cells_has_the_same_values() {
    let mut churn = Churn::new(adult(), 240, 11);
    let (mut population, mut attacker) = (Population::default(), Intersection::default());
    for night in 1..=8_u8 {
        // every second night a third of the persons is away, and who is back has another number and age
        let mut table = churn.table();
        table.retain(|key, _| night % 2 == 1 || key % 3 > 0);
        let renamed = |key: usize| if key.is_multiple_of(3) { format!("n{key}m{night}") } else { format!("n{key}") };
        let mut text = String::from("pid,no,age,occupation\n");
        for (key, person) in &table {
            let age = if key % 3 == 0 { format!("{}", 100 + night) } else { person.age.clone() };
            text.push_str(&format!("p{key},{},{age},{}\n", renamed(*key), person.value));
        }
        let published = population.publish(&text, &terms(), night).unwrap();
        attacker.add(&seen(&published, renamed, &table));
        churn.turn(12);
    }
    assert!(attacker.persons() > 300, "{}", attacker.persons());
    assert_eq!(attacker.above(L), 0);
}

#[test]
fn values_that_are_corrected_to_and_fro_reveal_no_one() {
    let persons = adult();
    let values: Vec<String> = ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
    for changes in ["withhold", "move"] {
        let mut churn = Churn::new(persons.clone(), 120, 3);
        let document = document(L as u64, json!({"min_newcomers": 6, "changes": changes, "merge": "never"}));
        let mut population = Population::default();
        let mut versions: BTreeMap<(String, Vec<String>), usize> = BTreeMap::new();
        let mut last: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for night in 1..=10_u8 {
            let mut table = churn.table();
            for (key, person) in table.iter_mut().filter(|(key, _)| *key % 4 == 0) {
                // the true value on even nights, another one on odd nights
                if night % 2 == 0 {
                    person.value = values[(key / 4 + usize::from(night / 2)) % values.len()].clone();
                }
            }
            let published = population.publish(&csv(&table), &document, night).unwrap();
            let shown = shown(&published.manifest, &published.files);
            for (person, mut values) in shown {
                values.sort();
                let most = values.chunk_by(|a, b| a == b).map(<[String]>::len).max().unwrap();
                assert!(most * L <= values.len(), "{values:?}");
                if let Some(before) = last.insert(person.clone(), values.clone())
                    && before != values
                {
                    // consecutive signatures share no value, and with `withhold` there is one
                    assert_eq!(changes, "move");
                    assert!(values.iter().all(|value| !before.contains(value)), "{before:?} {values:?}");
                }
                *versions.entry((person, values)).or_default() += 1;
            }
            churn.turn(6);
        }
        let moved = versions.len() - last.len();
        assert_eq!(moved > 0, changes == "move", "{changes}: {moved} second signatures");
    }
}

/// A key in another spelling is the same person; two spellings in one table are two rows of one.
#[test]
fn other_spellings_of_a_key_make_no_newcomer() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    let churn = Churn::new(adult(), 240, 7);
    fs::write(path("S.json"), terms().to_string()).unwrap();
    let table = csv(&churn.table());
    let publish = |table: &str, out: &str, more: &[&str]| {
        fs::write(path("T.csv"), table).unwrap();
        let mut command = guardian();
        command.args(["publish", "T.csv", "S.json", "--out", out, "--population", "staff", "--person", "pid"]);
        command.args(["--internal-report", &format!("{out}.json")]);
        run(command.args(more).current_dir(home.path()))
    };
    let first = publish(&table, "n1", &["--begin"]);
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    let spellings: [fn(&str) -> String; 4] = [
        |key| key.to_uppercase(),
        |key| format!("  {key} "),
        |key| format!("\u{feff}{key}\u{200b}"),
        // full width
        |key| key.chars().filter_map(|of| char::from_u32(of as u32 + 0xfee0)).collect(),
    ];
    for (number, spelled) in (2..).zip(spellings) {
        let respelled: Vec<String> = table
            .lines()
            .enumerate()
            .map(|(line, row)| {
                let (key, rest) = row.split_once(',').unwrap();
                if line == 0 { row.to_owned() } else { format!("\"{}\",{rest}", spelled(key)) }
            })
            .collect();
        let out = format!("n{number}");
        let night = publish(&(respelled.join("\n") + "\n"), &out, &[]);
        assert_eq!(code(&night), 0, "{}", stderr(&night));
        let counts = &read_json(&path(&format!("{out}.json")))["night"];
        assert_eq!((&counts["known"], &counts["newcomers"]), (&json!(240), &json!(0)), "{counts}");
    }
    let state = fs::read(path("staff")).unwrap();
    let twice = format!("{table}P7 ,n7again,40,Sales\n");
    let refused = publish(&twice, "refused", &[]);
    assert_eq!(code(&refused), 3, "{}", stderr(&refused));
    assert!(stderr(&refused).contains("second or later rows of a person"), "{}", stderr(&refused));
    assert_eq!((fs::read(path("staff")).unwrap(), path("refused").exists()), (state, false));
}

/// Another l, or another method, would show the same persons in other buckets.
#[test]
fn a_population_goes_on_under_its_own_rule_alone() {
    let mut population = Population::default();
    let table = csv(&Churn::new(adult(), 240, 7).table());
    population.publish(&table, &terms(), 1).unwrap();
    let state = population.state.clone();
    for l in [2, 4] {
        let other = document(l, json!({"min_newcomers": 6, "grace": 1}));
        assert!(population.publish(&table, &other, 2).is_err());
    }
    let mut bucketized = terms();
    bucketized["method"] = json!({"type": "bucketize", "sensitive": "occupation", "thresholds": {"uniform": {"l": 3}},
        "dependencies": {"discover": "none"},
        "assume_unknown": [{"determinant": [], "dependent": [], "reason": "everybody is known by a number"}]});
    assert!(population.publish(&table, &bucketized, 2).is_err());
    assert_eq!(population.state, state);
    population.publish(&table, &terms(), 2).unwrap();
}
