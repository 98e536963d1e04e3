//! Tables without a population: of whom they are about nothing is known, so that each stands alone until an officer says
//! more. The attacker changes files until the ledger takes them for others.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::data_subjects::{HEADER, patients};
use crate::support::harness::{Server, kind, stored, text, versatile};

fn protected() -> Value {
    json!({"unlisted": "drop", "method": versatile(&["age -> dx"])})
}

/// The rows with a column more.
fn with_column(csv: &str, name: &str, cell: &dyn Fn(usize) -> String) -> String {
    let mut lines = csv.lines();
    let header = format!("{},{name}\n", lines.next().unwrap());
    std::iter::once(header).chain(lines.enumerate().map(|(row, line)| format!("{line},{}\n", cell(row)))).collect()
}

/// The rows without their first column.
fn without_ids(csv: &str) -> String {
    csv.lines().map(|line| format!("{}\n", line.split_once(',').unwrap().1)).collect()
}

/// Files of the next night, with most of the people of the first.
fn disguised() -> Vec<(&'static str, String)> {
    let night = patients(0..900, HEADER);
    vec![
        ("three newcomers", patients(0..903, HEADER)),
        ("a few left", patients(5..900, HEADER)),
        ("an extract", patients(0..60, HEADER)),
        ("a column that changes every night", with_column(&night, "load_date", &|_| "2026-11-22".to_owned())),
        ("a column of row numbers", with_column(&night, "row", &|row| row.to_string())),
        ("a column dropped", without_ids(&night)),
        ("keys with a prefix", night.replace("\np", "\nPATIENT-")),
        ("one corrected cell", night.replacen(",f,", ",m,", 1)),
        ("other names of columns and three newcomers", patients(0..903, "number,years,unit,gender,code")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn table_of_unknown_people_is_refused() {
    let server = Server::start().await;
    let first = server.dataset(patients(0..900, HEADER)).await;
    let release = server.publish(&first, protected()).await;
    assert_eq!(release["composition"], "same_dataset_only");
    for (disguise, csv) in disguised() {
        let renamed = csv.starts_with("number");
        let dataset = server.dataset(csv).await;
        let method = versatile(&[if renamed { "years -> code" } else { "age -> dx" }]);
        let mut job = json!({"dataset": dataset, "unlisted": "drop", "method": method});
        let problem = server.post("/v1/jobs", &job).await.problem(409, "population-undeclared");
        assert_eq!(problem["coverages"], json!([{"populations": [], "datasets": [first]}]), "{disguise}");
        assert!(text(&problem["detail"]).contains(&format!("dataset:{first}")), "{disguise}: {problem:#}");
        let plan = server.post("/v1/plans", &job).await.ok(200);
        assert_eq!(plan["composition"]["verdict"], "undecidable", "{disguise}");
        assert_eq!(kind(&plan["problems"][0]), "population-undeclared", "{disguise}");
        // leaving out who was published needs keys
        job["people"] = "unpublished".into();
        server.post("/v1/jobs", &job).await.problem(409, "people-unknown");
    }
    assert_eq!(server.items("/v1/releases").await.len(), 1);
    // a release of the first table is judged with the first one alone
    let open = json!({"unlisted": "drop", "attributes": {"ward": {"publish": true}, "sex": {"publish": true}},
        "no_rules_reason": "for a test", "method": {"type": "versatile", "rules": []}});
    server.publish(&first, open).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unpublished_tables_refuse_nothing() {
    let server = Server::start().await;
    for (_, csv) in disguised() {
        let dataset = server.dataset(csv).await;
        let impossible = json!({"unlisted": "drop", "method": versatile(&["age, ward, sex, id -> dx"])});
        server.job(&dataset, impossible).await;
    }
    let dataset = server.dataset(patients(0..900, HEADER)).await;
    let release = server.publish(&dataset, protected()).await;
    assert_eq!(release["composition"], "same_dataset_only");
    server.stop().await;
}

/// Each remedy of the refusal, as it is written, except for what only its reader knows.
#[tokio::test(flavor = "multi_thread")]
async fn remedies_of_unknown_people_lead_to_a_release() {
    let server = Server::start().await;
    let first = server.dataset(patients(0..900, HEADER)).await;
    server.publish(&first, protected()).await;
    let towns = patients(5000..5900, HEADER);
    let second = server.dataset(towns.clone()).await;
    let mut job = protected();
    job["dataset"] = second.into();
    let problem = server.post("/v1/jobs", &job).await.problem(409, "population-undeclared");

    let others = &problem["remedies"][0];
    assert_eq!(others["call"], "PUT /v1/populations/NAME");
    let body = others["body"].to_string().replace("REASON", "another hospital").replace("DESCRIPTION", "of the town");
    let body: Value = serde_json::from_str(&body).unwrap();
    server.put("/v1/populations/town", &body).await.ok(201);
    let dataset = text(&server.upload("population=town", towns.clone()).await.ok(201)["id"]);
    let release = server.publish(&dataset, protected()).await;
    assert_eq!(release["composition"], "same_dataset_only");
    assert_eq!(release["identity"]["statements"][0]["reason"], "another hospital");
    // the same rows without the population are those of the town, by their cells
    let again = server.job(&server.dataset(towns).await, protected()).await;
    again.problem(409, "population-undeclared");

    // a table that was published without keys gets them
    let earlier = &problem["remedies"][1];
    assert_eq!(earlier["call"], "POST /v1/datasets?population=NAME&person=COLUMN");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statement_of_an_upload_is_refused() {
    let server = Server::start().await;
    for query in ["same_people=false&reason=others", "same_people=true&reason=x", "same_people=false", "reason=x"] {
        let problem = server.upload(query, patients(0..10, HEADER)).await.problem(400, "malformed-request");
        assert!(text(&problem["detail"]).contains("PUT /v1/populations"), "{problem:#}");
    }
    server.upload("series=clinic", patients(0..10, HEADER)).await.problem(422, "unknown-population");
    server.assert_nothing_stored().await;
    server.stop().await;
}

/// Keys 1 to n of two tables that have nothing to do with each other are of two key systems.
#[tokio::test(flavor = "multi_thread")]
async fn serial_numbers_of_two_populations_do_not_collide() {
    let server = Server::start().await;
    server.population("patients", &["id"]).await;
    server.population("enterprises", &["id"]).await;
    let patients = patients(1..600, HEADER).replace("\np", "\n");
    let row = |n: u32| format!("{n},{},{}\n", n * 7 % 31, ["trade", "farming", "craft"][(n * 5 % 3) as usize]);
    let enterprises = "id,size,branch\n".to_owned() + &(1..600).map(row).collect::<String>();
    let first = text(&server.upload("population=patients", patients).await.ok(201)["id"]);
    assert_eq!(server.publish(&first, protected()).await["composition"], "enforced");
    let second = text(&server.upload("population=enterprises", enterprises).await.ok(201)["id"]);
    let rule = json!({"unlisted": "drop", "method": versatile(&["size -> branch"])});
    let release = server.publish(&second, rule).await;
    assert_eq!(
        (&release["composition"], release["identity"]["statements"].as_array().unwrap().len()),
        (&json!("enforced"), 1)
    );
    server.stop().await;
}

/// Changes the database of a store.
async fn execute(data: &Path, sql: String) -> u64 {
    let options = SqliteConnectOptions::new().filename(data.join("guardian.db"));
    let mut connection = options.connect().await.unwrap();
    let done = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    done.rows_affected()
}

/// A store as an earlier version left it: the dataset is in a named series, and in no population.
#[tokio::test(flavor = "multi_thread")]
async fn series_of_earlier_versions_become_populations() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let serve = || Server::start_with(|config| config.data.clone_from(&data));
    let server = serve().await;
    let first = text(&server.upload("record_key=id", patients(0..400, HEADER)).await.ok(201)["id"]);
    let release = server.publish(&first, protected()).await;
    server.stop().await;
    for table in ["datasets", "releases", "disclosures", "standing_rules", "ledgers", "jobs"] {
        assert!(execute(&data, format!("UPDATE {table} SET series = 'registry'")).await > 0, "{table}");
    }

    let server = serve().await;
    let population = server.get("/v1/populations/registry").await.ok(200);
    assert_eq!(
        (&population["person"][0]["key_system"], &population["datasets"]),
        (&json!("registry/person"), &json!([first])),
        "{population:#}"
    );
    let dataset = server.get(&format!("/v1/datasets/{first}")).await.ok(200);
    assert_eq!((&dataset["population"], &dataset["identity"]), (&json!("registry"), &json!("identified")));
    assert_eq!(dataset["person"], json!({"registry/person": ["id"]}));
    let upload = async |query: &str, csv: String| text(&server.upload(query, csv).await.ok(201)["id"]);
    let mut night = protected();
    night["dataset"] = upload("population=registry", patients(1..401, HEADER)).await.into();
    let problem = server.post("/v1/jobs", &night).await.problem(409, "overlapping-people");
    assert_eq!([&problem["common"], &problem["added"], &problem["removed"]], [399, 1, 1]);
    let again = upload("population=registry", patients(0..400, HEADER)).await;
    assert_eq!(server.job(&again, protected()).await.ok(200)["release"], release["id"]);
    let others = upload("series=registry", patients(1000..1400, HEADER)).await;
    assert_eq!(server.publish(&others, protected()).await["composition"], "enforced");
    server.stop().await;
    // once
    let server = serve().await;
    assert_eq!(server.items("/v1/populations").await.len(), 1);
    assert_eq!(server.items("/v1/audit-log?action=population.put").await.len(), 1);
    server.stop().await;
}

/// Of rows that were purged before the upgrade the cells are known still: new keys do not make other people of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_purged_table_of_a_series_is_still_recognized() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let serve = || Server::start_with(|config| config.data.clone_from(&data));
    let server = serve().await;
    let first = text(&server.upload("record_key=id", patients(0..400, HEADER)).await.ok(201)["id"]);
    let release = server.publish(&first, protected()).await;
    assert_eq!(server.delete(&format!("/v1/datasets/{first}")).await.status, 200);
    server.stop().await;
    for table in ["datasets", "releases", "disclosures", "standing_rules", "ledgers", "jobs"] {
        assert!(execute(&data, format!("UPDATE {table} SET series = 'registry'")).await > 0, "{table}");
    }

    let server = serve().await;
    assert_eq!(server.get("/v1/populations/registry").await.ok(200)["datasets"], json!([first]));
    let job = async |query: &str, csv: String| {
        let mut document = protected();
        document["dataset"] = server.upload(query, csv).await.ok(201)["id"].clone();
        server.post("/v1/jobs?wait=60", &document).await
    };
    // whose persons are not known, these may be
    job("population=registry", patients(1000..1400, HEADER)).await.problem(409, "people-unknown");
    let elsewhere = json!({"person": [{"key_system": "elsewhere", "columns": ["id"]}], "disjoint_from": ["registry"],
        "reason": "another town"});
    server.put("/v1/populations/elsewhere", &elsewhere).await.ok(201);
    let respelled = patients(0..400, "id,age,ward,sex,dx").replace("\np", "\nq");
    let alike: String = respelled.lines().map(|row| row.rsplit_once(',').unwrap().0.to_owned() + "\n").collect();
    let wider: String = respelled.lines().enumerate().map(|(line, row)| format!("{row},{line}\n")).collect();
    let mut wider_job = protected();
    wider_job["dataset"] = server.upload("population=elsewhere", wider).await.ok(201)["id"].clone();
    server.post("/v1/jobs", &wider_job).await.problem(409, "people-alike");
    let narrow = server.upload("population=elsewhere", alike).await.ok(201)["id"].clone();
    let mut narrow_job = super::data_subjects::plain(&["age"]);
    narrow_job["dataset"] = narrow;
    server.post("/v1/jobs", &narrow_job).await.problem(409, "people-alike");
    // the very table is recognized, and its job gives the release
    let again = job("population=registry", patients(0..400, HEADER)).await.ok(200);
    assert_eq!(again["release"], release["id"], "{again:#}");
    server.stop().await;
}

/// All series become populations, also where these are more than a tenant may define.
#[tokio::test(flavor = "multi_thread")]
async fn more_series_than_populations_are_adopted() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let serve = || Server::start_with(|config| config.data.clone_from(&data));
    let server = serve().await;
    for _ in 0..2 {
        server.upload("record_key=id", patients(0..9, HEADER)).await.ok(201);
    }
    server.put("/v1/populations/p", &json!({})).await.ok(201);
    server.stop().await;
    let copies =
        "INSERT INTO populations (tenant, name, body) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
        WHERE i < 998) SELECT p.tenant, p.name || n.i, p.body FROM populations AS p, n";
    assert_eq!(execute(&data, copies.to_owned()).await, 998);
    let first =
        "UPDATE datasets SET series = CASE WHEN id = (SELECT min(id) FROM datasets) THEN 'first' ELSE 'last' END";
    assert_eq!(execute(&data, first.to_owned()).await, 2);

    let server = serve().await;
    assert_eq!(stored(&data, "populations").await, 1001);
    let problem = server.put("/v1/populations/new", &json!({})).await.problem(422, "work-limit");
    assert_eq!((&problem["limit"], &problem["found"]), (&json!(1000), &json!(1001)));
    // those that are there are as good as any
    let known = server.get("/v1/populations/first").await.ok(200)["person"].clone();
    let described = json!({"description": "of the clinic", "person": known});
    assert_eq!(server.put("/v1/populations/first", &described).await.ok(200)["description"], "of the clinic");
    server.upload("population=first", patients(10..19, HEADER)).await.ok(201);
    server.upload("population=last&person=none", patients(10..19, HEADER)).await.ok(201);
    server.stop().await;
}

/// Of a dataset whose key is lost the persons are unknown; others are refused with a remedy, and not put off.
#[tokio::test(flavor = "multi_thread")]
async fn dataset_that_cannot_be_read_is_of_unknown_people() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let serve = || Server::start_with(|config| config.data.clone_from(&data));
    let server = serve().await;
    let first = text(&server.upload("record_key=id", patients(0..400, HEADER)).await.ok(201)["id"]);
    server.publish(&first, protected()).await;
    server.stop().await;
    execute(&data, "UPDATE dataset_keys SET wrapped_key = X'00'".to_owned()).await;
    execute(&data, "DELETE FROM dataset_evidence".to_owned()).await;
    execute(&data, "UPDATE coverages SET state = 'void'".to_owned()).await;
    let uncovered = "INSERT INTO uncovered_datasets (tenant, dataset_id) SELECT tenant, id FROM datasets";
    assert_eq!(execute(&data, uncovered.to_owned()).await, 1);

    let server = serve().await;
    let others = server.dataset(patients(1000..1400, HEADER)).await;
    let problem = server.job(&others, protected()).await.problem(409, "population-undeclared");
    assert_eq!(problem["coverages"], json!([{"populations": [], "datasets": [first]}]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_earlier_versions_are_served() {
    let server = Server::start().await;
    let dataset = server.dataset(patients(0..60, HEADER)).await;
    server.publish(&dataset, protected()).await;
    let open = json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "dx": {"publish": true}},
        "no_rules_reason": "for a test", "method": {"type": "versatile", "rules": []}});
    server.refused(&dataset, open).await;
    for name in ["series-undeclared", "overlapping-row-sets"] {
        let uri = format!("https://guardian.invalid/problems/{name}");
        let older =
            format!("UPDATE job_details SET problem = json_set(problem, '$.type', '{uri}') WHERE problem IS NOT NULL");
        assert_eq!(execute(&server.data(), older).await, 1);
        let job = &server.items("/v1/jobs?status=refused").await[0];
        let job = server.get(&format!("/v1/jobs/{}", text(&job["id"]))).await.ok(200);
        assert_eq!(kind(&job["problem"]), name);
    }
    server.stop().await;
}
