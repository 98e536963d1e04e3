//! Real tables under random rules, judged from outside: by the files of the release and the original alone.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use guardian::engine::EngineError;
use guardian::ledger::EarlierDisclosures;
use guardian::problem::Kind;
use guardian::random::{RandomStreams, ReleaseKey};
use serde_json::{Map, Value, json};

use crate::support::independent_check::{Files, Original, Rule, audit};
use crate::support::library::{Original as Input, Random, release, seeds, some_rows, table};

/// A real table and what is asked of it.
struct Data {
    file: &'static str,
    dropped: &'static [&'static str],
    l: usize,
    /// Number of rules, each with three known attributes.
    rules: usize,
    /// Of how many rows one is taken, but in the longer runs.
    one_in: usize,
}

const ADULT_7: Data = Data { file: "tests/data/adult-7.csv.gz", dropped: &[], l: 2, rules: 4, one_in: 1 };

/// education-num is education in numbers: what protects one of them protects the other.
const ADULT: Data = Data { file: "examples/data/adult.csv.gz", dropped: &[], l: 2, rules: 5, one_in: 1 };

const CENSUS: Data = Data { file: "tests/data/kdd-census.csv.gz", dropped: &[], l: 3, rules: 4, one_in: 1 };

const DISCHARGES: Data = Data { file: "tests/data/nhds2010.csv.gz", dropped: &[], l: 10, rules: 5, one_in: 5 };

impl Data {
    fn csv(&self) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.file);
        some_rows(GzDecoder::new(File::open(path).unwrap()), self.one_in)
    }

    fn used(&self, original: &Original) -> Vec<usize> {
        (0..original.names.len()).filter(|&at| !self.dropped.contains(&original.names[at].as_str())).collect()
    }

    /// Irreducible rules: S uniform among the attributes that the data allows, Q three of the others.
    fn rules(&self, original: &Original, random: &mut Random) -> Vec<Rule> {
        let used = self.used(original);
        let eligible: Vec<usize> =
            used.iter().copied().filter(|&at| original.most(at) * self.l <= original.rows()).collect();
        let mut rules: Vec<Rule> = Vec::new();
        for _ in 0..1000 {
            if rules.len() == self.rules {
                return rules;
            }
            let sensitive = eligible[random.below(eligible.len())];
            let others: Vec<usize> = used.iter().copied().filter(|&at| at != sensitive).collect();
            let mut known: Vec<usize> = random.pick(3, others.len()).iter().map(|&at| others[at]).collect();
            known.sort_unstable();
            let rule = Rule { known, sensitive, l: self.l };
            // of rules with equally many known attributes only equal ones imply each other
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        panic!("{}: there are too few rules", self.file);
    }

    fn document(&self, original: &Original, rules: &[Rule]) -> Value {
        let name = |at: &usize| original.names[*at].as_str();
        let declared = original.names.iter().map(|name| {
            let dropped = self.dropped.contains(&name.as_str());
            (name.clone(), if dropped { json!({ "drop": true }) } else { json!({ "publish": true }) })
        });
        let rules: Vec<Value> = rules
            .iter()
            .map(|rule| {
                json!({
                    "quasi_identifiers": rule.known.iter().map(name).collect::<Vec<_>>(),
                    "sensitive": [name(&rule.sensitive)],
                })
            })
            .collect();
        let guarantee = json!({ "type": "l_diversity", "l": self.l });
        let method = json!({ "type": "versatile", "rules": rules, "default_guarantee": guarantee });
        json!({ "attributes": declared.collect::<Map<_, _>>(), "method": method })
    }

    /// Publishes under the rules of several seeds in this process and judges every release.
    fn publish_and_judge(&self, first: u64, count: u64) {
        let csv = self.csv();
        let (original, input) = (Original::read(&csv[..]), Input::new(table(&csv[..])));
        let (mut seed, mut released, mut bucketized) = (first, 0, 0);
        while released < count * seeds() {
            let mut random = Random(seed);
            let rules = self.rules(&original, &mut random);
            println!("{} seed {seed}: {rules:?}", self.file);
            seed += 1;
            let job = input.job(&self.document(&original, &rules)).unwrap();
            match release(
                &job,
                &EarlierDisclosures::default(),
                &RandomStreams::Keyed(ReleaseKey::from_bytes(random.key())),
            ) {
                Ok((_, files)) => bucketized += audit(&original, &files.0, &self.used(&original), &rules).unwrap(),
                // what the data gives away anyway
                Err(EngineError::Refused(problem)) => {
                    assert_eq!(problem.kind, Kind::InvalidSpecification);
                    let allowed = [Kind::RuleImpossible, Kind::RuleIneligible];
                    assert!(problem.errors.iter().all(|fault| allowed.contains(&fault.kind)), "{problem:?}");
                    println!("refused: {}", problem.errors[0].detail);
                    assert!(seed < first + 20 * (released + 1), "too many refusals");
                    continue;
                }
                Err(other) => panic!("{other:?}"),
            }
            released += 1;
        }
        assert!(bucketized > 0, "some table is bucketized");
    }

    /// The same through the command line, which verifies too.
    fn publish_by_command(&self, seed: u64) {
        let csv = self.csv();
        let original = Original::read(&csv[..]);
        let folder = tempfile::tempdir().unwrap();
        let [specification, out, data] =
            ["specification.json", "release", "data.csv"].map(|name| folder.path().join(name));
        std::fs::write(&data, csv).unwrap();
        for seed in seed.. {
            let rules = self.rules(&original, &mut Random(seed));
            std::fs::write(&specification, self.document(&original, &rules).to_string()).unwrap();
            let ended = guardian(&["publish", "--input"], &[&data], "--spec", &specification, Some(&out));
            if ended.0 == Some(3) {
                println!("{} seed {seed} refused: {}", self.file, ended.1);
                assert!(seed < 1_000, "too many refusals");
                continue;
            }
            assert_eq!(ended.0, Some(0), "{}", ended.1);
            let mut files = Files::new();
            for entry in std::fs::read_dir(&out).unwrap() {
                let path = entry.unwrap().path();
                files.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
            for extra_file in ["manifest.json", "report.json", "specification.json"] {
                assert!(files.remove(extra_file).is_some(), "{extra_file} is missing");
            }
            audit(&original, &files, &self.used(&original), &rules).unwrap();
            let verified = guardian(&["verify"], &[&out], "--original", &data, None);
            assert_eq!(verified.0, Some(0), "{}", verified.1);
            return;
        }
    }
}

/// Runs the program; its exit code and what it said.
fn guardian(words: &[&str], paths: &[&Path], option: &str, value: &Path, out: Option<&Path>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_guardian"));
    command.args(words).args(paths).arg(option).arg(value);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn adult_of_seven_attributes() {
    ADULT_7.publish_and_judge(1, 2);
}

#[test]
fn adult_of_seven_attributes_by_command() {
    ADULT_7.publish_by_command(101);
}

#[test]
fn adult() {
    ADULT.publish_and_judge(1, 1);
}

#[test]
fn adult_by_command() {
    ADULT.publish_by_command(101);
}

#[test]
fn census() {
    CENSUS.publish_and_judge(1, 2);
}

#[test]
fn census_by_command() {
    CENSUS.publish_by_command(101);
}

#[test]
fn discharges() {
    DISCHARGES.publish_and_judge(1, 1);
}

#[test]
fn discharges_by_command() {
    DISCHARGES.publish_by_command(101);
}

/// The verifier from outside can fail: a release that is changed after the fact is refused, whatever was changed.
#[test]
fn changed_releases_are_found() {
    let csv = ADULT_7.csv();
    let (original, input) = (Original::read(&csv[..]), Input::new(table(&csv[..])));
    let used = ADULT_7.used(&original);
    let at = |name: &str| original.names.iter().position(|other| other == name).unwrap();
    let sensitive = at("education");
    let rules = [Rule { known: used.iter().copied().filter(|&at| at != sensitive).collect(), sensitive, l: 2 }];
    let job = input.job(&ADULT_7.document(&original, &rules)).unwrap();
    let (_, files) =
        release(&job, &EarlierDisclosures::default(), &RandomStreams::Keyed(ReleaseKey::from_bytes([7; 32]))).unwrap();
    audit(&original, &files.0, &used, &rules).unwrap();
    let sa = files.0.keys().find(|file| file.ends_with(".sa.csv")).expect("a bucketized table").clone();
    let qi = sa.replace(".sa.", ".qi.");
    let refused = |change: &dyn Fn(&mut Files)| {
        let mut changed = files.0.clone();
        change(&mut changed);
        audit(&original, &changed, &used, &rules).unwrap_err()
    };
    let lines = |files: &Files, file: &str| -> Vec<String> {
        String::from_utf8(files[file].clone()).unwrap().lines().map(str::to_owned).collect()
    };
    let text = |lines: &[String]| (lines.join("\n") + "\n").into_bytes();
    let edit = |file: &str, change: &dyn Fn(&mut Vec<String>)| {
        refused(&|files| {
            let mut changed = lines(files, file);
            change(&mut changed);
            files.insert(file.to_owned(), text(&changed));
        })
    };
    // a sensitive value goes to another bucket; rows change places; a row is lost, or there twice; a bucket is renamed
    let moved = edit(&sa, &|lines| {
        let (_, value) = lines[1].split_once(',').unwrap();
        lines[1] = format!("2,{value}");
        lines[1..].sort_by_key(|line| {
            let (bucket, value) = line.split_once(',').unwrap();
            (bucket.parse::<u32>().unwrap(), value.to_owned())
        });
    });
    assert!(moved.contains("disagree on the size"), "{moved}");
    assert!(edit(&qi, &|lines| lines.swap(1, 40_000)).contains("canonical order"));
    assert!(edit(&qi, &|lines| drop(lines.remove(5))).contains("projection"));
    assert!(edit(&sa, &|lines| lines.insert(5, lines[5].clone())).contains("projection"));
    let alike = edit(&sa, &|lines| {
        // the values of all buckets in one order: buckets keep their sizes and hold equal values
        let split = |line: &String| line.split_once(',').map(|(bucket, value)| (value.to_owned(), bucket.to_owned()));
        let (mut values, buckets): (Vec<_>, Vec<_>) = lines[1..].iter().filter_map(split).unzip();
        values.sort();
        for (line, (bucket, value)) in lines[1..].iter_mut().zip(buckets.iter().zip(values)) {
            *line = format!("{bucket},{value}");
        }
    });
    assert!(alike.contains("is broken"), "{alike}");
    // more than was asked for, or less
    assert!(refused(&|files| drop(files.insert("notes.txt".to_owned(), b"age\n".to_vec()))).contains("no part"));
    assert!(refused(&|files| drop(files.remove(&sa))).contains("other parts"));
    // the sensitive attribute in the open
    let raw = refused(&|files| {
        let rows: Vec<String> = cells_of(&csv).iter().map(|row| format!("{},{}", row[0], row[2])).collect();
        let mut sorted = rows[1..].to_vec();
        sorted.sort();
        files.insert("t9.rows.csv".to_owned(), text(&[&rows[..1], &sorted[..]].concat()));
    });
    assert!(raw.contains("is broken"), "{raw}");
}

fn cells_of(csv: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(csv);
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}
