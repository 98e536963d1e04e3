//! The ledger remembers people: who stands in a dataset decides what may be published of it, whatever files, series and columns
//! are called.

use guardian::identity::Preset;
use serde_json::{Value, json};

use crate::security::identity::Guarded;
use crate::support::harness::{Client, OTHERS, Server, kind, text, versatile};

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
fn plain(attributes: &[&str]) -> Value {
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
    let upload = async |csv: &str| server.upload("record_key=id,ward&series=s", csv).await;
    let twice = upload("id,ward,x\n1,a,7\n1,b,7\n2,a,7\n1,b,8\n2,a,9\n").await.problem(422, "upload-malformed");
    assert_eq!((&twice["row"], &twice["rows"]), (&json!(4), &json!([2, 4])));
    let missing = upload("id,ward,x\n1,a,7\n2,,8\n").await.problem(422, "upload-malformed");
    assert_eq!((&missing["row"], &missing["column"]), (&json!(2), &json!("ward")));
    server.assert_nothing_stored().await;
    assert_eq!(server.stored("people_pieces").await, 0);
    upload("id,ward,x\n1,a,7\n1,b,7\n2,a,7\n").await.ok(201);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overlap_is_found_under_other_column_names() {
    let server = Server::start().await;
    let first = uploaded(&server, "series=clinic", patients(0..3000, HEADER)).await;
    assert_eq!(first["overlaps"], json!([]));
    // two in a hundred, under other names, and one column at another place
    let renamed = patients(2950..5000, "number,years,unit,gender,code");
    let moved: String = renamed
        .lines()
        .map(|line| line.split_once(',').map(|(first, rest)| format!("{rest},{first}\n")).unwrap())
        .collect();
    let second = uploaded(&server, "series=registry", moved).await;
    let overlap = &second["overlaps"][0];
    assert_eq!((&overlap["series"], &overlap["datasets"]), (&json!("clinic"), &json!([first["id"]])));
    let (count, of) = (overlap["rows"]["count"].as_u64().unwrap(), overlap["rows"]["of"].as_u64().unwrap());
    assert!((15..=40).contains(&count) && (1300..=1600).contains(&of), "{overlap}");
    let job = json!({"unlisted": "drop", "method": versatile(&["years -> code"])});
    let problem = refused_at_once(&server, &second, job.clone(), "series-undeclared").await;
    assert_eq!(problem["series"], json!(["clinic"]));
    let planned = plan(&server, &second, job.clone()).await;
    assert_eq!((&planned["feasible"], kind(&planned["problems"][0])), (&json!(false), "series-undeclared"));
    // the first one was there first, and a statement of who knows lets the second one through
    server.publish(&id(&first), protected()).await;
    let declared =
        uploaded(&server, &format!("series=registry&{OTHERS}"), patients(2950..5000, "number,years,unit,gender,code"))
            .await;
    assert_eq!(declared["overlaps"][0]["series"], "clinic");
    server.publish(&id(&declared), job).await;
    // less than one in a hundred
    let few = uploaded(&server, "series=few", patients(4990..7000, HEADER)).await;
    assert!((1..=10).contains(&few["overlaps"][0]["rows"]["count"].as_u64().unwrap()), "{few}");
    server.publish(&id(&few), protected()).await;
    // equal content, purged too
    let whole = patients(10_000..12_000, HEADER);
    let before = uploaded(&server, "series=whole", whole.clone()).await;
    server.delete(&format!("/v1/datasets/{}", id(&before))).await.ok(200);
    let again = uploaded(&server, "series=again", whole).await;
    assert_eq!(again["overlaps"][0]["rows"], json!({"count": 2000, "of": 2000}));
    refused_at_once(&server, &again, protected(), "series-undeclared").await;
    // too few rows identify no data subjects, even if equal: only a warning
    let tiny = "a,b\n1,x\n2,y\n3,x\n4,y\n";
    let before = uploaded(&server, "series=tiny", tiny).await;
    server.delete(&format!("/v1/datasets/{}", id(&before))).await.ok(200);
    let again = uploaded(&server, "series=other", tiny).await;
    assert_eq!(again["overlaps"][0]["rows"], json!({"count": 4, "of": 4}));
    let warned = plan(&server, &again, plain(&["b"])).await;
    assert!(warned["warnings"].to_string().contains("people-unknown"), "{warned:#}");
    server.publish(&id(&again), plain(&["b"])).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_uploads_at_once_one_knows_of_the_other() {
    let server = Server::start_with(|config| config.workers = 4).await;
    let csv = patients(0..1500, HEADER);
    let (a, b) = tokio::join!(
        server.upload("series=one&record_key=id", csv.clone()),
        server.upload("series=two&record_key=id", csv)
    );
    let (a, b) = (a.ok(201), b.ok(201));
    let knows = |dataset: &Value| !dataset["overlaps"].as_array().unwrap().is_empty();
    assert!(knows(&a) != knows(&b), "{a} {b}");
    let (first, second) = if knows(&a) { (b, a) } else { (a, b) };
    assert_eq!(second["overlaps"][0]["record_keys"], json!({"count": 1500, "of": 1500}));
    refused_at_once(&server, &second, protected(), "series-undeclared").await;
    server.publish(&id(&first), protected()).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn table_with_one_added_patient_is_refused() {
    let server = Server::start().await;
    let night = "series=nightly&record_key=id";
    let first = uploaded(&server, night, patients(0..400, HEADER)).await;
    server.publish(&id(&first), protected()).await;
    let second = uploaded(&server, night, patients(1..401, HEADER)).await;
    let planned = plan(&server, &second, protected()).await;
    let counts = json!({"common": 399, "added": 1, "removed": 1});
    assert_eq!(
        (&planned["composition"]["verdict"], &planned["composition"]["counts"]),
        (&json!("overlapping"), &counts)
    );
    assert_eq!((&planned["feasible"], kind(&planned["problems"][0])), (&json!(false), "overlapping-row-sets"));
    let problem = refused_at_once(&server, &second, protected(), "overlapping-row-sets").await;
    for count in ["common", "added", "removed"] {
        assert_eq!(problem[count], counts[count]);
    }
    assert!(problem["remedies"].as_array().unwrap().len() == 2, "{problem}");
    // the ledger keeps every disclosure
    server.delete(&format!("/v1/datasets/{}", id(&first))).await.ok(200);
    refused_at_once(&server, &second, protected(), "overlapping-row-sets").await;

    // the first remedy: the added rows by themselves, judged alone
    let added = uploaded(&server, night, patients(400..500, HEADER)).await;
    server.publish(&id(&added), protected()).await;
    // a value that was corrected is the same patient
    let corrected = patients(400..500, HEADER).replacen(",f,", ",m,", 1);
    let corrected = uploaded(&server, night, corrected).await;
    let problem = refused_at_once(&server, &corrected, protected(), "overlapping-row-sets").await;
    assert_eq!((&problem["common"], &problem["added"]), (&json!(100), &json!(0)));
    // the second remedy: other people, on somebody's word
    let others = uploaded(&server, &format!("series=next&record_key=id&{OTHERS}"), patients(1..401, HEADER)).await;
    server.publish(&id(&others), protected()).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_compared_without_record_keys() {
    let server = Server::start().await;
    let first = uploaded(&server, "series=s", patients(0..300, HEADER)).await;
    server.publish(&id(&first), protected()).await;
    let second = uploaded(&server, "series=s", patients(10..305, HEADER)).await;
    let problem = refused_at_once(&server, &second, protected(), "overlapping-row-sets").await;
    assert_eq!([&problem["common"], &problem["added"], &problem["removed"]], [290, 5, 10]);
    let others = uploaded(&server, "series=s", patients(1000..1300, HEADER)).await;
    refused_at_once(&server, &others, protected(), "composition-undecidable").await;
    let keyed = uploaded(&server, "series=s&record_key=id", patients(1000..1300, HEADER)).await;
    refused_at_once(&server, &keyed, protected(), "composition-undecidable").await;
    let fewer: String =
        patients(0..300, HEADER).lines().map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0)).collect();
    let fewer = uploaded(&server, "series=s", fewer).await;
    refused_at_once(&server, &fewer, plain(&["age"]), "composition-undecidable").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_people_with_more_columns_are_the_same_content() {
    let server = Server::start().await;
    let csv = patients(0..300, HEADER);
    let wider: String = csv
        .lines()
        .zip(0..)
        .map(|(line, n)| format!("{line},{}\n", if n == 0 { "town".into() } else { format!("t{}", n % 3) }))
        .collect();
    let first = uploaded(&server, "series=s&record_key=id", csv).await;
    let release = server.publish(&id(&first), protected()).await;
    let second = uploaded(&server, "series=s&record_key=id", wider.clone()).await;
    let planned = plan(&server, &second, plain(&["age", "dx"])).await;
    assert_eq!(
        (&planned["composition"]["verdict"], &planned["composition"]["against"]),
        (&json!("violated"), &json!([release["id"]]))
    );
    assert_eq!(kind(&server.refused(&id(&second), plain(&["age", "dx"])).await), "composition-violated");
    server.publish(&id(&second), plain(&["town", "sex"])).await;
    // a column that says the same of everyone is that column
    let renamed = wider.replacen("age", "years", 1);
    let third = uploaded(&server, "series=s&record_key=id", renamed).await;
    assert_eq!(kind(&server.refused(&id(&third), plain(&["years", "dx"])).await), "composition-violated");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_under_a_new_name_is_refused_until_it_is_declared() {
    let server = Server::start().await;
    let state = async |document: Value| server.post("/v1/series/s/disclosures", &document).await;
    let survey = json!({"name": "survey-2024", "attributes": ["years", "ward"], "protection": "plain"});
    let recorded = state(json!({"reason": "published by the ministry", "tables": [survey]})).await.ok(201);
    let entry = &recorded["disclosures"][0];
    assert_eq!((&entry["release"], &entry["table"]), (&Value::Null, &json!("survey-2024")));
    assert_eq!(entry["unproven"], json!({"reason": "published by the ministry"}));

    // the survey names years, which the dataset has not; age may be it
    let dataset = uploaded(&server, "series=s&record_key=id", patients(0..300, HEADER)).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn exclusive_external_table_tolerates_no_other() {
    let server = Server::start().await;
    let table = json!({"name": "old", "attributes": ["ward"], "protection": "exclusive"});
    server.post("/v1/series/s/disclosures", &json!({"reason": "r", "tables": [table]})).await.ok(201);
    let dataset = uploaded(&server, "series=s", patients(0..300, HEADER)).await;
    assert_eq!(kind(&server.refused(&id(&dataset), plain(&["ward", "sex"])).await), "composition-violated");
    server.publish(&id(&dataset), plain(&["age", "sex"])).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_determinant_that_comes_later_is_found() {
    let server = Server::start().await;
    // a determines b
    let rows: String = (0..480).map(|n: u32| format!("q{},a{},b{}\n", n / 12 % 4, n % 12, n % 12 / 2)).collect();
    let dataset = uploaded(&server, "series=s", format!("q,a,b\n{rows}")).await;
    let first = json!({"unlisted": "drop", "method": versatile(&["q -> b"])});
    let release = server.publish(&id(&dataset), first).await;
    // b is no column of the job, but the adversary knows that a determines it
    let problem = server.refused(&id(&dataset), plain(&["q", "a"])).await;
    assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]));
    let planned = plan(&server, &dataset, plain(&["q", "a"])).await;
    assert_eq!(planned["composition"]["verdict"], "violated");

    // without a bound for its determinants, no attribute may reveal b
    for (number, guarantee) in [
        json!({"type": "t_closeness", "t": "0.3"}),
        json!({"type": "thresholds", "explicit": {"b0": "0.3"}, "otherwise": "0.6"}),
    ]
    .into_iter()
    .enumerate()
    {
        let query = format!("series=t{number}&{OTHERS}");
        let dataset = uploaded(&server, &query, format!("q,a,b\n{rows}")).await;
        let mut first = json!({"unlisted": "drop", "method": versatile(&["q -> b"])});
        first["method"]["default_guarantee"] = guarantee.clone();
        let release = server.publish(&id(&dataset), first.clone()).await;
        let problem = server.refused(&id(&dataset), plain(&["q", "a"])).await;
        assert_eq!((kind(&problem), &problem["release"]), ("composition-violated", &release["id"]), "{guarantee}");
        // in reverse order: the determinant of b is published first
        let query = format!("series=u{number}&{OTHERS}");
        let dataset = uploaded(&server, &query, format!("q,a,b\n{rows}")).await;
        server.publish(&id(&dataset), plain(&["q", "a"])).await;
        let problem = server.refused(&id(&dataset), first).await;
        assert_eq!(kind(&problem), "composition-violated", "{guarantee}: {problem:#}");
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
    let dataset = uploaded(&server, "series=s", format!("q,s,t\n{rows}")).await;
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
    let dataset = uploaded(&server, "series=s", patients(0..300, HEADER)).await;
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
    let dataset = uploaded(&pipeline, "series=s", patients(0..300, HEADER)).await;
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
    let table = |keys: &[&str]| {
        let rows = keys.iter().enumerate().map(|(at, key)| format!("{key},{},{}\n", 20 + at % 7, ["f", "m"][at % 2]));
        "id,age,sex\n".to_owned() + &rows.collect::<String>()
    };
    let plain = json!({"unlisted": "drop", "attributes": {"sex": {"publish": true}}, "no_rules_reason": "for a test",
        "method": {"type": "versatile", "rules": []}});
    let first = uploaded(&server, "series=s&record_key=id", table(&["7", "17", "jos\u{e9}", "b4", "b5", "b6"])).await;
    server.publish(&id(&first), plain.clone()).await;
    for other in ["007", " 17", "17.0", "jose\u{301}", "B4"] {
        let dataset = uploaded(&server, "series=s&record_key=id", table(&[other, "c1", "c2", "c3"])).await;
        let problem = refused_at_once(&server, &dataset, plain.clone(), "overlapping-row-sets").await;
        assert_eq!(
            (&problem["common"], &problem["added"], &problem["removed"]),
            (&json!(1), &json!(3), &json!(5)),
            "{other}"
        );
    }
    // all of them written otherwise are the same people too, of whom nothing is known to be the same
    let respelled = table(&["07", "017", "JOS\u{c9}", "B4", "B5", "B6"]);
    let dataset = uploaded(&server, "series=s&record_key=id", respelled).await;
    refused_at_once(&server, &dataset, plain.clone(), "overlapping-row-sets").await;
    // others are judged alone
    let dataset = uploaded(&server, "series=s&record_key=id", table(&["8", "18", "maria"])).await;
    server.publish(&id(&dataset), plain.clone()).await;

    // two records of one dataset stay two, and what stands in a column of whom is kept apart
    let two = |one: &str, other: &str| format!("id,age,sex\n7,{one},f\n007,{other},f\n9,30,m\n");
    let dataset = uploaded(&server, "series=t&same_people=false&reason=test&record_key=id", two("20", "21")).await;
    server.publish(&id(&dataset), plain.clone()).await;
    let swapped = uploaded(&server, "series=t&same_people=false&reason=test&record_key=id", two("21", "20")).await;
    refused_at_once(&server, &swapped, plain.clone(), "overlapping-row-sets").await;
    // other series are found by the same spelling
    for (number, other) in ["007", " 17", "17.0", "jose\u{301}", "B4"].into_iter().enumerate() {
        let csv = table(&[other, &format!("d{number}")]);
        let elsewhere = uploaded(&server, &format!("series=other{number}&record_key=id"), csv).await;
        let mut overlaps = elsewhere["overlaps"].as_array().unwrap().iter();
        let found = overlaps.find(|overlap| overlap["series"] == "s").unwrap();
        assert_eq!(found["record_keys"], json!({"count": 1, "of": 2}), "{other}");
    }
    let twice = "id,age,sex\n7,20,f\n7,21,f\n";
    server.upload("series=t&record_key=id", twice).await.problem(422, "upload-malformed");
    server.stop().await;
}

/// Record keys cannot be held against rows without.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_earlier_versions_prove_no_difference() {
    use sqlx::{ConnectOptions, Connection};

    let server = Server::start().await;
    let first = uploaded(&server, "series=s&record_key=id", patients(0..300, HEADER)).await;
    server.publish(&id(&first), protected()).await;
    let older = "UPDATE dataset_people SET people = json_set(people, '$.folded', json('false'))";
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(server.data().join("guardian.db"));
    let mut connection = options.connect().await.unwrap();
    assert_eq!(sqlx::query(older).execute(&mut connection).await.unwrap().rows_affected(), 1);
    connection.close().await.unwrap();
    let others = uploaded(&server, "series=s&record_key=id", patients(1000..1300, HEADER)).await;
    let problem = refused_at_once(&server, &others, protected(), "composition-undecidable").await;
    assert!(problem.to_string().contains("in one spelling"), "{problem:#}");
    // a key that is found is found: some of the same people
    let some = uploaded(&server, "series=s&record_key=id", patients(200..500, HEADER)).await;
    refused_at_once(&server, &some, protected(), "overlapping-row-sets").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undecidable_overlap_is_a_warning_of_the_upload() {
    let server = Server::start().await;
    let types = |upload_answer: &Value| -> Vec<String> {
        let warnings = upload_answer["warnings"].as_array().into_iter().flatten();
        warnings.map(|warning| text(&warning["type"])).filter(|kind| kind != "identity-content-only").collect()
    };
    let keyed = uploaded(&server, "series=one&record_key=id", patients(0..900, HEADER)).await;
    assert!(types(&keyed).is_empty(), "{keyed:#}");
    let without = uploaded(&server, "series=two", patients(1000..1900, HEADER)).await;
    assert_eq!(types(&without), ["people-unknown", "people-uncompared"]);
    assert!(text(&without["warnings"][1]["detail"]).contains("the series one have one"), "{without:#}");
    let planned = plan(&server, &without, protected()).await;
    assert!(types(&planned).contains(&"people-uncompared".to_owned()), "{planned:#}");
    // within a series only the job is refused; a declaration of other people suppresses the warning
    let declared = uploaded(&server, &format!("series=three&{OTHERS}"), patients(2000..2900, HEADER)).await;
    assert_eq!(types(&declared), ["people-unknown"]);
    // rows are held against rows where there are enough
    server.delete(&format!("/v1/datasets/{}", id(&without))).await.ok(200);
    let many = uploaded(&server, "series=four&record_key=id", patients(3000..8000, HEADER)).await;
    assert_eq!(types(&many), ["people-uncompared"]);
    let other = uploaded(&server, "series=five", patients(9000..14000, HEADER)).await;
    assert!(!text(&other["warnings"][0]["detail"]).contains("four"), "{other:#}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_warns_where_people_are_not_known() {
    let server = Server::start().await;
    let warned = async |dataset: &Value| {
        let planned = plan(&server, dataset, protected()).await;
        let warnings = planned["warnings"].as_array().unwrap().clone();
        warnings.iter().any(|warning| warning["type"] == "people-unknown")
    };
    let first = uploaded(&server, "series=one", patients(0..900, HEADER)).await;
    assert!(!warned(&first).await, "there is no other series");
    let few = uploaded(&server, "series=two", patients(1000..1900, HEADER)).await;
    assert!(warned(&few).await && warned(&first).await);
    let keyed = uploaded(&server, "series=three&record_key=id", patients(2000..2900, HEADER)).await;
    assert!(!warned(&keyed).await);
    let many = uploaded(&server, "series=four", patients(3000..8000, HEADER)).await;
    assert!(!warned(&many).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_two_contents_of_a_series_go_side_by_side() {
    let server = Server::start_with(|config| config.workers = 4).await;
    let mut datasets = Vec::new();
    for night in 0..4 {
        datasets
            .push(uploaded(&server, "series=s&record_key=id", patients(night * 200..night * 200 + 200, HEADER)).await);
    }
    let job = |at: usize| server.job(datasets[at]["id"].as_str().unwrap(), protected());
    let (a, b, c, d) = tokio::join!(job(0), job(1), job(2), job(3));
    for answer in [a, b, c, d] {
        assert_eq!(answer.ok(200)["status"], "succeeded");
    }
    // two that overlap: one must see the other
    let x = uploaded(&server, "series=t&record_key=id", patients(5000..5200, HEADER)).await;
    let y = uploaded(&server, "series=t&record_key=id", patients(5001..5201, HEADER)).await;
    let (x, y) = (id(&x), id(&y));
    let (x, y) = tokio::join!(server.job(&x, protected()), server.job(&y, protected()));
    let end = |answer: &crate::support::harness::Answer| match answer.status {
        200 => text(&answer.json()["status"]),
        _ => kind(&answer.json()).to_owned(),
    };
    let mut ends = [end(&x), end(&y)];
    ends.sort_unstable();
    assert!(ends == ["refused", "succeeded"] || ends == ["overlapping-row-sets", "succeeded"], "{ends:?}");
    server.stop().await;
}
