//! Sequential releases after external tables that were recorded with the dataset of their rows.

use std::fs;
use std::io::Read;

use flate2::read::GzDecoder;
use guardian::identity::Preset;
use serde_json::{Value, json};

use super::releases::{anonymity, grouped, linkability, new, of, plain, sequential};
use crate::ledger::transfer;
use crate::security::identity::Guarded;
use crate::support::harness::{Client, Process, Server, guardian, kind, run, text};
use crate::support::library::cells;

/// The people of the slides, with record keys.
const PEOPLE: &str = "id,name,job,class,disease\n1,Alice,Banker,c1,Cancer\n2,Alice,Banker,c1,Cancer\n3,Bob,Clerk,c2,HIV\n\
    4,Bob,Driver,c3,Cancer\n5,Cathy,Engineer,c4,HIV\n";

/// What was printed of them, in another order and spelling of keys, the job under another name and as its field.
const PRINTED: &str =
    "id,work,disease\n05,Field,HIV\n1,Office,Cancer\n2,Office,Cancer\n3,Office,HIV\n 4,Field,Cancer\n";

/// Uploads into a population, with the record key `id` where `keyed`.
async fn uploaded(client: &Client, series: &str, keyed: bool, csv: &str) -> String {
    let key = if keyed { "&record_key=id" } else { "" };
    client.population_if_missing(series).await;
    let query = format!("population={series}{key}");
    text(&client.upload(&query, csv).await.ok(201)["id"])
}

fn table(attributes: &[&str], protection: &str, dataset: &str) -> Value {
    json!({"name": "survey", "attributes": attributes, "protection": protection, "dataset": dataset})
}

fn with_cut(name: &str, labels: &Value, dataset: &str) -> Value {
    let mut table = table(&["job", "disease"], "exclusive", dataset);
    table["cuts"] = json!({name: labels});
    table
}

/// Enters a table, and gives its disclosure.
async fn external_table(client: &Client, series: &str, table: &Value, aliases: Value) -> Value {
    let statement = json!({"reason": "printed by the ministry", "tables": [table], "aliases": aliases});
    let external_table = client.post(&format!("/v1/series/{series}/disclosures"), &statement).await.ok(201);
    external_table["disclosures"][0].clone()
}

/// What a release says of its join, an earlier one called by one name.
fn said(release: &Value, earlier: &Value) -> Value {
    let text = release["method_details"].to_string().replace(&text(&earlier["id"]), "EARLIER");
    let mut said: Value = serde_json::from_str(&text).unwrap();
    said.as_object_mut().unwrap().remove("entered");
    said
}

/// The joins of a requirement, with what it comes to.
fn on(release: &Value, requirement: usize) -> Vec<(usize, Value)> {
    let subsets = release["method_details"]["requirements"][requirement]["subsets"].as_array().unwrap();
    subsets.iter().map(|on| (on["releases"].as_array().unwrap().len(), on["achieved"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn external_table_is_joined_like_a_release() {
    let server = Server::start().await;
    let mut csv = String::new();
    GzDecoder::new(&include_bytes!("../../../examples/data/adult.csv.gz")[..]).read_to_string(&mut csv).unwrap();
    let (names, mut rows) = cells(csv.as_bytes());
    rows.truncate(3000);
    let second = ["marital-status", "relationship", "sex", "native-country", "race"];
    let column = |name: &str| names.iter().position(|column| column == name).unwrap();
    let written = |names: &[&str], order: &mut dyn Iterator<Item = usize>, key: &dyn Fn(usize) -> String| {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(std::iter::once("id").chain(names.iter().copied())).unwrap();
        for row in order {
            let cells = names.iter().map(|name| rows[row][column(name)].clone());
            writer.write_record(std::iter::once(key(row)).chain(cells)).unwrap();
        }
        String::from_utf8(writer.into_inner().unwrap()).unwrap()
    };
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let original = written(&all, &mut (0..rows.len()), &|row| format!("p{row}"));
    let printed = written(&second, &mut (0..rows.len()).rev(), &|row| format!("P{row} "));

    let here = uploaded(&server, "here", true, &original).await;
    let published = server.publish(&here, plain(&second)).await;
    let elsewhere = Server::start().await;
    let there = uploaded(&elsewhere, "there", true, &original).await;
    let holds = uploaded(&elsewhere, "there", true, &printed).await;
    let survey = external_table(&elsewhere, "there", &table(&second, "plain", &holds), json!({})).await;

    let first = ["education", "occupation", "marital-status", "sex", "income"];
    let document = |earlier: &Value| {
        let known = [new("education"), new("marital-status"), of(earlier, "native-country")];
        let asked = json!([
            anonymity(&known[..2], &[new("#key")], 5),
            anonymity(&[new("education"), of(earlier, "relationship")], &[new("#key")], 10),
            linkability(&[new("education")], &[of(earlier, "race")], "0.95", Value::Null),
        ]);
        let mut document = sequential(&first, &[earlier], Some("income"), asked);
        document["attributes"] = json!({"education": {"taxonomy": grouped(&names, &rows, "education")},
            "marital-status": {"taxonomy": grouped(&names, &rows, "marital-status")}});
        document
    };
    let of_published = server.publish(&here, document(&published)).await;
    let of_external = elsewhere.publish(&there, document(&survey)).await;
    assert_eq!(said(&of_external, &survey), said(&of_published, &published));
    assert_eq!(of_external["method_details"]["entered"], json!([survey["id"]]));
    assert_eq!(of_external["method_details"]["projection_precondition"], true);
    assert!(of_external["method_details"]["cuts"]["education"].as_array().unwrap().len() > 1);
    let part = elsewhere.part(&of_external, "t1", "rows").await;
    assert_eq!(part, server.part(&of_published, "t1", "rows").await);

    // the attack reports the same for both
    let attack = json!({"attack": "join", "rule": null});
    let attacked = async |server: &Server, release: &Value| {
        server.post(&format!("/v1/releases/{}/attacks", text(&release["id"])), &attack).await.ok(200)
    };
    let (of_survey, of_release) = (attacked(&elsewhere, &of_external).await, attacked(&server, &of_published).await);
    assert_eq!((&of_survey["uses"], &of_release["uses"]), (&json!("original"), &json!("parts")));
    assert_eq!((&of_survey["breach"], &of_survey["worst"]), (&json!(false), &of_release["worst"]));
    assert_eq!(of_survey["joins"].as_array().unwrap().len(), of_release["joins"].as_array().unwrap().len());

    // the same job gives the same release, and nothing that shares an attribute stands beside the two
    let again = elsewhere.job(&there, document(&survey)).await.ok(200);
    assert_eq!((&again["reused"], &again["release"]), (&json!(true), &of_external["id"]));
    let problem = elsewhere.refused(&there, plain(&["race", "hours-per-week"])).await;
    assert_eq!(kind(&problem), "composition-violated");
    let series = elsewhere.get("/v1/series/there").await.ok(200);
    assert_eq!(series["graph"][0]["shared"], json!(["marital-status", "sex"]), "{series:#}");

    // by the command line, from the bytes alone
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("manifest.json"), of_external.to_string()).unwrap();
    fs::write(home.path().join("t1.rows.csv"), part).unwrap();
    let done = run(guardian().arg("verify").arg(home.path()));
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stdout));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_placed_by_the_declared_cut() {
    let server = Server::start().await;
    let dataset = uploaded(&server, "s", true, PEOPLE).await;
    let holds = uploaded(&server, "s", true, PRINTED).await;
    let cut = with_cut("job", &json!(["Field", "Office"]), &holds);
    let survey = external_table(&server, "s", &cut, json!({"work": "job"})).await;
    assert_eq!(survey["cuts"], json!({"job": ["Field", "Office"]}));
    let asked = |k: u64| json!([anonymity(&[new("job"), of(&survey, "disease")], &[new("#key")], k)]);
    let document = |k: u64| sequential(&["name", "job"], &[&survey], None, asked(k));
    // one that does not name it is refused, as beside a release
    let alone = sequential(&["name", "job"], &[], None, json!([anonymity(&[new("job")], &[new("#key")], 2)]));
    assert_eq!(kind(&server.refused(&dataset, alone).await), "composition-violated");
    let mut planned = document(3);
    planned["dataset"] = dataset.clone().into();
    let plan = server.post("/v1/plans", &planned).await.ok(200);
    assert_eq!(plan["method_details"]["cuts"], json!({"job": ["ANY_Job"]}), "{plan:#}");

    // the clerk alone would be beside each of the diseases of an office
    let release = server.publish(&dataset, document(2)).await;
    assert_eq!(release["method_details"]["cuts"], json!({"job": ["Field", "Office"]}));
    assert_eq!(release["method_details"]["projection_precondition"], true);
    assert_eq!(on(&release, 0), [(2, json!({"k": 2}))]);

    // what it keeps it keeps on the join with the survey, which a third one is made against, too
    let third = |against: &[&Value]| {
        let asked = json!([anonymity(&[new("job")], &[new("#key")], 2)]);
        sequential(&["job", "class"], against, None, asked)
    };
    let refused = server.refused(&dataset, third(&[&release])).await;
    assert_eq!(kind(&refused["errors"][0]), "parameter-range");
    let third = server.publish(&dataset, third(&[&release, &survey])).await;
    assert_eq!(third["method_details"]["requirements"][1]["promised_by"], release["id"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn intervals_are_placed_by_their_ends() {
    let server = Server::start().await;
    let row = |row: u32| (20 + row * 7 % 40, ["flu", "cold", "HIV"][(row * 5 % 7 % 3) as usize]);
    let original: String =
        (0..60).map(|id| (id, row(id))).map(|(id, (age, ill))| format!("{id},{age},{ill}\n")).collect();
    let banded: String = (0..60)
        .map(|id| (id, row(id)))
        .map(|(id, (age, ill))| format!("{id},{},{ill}\n", if age < 35 { "20..34" } else { "35..59" }))
        .collect();
    let dataset = uploaded(&server, "s", true, &format!("id,age,disease\n{original}")).await;
    let holds = uploaded(&server, "s", true, &format!("id,age,disease\n{banded}")).await;
    let mut bands = table(&["age", "disease"], "exclusive", &holds);
    bands["cuts"] = json!({"age": ["20..34", "35..59"]});
    let survey = external_table(&server, "s", &bands, json!({})).await;
    let asked = json!([anonymity(&[new("age"), of(&survey, "disease")], &[new("#key")], 4)]);
    let mut document = sequential(&["age"], &[&survey], None, asked);
    document["attributes"] = json!({});
    let release = server.publish(&dataset, document).await;
    assert_eq!(release["method_details"]["projection_precondition"], true);
    // every group of an age is beside all rows of the bands that it meets: those of an age that is published alone are at least four
    let part = server.part(&release, "t1", "rows").await;
    let (_, rows) = cells(part.as_bytes());
    let mut sizes: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    rows.into_iter().for_each(|row| *sizes.entry(row[0].clone()).or_default() += 1);
    assert!(sizes.len() > 2, "{sizes:?}");
    assert_eq!(on(&release, 0), [(2, json!({"k": sizes.values().min()}))]);
    server.stop().await;
}

/// People outside the survey.
const OTHERS: &str = "name,job,class,disease\nAlice,Banker,c1,Cancer\nAlice,Banker,c1,Cancer\nBob,Clerk,c2,HIV\nDan,Clerk,c2,HIV\n\
    Bob,Driver,c3,Cancer\nCathy,Engineer,c4,HIV\n";

const OFFICES: &str = "job,disease\nBanker,Cancer\nBanker,HIV\nClerk,Cancer\nClerk,HIV\n";

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_may_match_nothing_are_protected_alone() {
    let server = Server::start().await;
    let dataset = uploaded(&server, "s", false, OTHERS).await;
    let holds = uploaded(&server, "s", false, OFFICES).await;
    let survey = external_table(&server, "s", &table(&["job", "disease"], "plain", &holds), json!({})).await;
    let known = [new("job"), of(&survey, "disease")];
    let document = |asked: Value| sequential(&["name", "job"], &[&survey], None, asked);

    // the join with the offices excludes the driver and the engineer; alone, each is identifiable
    let release = server.publish(&dataset, document(json!([anonymity(&known, &[new("#key")], 2)]))).await;
    let method_details = &release["method_details"];
    assert_eq!(method_details["cuts"], json!({"job": ["Field", "Banker", "Clerk"]}));
    assert_eq!(method_details["projection_precondition"], false);
    assert_eq!(on(&release, 0), [(1, json!({"k": 2})), (2, json!({"k": 2}))]);
    let attack = json!({"attack": "join", "rule": null});
    let attacked = server.post(&format!("/v1/releases/{}/attacks", text(&release["id"])), &attack).await.ok(200);
    assert_eq!((&attacked["breach"], attacked["joins"].as_array().unwrap().len()), (&json!(false), 2));
    assert_eq!(attacked["joins"][0]["releases"], json!(["new"]));
    assert_eq!(attacked["joins"][0]["group"].as_object().unwrap().len(), 1, "{attacked:#}");

    // rows of the survey are counted as rows of the release where it stands alone; shares of its values are not computed there
    let mut plan = document(json!([
        anonymity(&[new("job")], &[of(&survey, "#key")], 2),
        linkability(&[new("job")], &[of(&survey, "disease")], "0.5", Value::Null)
    ]));
    plan["dataset"] = uploaded(&server, "t", false, OTHERS).await.into();
    let holds = uploaded(&server, "t", false, OFFICES).await;
    let survey = text(&survey["id"]);
    let again = external_table(&server, "t", &table(&["job", "disease"], "plain", &holds), json!({})).await;
    let plan: Value = serde_json::from_str(&plan.to_string().replace(&survey, &text(&again["id"]))).unwrap();
    let plan = server.post("/v1/plans", &plan).await.ok(200);
    assert_eq!((on(&plan, 0).len(), on(&plan, 1).len()), (2, 1), "{plan:#}");
    assert_eq!(on(&plan, 0)[0], (1, json!({"k": 2})));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unplaceable_external_rows_are_refused() {
    let server = Server::start().await;
    let asked = |survey: &Value| json!([anonymity(&[new("job"), of(survey, "disease")], &[new("#key")], 2)]);
    let document = |survey: &Value| sequential(&["name", "job"], &[survey], None, asked(survey));
    let refused = async |series: &str, printed: &str, cut: Option<Value>, change: &dyn Fn(&mut Value), detail: &str| {
        let dataset = uploaded(&server, series, true, PEOPLE).await;
        let holds = uploaded(&server, series, true, printed).await;
        let declared = match cut {
            None => table(&["job", "disease"], "plain", &holds),
            Some(labels) => with_cut("job", &labels, &holds),
        };
        let survey = external_table(&server, series, &declared, json!({})).await;
        let mut document = document(&survey);
        change(&mut document);
        let fault = server.refused(&dataset, document).await["errors"][0].clone();
        assert_eq!((kind(&fault), &fault["pointer"]), ("bad-columns", &json!("/method/against/0")), "{fault}");
        assert!(text(&fault["detail"]).contains(detail), "{fault}");
        assert_eq!(fault["attribute"], "job");
    };
    let rows = |jobs: [&str; 5]| {
        let row = |(id, job): (usize, &str)| {
            format!("{},{job},{}\n", id + 1, ["Cancer", "HIV"][usize::from(id == 2 || id == 4)])
        };
        format!("id,job,disease\n{}", jobs.into_iter().enumerate().map(row).collect::<String>())
    };
    let true_jobs = ["Banker", "Banker", "Clerk", "Driver", "Engineer"];
    let fields = rows(["Office", "Office", "Office", "Field", "Field"]);
    let both = || Some(json!(["Field", "Office"]));
    let same = |_: &mut Value| {};
    // a person of whom it says otherwise, by exact values and by nodes
    let unknown = rows(["Banker", "Banker", "Driver", "Clerk", "Engineer"]);
    refused("a", &unknown, None, &same, "under the same record key").await;
    let moved = rows(["Office", "Office", "Field", "Field", "Field"]);
    refused("b", &moved, both(), &same, "under the same record key").await;
    // some people of whom it says otherwise beside others whom it has not
    let fewer: String = unknown.lines().take(4).map(|line| format!("{line}\n")).collect();
    refused("c", &fewer, None, &same, "under the same record key").await;
    // values that are no leaves, and labels that are no nodes
    refused("d", &rows(["Banker", "Banker", "Clerk", "Driver", "Pilot"]), None, &same, "no leaves of its taxonomy")
        .await;
    let flat = |document: &mut Value| document["attributes"]["job"]["taxonomy"] = json!({"ANY": &true_jobs[1..]});
    refused("e", &fields, both(), &flat, "no nodes of the taxonomy").await;
    // labels of a shared attribute without a declared meaning
    let untold = |document: &mut Value| {
        document["attributes"] = json!({"name": {"taxonomy": {"ANY": ["Alice", "Bob", "Cathy"]}}});
        document["method"]["requirements"][0]["x"][0] = "new.name".into();
    };
    refused("f", &fields, both(), &untold, "neither intervals nor sets").await;

    // persons with several rows, of whom the survey may have more
    let query = "population=u&subject=class&max_rows_per_subject=2";
    server.population("u", &[]).await;
    let dataset = text(&server.upload(query, PEOPLE).await.ok(201)["id"]);
    let holds = uploaded(&server, "u", true, &rows(true_jobs)).await;
    let survey = external_table(&server, "u", &table(&["job", "disease"], "plain", &holds), json!({})).await;
    let fault = server.refused(&dataset, document(&survey)).await["errors"][0].clone();
    assert_eq!((kind(&fault), &fault["pointer"]), ("guarantee-unsupported", &json!("/method/against/0")), "{fault}");

    // without rows, or with rows that were purged
    let dataset = uploaded(&server, "p", true, PEOPLE).await;
    let holds = uploaded(&server, "p", true, &rows(true_jobs)).await;
    let survey = external_table(&server, "p", &table(&["job", "disease"], "plain", &holds), json!({})).await;
    let release = server.publish(&dataset, document(&survey)).await;
    assert_eq!(server.delete(&format!("/v1/datasets/{holds}")).await.status, 200);
    let mut more = document(&survey);
    more["method"]["requirements"][0]["measure"]["k"] = 3.into();
    let fault = server.job(&dataset, more.clone()).await.fault("/method/against/0", "bad-columns");
    assert!(text(&fault["detail"]).contains("purged"), "{fault}");
    more["dataset"] = dataset.clone().into();
    server.post("/v1/plans", &more).await.fault("/method/against/0", "bad-columns");
    let attack = json!({"attack": "join", "rule": null});
    server.post(&format!("/v1/releases/{}/attacks", text(&release["id"])), &attack).await.problem(410, "gone");
    let nowhere = json!({"name": "old", "attributes": ["class"], "protection": "plain"});
    let nowhere = external_table(&server, "p", &nowhere, json!({})).await;
    more["method"]["against"] = json!([nowhere["id"]]);
    more["method"]["requirements"] = json!([anonymity(&[new("job")], &[new("#key")], 2)]);
    let fault = server.job(&dataset, more).await.fault("/method/against/0", "bad-columns");
    assert!(text(&fault["detail"]).contains("without a dataset"), "{fault}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statement_is_checked_against_the_dataset() {
    let server = Server::start().await;
    let holds = uploaded(&server, "s", true, PRINTED).await;
    let path = "/v1/series/s/disclosures";
    let enter = async |tables: &[Value], aliases: Value| {
        server.post(path, &json!({"reason": "printed", "tables": tables, "aliases": aliases})).await
    };
    let known = || json!({"work": "job"});
    // every fault in one answer
    let mut exact = with_cut("job", &json!(["Office"]), &holds);
    exact["protection"] = "plain".into();
    let unknown = table(&["job", "town"], "plain", &holds);
    let answer = enter(&[exact.clone(), unknown.clone()], known()).await;
    answer.fault("/tables/0/protection", "parameter-range");
    answer.fault("/tables/0/cuts/job", "bad-columns");
    answer.fault("/tables/1/attributes/1", "unknown-attribute");
    // without the alias there is no such column, and no column is two attributes
    enter(&[table(&["job"], "plain", &holds)], json!({})).await.fault("/tables/0/attributes/0", "unknown-attribute");
    enter(&[table(&["job", "work"], "plain", &holds)], known())
        .await
        .fault("/tables/0/attributes/1", "unknown-attribute");
    for (name, value) in [
        ("attributes", json!(["job", "job"])),
        ("cuts", json!({"job": []})),
        ("cuts", json!({"job": ["a", "a"]})),
        ("cuts", json!({"job": ["\u{0}"]})),
    ] {
        let mut table = with_cut("job", &json!(["Field", "Office"]), &holds);
        table[name] = value;
        enter(&[table], known()).await.problem(400, "malformed-body");
    }
    assert_eq!(server.stored("series_statements").await, 0);
    enter(&[with_cut("job", &json!(["Field", "Office", null]), &holds)], known()).await.ok(201);
    assert_eq!(server.delete(&format!("/v1/datasets/{holds}")).await.status, 200);
    enter(&[table(&["job"], "plain", &holds)], known()).await.problem(410, "gone");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_rows_need_the_internal_scope() {
    let guarded = Guarded::start().await;
    let admin = guarded.preset(Preset::Admin);
    let dataset = uploaded(&admin, "s", true, PEOPLE).await;
    let holds = uploaded(&admin, "s", true, PRINTED).await;
    // a dataset of another tenant does not provide the rows
    let declared = json!({"reason": "r", "aliases": {"work": "job"},
        "tables": [with_cut("job", &json!(["Field", "Office"]), &holds)]});
    let unknown_value = guarded.server.with_token(&guarded.unknown_value);
    unknown_value.put("/v1/populations/s", &json!({})).await.ok(201);
    unknown_value.post("/v1/series/s/disclosures", &declared).await.problem(404, "not-found");
    let survey = admin.post("/v1/series/s/disclosures", &declared).await.ok(201)["disclosures"][0].clone();
    let asked = json!([anonymity(&[new("job"), of(&survey, "disease")], &[new("#key")], 2)]);
    let release = admin.publish(&dataset, sequential(&["name", "job"], &[&survey], None, asked)).await;
    let (path, attack) = (format!("/v1/releases/{}/attacks", text(&release["id"])), json!({"attack": "join"}));
    for preset in [Preset::Pipeline, Preset::Analyst] {
        let refused = guarded.preset(preset).post(&path, &attack).await.problem(403, "forbidden");
        assert_eq!(refused["scope"], "releases:internal");
    }
    let found = guarded.preset(Preset::Officer).post(&path, &attack).await.ok(200);
    assert_eq!((&found["uses"], &found["breach"]), (&json!("original"), &json!(false)));
    unknown_value.post(&path, &attack).await.problem(404, "not-found");
    // the release shows its join with an external table, and whether the rows are the same
    let manifest = guarded.preset(Preset::Analyst).get(&format!("/v1/releases/{}", text(&release["id"]))).await.ok(200);
    assert_eq!(manifest["method_details"]["entered"], json!([survey["id"]]));
    guarded.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_carried_here_has_no_rows() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (home.path().join("one"), home.path().join("other"));
    let mut process = Process::serve(&one, "info");
    let holds = uploaded(&process, "s", true, PRINTED).await;
    let cut = with_cut("job", &json!(["Field", "Office"]), &holds);
    let survey = external_table(&process, "s", &cut, json!({"work": "job"})).await;
    assert!(process.terminate().success());
    let file = home.path().join("ledger.ndjson");
    fs::write(&file, transfer::said(&transfer::on(&one, &["ledger", "export"]))).unwrap();
    fs::create_dir(&other).unwrap();
    fs::copy(one.join("master.key"), other.join("master.key")).unwrap();
    let imported = transfer::said(&transfer::on(&other, &["ledger", "import", file.to_str().unwrap()]));
    assert!(imported.contains("1 statements"), "{imported}");

    let mut process = Process::serve(&other, "info");
    let dataset = uploaded(&process, "s", true, PEOPLE).await;
    let series = process.get("/v1/series/s").await.ok(200);
    assert_eq!(series["disclosures"][0], survey, "{series:#}");
    let asked = |earlier: &[&Value]| {
        let asked = json!([anonymity(&[new("job")], &[new("#key")], 2)]);
        sequential(&["name", "job"], earlier, None, asked)
    };
    let fault = process.job(&dataset, asked(&[&survey])).await.fault("/method/against/0", "bad-columns");
    assert!(text(&fault["detail"]).contains("purged"), "{fault}");
    assert_eq!(kind(&process.refused(&dataset, asked(&[])).await), "composition-violated");
    assert!(process.terminate().success());
}
