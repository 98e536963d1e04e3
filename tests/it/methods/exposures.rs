//! Recomputes the exposures of a manifest from the CSV parts, as a reader could; and looks for those of the internal report.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use guardian::ledger::EarlierDisclosures;
use guardian::random::RandomStreams;
use serde_json::{Value, json};

use super::manifest_figures::rows;
use crate::support::harness::{HOSPITAL, Server, guardian, hospital_method, run, text};
use crate::support::library::{Original, is_verified, release, some_rows, table};

/// Every fourth row of Adult is published; all in the longer runs.
pub(super) const ONE_IN: usize = 4;

/// Rows with one possible value, and rows with a value of a probability above 1/2.
type Revealed = (u64, u64);

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

struct PartRows {
    name: String,
    columns: Vec<String>,
    /// The columns with values in their cells.
    exact: Vec<String>,
    tuples: bool,
    labels: Option<Vec<String>>,
    cells: Vec<Vec<String>>,
}

impl PartRows {
    fn read(files: &HashMap<String, String>, part: &Value) -> Self {
        let (header, mut cells) = rows(&files[&text(&part["file"])]);
        let labels = (header[0] == "bucket").then(|| cells.iter_mut().map(|row| row.remove(0)).collect());
        let columns = header.into_iter().filter(|name| name != "bucket").collect::<Vec<_>>();
        let exact = columns.iter().filter(|name| part["cells"].get(name.as_str()).is_none()).cloned().collect();
        let tuples = part["row_meaning"] == "tuples";
        Self { name: text(&part["name"]), columns, exact, tuples, labels, cells }
    }

    fn column(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column == name).unwrap()
    }

    /// The rows of each group of equal cells.
    fn groups(&self, known: &[String]) -> Vec<Vec<usize>> {
        let at: Vec<usize> = known.iter().map(|name| self.column(name)).collect();
        let mut groups: HashMap<Vec<&str>, Vec<usize>> = HashMap::new();
        for (row, cells) in self.cells.iter().enumerate() {
            groups.entry(at.iter().map(|&at| cells[at].as_str()).collect()).or_default().push(row);
        }
        groups.into_values().collect()
    }

    /// The values of a column in each bucket.
    fn by_bucket(&self, name: &str) -> HashMap<&str, HashMap<&str, u64>> {
        let (at, mut buckets) = (self.column(name), HashMap::<&str, HashMap<&str, u64>>::new());
        for (label, cells) in self.labels.as_ref().unwrap().iter().zip(&self.cells) {
            *buckets.entry(label).or_default().entry(&cells[at]).or_default() += 1;
        }
        buckets
    }

    /// What the known columns reveal of a column here, or of a column of `other` in the same bucket.
    fn revealed(
        &self,
        known: &[String],
        attribute: &str,
        other: Option<&HashMap<&str, HashMap<&str, u64>>>,
    ) -> Revealed {
        let (mut fixed, mut likely) = (0, 0);
        for group in self.groups(known) {
            let mut expected: BTreeMap<&str, f64> = BTreeMap::new();
            for &row in &group {
                match other {
                    None => *expected.entry(&self.cells[row][self.column(attribute)]).or_default() += 1.0,
                    Some(buckets) => {
                        let Some(bucket) = buckets.get(self.labels.as_ref().unwrap()[row].as_str()) else { continue };
                        let all: u64 = bucket.values().sum();
                        for (value, count) in bucket {
                            *expected.entry(value).or_default() += *count as f64 / all as f64;
                        }
                    }
                }
            }
            let rows = group.len() as u64;
            let most = expected.values().copied().fold(0.0, f64::max);
            fixed += if expected.len() == 1 { rows } else { 0 };
            likely += if most / rows as f64 > 0.5 + 1e-9 { rows } else { 0 };
        }
        (fixed, likely)
    }
}

fn without(names: &[String], name: &str) -> Vec<String> {
    names.iter().filter(|other| *other != name).cloned().collect()
}

fn choices(columns: &[String]) -> Vec<Vec<String>> {
    let mut choices = vec![Vec::new()];
    choices.extend(columns.iter().map(|one| vec![one.clone()]));
    for (at, one) in columns.iter().enumerate() {
        choices.extend(columns[at + 1..].iter().map(|two| vec![one.clone(), two.clone()]));
    }
    choices
}

/// Compares the exposures of a manifest with those of the parts, by the names of their files.
pub(crate) fn assert_recomputed(files: &HashMap<String, String>, manifest: &Value) {
    let mut said = manifest["exposures"].clone();
    let mut unprotected = strings(&said["unprotected"]);
    unprotected.sort();
    said["unprotected"] = json!(unprotected);
    assert_eq!(said, recomputed(files, manifest));
    assert!(said["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{said:#}");
}

/// The exposures of a release, from its parts.
fn recomputed(files: &HashMap<String, String>, manifest: &Value) -> Value {
    let rules = manifest["rules"].as_array().unwrap();
    let mut protected: Vec<String> = rules.iter().flat_map(|rule| strings(&rule["sensitive"])).collect();
    // a requirement of a sequential release protects without a rule what it bounds the shares of
    let required = manifest["method_details"]["requirements"].as_array().into_iter().flatten();
    for bounded in required.filter(|of| of["measure"]["type"] == "xy_linkability") {
        protected.extend(strings(&bounded["y"]).iter().filter_map(|y| y.strip_prefix("new.").map(str::to_owned)));
    }
    let (mut unique, mut values, mut others) = (Vec::new(), Vec::new(), Vec::<Value>::new());
    let mut tried = 0;
    for table in manifest["tables"].as_array().unwrap() {
        let name = &table["name"];
        let guards = table["guards"].as_array().into_iter().flatten().flat_map(|guard| strings(&guard["sensitive"]));
        let enforced = rules.iter().filter(|rule| rule["enforced_by"]["table"] == *name);
        let by_table: Vec<String> = guards.chain(enforced.flat_map(|rule| strings(&rule["sensitive"]))).collect();
        let parts: Vec<PartRows> =
            table["parts"].as_array().unwrap().iter().map(|part| PartRows::read(files, part)).collect();
        for (part, described) in parts.iter().zip(table["parts"].as_array().unwrap()).filter(|(part, _)| part.tuples) {
            let of = part.cells.len();
            let shown = |name: &&String| described["cells"][name.as_str()] != "suppressed";
            let columns: Vec<String> = part.columns.iter().filter(shown).cloned().collect();
            let entry = |attribute: &str, protected: bool, known: &[String], (fixed, likely): Revealed| {
                json!({"attribute": attribute, "protected": protected, "table": name, "part": part.name, "known": known,
                    "fixed": {"count": fixed, "of": of}, "likely": {"count": likely, "of": of}})
            };
            let row: Vec<String> = columns.iter().filter(|name| !by_table.contains(name)).cloned().collect();
            if !row.is_empty() {
                let count = part.groups(&row).iter().filter(|group| group.len() == 1).count();
                unique.push(
                    json!({"table": name, "part": part.name, "attributes": row, "unique": {"count": count, "of": of}}),
                );
            }
            for attribute in part.exact.iter().filter(|name| columns.len() > 1 && !protected.contains(name)) {
                let known = without(&columns, attribute);
                let revealed = part.revealed(&known, attribute, None);
                let entry = entry(attribute, false, &known, revealed);
                let counts = |of: &Value| (of["fixed"]["count"].as_u64(), of["likely"]["count"].as_u64());
                match others.iter_mut().find(|other| other["attribute"] == **attribute) {
                    None => others.push(entry),
                    Some(other) if counts(other) < counts(&entry) => *other = entry,
                    Some(_) => {}
                }
            }
            let mut counted: Vec<Vec<String>> = Vec::new();
            for attribute in strings(&table["attributes"]).iter().filter(|name| protected.contains(name)) {
                let all = without(&columns, attribute);
                let here = columns.contains(attribute);
                let there = parts.iter().find(|other| other.labels.is_some() && other.exact.contains(attribute));
                let there = there.filter(|_| !here && part.labels.is_some()).map(|other| other.by_bucket(attribute));
                if all.is_empty() || (here && !part.exact.contains(attribute)) || (!here && there.is_none()) {
                    continue;
                }
                let mut last = (0, 0);
                let smaller = choices(&columns).into_iter().filter(|known| !known.contains(attribute));
                let smaller: Vec<Vec<String>> = smaller.filter(|known| known.len() < all.len()).collect();
                for len in 0..=2 {
                    let mut best: Option<(Revealed, &Vec<String>)> = None;
                    for known in smaller.iter().filter(|known| known.len() == len) {
                        let revealed = part.revealed(known, attribute, there.as_ref());
                        if best.is_none_or(|(most, _)| most < revealed) {
                            best = Some((revealed, known));
                        }
                    }
                    if let Some((revealed, known)) = best.filter(|(revealed, _)| *revealed > last) {
                        last = revealed;
                        values.push(entry(attribute, true, known, revealed));
                    }
                }
                counted.extend(smaller);
                values.push(entry(attribute, true, &all, part.revealed(&all, attribute, there.as_ref())));
            }
            counted.sort();
            counted.dedup();
            tried += counted.len();
        }
    }
    values.extend(others);
    let mut unprotected: Vec<String> =
        manifest["tables"].as_array().unwrap().iter().flat_map(|table| strings(&table["attributes"])).collect();
    unprotected.retain(|name| !protected.contains(name));
    unprotected.sort();
    unprotected.dedup();
    json!({"rows": unique, "values": values, "unprotected": unprotected, "choices": {"count": tried, "of": tried}})
}

struct Release {
    folder: tempfile::TempDir,
    manifest: Value,
    internal: Value,
    said: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A release of an example table, of a packed one of some rows.
fn published(specification: &Path, input: &str) -> Release {
    let folder = tempfile::tempdir().unwrap();
    let (out, internal) = (folder.path().join("out"), folder.path().join("internal.json"));
    let mut table = root().join("examples/data").join(input);
    if input.ends_with(".gz") {
        let rows = some_rows(GzDecoder::new(File::open(&table).unwrap()), ONE_IN);
        table = folder.path().join("table.csv");
        fs::write(&table, rows).unwrap();
    }
    let mut command = guardian();
    command.arg("publish").arg("--input").arg(table).arg("--spec").arg(specification);
    command.arg("--out").arg(&out).arg("--internal-report").arg(&internal).args(["--reproduce", "identity"]);
    let output = run(&mut command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {said}", specification.display());
    let read = |path: &Path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    Release { manifest: read(&out.join("manifest.json")), internal: read(&internal), folder, said }
}

#[test]
fn exposures_follow_from_the_parts_of_every_method() {
    for (name, input) in [
        ("01-uad", "hospital.csv"),
        ("08-adult", "adult.csv.gz"),
        ("10-anatomy-t", "adult.csv.gz"),
        ("11-bucketize", "hospital.csv"),
        ("12-counterfeits", "adult.csv.gz"),
        ("13-decompose", "hospital.csv"),
        ("14-generalize", "hospital.csv"),
        ("15-generalize-set", "adult.csv.gz"),
        ("16-slicing", "hospital.csv"),
        ("18-slicing-overlap", "adult.csv.gz"),
        ("19-sequential", "hospital.csv"),
    ] {
        let release = published(&root().join(format!("tests/vectors/golden/{name}.json")), input);
        println!("{name}");
        let files = fs::read_dir(release.folder.path().join("out")).unwrap().map(|entry| entry.unwrap());
        let read =
            |file: fs::DirEntry| (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap());
        assert_recomputed(&files.map(read).collect(), &release.manifest);
    }
}

/// Earlier versions counted what requirements bound among what nothing protects.
#[test]
fn exposures_of_earlier_sequential_releases_hold() {
    let rows: String = (0..60).map(|row| format!("{},{},{}\n", row % 5, ["a", "b", "c"][row % 3], row % 2)).collect();
    let requirement = |y: &str, measure: Value| json!({"x": ["new.age"], "y": [y], "measure": measure});
    let document = json!({"unlisted": "drop", "method": {"type": "sequential", "publish": ["age", "disease", "sex"],
        "requirements": [requirement("new.disease", json!({"type": "xy_linkability", "h": "0.9"})),
            requirement("new.sex", json!({"type": "xy_anonymity", "k": 2}))]}});
    let job = Original::new(table(format!("age,disease,sex\n{rows}").as_bytes())).job(&document).unwrap();
    let (released, files) = release(&job, &EarlierDisclosures::default(), &RandomStreams::Identity).unwrap();
    let manifest = serde_json::to_value(&released.manifest).unwrap();
    assert_eq!(manifest["exposures"]["unprotected"], json!(["age", "sex"]), "a number of values bounds no share");
    let texts = files.0.iter().map(|(file, text)| (file.clone(), String::from_utf8(text.clone()).unwrap())).collect();
    assert_recomputed(&texts, &manifest);
    let mut earlier = manifest.clone();
    earlier["method_details"]["requirements"] = json!([]);
    let found = recomputed(&texts, &earlier);
    assert_eq!(found["unprotected"], json!(["age", "disease", "sex"]));
    let with = |exposures: Value| {
        let mut manifest = manifest.clone();
        manifest["exposures"] = exposures;
        serde_json::from_value(manifest).unwrap()
    };
    assert!(is_verified(&job, &released.manifest, &files) && is_verified(&job, &with(found.clone()), &files));
    let mut neither = found;
    neither["unprotected"] = json!(["age", "disease"]);
    assert!(!is_verified(&job, &with(neither), &files));
}

/// What the command line says of exposures that were counted in the parts, for at most six columns.
fn in_words(counted: &Value, unprotected: &Value) -> Vec<String> {
    let ratio = |of: &Value| (of["count"].as_u64().unwrap(), of["of"].as_u64().unwrap());
    let larger = |one: &Value, other: &Value| {
        let ((one, of_one), (other, of_other)) = (ratio(one), ratio(other));
        one * of_other > other * of_one
    };
    let share = |of: &Value| match ratio(of) {
        (0, _) => "none of the rows".to_owned(),
        (count, of) if count == of => "all rows".to_owned(),
        (count, of) if count * 100 < of => "less than 1% of the rows".to_owned(),
        (count, of) if count * 100 > of * 99 => "over 99% of the rows".to_owned(),
        (count, of) => format!("{}% of the rows", (count * 100).div_ceil(of)),
    };
    let list = |names: &Value| match strings(names).split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    };
    let tables = counted["rows"].as_array().unwrap();
    let name = |of: &Value| {
        let parts = tables.iter().filter(|rows| rows["table"] == of["table"] && rows["part"] != of["part"]).count();
        if parts == 0 { text(&of["table"]) } else { format!("{}.{}", text(&of["table"]), text(&of["part"])) }
    };
    let mut sentences = Vec::new();
    let first = tables.iter().reduce(|most, rows| if larger(&rows["unique"], &most["unique"]) { rows } else { most });
    if let Some(rows) = first.filter(|rows| rows["unique"]["count"] != 0) {
        let columns = list(&rows["attributes"]);
        sentences.push(format!("{} of {} are the only ones with their {columns}", share(&rows["unique"]), name(rows)));
    }
    let values = counted["values"].as_array().unwrap().iter();
    let protected = values.filter(|value| value["protected"] == true && value["likely"]["count"] != 0);
    let most = protected.reduce(|most, value| {
        let more = larger(&value["fixed"], &most["fixed"])
            || !larger(&most["fixed"], &value["fixed"]) && larger(&value["likely"], &most["likely"]);
        if more { value } else { most }
    });
    sentences.extend(most.map(|value| {
        let (fixed, likely, attribute) = (share(&value["fixed"]), share(&value["likely"]), text(&value["attribute"]));
        let (known, name) = (list(&value["known"]), name(value));
        format!("who knows {known} of {name} knows {attribute} for {fixed}, and more likely than not for {likely}")
    }));
    sentences.push(format!("no rule protects {}", list(unprotected)));
    sentences
}

#[test]
fn printed_exposures_are_those_of_the_parts() {
    for (name, input, sentences) in
        [("01-uad", "hospital.csv", 3), ("08-adult", "adult.csv.gz", 3), ("14-generalize", "hospital.csv", 1)]
    {
        let release = published(&root().join(format!("tests/vectors/golden/{name}.json")), input);
        let files = fs::read_dir(release.folder.path().join("out")).unwrap().map(|entry| entry.unwrap());
        let read =
            |file: fs::DirEntry| (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap());
        let counted = recomputed(&files.map(read).collect(), &release.manifest);
        let printed: Vec<&str> =
            release.said.lines().filter_map(|line| line.strip_prefix("guardian: exposure: ")).collect();
        assert_eq!(printed, in_words(&counted, &release.manifest["exposures"]["unprotected"]), "{name}");
        assert_eq!(printed.len(), sentences, "{name}: {printed:?}");
    }
}

#[test]
fn a_wrong_exposure_in_a_manifest_is_refuted() {
    let release = published(&root().join("examples/hospital.json"), "hospital.csv");
    let (out, mut manifest) = (release.folder.path().join("out"), release.manifest);
    let verified = || run(guardian().arg("verify").arg(&out)).status.success();
    assert!(verified());
    let count = &mut manifest["exposures"]["rows"][0]["unique"]["count"];
    *count = json!(count.as_u64().unwrap() + 1);
    fs::write(out.join("manifest.json"), manifest.to_string()).unwrap();
    assert!(!verified());
}

/// The practitioner's figures by hand, and where they stand: in the internal report alone.
#[test]
fn practitioner_figures_stand_in_the_internal_report_alone() {
    let release = published(&root().join("examples/hospital.json"), "hospital.csv");
    let out = release.folder.path().join("out");
    let (columns, cells) = rows(&fs::read_to_string(root().join("examples/data/hospital.csv")).unwrap());
    let exact = columns.clone();
    let original = PartRows { name: String::new(), columns, exact, tuples: true, labels: None, cells };
    let attributes: Vec<String> =
        release.manifest["tables"].as_array().unwrap().iter().flat_map(|table| strings(&table["attributes"])).collect();
    let known: Vec<String> = original.columns.iter().filter(|name| attributes.contains(name)).cloned().collect();
    let of = original.cells.len();
    let practitioner = &release.internal["practitioner"];
    let unique = original.groups(&known).iter().filter(|group| group.len() == 1).count();
    assert_eq!(practitioner["unique"], json!({"count": unique, "of": of}));
    let values = practitioner["values"].as_array().unwrap();
    assert_eq!(values.len(), known.len());
    for (value, attribute) in values.iter().zip(&known) {
        let (fixed, likely) = original.revealed(&without(&known, attribute), attribute, None);
        assert_eq!(value["attribute"], json!(attribute));
        assert_eq!(
            (&value["fixed"], &value["likely"]),
            (&json!({"count": fixed, "of": of}), &json!({"count": likely, "of": of}))
        );
    }
    for file in fs::read_dir(&out).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("practitioner"));
    }
    for kind in ["premise", "not promised", "exposure"] {
        assert!(release.said.contains(&format!("guardian: {kind}: ")), "{kind}: {}", release.said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_public_document_of_a_server_holds_practitioner_figures() {
    let server = Server::start().await;
    let dataset = server.dataset(HOSPITAL).await;
    let plan = server.post("/v1/plans", &json!({"dataset": dataset, "method": hospital_method()})).await.ok(200);
    let manifest = server.publish(&dataset, json!({"method": hospital_method()})).await;
    let release = text(&manifest["id"]);
    let report = server.get(&format!("/v1/releases/{release}/report")).await.ok(200);
    for document in [&manifest, &report] {
        assert!(!document.to_string().contains("practitioner"), "{document:#}");
    }
    assert!(report["exposures"].as_array().is_some_and(|said| !said.is_empty()), "{report:#}");
    let internal = server.get(&format!("/v1/releases/{release}/internal-report")).await.ok(200);
    assert!(internal["practitioner"]["unique"].is_object(), "{internal:#}");
    // only who may inspect the original gets a plan, which says beforehand what the release will show
    let planned = &plan["exposures"];
    assert_eq!(planned["practitioner"], internal["practitioner"], "{plan:#}");
    assert_eq!(planned["unprotected"], manifest["exposures"]["unprotected"], "{plan:#}");
    let shown = manifest["exposures"]["rows"].as_array().unwrap().iter();
    let shown: Vec<Value> = shown
        .map(|rows| json!({"table": rows["table"], "attributes": rows["attributes"], "unique": rows["unique"]}))
        .collect();
    for planned in planned["rows"].as_array().unwrap() {
        assert!(shown.contains(planned), "{planned:#} {shown:#?}");
    }
    assert_eq!(planned["rows"].as_array().map(Vec::len), manifest["tables"].as_array().map(Vec::len), "{plan:#}");
    server.stop().await;
}
