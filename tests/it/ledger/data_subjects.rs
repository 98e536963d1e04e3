//! The ledger remembers people: who stands in a dataset decides what may be published of it, whatever files and columns are
//! called.

use guardian::identity::Preset;
use serde_json::{Value, json};

use crate::security::identity::Guarded;
use crate::support::harness::{Client, Server, kind, text, versatile};

/// Patients by number: id, age, ward, sex and diagnosis. Each diagnosis goes with its ward's half of the drugs.
pub(crate) fn patients(numbers: impl IntoIterator<Item = u32>, header: &str) -> String {
    let row = |n: u32| {
        let mix = (u64::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mix = (mix ^ mix >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20;
        format!(
            "p{n},{},w{},{},d{}\n",
            20 + mix % 50,
            mix / 50 % 7,
            ["f", "m"][(mix / 350 % 2) as usize],
            mix / 700 % 9
        )
    };
    std::iter::once(format!("{header}\n")).chain(numbers.into_iter().map(row)).collect()
}

pub(crate) const HEADER: &str = "id,age,ward,sex,dx";

async fn uploaded(server: &Client, query: &str, csv: impl Into<Vec<u8>>) -> Value {
    server.upload(query, csv).await.ok(201)
}

fn protected() -> Value {
    json!({"unlisted": "drop", "method": versatile(&["age -> dx"])})
}

/// The attributes in one table, unprotected.
pub(crate) fn plain(attributes: &[&str]) -> Value {
    let publish: serde_json::Map<_, _> =
        attributes.iter().map(|name| ((*name).to_owned(), json!({"publish": true}))).collect();
    json!({"unlisted": "drop", "attributes": publish, "no_rules_reason": "asked for by the archive",
        "method": {"type": "versatile", "rules": []}})
}

async fn refused_at_once(server: &Client, dataset: &Value, mut document: Value, name: &str) -> Value {
    document["dataset"] = dataset["id"].clone();
    server.post("/v1/jobs", &document).await.problem(409, name)
}

async fn plan(server: &Client, dataset: &Value, mut document: Value) -> Value {
    document["dataset"] = dataset["id"].clone();
    server.post("/v1/plans", &document).await.ok(200)
}

fn id(dataset: &Value) -> String {
    text(&dataset["id"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_key_is_there_and_unique() {
    let server = Server::start().await;
    let upload = async |csv: &str| server.upload("record_key=id,ward", csv).await;
    let twice = upload("id,ward,x\n1,a,7\n1,b,7\n2,a,7\n1,b,8\n2,a,9\n").await.problem(422, "upload-malformed");
    assert_eq!((&twice["row"], &twice["rows"]), (&json!(4), &json!([2, 4])));
    let missing = upload("id,ward,x\n1,a,7\n2,,8\n").await.problem(422, "upload-malformed");
    assert_eq!((&missing["row"], &missing["column"]), (&json!(2), &json!("ward")));
    server.assert_nothing_stored().await;
    upload("id,ward,x\n1,a,7\n1,b,7\n2,a,7\n").await.ok(201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn table_with_one_added_patient_is_refused() {
    let server = Server::start().await;
    server.population("clinic", &["id"]).await;
    let night = "population=clinic";
    let first = uploaded(&server, night, patients(0..400, HEADER)).await;
    server.publish(&id(&first), protected()).await;
    let second = uploaded(&server, night, patients(1..401, HEADER)).await;
    let planned = plan(&server, &second, protected()).await;
    let counts = json!({"common": 399, "added": 1, "removed": 1});
    assert_eq!(
        (&planned["composition"]["verdict"], &planned["composition"]["counts"]),
        (&json!("overlapping"), &counts)
    );
    assert_eq!((&planned["feasible"], kind(&planned["problems"][0])), (&json!(false), "overlapping-people"));
    let problem = refused_at_once(&server, &second, protected(), "overlapping-people").await;
    for count in ["common", "added", "removed"] {
        assert_eq!(problem[count], counts[count]);
    }
    // the ledger keeps every disclosure
    server.delete(&format!("/v1/datasets/{}", id(&first))).await.ok(200);
    refused_at_once(&server, &second, protected(), "overlapping-people").await;

    let added = uploaded(&server, night, patients(400..500, HEADER)).await;
    server.publish(&id(&added), protected()).await;
    // a published value that was corrected is of the same patient
    let corrected = patients(400..500, HEADER).replacen(",d3\n", ",d4\n", 1);
    let corrected = uploaded(&server, night, corrected).await;
    let problem = refused_at_once(&server, &corrected, protected(), "overlapping-people").await;
    assert_eq!((&problem["common"], &problem["added"]), (&json!(100), &json!(0)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_people_with_more_columns_are_the_same_content() {
    let server = Server::start().await;
    server.population("s", &["id"]).await;
    let csv = patients(0..300, HEADER);
    let wider: String = csv
        .lines()
        .zip(0..)
        .map(|(line, n)| format!("{line},{}\n", if n == 0 { "town".into() } else { format!("t{}", n % 3) }))
        .collect();
    let first = uploaded(&server, "population=s", csv).await;
    let release = server.publish(&id(&first), protected()).await;
    let second = uploaded(&server, "population=s", wider.clone()).await;
    let planned = plan(&server, &second, plain(&["age", "dx"])).await;
    assert_eq!(
        (&planned["composition"]["verdict"], &planned["composition"]["against"]),
        (&json!("violated"), &json!([release["id"]]))
    );
    assert_eq!(kind(&server.refused(&id(&second), plain(&["age", "dx"])).await), "composition-violated");
    server.publish(&id(&second), plain(&["town", "sex"])).await;
    // a column that says the same of everyone is that column
    let renamed = wider.replacen("age", "years", 1);
    let third = uploaded(&server, "population=s", renamed).await;
    assert_eq!(kind(&server.refused(&id(&third), plain(&["years", "dx"])).await), "composition-violated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_under_a_new_name_is_refused_until_it_is_declared() {
    let server = Server::start().await;
    server.population("s", &["id"]).await;
    let state = async |document: Value| server.post("/v1/series/s/disclosures", &document).await;
    let survey = json!({"name": "survey-2024", "attributes": ["years", "ward"], "protection": "plain"});
    let recorded = state(json!({"reason": "published by the ministry", "tables": [survey]})).await.ok(201);
    let entry = &recorded["disclosures"][0];
    assert_eq!((&entry["release"], &entry["table"]), (&Value::Null, &json!("survey-2024")));
    assert_eq!(entry["unproven"], json!({"reason": "published by the ministry"}));

    // the survey names years, which the dataset has not; age may be it
    let dataset = uploaded(&server, "population=s", patients(0..300, HEADER)).await;
    let planned = plan(&server, &dataset, protected()).await;
    assert_eq!(planned["composition"]["verdict"], "undecidable");
    let problem = refused_at_once(&server, &dataset, protected(), "composition-undecidable").await;
    assert_eq!(problem["attributes"], json!(["age", "dx"]));
    state(json!({"reason": "as the codebook says", "aliases": {"age": "years", "dx": "dx"}})).await.ok(201);
    // with ward and years together in the open, a table of ward and dx leads from age to dx
    let planned = plan(&server, &dataset, protected()).await;
    assert_eq!(
        (&planned["feasible"], &planned["composition"]["verdict"]),
        (&json!(true), &json!("safe")),
        "{planned:#}"
    );
    server.publish(&id(&dataset), protected()).await;
    assert_eq!(kind(&server.refused(&id(&dataset), plain(&["ward", "dx"])).await), "composition-violated");

    // an attribute that is computed from another is that one
    state(json!({"reason": "computed by the warehouse", "functions": {"sex": ["dx"]}})).await.ok(201);
    assert_eq!(kind(&server.refused(&id(&dataset), plain(&["age", "sex"])).await), "composition-violated");

    let series = server.get("/v1/series/s").await.ok(200);
    let attribute = |name: &str| series["attributes"].as_array().unwrap().iter().find(|of| of["name"] == name).unwrap();
    assert_eq!(attribute("years")["aliases"], json!(["age"]));
    assert_eq!(attribute("sex")["function_of"], json!(["dx"]));
    assert_eq!(series["disclosures"].as_array().unwrap().iter().filter(|of| !of["unproven"].is_null()).count(), 1);
    // statements stay
    state(json!({"reason": "no", "aliases": {"age": "dx"}})).await.problem(409, "conflict");
    state(json!({"reason": "no", "aliases": {"years": "age"}})).await.problem(409, "conflict");
    let problem =
        state(json!({"reason": "no", "aliases": {"age": "dx", "new": "years"}, "functions": {"dx": ["sex"]}}));
    let problem = problem.await.problem(409, "conflict");
    assert!(["age is declared", "dx would"].iter().all(|part| text(&problem["detail"]).contains(part)), "{problem:#}");
    state(json!({"reason": "no"})).await.problem(400, "malformed-body");
    state(json!({"reason": "no", "tables": [{"name": "t", "attributes": [], "protection": "plain"}]}))
        .await
        .problem(400, "malformed-body");
    state(json!({"reason": "no", "tables": [{"name": "t", "attributes": ["a"], "protection": "guarding"}]}))
        .await
        .problem(400, "malformed-body");
    server.stop().await;
}

/// The ledger of a name that nothing has would protect nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_under_a_mistyped_name_is_refused() {
    let server = Server::start().await;
    server.population("clinic", &["id"]).await;
    server.population("births", &[]).await;
    let table = json!({"name": "old", "attributes": ["years", "dx"], "protection": "plain"});
    let statement = json!({"reason": "published by the ministry", "tables": [table]});
    let named = async |name: &str| server.post(&format!("/v1/series/{name}/disclosures"), &statement).await;
    let problem = named("clinc").await.problem(422, "unknown-population");
    assert_eq!(problem["nearest"][0], "clinic", "{problem:#}");
    let undeclared = id(&server.upload("name=t", patients(0..300, HEADER)).await.ok(201));
    let keyed = uploaded(&server, "population=clinic", patients(0..300, HEADER)).await;
    // a table of a population has no ledger of its own
    let problem = named(&id(&keyed)).await.problem(422, "unknown-population");
    assert_eq!(problem["nearest"], json!(["clinic"]), "{problem:#}");
    for name in [uuid::Uuid::now_v7().to_string(), "x".repeat(501), "population:clinic".to_owned()] {
        named(&name).await.problem(422, "unknown-population");
    }
    named("%00").await.problem(422, "unknown-population");
    assert_eq!(server.stored("series_statements").await, 0);

    named(&undeclared).await.ok(201);
    named("clinic").await.ok(201);
    refused_at_once(&server, &keyed, plain(&["age", "dx"]), "composition-undecidable").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exclusive_external_table_tolerates_no_other() {
    let server = Server::start().await;
    server.population("s", &[]).await;
    let table = json!({"name": "old", "attributes": ["ward"], "protection": "exclusive"});
    server.post("/v1/series/s/disclosures", &json!({"reason": "r", "tables": [table]})).await.ok(201);
    let dataset = uploaded(&server, "population=s", patients(0..300, HEADER)).await;
    assert_eq!(kind(&server.refused(&id(&dataset), plain(&["ward", "sex"])).await), "composition-violated");
    server.publish(&id(&dataset), plain(&["age", "sex"])).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_determinant_that_comes_later_is_found() {
    let server = Server::start().await;
    // a determines b
    let rows: String = (0..480).map(|n: u32| format!("q{},a{},b{}\n", n / 12 % 4, n % 12, n % 12 / 2)).collect();
    let dataset = uploaded(&server, "name=t", format!("q,a,b\n{rows}")).await;
    let first = json!({"unlisted": "drop", "method": versatile(&["q -> b"])});
    let release = server.publish(&id(&dataset), first).await;
    // b is no column of the job, but the adversary knows that a determines it
    let problem = server.refused(&id(&dataset), plain(&["q", "a"])).await;
    assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]));
    let planned = plan(&server, &dataset, plain(&["q", "a"])).await;
    assert_eq!(planned["composition"]["verdict"], "violated");

    // without a bound for its determinants, no attribute may reveal b
    for guarantee in [
        json!({"type": "t_closeness", "t": "0.3"}),
        json!({"type": "thresholds", "explicit": {"b0": "0.3"}, "otherwise": "0.6"}),
    ] {
        let server = Server::start().await;
        let dataset = uploaded(&server, "name=t", format!("q,a,b\n{rows}")).await;
        let mut first = json!({"unlisted": "drop", "method": versatile(&["q -> b"])});
        first["method"]["default_guarantee"] = guarantee.clone();
        let release = server.publish(&id(&dataset), first.clone()).await;
        let problem = server.refused(&id(&dataset), plain(&["q", "a"])).await;
        assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]), "{guarantee}");
        server.stop().await;
        // in reverse order: the determinant of b is published first
        let server = Server::start().await;
        let dataset = uploaded(&server, "name=t", format!("q,a,b\n{rows}")).await;
        server.publish(&id(&dataset), plain(&["q", "a"])).await;
        let problem = server.refused(&id(&dataset), first).await;
        assert_eq!(kind(&problem), "composition-violated", "{guarantee}: {problem:#}");
        server.stop().await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn correlated_attributes_are_refused_in_two_releases() {
    let server = Server::start().await;
    // t determines s in three of four rows
    let row = |n: u32| {
        format!("q{},s{},t{}\n", n / 8 % 5, n % 8, if (n / 40).is_multiple_of(4) { (n + 3) % 8 } else { n % 8 })
    };
    let rows: String = (0..960).map(row).collect();
    let dataset = uploaded(&server, "name=t", format!("q,s,t\n{rows}")).await;
    let job = |rule: &str, correlated: &str| {
        let mut job = json!({"unlisted": "drop", "method": versatile(&[rule])});
        job["method"]["correlated"] = correlated.into();
        job
    };
    server.publish(&id(&dataset), job("q -> s", "together")).await;
    let problem = server.refused(&id(&dataset), job("q -> t", "together")).await;
    assert_eq!(kind(&problem), "composition-violated");
    assert!(problem["detail"].as_str().unwrap().contains("predict each other"), "{problem}");
    server.publish(&id(&dataset), job("q -> t", "separate")).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unproven_release_needs_scope_and_is_marked() {
    let server = Server::start().await;
    server.population("s", &[]).await;
    let dataset = uploaded(&server, "population=s", patients(0..300, HEADER)).await;
    server.publish(&id(&dataset), protected()).await;
    let mut job = plain(&["age", "dx"]);
    job["composition"] = json!({"mode": "report", "reason": "the court wants it"});
    let planned = plan(&server, &dataset, job.clone()).await;
    assert_eq!((&planned["feasible"], &planned["composition"]["verdict"]), (&json!(true), &json!("violated")));
    let release = server.publish(&id(&dataset), job.clone()).await;
    assert_eq!(release["composition"], "unproven");
    let series = server.get("/v1/series/s").await.ok(200);
    let disclosure =
        series["disclosures"].as_array().unwrap().iter().find(|of| of["release"] == release["id"]).unwrap();
    assert_eq!(
        (&disclosure["protection"], &disclosure["unproven"]["reason"]),
        (&json!("exclusive"), &json!("the court wants it"))
    );
    // beside it nothing can be shown of what shares an attribute
    assert_eq!(kind(&server.refused(&id(&dataset), plain(&["age", "sex"])).await), "composition-violated");
    let mut enforced = job.clone();
    enforced["composition"] = json!({"mode": "enforce"});
    assert_eq!(kind(&server.refused(&id(&dataset), enforced).await), "composition-violated");
    job["composition"]["reason"] = Value::Null;
    job["dataset"] = dataset["id"].clone();
    server.post("/v1/jobs", &job).await.fault("/composition/reason", "parameter-range");
    assert!(Preset::Officer.scopes().contains(guardian::identity::Scope::LedgerOverride));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unproven_release_without_scope_is_forbidden() {
    let guarded = Guarded::start().await;
    let (pipeline, officer) = (guarded.preset(Preset::Pipeline), guarded.preset(Preset::Officer));
    officer.population("s", &[]).await;
    let dataset = uploaded(&pipeline, "population=s", patients(0..300, HEADER)).await;
    let mut specification = plain(&["age", "dx"]);
    specification["composition"] = json!({"mode": "report", "reason": "the court wants it"});
    officer.put("/v1/policies/court", &json!({"specification": specification})).await.ok(201);
    let mut declared = specification.clone();
    declared["dataset"] = dataset["id"].clone();
    let by_policy = json!({"dataset": dataset["id"], "policy": "court-v1"});
    for document in [&declared, &by_policy] {
        let problem = pipeline.post("/v1/jobs", document).await.problem(403, "forbidden");
        assert_eq!(problem["scope"], "ledger:override");
    }
    assert!(officer.items("/v1/jobs").await.is_empty());
    let release = officer.publish(&id(&dataset), specification.clone()).await;
    assert_eq!(release["composition"], "unproven");
    // nor is it given to somebody else
    pipeline.post("/v1/jobs", &declared).await.problem(403, "forbidden");
    // it is the mode that needs the scope
    specification = plain(&["sex"]);
    specification["composition"] = json!({"mode": "enforce"});
    assert_eq!(pipeline.publish(&id(&dataset), specification).await["composition"], "same_dataset_only");
    let alias = json!({"reason": "as the codebook says", "aliases": {"age": "years"}});
    let problem = pipeline.post("/v1/series/s/disclosures", &alias).await.problem(403, "forbidden");
    assert_eq!(problem["scope"], "ledger:override");
    assert_eq!(officer.get("/v1/series/s").await.ok(200)["attributes"].to_string().matches("years").count(), 0);
    officer.post("/v1/series/s/disclosures", &alias).await.ok(201);
    guarded.server.stop().await;
}

/// Blanks, leading zeros and case do not distinguish persons across datasets, but do within one dataset.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_written_differently_are_the_same_people() {
    let server = Server::start().await;
    server.population("s", &["id"]).await;
    let table = |keys: &[&str]| {
        let rows = keys.iter().enumerate().map(|(at, key)| format!("{key},{},{}\n", 20 + at % 7, ["f", "m"][at % 2]));
        "id,age,sex\n".to_owned() + &rows.collect::<String>()
    };
    let show = plain(&["sex"]);
    let first = uploaded(&server, "population=s", table(&["7", "17", "jos\u{e9}", "b4", "b5", "b6"])).await;
    server.publish(&id(&first), show.clone()).await;
    for other in ["007", " 17", "17.0", "jose\u{301}", "B4"] {
        let dataset = uploaded(&server, "population=s", table(&[other, "c1", "c2", "c3"])).await;
        let problem = refused_at_once(&server, &dataset, show.clone(), "overlapping-people").await;
        assert_eq!(
            (&problem["common"], &problem["added"], &problem["removed"]),
            (&json!(1), &json!(3), &json!(5)),
            "{other}"
        );
    }
    // others are judged alone
    let dataset = uploaded(&server, "population=s", table(&["8", "18", "maria"])).await;
    server.publish(&id(&dataset), show.clone()).await;
    let twice = "id,age,sex\n7,20,f\n7,21,f\n";
    server.upload("population=s", twice).await.problem(422, "upload-malformed");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_other_people_go_side_by_side() {
    let server = Server::start_with(|config| config.workers = 4).await;
    server.population("s", &["id"]).await;
    let mut datasets = Vec::new();
    for night in 0..4 {
        datasets.push(uploaded(&server, "population=s", patients(night * 200..night * 200 + 200, HEADER)).await);
    }
    let job = |at: usize| server.job(datasets[at]["id"].as_str().unwrap(), protected());
    let (a, b, c, d) = tokio::join!(job(0), job(1), job(2), job(3));
    for answer in [a, b, c, d] {
        assert_eq!(answer.ok(200)["status"], "succeeded");
    }
    // two that overlap: one must see the other
    let x = uploaded(&server, "population=s", patients(5000..5200, HEADER)).await;
    let y = uploaded(&server, "population=s", patients(5001..5201, HEADER)).await;
    let (x, y) = (id(&x), id(&y));
    let (x, y) = tokio::join!(server.job(&x, protected()), server.job(&y, protected()));
    let end = |answer: &crate::support::harness::Answer| match answer.status {
        200 => text(&answer.json()["status"]),
        _ => kind(&answer.json()).to_owned(),
    };
    let mut ends = [end(&x), end(&y)];
    ends.sort_unstable();
    assert!(ends == ["refused", "succeeded"] || ends == ["overlapping-people", "succeeded"], "{ends:?}");
    server.stop().await;
}
