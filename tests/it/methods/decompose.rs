//! Decompose: over HTTP and by the command line, held against definitions of this test's own; and every refusal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use guardian::ledger::EarlierDisclosures;
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Value, json};

use crate::support::folder::CommandFixture;
use crate::support::harness::{Server, kind, text};
use crate::support::library::{Memory, Original, cells, release, table};

/// The poster's table, in the order in which its first bucket is {1, 5, 7, 3}.
pub(crate) const POSTER: &str = "sex,zip,birth,occ,salary\n\
    F,10078,1988/04/17,nurse,1\nF,10077,1984/03/21,nurse,4\nM,10076,1985/03/01,police,8\nF,10075,1983/02/14,cook,9\n\
    F,10085,1962/10/03,actor,2\nM,10085,1988/11/04,actor,7\nM,20086,1958/06/06,clerk,8\nF,20087,1960/07/11,clerk,2\n";

/// Decompose with all of the poster's other attributes as quasi-identifiers.
pub(super) fn poster(method: Value) -> Value {
    let mut method = method;
    method["type"] = "decompose".into();
    if method["sensitive"].is_null() {
        method["sensitive"] = json!(["occ", "salary"]);
    }
    if method["breaches"].is_null() {
        method["breaches"] = "report".into();
    }
    json!({"attributes": {"sex": {"publish": true}, "zip": {"publish": true}, "birth": {"publish": true}}, "method": method})
}

type Buckets = BTreeMap<u64, Vec<String>>;

/// The values of a part of one column, by bucket.
fn by_bucket(csv: &[u8]) -> Buckets {
    let mut buckets = Buckets::new();
    for row in cells(csv).1 {
        buckets.entry(row[0].parse().unwrap()).or_default().push(row[1].clone());
    }
    buckets
}

/// Holds the parts of a release against the table and the definitions: what each bucket holds and lists, and what is said of it.
fn judge(manifest: &Value, files: &Memory, original: &[Vec<String>], header: &[String]) {
    let said = &manifest["method_details"];
    let primary = text(&said["primary"]);
    let column = |name: &str| header.iter().position(|known| known == name).unwrap();
    let sensitive: Vec<String> = said["l"].as_object().unwrap().keys().cloned().collect();
    let groups = by_bucket(&files.0["t1.primary.csv"]);
    let qi = cells(&files.0["t1.qi.csv"]);
    assert_eq!(qi.1.len(), original.len());
    assert!(groups.keys().copied().eq(1..=groups.len() as u64), "labels are 1, 2, ...");
    let l = |name: &str| said["l"][name].as_u64().unwrap() as usize;
    for group in groups.values() {
        for value in group {
            assert!(group.iter().filter(|other| *other == value).count() * l(&primary) <= group.len());
        }
    }
    let mut published: Vec<&String> = groups.values().flatten().collect();
    let mut expected: Vec<&String> = original.iter().map(|row| &row[column(&primary)]).collect();
    published.sort();
    expected.sort();
    assert_eq!(published, expected);
    let parts = manifest["tables"][0]["parts"].as_array().unwrap();
    for part in parts.iter().filter(|part| part["row_meaning"] == "values") {
        let name = text(&part["attributes"][0]);
        let sets = by_bucket(&files.0[&text(&part["file"])]);
        assert_eq!(sets.len(), groups.len());
        for set in sets.values() {
            assert!(set.len() >= l(&name), "{name}: {set:?}");
            assert_eq!(set.iter().collect::<BTreeSet<_>>().len(), set.len(), "each value once");
        }
    }
    // the joint values are those of all rows
    let (names, mut joint) = cells(&files.0["t2.rows.csv"]);
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), sensitive.iter().collect::<BTreeSet<_>>());
    let mut expected: Vec<Vec<String>> =
        original.iter().map(|row| names.iter().map(|name| row[column(name)].clone()).collect()).collect();
    joint.sort();
    expected.sort();
    assert_eq!(joint, expected);
    for table in manifest["tables"].as_array().unwrap() {
        assert_eq!((&table["protection"], &table["guards"]), (&json!("exclusive"), &json!([])));
    }
    let rules = manifest["rules"].as_array().unwrap();
    assert_eq!(rules.len(), sensitive.len());
    for rule in rules {
        assert_eq!(rule["enforced_by"], json!({"table": "t1"}));
        assert!(rule["bounded"] == true || rule["sensitive"] != json!([primary]), "{rule}");
    }
}

fn rows_of(csv: &str) -> (Vec<String>, Vec<Vec<String>>) {
    cells(csv.as_bytes())
}

#[test]
fn the_posters_table_is_decomposed_without_noise() {
    let input = Original::new(table(POSTER.as_bytes()));
    let job = input.job(&poster(json!({}))).unwrap();
    let (released, files) =
        release(&job, &EarlierDisclosures::default(), &RandomStreams::Identity).unwrap_or_else(|e| panic!("{e:?}"));
    let manifest = serde_json::to_value(&released.manifest).unwrap();
    let (header, original) = rows_of(POSTER);
    judge(&manifest, &files, &original, &header);
    let said = &manifest["method_details"];
    assert_eq!(said["l"], json!({"occ": 4, "salary": 4}));
    assert_eq!(said["repeat_free_groups"], json!({"salary": {"count": 2, "of": 2}}));
    assert_eq!((&said["noise"], &said["primary"]), (&json!([]), &json!("occ")));
    assert!(manifest["rules"].as_array().unwrap().iter().all(|rule| rule["bounded"] == true), "{manifest:#}");
    // police has one row in the joint table, which reveals its salary
    let police =
        by_bucket(&files.0["t1.primary.csv"]).into_iter().find(|(_, occ)| occ.contains(&"police".into())).unwrap().0;
    let chain = json!({"attack": "chain", "bucket": police, "attribute": "salary"});
    assert!(said["breaches"].as_array().unwrap().contains(&chain), "{said:#}");
    let kinds: Vec<&Value> = manifest["tables"].as_array().unwrap().iter().map(|table| &table["kind"]).collect();
    assert_eq!(kinds, ["decomposed", "sensitive"]);
    assert_eq!(manifest["method"], json!({"type": "decompose", "adversary": "without minimality"}));
}

#[test]
fn manifests_of_all_keys_match_their_parts() {
    let (header, original) = rows_of(POSTER);
    let input = Original::new(table(POSTER.as_bytes()));
    for (key, method) in
        (0_u8..).zip([json!({}), json!({"primary": "salary"}), json!({"l": {"occ": 2}}), json!({"l": {"salary": 2}})])
    {
        for more in 0..8 {
            let job = input.job(&poster(method.clone())).unwrap();
            let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([16 * key + more; 32]));
            let (released, files) =
                release(&job, &EarlierDisclosures::default(), &streams).unwrap_or_else(|e| panic!("{method}: {e:?}"));
            judge(&serde_json::to_value(&released.manifest).unwrap(), &files, &original, &header);
        }
    }
}

/// Without noise, each listed value is real: plan and attack find the inferences independently.
#[test]
fn plan_and_attack_agree_on_random_tables() {
    let mut state = 7_u64;
    let mut below = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut exact, mut concluded) = (0, 0);
    for number in 0..60_u8 {
        let rows: String =
            (0..12 + below(40)).map(|row| format!("{},o{},{},e{}\n", row % 11, below(5), below(4), below(3))).collect();
        let csv = format!("age,occ,salary,school\n{rows}");
        let input = Original::new(table(csv.as_bytes()));
        let method = json!({"type": "decompose", "quasi_identifiers": ["age"], "sensitive": ["occ", "salary", "school"],
            "primary": "occ", "l": {"salary": 2, "school": 2}, "suppress_chain": number % 3 == 0, "breaches": "report"});
        let Ok(job) = input.job(&json!({"method": method})) else { continue };
        let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([number; 32]));
        let released = match release(&job, &EarlierDisclosures::default(), &streams) {
            Ok((released, _)) => released,
            // one value may be most of all
            Err(stopped) if format!("{stopped:?}").contains("RuleIneligible") => continue,
            Err(stopped) => panic!("{number}: {stopped:?}"),
        };
        let said = serde_json::to_value(released.manifest.method_details).unwrap();
        exact += usize::from(said["noise"].as_array().unwrap().len() < 2);
        let total = &said["breaches_total"];
        assert!(number % 3 != 0 || total["chain"] == 0, "{number}: {said:#}");
        concluded += usize::from(total.as_object().unwrap().values().any(|count| count.as_u64() > Some(0)));
    }
    assert!(exact > 15 && concluded > 10, "{exact} {concluded}");
}

fn adult() -> Original {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    Original::new(table(GzDecoder::new(File::open(path).unwrap())))
}

#[test]
fn occupations_and_educations_of_adult_are_decomposed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/adult.csv.gz");
    let mut csv = Vec::new();
    std::io::Read::read_to_end(&mut GzDecoder::new(File::open(path).unwrap()), &mut csv).unwrap();
    let (header, original) = cells(&csv);
    let input = adult();
    let document = json!({"attributes": {"age": {"publish": true}, "sex": {"publish": true}, "race": {"publish": true}},
        "internal": {"utility": [{"count_queries": {"number": 200, "dimensions": 3, "value_fraction": "0.4"}}]},
        "unlisted": "drop", "method": {"type": "decompose", "sensitive": ["occupation", "education"], "breaches": "report"}});
    let job = input.job(&document).unwrap();
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([5; 32]));
    let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap_or_else(|e| panic!("{e:?}"));
    let manifest = serde_json::to_value(&released.manifest).unwrap();
    judge(&manifest, &files, &original, &header);
    let said = &manifest["method_details"];
    // a third of all went to school to the end, and a seventh of all has the most frequent occupation
    assert_eq!((&said["primary"], &said["l"]), (&json!("education"), &json!({"education": 3, "occupation": 7})));
    assert_eq!(said["noise"], json!(["occupation"]));
    // buckets of three cannot bound it to a seventh
    let bounded: Vec<&Value> = manifest["rules"].as_array().unwrap().iter().map(|rule| &rule["bounded"]).collect();
    assert_eq!(bounded, [&json!(false), &json!(true)]);
    assert!(manifest["warnings"].as_array().unwrap().iter().any(|warning| {
        warning["type"] == "not-bounded"
            && warning["pointer"] == "/method/sensitive/0"
            && text(&warning["detail"]).contains("versatile")
    }));
    let errors = released.internal.count_queries.unwrap();
    assert!(errors.queries == 200 && errors.median.unwrap() < 0.5, "{errors:?}");
}

/// The first value with revealing joint rows, suppressed.
#[test]
fn revealing_joint_rows_are_suppressed() {
    let input = Original::new(table(POSTER.as_bytes()));
    let job = input.job(&poster(json!({"suppress_chain": true}))).unwrap();
    let (released, files) =
        release(&job, &EarlierDisclosures::default(), &RandomStreams::Identity).unwrap_or_else(|e| panic!("{e:?}"));
    let manifest = serde_json::to_value(&released.manifest).unwrap();
    let kept: BTreeSet<String> = cells(&files.0["t2.rows.csv"]).1.into_iter().map(|row| row[0].clone()).collect();
    assert!(!kept.contains("police") && !kept.contains("cook"), "{kept:?}");
    assert_eq!(manifest["method_details"]["breaches_total"]["chain"], 0);
    // no row is lost: primary values remain in their buckets
    assert_eq!(manifest["tables"][0]["parts"][1]["rows"], 8);
    assert!(manifest["tables"][1]["parts"][0]["rows"].as_u64().unwrap() < 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decomposition_is_planned_published_and_attacked() {
    let server = Server::start().await;
    let dataset = server.dataset(POSTER).await;
    let mut plan = poster(json!({}));
    plan["dataset"] = dataset.as_str().into();
    let planned = server.post("/v1/plans", &plan).await.ok(200);
    assert_eq!(planned["feasible"], true, "{planned:#}");
    let tables: Vec<(&Value, &Value)> =
        planned["tables"].as_array().unwrap().iter().map(|table| (&table["kind"], &table["protection"])).collect();
    assert_eq!(tables, [(&json!("decomposed"), &json!("exclusive")), (&json!("sensitive"), &json!("exclusive"))]);
    for rule in planned["rules"].as_array().unwrap() {
        assert_eq!((&rule["largest_l"], &rule["status"]), (&json!(4), &json!("kept")));
    }
    assert_eq!(planned["method_details"]["l"], json!({"occ": 4, "salary": 4}));
    // bounded, but inferable with more knowledge
    let concluded =
        planned["warnings"].as_array().unwrap().iter().find(|warning| warning["type"] == "can-be-concluded");
    let detail = text(&concluded.unwrap()["detail"]);
    assert!(detail.contains("an adversary who knows occ") && detail.contains("versatile"), "{detail}");

    let release = server.publish(&dataset, poster(json!({}))).await;
    assert_eq!(release["verification"]["verified"], true);
    assert_eq!(release["verification"]["linkage"], "checked");
    // what is not said is what it means
    let again =
        server.job(&dataset, poster(json!({"primary": "occ", "l": {"occ": 4}, "suppress_chain": false}))).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &release["id"]));
    // nothing else of the same people that shares an attribute
    for other in [
        poster(json!({"l": {"occ": 2}})),
        json!({"unlisted": "drop", "method": {"type": "versatile", "rules": [], "default_guarantee": {"type": "l_diversity", "l": 2}},
            "no_rules_reason": "a marginal", "attributes": {"salary": {"publish": true}}}),
    ] {
        let problem = server.refused(&dataset, other).await;
        assert_eq!(kind(&problem), "composition-violated", "{problem:#}");
    }
    let series = server.get(&format!("/v1/series/{}", text(&release["series"]))).await.ok(200);
    assert!(
        series["disclosures"].as_array().unwrap().iter().all(|kept| kept["protection"] == "exclusive"),
        "{series:#}"
    );
    assert_eq!(series["active_rules"], json!([]));

    // lists are served as such
    let lists = by_bucket(server.part(&release, "t1", "values1").await.as_bytes());
    assert!(lists.len() == 2 && lists.values().all(|list| list.len() >= 4));
    let path = format!("/v1/releases/{}", text(&release["id"]));
    for format in ["json", "parquet", "arrow", "ndjson"] {
        assert_eq!(server.get(&format!("{path}/tables/t1/parts/values1?format={format}")).await.status, 200);
    }
    assert!(server.get(&format!("{path}/tables/t1/parts/qi?view=linked")).await.status >= 400);
    let report = server.get(&format!("{path}/report")).await.ok(200).to_string();
    assert!(report.contains("joint values of occ, salary"), "{report}");
    assert_eq!(server.get(&format!("{path}/archive")).await.status, 200);

    // attacks, from the parts
    let audits = format!("{path}/attacks");
    let found = server.post(&audits, &json!({"attack": "chain"})).await.ok(200);
    let total = found["findings"]["total"].as_u64().unwrap();
    assert_eq!(
        (&found["uses"], &found["breach"], &found["worst"]),
        (&json!("parts"), &json!(true), &json!({"count": 1, "of": 1}))
    );
    let groups = by_bucket(server.part(&release, "t1", "primary").await.as_bytes());
    let police =
        found["findings"]["first"].as_array().unwrap().iter().find(|f| f["known"] == json!({"occ": "police"})).unwrap();
    assert_eq!((&police["sensitive"], &police["posterior"]), (&json!({"salary": 8}), &json!({"count": 1, "of": 1})));
    assert!(groups[&police["bucket"].as_u64().unwrap()].contains(&"police".to_owned()));
    assert_eq!((&police["table"], &police["rule"]), (&json!("t1"), &json!("/method/sensitive/1")));
    let more = server.post(&audits, &json!({"attack": "chain", "options": {"lambda": 3}})).await.ok(200);
    assert!(more["findings"]["total"].as_u64().unwrap() >= total, "{more:#}");
    let none = server.post(&audits, &json!({"attack": "chain", "rule": "/method/sensitive/0"})).await.ok(200);
    assert_eq!((&none["breach"], &none["findings"]["total"]), (&json!(false), &json!(0)));
    let two = server.post(&audits, &json!({"attack": "exclusion", "options": {"excluded": 3}})).await.ok(200);
    assert_eq!(two["breach"], true);
    assert!(
        two["findings"]["first"][0]["known"]["occ"]["not"].as_array().is_some_and(|values| values.len() <= 3),
        "{two:#}"
    );
    for (attack, breach) in [("excludable", false), ("forced", false)] {
        let found = server.post(&audits, &json!({"attack": attack})).await.ok(200);
        assert_eq!(found["breach"], breach, "{found:#}");
    }
    let said = &release["method_details"]["breaches_total"];
    assert!(said["chain"].as_u64().unwrap() <= total && said["forced"] == 0, "{said}");

    // both tables are judged together
    let rules = |l: u64, rules: Value| json!({"release": release["id"], "rules": rules, "default_guarantee": {"type": "l_diversity", "l": l}});
    let both = json!(["sex, zip, birth -> occ", "sex, zip, birth -> salary"]);
    let judged = server.post("/v1/verifications", &rules(4, both.clone())).await.ok(200);
    assert_eq!(judged["verified"], true, "{judged:#}");
    for rule in judged["rules"].as_array().unwrap() {
        let enforced_by = json!({"guardian": "t1", "known": ["sex", "zip", "birth"]});
        assert_eq!((&rule["holds"], &rule["enforced_by"]), (&json!(true), &enforced_by), "{rule:#}");
        let achieved = &rule["achieved"];
        assert_eq!((&achieved["k"], &achieved["worst_posterior"]), (&json!(4), &json!({"count": 1, "of": 4})));
    }
    let warned = |judged: &Value, name: &str| {
        judged["warnings"].as_array().unwrap().iter().any(|warning| warning["type"] == name)
    };
    assert!(warned(&judged, "judged-together") && warned(&judged, "concluded"), "{judged:#}");
    assert!(!warned(&judged, "judged-apart") && !warned(&judged, "excludable-values"));
    let judged = server.post("/v1/verifications", &rules(5, both)).await.ok(200);
    assert_eq!(judged["verified"], false);
    for rule in judged["rules"].as_array().unwrap() {
        assert_eq!((&rule["holds"], &rule["breaks"]["total"]), (&json!(false), &json!(2)), "{rule:#}");
        assert!(rule["breaks"]["first"][0]["bucket"].is_u64(), "{rule:#}");
    }
    // who knows occupations reads salaries in the joint table
    let judged = server.post("/v1/verifications", &rules(2, json!(["sex, occ -> salary"]))).await.ok(200);
    assert_eq!(judged["rules"][0]["holds"], false, "{judged:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn revealing_primary_values_leave_no_joint_row() {
    let server = Server::start().await;
    let rows: String = (0..12).map(|i| format!("{},o{},{}\n", i % 5, i % 4, i % 4)).collect();
    let method = json!({"type": "decompose", "quasi_identifiers": ["age"], "sensitive": ["occ", "salary"],
        "suppress_chain": true, "breaches": "report"});
    let release =
        server.publish(&server.dataset(format!("age,occ,salary\n{rows}")).await, json!({"method": method})).await;
    assert_eq!(release["tables"][1]["parts"][0]["rows"], 0);
    assert_eq!(server.part(&release, "t2", "rows").await, "occ,salary\n");
    let path = format!("/v1/releases/{}", text(&release["id"]));
    let found = server.post(&format!("{path}/attacks"), &json!({"attack": "chain"})).await.ok(200);
    assert_eq!(found["breach"], false, "{found:#}");
    let query =
        json!({"queries": [{"where": [{"attribute": "occ", "in": ["o1"]}, {"attribute": "salary", "in": [1]}]}]});
    let answer = server.post(&format!("{path}/queries"), &query).await.ok(200)["answers"][0].clone();
    // three rows, and a quarter of what may stand there
    assert_eq!((answer["estimate"].as_f64(), &answer["error_model"]), (Some(0.75), &json!("multinomial")));
    assert_eq!(server.get(&format!("{path}/tables/t2/parts/rows?format=parquet")).await.status, 200);
    assert_eq!(server.get(&format!("{path}/archive")).await.status, 200);
}

/// Section 8.5 of the specification, from the parts, literally: the women who earn as asked.
fn expected(qi: &[u8], primary: &Buckets, lists: &Buckets, joint: &[Vec<String>], salaries: &[&str]) -> f64 {
    let women = by_bucket(qi).into_iter().map(|(bucket, of)| (bucket, of.iter().filter(|sex| *sex == "F").count()));
    let women: BTreeMap<u64, usize> = women.collect();
    let of_bucket = |(bucket, group): (&u64, &Vec<String>)| {
        let share = |occ: &String| {
            let may = joint.iter().filter(|row| row[0] == *occ && lists[bucket].contains(&row[1]));
            let (all, asked) =
                may.fold((0, 0), |(all, asked), row| (all + 1, asked + usize::from(salaries.contains(&&*row[1]))));
            f64::from(asked as u32) / f64::from(all)
        };
        women[bucket] as f64 * group.iter().map(share).sum::<f64>() / group.len() as f64
    };
    primary.iter().map(of_bucket).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_estimated_from_both_tables() {
    let server = Server::start().await;
    let release = server.publish(&server.dataset(POSTER).await, poster(json!({"l": {"occ": 2}}))).await;
    let path = format!("/v1/releases/{}/queries", text(&release["id"]));
    let ask = |conditions: Value| {
        let (server, path) = (&server, &path);
        async move { server.post(path, &json!({"queries": [{"where": conditions}]})).await.ok(200)["answers"][0].clone() }
    };
    let sex = json!({"attribute": "sex", "in": ["F"]});
    let occ = json!({"attribute": "occ", "in": ["clerk", "actor"]});
    let salary = |values: &[&str]| json!({"attribute": "salary", "in": values.iter().map(|v| v.parse::<i64>().unwrap()).collect::<Vec<_>>()});
    for (conditions, count) in [
        (json!([sex]), 5.0),
        (json!([occ]), 4.0),
        (json!([salary(&["8", "2"])]), 4.0),
        (json!([occ, salary(&["2", "7"])]), 3.0),
        (json!([{"attribute": "salary", "from": 3, "to": 8}]), 4.0),
        (json!([occ, {"attribute": "salary", "in": [99]}]), 0.0),
    ] {
        let answer = ask(conditions.clone()).await;
        assert_eq!(
            (answer["estimate"].as_f64(), &answer["error_model"]),
            (Some(count), &json!("exact")),
            "{conditions}"
        );
    }
    // lists have more values than rows: indistinguishable noise
    let rules = json!([{"quasi_identifiers": ["sex", "zip"], "sensitive": ["occ"], "guarantee": {"type": "l_diversity", "l": 2}},
        {"quasi_identifiers": ["sex"], "sensitive": ["salary"], "guarantee": {"type": "distinct_l_diversity", "l": 4}}]);
    let judged = server.post("/v1/verifications", &json!({"release": release["id"], "rules": rules})).await.ok(200);
    assert_eq!(judged["verified"], true, "{judged:#}");
    let parts = |table: &'static str, part: &'static str| server.part(&release, table, part);
    let (qi, primary, lists) = (parts("t1", "qi").await, parts("t1", "primary").await, parts("t1", "values1").await);
    let (primary, lists) = (by_bucket(primary.as_bytes()), by_bucket(lists.as_bytes()));
    let joint = cells(parts("t2", "rows").await.as_bytes()).1;
    for asked in [&["8"][..], &["2", "7"], &["1", "4", "9"], &["1", "2", "4", "7", "8", "9"]] {
        let answer = ask(json!([sex, salary(asked)])).await;
        let expected = expected(qi.as_bytes(), &primary, &lists, &joint, asked);
        assert!((answer["estimate"].as_f64().unwrap() - expected).abs() < 1e-9, "{asked:?}: {answer} {expected}");
        assert_eq!(answer["error_model"], "multinomial");
    }
    let all = ask(json!([sex, salary(&["1", "2", "4", "7", "8", "9"])])).await;
    assert!(all["standard_error"].as_f64().unwrap() < 1e-9, "{all}");
    let matched = ask(json!([sex, occ])).await;
    assert_eq!(matched["error_model"], "matching");
}

#[tokio::test(flavor = "multi_thread")]
async fn infeasible_specification_is_refused_with_reason() {
    let server = Server::start().await;
    let dataset = server.dataset(POSTER).await;
    let with = |name: &str, value: Value| {
        let mut document = poster(json!({}));
        document["method"][name] = value;
        document
    };
    let member = |name: &str, value: Value| {
        let mut document = poster(json!({}));
        document[name] = value;
        document
    };
    let mut with_excluded = poster(json!({}));
    with_excluded["attributes"]["salary"] = json!({"excludable": ["9"]});
    let faulty = [
        (with("l", json!({"occ": 5})), "/method/sensitive/0", "rule-ineligible"),
        (with("l", json!({"salary": 5})), "/method/sensitive/1", "rule-ineligible"),
        (with("l", json!({"salary": 1})), "/method/l/salary", "vacuous-guarantee"),
        (with("l", json!({"salary": "4"})), "/method/l/salary", "parameter-range"),
        (with("l", json!({"sex": 2})), "/method/l/sex", "bad-columns"),
        (with("l", json!({"wage": 2})), "/method/l/wage", "unknown-attribute"),
        (with("l", json!(4)), "/method/l", "parameter-range"),
        (with("sensitive", json!([])), "/method/sensitive", "parameter-range"),
        (with("sensitive", json!("occ")), "/method/sensitive", "parameter-range"),
        (with("sensitive", json!(["occ", 1])), "/method/sensitive/1", "parameter-range"),
        (with("sensitive", json!(["occ", "wage"])), "/method/sensitive/1", "unknown-attribute"),
        (with("sensitive", json!(["occ", "salary", "occ"])), "/method/sensitive/2", "bad-columns"),
        (with("sensitive", json!(["occ"])), "/attributes", "unclassified-attributes"),
        (with("quasi_identifiers", json!(["sex", "occ"])), "/method/quasi_identifiers", "bad-columns"),
        (with("quasi_identifiers", json!([])), "/method/quasi_identifiers", "bad-columns"),
        (with("primary", json!("sex")), "/method/primary", "bad-columns"),
        (with("primary", json!("wage")), "/method/primary", "unknown-attribute"),
        (with("primary", json!(1)), "/method/primary", "parameter-range"),
        (with("suppress_chain", json!("no")), "/method/suppress_chain", "parameter-range"),
        (with("breaches", json!("allow")), "/method/breaches", "parameter-range"),
        (with("k", json!(2)), "/method/k", "unknown-field"),
        (member("utility", json!(["entropy"])), "/utility/0", "guarantee-unsupported"),
        (member("internal", json!({"utility": ["kl"]})), "/internal/utility", "guarantee-unsupported"),
        (member("no_rules_reason", json!("none")), "/no_rules_reason", "parameter-range"),
        (with_excluded, "/attributes/salary/excludable", "guarantee-unsupported"),
    ];
    for (document, pointer, name) in faulty {
        let answer = server.job(&dataset, document.clone()).await;
        let fault = answer.fault(pointer, name);
        if name == "rule-ineligible" {
            assert_eq!((&fault["requested"], &fault["largest_l"]), (&json!("5"), &json!(4)), "{document}");
        }
        let mut plan = document;
        plan["dataset"] = dataset.as_str().into();
        let planned = server.post("/v1/plans", &plan).await;
        assert!(planned.status == 422 || planned.json()["feasible"] == false, "{planned:?}", planned = planned.text());
    }
    // one value is most of all: no diversity at all
    let constant: String = (0..40).map(|i| format!("{},{},{}\n", i % 9, i % 5, u8::from(i % 4 == 0))).collect();
    let dataset = server.dataset(format!("age,s,t\n{constant}")).await;
    let method = json!({"type": "decompose", "quasi_identifiers": ["age"], "sensitive": ["s", "t"]});
    let fault = server.job(&dataset, json!({"method": method})).await.fault("/method/sensitive/1", "rule-ineligible");
    assert_eq!(fault["largest_l"], 1);
    // a known and a sensitive attribute together determine another
    let concluded: String =
        (0..400).map(|i: u32| format!("{},{},{}\n", i % 2, i / 2 % 4, (i % 2 + i / 2 % 4) % 4)).collect();
    let dataset = server.dataset(format!("age,s,t\n{concluded}")).await;
    let problem = server.refused(&dataset, json!({"method": method})).await;
    let fault = &problem["errors"][0];
    assert_eq!(kind(fault), "rule-impossible", "{problem:#}");
    assert_eq!(fault["dependency"]["determinant"].as_array().map(Vec::len), Some(2));
}

#[test]
fn correlated_sensitive_attributes_are_decomposed() {
    // the second determines the first, twenty rows for each of its values
    let rows: String = (0..400).map(|i: u32| format!("{},{},{}\n", i / 20, i % 4, 10 * (i % 4) + i / 4 % 2)).collect();
    let csv = format!("age,s,t\n{rows}");
    let input = Original::new(table(csv.as_bytes()));
    let method =
        json!({"type": "decompose", "quasi_identifiers": ["age"], "sensitive": ["s", "t"], "breaches": "report"});
    let job = input.job(&json!({"method": method})).unwrap();
    let streams = RandomStreams::Keyed(ReleaseKey::from_bytes([9; 32]));
    let (released, files) = release(&job, &EarlierDisclosures::default(), &streams).unwrap_or_else(|e| panic!("{e:?}"));
    let (header, original) = rows_of(&csv);
    judge(&serde_json::to_value(&released.manifest).unwrap(), &files, &original, &header);
}

#[test]
fn changed_folder_fails_verification() {
    for method in [json!({}), json!({"l": {"occ": 2}}), json!({"suppress_chain": true})] {
        let folder = CommandFixture::new(POSTER, &poster(method));
        let manifest = folder.published("out", &["--reproduce", "identity"]);
        assert_eq!(folder.is_verified("out"), [true, true]);
        let changes: [fn(&mut Value); 6] = [
            |manifest| manifest["method_details"]["repeat_free_groups"]["salary"]["count"] = 7.into(),
            |manifest| manifest["method_details"]["breaches_total"]["exclusion"] = 9.into(),
            |manifest| manifest["method_details"]["l"]["salary"] = 2.into(),
            |manifest| manifest["method_details"] = Value::Null,
            |manifest| manifest["rules"][0]["bounded"] = false.into(),
            |manifest| manifest["tables"][0]["parts"][2]["row_meaning"] = "tuples".into(),
        ];
        folder.assert_refuted("out", &manifest, &changes);
        let part = folder.path("out/t1.values1.csv");
        let text = fs::read_to_string(&part).unwrap();
        fs::write(&part, text.replacen("1,2", "1,4", 1)).unwrap();
        assert_eq!(folder.is_verified("out"), [false, false]);
    }
}
