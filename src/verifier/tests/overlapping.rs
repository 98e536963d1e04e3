//! Tables in columns that share attributes: planted faults, and the check against all combinations and all possible
//! worlds.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::fixture::{Cell, VerifierFixture, failed, guard, rule};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    EnforcedBy, ExcludedValues, Guarantee, MethodDetails, Protected, Ratio, SlicedDiversity, SubmittedRule, TableName,
    TableProtection,
};
use crate::verifier::contract::checks::CheckName;
use crate::verifier::contract::checks::CheckName::{Buckets, Columns, Content, Gnf, Guarantee as Kept, Guards};
use crate::verifier::definition::share::ShareOfRows;

/// A table of attributes a, b, c and the sensitive s, in the given columns.
fn covered(
    rows: &[[u32; 4]],
    columns: &[&[u8]],
    labels: &[u32],
    l: &str,
    diversity: SlicedDiversity,
) -> VerifierFixture {
    let cells = |row: &[u32; 4]| row.iter().map(|cell| Some(cell.to_string())).collect::<Vec<Cell>>();
    let mut fixture = VerifierFixture::new(&["a", "b", "c", "s"], rows.iter().map(cells).collect());
    let names = ["c2", "c3", "c4", "c5"];
    let others: Vec<(&str, &[u8])> = names.into_iter().zip(columns[1..].iter().copied()).collect();
    fixture.bucketized(columns[0], &others, Vec::new(), labels.to_vec());
    fixture.publication.tables[0].protection = TableProtection::Exclusive;
    fixture.publication.method_details = method_details(columns, diversity);
    let l: Ratio = l.parse().expect("a number");
    let guarantee = match l.denominator() {
        1 => Guarantee::LDiversity { l: l.numerator() },
        _ => Guarantee::AlphaK { alpha: Ratio::new(l.denominator(), l.numerator()).expect("a share"), k: 1 },
    };
    let asked = SubmittedRule { pointer: "/method".to_owned(), guarantee, ..rule(0, &[0, 1, 2], 3, 2) };
    fixture.hold(asked, EnforcedBy::Table(TableName::at(0)));
    fixture
}

fn method_details(columns: &[&[u8]], diversity: SlicedDiversity) -> MethodDetails {
    let set = |column: &&[u8]| column.iter().map(|&attr| Attr(attr)).collect::<AttrSet>();
    MethodDetails::Slicing { columns: columns.iter().map(set).collect(), diversity, column_k: None }
}

const TREE: [&[u8]; 3] = [&[0, 1], &[1, 3], &[2, 3]];

/// Twice all combinations of b, c and s, in two buckets.
fn even(diversity: SlicedDiversity) -> VerifierFixture {
    let rows: Vec<[u32; 4]> = (0..16).map(|row| [row % 3, row % 2, row / 2 % 2, row / 4 % 2]).collect();
    let labels: Vec<u32> = (0..16).map(|row| 2 - row / 8).collect();
    covered(&rows, &TREE, &labels, "2", diversity)
}

fn sound() -> VerifierFixture {
    even(SlicedDiversity::Bucket)
}

fn cell(fixture: &mut VerifierFixture, file: &str, attrs: &[u8], (row, at): (usize, usize), text: &str) {
    fixture.files.get_mut(file).expect("a part").rows[row].1[at] = Some(text.to_owned());
    fixture.settle(file, attrs);
}

type Fault = (&'static str, fn(&mut VerifierFixture), &'static [CheckName]);

const FAULTS: &[Fault] = &[
    (
        "a row of a column in another bucket",
        |w| {
            "2".clone_into(&mut w.files.get_mut("t1.c3.csv").expect("a part").rows[0].0);
            w.settle("t1.c3.csv", &[2, 3]);
        },
        &[Content, Buckets],
    ),
    (
        "values of a column put together otherwise",
        |w| {
            // then three of four rows with b = 0 have s = 1
            cell(w, "t1.c2.csv", &[1, 3], (0, 1), "1");
            cell(w, "t1.c2.csv", &[1, 3], (7, 1), "0");
        },
        &[Content, Kept],
    ),
    (
        "another sensitive value in one of two columns",
        |w| cell(w, "t1.c3.csv", &[2, 3], (0, 1), "1"),
        &[Content, Buckets],
    ),
    ("another value of what columns share", |w| cell(w, "t1.qi.csv", &[0, 1], (0, 1), "1"), &[Content, Buckets]),
    (
        "a guard",
        |w| {
            w.publication.tables[0].protection =
                TableProtection::Guarding(vec![guard(&[0, 1, 2], Protected::Attribute(Attr(3)), 2)])
        },
        &[Columns, Guards],
    ),
    (
        "other columns than the parts",
        |w| w.publication.method_details = method_details(&[&[0, 1], &[2, 3], &[1, 3]], SlicedDiversity::Bucket),
        &[Columns],
    ),
    (
        "boxes that are none",
        |w| match &mut w.publication.method_details {
            MethodDetails::Slicing { column_k, .. } => *column_k = Some(2),
            _ => panic!("sliced"),
        },
        &[Columns],
    ),
    ("nothing said of columns", |w| w.publication.method_details = MethodDetails::None, &[Columns, Guards]),
    ("another table", |w| w.plain(&[0]), &[Columns, Guards]),
    (
        "more than it holds",
        |w| {
            w.submitted[0].guarantee = Guarantee::LDiversity { l: 3 };
            w.publication.rules[0].guarantee = Guarantee::LDiversity { l: 3 };
        },
        &[Kept, Gnf],
    ),
    ("more than it claims", |w| w.submitted[0].guarantee = Guarantee::LDiversity { l: 3 }, &[Gnf]),
    (
        "a value that can be ruled out",
        |w| w.excludable.push(ExcludedValues { attribute: Attr(3), values: vec![Some("0".to_owned())] }),
        &[Kept],
    ),
    (
        "a column twice in a part",
        |w| {
            let column = w.published(1);
            w.publication.tables[0].parts[1].columns.push(column);
        },
        &[Columns],
    ),
];

#[test]
fn verify_faults_in_overlapping_columns_fails() {
    for diversity in SlicedDiversity::ALL {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let report = even(diversity).verify_with(original, witness);
            assert!(report.verified(), "{diversity:?} {original} {witness}: {:?}", report.checks);
            let checked = report.checks.iter().any(|check| check.check == Kept);
            assert_eq!(checked, original || diversity == SlicedDiversity::Bucket, "what speaks of rows needs them");
            let posteriors = report.tables[0].posteriors[&Attr(3)];
            assert_eq!((posteriors.worst, posteriors.smallest_bucket), (ShareOfRows::new(1, 2), 8));
        }
    }
    for (name, plant, checks) in FAULTS {
        let mut fixture = sound();
        plant(&mut fixture);
        let failed = failed(&fixture.verify());
        for check in *checks {
            assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
        }
    }
    // from the parts alone: columns that do not agree
    for (fault, check) in [(1, Kept), (2, Buckets), (3, Buckets)] {
        let mut fixture = sound();
        FAULTS[fault].1(&mut fixture);
        assert!(failed(&fixture.verify_with(false, false)).contains(&check), "{}", FAULTS[fault].0);
    }
}

/// Combinations of columns a, s and b, s are equally likely, but most rows with both known values have the rare one.
#[test]
fn mixture_combinations_hide_a_frequent_value_of_rows() {
    let mut rows = vec![[0, 0, 0, 0]; 5];
    rows.push([1, 1, 0, 0]);
    for value in [1, 2] {
        rows.extend([[0, 1, 0, value]; 5]);
        rows.extend([[1, 0, 0, value]; 5]);
        rows.extend([[1, 1, 0, value]; 30]);
    }
    let labels = vec![1; rows.len()];
    for (diversity, kept) in
        [(SlicedDiversity::Bucket, false), (SlicedDiversity::MixtureWeighted, false), (SlicedDiversity::Mixture, true)]
    {
        let report = covered(&rows, &[&[2], &[0, 3], &[1, 3]], &labels, "2", diversity).verify();
        assert_eq!(failed(&report).contains(&Kept), !kept, "{diversity:?}");
        assert_eq!(report.tables[0].posteriors[&Attr(3)].worst, ShareOfRows::new(10, 13));
    }
}

#[test]
fn verify_columns_without_join_tree_fails() {
    let rows: Vec<[u32; 4]> = (0..16).map(|row| [row % 2, row / 2 % 2, row / 4 % 2, row / 8 % 2]).collect();
    let labels = vec![1; 16];
    let failed = |columns: &[&[u8]], diversity| failed(&covered(&rows, columns, &labels, "2", diversity).verify());
    let circle: [&[u8]; 3] = [&[0, 1, 2], &[0, 3], &[1, 3]];
    assert_eq!(failed(&circle, SlicedDiversity::Bucket), [Kept]);
    assert_eq!(failed(&circle, SlicedDiversity::MixtureWeighted), [Kept]);
    assert_eq!(failed(&circle, SlicedDiversity::Mixture), []);
    assert!(failed(&[&[0, 1, 2], &[0, 3], &[3]], SlicedDiversity::Bucket).contains(&Columns));
}

/// The values of a row.
type Person = BTreeMap<u8, u32>;

/// Known values, with the weight of each sensitive value.
pub(in crate::verifier) type Seen = BTreeMap<Vec<u32>, BTreeMap<u32, u128>>;

/// The combinations of agreeing rows of all columns.
fn agreed(rows: &[[u32; 4]], picked: &[usize], columns: &[&[u8]]) -> Option<BTreeMap<u8, u32>> {
    let mut known = BTreeMap::new();
    for (&row, column) in picked.iter().zip(columns) {
        for &attr in *column {
            let value = rows[row][usize::from(attr)];
            if *known.entry(attr).or_insert(value) != value {
                return None;
            }
        }
    }
    Some(known)
}

/// Assigns one row of each column to a row, in every way; with `each`, to all rows.
fn give(
    rows: &[[u32; 4]],
    columns: &[&[u8]],
    left: &mut Vec<Vec<usize>>,
    (picked, people): (&mut Vec<usize>, &mut Vec<Person>),
    each: bool,
    visit: &mut dyn FnMut(&[Person]),
) {
    let at = picked.len();
    if at == 0 && (left[0].is_empty() || !each && !people.is_empty()) {
        return visit(people);
    }
    if at == columns.len() {
        people.extend(agreed(rows, picked, columns));
        give(rows, columns, left, (&mut Vec::new(), &mut *people), each, visit);
        people.pop();
        return;
    }
    for place in 0..left[at].len() {
        let row = left[at].remove(place);
        picked.push(row);
        if agreed(rows, picked, columns).is_some() {
            give(rows, columns, left, (&mut *picked, &mut *people), each, visit);
        }
        picked.pop();
        left[at].insert(place, row);
        if at == 0 && each {
            break;
        }
    }
}

/// All combinations, or all possible worlds, of a bucket, with their number.
pub(in crate::verifier) fn seen(rows: &[[u32; 4]], bucket: &[usize], columns: &[&[u8]], each: bool) -> (Seen, u128) {
    let (mut seen, mut all) = (Seen::new(), 0);
    let mut left = vec![bucket.to_vec(); columns.len()];
    give(rows, columns, &mut left, (&mut Vec::new(), &mut Vec::new()), each, &mut |people| {
        all += 1;
        for person in people {
            let mut known = person.clone();
            let value = known.remove(&3).expect("a sensitive value");
            *seen.entry(known.into_values().collect()).or_default().entry(value).or_default() += 1;
        }
    });
    (seen, all)
}

fn bounded(weights: &BTreeMap<u32, u128>, l: (u128, u128)) -> bool {
    let all: u128 = weights.values().sum();
    all > 0 && weights.values().all(|weight| weight * l.0 <= all * l.1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn verifier_agrees_with_the_definition(
        rows in prop::collection::vec((0u32..2, 0u32..2, 0u32..1, 0u32..3, 0usize..2), 1..7),
        cover in 0usize..5, l in (2u64..7, 2u64..5), form in 0usize..3,
    ) {
        let covers: [&[&[u8]]; 5] = [
            &[&[0, 1, 2], &[1, 3]],
            &[&[2], &[0, 3], &[1, 3]],
            &[&[0, 1, 3], &[1, 2, 3]],
            &[&[0, 3], &[1, 3], &[2, 3]],
            &[&[0, 1], &[1, 2, 3]],
        ];
        let columns = covers[cover];
        let codes: Vec<[u32; 4]> = rows.iter().map(|&(a, b, c, s, _)| [a, b, c, s]).collect();
 // labels from 1 without gaps
        let first = rows[0].4;
        let labels: Vec<u32> = rows.iter().map(|row| if row.4 == first { 1 } else { 2 }).collect();
        let buckets: Vec<Vec<usize>> =
            (1..=2).map(|label| (0..rows.len()).filter(|&row| labels[row] == label).collect()).collect();
        let buckets: Vec<Vec<usize>> = buckets.into_iter().filter(|bucket: &Vec<usize>| !bucket.is_empty()).collect();
        let (l, diversity) = ((l.0.max(l.1 + 1), l.1), SlicedDiversity::ALL[form]);
        let report = covered(&codes, columns, &labels, &format!("{}/{}", l.0, l.1), diversity).verify();
        let found = !failed(&report).contains(&Kept);

        let (with, without): (Vec<&[u8]>, Vec<&[u8]>) = columns.iter().copied().partition(|column| column.contains(&3));
        let l = (u128::from(l.0), u128::from(l.1));
        let holds = (1_u32..1 << with.len()).all(|chosen| {
            let chosen: Vec<&[u8]> = with.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, c)| *c).collect();
            if diversity == SlicedDiversity::Bucket {
                return buckets.iter().all(|bucket| {
                    [false, true].iter().all(|&each| {
                        seen(&codes, bucket, &chosen, each).0.values().all(|weights| bounded(weights, l))
                    })
                });
            }
            let all = [&without[..], &chosen[..]].concat();
            let kinds = if diversity == SlicedDiversity::MixtureWeighted { &[false, true][..] } else { &[false] };
            kinds.iter().all(|&each| {
                let seen: Vec<(Seen, u128)> = buckets.iter().map(|bucket| seen(&codes, bucket, &all, each)).collect();
                let common: u128 = seen.iter().map(|(_, all)| all).product();
                let mut attrs: Vec<u8> = all.concat();
                attrs.sort_unstable();
                attrs.dedup();
                codes.iter().all(|row| {
                    let known: Vec<u32> = attrs.iter().filter(|attr| **attr != 3).map(|&attr| row[usize::from(attr)]).collect();
                    let mut weights = BTreeMap::new();
                    for (seen, all) in &seen {
                        for (value, multiplicity) in seen.get(&known).into_iter().flatten() {
                            *weights.entry(*value).or_default() += multiplicity * (common / all);
                        }
                    }
                    bounded(&weights, l)
                })
            })
        });
        prop_assert_eq!(found, holds, "{:?}", report.checks);
    }
}
