//! Taxonomies: what is read of them, and everything that is wrong with them.

use super::*;
use crate::microdata::Taxonomy;
use crate::spec::grammar::reader::FaultList;

fn read_tree(tree: &Value) -> Result<std::sync::Arc<Taxonomy>, Vec<Fault>> {
    let mut faults = FaultList::new();
    taxonomy(tree, "/t", &mut faults).ok_or_else(|| faults.into_sorted())
}

fn kinds_of(faults: &[Fault]) -> Vec<(&str, Kind)> {
    faults.iter().map(|fault| (fault.pointer.as_str(), fault.kind)).collect()
}

fn written(csv: &str) -> Value {
    read_levels(csv.as_bytes()).unwrap_or_else(|problem| panic!("{problem:?}")).written()
}

#[test]
fn a_tree_is_written_as_it_was_read() {
    for (tree, again) in [
        (json!({"Any": ["b", "a", null]}), None),
        (json!({"Any": {"Field": ["Driver"], "Office": ["Clerk", "Banker"]}}), None),
        (json!({"Any": ["x", {"Office": ["Clerk"]}, {"Field": [{"Deep": ["y"]}, null]}]}), None),
        // one order has one spelling
        (json!({"Any": [{"a": ["1"]}, {"b": ["2"]}]}), Some(json!({"Any": {"a": ["1"], "b": ["2"]}}))),
        (
            json!({"Any": [{"b": ["1"], "c": ["3"]}, {"a": ["2"]}]}),
            Some(json!({"Any": [{"b": ["1"]}, {"c": ["3"]}, {"a": ["2"]}]})),
        ),
        (json!({"n": [1, -2, 1.5, true, 3e3]}), Some(json!({"n": ["1", "-2", "1.5", "true", "3000"]}))),
    ] {
        let read = read_tree(&tree).unwrap_or_else(|faults| panic!("{tree}: {faults:?}"));
        assert_eq!(read.written(), again.unwrap_or(tree));
        let twice = read_tree(&read.written()).unwrap();
        assert_eq!((&twice, twice.digest()), (&read, read.digest()));
    }
    let (one, other) = (read_tree(&json!({"r": ["a", "b"]})).unwrap(), read_tree(&json!({"r": ["b", "a"]})).unwrap());
    assert_ne!(one.digest(), other.digest());
}

#[test]
fn every_fault_of_a_tree_is_named() {
    use Kind::{ParameterRange as Range, TaxonomyConflict};
    for (tree, faults) in [
        (json!({}), vec![("/t", Range)]),
        (json!({"a": ["x"], "b": ["y"]}), vec![("/t", Range)]),
        (json!(["x"]), vec![("/t", Range)]),
        (json!({"": ["x"]}), vec![("/t/", Range)]),
        (json!({"a": "x"}), vec![("/t/a", Range)]),
        (
            json!({"a": {"b": [], "c": {}, "d": null, "": ["x"], "e": ["y", [1], 1e300, {}]}}),
            vec![
                ("/t/a/", Range),
                ("/t/a/b", Range),
                ("/t/a/c", Range),
                ("/t/a/d", Range),
                ("/t/a/e/1", Range),
                ("/t/a/e/2", Range),
                ("/t/a/e/3", Range),
            ],
        ),
        (
            json!({"a": {"b": ["x", "b"], "c": ["x", "a", "x"], "d": []}}),
            vec![("/t", TaxonomyConflict), ("/t/a/d", Range)],
        ),
        (json!({"a": ["1", 1]}), vec![("/t", TaxonomyConflict)]),
        (json!({"a": [null, null]}), vec![("/t", TaxonomyConflict)]),
    ] {
        let found = read_tree(&tree).expect_err("faults");
        assert_eq!(kinds_of(&found), faults, "{tree}");
    }
    let conflict = &read_tree(&json!({"a": {"b": ["x", "b"], "c": ["x", "a", "x"]}})).unwrap_err()[0];
    assert_eq!(conflict.members["count"], 3, "x, b and a");
    assert!(conflict.detail.ends_with("/t/a/b/1"), "{}", conflict.detail);
    let deep = (0..40).fold(json!(["leaf"]), |below, level| json!({format!("n{level}"): below}));
    assert_eq!(kinds_of(&read_tree(&deep).unwrap_err()).len(), 1);
    let long = "x".repeat(201);
    let pointed = |tree: Value| {
        kinds_of(&read_tree(&tree).unwrap_err()).iter().map(|fault| fault.0.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(pointed(json!({"r": {long.clone(): ["a"], "b": ["c"]}})), ["/t/r"]);
    assert_eq!(pointed(json!({long.clone(): ["a"]})), ["/t"]);
    assert!(read_levels(format!("v,a,b\nx,{long},r\ny,p,r\n").as_bytes()).is_err());
    assert!(read_tree(&json!({"r": [long]})).is_ok(), "values may be long");
    let wide: Vec<String> = (0..70_000).map(|leaf| leaf.to_string()).collect();
    assert_eq!(kinds_of(&read_tree(&json!({"r": wide})).unwrap_err()), [("/t", Range)]);
}

#[test]
fn rows_of_levels_are_a_tree() {
    let jobs = json!({"Any": {"Field": ["Driver"], "Office": ["Banker", "Clerk"]}});
    assert_eq!(written("job,a,b\nDriver,Field,Any\nBanker,Office,Any\nClerk,Office,Any\n"), jobs);
    assert_eq!(written("job;a;b\nDriver;Field;Any\nBanker;Office;Any\n\"Clerk\";Office;Any"), jobs);
    // the order of rows is that of the leaves; an empty field and a repeated node say nothing
    assert_eq!(
        written("v,a,b,c\nx,x,p,Any\ny,,p,Any\n,q,,Any\n\"\",q,q,Any\nz,z,z,Any\n"),
        json!({"Any": [{"p": ["x", "y"]}, {"q": [null, ""]}, "z"]})
    );
    assert_eq!(written("v,a\nx,p\ny,q\nz,p\n"), json!({"*": {"p": ["x", "z"], "q": ["y"]}}));
    assert_eq!(written("v\nx\ny\n"), json!({"*": ["x", "y"]}));
    assert_eq!(written("v,a\nx,*\ny,*\n"), json!({"*": ["x", "y"]}));
    for (csv, kind, count) in [
        ("", Kind::EmptyTable, None),
        ("a,b\n", Kind::EmptyTable, None),
        ("a,b\nx,\"y\n", Kind::UploadMalformed, None),
        // no header
        ("x,p,Any\ny,p,Any\n", Kind::InvalidSpecification, None),
        ("v,a,b\nx,p,Any\nx,p,Any\n", Kind::InvalidSpecification, Some(1)),
        ("v,a,b\nx,p,Any\nx,q,Any\ny,q,Any\ny,p,Any\n", Kind::InvalidSpecification, Some(2)),
        ("v,a,b,c\nx,p,r,Any\ny,p,s,Any\n", Kind::InvalidSpecification, Some(1)),
        ("v,a,b\np,q,Any\nx,p,Any\n", Kind::InvalidSpecification, Some(1)),
        ("v,a,b\nx,Any,p\ny,Any,Any\n", Kind::InvalidSpecification, Some(1)),
    ] {
        let problem = read_levels(csv.as_bytes()).expect_err(csv);
        assert_eq!(problem.kind, kind, "{csv}: {problem:?}");
        let conflict = problem.errors.iter().find(|fault| fault.kind == Kind::TaxonomyConflict);
        assert_eq!(conflict.map(|fault| fault.members["count"].as_u64().unwrap()), count, "{csv}: {problem:?}");
    }
    assert_eq!(read_levels(b"a\n\xff\n").unwrap_err().members["row"], 1);
}

#[test]
fn a_tree_of_the_job_is_part_of_what_it_is() {
    let tree = json!({"Any": {"b": ["x"], "a": [null, "y"]}});
    let document = with(hospital_document(), "/attributes/race/taxonomy", tree.clone());
    let first = accepted(&document, &hospital());
    assert_eq!(first.taxonomies.len(), 1);
    assert_eq!(first.taxonomies[0].attribute, Attr(4));
    assert_eq!(first.normalized["attributes"]["race"]["taxonomy"], tree);
    assert_eq!(accepted(&first.normalized, &hospital()).taxonomies, first.taxonomies);
    let other = with(hospital_document(), "/attributes/race/taxonomy", json!({"Any": {"a": [null, "y"], "c": ["x"]}}));
    assert_ne!(accepted(&other, &hospital()).reuse_form, first.reuse_form);
    assert_ne!(accepted(&hospital_document(), &hospital()).reuse_form, first.reuse_form);
    // fewer leaves than values
    let mut counted = hospital();
    counted[4].distinct = Some(5);
    let faults = read_on(&document, &counted).faults;
    assert_eq!(kinds_of(&faults), [("/attributes/race/taxonomy", Kind::TaxonomyValueMissing)]);
    assert_eq!((&faults[0].members["missing"], &faults[0].members["attribute"]), (&json!(2), &json!("race")));
    assert_eq!(faults[0].members["values_url"], format!("/v1/datasets/{ID}/attributes/race/values"));
    counted[4].kind = AttributeType::Decimal;
    assert!(read_on(&document, &counted).faults.is_empty(), "one number may have several spellings");
}

#[test]
fn the_hierarchical_distance_needs_a_tree() {
    let mut document = hospital_document();
    document["method"]["rules"] = json!(["age -> race", "age -> icd9"]);
    document["unlisted"] = json!("drop");
    document["method"]["default_guarantee"] = json!({"type": "t_closeness", "t": "0.2", "distance": "hierarchical"});
    let faults = read_on(&document, &hospital()).faults;
    let unsupported = Kind::GuaranteeUnsupported;
    assert_eq!(kinds_of(&faults), [("/method/rules/0", unsupported), ("/method/rules/1", unsupported)]);
    let document = with(document, "/attributes/race/taxonomy", json!({"Any": ["x"]}));
    assert_eq!(kinds_of(&read_on(&document, &hospital()).faults), [("/method/rules/1", unsupported)]);
    let document = with(document, "/attributes/icd9/taxonomy", json!({"Any": ["x"]}));
    let guarantee = accepted(&document, &hospital()).method.rules()[0].guarantee;
    let t = "0.2".parse().unwrap();
    assert_eq!(
        guarantee,
        Guarantee::TCloseness {
            t,
            distance: crate::publication::ValueDistance::Hierarchical,
            reference: Default::default()
        }
    );
}

#[test]
fn stored_taxonomies_are_named_and_written_out() {
    let mut document = with(hospital_document(), "/attributes/race/taxonomy", json!("race-v2"));
    document["attributes"]["age"]["taxonomy"] = json!("ages");
    document["attributes"]["icd9"]["taxonomy"] = json!("No name");
    let named = taxonomies_named(&document);
    let name = |name: &str, version| TaxonomyName { name: name.to_owned(), version };
    assert_eq!(named, [("age".to_owned(), name("ages", None)), ("race".to_owned(), name("race", Some(2)))]);
    for (attribute, _) in &named {
        expand_taxonomies(&mut document, attribute, json!({"Any": ["x"]}));
    }
    let faults = read_on(&document, &hospital()).faults;
    assert_eq!(kinds_of(&faults), [("/attributes/icd9/taxonomy", Kind::ParameterRange)]);
    // a policy names what will be there, the command line has no store
    let stored = with(hospital_document(), "/attributes/race/taxonomy", json!("race"));
    let faults = |origin| {
        read(&stored, &DatasetSchema { columns: &hospital(), keys: &[], unit: &crate::publication::Unit::Row }, origin)
            .faults
    };
    assert_eq!(
        kinds_of(&faults(DocumentSource::CommandLine)),
        [("/attributes/race/taxonomy", Kind::GuaranteeUnsupported)]
    );
    let mut policy = stored.clone();
    policy.as_object_mut().unwrap().remove("dataset");
    policy["method"]["default_guarantee"] = json!({"type": "t_closeness", "t": "0.2", "distance": "hierarchical"});
    policy["attributes"]["zipcode"] = json!({"taxonomy": "zip-v1"});
    assert!(read_policy(&json!({"specification": policy})).is_ok());
    policy["attributes"]["zipcode"] = json!({"taxonomy": "Zip"});
    assert!(read_policy(&json!({"specification": policy})).is_err());
}
