//! Histories with expected answers.

use serde_json::Value;

use super::ledger::run;

#[test]
fn scenarios_have_the_expected_answers() {
    let vectors = include_str!("../../../tests/vectors/identity/scenarios.json");
    let vectors: Value = serde_json::from_str(vectors).unwrap();
    let scenarios = vectors["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 89);
    let mut wrongs = Vec::new();
    for scenario in scenarios {
        let (steps, expected) = (scenario["steps"].as_array().unwrap(), scenario["answers"].as_array().unwrap());
        let (answers, ledger) = run(steps);
        for (number, (answer, expected)) in answers.iter().zip(expected).enumerate() {
            if answer != expected {
                wrongs.push(format!("{} step {number}: {answer}, not {expected}", scenario["name"]));
            }
        }
        if ledger.truly_shared() as u64 != scenario["unseen"].as_u64().unwrap() {
            wrongs.push(format!("{}: {} persons are unseen", scenario["name"], ledger.truly_shared()));
        }
    }
    assert!(wrongs.is_empty(), "{} answers\n{}", wrongs.len(), wrongs.join("\n"));
}
