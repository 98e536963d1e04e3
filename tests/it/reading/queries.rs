//! COUNT queries: the numbers of the paper, a real table against estimates made here from the served parts, and every refusal.

use std::collections::{BTreeMap, HashMap};
use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::{fs, io};

use flate2::read::GzDecoder;
use guardian::control::Control;
use guardian::engine::{EngineError, QuerySet};
use guardian::problem::Kind;
use guardian::publication::PublishedBytes;
use guardian::vault::Secret;
use serde_json::{Value, json};

use crate::support::folder::CommandFixture;
use crate::support::harness::{Client, HOSPITAL, Server, guardian, hospital_method, kind, run, text, versatile};
use crate::support::library::some_rows;

async fn ask(server: &Client, release: &Value, queries: Value) -> Vec<Value> {
    let path = format!("/v1/releases/{}/queries", text(&release["id"]));
    server.post(&path, &json!({"queries": queries})).await.ok(200)["answers"].as_array().unwrap().clone()
}

/// A part: its attributes and its rows, the bucket first (0 where there is none). Cells have neither commas nor quotes.
struct Part {
    attributes: Vec<String>,
    rows: Vec<(u64, Vec<String>)>,
}

async fn parts(server: &Client, manifest: &Value) -> Vec<Vec<Part>> {
    let mut tables = Vec::new();
    for table in manifest["tables"].as_array().unwrap() {
        let mut parts = Vec::new();
        for part in table["parts"].as_array().unwrap() {
            let csv = server.part(manifest, &text(&table["name"]), &text(&part["name"])).await;
            let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
            let bucketed = part["bucketed"] == true;
            let attributes = lines.next().unwrap().split_off(usize::from(bucketed));
            let row = |mut row: Vec<String>| {
                let cells = row.split_off(usize::from(bucketed));
                (row.first().map_or(0, |bucket| bucket.parse().unwrap()), cells)
            };
            parts.push(Part { attributes, rows: lines.map(row).collect() });
        }
        tables.push(parts);
    }
    tables
}

type Conditions = BTreeMap<String, Vec<String>>;

/// What a table says of a query and of the attributes that it shares with others: a share for each of their values. From the
/// definition: every tuple of the one part with every tuple of the others in its bucket.
fn estimated_tuples(table: &[Part], query: &Conditions, shared: &[String]) -> HashMap<Vec<String>, f64> {
    let n = table[0].rows.len() as f64;
    let mut estimated_tuples = HashMap::new();
    let mut buckets: BTreeMap<u64, Vec<Vec<&Vec<String>>>> = BTreeMap::new();
    for (at, part) in table.iter().enumerate() {
        for (bucket, cells) in &part.rows {
            buckets.entry(*bucket).or_insert_with(|| vec![Vec::new(); table.len()])[at].push(cells);
        }
    }
    for parts in buckets.values() {
        let size = parts[0].len() as f64;
        let mut tuples: HashMap<Vec<String>, f64> = HashMap::from([(Vec::new(), 1.0)]);
        for (part, rows) in table.iter().zip(parts) {
            let mut of_part: HashMap<Vec<String>, f64> = HashMap::new();
            for cells in rows {
                let named = || part.attributes.iter().zip(cells.iter());
                if named().all(|(name, cell)| query.get(name).is_none_or(|among| among.contains(cell))) {
                    let kept = named().filter(|(name, _)| shared.contains(name));
                    *of_part.entry(kept.map(|(_, cell)| cell.clone()).collect()).or_default() +=
                        1.0 / rows.len() as f64;
                }
            }
            let mut longer = HashMap::new();
            for (tuple, share) in &tuples {
                for (more, of_more) in &of_part {
                    *longer.entry([&tuple[..], more].concat()).or_default() += share * of_more;
                }
            }
            tuples = longer;
        }
        for (tuple, share) in tuples {
            *estimated_tuples.entry(tuple).or_default() += share * size / n;
        }
    }
    estimated_tuples
}

/// The estimate, from tables that are joined one after the other: each shares with those before it what it shares with one of them.
fn estimate(tables: &[Vec<Part>], query: &Conditions) -> f64 {
    let attributes = |table: &[Part]| table.iter().flat_map(|part| part.attributes.clone()).collect::<Vec<String>>();
    let of: Vec<Vec<String>> = tables.iter().map(|table| attributes(table)).collect();
    let shared: Vec<Vec<String>> = (0..tables.len())
        .map(|at| {
            let elsewhere = |name: &&String| (0..tables.len()).any(|other| other != at && of[other].contains(name));
            of[at].iter().filter(elsewhere).cloned().collect()
        })
        .collect();
    // values of shared attributes, by name, and the share of what was joined so far
    let mut joined: Vec<(BTreeMap<String, String>, f64)> = vec![(BTreeMap::new(), 1.0)];
    let mut before: Vec<String> = Vec::new();
    let mut left: Vec<usize> = (0..tables.len()).collect();
    while !left.is_empty() {
        // the one that shares most with what was joined
        let at =
            (0..left.len()).max_by_key(|&at| of[left[at]].iter().filter(|name| before.contains(name)).count()).unwrap();
        let table = left.remove(at);
        let separator: Vec<String> = shared[table].iter().filter(|name| before.contains(name)).cloned().collect();
        let keys = |tuple: &[String]| -> BTreeMap<String, String> {
            shared[table].iter().cloned().zip(tuple.iter().cloned()).collect()
        };
        let of_all = estimated_tuples(&tables[table], &Conditions::new(), &shared[table]);
        let of_query = estimated_tuples(&tables[table], query, &shared[table]);
        let restrict =
            |key: &BTreeMap<String, String>| separator.iter().map(|name| key[name].clone()).collect::<Vec<_>>();
        let mut marginal: HashMap<Vec<String>, f64> = HashMap::new();
        of_all.iter().for_each(|(tuple, share)| *marginal.entry(restrict(&keys(tuple))).or_default() += share);
        let mut longer: HashMap<BTreeMap<String, String>, f64> = HashMap::new();
        for (known, share) in &joined {
            for (tuple, of_tuple) in &of_query {
                let key = keys(tuple);
                if separator.iter().all(|name| known[name] == key[name]) {
                    let mut all = known.clone();
                    let share = share * of_tuple / marginal[&restrict(&key)];
                    all.extend(key);
                    *longer.entry(all).or_default() += share;
                }
            }
        }
        joined = longer.into_iter().collect();
        before.extend(of[table].clone());
    }
    tables[0][0].rows.len() as f64 * joined.iter().map(|(_, share)| share).sum::<f64>()
}

fn in_json(query: &Conditions) -> Value {
    let conditions: Vec<Value> = query.iter().map(|(name, among)| json!({"attribute": name, "in": among})).collect();
    json!({ "where": conditions })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hospital_is_counted_as_in_the_paper() {
    // keys of their own, so that the buckets of some release are those of the paper
    let drawn = AtomicU8::new(1);
    let keys = Arc::new(move || Ok(Secret::new([drawn.fetch_add(1, Ordering::SeqCst); 32])));
    let server = Server::start_as(|_| {}, keys).await;
    let mut seen = Vec::new();
    for _ in 0..12 {
        let document = json!({"unlisted": "drop", "method": hospital_method()});
        let release = server.publish(&server.newcomers(HOSPITAL).await, document).await;
        let answers = ask(
            &server,
            &release,
            json!([
                {"where": [{"attribute": "race", "in": ["white"]}, {"attribute": "zipcode", "in": ["72000"]}]},
                {"where": [{"attribute": "icd9", "in": ["HIV"]}, {"attribute": "zipcode", "from": 71000, "to": 72000}]},
                {"where": [{"attribute": "icd9", "in": ["HIV"]}, {"attribute": "age", "to": 37}]},
                {"where": []},
            ]),
        )
        .await;
        let exact = |count: f64| json!({"estimate": count, "standard_error": 0.0, "error_model": "exact"});
        assert_eq!(answers[2..], [exact(2.0), exact(6.0)]);
        // the one attribute stands in another table than the other: of 6 rows 2 have the disease, 4 the zip codes
        let (p, n) = (2.0 / 6.0 * 4.0 / 6.0, 6.0_f64);
        assert_eq!(answers[1]["error_model"], "multinomial");
        for (member, expected) in [("estimate", 1.0 + 1.0 / 3.0), ("standard_error", (n * p * (1.0 - p)).sqrt())] {
            assert!((answers[1][member].as_f64().unwrap() - expected).abs() < 1e-9, "{}", answers[1]);
        }
        // both patients of the zip code are white; when a white one of another zip code shares a bucket, he may be meant
        assert_eq!(answers[0]["error_model"], "matching");
        let expected = if answers[0]["estimate"] == 1.5 { 0.25_f64 } else { 0.5 };
        assert!((answers[0]["standard_error"].as_f64().unwrap() - expected.sqrt()).abs() < 1e-9, "{}", answers[0]);
        seen.push(answers[0]["estimate"].as_f64().unwrap());
    }
    assert!(
        seen.contains(&1.5) && seen.contains(&1.0) && seen.iter().all(|seen| [1.0, 1.5].contains(seen)),
        "{seen:?}"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_table_is_estimated_from_its_parts_alone() {
    let mut server = Server::start().await;
    let plain =
        versatile(&["country, income -> education", "education, age -> marital_status", "occupation, sex -> age"]);
    let mut saturated = versatile(&["sex, age -> marital_status", "income -> education"]);
    saturated["uad"] = json!({"saturate": true});
    let anatomy = json!({"type": "anatomy", "quasi_identifiers": ["age", "sex", "occupation", "country"],
        "sensitive": "education", "guarantee": {"type": "l_diversity", "l": 2}});
    let mut models: BTreeMap<String, usize> = BTreeMap::new();
    for (at, method) in [plain, saturated, anatomy].into_iter().enumerate() {
        let table = some_rows(GzDecoder::new(&include_bytes!("../../data/adult-7.csv.gz")[..]), 4);
        server = server.anew().await;
        let dataset = server.dataset(table).await;
        let names = ["age", "country", "education", "marital_status", "occupation", "income", "sex"];
        let attributes: Value = match at {
            2 => json!({}),
            _ => Value::Object(names.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect()),
        };
        let release =
            server.publish(&dataset, json!({"method": method, "attributes": attributes, "unlisted": "drop"})).await;
        let tables = parts(&server, &release).await;
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for part in tables.iter().flatten() {
            for (column, name) in part.attributes.iter().enumerate() {
                let mut of: Vec<String> = part.rows.iter().map(|(_, cells)| cells[column].clone()).collect();
                of.sort_unstable();
                of.dedup();
                values.insert(name.clone(), of);
            }
        }
        // every other pair and triple of attributes in turn, about half of the values of each
        let names: Vec<&String> = values.keys().collect();
        let mut queries: Vec<Conditions> = Vec::new();
        for first in 0..names.len() {
            for second in (first..names.len()).step_by(2) {
                let chosen = [first, second, (first * second) % names.len()].map(|at| names[at]);
                let half = |name: &String| {
                    let of = values[name].iter().enumerate();
                    of.filter(|(at, _)| (at + first + second) % 2 == 0).map(|(_, value)| value.clone()).collect()
                };
                queries.push(chosen.into_iter().map(|name| (name.clone(), half(name))).collect());
            }
        }
        let answers = ask(&server, &release, queries.iter().map(in_json).collect()).await;
        assert_eq!(answers.len(), queries.len());
        for (query, answer) in queries.iter().zip(&answers) {
            let expected = estimate(&tables, query);
            let found = answer["estimate"].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-6 * expected.max(1.0), "{query:?}: {found}, expected {expected}");
            assert!(answer["standard_error"].as_f64().unwrap() < found.max(1.0), "{query:?}: {answer}");
            *models.entry(text(&answer["error_model"])).or_default() += 1;
        }
    }
    assert!(models.len() == 3 && models.values().all(|&count| count > 2), "{models:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_values_ranges_and_foreign_values() {
    let server = Server::start().await;
    let rows: String = (0..40)
        .map(|row| match row % 4 {
            0 => format!(",{}.50,\n", row / 4),
            kind => format!("{kind},{}.5,\"\"\n", row / 4),
        })
        .collect();
    let dataset = server.dataset(format!("number,price,remark\n{rows}")).await;
    let document = json!({"attributes": {"number": {"publish": true, "rename": "No."}, "price": {"publish": true}, "remark": {"publish": true}},
        "no_rules_reason": "none", "method": {"type": "versatile", "rules": []}});
    let release = server.publish(&dataset, document).await;
    let counts = ask(
        &server,
        &release,
        json!([
            {"where": [{"attribute": "No.", "in": [null]}]},
            {"where": [{"attribute": "No.", "in": [null, 1, "2", "two", 3.5]}]},
            {"where": [{"attribute": "No.", "from": "1.5"}]},
            {"where": [{"attribute": "No.", "to": 2}]},
            {"where": [{"attribute": "price", "in": [7.5]}]},
            {"where": [{"attribute": "price", "from": 8, "to": "9.50"}]},
            {"where": [{"attribute": "remark", "in": [""]}]},
            {"where": [{"attribute": "remark", "in": [null]}, {"attribute": "price", "to": 0.5}]},
            {"where": [{"attribute": "No.", "in": [1, 2]}, {"attribute": "No.", "in": [2, 3]}]},
            {"where": [{"attribute": "No.", "in": []}]},
        ]),
    )
    .await;
    // the attributes stand in one table, so that every number is that of the original
    let expected = [10.0, 30.0, 20.0, 20.0, 4.0, 8.0, 30.0, 1.0, 10.0, 0.0];
    let found: Vec<f64> = counts.iter().map(|answer| answer["estimate"].as_f64().unwrap()).collect();
    assert_eq!(found, expected);
    assert!(counts.iter().all(|answer| answer["error_model"] == "exact"), "{counts:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_answered_at_once() {
    let server = Server::start().await;
    let release = server.publish(&server.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    let path = format!("/v1/releases/{}/queries", text(&release["id"]));
    let document = json!({"queries": [
        {"where": [{"attribute": "name", "in": ["x"]}, {"attribute": "age", "from": "old"}]},
        {"where": [{"attribute": "age"}]},
        {"when": []},
    ], "limit": 1});
    let answer = server.post(&path, &document).await;
    assert_eq!(answer.fault("/queries/0/where/0/attribute", "unknown-attribute")["attribute"], "name");
    for pointer in ["/queries/0/where/1/from", "/queries/1/where/0/in", "/queries/2/where"] {
        answer.fault(pointer, "parameter-range");
    }
    answer.fault("/queries/2/when", "unknown-field");
    answer.fault("/limit", "unknown-field");
    let many: Vec<Value> = (0..1001).map(|_| json!({"where": []})).collect();
    server.post(&path, &json!({ "queries": many })).await.fault("/queries", "parameter-range");
    let few = server.post(&path, &json!({ "queries": many[1..] })).await.ok(200);
    assert_eq!(few["answers"].as_array().unwrap().len(), 1000);
    assert_eq!(server.post(&path, &json!({"queries": []})).await.ok(200), json!({"answers": []}));
    for body in ["[]", "{", "{\"queries\": [], \"queries\": []}"] {
        let request =
            server.request(reqwest::Method::POST, &path).header("content-type", "application/json").body(body);
        server.send(request).await.problem(400, "malformed-body");
    }
    // more than one request may look at: rows are counted before any is read
    let mut huge = release.clone();
    for part in
        huge["tables"].as_array_mut().unwrap().iter_mut().flat_map(|table| table["parts"].as_array_mut().unwrap())
    {
        part["rows"] = json!(100_000_000);
    }
    let huge = serde_json::from_value(huge).unwrap();
    let problem = QuerySet::new(&huge, &json!({ "queries": many[..100] })).err().unwrap();
    assert_eq!(problem.kind, Kind::WorkLimit);
    assert!(QuerySet::new(&huge, &json!({ "queries": many[..10] })).is_ok());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_that_are_not_served_are_not_asked() {
    let server = Server::start_with(|config| config.max_plans = 0).await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let path = format!("/v1/releases/{}", text(&release["id"]));
    let document = json!({"queries": []});
    let busy = server.post(&format!("{path}/queries"), &document).await;
    busy.problem(429, "too-many-requests");
    server.post(&format!("{path}/withdraw"), &json!({"reason": "x"})).await.ok(200);
    server.post(&format!("{path}/queries"), &document).await.problem(410, "gone");
    for id in ["018f0000-0000-7000-8000-000000000000", "x"] {
        server.post(&format!("/v1/releases/{id}/queries"), &document).await.problem(404, "not-found");
    }
    server.stop().await;

    // what was counted in a held release was read
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let held = server.publish(&dataset, json!({"hold": true, "method": hospital_method()})).await;
    assert_eq!(ask(&server, &held, json!([{"where": []}])).await[0]["estimate"], 6.0);
    let path = format!("/v1/releases/{}/reject", text(&held["id"]));
    server.post(&path, &json!({"reason": "x"})).await.ok(200);
    assert!(server.stored("disclosures").await > 0, "somebody knows it");
    server.stop().await;

    // a budget that holds no table
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("shared");
    let server = Server::start_with(|config| config.data.clone_from(&data)).await;
    let release = server.publish(&server.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    server.stop().await;
    let server = Server::start_with(|config| {
        config.data = data;
        config.job_limits.memory_budget = Some(1);
    })
    .await;
    let path = format!("/v1/releases/{}/queries", text(&release["id"]));
    server.post(&path, &json!({"queries": [{"where": []}]})).await.problem(422, "work-limit");
    server.stop().await;
}

#[test]
fn the_command_line_answers_the_same() {
    let folder = CommandFixture::hospital();
    folder.published("out", &[]);
    let at = |name: &str| folder.path(name);
    let query = |document: &Value| {
        fs::write(at("Q.json"), document.to_string()).unwrap();
        run(guardian().arg("query").arg(at("out")).arg("--queries").arg(at("Q.json")))
    };

    // the parts of the paper's third table, in place of those that were drawn
    fs::write(at("out/t1.qi.csv"), "bucket,hospital,gender,race\n1,111111,F,asian\n1,333333,M,white\n2,111111,M,white\n2,222222,F,white\n3,222222,F,black\n3,333333,M,black\n").unwrap();
    fs::write(at("out/t1.sa.csv"), "bucket,zipcode\n1,71000\n1,72000\n2,72000\n2,74000\n3,71000\n3,73000\n").unwrap();
    let document = json!({"queries": [
        {"where": [{"attribute": "race", "in": ["white"]}, {"attribute": "zipcode", "in": [72000]}]},
        {"where": [{"attribute": "icd9", "in": ["HIV"]}, {"attribute": "zipcode", "in": [71000, 72000]}]},
    ]});
    let output = query(&document);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers["answers"][0], json!({"estimate": 1.5, "standard_error": 0.5, "error_model": "matching"}));
    assert!((answers["answers"][1]["estimate"].as_f64().unwrap() - 4.0 / 3.0).abs() < 1e-9, "{answers}");

    let refused = query(&json!({"queries": [{"where": [{"attribute": "x", "in": []}]}]}));
    assert_eq!(refused.status.code(), Some(3));
    assert_eq!(kind(&serde_json::from_slice(&refused.stderr).unwrap()), "invalid-specification");
    // damaged parts are no answer
    for damage in [
        "bucket,zipcode\n1,71000\n1,72000\n2,72000\n2,74000\n3,71000\n",
        "bucket,zipcode\n1,71000\n1,72000\n1,72000\n2,74000\n3,71000\n3,73000\n",
        "bucket,zipcode\n1,\"x",
    ] {
        fs::write(at("out/t1.sa.csv"), damage).unwrap();
        assert_eq!(query(&document).status.code(), Some(4), "{damage}");
    }
    fs::remove_file(at("out/t1.sa.csv")).unwrap();
    assert_eq!(query(&document).status.code(), Some(4));
}

/// Endless parts, whose reading is cancelled.
struct Endless {
    manifest: Value,
    control: Control,
}

impl PublishedBytes for Endless {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        let tables = self.manifest["tables"].as_array().unwrap();
        let part = tables.iter().flat_map(|table| table["parts"].as_array().unwrap()).find(|part| part["file"] == file);
        let part = part.unwrap();
        let names = part["attributes"].as_array().unwrap().iter().map(text);
        let header: Vec<String> =
            (part["bucketed"] == true).then(|| "bucket".to_owned()).into_iter().chain(names).collect();
        let row = vec!["1"; header.len()].join(",") + "\n";
        let rows = Rows { row: row.into_bytes(), at: 0, control: &self.control };
        Ok(Box::new(Cursor::new(header.join(",") + "\n").chain(rows)))
    }
}

struct Rows<'a> {
    row: Vec<u8>,
    at: usize,
    control: &'a Control,
}

impl Read for Rows<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.control.cancel();
        for byte in buffer.iter_mut() {
            *byte = self.row[self.at];
            self.at = (self.at + 1) % self.row.len();
        }
        Ok(buffer.len())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_stops_without_its_caller() {
    let server = Server::start().await;
    let mut manifest = server.publish(&server.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    for table in manifest["tables"].as_array_mut().unwrap() {
        table["parts"].as_array_mut().unwrap().iter_mut().for_each(|part| part["rows"] = json!(10_000_000));
    }
    let asked = json!({"queries": [{"where": [{"attribute": "race", "in": ["1"]}]}]});
    let asked = QuerySet::new(&serde_json::from_value(manifest.clone()).unwrap(), &asked).unwrap();
    let control = Control::default();
    // read to its end, it would be found to be longer than it may be
    let stopped = asked.answer(&Endless { manifest, control: control.clone() }, &control);
    assert!(matches!(stopped, Err(EngineError::Cancelled)), "{stopped:?}");
    server.stop().await;
}
