//! The first remedy of each refusal because of people, executed as it is written: the job is published, or refused for what
//! remains.

use serde_json::{Value, json};

use super::data_subjects::{HEADER, patients, plain};
use crate::support::harness::{Server, kind, text, versatile};

/// What a reader of a remedy knows: the file, a name that is free, its columns of persons.
struct Reader<'a> {
    server: &'a Server,
    file: String,
    /// The file that was published before.
    earlier: String,
    population: &'static str,
    job: Value,
}

impl Reader<'_> {
    fn filled(&self, written: &str) -> String {
        let words =
            [("NAME", self.population), ("COLUMN", "id"), ("DESCRIPTION", "people of a test"), ("REASON", "a test")];
        words.iter().fold(written.to_owned(), |text, (place, word)| text.replace(place, word))
    }

    /// Uploads the file, and posts the job of it.
    async fn publish(&self, query: &str) -> Value {
        let dataset = text(&self.server.upload_with(query, self.file.clone(), &[]).await.ok(201)["id"]);
        self.post(json!({"dataset": dataset})).await
    }

    /// Posts the job with other members; its record, or the problem that it is refused with.
    async fn post(&self, members: Value) -> Value {
        let mut document = self.job.clone();
        document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.server.post("/v1/jobs?wait=60", &document).await.json()
    }

    /// Executes a remedy of a refusal of `dataset`, and then what was refused.
    async fn execute(&self, remedy: &Value, dataset: &str) -> Value {
        let (method, path) =
            text(&remedy["call"]).split_once(' ').map(|(a, b)| (a.to_owned(), self.filled(b))).unwrap();
        let body: Value = serde_json::from_str(&self.filled(&remedy["body"].to_string())).unwrap();
        match (method.as_str(), path.split_once('?')) {
            ("POST", Some(("/v1/datasets", query))) if text(&remedy["words"]).contains("the earlier file") => {
                let again =
                    Reader { file: self.earlier.clone(), job: self.job.clone(), earlier: String::new(), ..*self };
                assert_eq!(Box::pin(again.publish(query)).await["status"], "succeeded");
                self.post(json!({"dataset": dataset})).await
            }
            ("POST", Some(("/v1/datasets", query))) => self.publish(query).await,
            ("POST", None) if path == "/v1/jobs" => self.server.post("/v1/jobs?wait=60", &body).await.json(),
            ("POST", None) => {
                self.server.post(&path, &body).await.ok(201);
                self.post(json!({"dataset": dataset})).await
            }
            ("PUT", None) => {
                self.server.put(&path, &body).await.ok(201);
                self.publish(&format!("population={}", self.population)).await
            }
            _ => panic!("{remedy}"),
        }
    }
}

fn protected() -> Value {
    json!({"unlisted": "drop", "method": versatile(&["age -> dx"])})
}

fn with_ward() -> Value {
    let mut job = protected();
    job["attributes"] = json!({"ward": {"publish": true}});
    job
}

/// A refusal, and what becomes of it.
struct Case {
    name: &'static str,
    /// What was published before, with its parameters.
    earlier: [(&'static str, String); 1],
    parameters: &'static str,
    file: String,
    job: Value,
    refusal: &'static str,
    /// The refusal that remains. Nothing, where the first remedy leads to a release.
    remains: Option<&'static str>,
}

/// Other cells at each place.
fn other_people() -> String {
    let rows = patients(7_000..7_300, HEADER);
    let numbered = rows.lines().enumerate().map(|(at, row)| match (at, row.split_once(',')) {
        (0, _) | (_, None) => format!("{row}\n"),
        (at, Some((_, cells))) => format!("p{},{cells}\n", at - 1),
    });
    numbered.collect()
}

fn renumbered() -> String {
    patients(0..900, HEADER).replace("\np", "\nq")
}

/// One ward is corrected.
fn corrected() -> String {
    let rows = patients(0..900, HEADER);
    let mut lines: Vec<String> = rows.lines().map(str::to_owned).collect();
    let cells: Vec<&str> = lines[8].split(',').collect();
    let ward = if cells[2] == "w1" { "w2" } else { "w1" };
    lines[8] = [cells[0], cells[1], ward, cells[3], cells[4]].join(",");
    lines.join("\n") + "\n"
}

fn cases() -> Vec<Case> {
    let clinic = || [("population=clinic", patients(0..900, HEADER))];
    let case = |name, parameters, file, refusal, remains| Case {
        name,
        earlier: clinic(),
        parameters,
        file,
        job: with_ward(),
        refusal,
        remains,
    };
    let mut keyless =
        case("no key to leave people out by", "name=x", patients(7_000..7_300, HEADER), "people-unknown", None);
    keyless.job["people"] = "unpublished".into();
    let mut earlier_keyless = case(
        "an earlier table without a key",
        "population=clinic",
        patients(7_000..7_300, HEADER),
        "people-unknown",
        None,
    );
    earlier_keyless.earlier = [("population=clinic&person=none", patients(0..900, HEADER))];
    vec![
        case("newcomers", "population=clinic", patients(0..960, HEADER), "overlapping-people", None),
        case(
            "a corrected ward and diagnoses that were published",
            "population=clinic",
            corrected(),
            "overlapping-people",
            Some("composition-violated"),
        ),
        Case {
            job: plain(&["ward", "sex"]),
            ..case(
                "a corrected ward and what was not published",
                "population=clinic",
                corrected(),
                "overlapping-people",
                None,
            )
        },
        case("others with the same numbers", "population=clinic", other_people(), "overlapping-people", None),
        case(
            "some who were published",
            "population=clinic",
            patients(0..800, HEADER),
            "overlapping-people",
            Some("people-alike"),
        ),
        case(
            "others of whom nothing is known",
            "name=x",
            patients(7_000..7_300, HEADER),
            "population-undeclared",
            None,
        ),
        case(
            "a population that no one spoke of",
            "population=town",
            patients(7_000..7_300, HEADER),
            "population-undeclared",
            None,
        ),
        keyless,
        earlier_keyless,
        case(
            "the same people under new numbers",
            "population=clinic",
            renumbered(),
            "people-alike",
            Some("people-alike"),
        ),
        case(
            "patients in the wrong population",
            "population=staff",
            patients(0..960, HEADER),
            "statement-contradicted",
            Some("overlapping-people"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn first_remedies_publish_or_say_what_remains() {
    let mut server = Server::start().await;
    for Case { name, earlier, parameters, file, job, refusal, remains } in cases() {
        server = server.anew().await;
        for (population, system, more) in [
            ("clinic", "patient", json!({})),
            ("town", "resident", json!({})),
            ("staff", "patient", json!({"disjoint_from": ["clinic"], "reason": "no patient works here"})),
        ] {
            let person = json!([{"key_system": system, "columns": ["id"]}]);
            let mut document = json!({"description": "of a test", "person": person});
            document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            server.put(&format!("/v1/populations/{population}"), &document).await.ok(201);
        }
        let [(query, earlier_file)] = earlier;
        let before = text(&server.upload_with(query, earlier_file.clone(), &[]).await.ok(201)["id"]);
        server.publish(&before, with_ward()).await;
        let dataset = text(&server.upload_with(parameters, file.clone(), &[]).await.ok(201)["id"]);
        let mut document = job.clone();
        document["dataset"] = dataset.clone().into();
        let problem = server.post("/v1/jobs?wait=60", &document).await.problem(409, refusal);
        // what a reader of the refusal would fill in
        let defines = text(&problem["remedies"][0]["call"]).starts_with("PUT");
        let population = if defines { "others" } else { "clinic" };
        let reader = Reader { server: &server, file, earlier: earlier_file, population, job };
        let found = reader.execute(&problem["remedies"][0], &dataset).await;
        match remains {
            None => assert_eq!(found["status"], "succeeded", "{name}: {problem:#} {found:#}"),
            Some(remains) => {
                let remaining = if found["problem"].is_null() { &found } else { &found["problem"] };
                assert_eq!(kind(remaining), remains, "{name}: {problem:#} {found:#}");
            }
        }
    }
    server.stop().await;
}
