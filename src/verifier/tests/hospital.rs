//! Each check on the hospital example of [Jin et al. 2010].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fixture::{VerifierFixture, detail, failed, guardian, hospital, protection, rule, verified};

use crate::control::Control;
use crate::microdata::taxonomy::TaxonomyBuilder;
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, ColumnAnnotations, Domain, Taxonomy};
use crate::privacy::{OverallCounts, holds};
use crate::publication::{
    CellContent, DeclaredTaxonomy, EnforcedBy, ExcludedValues, Guarantee, MethodDetails, Protected, Ratio, RowMeaning,
    RuleDerivation, RuleOrigin, SubmittedRule, TableName, TableProtection, ValueDistance,
};
use crate::verifier::contract::checks::{CheckName, Linkage, PosteriorSummary};
use crate::verifier::contract::input::{VerifierError, VerifierInput};
use crate::verifier::definition::fraction::Distance;
use crate::verifier::definition::guarantee::BucketShares;
use crate::verifier::definition::share::ShareOfRows;
use crate::verifier::definition::taxonomy::{DeclaredValues, TaxonomyPaths};
use crate::verifier::verify::verify;

fn guards(fixture: &mut VerifierFixture) -> &mut Vec<crate::publication::TableGuard> {
    match &mut fixture.publication.tables[0].protection {
        TableProtection::Guarding(guards) => guards,
        _ => panic!("the first table is guarding"),
    }
}

/// The failed checks after a change of the hospital example.
fn after(change: impl FnOnce(&mut VerifierFixture)) -> Vec<CheckName> {
    let mut fixture = hospital();
    change(&mut fixture);
    failed(&fixture.verify())
}

#[test]
fn verify_hospital_example_passes() {
    let fixture = hospital();
    let report = fixture.verify();
    assert_eq!(failed(&report), [], "{:?}", report.checks);
    assert!(report.verified());
    assert_eq!(report.linkage, Linkage::Checked);
    // only sequential releases have requirements, and no dependency is known
    let is_omitted = |check: &CheckName| [CheckName::Requirements, CheckName::Dependencies].contains(check);
    let checks: Vec<CheckName> = CheckName::OF_VERIFIER.into_iter().filter(|check| !is_omitted(check)).collect();
    assert_eq!(report.checks.iter().map(|c| c.check).collect::<Vec<_>>(), checks);
    let t1 = &report.tables[0];
    assert_eq!((t1.rows, t1.buckets, &t1.sizes), (6, 3, &BTreeMap::from([(2, 3)])));
    let half = ShareOfRows::new(1, 2);
    let posteriors =
        PosteriorSummary { worst: half, median: half, smallest_bucket: 2, prior: Some(ShareOfRows::new(2, 6)) };
    assert_eq!(t1.posteriors, BTreeMap::from([(Attr(3), posteriors)]));
    let t2 = &report.tables[1];
    assert_eq!((t2.rows, t2.buckets, t2.sizes.len(), t2.posteriors.len()), (6, 0, 0, 0));
}

#[test]
fn verify_without_witness_compares_parts_as_a_whole() {
    let mut fixture = hospital();
    let report = fixture.verify_with(true, false);
    assert_eq!((failed(&report), report.linkage, report.checks.len()), (vec![], Linkage::NotChecked, 8));
    let qi = fixture.files.get_mut("t1.qi.csv").expect("a part");
    qi.rows[0].1[1] = Some("M".to_owned());
    fixture.settle("t1.qi.csv", &[0, 2, 4]);
    assert_eq!(failed(&fixture.verify_with(true, false)), [CheckName::Content]);
}

/// Each part is the projection of the original, but together they have rows that are none of it.
#[test]
fn rows_without_a_bucket_fail_without_witness() {
    let mut fixture = hospital();
    for (label, _) in &mut fixture.files.get_mut("t1.sa.csv").expect("a part").rows {
        *label = match label.as_str() {
            "1" => "3".to_owned(),
            "3" => "1".to_owned(),
            other => other.to_owned(),
        };
    }
    fixture.settle("t1.sa.csv", &[3]);
    let report = fixture.verify_with(true, false);
    assert_eq!(failed(&report), [CheckName::Content]);
    let expected = "table t1: 4 rows of the original stand in no bucket with all their columns";
    assert_eq!(detail(&report, CheckName::Content), expected);
}

/// Each row has a bucket with all its columns, but the first has three rows of `a`, and only two values that go with it.
#[test]
fn buckets_without_an_assignment_fail_without_witness() {
    let row = |at: usize| ["ab", "xy"].map(|of| Some(of[at / 4..=at / 4].to_owned())).to_vec();
    let mut fixture = VerifierFixture::new(&["q", "s"], (0..8).map(row).collect());
    fixture.guarding(&[0], 1, 2, vec![1, 1, 2, 2, 1, 1, 2, 2]);
    fixture.hold(rule(0, &[0], 1, 2), guardian("t1", &[0]));
    assert_eq!(failed(&fixture.verify_with(true, false)), []);
    let known = fixture.files.get_mut("t1.qi.csv").expect("a part");
    for (at, (label, _)) in known.rows.iter_mut().enumerate() {
        *label = if [0, 1, 4, 2].contains(&at) { "1" } else { "2" }.to_owned();
    }
    fixture.settle("t1.qi.csv", &[0]);
    let shown: Vec<_> = fixture.files["t1.qi.csv"].rows.iter().map(|(_, cells)| cells[0].clone()).collect();
    assert_eq!(shown.iter().take(4).flatten().map(String::as_str).collect::<String>(), "aaab");
    let report = fixture.verify_with(true, false);
    assert_eq!(failed(&report), [CheckName::Content]);
    let expected = "table t1: no assignment of the rows of the original to buckets has these parts";
    assert_eq!(detail(&report, CheckName::Content), expected);
}

#[test]
fn verify_without_original_omits_content() {
    let mut fixture = hospital();
    let report = fixture.verify_with(false, false);
    assert_eq!((failed(&report), report.linkage, report.checks.len()), (vec![], Linkage::NotChecked, 7));
    assert_eq!(report.tables, fixture.verify().tables);
    // inferred types order 9 before 10, and the parts decide eligibility
    fixture.submitted[2].guarantee = Guarantee::LDiversity { l: 4 };
    fixture.publication.rules[2].guarantee = Guarantee::LDiversity { l: 4 };
    assert_eq!(failed(&fixture.verify_with(false, false)), [CheckName::Gnf, CheckName::Guards]);
    let alone = rule(0, &[], 4, 3);
    let mut fixture = hospital();
    fixture.hold(alone, EnforcedBy::Unreachable);
    assert_eq!(failed(&fixture.verify_with(false, false)), [CheckName::Gnf]);
    assert_eq!(failed(&fixture.verify()), [CheckName::Gnf]);
}

#[test]
fn columns_unclaimed_or_unaccounted_fails() {
    assert_eq!(after(|w| w.accounted = w.accounted.without(Attr(1))), [CheckName::Columns]);
    // exact values are no intervals, and a plain table has no intervals
    assert_eq!(
        after(|w| w.publication.tables[1].parts[0].columns[0].cells = CellContent::Interval),
        [CheckName::Content, CheckName::Dictionary, CheckName::Guards]
    );
    assert_eq!(after(|w| w.publication.tables[1].parts[0].rows = RowMeaning::Values), [CheckName::Columns]);
    assert!(after(|w| w.publication.suppressed = 1).contains(&CheckName::Dictionary));
    let method_details = MethodDetails::Sequential(Box::default());
    assert_eq!(after(|w| w.publication.method_details = method_details), [CheckName::Guards]);
    assert!(after(|w| w.publication.tables[1].parts[0].len = 7).contains(&CheckName::Columns));
    assert!(after(|w| w.publication.tables[1].parts[0].len = 5).contains(&CheckName::Content));
    assert!(after(|w| w.publication.tables[1].parts[0].columns[0].attribute = Attr(6)).contains(&CheckName::Columns));
    assert_eq!(
        after(|w| w.files.get_mut("t2.rows.csv").expect("a part").header[0] = "years".into()),
        [CheckName::Columns]
    );
}

#[test]
fn order_by_text_or_with_odd_labels_fails() {
    let relabel = |from: &'static str, to: &'static str| {
        after(move |w| {
            for file in ["t1.qi.csv", "t1.sa.csv"] {
                let rows = w.files.get_mut(file).expect("a part").rows.iter_mut();
                rows.filter(|row| row.0 == from).for_each(|row| row.0 = to.to_owned());
            }
        })
    };
    assert!(relabel("1", "0").contains(&CheckName::Order));
    assert!(relabel("1", "01").contains(&CheckName::Order));
    assert!(relabel("3", "4").contains(&CheckName::Order));
    assert!(relabel("3", "4294967297").contains(&CheckName::Order));
    assert!(relabel("3", "4000000000").contains(&CheckName::Order));
    let swapped = after(|w| w.files.get_mut("t2.rows.csv").expect("a part").rows.swap(0, 5));
    assert_eq!(swapped, [CheckName::Order]);
    // the order of numbers differs from that of their digits
    let mut fixture = VerifierFixture::new(&["n"], [9, 10, 100].map(|n| vec![Some(n.to_string())]).to_vec());
    fixture.plain(&[0]);
    assert_eq!(failed(&fixture.verify()), []);
    assert_eq!(failed(&fixture.verify_with(false, false)), []);
    fixture.files.get_mut("t1.rows.csv").expect("a part").rows.rotate_right(2);
    assert_eq!(failed(&fixture.verify()), [CheckName::Order]);
    assert_eq!(failed(&fixture.verify_with(false, false)), [CheckName::Order]);
}

#[test]
fn dictionary_empty_string_for_missing_value_fails() {
    let cells = [None, Some(""), Some("NULL"), Some("a,\"b\"\n")];
    let rows: Vec<_> = cells.iter().map(|cell| vec![cell.map(str::to_owned), Some("x".to_owned())]).collect();
    let mut fixture = VerifierFixture::new(&["a", "b"], rows);
    fixture.plain(&[0]);
    fixture.plain(&[0, 1]);
    assert_eq!(failed(&fixture.verify()), []);
    assert_eq!(failed(&fixture.verify_with(false, false)), []);
    // a marker that is also a value is ambiguous
    fixture.publication.tables[0].parts[0].null = Some("NULL".to_owned());
    assert_eq!(failed(&fixture.verify()), [CheckName::Dictionary]);
    // without a marker the line is empty
    fixture.publication.tables[0].parts[0].null = None;
    assert!(failed(&fixture.verify()).contains(&CheckName::Columns));
}

#[test]
fn guards_without_their_shape_fail() {
    use CheckName::{Gnf, Guarantee as Kept, Guards};
    assert_eq!(after(|w| w.publication.tables[0].protection = TableProtection::Plain), [Gnf, Guards]);
    assert_eq!(after(|w| w.publication.tables[0].protection = TableProtection::Exclusive), [Gnf, Guards]);
    assert_eq!(after(|w| guards(w).clear()), [Gnf, Guards]);
    assert_eq!(after(|w| guards(w)[0].guarantees.clear()), [Gnf, Guards]);
    assert_eq!(after(|w| guards(w)[0].known = AttrSet::first(2)), [Gnf, Guards]);
    assert_eq!(after(|w| guards(w)[0].known = guards(w)[0].known.with(Attr(3))), [Kept, Guards]);
    assert_eq!(after(|w| guards(w)[0].protects = Protected::Joint(AttrSet::one(Attr(3)))), [Kept, Gnf, Guards]);
    assert_eq!(after(|w| guards(w)[0].guarantees[0] = Guarantee::LDiversity { l: 3 }), [Kept]);
    let both = after(|w| {
        let protects = Protected::Attribute(Attr(2));
        let guard = crate::publication::TableGuard { protects, ..guards(w)[0].clone() };
        guards(w).push(guard);
    });
    assert_eq!(both, [Kept, Guards]);
}

#[test]
fn gnf_submitted_rule_unlisted_or_violated_fails() {
    let gnf = [CheckName::Gnf];
    assert_eq!(after(|w| w.publication.rules.truncate(2)), gnf);
    assert_eq!(after(|w| w.submitted.truncate(2)), gnf);
    assert_eq!(
        after(|w| w.publication.rules[0].enforced_by = guardian("t1", &[0])),
        [CheckName::Gnf, CheckName::Guards]
    );
    assert_eq!(after(|w| w.publication.rules[2].enforced_by = EnforcedBy::Unreachable), gnf);
    assert_eq!(after(|w| w.publication.rules[2].enforced_by = guardian("t1", &[0])), gnf);
    assert_eq!(
        after(|w| w.publication.rules[2].enforced_by = guardian("t2", &[0, 4])),
        [CheckName::Gnf, CheckName::Guards]
    );
    assert_eq!(after(|w| w.publication.rules[2].enforced_by = EnforcedBy::Table(TableName::at(0))), []);
    assert_eq!(
        after(|w| w.publication.rules[0].enforced_by = EnforcedBy::Table(TableName::at(0))),
        [CheckName::Gnf, CheckName::Guards]
    );
    // one part holds age and icd9
    let mut fixture = hospital();
    fixture.hold(rule(3, &[1], 5, 2), EnforcedBy::Unreachable);
    assert_eq!(failed(&fixture.verify()), gnf);
    assert_eq!(
        detail(&fixture.verify(), CheckName::Gnf),
        "rule /method/rules/3: \"age\" reach \"icd9\" and no table guards it"
    );
}

#[test]
fn gnf_implied_rule_without_its_reason_fails() {
    let imply = |known: &'static [u8], by: &'static str, l| {
        after(move |w| {
            let rule = rule(3, known, 3, l);
            let mut protection = protection(&rule, guardian("t1", known));
            protection.origin = RuleOrigin::ImpliedBy;
            protection.because = Some(RuleDerivation::Rule(by.to_owned()));
            w.submitted.push(rule);
            w.publication.rules.push(protection);
        })
    };
    assert_eq!(imply(&[0], "/method/rules/2", 2), []);
    assert_eq!(imply(&[0], "/method/rules/1", 2), [CheckName::Gnf]);
    assert_eq!(imply(&[0, 2], "/method/rules/2", 2), [CheckName::Gnf]);
    // hospital determines race: an adversary who knows age and icd9 must not infer the hospital either
    let derive = |determinant: &'static [u8], known: &'static [u8], sensitive| {
        after(move |w| {
            w.dependencies.push((determinant.iter().map(|&a| Attr(a)).collect(), AttrSet::one(Attr(4))));
            let mut protection = protection(&rule(3, known, sensitive, 2), EnforcedBy::Unreachable);
            protection.origin = RuleOrigin::FromDependency;
            protection.pointer = None;
            w.publication.rules.push(protection);
        })
    };
    assert_eq!(derive(&[0], &[1, 5], 0), []);
    // the rule knows the age, which ties the race to it
    assert_eq!(derive(&[1, 0], &[1, 5], 0), [CheckName::Dependencies]);
    assert_eq!(derive(&[0], &[1], 0), [CheckName::Gnf], "it follows for age and icd9 together");
    assert_eq!(derive(&[0], &[1, 5], 2), [CheckName::Gnf], "gender determines nothing");
    let both = [CheckName::Gnf, CheckName::Dependencies];
    assert_eq!(derive(&[5], &[1, 5], 0), both, "icd9 determines race");
}

#[test]
fn gnf_unlisted_consequence_of_dependency_is_checked() {
    let with = |determinant: u8, dependent: u8| {
        after(move |w| w.dependencies.push((AttrSet::one(Attr(determinant)), AttrSet::one(Attr(dependent)))))
    };
    assert_eq!(with(0, 4), []);
    // gender and icd9 must not reveal the zip code, and so not the hospital, which shares a part with gender
    assert_eq!(with(0, 3), [CheckName::Gnf, CheckName::Dependencies]);
    // an attribute without a table reveals nothing
    assert_eq!(with(9, 3), []);
}

#[test]
fn gnf_combination_holds_by_any_of_its_attributes() {
    let combine = |attrs: &'static [u8], enforced_by: EnforcedBy| {
        after(move |w| {
            let mut rule = rule(3, &[2], 3, 2);
            rule.protects = Protected::Joint(attrs.iter().map(|&a| Attr(a)).collect());
            w.hold(rule, enforced_by);
        })
    };
    assert_eq!(combine(&[0, 3], guardian("t1", &[2])), []);
    assert_eq!(combine(&[0, 4], guardian("t1", &[2])), [CheckName::Gnf, CheckName::Guards]);
    assert_eq!(combine(&[2, 3], guardian("t1", &[2])), [CheckName::Gnf]);
    assert_eq!(combine(&[], EnforcedBy::Unreachable), [CheckName::Gnf]);
}

#[test]
fn verify_cancelled_or_unreadable_is_an_error() {
    let fixture = hospital();
    let parts = fixture.bytes();
    let control = Control::default();
    assert!(verify(&fixture.input(&parts), &control).is_ok());
    control.cancel();
    assert!(matches!(verify(&fixture.input(&parts), &control), Err(VerifierError::Cancelled(_))));
    let mut without = fixture.bytes();
    without.0.remove("t1.sa.csv");
    assert!(matches!(verify(&fixture.input(&without), &Control::default()), Err(VerifierError::Io(_))));
}

#[test]
fn verify_malformed_part_fails_every_check_of_rows() {
    for text in ["", "age\n37\n", "age,icd9\n\"37,HIV\n", "age,icd9\n37\n", "age,icd9\n\n"] {
        let fixture = hospital();
        let mut parts = fixture.bytes();
        parts.0.insert("t2.rows.csv".to_owned(), text.as_bytes().to_vec());
        let report = verified(&fixture.input(&parts));
        let failed = failed(&report);
        for check in [CheckName::Columns, CheckName::Order, CheckName::Dictionary] {
            assert!(failed.contains(&check), "{text:?} {failed:?}");
        }
    }
}

#[test]
fn guards_two_sensitive_attributes_have_one_each() {
    let rows = (0..48_u32).map(|row| [row % 5, row % 4, row % 3].map(|value| Some(value.to_string())).to_vec());
    let mut fixture = VerifierFixture::new(&["q", "s", "t"], rows.collect());
    // twelve consecutive rows have every pair of values once
    let labels = (0..48_u32).map(|row| [3, 1, 4, 2][row as usize / 12]).collect();
    fixture.together(&[0], [1, 2], 3, labels);
    fixture.hold(rule(0, &[0], 1, 3), guardian("t1", &[0]));
    fixture.hold(rule(1, &[0], 2, 3), guardian("t1", &[0]));
    let report = fixture.verify();
    assert_eq!(failed(&report), [], "{:?}", report.checks);
    let posteriors = &report.tables[0].posteriors;
    assert_eq!(
        (posteriors[&Attr(1)].worst, posteriors[&Attr(2)].worst),
        (ShareOfRows::new(3, 12), ShareOfRows::new(4, 12))
    );
    // a guard does not take the other sensitive attribute as known
    fixture.hold(rule(2, &[1], 2, 3), guardian("t1", &[1]));
    assert_eq!(failed(&fixture.verify()), [CheckName::Gnf, CheckName::Guards]);
    fixture.publication.tables[0].parts[2].name = "sa1".to_owned();
    assert!(failed(&fixture.verify()).contains(&CheckName::Columns));
}

#[test]
fn verify_large_domains_reads_rows_in_strides() {
    let count = 2 * Control::STRIDE + 5;
    let rows: Vec<_> = (0..count)
        .map(|row| {
            let wide = row.wrapping_mul(7919) % count;
            vec![
                Some(wide.to_string()),
                (wide != 3).then(|| format!("v{}", wide % 300)),
                Some(format!("a longer text {}", row % 7)),
            ]
        })
        .collect();
    let mut fixture = VerifierFixture::new(&["n", "v", "w"], rows);
    fixture.plain(&[0, 1, 2]);
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let report = fixture.verify_with(original, witness);
        assert_eq!(failed(&report), [], "{:?}", report.checks);
        assert_eq!(report.tables[0].rows, count as u64);
    }
    fixture.files.get_mut("t1.rows.csv").expect("a part").rows.swap(Control::STRIDE - 1, Control::STRIDE);
    assert_eq!(failed(&fixture.verify()), [CheckName::Order]);
    assert_eq!(detail(&fixture.verify(), CheckName::Order), "table t1, part rows: row 16385 is out of order");
    let control = Control::default();
    control.begin(crate::control::Phase::Verify, count as u64).expect("not cancelled");
    let parts = fixture.bytes();
    let input = VerifierInput { submitted: &[], ..fixture.input(&parts) };
    assert!(verify(&input, &control).is_ok());
    assert_eq!(control.progress().done, count as u64);
}

#[test]
fn content_tuple_of_many_attributes_compares_all_cells() {
    let names: Vec<String> = (0..20).map(|i| format!("a{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rows: Vec<Vec<_>> =
        (0..400_usize).map(|row| (0..20).map(|c| Some((row * (c + 3) % 331).to_string())).collect()).collect();
    let attrs: Vec<u8> = (0..20).collect();
    let mut fixture = VerifierFixture::new(&names, rows);
    fixture.plain(&attrs);
    assert_eq!(failed(&fixture.verify()), []);
    // the last cells of two rows swap places
    let rows = &mut fixture.files.get_mut("t1.rows.csv").expect("a part").rows;
    let (last, other) = (rows[0].1[19].clone(), rows[399].1[19].clone());
    assert_ne!(last, other);
    (rows[0].1[19], rows[399].1[19]) = (other, last);
    fixture.settle("t1.rows.csv", &attrs);
    assert_eq!(failed(&fixture.verify()), [CheckName::Content]);
}

/// Two buckets of three rows: an insider is left with two values, or with one.
#[test]
fn guarantee_excluded_values_strengthen_the_adversary() {
    let cell = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let fixture = |sensitive: [&str; 6], guarantee: Guarantee, values: &[Option<&str>]| {
        let rows =
            sensitive.iter().enumerate().map(|(row, value)| vec![Some(format!("p{row}")), cell(value)]).collect();
        let mut fixture = VerifierFixture::new(&["p", "s"], rows);
        fixture.guarding(&[0], 1, 2, vec![1, 1, 1, 2, 2, 2]);
        let TableProtection::Guarding(guards) = &mut fixture.publication.tables[0].protection else {
            panic!("no guard")
        };
        guards[0].guarantees = vec![guarantee];
        let asked = SubmittedRule { guarantee, ..rule(0, &[0], 1, 2) };
        fixture.hold(asked, guardian("t1", &[0]));
        let values = values.iter().map(|value| value.map(str::to_owned)).collect();
        fixture.excludable.push(ExcludedValues { attribute: Attr(1), values });
        fixture
    };
    let two = Ratio::new(2, 1).expect("a number");
    let (half, t) = (Ratio::new(1, 2).expect("a share"), Ratio::new(9, 10).expect("a distance"));
    for guarantee in [
        Guarantee::LDiversity { l: 2 },
        Guarantee::DistinctLDiversity { l: 2 },
        Guarantee::EntropyLDiversity { l: two },
        Guarantee::RecursiveLDiversity { c: two, l: 2 },
        Guarantee::AlphaK { alpha: half, k: 2 },
    ] {
        for original in [true, false] {
            let fails = |sensitive, values: &[Option<&str>]| {
                failed(&fixture(sensitive, guarantee, values).verify_with(original, original))
            };
            assert_eq!(fails(["none", "a", "b", "none", "a", "c"], &[Some("none")]), [], "{guarantee:?}");
            assert_eq!(fails(["", "a", "b", "", "a", "c"], &[None]), [], "{guarantee:?}");
            assert_eq!(fails(["none", "a", "b", "none", "a", "c"], &[]), [], "{guarantee:?}");
            // one row of the second bucket remains; two of three have excluded values
            let uneven = ["none", "a", "b", "none", "", "c"];
            assert_eq!(fails(uneven, &[Some("none"), None]), [CheckName::Guarantee], "{guarantee:?}");
            // one excluded value is too frequent
            let crowded = ["d", "a", "b", "none", "none", "c"];
            assert!(fails(crowded, &[Some("none")]).contains(&CheckName::Guarantee), "{guarantee:?}");
        }
    }
    let close = Guarantee::TCloseness { t, distance: ValueDistance::Equal, reference: Default::default() };
    assert_eq!(failed(&fixture(["none", "a", "b", "none", "a", "c"], close, &[]).verify()), []);
    let failed = failed(&fixture(["none", "a", "b", "none", "a", "c"], close, &[Some("none")]).verify());
    assert!(failed.contains(&CheckName::Guarantee) && failed.contains(&CheckName::Gnf), "{failed:?}");
}

/// Office workers and field workers, in buckets of two.
fn workers(labels: Vec<u32>, tree: Option<Taxonomy>) -> VerifierFixture {
    let jobs = ["banker", "clerk", "driver", "engineer"];
    let rows = (0..8).map(|row: usize| vec![Some(format!("p{row}")), Some(jobs[row % 4].to_owned())]).collect();
    let mut fixture = VerifierFixture::new(&["p", "s"], rows);
    fixture.guarding(&[0], 1, 2, labels);
    let guarantee = Guarantee::TCloseness {
        t: Ratio::new(1, 4).expect("a distance"),
        distance: ValueDistance::Hierarchical,
        reference: Default::default(),
    };
    guards(&mut fixture)[0].guarantees = vec![guarantee];
    fixture.hold(SubmittedRule { guarantee, ..rule(0, &[0], 1, 2) }, guardian("t1", &[0]));
    fixture.taxonomies.extend(tree.map(|tree| DeclaredTaxonomy { attribute: Attr(1), tree: Arc::new(tree) }));
    fixture
}

fn branches(of: [&[&str]; 2]) -> Taxonomy {
    let mut growing = TaxonomyBuilder::from_root("any");
    for (branch, leaves) in ["office", "field"].into_iter().zip(of) {
        let node = growing.add(0, Some(branch)).expect("a branch");
        for leaf in leaves {
            growing.add(node, Some(leaf)).expect("a leaf");
        }
    }
    growing.finish().expect("a tree")
}

#[test]
fn guarantee_hierarchical_distance_uses_declared_taxonomy() {
    let tree = || Some(branches([&["clerk", "banker", "baker"], &["driver", "engineer"]]));
    let across = || vec![1, 2, 1, 2, 3, 4, 3, 4];
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let fails = |labels, tree| failed(&workers(labels, tree).verify_with(original, witness));
        // one of each branch: a quarter moves one step in each, of two steps
        assert_eq!(fails(across(), tree()), []);
        let fixture = workers(across(), tree()).verify_with(original, witness);
        assert_eq!(fixture.tables[0].measures[&0], crate::verifier::definition::measure::BucketMeasure::Distance(0.25));
        // two of one branch: half moves through the root
        assert_eq!(fails(vec![1, 1, 2, 2, 3, 3, 4, 4], tree()), [CheckName::Guarantee]);
        // the same buckets under other taxonomies, or none
        let crossed = branches([&["banker", "driver"], &["clerk", "engineer"]]);
        assert_eq!(fails(across(), Some(crossed)), [CheckName::Guarantee]);
        let hole = branches([&["banker", "clerk"], &["driver"]]);
        for unfit in [Some(hole), None] {
            let failed = fails(across(), unfit);
            assert!(failed.contains(&CheckName::Guarantee) && failed.contains(&CheckName::Gnf), "{failed:?}");
        }
    }
    // a guard with another distance does not imply this one
    let mut fixture = workers(across(), tree());
    let t = Ratio::new(1, 4).expect("a distance");
    guards(&mut fixture)[0].guarantees =
        vec![Guarantee::TCloseness { t, distance: ValueDistance::Ordered, reference: Default::default() }];
    assert!(failed(&fixture.verify()).contains(&CheckName::Guards));
}

proptest::proptest! {
    /// The mass over each edge of the tree equals the transport cost: `privacy` computes the same bound by a faster
    /// formula, which its tests compare with minimal costs.
    #[test]
    fn both_forms_of_the_distance_are_one(
        parents in proptest::collection::vec(proptest::prelude::any::<proptest::sample::Index>(), 2..12),
        counts in proptest::collection::vec((0u64..4, 0u64..4), 12),
    ) {
        let mut growing = TaxonomyBuilder::from_root("0");
        for (node, parent) in (1usize..).zip(&parents) {
            growing.add(parent.index(node), Some(&format!("n{node:02}"))).expect("a node");
        }
        let tree = Arc::new(growing.finish().expect("a tree"));
        let mut values = Arena::default();
        let mut leaves: Vec<&str> = tree.leaves().iter().filter_map(|leaf| tree.label(*leaf)).collect();
        leaves.sort_unstable();
        leaves.iter().for_each(|leaf| values.push(leaf.as_bytes()));
        let domain = Domain::from_sorted(AttributeType::Text, false, values);
        let overall: Vec<u64> = counts[..leaves.len()].iter().map(|(count, more)| count + more).collect();
        let bucket = (0..).zip(&counts[..leaves.len()]).map(|(code, (count, _))| (code, *count));
        let bucket: Vec<(u32, u64)> = bucket.filter(|(_, count)| *count > 0).collect();
        proptest::prop_assume!(!bucket.is_empty());
        let paths = TaxonomyPaths::new(&tree, None, domain.iter()).map(Arc::new);
        let shares = BucketShares::new(&bucket, &overall, &DeclaredValues { paths, ..DeclaredValues::default() });
        let Distance { work, unit } = shares.distance(ValueDistance::Hierarchical).expect("a distance");
        let annotations = ColumnAnnotations::default().along(tree.bind(&domain).expect("leaves"));
        let population = OverallCounts::new(overall).on(annotations);
        let close = |work: u128| {
            let t = Ratio::new(work as u64, unit as u64).expect("a distance");
            holds(Guarantee::TCloseness { t, distance: ValueDistance::Hierarchical, reference: Default::default() }, &bucket, &population)
        };
        proptest::prop_assert!(close(work));
        proptest::prop_assert!(work == 0 || !close(work - 1));
    }
}
