//! Remedies of the faults of jobs that are refused while they run, and of other documents than jobs.

use serde_json::{Value, json};

use super::remedies::faults_of;
use crate::methods::decompose::POSTER;
use crate::support::harness::{Answer, HOSPITAL, Server, hospital_method, kind, patched, text, versatile};

/// Holds that each remedy of the faults of a kind, applied to the document, gets past the fault when it is sent again.
async fn ends_with_each(
    document: &Value,
    answered: &Value,
    name: &str,
    again: impl AsyncFn(&Value) -> Value,
) -> Vec<String> {
    let faults = faults_of(answered);
    let of_kind: Vec<&Value> = faults.iter().filter(|fault| kind(fault) == name).collect();
    assert!(!of_kind.is_empty(), "no {name}: {answered:#}");
    let mut titles = Vec::new();
    for fault in of_kind {
        let remedies = fault["remedies"].as_array().unwrap_or_else(|| panic!("no remedy: {fault:#}"));
        for remedy in remedies {
            let after = again(&patched(document, &remedy["patch"])).await;
            let is_it = |other: &Value| (&other["pointer"], &other["type"]) == (&fault["pointer"], &fault["type"]);
            assert!(!faults_of(&after).iter().any(is_it), "{remedy:#} does not end {fault:#}: {after:#}");
            titles.push(text(&remedy["title"]));
        }
    }
    titles
}

/// The faults of the plan of a document, in one list.
async fn planned(server: &Server, document: &Value) -> Value {
    let plan = server.post("/v1/plans", document).await.json();
    let problems = plan["problems"].as_array().cloned().unwrap_or_else(|| vec![plan.clone()]);
    json!({"errors": problems.iter().flat_map(faults_of).collect::<Vec<_>>()})
}

/// Tables with documents that show to be faulty when rows are read, their faults, and a remedy of each.
fn refused_jobs() -> Vec<(String, Value, &'static str, &'static str)> {
    let counties: String = (0..200).map(|i| format!("z{},c{},d{}\n", i % 8, i % 8 / 2, i * 11 % 13)).collect();
    let sliced = "1,m,flu\n2,m,flu\n3,m,flu\n4,m,a\n5,m,b\n6,m,c\n7,f,a\n8,f,b\n9,f,c\n10,f,d\n11,f,e\n12,f,g\n";
    let people = "name,job,disease\nAlice,Banker,Cancer\nAnn,Banker,Cancer\nBob,Clerk,HIV\nBen,Driver,Cancer\n\
                  Cathy,Engineer,HIV\n";
    let tree = |labels: Value| json!({"Any": labels});
    let joined = |y: &str, measure: Value| {
        json!({"unlisted": "drop", "attributes": {"job": {"taxonomy": tree(json!({"Office": ["Banker", "Clerk"],
            "Field": ["Driver", "Engineer"]}))}}, "method": {"type": "sequential", "publish": ["job", "disease"],
            "requirements": [{"x": ["new.job"], "y": [y], "measure": measure}]}})
    };
    let mut withdrawn = json!({"unlisted": "drop", "method": versatile(&["zip -> disease"])});
    withdrawn["method"]["assume_unknown"] =
        json!([{"determinant": ["zip"], "dependent": ["disease"], "reason": "it is unknown"}]);
    let county_csv = format!("zip,county,disease\n{counties}");
    vec![
        (
            county_csv.clone(),
            json!({"unlisted": "drop", "method": versatile(&["zip -> county"])}),
            "rule-impossible",
            "leave zip out of what the adversary knows",
        ),
        (county_csv, withdrawn, "unknown-dependency", "leave out entry 0 of assume_unknown"),
        (
            format!("age,sex,disease\n{sliced}"),
            json!({"unlisted": "drop",
                "attributes": {"age": {"publish": true, "identifier": false}, "sex": {"publish": true}},
                "method": {"type": "slicing", "sensitive": "disease", "guarantee": {"type": "l_diversity", "l": 3},
                "columns": {"explicit": [["age"], ["sex", "disease"]]}}}),
            "infeasible-root",
            "ask for l = 2",
        ),
        // three of four men have one value, so that no l holds in the column of both
        (
            "age,sex,disease\n1,m,flu\n2,m,flu\n3,m,flu\n4,m,a\n5,f,a\n6,f,b\n7,f,c\n8,f,d\n".to_owned(),
            json!({"unlisted": "drop",
                "attributes": {"age": {"publish": true, "identifier": false}, "sex": {"publish": true}},
                "method": {"type": "slicing", "sensitive": "disease", "guarantee": {"type": "l_diversity", "l": 2},
                "columns": {"explicit": [["age"], ["sex", "disease"]]}}}),
            "infeasible-root",
            "give the sensitive attribute a column of its own",
        ),
        (
            people.to_owned(),
            joined("new.#key", json!({"type": "xy_anonymity", "k": 9})),
            "infeasible-root",
            "ask for k = 5",
        ),
        (
            people.to_owned(),
            joined("new.disease", json!({"type": "xy_linkability", "h": "0.5"})),
            "infeasible-root",
            "ask for h = 0.6",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_remedy_of_a_refused_job_gets_past_its_fault() {
    let server = Server::start().await;
    for (csv, mut document, name, title) in refused_jobs().into_iter().chain(refused_jobs_of_other_methods()) {
        let dataset = server.newcomers(&csv).await;
        let problem = server.refused(&dataset, document.clone()).await;
        document["dataset"] = dataset.into();
        let again = async |patched: &Value| planned(&server, patched).await;
        let titles = ends_with_each(&document, &problem, name, again).await;
        assert!(titles.iter().any(|offered| offered.starts_with(title)), "{name}: {titles:?}");
    }
    server.stop().await;
}

/// The same of buckets, decompositions and several sensitive attributes.
fn refused_jobs_of_other_methods() -> Vec<(String, Value, &'static str, &'static str)> {
    // four values, fifteen rows each
    let even: String = (0..60).map(|i| format!("{},d{}\n", i % 7, i % 4)).collect();
    let even = format!("age,disease\n{even}");
    let bucketize = |members: Value| {
        let mut method = json!({"type": "bucketize", "sensitive": "disease", "quasi_identifiers": ["age"]});
        method.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        json!({"unlisted": "drop", "method": method})
    };
    let share = json!({"explicit": {}, "otherwise": "0.3"});
    // one region has two values of b, and a determines the region
    let strata: String = (0..144)
        .map(|i| (i, i % 2, i / 2))
        .map(|(i, r, j)| format!("{},r{r},a{},b{}\n", i % 7, r * 3 + j % 3, j / 3 % if r == 0 { 2 } else { 6 }))
        .collect();
    let lists = json!({"unlisted": "drop", "method": {"type": "decompose", "quasi_identifiers": ["age", "region"],
        "sensitive": ["a", "b"], "primary": "a", "l": {"a": 2, "b": 3}, "breaches": "report"}});
    let published = json!({"sex": {"publish": true}, "zip": {"publish": true}, "birth": {"publish": true}});
    let poster = json!({"unlisted": "drop", "attributes": published,
        "method": {"type": "decompose", "sensitive": ["occ", "salary"]}});
    let tied = "1,x,p\n2,x,p\n3,y,q\n4,y,q\n5,z,r\n6,z,r\n";
    let several = json!({"unlisted": "drop", "attributes": {"a": {"publish": true, "identifier": false}},
        "method": {"type": "versatile", "algorithm": "multi_sa", "rules": ["a -> b", "a -> c"],
            "default_guarantee": {"type": "l_diversity", "l": 2}}});
    let tree = json!({"Any": {"Some": ["d0", "d1"], "Other": ["d2", "d9"]}});
    let mut along = json!({"unlisted": "drop", "method": versatile(&["age -> disease"])});
    along["attributes"] = json!({"disease": {"taxonomy": tree}});
    vec![
        (
            even.clone(),
            bucketize(json!({"thresholds": {"explicit": {"d1": "0.3"}}})),
            "threshold-missing",
            "allow every other value 0.3",
        ),
        (
            even.clone(),
            bucketize(json!({"thresholds": share, "max_size": 3})),
            "infeasible-sizes",
            "search sizes up to 6",
        ),
        (
            even.clone(),
            bucketize(json!({"thresholds": share, "sizes": [{"size": 4, "buckets": 14}]})),
            "infeasible-sizes",
            "search for several sizes",
        ),
        (
            even.clone(),
            bucketize(json!({"thresholds": share, "sizes": "optimal", "max_size": 10_000})),
            "work-limit",
            "search sizes up to 1250",
        ),
        (
            even.clone(),
            bucketize(json!({"thresholds": {"uniform": {"l": 2}}, "counterfeits": {"per_bucket": 4}})),
            "domain-too-small",
            "ask for 2 counterfeits",
        ),
        (even, along, "taxonomy-value-missing", "leave the taxonomy out"),
        (format!("age,region,a,b\n{strata}"), lists, "no-noise", "ask for l = 2"),
        (POSTER.to_owned(), poster, "can-be-concluded", "suppress the rows that lead to other values"),
        (format!("a,b,c\n{tied}"), several, "multi-sa-empty", "use uad"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn thresholds_of_no_value_are_mended_in_a_plan() {
    let server = Server::start().await;
    let rows: String = (0..60).map(|i| format!("{},{}\n", i % 7, ["flu", "HIV", "gout"][i % 3])).collect();
    let dataset = server.dataset(format!("age,disease\n{rows}")).await;
    let thresholds = json!({"explicit": {"hiv": "0.4"}, "otherwise": "0.5"});
    let document = json!({"dataset": dataset, "unlisted": "drop", "method": {"type": "bucketize",
        "sensitive": "disease", "quasi_identifiers": ["age"], "thresholds": thresholds}});
    let again = async |patched: &Value| planned(&server, patched).await;
    let answered = again(&document).await;
    let titles = ends_with_each(&document, &answered, "threshold-unused", again).await;
    assert_eq!(titles, ["name the values that occur", "leave these values out"], "{answered:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn remedies_of_a_job_on_a_policy_fit_what_was_sent() {
    let server = Server::start().await;
    let (csv, document, name, _) = refused_jobs().swap_remove(2);
    server.put("/v1/policies/slices", &json!({ "specification": document })).await.ok(201);
    let dataset = server.dataset(csv).await;
    let sent = json!({"dataset": dataset, "policy": "slices-v1"});
    let problem = server.refused(&dataset, sent.clone()).await;
    let remedy = &problem["errors"][0]["remedies"][0];
    assert_eq!((kind(&problem["errors"][0]), text(&remedy["title"]).as_str()), (name, "ask for l = 2"), "{problem:#}");
    let mended = patched(&sent, &remedy["patch"]);
    assert_eq!(mended["policy"], "slices-v1");
    server.publish(&dataset, mended).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frequent_value_gets_another_guarantee() {
    let server = Server::start().await;
    let rows: String = (0..60).map(|i| format!("{},{}\n", i % 7, if i % 10 < 7 { "no" } else { "yes" })).collect();
    let dataset = server.dataset(format!("age,ill\n{rows}")).await;
    let document = json!({"dataset": dataset, "method": versatile(&["age -> ill"])});
    let answered = server.post("/v1/jobs", &document).await.json();
    let again = async |patched: &Value| planned(&server, patched).await;
    let titles = ends_with_each(&document, &answered, "rule-ineligible", again).await;
    let expected = ["bound the distance from the table", "ask that no value takes more than 70% of a bucket"];
    assert_eq!(titles, expected, "{answered:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_get_the_nearest_one_and_hide_no_fault() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let policy = json!({"specification": {"unlisted": "drop", "method": versatile(&["gender -> zipcode"])}});
    server.put("/v1/policies/wards", &policy).await.ok(201);
    server.put("/v1/taxonomies/races", &json!({"taxonomy": {"Any": ["a", "b"]}})).await.ok(201);
    for policy in ["ward-v1", "wards-v7", "wards"] {
        let document = json!({"dataset": dataset, "policy": policy, "priority": 101, "surprise": 1,
            "attributes": {"race": {"taxonomy": "race"}, "nobody": {"drop": true}}});
        let answer = server.post("/v1/jobs", &document).await;
        answer.fault("/priority", "parameter-range");
        answer.fault("/surprise", "unknown-field");
        answer.fault("/attributes/nobody", "unknown-attribute");
        let taxonomy = answer.fault("/attributes/race/taxonomy", "unknown-taxonomy");
        assert_eq!(
            (&taxonomy["nearest"], &taxonomy["remedies"][0]["patch"][0]["value"]),
            (&json!(["races"]), &json!("races-v1"))
        );
        let name = if policy == "wards" { "parameter-range" } else { "unknown-policy" };
        let fault = answer.fault("/policy", name);
        assert_eq!(faults_of(&answer.json()).len(), 5, "{:#}", answer.json());
        let mended = patched(&document, &fault["remedies"][0]["patch"]);
        assert_eq!(mended["policy"], "wards-v1", "{fault:#}");
        let after = faults_of(&server.post("/v1/jobs", &mended).await.json());
        assert!(after.iter().all(|other| other["pointer"] != "/policy"), "{after:#?}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_other_than_jobs_are_mended() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let release = server.publish(&dataset, json!({"unlisted": "drop", "method": hospital_method()})).await;
    let release = text(&release["id"]);
    let guarantees = json!({"type": "k_anonymity", "k": 2});
    let generalize = json!({"type": "generalize", "quasi_identifiers": ["age"], "sensitive": ["race"],
        "guarantee": guarantees});
    let two = json!({"type": "l_diversity", "l": 2});
    let rules = json!({"type": "versatile", "rules": ["age => race", "age, race -> race"], "default_guarantee": two});
    let repeated = json!({"Any": {"A": ["x", "y"], "B": ["z", "x"]}});
    let query = json!({"attribute": "agee", "in": [30]});
    let put = |path: &str| (true, path.to_owned());
    let post = |path: &str| (false, path.to_owned());
    let cases = [
        (
            put("/v1/policies/p"),
            json!({"specification": {"method": rules}}),
            "rule-malformed",
            "write -> between the sides",
        ),
        (
            put("/v1/policies/p"),
            json!({"specification": {"method": generalize}}),
            "unknown-field",
            "call it guarantees, and write an array of it",
        ),
        (put("/v1/policies/p"), json!({"specificatio": {"method": rules}}), "unknown-field", "call it specification"),
        (put("/v1/taxonomies/t"), json!({"taxonomy": repeated}), "taxonomy-conflict", "keep the first of equal labels"),
        (put("/v1/populations/people"), json!({"descriptio": "x"}), "unknown-field", "call it description"),
        (
            post(&format!("/v1/releases/{release}/queries")),
            json!({"queries": [{"where": [query]}]}),
            "unknown-attribute",
            "name age",
        ),
        (
            post(&format!("/v1/releases/{release}/attacks")),
            json!({"attack": "exact_posterior"}),
            "parameter-range",
            "write \"exact_posteriors\"",
        ),
        (post(&format!("/v1/datasets/{dataset}/suggestion")), json!({"role": {}}), "unknown-field", "call it roles"),
        (
            post("/v1/analyses/differential-inference"),
            json!({"x": "10", "y": "5", "scale": "1", "treshold": "1/2"}),
            "unknown-field",
            "call it threshold",
        ),
        (post("/v1/verifications"), json!({"tables": [], "ruls": ["age -> race"]}), "unknown-field", "call it rules"),
    ];
    for ((is_put, path), document, name, title) in cases {
        let send = async |document: &Value| -> Answer {
            if is_put { server.put(&path, document).await } else { server.post(&path, document).await }
        };
        let answered = send(&document).await.json();
        let again = async |patched: &Value| send(patched).await.json();
        let titles = ends_with_each(&document, &answered, name, again).await;
        assert!(titles.iter().any(|offered| offered == title), "{path} {titles:?}: {answered:#}");
    }
    server.stop().await;
}

/// Methods whose bound the data cannot keep, with the pointer of the fault and the strictest bounds that it can.
fn bounds() -> Vec<(String, Value, &'static str, Vec<&'static str>)> {
    let sliced = |l: u64, shared: &str, sensitive: &str| {
        json!({"type": "slicing", "sensitive": sensitive, "guarantee": {"type": "l_diversity", "l": l},
            "columns": {"explicit": [["age", "gender"], [shared, sensitive]]}})
    };
    // of ten persons four have a, three b, two c, and one d
    let values: String =
        (0..10).map(|i| format!("{},{}\n", i % 5, ["a", "a", "a", "a", "b", "b", "b", "c", "c", "d"][i])).collect();
    let values = format!("age,disease\n{values}");
    let of = |guarantee: Value| {
        let rule = json!({"quasi_identifiers": ["age"], "sensitive": ["disease"], "guarantee": guarantee});
        json!({"type": "versatile", "rules": [rule]})
    };
    let bucketize = |thresholds: Value| {
        json!({"type": "bucketize", "sensitive": "disease", "quasi_identifiers": ["age"], "sizes": "two",
            "thresholds": thresholds})
    };
    let rule = "/method/rules/0";
    let with = |method: Value, pointer, titles| (values.clone(), method, pointer, titles);
    vec![
        (HOSPITAL.to_owned(), sliced(6, "hospital", "zipcode"), "/method/guarantee", vec!["ask for l = 2"]),
        // counts of icd9 allow l = 3, its rows with race none
        (HOSPITAL.to_owned(), sliced(50, "race", "icd9"), "/method/guarantee", vec![]),
        with(of(json!({"type": "l_diversity", "l": 6})), rule, vec!["ask for l = 2"]),
        with(of(json!({"type": "distinct_l_diversity", "l": 6})), rule, vec!["ask for l = 4"]),
        with(of(json!({"type": "entropy_l_diversity", "l": 5})), rule, vec!["ask for l = 3.5"]),
        with(
            of(json!({"type": "recursive_l_diversity", "c": 1, "l": 3})),
            rule,
            vec!["ask for l = 2", "ask for c = 1.4"],
        ),
        with(of(json!({"type": "alpha_k", "alpha": "0.3", "k": 4})), rule, vec!["ask for alpha = 0.4"]),
        with(of(json!({"type": "alpha_k", "alpha": "0.5", "k": 40})), rule, vec!["ask for k = 10"]),
        with(bucketize(json!({"uniform": {"l": 5}})), "/method", vec!["ask for l = 2"]),
        with(
            bucketize(json!({"explicit": {"d": "0.5"}, "otherwise": "0.2"})),
            "/method/thresholds",
            vec!["let each value take 0.4 of a bucket"],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_are_weakened_to_the_strictest_that_hold() {
    let server = Server::start().await;
    for (csv, method, pointer, titles) in bounds() {
        let dataset = server.newcomers(&csv).await;
        let mut document = json!({"dataset": dataset, "unlisted": "drop", "method": method});
        let sliced =
            method["columns"]["explicit"].as_array().into_iter().flatten().filter_map(Value::as_array).flatten();
        for name in sliced.filter(|name| **name != method["sensitive"]).map(text) {
            document["attributes"][name] = json!({"publish": true});
        }
        // refused by the counts of columns, or once the rows are read
        let job = server.post("/v1/jobs?wait=60", &document).await.json();
        let refused = if job["status"] == "refused" { job["problem"].clone() } else { job };
        for answered in [refused, planned(&server, &document).await] {
            let faults = faults_of(&answered);
            let fault = faults.iter().find(|fault| fault["pointer"] == pointer);
            let fault = fault.unwrap_or_else(|| panic!("{method}: {answered:#}"));
            let remedies = fault["remedies"].as_array().cloned().unwrap_or_default();
            let offered: Vec<String> = remedies.iter().map(|remedy| text(&remedy["title"])).collect();
            assert!(titles.iter().all(|title| offered.iter().any(|of| of == title)), "{method} {offered:?}: {fault:#}");
            for remedy in &remedies {
                let after = server.post("/v1/plans", &patched(&document, &remedy["patch"])).await.json();
                assert_eq!(after["feasible"], true, "{remedy:#} of {method}: {after:#}");
            }
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_rules_leave_the_remedies_of_others() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let mut method = versatile(&["agee -> race", "age -> icd9"]);
    method["default_guarantee"]["l"] = 6.into();
    let document = json!({"dataset": dataset, "unlisted": "drop", "method": method});
    let refused = server.post("/v1/jobs", &document).await.json();
    for answered in [refused, planned(&server, &document).await] {
        let faults = faults_of(&answered);
        let fault = |pointer: &str, name: &str| {
            let found = faults.iter().find(|fault| fault["pointer"] == pointer && kind(fault) == name);
            found.unwrap_or_else(|| panic!("{pointer} {name}: {answered:#}"))
        };
        let named = fault("/method/rules/0", "unknown-attribute");
        let weaker = fault("/method/rules/1", "rule-ineligible");
        assert_eq!(
            (&named["remedies"][0]["title"], &weaker["remedies"][0]["title"]),
            (&json!("name age"), &json!("ask for l = 3"))
        );
        // one after the other
        let mended = patched(&patched(&document, &weaker["remedies"][0]["patch"]), &named["remedies"][0]["patch"]);
        let rules = &mended["method"]["rules"];
        assert_eq!((&rules[0], &rules[1]["guarantee"]["l"]), (&json!("age -> race"), &json!(3)), "{rules:#}");
    }
    server.stop().await;
}
