//! Attacks: the worlds of tiny tables, over HTTP and on what this crate publishes and judges.

use std::collections::{BTreeMap, BTreeSet};

use guardian::control::Control;
use guardian::engine::{ReadFile, VerificationMaterial};
use guardian::identity::Preset;
use guardian::ledger::EarlierDisclosures;
use guardian::microdata::formats::IngestLimits;
use guardian::microdata::formats::csv::{CsvOptions, CsvReader};
use guardian::random::{RandomStreams, ReleaseKey};
use guardian::spec::VerificationSubject;
use guardian::{engine, spec};
use serde_json::{Value, json};

use super::external_tables::verify;
use crate::methods::slicing::{TABLE, explicit, sliced, with};
use crate::security::identity::Guarded;
use crate::support::harness::{Client, HOSPITAL, Server, hospital_method, text, versatile};
use crate::support::library::{Original, Random, cells, release, seeds, table};

/// A table in two parts: some columns of the hospital, and one of them apart, in buckets of rows that are counted from 1.
fn bucketized(name: &str, known: &[&str], sensitive: &str, buckets: &[[usize; 2]]) -> (Value, Vec<(String, String)>) {
    let (header, rows) = cells(HOSPITAL.as_bytes());
    let cell = |row: usize, name: &str| rows[row - 1][header.iter().position(|column| column == name).unwrap()].clone();
    let (mut qi, mut sa) = (format!("bucket,{}\n", known.join(",")), format!("bucket,{sensitive}\n"));
    for (label, bucket) in (1..).zip(buckets) {
        let mut values: Vec<String> = bucket.iter().map(|&row| cell(row, sensitive)).collect();
        values.sort();
        for (&row, value) in bucket.iter().zip(values) {
            let cells: Vec<String> = known.iter().map(|name| cell(row, name)).collect();
            qi += &format!("{label},{}\n", cells.join(","));
            sa += &format!("{label},{value}\n");
        }
    }
    let part = |part: &str| json!({"name": part, "file": format!("{name}.{part}.csv"), "bucketed": true});
    let files = vec![(format!("{name}.qi.csv"), qi), (format!("{name}.sa.csv"), sa)];
    (json!({"name": name, "parts": [part("qi"), part("sa")]}), files)
}

fn plain(name: &str, columns: &[&str]) -> (Value, Vec<(String, String)>) {
    let (header, rows) = cells(HOSPITAL.as_bytes());
    let at: Vec<usize> = columns.iter().map(|name| header.iter().position(|column| column == name).unwrap()).collect();
    let mut lines: Vec<String> =
        rows.iter().map(|row| at.iter().map(|&at| row[at].clone()).collect::<Vec<_>>().join(",")).collect();
    lines.sort();
    let csv = format!("{}\n{}\n", columns.join(","), lines.join("\n"));
    (json!({"name": name, "parts": [{"file": format!("{name}.csv")}]}), vec![(format!("{name}.csv"), csv)])
}

async fn judged(server: &Server, tables: Vec<(Value, Vec<(String, String)>)>) -> Value {
    let (tables, files): (Vec<Value>, Vec<_>) = tables.into_iter().unzip();
    let method = hospital_method();
    let request = json!({"tables": tables, "rules": method["rules"], "default_guarantee": method["default_guarantee"],
        "attacks": ["exact_posteriors"]});
    let files: Vec<(String, String)> = files.into_iter().flatten().collect();
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, csv)| (name.as_str(), csv.clone().into_bytes())).collect();
    verify(server, &request, &files).await.ok(200)
}

/// The tables of versatile publishing: each table of Table 2 is 2-diverse by itself, and together they give four people away;
/// those of Table 3 reveal no person; of Table 4 two rules do not hold.
#[tokio::test(flavor = "multi_thread")]
async fn the_tables_of_the_paper() {
    let server = Server::start().await;
    let same = [[1, 6], [4, 5], [2, 3]];
    let found = judged(
        &server,
        vec![
            bucketized("a", &["age", "icd9"], "race", &same),
            bucketized("b", &["gender", "icd9"], "zipcode", &same),
            bucketized("c", &["hospital", "race"], "zipcode", &[[1, 3], [2, 4], [5, 6]]),
        ],
    )
    .await;
    assert_eq!(found["verified"], false);
    for rule in found["rules"].as_array().unwrap() {
        assert_eq!((&rule["holds"], &rule["breaks"]["total"]), (&json!(false), &json!(0)), "{rule:#}");
        assert!(!rule["violated_by"].as_array().unwrap().is_empty());
    }
    let achieved = &found["rules"][2]["achieved"]["worst_posterior"];
    assert_eq!(achieved, &json!({"count": 1, "of": 2}), "each table by itself");
    let attack = &found["attacks"][0];
    assert_eq!((&attack["breach"], &attack["uses"]), (&json!(true), &json!("parts")));
    assert_eq!(attack["worst"], json!({"count": 1, "of": 1}));
    assert_eq!(attack["findings"]["total"], 4, "{attack:#}");
    let found_tuples: BTreeSet<(String, String, String)> = attack["findings"]["first"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| {
            assert_eq!((&finding["rule"], &finding["posterior"]), (&json!("/rules/2"), &json!({"count": 1, "of": 1})));
            let (known, sensitive) = (&finding["known"], &finding["sensitive"]);
            (known["hospital"].to_string(), text(&known["race"]), sensitive["zipcode"].to_string())
        })
        .collect();
    let four = [
        ("111111", "asian", "71000"),
        ("222222", "black", "73000"),
        ("333333", "black", "71000"),
        ("333333", "white", "72000"),
    ];
    assert_eq!(found_tuples, four.map(|(h, r, z)| (h.to_owned(), r.to_owned(), z.to_owned())).into());

    let found = judged(
        &server,
        vec![
            plain("a", &["gender", "icd9", "hospital", "age"]),
            bucketized("b", &["race"], "zipcode", &[[1, 2], [4, 6], [3, 5]]),
        ],
    )
    .await;
    assert_eq!(found["verified"], true, "{found:#}");
    let held: Vec<&Value> = found["rules"].as_array().unwrap().iter().map(|rule| &rule["enforced_by"]).collect();
    assert_eq!(held[..2], [&json!({"unreachable": true}); 2]);
    assert_eq!(held[2], &json!({"guardian": "b", "known": ["race"]}));
    let attack = &found["attacks"][0];
    assert_eq!((&attack["breach"], &attack["worst"]), (&json!(false), &json!({"count": 1, "of": 2})));

    let found = judged(
        &server,
        vec![
            bucketized("t1", &["icd9", "gender"], "hospital", &[[1, 3], [2, 4], [5, 6]].map(|b| b)),
            bucketized("t2", &["age", "hospital"], "zipcode", &[[1, 2], [4, 6], [3, 5]]),
            bucketized("t3", &["age", "hospital", "gender"], "race", &[[1, 2], [3, 4], [5, 6]]),
            plain("t4", &["age", "zipcode"]),
        ],
    )
    .await;
    let holds: Vec<&Value> = found["rules"].as_array().unwrap().iter().map(|rule| &rule["holds"]).collect();
    assert_eq!(holds, [true, false, false], "{found:#}");
    assert_eq!(found["rules"][0]["enforced_by"], json!({"guardian": "t3", "known": ["gender", "hospital", "age"]}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_are_attacked_rule_by_rule() {
    let server = Server::start().await;
    let released = server.publish(&server.dataset(HOSPITAL).await, json!({"method": hospital_method()})).await;
    let path = format!("/v1/releases/{}/attacks", text(&released["id"]));
    let attack = |rule: Value| json!({"attack": "exact_posteriors", "rule": rule, "options": {}});
    for rule in [json!(null), json!("/method/rules/1")] {
        let found = server.post(&path, &attack(rule)).await.ok(200);
        assert_eq!((&found["breach"], &found["findings"]["total"]), (&json!(false), &json!(0)));
        let worst = &found["worst"];
        assert!(worst["count"].as_u64().unwrap() * 2 <= worst["of"].as_u64().unwrap(), "{found:#}");
    }
    server.post(&path, &attack(json!("/method/rules/7"))).await.fault("/rule", "parameter-range");
    for name in ["chain", "exclusion", "excludable", "forced"] {
        let problem = server.post(&path, &json!({"attack": name})).await.problem(422, "invalid-specification");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("decomposed"), "{problem:#}");
    }
    let bad = json!({"attack": "exclusion", "options": {"lambda": 0, "excluded": 11}});
    let answer = server.post(&path, &bad).await;
    answer.fault("/options/lambda", "parameter-range");
    answer.fault("/options/excluded", "parameter-range");
    // options of other attacks say nothing, and must be right
    let others = json!({"attack": "exact_posteriors", "options": {"lambda": 2, "excluded": 1, "corrupted": 3}});
    assert_eq!(server.post(&path, &others).await.ok(200)["attack"], "exact_posteriors");
    let wrong = json!({"attack": "exact_posteriors", "options": {"corrupted": 0, "epsilon": 1}});
    let answer = server.post(&path, &wrong).await;
    answer.fault("/options/corrupted", "parameter-range");
    answer.fault("/options/epsilon", "unknown-field");
    server.post(&path, &json!({"attack": "join"})).await.fault("/attack", "guarantee-unsupported");
    let odd = json!({"attack": "x", "rule": 1, "options": {"lambda": "2"}, "more": 1});
    let answer = server.post(&path, &odd).await;
    for (pointer, name) in [
        ("/attack", "parameter-range"),
        ("/rule", "parameter-range"),
        ("/options/lambda", "parameter-range"),
        ("/more", "unknown-field"),
    ] {
        answer.fault(pointer, name);
    }
    let rows: String = (0..40).map(|row| format!("{},{}\n", row % 4, row / 4 % 3)).collect();
    let server = server.anew().await;
    let large =
        server.publish(&server.dataset(format!("a,s\n{rows}")).await, json!({"method": versatile(&["a -> s"])})).await;
    let answer = server.post(&format!("/v1/releases/{}/attacks", text(&large["id"])), &attack(json!(null))).await;
    assert_eq!(answer.problem(422, "work-limit")["limit"], 16);
    server.stop().await;
}

fn read(csv: &str) -> ReadFile {
    let limits = IngestLimits::default();
    let mut reader = CsvReader::open(csv.as_bytes(), CsvOptions::default(), &limits).unwrap();
    engine::read_file(&mut reader, &limits, &mut |_| Ok(())).unwrap()
}

/// Judges a request without a service.
fn verified(request: &Value, files: &[String]) -> Option<Value> {
    let VerificationSubject::Tables(tables, _) = spec::read_verification(request).unwrap() else { panic!("tables") };
    let material = VerificationMaterial::new(&tables, files.iter().map(|csv| read(csv)).collect(), false).unwrap();
    let asked = spec::read_verification_rules(request, material.names()).unwrap();
    // some have too many worlds
    engine::verify_tables(&material, &asked, &Control::default()).ok().map(|found| serde_json::to_value(found).unwrap())
}

const NAMES: [&str; 4] = ["A", "B", "C", "D"];

fn rows(random: &mut Random, number: usize) -> Vec<Vec<String>> {
    let domain: Vec<usize> = NAMES.iter().map(|_| 2 + random.below(2)).collect();
    (0..number).map(|_| domain.iter().map(|&size| format!("v{}", random.below(size))).collect()).collect()
}

fn rules(random: &mut Random, of: &[usize]) -> Vec<Value> {
    let rule = |random: &mut Random| {
        let size = 2 + random.below(of.len() - 1);
        let mut picked = random.pick(size, of.len());
        let sensitive = NAMES[of[picked.pop().unwrap()]];
        json!({"quasi_identifiers": picked.iter().map(|&at| NAMES[of[at]]).collect::<Vec<_>>(), "sensitive": [sensitive]})
    };
    (0..1 + random.below(3)).map(|_| rule(random)).collect()
}

/// Whatever tables somebody publishes of some rows: where the judge says that a rule holds, no world-counting adversary learns
/// more than it allows.
#[test]
fn verified_rules_hold() {
    let (mut held, mut broken, mut skipped, mut plain_guards) = (0, 0, 0, 0);
    for seed in 0..2000 * seeds() {
        let mut random = Random(seed);
        let number = 4 + random.below(2);
        let rows = rows(&mut random, number);
        let (mut tables, mut files, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
        for name in 0..1 + random.below(3) {
            let size = 2 + random.below(2);
            let columns = random.pick(size, NAMES.len());
            used.extend(&columns);
            let order = random.pick(number, number);
            let line = |row: usize, columns: &[usize]| {
                columns.iter().map(|&c| rows[row][c].clone()).collect::<Vec<_>>().join(",")
            };
            let header = |columns: &[usize]| columns.iter().map(|&c| NAMES[c]).collect::<Vec<_>>().join(",");
            if random.below(2) == 0 {
                let lines: Vec<String> = order.iter().map(|&row| line(row, &columns)).collect();
                tables.push(json!({"name": format!("t{name}"), "parts": [{"file": format!("{name}.csv")}]}));
                files.push(format!("{}\n{}\n", header(&columns), lines.join("\n")));
            } else {
                // the last one or two columns apart, in buckets of at least two rows
                let (known, apart) = columns.split_at(1 + random.below(columns.len() - 1));
                let label = |at: usize| (at / 2).min(number / 2 - 1) + 1;
                for (part, columns) in [("qi", known), ("sa", apart)] {
                    let shuffled = random.pick(number, number);
                    let lines: Vec<String> =
                        shuffled.iter().map(|&at| format!("{},{}", label(at), line(order[at], columns))).collect();
                    files.push(format!("bucket,{}\n{}\n", header(columns), lines.join("\n")));
                    let declared = json!({"name": part, "file": format!("{name}.{part}.csv"), "bucketed": true});
                    if part == "qi" {
                        tables.push(json!({"name": format!("t{name}"), "parts": [declared]}));
                    } else {
                        tables.last_mut().unwrap()["parts"].as_array_mut().unwrap().push(declared);
                    }
                }
            }
        }
        let used: Vec<usize> = used.into_iter().collect();
        let request = json!({"tables": tables, "rules": rules(&mut random, &used)[..1], "attacks": ["exact_posteriors"],
            "default_guarantee": {"type": "l_diversity", "l": 2}});
        let Some(found) = verified(&request, &files) else {
            skipped += 1;
            continue;
        };
        let found_tuples: BTreeSet<String> =
            found["attacks"][0]["findings"]["first"].as_array().unwrap().iter().map(|f| text(&f["rule"])).collect();
        for rule in found["rules"].as_array().unwrap() {
            let breach = found_tuples.contains(&text(&rule["pointer"]));
            assert!(!(breach && rule["holds"] == true), "seed {seed}: {found:#}\n{files:#?}");
            held += u64::from(rule["holds"] == true && !rule["achieved"].is_null());
            broken += u64::from(breach);
            let guard = rule["enforced_by"]["guardian"].as_str().or(rule["enforced_by"]["table"].as_str());
            let of = |table: &&Value| {
                Some(text(&table["name"])) == guard.map(str::to_owned) && table["parts"][0]["bucketed"] != true
            };
            plain_guards += usize::from(tables.iter().any(|table| of(&table)));
        }
    }
    println!(
        "{held} held by a table, {plain_guards} of them by a plain one, {broken} broken, {skipped} with too many worlds"
    );
    assert!(
        held > 80 && plain_guards > 20 && broken > 200 && skipped < 300,
        "{held} {plain_guards} {broken} {skipped}"
    );
}

/// What this crate publishes is said to hold, and does.
#[test]
fn releases_are_verified_without_findings() {
    let (mut published, mut refused) = (0, 0);
    for seed in 0..150 * seeds() {
        let mut random = Random(seed);
        let number = 4 + random.below(2);
        let rows = rows(&mut random, number);
        let lines: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
        let original = Original::new(table(format!("{}\n{}\n", NAMES.join(","), lines.join("\n")).as_bytes()));
        let rules = rules(&mut random, &[0, 1, 2, 3]);
        let guarantee = json!({"type": "l_diversity", "l": 2});
        let method = if random.below(3) == 0 {
            json!({"type": "anatomy", "sensitive": "D", "quasi_identifiers": ["A", "B", "C"], "guarantee": guarantee})
        } else {
            json!({"type": "versatile", "rules": rules, "default_guarantee": guarantee})
        };
        let everything: serde_json::Map<String, Value> =
            NAMES.iter().map(|name| ((*name).to_owned(), json!({"publish": true, "identifier": false}))).collect();
        let Ok(job) = original.job(&json!({"attributes": everything, "method": method})) else { continue };
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes(random.key()));
        let Ok((released, files)) = release(&job, &EarlierDisclosures::default(), &streams) else {
            refused += 1;
            continue;
        };
        let manifest = serde_json::to_value(&released.manifest).unwrap();
        let (mut tables, mut bytes) = (Vec::new(), Vec::new());
        for table in manifest["tables"].as_array().unwrap() {
            let parts = table["parts"].as_array().unwrap().iter();
            let parts =
                parts.map(|part| json!({"name": part["name"], "file": part["file"], "bucketed": part["bucketed"]}));
            tables.push(json!({"name": table["name"], "parts": parts.collect::<Vec<_>>()}));
            let of = |part: &Value| String::from_utf8(files.0[&text(&part["file"])].clone()).unwrap();
            bytes.extend(table["parts"].as_array().unwrap().iter().map(of));
        }
        let rules = if method["type"] == "anatomy" { json!(["A, B, C -> D"]) } else { method["rules"].clone() };
        let request =
            json!({"tables": tables, "rules": rules, "default_guarantee": guarantee, "attacks": ["exact_posteriors"]});
        let Some(found) = verified(&request, &bytes) else { continue };
        assert_eq!(found["verified"], true, "seed {seed}: {found:#}");
        assert_eq!(found["attacks"][0]["breach"], false, "seed {seed}: {found:#}");
        published += 1;
    }
    println!("{published} published, {refused} refused");
    assert!(published > 20, "{published}");
}

/// Buckets by the uniform threshold 1/3, of `age, sex -> disease`.
fn thirds(counterfeits: Option<u32>) -> Value {
    let counterfeits = counterfeits.map(|number| json!({"per_bucket": number}));
    json!({"method": {"type": "bucketize", "quasi_identifiers": ["age", "sex"], "sensitive": "disease",
        "thresholds": {"uniform": {"l": 3}}, "sizes": "one", "counterfeits": counterfeits}})
}

/// 240 patients; women never have d0, and sex predicts nothing else.
fn planted() -> String {
    let row = |i: usize| {
        let (sex, other) = if i.is_multiple_of(2) { ("m", i / 2 % 6) } else { ("f", 1 + i / 2 % 5) };
        format!("{},{sex},d{other}\n", 20 + i / 10 % 4)
    };
    "age,sex,disease\n".to_owned() + &(0..240).map(row).collect::<String>()
}

/// What is left, by trying every choice of counterfeits: for how many buckets and rows a value is likelier than a third, and the largest
/// posterior of those for whom a value is crossed out.
fn left(original: &str, qi: &str, sa: &str, counterfeits: usize) -> (u64, Option<f64>) {
    let rows = cells(original.as_bytes()).1;
    let count = |admits: &dyn Fn(&Vec<String>) -> bool| rows.iter().filter(|row| admits(row)).count();
    let mut excluded: BTreeSet<(usize, String, String)> = BTreeSet::new();
    for at in 0..2 {
        for value in rows.iter().map(|row| &row[at]).collect::<BTreeSet<_>>() {
            let support = count(&|row| row[at] == *value);
            for disease in rows.iter().map(|row| &row[2]).collect::<BTreeSet<_>>() {
                let (both, overall) =
                    (count(&|row| row[at] == *value && row[2] == *disease), count(&|row| row[2] == *disease));
                if support >= 30 && 10 * both * rows.len() <= overall * support {
                    excluded.insert((at, value.clone(), disease.clone()));
                }
            }
        }
    }
    let exclude =
        |row: &[String], disease: &String| (0..2).any(|at| excluded.contains(&(at, row[at].clone(), disease.clone())));
    let mut buckets: BTreeMap<String, (BTreeSet<Vec<String>>, Vec<String>)> = BTreeMap::new();
    for row in cells(qi.as_bytes()).1 {
        buckets.entry(row[0].clone()).or_default().0.insert(row[1..].to_vec());
    }
    for row in cells(sa.as_bytes()).1 {
        buckets.entry(row[0].clone()).or_default().1.push(row[1].clone());
    }
    let (mut total, mut worst) = (0, None);
    for (rows, values) in buckets.values() {
        let once = |at: usize| values.iter().filter(|value| **value == values[at]).count() == 1;
        let singles = || (0..values.len()).filter(|&at| once(at));
        let by_all: BTreeSet<usize> =
            singles().filter(|&at| rows.iter().all(|row| exclude(row, &values[at]))).collect();
        // here each bucket has at most one counterfeit
        let fakes: Vec<Option<usize>> = match counterfeits {
            0 => vec![None],
            _ if !by_all.is_empty() => by_all.iter().copied().map(Some).collect(),
            _ => singles().map(Some).collect(),
        };
        for row in rows.iter().filter(|row| values.iter().any(|value| exclude(row, value))) {
            let mut shares: BTreeMap<&String, f64> = BTreeMap::new();
            for fake in &fakes {
                let real = (0..values.len()).filter(|at| Some(*at) != *fake);
                let real = real.filter(|at| !exclude(row, &values[*at]));
                real.for_each(|at| *shares.entry(&values[at]).or_default() += 1.0);
            }
            let all: f64 = shares.values().sum();
            let most = shares.values().copied().fold(0.0, f64::max) / all;
            if all > 0.0 {
                worst = Some(f64::max(most, worst.unwrap_or(0.0)));
                total += u64::from(most > 1.0 / 3.0 + 1e-9);
            }
        }
    }
    (total, worst)
}

async fn crossed_out(client: &Client, release: &Value) -> Value {
    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    client.post(&path, &json!({"attack": "negative_association"})).await.ok(200)
}

/// Values that hardly ever go together are found where they were planted, as by trying all pairs.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_never_go_together_are_crossed_out() {
    let mut server = Server::start().await;
    let independent: String =
        (0..360).map(|i| format!("{},{},d{}\n", 20 + i % 3, ["f", "m"][i / 3 % 2], i / 6 % 6)).collect();
    let independent = format!("age,sex,disease\n{independent}");
    for (csv, counterfeits) in [(planted(), None), (planted(), Some(1)), (independent, None)] {
        server = server.anew().await;
        let release = server.publish(&server.dataset(csv.clone()).await, thirds(counterfeits)).await;
        let (qi, sa) = (server.part(&release, "t1", "qi").await, server.part(&release, "t1", "sa").await);
        let (total, worst) = left(&csv, &qi, &sa, counterfeits.unwrap_or(0) as usize);
        let found = crossed_out(&server, &release).await;
        assert_eq!((&found["attack"], &found["uses"]), (&json!("negative_association"), &json!("original")));
        assert_eq!(found["findings"]["total"], total, "{found:#}");
        assert_eq!(found["breach"], total > 0);
        let share = |ratio: &Value| Some(ratio["count"].as_f64()? / ratio["of"].as_f64()?);
        assert!((share(&found["worst"]).unwrap_or(-1.0) - worst.unwrap_or(-1.0)).abs() < 1e-9, "{found:#}, {worst:?}");
        let first = found["findings"]["first"].as_array().unwrap();
        assert_eq!(first.len() as u64, total.min(10));
        // d0 is crossed out of buckets that list it, for women
        let listing: BTreeSet<u64> =
            cells(sa.as_bytes()).1.iter().filter(|row| row[1] == "d0").map(|row| row[0].parse().unwrap()).collect();
        for finding in first {
            assert!(listing.contains(&finding["bucket"].as_u64().unwrap()), "{finding:#}");
            assert_eq!((&finding["known"]["sex"], &finding["table"]), (&json!("f"), &json!("t1")));
            assert!(finding["sensitive"]["disease"] != "d0" && share(&finding["posterior"]) > Some(1.0 / 3.0));
        }
        match (csv == planted(), counterfeits) {
            (true, None) => assert!(total > 10 && worst >= Some(0.5), "{total} {worst:?}"),
            (true, Some(_)) => assert!(worst.is_some()),
            (false, _) => assert_eq!((total, worst), (0, None)),
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn negative_association_needs_bounded_buckets() {
    let server = Server::start().await;
    let rows: String = (0..9000).map(|i| format!("{},{},s{}\n", i % 100, i / 100, i % 7993)).collect();
    let method = json!({"type": "bucketize", "quasi_identifiers": ["a", "b"], "sensitive": "s",
        "thresholds": {"uniform": {"l": 2}}, "sizes": [{"size": 9000, "buckets": 1}]});
    let large = server.publish(&server.dataset(format!("a,b,s\n{rows}")).await, json!({"method": method})).await;
    let attack = json!({"attack": "negative_association"});
    let path = |release: &Value| format!("/v1/releases/{}/attacks", text(&release["id"]));
    let problem = server.post(&path(&large), &attack).await.problem(422, "work-limit");
    assert_eq!((&problem["limit"], &problem["found"]), (&json!(1 << 26), &json!(9000 * 7993)));
    // columns that predict each other, and boxes that stand for several values
    let apart = sliced("disease", explicit(&[&["age"], &["sex"], &["zip", "disease"]]), json!(2));
    let boxes =
        with(sliced("disease", explicit(&[&["age", "sex", "zip"], &["disease"]]), json!(2)), "column_k", json!(2));
    let mut server = server;
    for method in [apart, boxes] {
        server = server.anew().await;
        let sliced = server.publish(&server.dataset(TABLE).await, method).await;
        server.post(&path(&sliced), &attack).await.fault("/attack", "guarantee-unsupported");
    }
    let server = server.anew().await;
    let dataset = server.dataset(planted()).await;
    let release = server.publish(&dataset, thirds(None)).await;
    let with = json!({"attack": "negative_association", "options": {"lambda": 0}});
    server.post(&path(&release), &with).await.fault("/options/lambda", "parameter-range");
    let odd = json!({"attack": "negative_association", "rule": "/method/rules/9"});
    server.post(&path(&release), &odd).await.fault("/rule", "parameter-range");
    server.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    server.post(&path(&release), &attack).await.problem(410, "gone");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn negative_association_needs_the_internal_scope() {
    let guarded = Guarded::start().await;
    let admin = guarded.preset(Preset::Admin);
    let release = admin.publish(&admin.dataset(planted()).await, thirds(Some(1))).await;
    let path = format!("/v1/releases/{}/attacks", text(&release["id"]));
    let attack = json!({"attack": "negative_association"});
    for preset in [Preset::Pipeline, Preset::Analyst] {
        let refused = guarded.preset(preset).post(&path, &attack).await.problem(403, "forbidden");
        assert_eq!(refused["scope"], "releases:internal");
    }
    assert_eq!(crossed_out(&guarded.preset(Preset::Officer), &release).await["uses"], "original");
    guarded.server.with_token(&guarded.unknown_value).post(&path, &attack).await.problem(404, "not-found");
    guarded.server.stop().await;
}
