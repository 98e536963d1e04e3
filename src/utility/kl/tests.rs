//! The vectors, through parts as they are written; and workloads against counting by hand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};
use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::microdata::{Arena, Attr, AttributeType, Codes, Column, Domain};
use crate::publication::{
    CellContent as CellKind, MethodDetails, Part, Publication, PublishedBytes, PublishedColumn, PublishedTable,
    RowMeaning, TableName, TableProtection,
};
use crate::utility::{PredicateWidth, Workload, WorkloadRun};

struct Files(HashMap<String, String>);

impl PublishedBytes for Files {
    fn open(&self, file: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0[file].as_bytes()))
    }
}

/// Rows of text over the attributes A, B, ...
type Rows = Vec<Vec<String>>;

fn table(rows: &Rows) -> Table {
    let columns = (0..rows[0].len()).map(|at| {
        let values: BTreeSet<&String> = rows.iter().map(|row| &row[at]).collect();
        let values: Vec<&String> = values.into_iter().collect();
        let mut arena = Arena::default();
        values.iter().for_each(|value| arena.push(value.as_bytes()));
        let codes: Vec<u32> = rows.iter().map(|row| values.binary_search(&&row[at]).unwrap() as u32).collect();
        let codes = Codes::collect(values.len(), codes.into_iter());
        Column { domain: Arc::new(Domain::from_sorted(AttributeType::Text, false, arena)), codes }
    });
    let columns: Vec<Column> = columns.collect();
    Table::new((0..columns.len()).map(|at| name(Attr(at as u8))).collect(), columns)
}

fn name(attr: Attr) -> String {
    char::from(b'A' + attr.0).to_string()
}

/// A part: attributes, and rows with their buckets.
type OfPart = (Vec<Attr>, Vec<(u64, Vec<String>)>);

fn published(tables: Vec<Vec<OfPart>>) -> (Publication, Files) {
    let mut files = HashMap::new();
    let mut all = Vec::new();
    for (at, parts) in tables.into_iter().enumerate() {
        let bucketed = parts.len() > 1;
        let mut described = Vec::new();
        for (number, (attrs, mut rows)) in parts.into_iter().enumerate() {
            rows.sort();
            let column =
                |&attribute: &Attr| PublishedColumn { attribute, name: name(attribute), cells: CellKind::Exact };
            let part = Part {
                name: format!("p{number}"),
                columns: attrs.iter().map(column).collect(),
                rows: RowMeaning::Tuples,
                bucketed,
                len: rows.len() as u64,
                null: None,
            };
            let bucket = |bucket: u64| if bucketed { format!("{bucket},") } else { String::new() };
            let header = if bucketed { "bucket," } else { "" }.to_owned()
                + &attrs.iter().map(|&a| name(a)).collect::<Vec<_>>().join(",");
            let lines = rows.iter().map(|(of, cells)| format!("{}{}\n", bucket(*of), cells.join(",")));
            files.insert(part.file(&TableName::at(at)), format!("{header}\n{}", lines.collect::<String>()));
            described.push(part);
        }
        all.push(PublishedTable { name: TableName::at(at), parts: described, protection: TableProtection::Exclusive });
    }
    (Publication { tables: all, rules: Vec::new(), method_details: MethodDetails::None, suppressed: 0 }, Files(files))
}

fn read(publication: &Publication, files: &Files, attributes: usize) -> (ModelShape, PublishedRows) {
    let shape = ModelShape::from_publication(publication);
    let kinds = vec![Some(AttributeType::Text); attributes];
    let all = |of: usize| Some(shape.published[of].attributes());
    let cells = PublishedRows::read(publication, all, &kinds, files, &Control::default()).unwrap();
    (shape, cells)
}

fn texts(row: &Value) -> Vec<String> {
    row.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
}

/// The tables of a vector.
fn tables_of(tables: &Value) -> Vec<Vec<OfPart>> {
    let of_table = |table: &Value| {
        let attrs =
            |side: &str| texts(&table[side]).iter().map(|name| Attr(name.as_bytes()[0] - b'A')).collect::<Vec<_>>();
        let known = table["rows"].as_array().unwrap().iter();
        let known = known.map(|row| (row[1].as_u64().unwrap_or(0) + 1, texts(&row[0]))).collect();
        let mut parts: Vec<OfPart> = vec![(attrs("x"), known)];
        if !attrs("y").is_empty() {
            let sensitive = table["sa"].as_object().unwrap().iter().flat_map(|(bucket, rows)| {
                rows.as_array().unwrap().iter().map(|row| (bucket.parse::<u64>().unwrap() + 1, texts(row)))
            });
            parts.push((attrs("y"), sensitive.collect()));
        }
        parts
    };
    tables.as_array().unwrap().iter().map(of_table).collect()
}

#[test]
fn the_divergence_is_that_of_the_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/gnf.json")).unwrap();
    let vectors = vectors["kl"].as_array().unwrap();
    assert_eq!(vectors.len(), 25);
    for (at, vector) in vectors.iter().enumerate() {
        let rows = vector["rows"].as_array().unwrap().iter();
        let rows: Rows = rows
            .map(|row| row.as_object().unwrap().values().map(|v| v.as_str().unwrap().to_owned()).collect())
            .collect();
        let (publication, files) = published(tables_of(&vector["tables"]));
        let (shape, cells) = read(&publication, &files, 4);
        assert!(shape.whole);
        let DivergenceReport { nats, made } = divergence(&shape, &cells, &table(&rows), &Control::default()).unwrap();
        let expected = vector["kl_nats"].as_f64().unwrap();
        assert!((nats - expected).abs() < 1e-9, "vector {at}: {nats}, expected {expected}");
        assert_eq!(made, ModelKind::ClosedForm);
    }
}

/// Some rows over four attributes, and three tables of them: two parts, three parts, and whole tuples.
fn example() -> (Rows, Publication, Files) {
    let rows: Rows = (0..60_usize)
        .map(|at| {
            vec![
                format!("a{}", at % 3),
                format!("b{}", at / 7 % 4),
                format!("c{}", at * at % 5),
                format!("d{}", at % 2),
            ]
        })
        .collect();
    let part = |attrs: &[u8], bucket: &dyn Fn(usize) -> u64| -> OfPart {
        let cells = |row: &Vec<String>| attrs.iter().map(|&attr| row[usize::from(attr)].clone()).collect();
        let rows = rows.iter().enumerate().map(|(at, row)| (bucket(at), cells(row)));
        (attrs.iter().map(|&attr| Attr(attr)).collect(), rows.collect())
    };
    let by_five = |at: usize| at as u64 % 12 + 1;
    let tables =
        vec![vec![part(&[0], &by_five), part(&[1], &by_five), part(&[2], &by_five)], vec![part(&[1, 3], &|_| 0)]];
    let (publication, files) = published(tables);
    (rows, publication, files)
}

#[test]
fn several_sensitive_parts_diverge_as_the_definition_says() {
    let (rows, publication, files) = example();
    let (shape, cells) = read(&publication, &files, 4);
    let DivergenceReport { nats, .. } = divergence(&shape, &cells, &table(&rows), &Control::default()).unwrap();
    // p~(a,b,c,d) = 1/n sum_g n_g(a) n_g(b) n_g(c) / n_g^2 * n(b,d) / n(b)
    let n = rows.len() as f64;
    let count = |of: &dyn Fn(usize, &Vec<String>) -> bool| {
        rows.iter().enumerate().filter(|(at, row)| of(*at, row)).count() as f64
    };
    let mut expected = 0.0;
    for tuple in &rows {
        let estimate: f64 = (0..12)
            .map(|bucket| {
                let has = |attr: usize| count(&|at, row| at % 12 == bucket && row[attr] == tuple[attr]);
                has(0) * has(1) * has(2) / 25.0
            })
            .sum::<f64>()
            / n;
        let estimate =
            estimate * count(&|_, row| row[1] == tuple[1] && row[3] == tuple[3]) / count(&|_, row| row[1] == tuple[1]);
        let actual = count(&|_, row| row == tuple) / n;
        expected += (actual / estimate).ln() / n;
    }
    assert!((nats - expected).abs() < 1e-9 && nats > 0.1, "{nats}, expected {expected}");
}

#[test]
fn workloads_are_compared_with_true_counts() {
    let (rows, publication, files) = example();
    let (shape, cells) = read(&publication, &files, 4);
    let original = table(&rows);
    let run = |dimensions: u32, width: PredicateWidth, seed: u32| {
        let mut state = seed;
        let mut below = |bound: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % bound
        };
        let workload = Workload { number: 200, dimensions, width };
        let control = Control::default();
        let run = WorkloadRun { workload, original: &original, below: &mut below, control: &control };
        run.of_tables(&shape, &cells).unwrap()
    };
    // one attribute is shown as it is
    let single = run(1, PredicateWidth::ValueFraction(0.3), 1);
    assert!(single.relative.len() == 200 && single.relative.iter().all(|error| *error < 1e-9) && single.redrawn == 0);
    // every value of every attribute: all rows
    let all = run(4, PredicateWidth::ValueFraction(1.0), 2);
    assert!(all.relative.iter().all(|error| *error < 1e-9));
    let four = run(4, PredicateWidth::Selectivity(0.001), 3);
    assert!(four.relative.len() == 200 && four.redrawn > 0, "{}", four.redrawn);
    assert!(
        four.relative.windows(2).all(|pair| pair[0] <= pair[1]) && four.relative[100] > 0.05,
        "{:?}",
        four.relative
    );
    // errors by hand: of two attributes of single values there are only so many queries
    let pairs = run(2, PredicateWidth::ValueFraction(0.01), 4);
    let mut possible: BTreeMap<String, f64> = BTreeMap::new();
    let n = rows.len();
    for (first, second) in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)] {
        for here in &rows {
            for there in &rows {
                let (a, b) = (&here[first], &there[second]);
                if possible.contains_key(&format!("{first}{a}{second}{b}")) {
                    continue;
                }
                let actual = rows.iter().filter(|row| row[first] == *a && row[second] == *b).count() as f64;
                let has = |attr: usize, value: &String, at: usize| f64::from(u8::from(rows[at][attr] == *value));
                // within a bucket of the first table, and outside it by the one shared attribute
                let tied = |one: usize, v: &String, other: usize, w: &String| -> f64 {
                    (0..n)
                        .flat_map(|x| (0..n).filter(move |y| y % 12 == x % 12).map(move |y| (x, y)))
                        .map(|(x, y)| has(one, v, x) * has(other, w, y) / 5.0)
                        .sum()
                };
                let estimate = match (first, second) {
                    (1, 3) => actual,
                    (_, 3) => {
                        let of_b = |value: &String| {
                            let both = rows.iter().filter(|row| row[1] == *value && row[3] == *b).count() as f64;
                            both / rows.iter().filter(|row| row[1] == *value).count() as f64
                        };
                        let values: BTreeSet<&String> = rows.iter().map(|row| &row[1]).collect();
                        values.into_iter().map(|value| tied(first, a, 1, value) * of_b(value)).sum()
                    }
                    _ => tied(first, a, second, b),
                };
                if actual > 0.0 {
                    possible.insert(format!("{first}{a}{second}{b}"), (actual - estimate).abs() / actual);
                }
            }
        }
    }
    for error in &pairs.relative {
        assert!(possible.values().any(|possible| (possible - error).abs() < 1e-9), "{error}");
    }
}

mod fitted;
