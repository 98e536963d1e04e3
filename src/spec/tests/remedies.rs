//! Remedies: each is applied, and ends its fault.

use super::*;
use crate::problem::{FaultRemedy, Problem};

/// The problem of a document on the hospital table, with remedies.
fn mended(document: &Value) -> Problem {
    let read = |document: &Value| read_on(document, &hospital()).faults;
    with_remedies(Problem::of_faults(read(document)), document, read)
}

fn patched(document: &Value, patch: &Value) -> Value {
    let mut document = document.clone();
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
    json_patch::patch(&mut document, &patch).unwrap();
    document
}

/// A change of the hospital document, and the titles of the remedies of the fault that follows at a pointer.
type Case<'a> = (&'a str, Value, &'a str, &'a [&'a str]);

#[test]
fn each_remedy_ends_its_fault() {
    let rule = json!({"quasi_identifiers": ["age"], "sensitive": ["race", "race"]});
    let cases: &[Case<'_>] = &[
        ("/methods", json!({}), "/methods", &["leave methods out"]),
        ("/atributes", json!({"age": {"publish": true}}), "/atributes", &["call it attributes", "leave atributes out"]),
        ("/attributes", json!({"agee": {"publish": true}}), "/attributes/agee", &["name age", "leave agee out"]),
        (
            "/attributes",
            json!({"age": {"publsh": true}}),
            "/attributes/age/publsh",
            &["call it publish", "leave publsh out"],
        ),
        ("/priority", json!(101), "/priority", &["write 100", "leave it out"]),
        ("/priority", json!("7"), "/priority", &["write 7", "leave it out"]),
        ("/unlisted", json!("dropp"), "/unlisted", &["write \"drop\"", "leave it out"]),
        ("/hold", json!("no"), "/hold", &[]),
        ("/hold", json!("true"), "/hold", &["write true"]),
        ("/utility", json!("entropy"), "/utility", &["write an array", "leave it out"]),
        ("/method/algorithm", json!("UAD"), "/method/algorithm", &["write \"uad\"", "leave it out"]),
        ("/method/rules/0", json!("agee, icd9 -> race"), "/method/rules/0", &["name age"]),
        ("/method/rules/1", rule, "/method/rules/1", &["name each attribute once"]),
        ("/method/rules/0", json!("age, race -> race"), "/method/rules/0", &["name each attribute once"]),
        ("/method/rules/0", json!("age, icd9 => race"), "/method/rules/0", &["write -> between the sides"]),
        ("/method/rules/0", json!("age, icd9: race"), "/method/rules/0", &["write -> between the sides"]),
        // what stays protected is a person's decision
        ("/method/rules/0", json!("age, icd9 ->"), "/method/rules/0", &[]),
        ("/method/default_guarantee/l", json!(0), "/method/default_guarantee/l", &["write 2"]),
        ("/method/default_guarantee/l", json!(1), "/method/default_guarantee/l", &["ask for 2"]),
    ];
    for (pointer, value, at, titles) in cases {
        let mut document = hospital_document();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = document.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value.clone(),
            members => members[name] = value.clone(),
        }
        let problem = mended(&document);
        let fault = problem.errors.iter().find(|fault| fault.pointer == *at).unwrap_or_else(|| panic!("{problem:?}"));
        let found: Vec<&str> = fault.remedies.iter().map(|remedy| remedy.title.as_str()).collect();
        assert_eq!(found, *titles, "{pointer}: {fault:?}");
        for remedy in &fault.remedies {
            let faults = read_on(&patched(&document, &remedy.patch), &hospital()).faults;
            assert!(faults.iter().all(|other| (&other.pointer, &other.detail) != (&fault.pointer, &fault.detail)));
        }
    }
}

#[test]
fn attributes_without_a_place_are_dropped() {
    let mut document = hospital_document();
    document["method"]["rules"] = json!(["age -> race"]);
    let problem = mended(&document);
    let [fault] = &problem.errors[..] else { panic!("{problem:?}") };
    assert_eq!((fault.kind, fault.remedies.len()), (Kind::UnclassifiedAttributes, 2));
    for remedy in &fault.remedies {
        assert_eq!(read_on(&patched(&document, &remedy.patch), &hospital()).faults, []);
    }
}

#[test]
fn ineligible_rules_and_identifiers_have_remedies() {
    let mut facts = columns(&["id", "age", "salary"]);
    facts[0].identifier = true;
    let document = json!({"dataset": ID, "attributes": {"id": {"publish": true}}, "method": {"type": "versatile", "rules": [
        "age -> salary", {"quasi_identifiers": ["age"], "sensitive": ["salary"]}],
        "default_guarantee": {"type": "l_diversity", "l": 7}}});
    let read = |document: &Value| {
        let mut faults = read_on(document, &facts).faults;
        let guarantee = |rule: usize| document.pointer(&format!("/method/rules/{rule}/guarantee/l"));
        for rule in (0..2).filter(|rule| guarantee(*rule).is_none_or(|l| l != 3)) {
            let fault = Fault::new(format!("/method/rules/{rule}"), Kind::RuleIneligible, "at most 3");
            faults.push(fault.with("largest_l", 3));
        }
        faults
    };
    let problem = with_remedies(Problem::of_faults(read(&document)), &document, read);
    let titles = |fault: &Fault| fault.remedies.iter().map(|remedy| remedy.title.clone()).collect::<Vec<_>>();
    let found: Vec<_> = problem.errors.iter().map(|fault| (fault.pointer.as_str(), titles(fault))).collect();
    let id = ["drop id", "publish id although it may identify persons"].map(str::to_owned).to_vec();
    let l = vec!["ask for l = 3".to_owned()];
    assert_eq!(found, [("/attributes/id", id), ("/method/rules/0", l.clone()), ("/method/rules/1", l)]);
    // what the data can hold is a count
    let hidden = problem.without_counts();
    assert!(hidden.errors.iter().filter(|fault| fault.kind == Kind::RuleIneligible).all(|of| of.remedies.is_empty()));
}

#[test]
fn answers_have_a_hundred_faults_and_the_number_of_the_others() {
    let names: serde_json::Map<String, Value> = (0..300).map(|number| (format!("x{number:03}"), json!(1))).collect();
    let mut document = hospital_document();
    document.as_object_mut().unwrap().extend(names);
    let problem = mended(&document);
    assert_eq!((problem.errors.len(), problem.members.get("others")), (100, Some(&json!(200))));
    assert_eq!(problem.title(), "300 faults in the specification");
    let many: serde_json::Map<String, Value> = (0..100_000).map(|number| (number.to_string(), json!(1))).collect();
    let faults = read_on(&many.into(), &hospital()).faults;
    assert_eq!(faults.len(), 20_000);
}

#[test]
fn large_documents_have_no_remedies() {
    let mut document = hospital_document();
    document["priority"] = json!(101);
    assert_eq!(mended(&document).errors[0].remedies.len(), 2);
    let mut many = document.clone();
    many["exclusions"] = (0..10_000).collect();
    assert!(mended(&many).errors.iter().all(|fault| fault.remedies.is_empty()));
    // one rule of many names is as dear
    document["method"]["rules"][0] = format!("{} -> race", vec!["age"; 20_000].join(", ")).into();
    assert!(mended(&document).errors.iter().all(|fault| fault.remedies.is_empty()));
}

#[test]
fn what_is_sensitive_leaves_the_known_side() {
    let document = json!({"dataset": ID, "unlisted": "drop", "method": {"type": "anatomy", "sensitive": "race",
        "quasi_identifiers": ["age", "race"], "guarantee": {"type": "l_diversity", "l": 2}}});
    let problem = mended(&document);
    let fault = problem.errors.iter().find(|fault| fault.kind == Kind::BadColumns).unwrap();
    let after = patched(&document, &fault.remedies[0].patch);
    assert_eq!(after["method"]["quasi_identifiers"], json!(["age"]), "{fault:?}");
}

#[test]
fn misplaced_members_move_to_where_they_are_known() {
    let two = json!({"type": "k_anonymity", "k": 2});
    let document = |name: &str, value: &Value| {
        let mut method = json!({"type": "generalize", "quasi_identifiers": ["age"], "sensitive": ["race"]});
        method[name] = value.clone();
        json!({"dataset": ID, "unlisted": "drop", "method": method})
    };
    let expected = document("guarantees", &json!([two]));
    for (name, value, title) in [
        ("guarantee", json!([two]), "call it guarantees"),
        ("guarantee", two.clone(), "call it guarantees, and write an array of it"),
    ] {
        let faulty = document(name, &value);
        let problem = mended(&faulty);
        let fault = problem.errors.iter().find(|fault| fault.kind == Kind::UnknownField).unwrap();
        assert_eq!(fault.remedies[0].title, title, "{fault:?}");
        assert_eq!(patched(&faulty, &fault.remedies[0].patch), expected);
    }
    // what is wrong within it comes to light, and does not keep it where it is unknown
    let mut hidden = hospital_document();
    hidden["atributes"] = json!({"agee": {"publish": true}});
    let problem = mended(&hidden);
    let fault = problem.errors.iter().find(|fault| fault.pointer == "/atributes").unwrap();
    assert_eq!(fault.remedies[0].title, "call it attributes", "{fault:?}");
}

#[test]
fn frequent_values_get_a_distance_and_the_smallest_share() {
    let facts = columns(&["age", "salary"]);
    let document = json!({"dataset": ID, "method": {"type": "versatile", "rules": ["age -> salary"],
        "default_guarantee": {"type": "l_diversity", "l": 2}}});
    let read = |document: &Value| {
        let mut faults = read_on(document, &facts).faults;
        let guarantee = document.pointer("/method/rules/0/guarantee").cloned().unwrap_or_default();
        let holds =
            guarantee["type"] == "t_closeness" || guarantee["alpha"].as_str().is_some_and(|alpha| alpha >= "0.8");
        if !holds {
            let fault = Fault::new("/method/rules/0", Kind::RuleIneligible, format!("not {guarantee}"));
            faults.push(fault.with("largest_l", 1));
        }
        faults
    };
    let problem = with_remedies(Problem::of_faults(read(&document)), &document, read);
    let titles: Vec<&str> = problem.errors[0].remedies.iter().map(|remedy| remedy.title.as_str()).collect();
    assert_eq!(titles, ["bound the distance from the table", "ask that no value takes more than 80% of a bucket"]);
}

#[test]
fn repeated_leaves_leave_the_tree_from_behind() {
    let tree = json!({"Any": {"A": ["x", "y", "x"], "B": ["z", "x", {"C": ["y", "w"]}]}});
    let document = json!({ "taxonomy": tree });
    let problem = read_or_remedy(&document, read_taxonomy).unwrap_err();
    let [fault] = &problem.errors[..] else { panic!("{problem:?}") };
    let expected = json!({"taxonomy": {"Any": {"A": ["x", "y"], "B": ["z", {"C": ["w"]}]}}});
    assert_eq!(patched(&document, &fault.remedies[0].patch), expected, "{fault:?}");
}

#[test]
fn patches_of_what_is_written_out_fit_what_was_sent() {
    let written = json!({"dataset": ID, "unlisted": "refuse", "attributes": {"age": {"publish": true}},
        "method": {"type": "slicing", "guarantee": {"l": 3}, "max_attempts": 5, "split": "relaxed"}});
    let mut after = written.clone();
    after["method"]["guarantee"]["l"] = 2.into();
    after["method"].as_object_mut().unwrap().remove("max_attempts");
    let sent = json!({"dataset": ID, "method": {"type": "slicing", "guarantee": {"l": 3}, "max_attempts": 5}});
    let own = fitted(&written, &after, &sent).unwrap();
    assert_eq!(own[0], json!({"op": "replace", "path": "/method/guarantee/l", "value": 2}), "{own:#}");
    let expected = json!({"dataset": ID, "method": {"type": "slicing", "guarantee": {"l": 2}}});
    assert_eq!(patched(&sent, &own), expected);
    // the method may be a policy's
    let fault = Fault {
        remedies: vec![FaultRemedy { title: String::new(), patch: own }],
        ..Fault::new("/method", Kind::BadColumns, "")
    };
    let on_policy = json!({"dataset": ID, "policy": "p-v1"});
    let problem = in_whole_members(Problem::of_faults(vec![fault]), &written, Some(&on_policy));
    let whole = patched(&on_policy, &problem.errors[0].remedies[0].patch);
    assert_eq!(whole, json!({"dataset": ID, "policy": "p-v1", "method": after["method"]}));
}

#[test]
fn remedies_of_one_rule_follow_each_other() {
    let guarantee = json!({"type": "l_diversity", "l": 6});
    let rule = json!({"quasi_identifiers": ["age", "icd9"], "sensitive": ["race"], "guarantee": guarantee});
    let written = json!({"method": {"type": "versatile", "rules": [{"kept": 1}, rule]}});
    let change = |at: &str, value: Value| {
        let mut after = written.clone();
        after["method"]["rules"][1][at] = value;
        after
    };
    let weaker = change("guarantee", json!({"type": "l_diversity", "l": 3}));
    let fewer = change("quasi_identifiers", json!(["age"]));
    // of a rule as an object, each changes its own members
    let mut sent = written.clone();
    sent["method"]["rules"][0] = "age -> race".into();
    for order in [[&weaker, &fewer], [&fewer, &weaker]] {
        let both = order
            .into_iter()
            .fold(sent.clone(), |sent_now, after| patched(&sent_now, &fitted(&written, after, &sent).unwrap()));
        let expected = json!({"quasi_identifiers": ["age"], "sensitive": ["race"],
            "guarantee": {"type": "l_diversity", "l": 3}});
        assert_eq!(both["method"]["rules"], json!(["age -> race", expected]));
    }
    // a rule in shorthand becomes an object, and the second patch does not undo the first
    sent["method"]["rules"][1] = "age, icd9 -> race".into();
    let first = patched(&sent, &fitted(&written, &weaker, &sent).unwrap());
    let second: json_patch::Patch = serde_json::from_value(fitted(&written, &fewer, &sent).unwrap()).unwrap();
    assert!(json_patch::patch(&mut first.clone(), &second).is_err());
    assert_eq!(first["method"]["rules"][0], "age -> race");
}

#[test]
fn rules_that_cannot_be_read_keep_their_place() {
    let mut document = hospital_document();
    document["method"]["rules"] = json!(["agee -> race", "age -> race"]);
    let specification = read_on(&document, &hospital()).specification.unwrap();
    let rules = &specification.normalized["method"]["rules"];
    assert_eq!((&rules[0], &rules[1]["quasi_identifiers"]), (&json!("agee -> race"), &json!(["age"])), "{rules:#}");
}
