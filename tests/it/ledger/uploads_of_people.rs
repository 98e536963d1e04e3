//! Uploads say whose rows they hold: every answer to what they say, and the evidence that stays of the rows.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use guardian::clock::Clock;
use guardian::identity::Caller;
use guardian::people::{Coverage, Evidence, KeyedHash, Population};
use guardian::ports::{
    AnnouncementEnd, AuditAction, AuditEntry, NamedPopulation, NewCoverage, PeopleEntry, PeopleEntryOutcome, Store,
};
use guardian::store::OpenStore;
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::data_subjects::{HEADER, patients};
use crate::service::input_formats::{ARROW, NDJSON, PARQUET, arrow_of, parquet_of};
use crate::support::harness::{Client, Server, stored, text};

/// A service on a store that outlives it.
struct Clinic {
    home: TempDir,
    server: Server,
}

fn data(home: &TempDir) -> std::path::PathBuf {
    home.path().join("data")
}

async fn serve(home: &TempDir) -> Server {
    let data = data(home);
    Server::start_with(move |config| config.data = data).await
}

/// Works on a store that no service has open.
async fn with_store<T>(data: &Path, work: impl AsyncFnOnce(Arc<dyn Store>) -> T) -> T {
    std::fs::create_dir_all(data).unwrap();
    let store = OpenStore::open(None, data).await.unwrap();
    let done = work(store.shared()).await;
    store.close().await;
    done
}

fn tenant() -> String {
    Caller::local().tenant
}

fn key(system: &str, columns: &[&str]) -> Value {
    json!({"key_system": system, "columns": columns, "fold": "standard"})
}

async fn define(store: &dyn Store, name: &str, person: Value, most: u64) {
    let population = json!({"person": person, "max_rows_per_person": most, "is_republished": false});
    let population: Population = serde_json::from_value(population).unwrap();
    let entry = AuditEntry::new(&Caller::local(), AuditAction::Upload, name, Clock::system().now());
    let people = PeopleEntry {
        tenant: tenant(),
        population: Some(NamedPopulation { name: name.to_owned(), population }),
        separations: Vec::new(),
        attributes: None,
        at: entry.at,
        audit_entry: entry,
    };
    let outcome = store.enter_people(&people).await.unwrap();
    assert!(matches!(outcome, PeopleEntryOutcome::Recorded { .. }), "{outcome:?}");
}

impl Clinic {
    /// Populations: `clinic` by the column `id`, `visits` with up to three rows of a person, `names` by two columns,
    /// `both` by two key systems, and `census` without a key.
    async fn open() -> Self {
        let home = tempfile::tempdir().unwrap();
        with_store(&data(&home), async |store| {
            let store = store.as_ref();
            define(store, "clinic", json!([key("patient", &["id"])]), 1).await;
            define(store, "visits", json!([key("patient", &["id"])]), 3).await;
            define(store, "names", json!([key("name", &["first", "last"])]), 2).await;
            define(store, "both", json!([key("patient", &["id"]), key("card", &["card"])]), 1).await;
            define(store, "census", json!([]), 1).await;
        })
        .await;
        let server = serve(&home).await;
        Self { home, server }
    }

    /// Stops the service, works on its store, and starts another one.
    async fn between(self, work: impl AsyncFnOnce(Arc<dyn Store>)) -> Self {
        let Self { home, server } = self;
        server.stop().await;
        with_store(&data(&home), work).await;
        let server = serve(&home).await;
        Self { home, server }
    }
}

async fn uploaded(server: &Client, query: &str, csv: impl Into<Vec<u8>>) -> Value {
    server.upload_with(query, csv, &[]).await.ok(201)
}

fn id(dataset: &Value) -> Uuid {
    text(&dataset["id"]).parse().unwrap()
}

/// The evidence of a dataset, and its persons by the key system `patient`.
async fn evidence(store: &dyn Store, dataset: &Value) -> Option<(Evidence, Vec<KeyedHash>)> {
    let evidence = store.evidence(&tenant(), id(dataset)).await.unwrap()?;
    let mut persons = Vec::new();
    for piece in 0.. {
        let Some(some) = store.person_piece(&tenant(), id(dataset), "patient", piece).await.unwrap() else { break };
        persons.extend(some);
    }
    Some((evidence, persons))
}

/// Makes a release of the rows of a dataset, as far as the ledger is concerned.
async fn publish(store: &dyn Store, dataset: &Value) {
    let (evidence, persons) = evidence(store, dataset).await.unwrap();
    let population = dataset["population"].as_str();
    let new = NewCoverage {
        tenant: tenant(),
        job: Uuid::now_v7(),
        coverage: Coverage::new(id(dataset), population, &evidence),
        published: ["age".to_owned()].into(),
        cuts: Vec::new(),
    };
    let coverage = store.announce_coverage(&new).await.unwrap();
    for some in persons.chunks(1000) {
        store.cover_persons(&tenant(), coverage, "patient", some).await.unwrap();
    }
    store.draw_ticket(&tenant(), coverage).await.unwrap();
    store.end_announcement(&tenant(), coverage, &AnnouncementEnd::Live).await.unwrap();
}

async fn assert_no_rows_left(home: &TempDir) {
    for table in ["column_chunks", "dataset_keys", "dataset_evidence", "dataset_persons"] {
        assert_eq!(stored(&data(home), table).await, 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_say_whose_rows_they_hold() {
    let Clinic { server, home: _home } = Clinic::open().await;
    let csv = || patients(0..40, HEADER);
    let said = |dataset: &Value| {
        let members = ["population", "person", "identity", "series"];
        members.map(|member| dataset[member].clone())
    };
    let undeclared = uploaded(&server, "", csv()).await;
    let own = undeclared["id"].clone();
    assert_eq!(said(&undeclared), [Value::Null, json!({}), json!("content_only"), own]);
    let warned = |dataset: &Value| {
        let warnings = dataset["warnings"].as_array().into_iter().flatten();
        warnings.map(|warning| text(&warning["type"])).any(|kind| kind == "identity-content-only")
    };
    assert!(warned(&undeclared), "{undeclared:#}");
    let by_patient = [json!("clinic"), json!({"patient": ["id"]}), json!("identified"), json!("clinic")];
    assert_eq!(said(&uploaded(&server, "population=clinic", csv()).await), by_patient);
    assert_eq!(said(&uploaded(&server, "series=clinic", csv()).await), by_patient, "the former name");
    assert_eq!(said(&uploaded(&server, "population=clinic&series=clinic", csv()).await), by_patient);
    let other_column = patients(0..40, "pid,age,ward,sex,dx");
    for person in ["person=pid", "person=patient:pid", "subject=pid&max_rows_per_subject=1"] {
        let found = uploaded(&server, &format!("population=clinic&{person}"), other_column.clone()).await;
        assert_eq!((&found["person"], &found["subject"]), (&json!({"patient": ["pid"]}), &Value::Null), "{person}");
    }
    let none = uploaded(&server, "population=clinic&person=none", csv()).await;
    assert!(warned(&none) && !warned(&uploaded(&server, "population=clinic", csv()).await));
    assert_eq!(said(&none), [json!("clinic"), json!({}), json!("content_only"), json!("clinic")]);
    let keyless = uploaded(&server, "population=census", csv()).await;
    assert_eq!(said(&keyless), [json!("census"), json!({}), json!("content_only"), json!("census")]);
    let subject = uploaded(&server, "population=census&subject=id&max_rows_per_subject=2", csv()).await;
    assert_eq!((&subject["person"], &subject["subject"]), (&json!({}), &json!("id")));
    // a key of two columns, in the order of the key system; a plus sign of a query is a space
    let names = "last,first,age\nb,a,1\nd,c,2\n";
    for person in ["", "&person=name:first%2Blast", "&person=first+last"] {
        let found = uploaded(&server, &format!("population=names{person}"), names).await;
        assert_eq!(found["person"], json!({"name": ["first", "last"]}), "{person}");
    }
    // while numbers change, files have both
    let cards = "id,card,age\n1,x,1\n2,y,2\n";
    let both = uploaded(&server, "population=both", cards).await;
    assert_eq!(both["person"], json!({"patient": ["id"], "card": ["card"]}));
    let one = uploaded(&server, "population=both", "card,age\nx,1\ny,2\n").await;
    assert_eq!(one["person"], json!({"card": ["card"]}));
    let turned = uploaded(&server, "population=both&person=patient:card,card:id", cards).await;
    assert_eq!(turned["person"], json!({"patient": ["card"], "card": ["id"]}));
    let read = server.get(&format!("/v1/datasets/{}", id(&turned))).await.ok(200);
    assert_eq!((&read["person"], &read["population"]), (&turned["person"], &json!("both")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_upload_says_wrongly_is_refused() {
    let Clinic { server, home } = Clinic::open().await;
    let csv = patients(0..9, HEADER);
    let many = (0..200).map(|number| format!("k{number}:id")).collect::<Vec<_>>().join(",");
    let long = "x".repeat(501);
    let cases = [
        ("person=id".to_owned(), 400, "malformed-request", "needs a population"),
        ("person=none".to_owned(), 400, "malformed-request", "needs a population"),
        ("max_rows_per_person=2".to_owned(), 400, "malformed-request", "needs a population"),
        ("population=clinc".to_owned(), 422, "unknown-population", "\"clinic\""),
        ("population=%E2%80%8B".to_owned(), 400, "malformed-request", "not shown"),
        ("population=clinic&series=visits".to_owned(), 400, "malformed-request", "former name"),
        (
            "population=clinic&person=id&subject=id&max_rows_per_subject=1".to_owned(),
            400,
            "malformed-request",
            "former",
        ),
        (
            "population=clinic&max_rows_per_person=2&subject=id&max_rows_per_subject=1".to_owned(),
            400,
            "malformed-request",
            "former name",
        ),
        ("population=clinic&person=none&max_rows_per_person=2".to_owned(), 400, "malformed-request", "person key"),
        ("population=census&max_rows_per_person=2".to_owned(), 400, "malformed-request", "person key"),
        ("population=census&person=id".to_owned(), 400, "malformed-request", "has no key system"),
        ("population=clinic&person=pid".to_owned(), 422, "person-key-missing", "\"pid\""),
        ("population=names".to_owned(), 422, "person-key-missing", "\"first\", \"last\""),
        ("population=names&person=id%2Bwho".to_owned(), 422, "person-key-missing", "\"who\""),
        ("population=names&person=id".to_owned(), 400, "malformed-request", "name:first+last"),
        ("population=clinic&person=visit:id".to_owned(), 400, "malformed-request", "patient:id"),
        ("population=both&person=id".to_owned(), 400, "malformed-request", "patient:id, card:card"),
        ("population=both&person=patient:id,patient:age".to_owned(), 400, "malformed-request", "named twice"),
        ("population=clinic&person=patient:".to_owned(), 422, "person-key-missing", "\"\""),
        (format!("population=clinic&person={many}"), 400, "malformed-request", "patient:id"),
        (format!("population=clinic&person={}", "x".repeat(2001)), 400, "malformed-request", "2000"),
        ("population=clinic&person=".to_owned(), 400, "malformed-request", "person must have"),
        (format!("population={long}"), 400, "malformed-request", "population must have"),
        ("population=".to_owned(), 400, "malformed-request", "population must have"),
        ("population=clinic%00".to_owned(), 400, "malformed-request", "U+0000"),
        ("population=clinic&max_rows_per_person=0".to_owned(), 400, "malformed-request", "max_rows_per_person"),
        ("population=clinic&max_rows_per_person=1000001".to_owned(), 400, "malformed-request", "max_rows_per_person"),
        ("population=clinic&population=visits".to_owned(), 400, "malformed-request", "duplicate"),
        ("population=clinic&person=id&person=age".to_owned(), 400, "malformed-request", "duplicate"),
    ];
    for (query, status, name, words) in cases {
        let problem = server.upload_with(&query, csv.clone(), &[]).await.problem(status, name);
        assert!(text(&problem["detail"]).contains(words), "{query}: {problem:#}");
    }
    let typo = server.upload_with("population=clinc", csv.clone(), &[]).await.json();
    assert_eq!(typo["nearest"][0], "clinic");
    let missing = server.upload_with("population=names", csv, &[]).await.json();
    assert_eq!((&missing["columns"], &missing["key_systems"]), (&json!(["first", "last"]), &json!(["name"])));
    assert_eq!(stored(&data(&home), "datasets").await, 0);
    assert_no_rows_left(&home).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_a_person_or_with_too_many_are_refused() {
    let Clinic { server, home } = Clinic::open().await;
    let malformed =
        async |query: &str, csv: &str| server.upload_with(query, csv, &[]).await.problem(422, "upload-malformed");
    // a folded component that is empty, in any spelling
    let missing = malformed("population=clinic", "id,age\n1,7\n\u{200b},8\n,9\n\" \",9\n5,9\n").await;
    assert_eq!([&missing["row"], &missing["column"], &missing["missing"]], [&json!(2), &json!("id"), &json!(3)]);
    let half = malformed("population=names", "first,last,age\na,b,7\na,,8\n").await;
    assert_eq!([&half["row"], &half["column"], &half["missing"]], [&json!(2), &json!("last"), &json!(1)]);
    let twice = malformed("population=clinic", "id,age\n1,7\n2,8\n1,9\n2,1\n2,2\n").await;
    assert_eq!([&twice["row"], &twice["limit"], &twice["found"]], [&json!(3), &json!(1), &json!(3)]);
    let visits = malformed("population=visits", "id,age\n1,7\n1,8\n1,9\n1,1\n2,2\n").await;
    assert_eq!([&visits["limit"], &visits["found"]], [&json!(3), &json!(4)]);
    malformed("population=visits&max_rows_per_person=2", "id,age\n1,7\n1,8\n1,9\n").await;
    malformed("population=visits&subject=id&max_rows_per_subject=2", "id,age\n1,7\n1,8\n1,9\n").await;
    assert_eq!(stored(&data(&home), "datasets").await, 0);
    assert_no_rows_left(&home).await;
    // spellings that fold to one person are counted by themselves, in the composed form of Unicode
    uploaded(&server, "population=clinic", "id,age\n17,7\n017,8\n\"17.0\",9\n").await;
    malformed("population=clinic", "id,age\njos\u{e9},7\njose\u{301},8\n").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guarantees_hold_of_persons_with_several_rows() {
    let Clinic { server, home } = Clinic::open().await;
    let rows = |visits: u32| -> String {
        let row = |n: u32| format!("p{},{},w{},d{}\n", n / visits, 20 + n / 3 % 37, n * n % 4, n * 5 % 9);
        std::iter::once("id,age,ward,dx\n".to_owned()).chain((0..240).map(row)).collect()
    };
    let several = uploaded(&server, "population=visits", rows(3)).await;
    assert_eq!((&several["subject"], &several["max_rows_per_subject"]), (&json!("id"), &json!(3)));
    let document = json!({"attributes": {"id": {"drop": true}, "age": {"publish": true}, "ward": {"publish": true}},
        "method": {"type": "anatomy", "sensitive": "dx", "guarantee": {"type": "l_diversity", "l": 2}}});
    let release = server.publish(&text(&several["id"]), document).await;
    assert_eq!(release["unit"], json!({"subject": "id", "max_rows": 3}));
    assert_eq!(release["rules"][0]["enforced"], json!({"type": "l_diversity", "l": 6}));
    // nothing changes where each person has one row
    let single = uploaded(&server, "population=visits", rows(1)).await;
    assert_eq!(single["subject"], Value::Null);
    // a guarantee of persons needs one column that has a number for each
    let names = "first,last,age\na,b,7\na,c,8\na,b,9\n";
    let problem = server.upload_with("population=names", names, &[]).await.problem(422, "guarantee-unsupported");
    assert!(text(&problem["detail"]).contains("max_rows_per_person to 1"), "{problem}");
    server.stop().await;
    assert_eq!(stored(&data(&home), "dataset_evidence").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_columns_are_published_only_if_that_is_said_twice() {
    let Clinic { server, home: _home } = Clinic::open().await;
    let row = |n: u32| format!("f{},l{},{},d{}\n", n % 10, n / 10, 20 + n / 3 % 7, n * 5 % 9);
    let csv: String = std::iter::once("first,last,age,dx\n".to_owned()).chain((0..60).map(row)).collect();
    let dataset = text(&uploaded(&server, "population=names", csv).await["id"]);
    let document = |last: Value| {
        json!({"unlisted": "drop", "attributes": {"age": {"publish": true}, "last": last},
            "method": {"type": "anatomy", "sensitive": "dx", "guarantee": {"type": "l_diversity", "l": 2}}})
    };
    let job = server.job(&dataset, document(json!({"publish": true}))).await;
    job.fault("/attributes/last", "identifier-published");
    server.publish(&dataset, document(json!({"publish": true, "identifier": false}))).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_is_equal_in_all_formats_and_orders() {
    let Clinic { server, home } = Clinic::open().await;
    let csv = patients(0..700, HEADER);
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let json = rows.iter().map(|row| {
        let age: u64 = row[1].parse().unwrap();
        let [id, _, ward, sex, dx] = row[..] else { panic!("{row:?}") };
        format!(r#"{{"id":"{id}","age":{age},"ward":"{ward}","sex":"{sex}","dx":"{dx}"}}"#) + "\n"
    });
    let texts =
        |column: usize| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row[column]))) };
    let ages: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row[1].parse::<i64>().unwrap())));
    let batch = RecordBatch::try_from_iter([
        ("id", texts(0)),
        ("age", ages),
        ("ward", texts(2)),
        ("sex", texts(3)),
        ("dx", texts(4)),
    ]);
    let batches = [batch.unwrap()];
    // other orders of rows and of columns, and other names
    let shuffled = rows.iter().rev().map(|row| format!("{},{},{},{},{}\n", row[4], row[0], row[3], row[1], row[2]));
    let shuffled: String = std::iter::once("code,id,sex,age,ward\n".to_owned()).chain(shuffled).collect();
    let mut datasets = Vec::new();
    for (format, body) in [
        ("text/csv", csv.clone().into_bytes()),
        (NDJSON, json.collect::<String>().into_bytes()),
        (PARQUET, parquet_of(&batches, Compression::SNAPPY, WriterVersion::PARQUET_2_0)),
        (ARROW, arrow_of(&batches)),
        ("text/csv", shuffled.into_bytes()),
    ] {
        let headers = [(CONTENT_TYPE.as_str(), format)];
        datasets.push(server.upload_with("population=clinic", body, &headers).await.ok(201));
    }
    server.stop().await;
    with_store(&data(&home), async |store| {
        let mut found = Vec::new();
        for dataset in &datasets {
            found.push(evidence(store.as_ref(), dataset).await.unwrap());
        }
        let ((first, persons), (turned, of_turned)) = (&found[0], &found[4]);
        assert_eq!((first.rows, persons.len()), (700, 700));
        assert!(!first.blocks.is_empty() && first.signatures.len() == 5 && first.table.is_some());
        for other in &found[1..4] {
            assert!(*other == found[0], "{:?}", other.0.names);
        }
        assert_eq!(turned.table, first.table);
        assert!(of_turned == persons);
        let marks = |evidence: &Evidence, name: &str| evidence.systems["patient"].columns[name];
        assert_eq!(marks(turned, "code"), marks(first, "dx"));
        assert_ne!(turned.names, first.names);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_goes_with_the_rows_and_never_comes_without() {
    let Clinic { server, home } = Clinic::open().await;
    let dataset = uploaded(&server, "population=clinic", patients(0..50, HEADER)).await;
    assert_eq!(stored(&data(&home), "dataset_evidence").await, 1);
    assert_eq!(stored(&data(&home), "dataset_persons").await, 1);
    server.delete(&format!("/v1/datasets/{}", id(&dataset))).await.ok(200);
    assert_no_rows_left(&home).await;
    // an upload that fails at its end, after its persons are kept
    let digest = [("content-digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:")];
    let bad = server.upload_with("population=clinic", patients(0..50, HEADER), &digest).await;
    bad.problem(400, "digest-mismatch");
    let names = "first,last,age\na,b,7\na,b,9\n";
    server.upload_with("population=names", names, &[]).await.problem(422, "guarantee-unsupported");
    assert_no_rows_left(&home).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn datasets_of_earlier_versions_get_evidence_at_the_start() {
    let clinic = Clinic::open().await;
    let declared = uploaded(&clinic.server, "population=clinic", patients(0..300, HEADER)).await;
    let keyed = uploaded(&clinic.server, "record_key=id", patients(0..300, HEADER)).await;
    let purged = uploaded(&clinic.server, "name=t", patients(0..30, HEADER)).await;
    clinic.server.delete(&format!("/v1/datasets/{}", id(&purged))).await.ok(200);
    let datasets = [&declared, &keyed];
    let mut before = Vec::new();
    let clinic = clinic
        .between(async |store| {
            for dataset in datasets {
                before.push(evidence(store.as_ref(), dataset).await.unwrap());
            }
        })
        .await;
    let Clinic { home, server } = clinic;
    server.stop().await;
    execute(&data(&home), "DELETE FROM dataset_evidence").await;
    execute(&data(&home), "DELETE FROM dataset_persons").await;
    serve(&home).await.stop().await;
    with_store(&data(&home), async |store| {
        for (dataset, before) in datasets.iter().zip(&before) {
            assert!(evidence(store.as_ref(), dataset).await.as_ref() == Some(before));
        }
        assert_eq!(evidence(store.as_ref(), &purged).await, None);
        assert!(store.datasets_without_evidence().await.unwrap().is_empty());
    })
    .await;
}

/// Changes the database of a store that no service has open.
async fn execute(data: &Path, sql: &'static str) {
    use sqlx::{ConnectOptions, Connection};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(data.join("guardian.db"));
    let mut connection = options.connect().await.unwrap();
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_say_what_was_published_before() {
    let clinic = Clinic::open().await;
    let first = uploaded(&clinic.server, "population=clinic", patients(0..1500, HEADER)).await;
    let none = json!({"persons": {"count": 0, "of": 1500}, "same_table": false, "unknown_beside": []});
    assert_eq!(first["published_before"], none);
    let table = uploaded(&clinic.server, "name=t", patients(7000..7100, HEADER)).await;
    assert_eq!(table["published_before"], json!({"persons": null, "same_table": false, "unknown_beside": []}));
    // an upload that was not published says nothing
    let next = patients(1495..2600, HEADER);
    let second = uploaded(&clinic.server, "population=visits", next.clone()).await;
    assert_eq!(second["published_before"]["persons"], json!({"count": 0, "of": 1105}));
    let clinic = clinic.between(async |store| publish(store.as_ref(), &first).await).await;
    let look = async |server: &Server, dataset: &Value| {
        server.get(&format!("/v1/datasets/{}", id(dataset))).await.ok(200)["published_before"].clone()
    };
    // persons of one key system are the same in all populations
    let found = look(&clinic.server, &second).await;
    assert_eq!(found, json!({"persons": {"count": 5, "of": 1105}, "same_table": false, "unknown_beside": []}));
    let again = uploaded(&clinic.server, "population=clinic", patients(0..1500, HEADER)).await;
    assert_eq!(again["published_before"]["same_table"], true);
    assert_eq!(again["published_before"]["persons"], json!({"count": 1500, "of": 1500}));
    // without a common key nothing is known
    let keyless = look(&clinic.server, &table).await;
    assert_eq!(keyless, json!({"persons": null, "same_table": false, "unknown_beside": ["population:clinic"]}));
    let clinic = clinic.between(async |store| publish(store.as_ref(), &table).await).await;
    let places = json!([format!("dataset:{}", id(&table))]);
    assert_eq!(look(&clinic.server, &second).await["unknown_beside"], places);
    assert_eq!(look(&clinic.server, &table).await["same_table"], true, "its own release");
    // a list does not look it up
    for item in clinic.server.items("/v1/datasets").await {
        assert!(item.get("published_before").is_none(), "{item:#}");
    }
    clinic.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_count_some_of_many_persons() {
    let clinic = Clinic::open().await;
    let many = uploaded(&clinic.server, "population=clinic", patients(0..140_000, HEADER)).await;
    assert_eq!(many["published_before"]["persons"], json!({"count": 0, "of": 131_072}));
    // who is counted is drawn by chance, not by the order of rows
    let few = uploaded(&clinic.server, "population=clinic", patients(0..700, HEADER)).await;
    let clinic = clinic.between(async |store| publish(store.as_ref(), &few).await).await;
    let looked = clinic.server.get(&format!("/v1/datasets/{}", id(&many))).await.ok(200);
    let persons = &looked["published_before"]["persons"];
    assert_eq!(persons["of"], 131_072);
    let count = persons["count"].as_u64().unwrap();
    assert!((600..700).contains(&count), "{count} of 700, of 14 in 15 of the persons");
    clinic.server.stop().await;
}
