//! Random histories with honest keys and true statements.

use serde_json::{Value, json};

use super::ledger::run;

/// Histories and pairs of tables of one run.
fn cases() -> u64 {
    40 * std::env::var("GUARDIAN_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1)
}

/// Numbers that look drawn.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

/// Populations `p` and `q` share a key system, `r` has one of its own, `t` none. Each has people of its own range.
fn definitions(draws: &mut Draws) -> Vec<Value> {
    let mut steps = Vec::new();
    for (name, systems) in [("p", &["k"][..]), ("q", &["k"]), ("r", &["k2"]), ("t", &[])] {
        let systems: Vec<Value> = systems.iter().map(|name| json!({"name": name, "columns": ["id"]})).collect();
        steps.push(json!({"do": "population", "by": "officer", "name": name, "systems": systems}));
    }
    for (a, b) in [("p", "r"), ("q", "r"), ("p", "t"), ("q", "t"), ("r", "t")] {
        if draws.percent(70) {
            let of = [format!("population:{a}"), format!("population:{b}")];
            steps.push(json!({"do": "state", "by": "officer", "kind": "disjoint", "of": of, "reason": "as is known"}));
        }
    }
    steps
}

fn upload(draws: &mut Draws, name: &str, population: Option<&str>, earlier: &mut Vec<Value>) -> Value {
    let range = match population {
        Some("p" | "q") => 0,
        Some("r") => 1000,
        Some(_) => 2000,
        None => draws.one_of(&[0, 1000, 2000]),
    };
    let first = range + draws.below(12) * 10;
    let columns: [&[&str]; 3] = [
        &["age", "ward", "sex", "zip"],
        &["age", "ward", "sex", "zip", "dx"],
        &["age", "ward", "sex", "zip", "dx", "job"],
    ];
    let mut table = json!({"people": [[first, first + (1 + draws.below(5)) * 10]],
        "keys": {"id": draws.one_of(&["{p}", "0{p}", " {p} ", "{p}.0"])}, "reverse": draws.percent(50),
        "columns": draws.one_of(&columns)});
    if population.is_none() && draws.percent(50) && !earlier.is_empty() {
        table = draws.one_of(earlier);
    }
    earlier.push(table.clone());
    let mut step = json!({"do": "upload", "as": name, "table": table});
    if let Some(population) = population {
        step["population"] = population.into();
    }
    step
}

fn history(seed: u64) -> Vec<Value> {
    let mut draws = Draws(seed);
    let mut steps = definitions(&mut draws);
    let mut tables = Vec::new();
    for number in 0..4 + draws.below(8) {
        let name = format!("d{number}");
        let population = draws.one_of(&[Some("p"), Some("p"), Some("q"), Some("r"), Some("t"), None]);
        steps.push(upload(&mut draws, &name, population, &mut tables));
        for _ in 0..draws.one_of(&[0, 1, 1, 2]) {
            let has_keys = matches!(population, Some("p" | "q" | "r"));
            let people = if has_keys && draws.percent(40) { "unpublished" } else { "all" };
            let columns = draws.one_of(&[["age", "ward"], ["sex", "zip"], ["age", "zip"]]);
            let hold = draws.percent(20);
            steps.push(json!({"do": "job", "dataset": name, "columns": columns, "people": people, "hold": hold}));
        }
        if draws.percent(20) {
            steps.push(json!({"do": "end", "dataset": name, "how": "reject"}));
        }
    }
    steps
}

/// What an answer says, without numbers of coverages: these count what is refused, too.
fn plain(answer: &Value) -> Value {
    let mut answer = answer.clone();
    answer.as_object_mut().unwrap().remove("coverages");
    answer
}

#[test]
fn honest_histories_share_no_person_between_coverages() {
    let mut published = 0;
    for seed in 0..cases() {
        let steps = history(seed);
        let (answers, ledger) = run(&steps);
        assert_eq!(ledger.truly_shared(), 0, "{steps:?}");
        published += answers.iter().filter(|answer| answer["status"] == "published").count();
    }
    assert!(published as u64 > cases(), "{published} releases");
}

#[test]
fn what_was_never_published_changes_no_answer() {
    let mut left_out = 0;
    for seed in 0..cases() {
        let steps = history(seed);
        let (answers, _) = run(&steps);
        let pairs = steps.iter().zip(&answers);
        let is_release = |(step, answer): &(&Value, &Value)| step["do"] == "job" && answer["status"] != "refused";
        let published: Vec<&Value> = pairs.clone().filter(is_release).map(|(step, _)| &step["dataset"]).collect();
        let counts = |(step, answer): &(&Value, &Value)| match step["do"].as_str().unwrap() {
            "upload" => published.contains(&&step["as"]),
            "job" => answer["status"] != "refused",
            "end" => published.contains(&&step["dataset"]),
            _ => true,
        };
        let kept: Vec<(&Value, &Value)> = pairs.filter(counts).collect();
        left_out += steps.len() - kept.len();
        let (again, _) = run(&kept.iter().map(|(step, _)| (*step).clone()).collect::<Vec<_>>());
        let (again, before): (Vec<Value>, Vec<Value>) =
            (again.iter().map(plain).collect(), kept.iter().map(|(_, answer)| plain(answer)).collect());
        assert_eq!(again, before, "{steps:?}");
    }
    assert!(left_out as u64 > cases(), "{left_out} calls");
}

#[test]
fn overlaps_are_refused_exactly_where_people_meet() {
    let mut overlaps = 0;
    for seed in 0..cases() {
        let mut draws = Draws(seed);
        let people: [[u64; 2]; 2] = std::array::from_fn(|_| {
            let first = draws.below(400);
            [first, first + 1 + draws.below(120)]
        });
        let system = json!([{"name": "k", "columns": ["id"]}]);
        let mut steps = vec![json!({"do": "population", "by": "officer", "name": "p", "systems": system})];
        for (name, range) in ["0", "1"].iter().zip(people) {
            let table = json!({"people": [range], "keys": {"id": "p{p}"}});
            steps.push(json!({"do": "upload", "as": name, "population": "p", "table": table}));
            steps.push(json!({"do": "job", "dataset": name, "columns": ["age", "ward"], "l": name}));
        }
        let (answers, _) = run(&steps);
        let common = people[0][1].min(people[1][1]).saturating_sub(people[0][0].max(people[1][0]));
        let answer = answers.last().unwrap();
        if people[0] == people[1] || common == 0 {
            assert_eq!(answer["composition"], "enforced", "{people:?}");
        } else {
            assert_eq!((&answer["problem"], &answer["common"]), (&json!("overlapping-people"), &json!(common)));
            overlaps += 1;
        }
    }
    assert!(overlaps > cases() / 8, "{overlaps} overlaps");
}
