//! What is made of tables that are tied by bucket: counts, the linked view, the attack on members, and files of the command line.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::methods::slicing::{TABLE, explicit, sliced, with};
use crate::support::folder::{CommandFixture, names};
use crate::support::harness::{Client, HOSPITAL, Server, part_path, text};
use crate::support::library::cells;

/// Counts over columns: of each bucket as many rows as its columns allow, were they independent.
#[tokio::test(flavor = "multi_thread")]
async fn counts_over_columns_are_those_of_independent_columns() {
    let server = Server::start().await;
    let dataset = server.dataset(TABLE).await;
    let columns = explicit(&[&["age"], &["sex"], &["zip", "disease"]]);
    let manifest = server.publish(&dataset, sliced("disease", columns, json!(2))).await;
    let mut expected = 0.0;
    let mut parts: Vec<Vec<Vec<String>>> = Vec::new();
    for part in ["c1", "c2", "c3"] {
        parts.push(cells(server.part(&manifest, "t1", part).await.as_bytes()).1);
    }
    for bucket in parts[0].iter().map(|row| &row[0]).collect::<BTreeSet<_>>() {
        let here = |part: usize, admits: &dyn Fn(&[String]) -> bool| {
            let rows: Vec<&Vec<String>> = parts[part].iter().filter(|row| row[0] == *bucket).collect();
            (rows.iter().filter(|row| admits(&row[1..])).count() as f64, rows.len() as f64)
        };
        let (young, size) = here(0, &|row| row[0].parse::<u32>().unwrap() <= 54);
        let (women, _) = here(1, &|row| row[0] == "F");
        let (flu, _) = here(2, &|row| row[1] == "flu");
        expected += size * (young / size) * (women / size) * (flu / size);
    }
    let query = json!([{"attribute": "age", "to": 54}, {"attribute": "sex", "in": ["F"]}, {"attribute": "disease", "in": ["flu"]}]);
    let answers = ask(&server, &manifest, json!([{"where": query}, {"where": [{"attribute": "zip", "in": [47905]}, {"attribute": "disease", "in": ["flu"]}]}])).await;
    assert!((answers[0]["estimate"].as_f64().unwrap() - expected).abs() < 1e-9, "{answers:?}, expected {expected}");
    assert_eq!(answers[0]["error_model"], "matching");
    assert!(answers[0]["standard_error"].as_f64().unwrap() > 0.0);
    assert_eq!(answers[1], json!({"estimate": 1.0, "standard_error": 0.0, "error_model": "exact"}));
    server.stop().await;
}

async fn ask(server: &Client, release: &Value, queries: Value) -> Vec<Value> {
    let path = format!("/v1/releases/{}/queries", text(&release["id"]));
    server.post(&path, &json!({"queries": queries})).await.ok(200)["answers"].as_array().unwrap().clone()
}

/// The linked view shows each row of each part once, beside rows of its bucket, in every format the same, and says that it is
/// synthetic.
#[tokio::test(flavor = "multi_thread")]
async fn linked_rows_are_synthetic() {
    let server = Server::start().await;
    let sliced_csv = TABLE.replace("dyspepsia", "\"dys, \"\"pepsia\"\"\"");
    let columns = explicit(&[&["age"], &["sex"], &["zip", "disease"]]);
    let one = server
        .publish(
            &server.dataset_of("one", sliced_csv).await,
            with(sliced("disease", columns, json!(2)), "min_bucket", json!(4)),
        )
        .await;
    let two = server
        .publish(
            &server.dataset_of("two", HOSPITAL).await,
            json!({"method": crate::support::harness::hospital_method()}),
        )
        .await;
    for (manifest, part) in [(&one, "c2"), (&two, "qi")] {
        let table = &manifest["tables"][0];
        let path = format!("{}?view=linked", part_path(manifest, "t1", part));
        let answer = server.get(&path).await;
        assert_eq!((answer.status, answer.header("guardian-linkage")), (200, "synthetic"), "{}", answer.text());
        assert!(answer.header("content-disposition").contains("t1.linked.csv"));
        let (header, rows) = cells(&answer.body);
        assert_eq!(json!(header), table["attributes"]);
        // bucket by bucket, every part is a projection of the view
        let mut sizes: Vec<usize> = Vec::new();
        for reported in table["parts"].as_array().unwrap() {
            let (names, read) = cells(server.part(manifest, "t1", &text(&reported["name"])).await.as_bytes());
            let places: Vec<usize> =
                names[1..].iter().map(|name| header.iter().position(|known| known == name).unwrap()).collect();
            let runs: Vec<Vec<Vec<String>>> = read.chunk_by(|a, b| a[0] == b[0]).map(<[_]>::to_vec).collect();
            sizes = runs.iter().map(Vec::len).collect();
            let mut at = 0;
            for run in runs {
                let mut shown: Vec<Vec<String>> = rows[at..at + run.len()]
                    .iter()
                    .map(|row| places.iter().map(|&place| row[place].clone()).collect())
                    .collect();
                let mut reported: Vec<Vec<String>> = run.iter().map(|row| row[1..].to_vec()).collect();
                at += run.len();
                shown.sort();
                reported.sort();
                assert_eq!(shown, reported);
            }
        }
        assert_eq!(sizes.iter().sum::<usize>(), rows.len());
        // the same again, whichever part is named; and known by its tag
        let again = server.get(&path).await;
        assert_eq!((&again.body, again.header("etag")), (&answer.body, answer.header("etag")));
        let first = text(&table["parts"][0]["name"]);
        assert_eq!(server.get(&format!("{}?view=linked", part_path(manifest, "t1", &first))).await.body, answer.body);
        let known = server.request(reqwest::Method::GET, &path).header("if-none-match", answer.header("etag"));
        assert_eq!(server.send(known).await.status, 304);
        let whole = server.get(&format!("{path}&format=json")).await;
        assert_eq!(whole.header("guardian-linkage"), "synthetic");
        let whole = whole.ok(200);
        let as_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let of_page = |page: &Value| -> Vec<Vec<String>> {
            let rows = page["rows"].as_array().unwrap();
            rows.iter().map(|row| row.as_array().unwrap().iter().map(as_text).collect()).collect()
        };
        assert_eq!((of_page(&whole), &whole["columns"], &whole["next"]), (rows.clone(), &json!(header), &Value::Null));
        for limit in 1..=3 {
            let (mut pages, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = server.get(&format!("{path}&format=json&limit={limit}{cursor}")).await.ok(200);
                pages.extend(of_page(&page));
                let Some(next) = page["next"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            assert_eq!(pages, rows, "pages of {limit}");
        }
        let lines = server.get(&format!("{path}&format=ndjson")).await;
        let of_lines: Vec<Vec<String>> = lines
            .text()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|row| header.iter().map(|name| as_text(&row[name])).collect())
            .collect();
        assert_eq!(of_lines, rows);
        let typed = |bytes: Vec<u8>, parquet: bool| {
            let (schema, (names, _)) =
                if parquet { super::output_formats::of_parquet(bytes) } else { super::output_formats::of_arrow(bytes) };
            assert_eq!((names, schema.fields().len()), (header.clone(), header.len()));
        };
        typed(server.get(&format!("{path}&format=parquet")).await.body, true);
        typed(server.get(&format!("{path}&format=arrow")).await.body, false);
        server.get(&format!("{path}&limit=1")).await.problem(400, "malformed-request");
        server.get(&format!("{path}&format=json&cursor=99")).await.problem(400, "malformed-request");
    }
    // a plain table hides nothing
    server.get(&format!("{}?view=linked", part_path(&two, "t2", "rows"))).await.problem(422, "guarantee-unsupported");
    server.stop().await;
}

/// Tuples that match all parts of a bucket and no row of the original.
#[tokio::test(flavor = "multi_thread")]
async fn membership_attack_matches_the_original() {
    let server = Server::start().await;
    let dataset = server.dataset(TABLE).await;
    let columns = explicit(&[&["age", "sex"], &["zip", "disease"]]);
    let manifest = server.publish(&dataset, with(sliced("disease", columns, json!(2)), "min_bucket", json!(4))).await;
    let path = format!("/v1/releases/{}/attacks", text(&manifest["id"]));
    let found = server.post(&path, &json!({"attack": "membership"})).await.ok(200);
    let (mut tuples, mut known) = (BTreeSet::new(), BTreeSet::new());
    let (first, second) = (server.part(&manifest, "t1", "c1").await, server.part(&manifest, "t1", "c2").await);
    for left in cells(first.as_bytes()).1 {
        for right in cells(second.as_bytes()).1.iter().filter(|right| right[0] == left[0]) {
            tuples.insert([&left[1..], &right[1..]].concat());
            known.insert([&left[1..], &right[1..2]].concat());
        }
    }
    let table = &found["membership"][0];
    assert_eq!((&found["uses"], &found["breach"], &table["table"]), (&json!("original"), &json!(false), &json!("t1")));
    // of the table all eight rows differ, and so do they without the disease
    let count = |value: usize| json!({"value": value as f64, "standard_error": 0.0, "exact": true});
    assert_eq!(
        (&table["fake_full"], &table["fake_qi"]),
        (&count(tuples.len() - 8), &count(known.len() - 8)),
        "{found:#}"
    );
    assert_eq!(
        table["histogram"][0],
        json!({"buckets": "1..10", "rows": 8, "originals": 8, "fakes": count(tuples.len() - 8)})
    );
    assert_eq!(table["histogram"].as_array().unwrap().len(), 3);
    server.delete(&format!("/v1/datasets/{dataset}")).await.ok(200);
    server.post(&path, &json!({"attack": "membership"})).await.problem(410, "gone");
    server.stop().await;
}

#[test]
fn the_command_line_slices_and_verifies() {
    for diversity in ["bucket", "mixture_weighted"] {
        let columns = explicit(&[&["age"], &["sex"], &["zip", "disease"]]);
        let document = with(sliced("disease", columns, json!(2)), "diversity", json!(diversity));
        let folder = CommandFixture::new(TABLE, &document);
        let mut manifest = folder.published("out", &[]);
        let names = names(&folder.path("out"));
        let parts = ["t1.c1.csv", "t1.c2.csv", "t1.c3.csv"];
        assert!(parts.iter().all(|part| names.iter().any(|name| name == part)), "{names:?}");
        assert_eq!(folder.is_verified("out"), [true, true], "{diversity}");
        // a manifest that promises more than the parts hold
        manifest["method_details"]["columns"] = json!([["age", "sex"], ["zip", "disease"]]);
        folder.forge("out", &manifest);
        assert!(!folder.is_verified("out")[1], "{diversity}");
    }
}
