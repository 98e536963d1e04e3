//! Message passing against the vectors and against the model spelled out value by value.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::cells::{PartCells, TableCells};
use super::*;
use crate::control::Control;
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain};

/// The codes of every attribute are below this.
const CODES: u32 = 4;

/// A bucket and a code per attribute.
type PublishedRow = (u32, Vec<u32>);

/// A published table: the attributes of each part, and its rows: a bucket and a code per attribute.
#[derive(Clone, Debug)]
struct Published {
    parts: Vec<(Vec<u8>, Vec<PublishedRow>)>,
}

impl Published {
    fn view(&self) -> TableView {
        TableView::tied(self.parts.iter().map(|(attrs, _)| attrs.iter().map(|&attr| Attr(attr)).collect()))
    }

    fn cells(&self) -> TableCells {
        let tied = self.parts.len() > 1;
        let mut values = Arena::default();
        (0..CODES).for_each(|code| values.push(code.to_string().as_bytes()));
        let domain = Arc::new(Domain::from_sorted(AttributeType::Integer, false, values));
        let column = |rows: &[(u32, Vec<u32>)], at: usize| {
            let codes: Vec<u32> = rows.iter().map(|(_, codes)| codes[at]).collect();
            Column { domain: Arc::clone(&domain), codes: Codes::collect(CODES as usize, codes.into_iter()) }
        };
        let parts = self.parts.iter().map(|(attrs, rows)| {
            let labels = rows.iter().filter(|_| tied).map(|(bucket, _)| *bucket).collect();
            PartCells::new(labels, (0..attrs.len()).map(|at| (Attr(attrs[at]), column(rows, at))).collect())
        });
        let mut buckets = vec![];
        for (bucket, _) in self.parts[0].1.iter().filter(|_| tied) {
            buckets.resize(buckets.len().max(*bucket as usize + 1), 0);
            buckets[*bucket as usize] += 1;
        }
        TableCells { rows: self.parts[0].1.len(), buckets, parts: parts.collect() }
    }

    /// The table's estimate of the share of each tuple of its attributes, from the definition.
    fn estimate(&self) -> (Vec<u8>, BTreeMap<Vec<u32>, f64>) {
        let n = self.parts[0].1.len() as f64;
        let attrs: Vec<u8> = self.parts.iter().flat_map(|(attrs, _)| attrs.clone()).collect();
        let mut estimate = BTreeMap::new();
        let mut buckets: Vec<u32> = self.parts[0].1.iter().map(|(bucket, _)| *bucket).collect();
        buckets.sort_unstable();
        buckets.dedup();
        for bucket in buckets {
            let mut tuples: Vec<(Vec<u32>, f64)> = vec![(vec![], 1.0)];
            let mut size = 0.0;
            for (_, rows) in &self.parts {
                let rows: Vec<&Vec<u32>> =
                    rows.iter().filter(|(of, _)| *of == bucket).map(|(_, codes)| codes).collect();
                size = rows.len() as f64;
                let longer = |(tuple, share): &(Vec<u32>, f64)| {
                    let (tuple, share) = (tuple.clone(), *share);
                    rows.iter().map(move |row| ([&tuple[..], &row[..]].concat(), share / size)).collect::<Vec<_>>()
                };
                tuples = tuples.iter().flat_map(longer).collect();
            }
            for (tuple, share) in tuples {
                *estimate.entry(tuple).or_insert(0.0) += share * size / n;
            }
        }
        (attrs, estimate)
    }
}

/// A table of whole tuples.
fn plain(attrs: &[u8], rows: &[Vec<u32>]) -> Published {
    let project = |row: &Vec<u32>| (0, attrs.iter().map(|&attr| row[attr as usize]).collect());
    Published { parts: vec![(attrs.to_vec(), rows.iter().map(project).collect())] }
}

/// A table of parts over the same buckets, the rows of each part in another order.
fn tied(parts: &[&[u8]], rows: &[Vec<u32>], bucket: impl Fn(usize) -> u32) -> Published {
    let part = |attrs: &&[u8]| {
        let project =
            |(at, row): (usize, &Vec<u32>)| (bucket(at), attrs.iter().map(|&attr| row[attr as usize]).collect());
        let mut rows: Vec<_> = rows.iter().enumerate().map(project).collect();
        rows.sort();
        (attrs.to_vec(), rows)
    };
    Published { parts: parts.iter().map(part).collect() }
}

/// The model of tables that form a tree, spelled out: the share of every tuple.
fn spelled_out(tables: &[Published], attributes: u8) -> Vec<(Vec<u32>, f64)> {
    let shape = ModelShape::of_views(tables.iter().map(Published::view).collect());
    assert!(shape.whole);
    let estimates: Vec<_> = tables.iter().map(Published::estimate).collect();
    let separators: Vec<_> = shape
        .tree
        .edges
        .iter()
        .map(|edge| {
            let (attrs, estimate) = &estimates[edge.parent];
            let places: Vec<usize> = (0..attrs.len()).filter(|&at| edge.separator.contains(Attr(attrs[at]))).collect();
            let mut marginal: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
            for (tuple, share) in estimate {
                *marginal.entry(places.iter().map(|&at| tuple[at]).collect()).or_default() += share;
            }
            (places.iter().map(|&at| attrs[at]).collect::<Vec<u8>>(), marginal)
        })
        .collect();
    let pick = |tuple: &[u32], attrs: &[u8]| attrs.iter().map(|&attr| tuple[attr as usize]).collect::<Vec<u32>>();
    let all = CODES.pow(u32::from(attributes));
    let tuples = (0..all).map(|number| (0..attributes).map(|attr| number / CODES.pow(attr.into()) % CODES).collect());
    tuples
        .map(|tuple: Vec<u32>| {
            let mut share = 1.0;
            for &member in &shape.tree.members {
                let (attrs, estimate) = &estimates[member];
                share *= estimate.get(&pick(&tuple, attrs)).copied().unwrap_or(0.0);
            }
            for (attrs, marginal) in &separators {
                let of = marginal.get(&pick(&tuple, attrs)).copied().unwrap_or(0.0);
                share = if share > 0.0 { share / of } else { 0.0 };
            }
            (tuple, share)
        })
        .collect()
}

fn answer(tables: &[Published], query: &Predicates) -> Estimate {
    let shape = ModelShape::of_views(tables.iter().map(Published::view).collect());
    let cells = PublishedRows::of_tables(tables.iter().map(Published::cells).collect());
    let asked: AttrSet = query.iter().map(|(attr, _)| *attr).collect();
    let routes = [shape.route(asked)];
    let estimator = Estimator::new(&shape, &cells, &routes, &Control::default()).unwrap();
    estimator.estimate(&routes[0], query, &Control::default()).unwrap()
}

fn admits(query: &Predicates, tuple: &[u32]) -> bool {
    query.iter().all(|(attr, admitted)| admitted[tuple[attr.index()] as usize])
}

fn code(value: &Value) -> u32 {
    value.as_str().unwrap()[1..].parse().unwrap()
}

fn letter(name: &str) -> u8 {
    name.as_bytes()[0] - b'A'
}

/// The tables of a `kl` vector.
fn tables_of(vector: &Value) -> Vec<Published> {
    let table = |table: &Value| {
        let attrs =
            |side: &str| table[side].as_array().unwrap().iter().map(|name| letter(name.as_str().unwrap())).collect();
        let codes = |row: &Value| row.as_array().unwrap().iter().map(code).collect::<Vec<u32>>();
        let row = |row: &Value| (row[1].as_u64().unwrap_or(0) as u32, codes(&row[0]));
        let mut parts = vec![(attrs("x"), table["rows"].as_array().unwrap().iter().map(row).collect())];
        if table["y"].as_array().is_some_and(|attrs| !attrs.is_empty()) {
            let rows = table["sa"].as_object().unwrap().iter().flat_map(|(bucket, rows)| {
                rows.as_array().unwrap().iter().map(|row| (bucket.parse().unwrap(), codes(row)))
            });
            parts.push((attrs("y"), rows.collect()));
        }
        Published { parts }
    };
    vector["tables"].as_array().unwrap().iter().map(table).collect()
}

#[test]
fn the_vectors_are_estimated_as_they_say() {
    let vectors: Value = serde_json::from_str(include_str!("../../tests/vectors/gnf.json")).unwrap();
    let vectors = vectors["kl"].as_array().unwrap();
    assert_eq!(vectors.len(), 25);
    let mut models = Vec::new();
    for (at, vector) in vectors.iter().enumerate() {
        let admitted = |values: &Value| {
            let mut admitted = vec![false; CODES as usize];
            values.as_array().unwrap().iter().for_each(|value| admitted[code(value) as usize] = true);
            admitted
        };
        let query = vector["query"].as_object().unwrap();
        let query: Predicates = query.iter().map(|(name, values)| (Attr(letter(name)), admitted(values))).collect();
        let estimate = answer(&tables_of(vector), &query);
        let expected = vector["est"].as_f64().unwrap();
        assert!((estimate.count - expected).abs() < 1e-9, "vector {at}: {estimate:?}, expected {expected}");
        if estimate.error_model == ErrorModel::Exact {
            assert_eq!(estimate.count, vector["act"].as_f64().unwrap(), "vector {at}");
        }
        models.push(estimate.error_model);
    }
    for model in [ErrorModel::Exact, ErrorModel::Matching, ErrorModel::Multinomial] {
        assert!(models.contains(&model), "{model:?} is answered");
    }
}

/// Some publications whose tables form a tree, over five attributes.
fn publications(rows: &[Vec<u32>], buckets: u32) -> Vec<Vec<Published>> {
    let by = move |modulus: u32| move |at: usize| at as u32 % modulus;
    let b = buckets.min(rows.len() as u32);
    vec![
        vec![plain(&[0, 1], rows), tied(&[&[1, 2], &[3]], rows, by(b)), plain(&[3, 4], rows)],
        vec![tied(&[&[0, 1], &[2]], rows, by(b)), tied(&[&[0], &[3]], rows, by(1)), plain(&[4], rows)],
        vec![tied(&[&[0], &[1], &[2, 3]], rows, by(b)), plain(&[2, 3, 4], rows)],
        vec![tied(&[&[0, 1], &[2], &[3]], rows, by(b)), tied(&[&[1], &[4]], rows, by(b))],
        vec![plain(&[0, 1, 2], rows), plain(&[1, 2, 3], rows), tied(&[&[2, 3], &[4]], rows, by(b)), plain(&[0], rows)],
        vec![tied(&[&[0], &[1, 2, 3, 4]], rows, by(b))],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn messages_give_the_sum_of_the_model(
        rows in prop::collection::vec(prop::collection::vec(0..CODES, 5), 1..12),
        buckets in 1u32..5,
        asked in prop::collection::btree_map(0u8..5, prop::collection::vec(any::<bool>(), CODES as usize), 0..5),
    ) {
        let query: Predicates = asked.into_iter().map(|(attr, admitted)| (Attr(attr), admitted)).collect();
        for tables in publications(&rows, buckets) {
            let model = spelled_out(&tables, 5);
            let whole: f64 = model.iter().map(|(_, share)| share).sum();
            prop_assert!((whole - 1.0).abs() < 1e-9, "{whole}");
            let shape = ModelShape::of_views(tables.iter().map(Published::view).collect());
            let entropy =
                entropy::of_shape(&shape, |table, _| Ok(tables[table].cells()), &Control::default()).unwrap();
            let expected: f64 = model.iter().filter(|(_, share)| *share > 0.0).map(|(_, share)| -share * share.ln()).sum();
            prop_assert!((entropy - expected).abs() < 1e-9, "{entropy}, expected {expected}");
            let share: f64 = model.iter().filter(|(tuple, _)| admits(&query, tuple)).map(|(_, share)| share).sum();
            let n = rows.len() as f64;
            let estimate = answer(&tables, &query);
            prop_assert!((estimate.count - n * share).abs() < 1e-9, "{estimate:?}, expected {}", n * share);
            let p = estimate.count / n;
            match estimate.error_model {
                ErrorModel::Exact => {
                    let count = rows.iter().filter(|row| admits(&query, row)).count();
                    prop_assert_eq!((estimate.count, estimate.standard_error), (count as f64, 0.0));
                }
                ErrorModel::Multinomial => prop_assert!((estimate.standard_error - (n * p * (1.0 - p)).max(0.0).sqrt()).abs() < 1e-6),
                ErrorModel::Matching => {}
            }
        }
    }
}

/// All orders of a number of rows.
fn orders(len: usize) -> Vec<Vec<usize>> {
    if len == 0 {
        return vec![vec![]];
    }
    let insert = |order: Vec<usize>| (0..len).map(move |at| [&order[..at], &[len - 1], &order[at..]].concat());
    orders(len - 1).into_iter().flat_map(insert).collect()
}

#[test]
fn the_deviation_is_that_of_all_matchings() {
    // three parts, buckets of one, three and four rows: every way to match the rows of a bucket
    let rows: Vec<Vec<u32>> = (0..8u32).map(|at| vec![at % 2, at / 3, (at * at + 1) % 4]).collect();
    let bucket = |at: usize| [0, 1, 1, 1, 2, 2, 2, 2][at];
    for (parts, query) in [
        (
            vec![&[0u8, 1][..], &[2]],
            vec![(Attr(0), vec![true, false, false, false]), (Attr(2), vec![true, true, false, false])],
        ),
        (
            vec![&[0][..], &[1], &[2]],
            vec![
                (Attr(0), vec![true, false, false, false]),
                (Attr(1), vec![false, true, true, false]),
                (Attr(2), vec![true, true, false, false]),
            ],
        ),
        (
            vec![&[0][..], &[1], &[2]],
            vec![(Attr(1), vec![true, false, true, true]), (Attr(2), vec![false, false, true, false])],
        ),
    ] {
        let table = tied(&parts, &rows, bucket);
        let (mut mean, mut variance) = (0.0, 0.0);
        for label in 0..3 {
            let of_bucket: Vec<Vec<&Vec<u32>>> = table
                .parts
                .iter()
                .map(|(_, rows)| rows.iter().filter(|(of, _)| *of == label).map(|(_, codes)| codes).collect())
                .collect();
            let size = of_bucket[0].len();
            let (mut worlds, mut sum, mut squares) = (0.0, 0.0, 0.0);
            let third = if of_bucket.len() > 2 { orders(size) } else { vec![(0..size).collect()] };
            for second in orders(size) {
                for third in &third {
                    let count = (0..size)
                        .filter(|&row| {
                            let chosen = [row, second[row], third[row]];
                            let tuple: Vec<u32> = of_bucket
                                .iter()
                                .enumerate()
                                .flat_map(|(part, rows)| rows[chosen[part]].clone())
                                .collect();
                            admits(&query, &tuple)
                        })
                        .count() as f64;
                    (worlds, sum, squares) = (worlds + 1.0, sum + count, squares + count * count);
                }
            }
            mean += sum / worlds;
            variance += squares / worlds - (sum / worlds).powi(2);
        }
        let estimate = answer(&[table], &query);
        assert_eq!(estimate.error_model, ErrorModel::Matching);
        assert!((estimate.count - mean).abs() < 1e-9, "{estimate:?}, expected {mean}");
        assert!((estimate.standard_error - variance.sqrt()).abs() < 1e-9 && variance > 0.1, "{estimate:?}, {variance}");
    }
}

#[test]
fn tables_that_form_no_tree_are_answered_from_some_of_them() {
    let rows: Vec<Vec<u32>> = (0..12u32).map(|at| vec![at % 2, at / 2 % 3, at % 3, at / 6]).collect();
    let circle = [plain(&[0, 1], &rows), plain(&[1, 2], &rows), plain(&[2, 3], &rows), plain(&[3, 0], &rows)];
    let query = vec![(Attr(0), vec![true, false, false, false]), (Attr(2), vec![true, false, false, true])];
    assert_eq!(answer(&circle, &query), answer(&circle[..3], &query));
}
