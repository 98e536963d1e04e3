//! The binary without a server: publish, verify, openapi, and how each ends.

use std::fs;
use std::path::Path;
use std::process::Output;

use guardian::vault::Secret;
use serde_json::{Value, json};

use crate::support::folder::{CommandFixture, code, names, read_json, stderr};
use crate::support::harness::{HOSPITAL, MARKER, Server, assert_problem, guardian, hospital_method, kind, run};

const PARTS: [&str; 3] = ["t1.qi.csv", "t1.sa.csv", "t2.rows.csv"];

#[test]
fn a_release_is_written_and_verified() {
    let service = CommandFixture::hospital();
    let manifest = service.published("out", &[]);
    let mut expected = vec!["manifest.json", "report.json", "specification.json"];
    expected.extend(PARTS);
    expected.sort_unstable();
    assert_eq!(names(&service.path("out")), expected);
    assert_eq!(service.names(), ["S.json", "T.csv", "out"]);
    assert_eq!(
        (&manifest["id"], &manifest["series"], &manifest["composition"]),
        (&Value::Null, &Value::Null, &json!("none"))
    );
    assert_eq!((manifest.get("reproducible"), &manifest["verification"]["verified"]), (None, &json!(true)));
    assert_eq!(read_json(&service.path("out/specification.json"))["method"]["algorithm"], "uad");
    assert!(read_json(&service.path("out/report.json"))["summary"].is_string());

    let original = service.original();
    for (more, linkage) in [(vec![], "not_checked"), (vec!["--original", original.as_str()], "not_checked")] {
        let output = service.verify("out", &more);
        assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8(output.stdout).unwrap().contains("verified; linkage"));
        let output = service.verify("out", &[&more[..], &["--json"]].concat());
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((code(&output), &summary["verified"], &summary["linkage"]), (0, &json!(true), &json!(linkage)));
        let checks: Vec<&str> =
            summary["checks"].as_array().unwrap().iter().map(|check| check["check"].as_str().unwrap()).collect();
        assert_eq!(checks.contains(&"content"), !more.is_empty(), "{checks:?}");
    }
    // another table than the one it was made from
    fs::write(service.path("other.csv"), HOSPITAL.replace("23,M", "24,M")).unwrap();
    let other = service.path("other.csv");
    let output = service.verify("out", &["--original", other.to_str().unwrap()]);
    assert_eq!(code(&output), 1, "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn compressed_input_and_an_empty_folder_are_taken() {
    let service =
        CommandFixture::new(crate::service::uploads::gzip(HOSPITAL.as_bytes()), &json!({"method": hospital_method()}));
    fs::create_dir(service.path("out")).unwrap();
    service.published("out", &[]);
    assert_eq!(code(&service.verify("out", &["--original", &service.original()])), 0);
}

/// A column of which more than half of the values are distinct is published with a warning.
#[test]
fn mostly_distinct_columns_are_warned_of() {
    let rows: String = (0..40).map(|i| format!("{},n{},d{}\n", i % 7, i * 6 / 10, i % 4)).collect();
    let method =
        json!({"type": "versatile", "rules": ["age -> disease"], "default_guarantee": {"type": "l_diversity", "l": 2}});
    let specification = json!({"attributes": {"note": {"publish": true}}, "method": method});
    let service = CommandFixture::new(format!("age,note,disease\n{rows}"), &specification);
    let output = service.publish("out", &[]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("warning: mostly-distinct: more than half of the values of note"),
        "{}",
        stderr(&output)
    );
    // a check that passed has no detail
    let said = String::from_utf8(service.verify("out", &[]).stdout).unwrap();
    assert!(said.lines().all(|line| line == line.trim_end()), "{said:?}");
}

#[test]
fn every_outcome_has_its_exit_code() {
    let service = CommandFixture::hospital();
    let usage: [&[&str]; 5] =
        [&[], &["publish"], &["verify"], &["publish", "--surprise"], &["serve", "--listen", "nowhere"]];
    for arguments in usage {
        assert_eq!(code(&run(guardian().args(arguments))), 2, "{arguments:?}");
    }
    for key in ["00", "g".repeat(64).as_str(), "é".repeat(32).as_str(), "Identity"] {
        assert_eq!(code(&service.publish("out", &["--reproduce", key])), 2, "{key}");
    }
    assert_eq!(code(&service.verify("nowhere", &[])), 4);
    fs::create_dir(service.path("empty")).unwrap();
    assert_eq!(code(&service.verify("empty", &[])), 4);
    fs::write(service.path("empty/manifest.json"), "{}").unwrap();
    assert_eq!(code(&service.verify("empty", &[])), 4);
    let missing = run(guardian()
        .args(["publish", "--input", "/nowhere/T.csv", "--spec"])
        .arg(service.path("S.json"))
        .arg("--out")
        .arg(service.path("out")));
    assert_eq!(code(&missing), 4, "{}", stderr(&missing));
    assert_eq!(service.names(), ["S.json", "T.csv", "empty"]);
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let service = CommandFixture::hospital();
    fs::create_dir(service.path("out")).unwrap();
    fs::write(service.path("out/precious"), "mine").unwrap();
    let output = service.publish("out", &[]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert!(stderr(&output).contains("not empty"));
    assert_eq!(
        (service.names(), names(&service.path("out"))),
        (vec!["S.json".into(), "T.csv".into(), "out".into()], vec!["precious".into()])
    );
    assert_eq!(code(&service.publish("T.csv", &[])), 4);
    assert_eq!(fs::read_to_string(service.path("T.csv")).unwrap(), HOSPITAL);
}

#[test]
fn a_refusal_is_a_problem_and_leaves_nothing() {
    let mut strict = json!({"method": hospital_method()});
    strict["method"]["default_guarantee"]["l"] = 4.into();
    let marked = format!("age,race\n1,{MARKER}\n2,{MARKER}\n");
    let two = json!({"method": {"type": "versatile", "rules": ["age -> race"], "default_guarantee": {"type": "l_diversity", "l": 2}}});
    let ragged = format!("age,race\n{MARKER}\n");
    for (csv, specification, name, pointer) in [
        (HOSPITAL, strict, "rule-ineligible", "/method/rules/0"),
        (HOSPITAL, two.clone(), "unclassified-attributes", "/attributes"),
        (HOSPITAL, json!([]), "parameter-range", ""),
        (&marked, two.clone(), "rule-ineligible", "/method/rules/0"),
        (&ragged, two.clone(), "upload-malformed", ""),
        ("age,race\n", two, "empty-table", ""),
    ] {
        let service = CommandFixture::new(csv.as_bytes(), &specification);
        let output = service.publish("out", &[]);
        assert_eq!((code(&output), output.stdout.len()), (3, 0), "{}", stderr(&output));
        let problem: Value = serde_json::from_str(&stderr(&output)).unwrap();
        assert_problem(&problem);
        let errors = problem["errors"].as_array().into_iter().flatten();
        let faults: Vec<_> = errors.map(|fault| (kind(fault), fault["pointer"].as_str().unwrap())).collect();
        assert!(kind(&problem) == name || faults.contains(&(name, pointer)), "{name}: {problem:#}");
        assert_eq!(service.names(), ["S.json", "T.csv"]);
    }
    let service = CommandFixture::hospital();
    fs::write(service.path("S.json"), "{\"method\": ").unwrap();
    let output = service.publish("out", &[]);
    assert_eq!((code(&output), kind(&serde_json::from_str(&stderr(&output)).unwrap())), (3, "malformed-body"));
    assert_eq!(service.names(), ["S.json", "T.csv"]);
}

/// What somebody may do to a release; the manifest is given parsed.
type Tampering = (&'static str, fn(&Path, &mut Value));

fn edit(folder: &Path, file: &str, change: impl FnOnce(String) -> String) {
    let path = folder.join(file);
    let changed = change(fs::read_to_string(&path).unwrap());
    fs::write(path, changed).unwrap();
}

/// Changes a part and gives the manifest the digest of what it is now, as an able forger would.
fn forge(folder: &Path, manifest: &mut Value, file: &str, change: impl FnOnce(String) -> String) {
    edit(folder, file, change);
    let digest = crate::methods::manifest_figures::sha256(&fs::read(folder.join(file)).unwrap());
    for table in manifest["tables"].as_array_mut().unwrap() {
        for part in table["parts"].as_array_mut().unwrap() {
            if part["file"] == file {
                part["sha256"] = digest.clone().into();
            }
        }
    }
}

fn line_swapped(csv: String, a: usize, b: usize) -> String {
    let mut lines: Vec<&str> = csv.lines().collect();
    lines.swap(a, b);
    lines.join("\n") + "\n"
}

/// Of any release of the hospital table.
const TAMPERINGS: &[Tampering] = &[
    ("a cell", |folder, _| edit(folder, "t2.rows.csv", |csv| csv.replace("23,", "24,"))),
    ("a line end", |folder, _| edit(folder, "t2.rows.csv", |csv| csv.replace('\n', "\r\n"))),
    ("a row more", |folder, manifest| forge(folder, manifest, "t2.rows.csv", |csv| csv + "99,flu\n")),
    ("a row less", |folder, manifest| {
        forge(folder, manifest, "t2.rows.csv", |csv| csv.lines().take(6).map(|line| format!("{line}\n")).collect());
    }),
    ("another order", |folder, manifest| forge(folder, manifest, "t1.qi.csv", |csv| line_swapped(csv, 1, 2))),
    ("labels of buckets", |folder, manifest| forge(folder, manifest, "t1.sa.csv", |csv| csv.replace("\n3,", "\n4,"))),
    ("a bucket of one value", |folder, manifest| {
        forge(folder, manifest, "t1.sa.csv", |csv| {
            let mut lines: Vec<String> = csv.lines().map(str::to_owned).collect();
            lines[2] = lines[1].clone();
            lines.join("\n") + "\n"
        });
    }),
    ("a column more", |folder, manifest| {
        forge(folder, manifest, "t2.rows.csv", |csv| csv.lines().map(|line| format!("{line},x\n")).collect());
    }),
    ("a header", |folder, manifest| forge(folder, manifest, "t2.rows.csv", |csv| csv.replacen("age", "aged", 1))),
    ("rows of a part", |_, manifest| manifest["tables"][1]["parts"][0]["rows"] = 7.into()),
    ("a digest", |_, manifest| manifest["tables"][1]["parts"][0]["sha256"] = "00".repeat(32).into()),
    ("the worst posterior", |_, manifest| manifest["rules"][1]["achieved"]["worst_posterior"]["of"] = 3.into()),
    ("the median posterior", |_, manifest| manifest["rules"][1]["achieved"]["median_posterior"]["of"] = 3.into()),
    ("the smallest bucket", |_, manifest| manifest["rules"][2]["achieved"]["smallest_bucket"] = 3.into()),
    ("figures left out", |_, manifest| drop(manifest["rules"][1].as_object_mut().unwrap().remove("achieved"))),
    ("sizes of buckets", |_, manifest| manifest["utility"]["bucket_sizes"][0]["buckets"] = 4.into()),
    ("sizes left out", |_, manifest| manifest["utility"]["bucket_sizes"] = json!([])),
    ("the entropy of the model", |_, manifest| manifest["utility"]["model_entropy_nats"] = json!(2.5)),
    ("how the entropy was found", |_, manifest| manifest["utility"]["entropy_method"] = "acyclic_subset".into()),
    ("half of the entropy", |_, manifest| drop(manifest["utility"].as_object_mut().unwrap().remove("entropy_method"))),
    ("a stronger guarantee", |_, manifest| manifest["rules"][1]["guarantee"]["l"] = 3.into()),
    ("a stronger guard", |_, manifest| manifest["tables"][0]["guards"][0]["guarantees"][0]["l"] = 3.into()),
    ("no guard", |_, manifest| {
        manifest["tables"][0]["guards"] = json!([]);
        manifest["tables"][0]["protection"] = "plain".into();
    }),
    ("a rule that does not hold", |_, manifest| {
        manifest["rules"][0]["quasi_identifiers"] = json!(["hospital"]);
        manifest["rules"][0]["sensitive"] = json!(["gender"]);
    }),
    ("why a rule holds", |_, manifest| manifest["rules"][1]["enforced_by"] = json!({"unreachable": true})),
    ("types", |_, manifest| manifest["tables"][1]["parts"][0]["types"]["icd9"] = "integer".into()),
];

#[test]
fn tampering_is_found() {
    let service = CommandFixture::new(HOSPITAL, &json!({"utility": ["entropy"], "method": hospital_method()}));
    service.published("out", &["--reproduce", "identity"]);
    let copy = service.path("copy");
    for (what, tamper) in TAMPERINGS {
        fs::create_dir(&copy).unwrap();
        for name in names(&service.path("out")) {
            fs::copy(service.path("out").join(&name), copy.join(&name)).unwrap();
        }
        let mut manifest = read_json(&copy.join("manifest.json"));
        tamper(&copy, &mut manifest);
        fs::write(copy.join("manifest.json"), manifest.to_string()).unwrap();
        let output = service.verify("copy", &["--json"]);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!((code(&output), &summary["verified"]), (1, &json!(false)), "{what}: {summary:#}{}", stderr(&output));
        fs::remove_dir_all(&copy).unwrap();
    }
    // a part that is not there cannot be read
    fs::remove_file(service.path("out/t1.sa.csv")).unwrap();
    assert_eq!(code(&service.verify("out", &[])), 4);
}

#[test]
fn with_the_original_the_specification_speaks_not_the_manifest() {
    let service = CommandFixture::hospital();
    let mut manifest = service.published("out", &[]);
    manifest["rules"].as_array_mut().unwrap().pop();
    fs::write(service.path("out/manifest.json"), manifest.to_string()).unwrap();
    let output = service.verify("out", &["--original", &service.original()]);
    assert_eq!(code(&output), 1, "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_manifest_leads_nowhere_else() {
    let service = CommandFixture::hospital();
    for file in ["../T.csv", "/etc/passwd", ".hidden"] {
        let out = service.path("out");
        let _ = fs::remove_dir_all(&out);
        let mut manifest = service.published("out", &[]);
        manifest["tables"][1]["parts"][0]["file"] = file.into();
        fs::write(out.join("manifest.json"), manifest.to_string()).unwrap();
        let output = service.verify("out", &[]);
        assert!([1, 4].contains(&code(&output)), "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_one_key_the_server_and_the_command_line_agree() {
    let service = CommandFixture::hospital();
    let server = Server::start_as(|_| {}, std::sync::Arc::new(|| Ok(Secret::new([0xa7; 32])))).await;
    let dataset = server.dataset(HOSPITAL).await;
    let served = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let manifest = service.published("a", &["--reproduce", &"a7".repeat(32)]);
    assert_eq!(manifest["reproducible"], true);
    for ((table, part), file) in [("t1", "qi"), ("t1", "sa"), ("t2", "rows")].into_iter().zip(PARTS) {
        assert_eq!(server.part(&served, table, part).await, fs::read_to_string(service.path("a").join(file)).unwrap());
    }
    assert_eq!(manifest["tables"], served["tables"]);
    server.stop().await;

    service.published("again", &["--reproduce", &"A7".repeat(32)]);
    service.published("other", &["--reproduce", &"a8".repeat(32)]);
    service.published("identity", &["--reproduce", "identity"]);
    let parts = |out: &str| PARTS.map(|file| fs::read_to_string(service.path(out).join(file)).unwrap());
    assert_eq!(parts("a"), parts("again"));
    assert_ne!(parts("a"), parts("other"));
    assert_eq!(code(&service.verify("other", &["--original", &service.original()])), 0);
}

#[test]
fn the_openapi_document_is_the_committed_one() {
    let output = run(guardian().arg("openapi"));
    assert_eq!(code(&output), 0);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), include_str!("../../../openapi/openapi.json"));
}

/// What a reader does with a release that was served: keep its files, verify them.
#[tokio::test(flavor = "multi_thread")]
async fn a_downloaded_release_is_verified() {
    let server = Server::start().await;
    let csv = "int,dec,note,sick\n10,1.5,,a\n9,2,\"\",b\n10,3,x,c\n9,10,NA,a\n100,0.5,x,b\n7,1,y,c\n";
    for types in ["", "types=int:text,dec:text", "types=int:decimal"] {
        let dataset = server.upload(types, csv).await.ok(201);
        let document = json!({"unlisted": "drop", "attributes": {"note": {"publish": true}},
            "method": crate::support::harness::versatile(&["int, dec -> sick"])});
        let manifest = server.publish(dataset["id"].as_str().unwrap(), document).await;
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("manifest.json"), manifest.to_string()).unwrap();
        for table in manifest["tables"].as_array().unwrap() {
            for part in table["parts"].as_array().unwrap() {
                let csv = server.part(&manifest, table["name"].as_str().unwrap(), part["name"].as_str().unwrap()).await;
                fs::write(home.path().join(part["file"].as_str().unwrap()), csv).unwrap();
            }
        }
        let output = run(guardian().arg("verify").arg(home.path()));
        assert_eq!(code(&output), 0, "{types}: {}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    }
    server.stop().await;
}

#[test]
fn the_demo_publishes_two_tables() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let output = run(guardian().args(["demo", "--exit", "--listen", "127.0.0.1:0", "--data"]).arg(&data));
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap();
    for words in ["hospital: 6 rows, 6 columns", "adult: 45222 rows, 15 columns", "Swagger UI", "linkage checked"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_table_of_anybody_is_held_against_rules() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::write(at("T.csv"), "age,zip,disease\n37,a,flu\n37,a,cold\n41,b,flu\n41,b,flu\n41,b,cold\n").unwrap();
    let verify = |arguments: &[&str]| run(guardian().arg("verify").args(arguments).current_dir(home.path()));
    let said = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    let two = "{\"type\":\"l_diversity\",\"l\":2}";
    let output = verify(&["T.csv", "--rules", "age, zip -> disease", "--guarantee", two]);
    assert_eq!(code(&output), 1, "{}", String::from_utf8_lossy(&output.stderr));
    for line in [
        "table table: 5 rows",
        "  disease by age, zip: 2 classes, distinct l 2, k 2, l 1.500, worst posterior 2/3",
        "rule age, zip -> disease: FAILS; table table: 1 class does not keep l_diversity of \"disease\"",
        "  table: age = 41, zip = b",
        "NOT VERIFIED; linkage not checked",
    ] {
        assert!(said(&output).contains(line), "{line} is not in\n{}", said(&output));
    }
    let k = "{\"type\":\"k_anonymity\",\"k\":2}";
    let output = verify(&[
        "T.csv",
        "--rules",
        "age -> disease",
        "--rules",
        "zip -> disease",
        "--guarantee",
        k,
        "--json",
        "--original",
        "T.csv",
    ]);
    assert_eq!(code(&output), 0);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["verified"], found["rules"].as_array().unwrap().len()), (&json!(true), 2));
    // files beside a request
    fs::write(at("qi.csv"), "bucket,age\n1,37\n1,41\n").unwrap();
    fs::write(at("sa.csv"), "bucket,disease\n1,flu\n1,cold\n").unwrap();
    let part = |name: &str| json!({"name": name, "file": format!("{name}.csv"), "bucketed": true});
    let mut request = json!({"tables": [{"name": "t", "parts": [part("qi"), part("sa")]}], "rules": ["age -> disease"],
        "default_guarantee": {"type": "l_diversity", "l": 2}, "attacks": ["exact_posteriors"]});
    fs::write(at("request.json"), request.to_string()).unwrap();
    let output = verify(&["--request", "request.json"]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        said(&output).contains("attack exact_posteriors: no breach, 0 findings, worst posterior 1/2\n"),
        "{}",
        said(&output)
    );
    // parts with a shared attribute: either disease of two women is equally likely, that of a man and a woman certain
    for (qi, sa, expected) in [("37,F\n1,41,F", "F,flu\n1,F,cold", 0), ("37,F\n1,41,M", "F,flu\n1,M,cold", 1)] {
        fs::write(at("qi.csv"), format!("bucket,age,sex\n1,{qi}\n")).unwrap();
        fs::write(at("sa.csv"), format!("bucket,sex,disease\n1,{sa}\n")).unwrap();
        let output = verify(&["--request", "request.json"]);
        assert_eq!(code(&output), expected, "{}", said(&output));
    }
    // how it ends otherwise
    let refused = |output: &Output| {
        assert_eq!(code(output), 3, "{}", String::from_utf8_lossy(&output.stderr));
        let problem: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_problem(&problem);
        problem
    };
    request["tables"][0]["parts"][0]["file"] = json!("../T.csv");
    fs::write(at("outside.json"), request.to_string()).unwrap();
    assert_eq!(kind(&refused(&verify(&["--request", "outside.json"]))), "malformed-request");
    let problem = refused(&verify(&["T.csv", "--rules", "age -> nobody", "--guarantee", two]));
    assert_eq!(problem["errors"][0]["pointer"], "/rules/0");
    assert_eq!(kind(&problem["errors"][0]), "unknown-attribute");
    for usage in [
        &["T.csv"][..],
        &["T.csv", "--rules", "age -> disease"],
        &["T.csv", "--guarantee", two],
        &["T.csv", "--rules", "age -> disease", "--guarantee", "l=2"],
        &["T.csv", "--request", "request.json"],
        &[],
    ] {
        assert_eq!(code(&verify(usage)), 2, "{usage:?}");
    }
    assert_eq!(code(&verify(&["none.csv", "--rules", "a -> b", "--guarantee", two])), 4);
}
