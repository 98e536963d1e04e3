//! Attributes of X that dependencies tie to what is counted: who knows a function reads their values off Y, whatever labels say.

use std::collections::BTreeMap;

use guardian::problem::Kind;
use guardian::report::Manifest;
use serde_json::{Value, json};

use crate::support::library::{Original, Random, parts, publish, seeds, table, verify_against};

/// People by age, ward and diagnosis; the diagnosis determines the ward.
type Rows = Vec<[usize; 3]>;

fn csv(rows: &Rows) -> String {
    let row = |[age, ward, diagnosis]: &[usize; 3]| format!("{age},{ward},d{diagnosis}\n");
    "age,ward,diagnosis\n".to_owned() + &rows.iter().map(row).collect::<String>()
}

/// No diagnosis is likelier than one half among people with equal labels of age and ward.
fn document(dependencies: &Value) -> Value {
    json!({
        "attributes": {"diagnosis": {"publish": true, "identifier": false}, "age": {"identifier": false}},
        "unlisted": "drop",
        "method": {"type": "sequential", "publish": ["age", "ward"], "against": [], "functional_dependencies": dependencies,
            "requirements": [{"x": ["new.age", "new.ward"], "y": ["new.diagnosis"],
                "measure": {"type": "xy_linkability", "h": "1/2"}}]},
    })
}

fn function() -> Value {
    json!([{"determinant": ["diagnosis"], "dependent": ["ward"]}])
}

/// The largest share of a diagnosis among published rows of equal labels that the function gives one ward, and the rows
/// whose ward is generalized.
fn attack(published: &[Vec<String>], ward: &BTreeMap<String, usize>) -> ((u64, u64), usize) {
    let mut groups: BTreeMap<(&str, &str, usize), BTreeMap<&str, u64>> = BTreeMap::new();
    for row in published {
        let group = groups.entry((&row[0], &row[1], ward[&row[2]])).or_default();
        *group.entry(&row[2]).or_default() += 1;
    }
    let share = |of: &BTreeMap<&str, u64>| (*of.values().max().unwrap(), of.values().sum::<u64>());
    let worst = groups.values().map(share).max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1))).unwrap();
    (worst, published.iter().filter(|row| row[1].contains("..")).count())
}

/// What is published, and the worst share of an attacker; or the faults.
fn outcome(rows: &Rows, dependencies: &Value) -> Result<(Value, (u64, u64), usize), Vec<guardian::problem::Fault>> {
    let (manifest, files) = publish(&Original::new(table(csv(rows).as_bytes())), &document(dependencies))?;
    let ward = rows.iter().map(|[_, ward, diagnosis]| (format!("d{diagnosis}"), *ward)).collect();
    let (worst, generalized) = attack(&parts(&manifest, &files)[0][0].rows, &ward);
    Ok((serde_json::to_value(&manifest).unwrap(), worst, generalized))
}

#[test]
fn a_ward_of_one_diagnosis_is_refused_behind_intervals() {
    // wards 1 and 2 together hide what ward 2 alone is for
    let rows: Rows = (0..24).map(|at| [30, 1 + at % 3 / 2, at % 3]).collect();
    let faults = outcome(&rows, &function()).unwrap_err();
    let [fault] = &faults[..] else { panic!("{faults:#?}") };
    assert_eq!((fault.kind, fault.pointer.as_str()), (Kind::InfeasibleRoot, "/method/requirements/0"));
    assert!(fault.detail.contains("for who knows ward exactly"), "{}", fault.detail);
    // the release does not show the function
    let (_, worst, generalized) = outcome(&rows, &json!([])).unwrap();
    assert!(worst == (8, 8) && generalized == 24, "{worst:?}, {generalized}");
}

#[test]
fn wards_of_several_diagnoses_are_published_with_a_promise() {
    let rows: Rows = (0..48).map(|at| [20 + at / 8, 1 + at % 4 / 2, at % 4]).collect();
    let (manifest, worst, _) = outcome(&rows, &function()).unwrap();
    assert!(worst.0 * 2 <= worst.1, "{worst:?}");
    let requirement = &manifest["method_details"]["requirements"][0];
    assert_eq!(requirement["known_exactly"], json!(["ward"]), "{manifest:#}");
}

/// Two exceptions of 204 rows stand in one age. How often wards and diagnoses go together leaves hardly another world than that
/// the exceptions are elsewhere, so that groups of age and ward reveal more than they show.
#[test]
fn wards_that_mostly_follow_are_refused() {
    let usual = |ward: usize| (0..100).map(move |at| [30, ward, 2 * at % 4 + ward - 1]);
    let exceptions = [[60, 1, 0], [60, 1, 1], [60, 2, 0], [60, 2, 1]];
    let rows: Rows = usual(1).chain(usual(2)).chain(exceptions).collect();
    let faults = outcome(&rows, &function()).unwrap_err();
    assert!(faults.iter().all(|fault| fault.kind == Kind::GuaranteeUnsupported), "{faults:#?}");
}

/// On random tables no release reveals more than half to who knows the function; without the dependency some do.
#[test]
fn who_knows_the_function_learns_no_more_than_the_bound() {
    let (mut published, mut generalized, mut refused, mut broken) = (0, 0, 0, 0);
    for case in 0..150 * seeds() {
        let random = &mut Random(case);
        let (count, kinds) = (16 + random.below(25), 4 + random.below(3));
        let wards: Vec<usize> = (0..kinds).map(|_| 1 + random.below(2)).collect();
        let rows = (0..count).map(|_| (random.below(3), random.below(kinds)));
        let rows: Rows = rows.map(|(age, diagnosis)| [age, wards[diagnosis], diagnosis]).collect();
        match outcome(&rows, &function()) {
            Ok((_, worst, wide)) => {
                assert!(worst.0 * 2 <= worst.1, "{case}: {worst:?}\n{}", csv(&rows));
                published += 1;
                generalized += usize::from(wide > 0);
            }
            Err(faults) => {
                assert!(faults.iter().all(|fault| fault.kind == Kind::InfeasibleRoot), "{case}: {faults:#?}");
                refused += 1;
            }
        }
        if let Ok((_, worst, _)) = outcome(&rows, &json!([])) {
            broken += usize::from(worst.0 * 2 > worst.1);
        }
    }
    println!("{published} published, {generalized} of them with intervals, {refused} refused, {broken} broken");
    assert!(published > 10 && generalized > 0 && refused > 10 && broken > 10);
}

/// Jobs behind `*`, and tasks of one job each: who knows a job knows its tasks.
#[test]
fn an_attribute_tied_to_x_must_be_named() {
    let rows: String = (0..8).map(|at| format!("job{},task{},s{}\n", at / 4, at / 2, at / 4)).collect();
    let original = Original::new(table(("job,task,s\n".to_owned() + &rows).as_bytes()));
    let attributes: Value =
        ["job", "task", "s"].map(|name| (name.to_owned(), json!({"identifier": false}))).into_iter().collect();
    let document = |dependencies: Value| {
        json!({"unlisted": "drop", "attributes": attributes, "method": {"type": "sequential",
            "publish": ["job", "task", "s"], "against": [], "functional_dependencies": dependencies,
            "requirements": [{"x": ["new.job"], "y": ["new.s"], "measure": {"type": "xy_linkability", "h": "1/2"}}]}})
    };
    let tied = json!([{"determinant": ["task"], "dependent": ["job"]}]);
    // who does not know of it sees half of each value behind `*`
    let (manifest, files) = publish(&original, &document(json!([]))).unwrap();
    let published = &parts(&manifest, &files)[0][0].rows;
    assert!(published.iter().all(|row| row[0] == "*" && (row[2] == "s0") == ["task0", "task1"].contains(&&*row[1])));
    let faults = publish(&original, &document(tied.clone())).err().unwrap();
    let [fault] = &faults[..] else { panic!("{faults:#?}") };
    assert_eq!((fault.kind, fault.pointer.as_str()), (Kind::GuaranteeUnsupported, "/method/requirements/0"));
    assert!(fault.detail.contains("name in x new.task"), "{}", fault.detail);
    assert_eq!(fault.members["attributes"], json!(["new.task"]));
    // the repair, as it is listed
    let repairs = fault.members["repairs"].as_array().unwrap();
    let repair = repairs.iter().find(|repair| repair["name_in_x"] == json!(["new.task"])).unwrap();
    let mut repaired = document(tied.clone());
    repaired["method"]["requirements"] = repair["patch"]["method"]["requirements"].clone();
    let (mended, files_of_mended) = publish(&original, &repaired).unwrap();
    assert!(parts(&mended, &files_of_mended)[0][0].rows.iter().all(|row| row[1] == "*"));
    // the verifier refuses what a publisher without the check would publish
    let mut forged = serde_json::to_value(&manifest).unwrap();
    forged["dependencies"]["declared"] = tied;
    let forged: Manifest = serde_json::from_value(forged).unwrap();
    let job = original.job(&document(json!([]))).unwrap();
    let found = verify_against(&job, &forged, &files, true);
    let details = serde_json::to_string(&found.checks).unwrap();
    assert!(!found.verified && details.contains("which x does not name"), "{details}");
}
