//! The check of a release with all earlier ones.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::*;
use crate::microdata::{Attr, AttrSet};
use crate::privacy::links::KnownDependency;
use crate::privacy::{Dependency, Guard, PrivacyRule, TableSchema};
use crate::publication::{EarlierReleases, Guarantee, Protected};

fn names(list: &str) -> Vec<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

fn plain(table: &str, attributes: &str) -> Disclosure {
    Disclosure {
        table: table.into(),
        attributes: names(attributes),
        protection: RecordedProtection::Plain,
        partial: false,
        unproven: None,
        dependencies: Vec::new(),
        withdrawn: Vec::new(),
    }
}

fn guarding(table: &str, known: &str, sensitive: &str) -> Disclosure {
    let guard = RecordedGuard {
        quasi_identifiers: names(known),
        sensitive: names(sensitive),
        joint: false,
        guarantees: vec![Guarantee::LDiversity { l: 2 }],
        constant: Vec::new(),
        closes: false,
        excludable: BTreeMap::new(),
        taxonomies: BTreeMap::new(),
    };
    Disclosure {
        table: table.into(),
        attributes: names(&format!("{known} {sensitive}")),
        protection: RecordedProtection::Guarding(vec![guard]),
        partial: false,
        unproven: None,
        dependencies: Vec::new(),
        withdrawn: Vec::new(),
    }
}

fn rule(known: &str, sensitive: &str) -> ActiveRule {
    ActiveRule {
        pointer: Some("/method/rules/0".to_owned()),
        quasi_identifiers: names(known),
        sensitive: sensitive.into(),
        combination: Vec::new(),
        guarantee: Guarantee::LDiversity { l: 2 },
        excludable: Vec::new(),
        taxonomy: None,
        closes: false,
    }
}

fn earlier(disclosures: &[Disclosure], rules: &[ActiveRule]) -> EarlierDisclosures {
    let release = Uuid::from_u128(7);
    EarlierDisclosures {
        disclosures: disclosures.iter().map(|d| (release, d.clone())).collect(),
        rules: rules.iter().map(|r| (release, r.clone())).collect(),
        external: BTreeMap::new(),
        releases: EarlierReleases::default(),
        identities: AttributeIdentities::default(),
    }
}

/// A release of these tables without rules.
fn tables(tables: &[TableSchema]) -> CandidateRelease<'_> {
    CandidateRelease { tables, exclusive: &[], rules: &[] }
}

fn must_not_join(property: &str) -> [ExclusiveTable<'_>; 1] {
    [ExclusiveTable { table: 0, property }]
}

fn raw(attrs: &[u8]) -> TableSchema {
    TableSchema { attributes: attrs.iter().map(|&a| Attr(a)).collect(), guards: vec![] }
}

fn determines(determinant: &[u8], dependent: u8) -> KnownDependency {
    let determinant = determinant.iter().map(|&attr| Attr(attr)).collect();
    KnownDependency { dependency: Dependency { determinant, dependent: Attr(dependent) }, is_exact: true }
}

#[test]
fn check_without_earlier_disclosures_passes() {
    let union = LedgerUnion::new(&names("age zip"), &EarlierDisclosures::default()).unwrap();
    assert_eq!(union.check(&tables(&[raw(&[0, 1])])), Ok(()));
}

#[test]
fn check_plain_table_that_closes_a_path_names_it() {
    let earlier = earlier(&[plain("t1", "age ward")], &[rule("age", "disease")]);
    let union = LedgerUnion::new(&names("ward disease"), &earlier).unwrap();
    let violations = union.check(&tables(&[raw(&[0, 1])])).unwrap_err();
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].release, Uuid::from_u128(7));
    let earlier = Some(Uuid::from_u128(7));
    assert_eq!(violations[0].rule, ViolatedRule { release: earlier, pointer: Some("/method/rules/0".to_owned()) });
    let step = |release, via| JoinStep::Table { release, table: "t1".to_owned(), via: names(via) };
    assert_eq!(violations[0].path, [step(earlier, "age"), step(None, "ward")]);
}

#[test]
fn check_table_without_sensitive_attribute_passes() {
    let earlier = earlier(&[guarding("t1", "age ward", "disease")], &[rule("age", "disease")]);
    let union = LedgerUnion::new(&names("age ward sex"), &earlier).unwrap();
    assert_eq!(union.check(&tables(&[raw(&[0, 1, 2])])), Ok(()));
}

#[test]
fn check_exact_sensitive_attribute_is_a_conflict() {
    let earlier = earlier(&[guarding("t1", "age ward", "disease")], &[rule("age", "disease")]);
    let union = LedgerUnion::new(&names("ward disease"), &earlier).unwrap();
    assert_eq!(union.check(&tables(&[raw(&[0, 1])])).unwrap_err().len(), 1);
}

#[test]
fn check_second_bucketization_is_a_conflict() {
    let earlier = earlier(&[guarding("t1", "age", "disease")], &[rule("age", "disease")]);
    let union = LedgerUnion::new(&names("ward disease"), &earlier).unwrap();
    let guarantee = Guarantee::LDiversity { l: 2 };
    let known = AttrSet::one(Attr(0));
    let again = TableSchema {
        attributes: AttrSet::first(2),
        guards: vec![Guard::new(known, Protected::Attribute(Attr(1)), guarantee)],
    };
    let new = PrivacyRule { known, sensitive: Attr(1), guarantee };
    let rules = [NewRule { pointer: Some("/method/rules/3".to_owned()), demand: new.into() }];
    let violations = union.check(&CandidateRelease { rules: &rules, ..tables(&[again]) }).unwrap_err();
    assert_eq!(violations[0].rule, ViolatedRule { release: None, pointer: Some("/method/rules/3".to_owned()) });
    assert!(violations[0].path.is_empty());
}

#[test]
fn check_attribute_of_exclusive_table_is_a_conflict() {
    let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "age ward") };
    let union = LedgerUnion::new(&names("ward sex"), &earlier(&[exclusive], &[])).unwrap();
    assert!(union.check(&tables(&[raw(&[0, 1])])).is_err());
    assert_eq!(union.check(&tables(&[raw(&[1])])), Ok(()));
}

#[test]
fn check_attribute_of_joined_exclusive_table_is_a_conflict() {
    let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "name job") };
    let mut earlier = earlier(&[plain("t1", "job disease"), plain("t1", "town"), exclusive], &[]);
    for (at, (release, _)) in earlier.disclosures.iter_mut().enumerate() {
        *release = Uuid::from_u128(at as u128);
    }
    let union = LedgerUnion::new(&names("disease town year"), &earlier).unwrap();
    // a join of the first two extends to the new one
    let violations = union.check(&tables(&[raw(&[0, 2])])).unwrap_err();
    assert_eq!(violations[0].release, Uuid::from_u128(0));
    assert_eq!(union.check(&tables(&[raw(&[1, 2])])), Ok(()));
    // without a proof there is no promise about the join
    earlier.disclosures[2].1.unproven = Some("for a test".to_owned());
    let union = LedgerUnion::new(&names("disease town year"), &earlier).unwrap();
    assert_eq!(union.check(&tables(&[raw(&[0, 2])])), Ok(()));
}

#[test]
fn check_determinant_of_exclusive_table_is_a_conflict() {
    let exclusive = Disclosure { protection: RecordedProtection::Exclusive, ..plain("t1", "age ward") };
    let mut union = LedgerUnion::new(&names("room sex ward"), &earlier(&[exclusive], &[])).unwrap();
    assert_eq!(union.check(&tables(&[raw(&[0, 1])])), Ok(()));
    let room = [determines(&[0], 2)];
    union.assume(ReleaseDependencies { across: &room, ..ReleaseDependencies::default() });
    assert!(union.check(&tables(&[raw(&[0, 1])])).unwrap_err()[0].detail.contains("by dependencies"));
    assert_eq!(union.check(&tables(&[raw(&[1])])), Ok(()));
    assert!(
        union
            .check(&CandidateRelease { exclusive: &must_not_join("would be exclusive"), ..tables(&[raw(&[1])]) })
            .is_ok()
    );
}

#[test]
fn conflicting_pairs_lists_pairs_that_close_a_path() {
    let (t1, t2) = (guarding("t1", "age ward", "disease"), plain("t2", "ward sex"));
    let mut identities = AttributeIdentities::default();
    assert_eq!(shared_attributes(&identities, &t1, &t2), names("ward"));
    identities.alias("sex", "age").unwrap();
    assert_eq!(shared_attributes(&identities, &t1, &t2), names("age ward"));
    let all = names("age ward disease sex town");
    let refused = conflicting_pairs(&all, &earlier(&[t1, t2], &[rule("age", "disease")])).unwrap();
    // a path leads around the buckets by age - ward - sex, then disease; a town has no path yet
    let pairs =
        ["age disease", "ward disease", "disease sex"].map(|pair| <[String; 2]>::try_from(names(pair)).unwrap());
    assert_eq!(refused, pairs);
    assert_eq!(conflicting_pairs(&all, &EarlierDisclosures::default()), Ok(Vec::new()));
}

#[test]
fn check_part_of_a_joint_value_is_a_conflict() {
    let mut disclosed = guarding("t1", "age ward", "disease drug");
    if let RecordedProtection::Guarding(guards) = &mut disclosed.protection {
        guards[0].joint = true;
    }
    let promised = ActiveRule { combination: names("disease drug"), ..rule("age", "disease") };
    // the stored form
    let kept = serde_json::to_value(&promised).unwrap();
    assert_eq!(serde_json::from_value::<ActiveRule>(kept.clone()).unwrap(), promised);
    assert!(serde_json::to_value(rule("age", "disease")).unwrap().get("combination").is_none());
    let union = LedgerUnion::new(&names("age ward sex disease"), &earlier(&[disclosed], &[promised])).unwrap();
    assert!(union.rules.is_empty() && union.schemas[0].guards.len() == 1);
    assert_eq!(union.check(&tables(&[raw(&[0, 1, 2])])), Ok(()));
    for table in [raw(&[3]), raw(&[2, 3])] {
        let violations = union.check(&tables(&[table])).unwrap_err();
        assert!(violations[0].detail.contains("disease, drug"), "{}", violations[0].detail);
    }
    // an attribute of a bucketized combination is bucketized
    let guarantee = Guarantee::LDiversity { l: 2 };
    let guard = Guard::new(AttrSet::one(Attr(2)), Protected::Attribute(Attr(3)), guarantee);
    let again = TableSchema { attributes: guard.known.with(Attr(3)), guards: vec![guard] };
    assert!(union.check(&tables(&[again])).unwrap_err()[0].detail.contains("disease was bucketized before"));
}

#[test]
fn check_attribute_of_partial_table_is_a_conflict() {
    let partial = Disclosure { partial: true, ..guarding("t1", "age ward", "disease") };
    let kept = serde_json::to_value(&partial).unwrap();
    assert_eq!(serde_json::from_value::<Disclosure>(kept).unwrap(), partial);
    let union = LedgerUnion::new(&names("ward sex"), &earlier(&[partial], &[rule("age", "disease")])).unwrap();
    let violations = union.check(&tables(&[raw(&[0, 1])])).unwrap_err();
    assert!(violations[0].detail.contains("lacks some rows"), "{}", violations[0].detail);
    assert_eq!(union.check(&tables(&[raw(&[1])])), Ok(()));
    let union = LedgerUnion::new(&names("ward sex"), &earlier(&[plain("t1", "ward")], &[])).unwrap();
    assert!(
        union
            .check(&CandidateRelease { exclusive: &must_not_join("would lack some rows"), ..tables(&[raw(&[0, 1])]) })
            .is_err()
    );
    assert_eq!(union.check(&tables(&[raw(&[0, 1])])), Ok(()));
    assert_eq!(
        union.check(&CandidateRelease { exclusive: &must_not_join("would lack some rows"), ..tables(&[raw(&[1])]) }),
        Ok(())
    );
}

/// A step into a table of the earlier release, or of the new one.
fn into_table(release: Option<u128>, via: &str) -> JoinStep {
    let release = release.map(Uuid::from_u128);
    JoinStep::Table { release, table: "t1".to_owned(), via: names(via) }
}

fn over_link(link: &str, via: &str) -> JoinStep {
    JoinStep::Link { link: names(link), via: names(via) }
}

fn recorded(determinant: &str, dependent: &str) -> RecordedDependency {
    RecordedDependency { determinant: names(determinant), dependent: dependent.to_owned(), exact: true }
}

#[test]
fn check_recoded_protected_attribute_names_the_link() {
    let earlier = earlier(&[guarding("t1", "age", "unit")], &[rule("age", "unit")]);
    let mut union = LedgerUnion::new(&names("unit_name age sex"), &earlier).unwrap();
    let recoding = [determines(&[0], 3), determines(&[3], 0)];
    union.assume(ReleaseDependencies { across: &recoding, ..ReleaseDependencies::default() });
    let violations = union.check(&tables(&[raw(&[0, 1])])).unwrap_err();
    assert_eq!(violations[0].path, [into_table(None, "age"), over_link("unit unit_name", "unit_name")]);
    let detail = &violations[0].detail;
    assert!(detail.contains("unit_name determines unit") && detail.contains("leave unit_name out"), "{detail}");
    // without what the rule knows, or in a table of its own, the code says nothing of a person
    for table in [raw(&[0, 2]), raw(&[0]), raw(&[1, 2])] {
        assert_eq!(union.check(&tables(&[table])), Ok(()));
    }
}

#[test]
fn check_of_recorded_dependencies_needs_no_column() {
    let mut known = plain("t1", "unit disease");
    known.dependencies = vec![recorded("unit", "unit_name"), recorded("unit_name", "unit")];
    let kept = serde_json::to_value(&known).unwrap();
    assert_eq!(serde_json::from_value::<Disclosure>(kept).unwrap(), known);
    assert!(serde_json::to_value(plain("t1", "unit")).unwrap().get("dependencies").is_none());
    let earlier = earlier(&[known], &[rule("age", "disease")]);
    let union = LedgerUnion::new(&names("age unit_name sex"), &earlier).unwrap();
    let violations = union.check(&tables(&[raw(&[0, 1])])).unwrap_err();
    let path = [into_table(None, "age"), over_link("unit unit_name", "unit_name"), into_table(Some(7), "unit")];
    assert_eq!(violations[0].path, path);
    for table in [raw(&[1, 2]), raw(&[0, 2])] {
        assert_eq!(union.check(&tables(&[table])), Ok(()));
    }
}

#[test]
fn check_new_rule_with_a_coarser_column_is_a_conflict() {
    let mut union =
        LedgerUnion::new(&names("age disease sex"), &earlier(&[plain("t1", "age_band disease")], &[])).unwrap();
    union.assume(ReleaseDependencies { across: &[determines(&[0], 3)], ..ReleaseDependencies::default() });
    let guarantee = Guarantee::LDiversity { l: 2 };
    let guarded = |known: u8| {
        let known = AttrSet::one(Attr(known));
        let guard = Guard::new(known, Protected::Attribute(Attr(1)), guarantee);
        let demand = PrivacyRule { known, sensitive: Attr(1), guarantee }.into();
        let rule = NewRule { pointer: Some("/method/rules/0".to_owned()), demand };
        (TableSchema { attributes: known.with(Attr(1)), guards: vec![guard] }, rule)
    };
    let (table, rule) = guarded(0);
    let violations = union.check(&CandidateRelease { rules: &[rule], ..tables(&[table]) }).unwrap_err();
    assert_eq!(violations[0].path, [over_link("age age_band", "age"), into_table(Some(7), "age_band")]);
    let (table, rule) = guarded(2);
    assert_eq!(union.check(&CandidateRelease { rules: &[rule], ..tables(&[table]) }), Ok(()));
}

#[test]
fn check_dependency_known_too_late_isolates_the_tables() {
    let before = earlier(&[plain("t1", "age ward"), plain("t2", "room disease")], &[rule("age", "disease")]);
    let mut union = LedgerUnion::new(&names("ward sex town"), &before).unwrap();
    assert_eq!(union.check(&tables(&[raw(&[0, 1])])), Ok(()));
    let room = union.attribute("room").unwrap();
    let known = [determines(&[room.index() as u8], 0)];
    union.assume(ReleaseDependencies { across: &known, ..ReleaseDependencies::default() });
    let violations = union.check(&tables(&[raw(&[0, 1])])).unwrap_err();
    let detail = &violations[0].detail;
    assert!(detail.contains("earlier releases alone") && detail.contains("room determines ward"), "{detail}");
    assert!(detail.contains("leave ward out"), "{detail}");
    assert_eq!(union.check(&tables(&[raw(&[1, 2])])), Ok(()));
}

#[test]
fn check_withdrawn_dependency_counts_for_other_releases() {
    let withdrawn = [determines(&[0], 3)];
    let assumed = ReleaseDependencies { withdrawn: &withdrawn, ..ReleaseDependencies::default() };
    // the rule of an earlier release
    let promised = earlier(&[plain("t1", "age_band disease")], &[rule("sex", "disease")]);
    let mut union = LedgerUnion::new(&names("age sex town"), &promised).unwrap();
    assert_eq!(union.attribute("age_band"), Some(Attr(3)));
    union.assume(assumed);
    assert!(union.check(&tables(&[raw(&[0, 1])])).is_err());
    assert!(union.recorded_dependencies().is_empty());
    // a rule of the release itself
    let mut union = LedgerUnion::new(&names("age disease"), &earlier(&[plain("t1", "age_band disease")], &[])).unwrap();
    let withdrawn = [determines(&[0], 2)];
    union.assume(ReleaseDependencies { withdrawn: &withdrawn, ..ReleaseDependencies::default() });
    let known = AttrSet::one(Attr(0));
    let guarantee = Guarantee::LDiversity { l: 2 };
    let guard = Guard::new(known, Protected::Attribute(Attr(1)), guarantee);
    let table = TableSchema { attributes: AttrSet::first(2), guards: vec![guard] };
    let demand = PrivacyRule { known, sensitive: Attr(1), guarantee }.into();
    let rules = [NewRule { pointer: Some("/method/rules/0".to_owned()), demand }];
    assert_eq!(union.check(&CandidateRelease { rules: &rules, ..tables(&[table]) }), Ok(()));
}

#[test]
fn check_aliases_are_linked() {
    let mut before = earlier(&[plain("t1", "unit disease")], &[rule("age", "disease")]);
    before.identities.alias("station", "unit").unwrap();
    let union = LedgerUnion::new(&names("age unit station"), &before).unwrap();
    // two tables of the new release that only the alias ties
    let violations = union.check(&tables(&[raw(&[0, 2])])).unwrap_err();
    assert_eq!(violations[0].release, Uuid::from_u128(7));
}
