//! External tables whose parts share attributes, compared with all possible worlds and all combinations of their
//! rows.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fixture::{Cell as Text, column};
use super::overlapping::seen;
use crate::control::Control;
use crate::microdata::{Attr, AttrSet, CellShape};
use crate::publication::{Guarantee, NoticeKind, Protected, Ratio, RowMeaning, SubmittedRule};
use crate::verifier::contract::checks::{Check, CheckName};
use crate::verifier::external::evaluate::evaluate;
use crate::verifier::external::submission::{EvaluationReport, ExternalEnforcement, Submission, ViolatingClass};
use crate::verifier::external::table::{ExternalPart, ExternalTable};

/// Columns of attributes a, b, c and the sensitive s that form a join tree.
pub(in crate::verifier) const COVERS: [&[&[u8]]; 8] = [
    &[&[0, 1], &[1, 3]],
    &[&[0, 3], &[1, 3]],
    &[&[0, 1], &[1, 3], &[2, 3]],
    &[&[0, 1], &[1, 2], &[2, 3]],
    &[&[0, 1, 3], &[1, 2, 3]],
    &[&[0, 1], &[1, 2, 3]],
    &[&[0, 1, 2], &[2, 3], &[1]],
    &[&[0, 1], &[2, 3]],
];

/// The values of a row, and whether it is in the first bucket.
type Row = (u32, u32, u32, u32, usize);

/// The values of rows, and the rows of each bucket.
pub(in crate::verifier) fn buckets(rows: &[Row]) -> (Vec<[u32; 4]>, Vec<Vec<usize>>) {
    let codes = rows.iter().map(|&(a, b, c, s, _)| [a, b, c, s]).collect();
    let bucket = |label| (0..rows.len()).filter(|&row| rows[row].4 == label).collect::<Vec<usize>>();
    (codes, (0..2).map(bucket).filter(|bucket| !bucket.is_empty()).collect())
}

/// The expected number of rows of a bucket with each combination of values, over all possible worlds.
pub(in crate::verifier) fn seen_of(
    rows: &[[u32; 4]],
    bucket: &[usize],
    columns: &[&[u8]],
) -> Vec<(BTreeMap<u8, u32>, f64)> {
    let mut present: Vec<u8> = columns.concat();
    present.sort_unstable();
    present.dedup();
    let (seen, all) = seen(rows, bucket, columns, true);
    let known: Vec<u8> = present.into_iter().filter(|attr| *attr != 3).collect();
    let person = |values: &[u32], s: u32| -> BTreeMap<u8, u32> {
        known.iter().copied().zip(values.iter().copied()).chain([(3, s)]).collect()
    };
    seen.iter()
        .flat_map(|(values, of)| {
            of.iter().map(|(s, multiplicity)| (person(values, *s), *multiplicity as f64 / all as f64))
        })
        .collect()
}

fn cells(codes: &[[u32; 4]], attr: u8) -> Vec<Text> {
    codes.iter().map(|row| Some(row[usize::from(attr)].to_string())).collect()
}

/// The table in columns, with its rows in the given order.
pub(in crate::verifier) fn given(codes: &[[u32; 4]], columns: &[&[u8]], rows: &[Row]) -> ExternalTable {
    let labels: Vec<Text> = rows.iter().map(|row| Some((row.4 + 1).to_string())).collect();
    let part = |attrs: &&[u8]| ExternalPart {
        name: format!("p{attrs:?}"),
        meaning: RowMeaning::Tuples,
        rows: codes.len(),
        bucket: Some(column(&labels)),
        columns: attrs.iter().map(|&attr| (Attr(attr), column(&cells(codes, attr)))).collect(),
        cells: BTreeMap::new(),
    };
    ExternalTable { name: "t".to_owned(), parts: columns.iter().map(part).collect() }
}

pub(in crate::verifier) fn original(codes: &[[u32; 4]]) -> ExternalPart {
    let columns = (0..4).map(|attr| (Attr(attr), column(&cells(codes, attr)))).collect();
    ExternalPart {
        name: "original".to_owned(),
        meaning: RowMeaning::Tuples,
        rows: codes.len(),
        bucket: None,
        columns,
        cells: BTreeMap::new(),
    }
}

fn judged(
    tables: &[ExternalTable],
    known: &[u8],
    guarantee: Guarantee,
    dependencies: &[(AttrSet, AttrSet)],
) -> EvaluationReport {
    let names: Vec<String> = ["a", "b", "c", "s"].map(str::to_owned).to_vec();
    let rule = SubmittedRule {
        pointer: "/rules/0".to_owned(),
        known: known.iter().map(|&attr| Attr(attr)).collect(),
        protects: Protected::Attribute(Attr(3)),
        guarantee,
    };
    let submission = Submission {
        tables,
        names: &names,
        rules: std::slice::from_ref(&rule),
        dependencies,
        original: None,
        taxonomies: &[],
        thresholds: &[],
        exact: AttrSet::EMPTY,
    };
    evaluate(&submission, &Control::default()).unwrap()
}

/// Whether the guarantee holds for each combination of known values, given the weights of rows.
fn kept(weights: &BTreeMap<Vec<u32>, BTreeMap<u32, f64>>, guarantee: Guarantee) -> bool {
    weights.values().all(|of| {
        let all: f64 = of.values().sum();
        match guarantee {
            Guarantee::AlphaK { alpha, .. } => of.values().all(|share| share / all <= alpha.to_f64() + 1e-9),
            Guarantee::DistinctLDiversity { l } => of.len() as u64 >= l,
            _ => false,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Compares the outcome of a rule with all possible worlds and all combinations, for each choice of the columns
    /// with s.
    #[test]
    fn parts_that_share_attributes_are_judged_by_their_worlds(
        rows in prop::collection::vec((0u32..2, 0u32..2, 0u32..2, 0u32..3, 0usize..2), 1..6),
        cover in 0..COVERS.len(), known in 1u8..8, l in (2u64..7, 2u64..5), distinct: bool,
    ) {
        let columns = COVERS[cover];
        let (codes, buckets) = buckets(&rows);
        let present = |attr: &u8| columns.iter().any(|column| column.contains(attr));
        let known: Vec<u8> = (0..3).filter(|attr| known >> attr & 1 == 1).filter(present).collect();
        prop_assume!(!known.is_empty());
        let l = (l.0.max(l.1 + 1), l.1);
        let guarantee = match distinct {
            true => Guarantee::DistinctLDiversity { l: 2 },
            false => Guarantee::AlphaK { alpha: Ratio::new(l.1, l.0).unwrap(), k: 1 },
        };
        let verdict = judged(&[given(&codes, columns, &rows)], &known, guarantee, &[]);
        let found = verdict.rules[0].held;

        let (with, without): (Vec<&[u8]>, Vec<&[u8]>) = columns.iter().copied().partition(|column| column.contains(&3));
        let mut worst = 0.0_f64;
        let mut holds = true;
        for mask in 1_u32..1 << with.len() {
            let chosen = with.iter().enumerate().filter(|(at, _)| mask >> at & 1 == 1).map(|(_, column)| *column);
            let chosen: Vec<&[u8]> = chosen.collect();
            let all = [&without[..], &chosen[..]].concat();
            for bucket in &buckets {
                let mut weights: BTreeMap<Vec<u32>, BTreeMap<u32, f64>> = BTreeMap::new();
                for (person, share) in seen_of(&codes, bucket, &all) {
                    let class: Vec<u32> = known.iter().filter_map(|attr| person.get(attr).copied()).collect();
                    *weights.entry(class).or_default().entry(person[&3]).or_default() += share;
                }
                holds &= kept(&weights, guarantee);
                let mut seen_here = weights;
                if chosen.concat().iter().all(|attr| *attr == 3 || known.contains(attr)) {
                    let (combined, _) = seen(&codes, bucket, &chosen, false);
                    let combined = combined.into_iter().map(|(class, of)| {
                        (class, of.into_iter().map(|(value, multiplicity)| (value, multiplicity as f64)).collect::<BTreeMap<_, _>>())
                    });
                    let combined: BTreeMap<Vec<u32>, BTreeMap<u32, f64>> = combined.collect();
                    holds &= kept(&combined, guarantee);
                    seen_here.extend(combined.into_iter().map(|(mut class, of)| {
                        class.push(u32::MAX);
                        (class, of)
                    }));
                }
                for of in seen_here.values() {
                    let all: f64 = of.values().sum();
                    worst = of.values().fold(worst, |worst, share| worst.max(share / all));
                }
            }
        }
        prop_assert_eq!(found.is_some(), holds, "{:?}", verdict);
        prop_assert_eq!(found.is_some(), verdict.verified());
        if let (Some(achieved), Some(ExternalEnforcement::Guardian(..))) = (&verdict.rules[0].achieved, found) {
            let found = achieved.worst.unwrap();
            prop_assert!((found.to_f64() - worst).abs() < 1e-9, "{found:?}, {worst}");
        }
        prop_assert_eq!(verdict.rules[0].breaks.total > 0, !holds);
    }
}

/// Twice all combinations of b, c and s, in two buckets.
fn even() -> Vec<Row> {
    (0..16).map(|row| (row % 3, row % 2, row / 2 % 2, row / 4 % 2, row as usize / 8)).collect()
}

const TREE: [&[u8]; 3] = [&[0, 1], &[1, 3], &[2, 3]];

const TWO: Guarantee = Guarantee::LDiversity { l: 2 };

fn table(rows: &[Row], columns: &[&[u8]]) -> ExternalTable {
    given(&buckets(rows).0, columns, rows)
}

fn check(verdict: &EvaluationReport, name: CheckName) -> &Check {
    verdict.checks.iter().find(|check| check.check == name).unwrap()
}

#[test]
fn violating_classes_are_reported_with_their_values() {
    let mut rows = even();
    assert!(judged(&[table(&rows, &TREE)], &[0, 1, 2], TWO, &[]).verified());
    // then s = 1 is the only value for b = 0, c = 0 in the second bucket
    rows[8].3 = 1;
    rows[9].3 = 1;
    let verdict = judged(&[table(&rows, &TREE)], &[1, 2], TWO, &[]);
    let judged = &verdict.rules[0];
    assert_eq!((judged.held, verdict.verified()), (None, false));
    let first = &judged.breaks.first[0];
    assert_eq!(first.bucket.as_ref().unwrap().value.as_deref(), Some(&b"2"[..]));
    let class = |found: &ViolatingClass| -> Vec<(Attr, Vec<u8>)> {
        found.class.iter().map(|(attr, cell)| (*attr, cell.value.clone().unwrap())).collect()
    };
    let classes: Vec<Vec<(Attr, Vec<u8>)>> = judged.breaks.first.iter().map(class).collect();
    // an adversary who knows c alone, and one who knows b and c
    assert_eq!(classes[0], [(Attr(2), b"0".to_vec())]);
    assert!(classes.contains(&vec![(Attr(1), b"0".to_vec()), (Attr(2), b"0".to_vec())]), "{classes:?}");
    assert!(judged.detail.as_ref().unwrap().contains("not keep l_diversity"), "{judged:?}");
    assert!(verdict.remarks.iter().any(|(name, _)| *name == NoticeKind::ColumnsShareAttributes));
}

/// Rules that the verifier cannot decide do not hold, with a reason.
#[test]
fn rule_undecided_for_overlapping_parts_does_not_hold() {
    let rows = even();
    let set = |attrs: &[u8]| attrs.iter().map(|&attr| Attr(attr)).collect::<AttrSet>();
    let detail = |tables: &[ExternalTable], known: &[u8], guarantee, dependencies: &[(AttrSet, AttrSet)]| {
        let verdict = judged(tables, known, guarantee, dependencies);
        assert!(!verdict.verified() && verdict.rules[0].held.is_none(), "{verdict:?}");
        (verdict.rules[0].detail.clone().unwrap(), check(&verdict, CheckName::Buckets).passed)
    };
    let tree = || table(&rows, &TREE);
    // the rows of one bucket no longer agree
    let mut unlike = rows.clone();
    unlike[0].1 = 1;
    let mut parts = tree();
    parts.parts[0] = table(&unlike, &TREE).parts.swap_remove(0);
    let (why, agree) = detail(&[parts], &[0, 1, 2], TWO, &[]);
    assert!(why.contains("do not agree") && !agree, "{why}");
    // cells of several values, or lists of values
    let mut parts = tree();
    parts.parts[1].cells.insert(Attr(1), CellShape::Interval);
    assert!(detail(&[parts], &[0, 1, 2], TWO, &[]).0.contains("cannot be compared"));
    let mut parts = tree();
    parts.parts[2].meaning = RowMeaning::Values;
    assert!(detail(&[parts], &[0, 1, 2], TWO, &[]).0.contains("cannot be compared"));
    // parts without a common bucket
    let mut parts = tree();
    parts.parts[2].bucket = None;
    assert!(detail(&[parts], &[0, 1, 2], TWO, &[]).0.contains("not tied by bucket"));
    // a cycle, another table, a dependency
    let circle: [&[u8]; 3] = [&[0, 1, 2], &[0, 3], &[1, 3]];
    assert!(detail(&[table(&rows, &circle)], &[0, 1, 2], TWO, &[]).0.contains("in a circle"));
    let another = || ExternalTable {
        name: "u".to_owned(),
        parts: vec![ExternalPart { bucket: None, ..table(&rows, &[&[0, 2]]).parts.remove(0) }],
    };
    assert!(detail(&[tree(), another()], &[0, 1, 2], TWO, &[]).0.contains("ties their rows"));
    assert!(detail(&[tree()], &[0, 1, 2], TWO, &[(set(&[1]), set(&[2]))]).0.contains("ties their rows"));
    // a guarantee that shares do not decide
    let anonymous = Guarantee::AlphaK { alpha: Ratio::ONE, k: 2 };
    assert!(detail(&[tree()], &[0, 1, 2], anonymous, &[]).0.contains("cannot be read"));
    assert!(
        detail(&[tree()], &[0, 1, 2], Guarantee::EntropyLDiversity { l: Ratio::new(2, 1).unwrap() }, &[])
            .0
            .contains("cannot be read")
    );
    // the rows of a single column with s are exchangeable, even if another table links other rows
    let one: [&[u8]; 2] = [&[0, 1], &[1, 2, 3]];
    assert!(judged(&[table(&rows, &one), another()], &[0, 1, 2], TWO, &[]).verified());
    assert!(judged(&[table(&rows, &one)], &[0], TWO, &[(set(&[0]), set(&[2]))]).verified());
    let entropy = Guarantee::EntropyLDiversity { l: Ratio::new(3, 2).unwrap() };
    assert!(judged(&[table(&rows, &one)], &[1, 2], entropy, &[]).verified());
}
