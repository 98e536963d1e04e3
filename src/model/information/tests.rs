//! The vectors, definitions followed literally, and what no figure may depend on.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::super::groups::tests::table;
use super::super::{JoinTree, TableView};
use super::*;
use crate::microdata::{Attr, AttrSet, Table};

/// The estimate of a table of rows `(x, bucket, s)` by its definition.
fn estimate(rows: &[(u32, u32, u32)]) -> BTreeMap<(u32, u32), f64> {
    let mut estimate: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for &(x, bucket, _) in rows {
        let inside: Vec<u32> = rows.iter().filter(|row| row.1 == bucket).map(|row| row.2).collect();
        for s in &inside {
            *estimate.entry((x, *s)).or_default() += 1.0 / (rows.len() * inside.len()) as f64;
        }
    }
    estimate
}

fn prepared(rows: &[(u32, u32, u32)], values: u32) -> (Table, RowGroups, BucketedColumn) {
    let cells: Vec<Vec<u32>> = rows.iter().map(|&(x, _, s)| vec![x, s]).collect();
    let table = table(&[50, values], &cells);
    let control = Control::default();
    let groups = RowGroups::new(&table, AttrSet::one(Attr(0)), &control).unwrap();
    let bucket_of = rows.iter().map(|row| row.1).collect();
    let buckets = BucketedColumn::new(table.column(Attr(1)), bucket_of, 9, &control).unwrap();
    (table, groups, buckets)
}

proptest! {
    #[test]
    fn figures_are_those_of_the_definitions(
        rows in prop::collection::vec((0u32..12, 0u32..9, 0u32..7), 1..60), distinct in any::<bool>(), at in any::<prop::sample::Index>(),
    ) {
        let mut rows = rows;
        if distinct {
            (0..).zip(&mut rows).for_each(|(x, row)| row.0 = x % 45);
        }
        let (table, groups, buckets) = prepared(&rows, 7);
        let control = Control::default();
        let estimate = estimate(&rows);
        let expected: f64 = estimate.values().map(|p| -p * p.ln()).sum();
        let found = buckets.estimate_entropy(&groups, &control).unwrap();
        prop_assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        let expected = rows.iter().map(|&(x, _, s)| -estimate[&(x, s)].ln()).sum::<f64>() / rows.len() as f64;
        let found = buckets.cross_entropy(&groups, &table.column(Attr(1)).codes, &control).unwrap();
        prop_assert!((found - expected).abs() < 1e-9, "{found} {expected}");

        // which row of a bucket has which sensitive value changes no bit
        let mut permuted = rows.clone();
        let bucket = rows[at.index(rows.len())].1;
        let inside: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].1 == bucket).collect();
        inside.iter().enumerate().for_each(|(i, &row)| permuted[row].2 = rows[inside[(i + 1) % inside.len()]].2);
        let (_, groups, other) = prepared(&permuted, 7);
        let bits = |buckets: &BucketedColumn| buckets.estimate_entropy(&groups, &control).unwrap().to_bits();
        prop_assert_eq!(bits(&other), bits(&buckets));
    }

    #[test]
    fn the_entropy_is_that_of_the_definition(sizes in prop::collection::vec(1u32..50, 1..40)) {
        let rows: u32 = sizes.iter().sum();
        let expected: f64 = sizes.iter().map(|&size| f64::from(size) / f64::from(rows)).map(|p| -p * p.ln()).sum();
        prop_assert!((entropy(&sizes) - expected).abs() < 1e-9);
    }
}

#[test]
fn nothing_reveals_nothing() {
    assert_eq!(entropy(&[]).to_bits(), 0f64.to_bits());
    let (_, groups, buckets) = prepared(&[], 1);
    assert!(buckets.is_empty());
    assert_eq!(buckets.estimate_entropy(&groups, &Control::default()).unwrap().to_bits(), 0f64.to_bits());
}

/// A row of the vectors' tables: one letter an attribute, values such as `b2`.
fn code(value: &Value) -> u32 {
    value.as_str().unwrap()[1..].parse().unwrap()
}

fn attrs(names: &Value) -> Vec<Attr> {
    names.as_array().unwrap().iter().map(|name| Attr(name.as_str().unwrap().as_bytes()[0] - b'A')).collect()
}

/// A bucket of `published` for each row, so that every bucket holds the known values and the sensitive ones of its rows. There
/// are several choices, and the estimate is the same in all.
fn placed(
    rows: &[(Vec<u32>, u32)],
    known: &mut [Option<(Vec<u32>, usize)>],
    sensitive: &mut BTreeMap<usize, Vec<u32>>,
) -> Option<Vec<usize>> {
    let Some(((x, s), rest)) = rows.split_first() else { return Some(Vec::new()) };
    for at in 0..known.len() {
        let Some((_, bucket)) = known[at].clone().filter(|(other, _)| other == x) else { continue };
        let Some(place) = sensitive[&bucket].iter().position(|other| other == s) else { continue };
        known[at] = None;
        sensitive.get_mut(&bucket).unwrap().remove(place);
        if let Some(mut others) = placed(rest, known, sensitive) {
            others.insert(0, bucket);
            return Some(others);
        }
        known[at] = Some((x.clone(), bucket));
        sensitive.get_mut(&bucket).unwrap().insert(place, *s);
    }
    None
}

/// `kl` vectors: the cross entropies of the tables, less the entropies of what neighbours share and of the original.
#[test]
fn the_divergence_is_that_of_the_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/gnf.json")).unwrap();
    let vectors = vectors["kl"].as_array().unwrap();
    assert_eq!(vectors.len(), 25);
    let control = Control::default();
    let mut guarding = 0;
    for (at, vector) in vectors.iter().enumerate() {
        let cells: Vec<Vec<u32>> = vector["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| ["A", "B", "C", "D"].map(|a| code(&row[a])).into())
            .collect();
        let original = table(&[3; 4], &cells);
        let entropy_of = |set: AttrSet| entropy(RowGroups::new(&original, set, &control).unwrap().sizes());
        let (mut views, mut figures) = (Vec::new(), Vec::new());
        for published in vector["tables"].as_array().unwrap() {
            let known: Vec<Attr> = attrs(&published["x"]);
            let set: AttrSet = known.iter().copied().collect();
            let Some(&sensitive) = attrs(&published["y"]).first() else {
                views.push(TableView::plain(set));
                figures.push(entropy_of(set));
                continue;
            };
            guarding += 1;
            let tuple = |row: &Vec<u32>| (known.iter().map(|a| row[a.index()]).collect(), row[sensitive.index()]);
            let rows: Vec<(Vec<u32>, u32)> = cells.iter().map(tuple).collect();
            let mut parts: Vec<Option<(Vec<u32>, usize)>> = published["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| {
                    let x = row[0].as_array().unwrap().iter().map(code).collect();
                    Some((x, row[1].as_u64().unwrap() as usize))
                })
                .collect();
            let listed = published["sa"].as_object().unwrap().iter().map(|(bucket, values)| {
                let values = values.as_array().unwrap().iter().map(|value| code(&value[0])).collect();
                (bucket.parse().unwrap(), values)
            });
            let mut listed: BTreeMap<usize, Vec<u32>> = listed.collect();
            let placed: Vec<u32> =
                placed(&rows, &mut parts, &mut listed).unwrap().into_iter().map(|bucket| bucket as u32).collect();
            let column = original.column(sensitive);
            let buckets = BucketedColumn::new(column, placed, 12, &control).unwrap();
            let groups = RowGroups::new(&original, set, &control).unwrap();
            views.push(TableView::bucketized(set.with(sensitive), sensitive));
            figures.push(buckets.cross_entropy(&groups, &column.codes, &control).unwrap());
        }
        let tree = JoinTree::from_views(&views);
        assert!(tree.is_decomposable(), "vector {at}");
        let tables: f64 = tree.members.iter().map(|&view| figures[view]).sum();
        let shared: f64 = tree.edges.iter().map(|edge| entropy_of(edge.separator)).sum();
        let divergence = tables - shared - entropy_of(original.attributes());
        let expected = vector["kl_nats"].as_f64().unwrap();
        assert!((divergence - expected).abs() < 1e-9, "vector {at}: {divergence}, not {expected}");
    }
    assert!(guarding > 10, "{guarding}");
}
