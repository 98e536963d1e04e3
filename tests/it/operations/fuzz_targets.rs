//! The fuzz targets, on their seeds and on changed ones: what fuzzing runs is compiled and run with every change.

use std::fs;

use guardian::microdata::formats::InputFormat;

use crate::support::harness::{guardian, run};
use crate::support::library::{Random, seeds};

#[path = "../../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is a library of its own as well")]
mod targets;

#[path = "../../../examples/fuzz_seeds.rs"]
#[expect(dead_code, reason = "it is an example as well")]
mod fuzz_seeds;

/// Changed inputs of each seed.
const CHANGES: u64 = 200;

fn judge(target: &str, input: &[u8]) {
    let with_text = |judge: fn(&str)| std::str::from_utf8(input).into_iter().for_each(judge);
    match target {
        "arrow" => targets::reading::run(InputFormat::Arrow, input),
        "chunk" => targets::chunk::run(input),
        "compression" => targets::compression::run(input),
        "csv" => targets::csv::run(input),
        "ndjson" => targets::reading::run(InputFormat::Ndjson, input),
        "parquet" => targets::reading::run(InputFormat::Parquet, input),
        "rule" => with_text(targets::rule::run),
        "specification" => targets::specification::run(input),
        "tokens" => with_text(targets::tokens::run),
        "verify" => with_text(targets::verify::run),
        other => panic!("there is no target {other}"),
    }
}

/// A seed with a byte changed, cut, or with a piece of it twice.
fn changed(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(input.len().max(1));
        match random.below(4) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = b"0,\"\n{}[]-:"[random.below(10)],
            2 => input.truncate(at),
            _ => {
                let end = (at + random.below(9)).min(input.len());
                let piece = input[at.min(end)..end].to_vec();
                input.splice(at..at, piece);
            }
        }
    }
    input
}

fn judge_all(target: &str, seed: &[u8], random: &mut Random) {
    judge(target, seed);
    (0..CHANGES * seeds()).for_each(|_| judge(target, &changed(seed, random)));
}

#[test]
fn targets_judge_their_seeds_and_changed_ones() {
    let (mut random, mut judged) = (Random(7), Vec::new());
    let found = fuzz_seeds::each_seed(|target, _, bytes| {
        judge_all(target, bytes, &mut random);
        judged.push(target.to_owned());
        Ok(())
    });
    found.unwrap();
    judged.dedup();
    let known = ["csv", "ndjson", "parquet", "arrow", "rule", "specification", "compression", "tokens", "chunk"];
    assert_eq!(judged, known);
}

#[test]
fn target_of_releases_judges_one_and_changed_ones() {
    let (root, folder) = (concat!(env!("CARGO_MANIFEST_DIR"), "/examples"), tempfile::tempdir().unwrap());
    let out = folder.path().join("out");
    let mut command = guardian();
    command.args([
        "publish",
        "--input",
        &format!("{root}/data/hospital.csv"),
        "--spec",
        &format!("{root}/hospital.json"),
    ]);
    assert!(run(command.arg("--out").arg(&out)).status.success());
    let mut seed = fs::read(out.join("manifest.json")).unwrap();
    for part in fs::read_dir(&out).unwrap().map(|part| part.unwrap().path()) {
        if part.extension().is_some_and(|extension| extension == "csv") {
            let name = part.file_name().unwrap().to_string_lossy();
            seed.extend([b"=== ", name.as_bytes(), b"\n", &fs::read(&part).unwrap()[..]].concat());
        }
    }
    judge_all("verify", &seed, &mut Random(8));
}
