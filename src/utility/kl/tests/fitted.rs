//! Tables that form no tree: the vectors, fitting by the letter over all combinations, and what is done when there are too many.

use proptest::prelude::*;

use super::*;

#[test]
fn divergence_of_fitted_tables_is_that_of_the_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("../../../../tests/vectors/ipf.json")).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert_eq!(vectors.len(), 14);
    for (at, vector) in vectors.iter().enumerate() {
        let rows: Rows = vector["rows"].as_array().unwrap().iter().map(texts).collect();
        let (publication, files) = published(tables_of(&vector["tables"]));
        let (shape, cells) = read(&publication, &files, rows[0].len());
        assert!(!shape.whole);
        let DivergenceReport { nats, made } = divergence(&shape, &cells, &table(&rows), &Control::default()).unwrap();
        let expected = vector["kl_nats"].as_f64().unwrap();
        assert!((nats - expected).abs() < 1e-9, "vector {at}: {nats}, expected {expected}");
        assert_eq!(made.as_str(), "ipf");
    }
}

/// The parts of a table: attributes, of which the last may be apart from the others, in so many buckets.
fn parts(rows: &Rows, attrs: &[u8], tied: Option<usize>, shift: usize) -> Vec<OfPart> {
    let part = |attrs: &[u8]| -> OfPart {
        let bucket = |at: usize| tied.map_or(0, |buckets| (at / (shift + 1) % buckets) as u64 + 1);
        let cells = |row: &Vec<String>| attrs.iter().map(|&attr| row[usize::from(attr)].clone()).collect();
        let of_part = rows.iter().enumerate().map(|(at, row)| (bucket(at), cells(row))).collect();
        (attrs.iter().map(|&attr| Attr(attr)).collect(), of_part)
    };
    match tied {
        None => vec![part(attrs)],
        Some(_) => vec![part(&attrs[..attrs.len() - 1]), part(&attrs[attrs.len() - 1..])],
    }
}

/// The share of each combination.
type Shares = BTreeMap<Vec<String>, f64>;

/// Fitting by the letter: every combination of values and buckets; `None` when it does not come to its end soon.
fn literal(rows: &Rows, tables: &[Vec<OfPart>]) -> Option<f64> {
    let mut axes: Vec<Vec<String>> = (0..rows[0].len())
        .map(|at| rows.iter().map(|row| row[at].clone()).collect::<BTreeSet<_>>().into_iter().collect())
        .collect();
    let mut constraints: Vec<(Vec<usize>, Shares)> = Vec::new();
    for parts in tables {
        let bucket = (parts.len() > 1).then_some(axes.len());
        if bucket.is_some() {
            let labels: BTreeSet<String> = parts[0].1.iter().map(|(bucket, _)| bucket.to_string()).collect();
            axes.push(labels.into_iter().collect());
        }
        for (attrs, of_part) in parts {
            let mut shares = Shares::new();
            for (label, cells) in of_part {
                let label = bucket.map(|_| label.to_string());
                let key: Vec<String> = cells.iter().cloned().chain(label).collect();
                *shares.entry(key).or_insert(0.0) += 1.0 / of_part.len() as f64;
            }
            let on: Vec<usize> = attrs.iter().map(|attr| attr.index()).chain(bucket).collect();
            constraints.push((on, shares));
        }
    }
    let mut cells: Vec<Vec<String>> = vec![Vec::new()];
    for axis in &axes {
        let more = |cell: &Vec<String>| {
            axis.iter().map(|value| [&cell[..], std::slice::from_ref(value)].concat()).collect::<Vec<_>>()
        };
        cells = cells.iter().flat_map(more).collect();
    }
    let mut shares = vec![1.0 / cells.len() as f64; cells.len()];
    let keys: Vec<Vec<Vec<String>>> = constraints
        .iter()
        .map(|(on, _)| cells.iter().map(|cell| on.iter().map(|&axis| cell[axis].clone()).collect()).collect())
        .collect();
    for _ in 0..200 {
        let mut furthest = 0.0_f64;
        for ((_, declared), keys) in constraints.iter().zip(&keys) {
            let mut found: BTreeMap<&Vec<String>, f64> = BTreeMap::new();
            keys.iter().zip(&shares).for_each(|(key, share)| *found.entry(key).or_default() += share);
            for (key, share) in keys.iter().zip(&mut shares) {
                let (declared, found) = (declared.get(key).copied().unwrap_or(0.0), found[key]);
                furthest = furthest.max((declared - found).abs());
                *share *= if found > 0.0 { declared / found } else { 0.0 };
            }
        }
        if furthest < 1e-12 {
            let of = |row: &Vec<String>| {
                let matching = cells.iter().zip(&shares).filter(|(cell, _)| cell[..row.len()] == row[..]);
                matching.map(|(_, share)| share).sum::<f64>()
            };
            return Some(-rows.iter().map(|row| of(row).ln()).sum::<f64>() / rows.len() as f64);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn fitting_equals_its_definition_and_the_closed_form(
        values in prop::collection::vec((0_u8..2, 0_u8..3, 0_u8..2), 6..16),
        tables in prop::collection::vec((prop::sample::select(vec![&[0_u8, 1][..], &[1, 2], &[2, 0], &[0, 1, 2], &[2, 0, 1]]), prop::option::of(2_usize..4), 0_usize..5), 2..4),
    ) {
        let rows: Rows = values.iter().map(|(a, b, c)| vec![format!("a{a}"), format!("b{b}"), format!("c{c}")]).collect();
        let tables: Vec<Vec<OfPart>> = tables.iter().map(|(attrs, tied, shift)| parts(&rows, attrs, *tied, *shift)).collect();
        let expected = literal(&rows, &tables);
        let every: Vec<usize> = (0..tables.len()).collect();
        let (publication, files) = published(tables);
        let (shape, cells) = read(&publication, &files, 3);
        let published = shape.published.iter().fold(AttrSet::EMPTY, |all, view| all.union(view.attributes()));
        prop_assume!(published.len() == 3 && expected.is_some());
        let control = Control::default();
        let fitted = Fitted::new(&shape.published, &every, &cells, &control).unwrap().unwrap();
        let nats = fitted.cross_entropy(&cells, &table(&rows), &control).unwrap();
        prop_assert!((nats - expected.unwrap()).abs() < 1e-9, "{nats}, expected {expected:?}");
        let open = entropy(RowGroups::new(&table(&rows), published, &control).unwrap().sizes());
        let found = divergence(&shape, &cells, &table(&rows), &control).unwrap();
        prop_assert!((found.nats - (nats - open)).abs() < 1e-9, "{found:?}, expected {}", nats - open);
        prop_assert_eq!(found.made == ModelKind::ClosedForm, shape.whole);
    }
}

#[test]
fn of_too_many_combinations_the_tables_of_largest_gain_are_used() {
    // c is nearly a, and b predicts a little of c; what a and b say of each other follows from c but for chance
    let rows: Rows = (0..2_000_usize)
        .map(|at| {
            let a = at * 97 % 211;
            let c = if at % 50 == 0 { at % 210 } else { a };
            let b = if at % 2 == 0 { c % 205 } else { at % 205 };
            vec![format!("a{a:03}"), format!("b{b:03}"), format!("c{c:03}")]
        })
        .collect();
    let tables: Vec<Vec<OfPart>> = [[0, 1], [1, 2], [0, 2]].iter().map(|attrs| parts(&rows, attrs, None, 0)).collect();
    let (publication, files) = published(tables);
    let (shape, cells) = read(&publication, &files, 3);
    let (original, control) = (table(&rows), Control::default());
    let sizes: u64 = (0..3).map(|at| original.column(Attr(at)).domain.len() as u64).product();
    assert!(sizes > crate::model::MAX_FITTED_CELLS, "{sizes}");
    let h = |attrs: &[u8]| {
        let attrs = attrs.iter().map(|&attr| Attr(attr)).collect();
        entropy(RowGroups::new(&original, attrs, &control).unwrap().sizes())
    };
    let gain = |a: u8, b: u8| h(&[a]) + h(&[b]) - h(&[a, b]);
    // the order of the tables would use the other two
    assert!(gain(0, 2) > gain(1, 2) && gain(1, 2) > gain(0, 1), "{} {} {}", gain(0, 1), gain(1, 2), gain(0, 2));
    let found = divergence(&shape, &cells, &original, &control).unwrap();
    let expected = h(&[0, 2]) + h(&[1, 2]) - h(&[2]) - h(&[0, 1, 2]);
    assert_eq!(found.made.as_str(), "acyclic_subset");
    assert!((found.nats - expected).abs() < 1e-9, "{found:?}, expected {expected}");
}

#[test]
fn cancelled_fitting_stops() {
    let rows: Rows =
        (0..40).map(|at| vec![format!("a{}", at % 3), format!("b{}", at % 7), format!("c{}", at % 5)]).collect();
    let tables: Vec<Vec<OfPart>> = [[0, 1], [1, 2], [0, 2]].iter().map(|attrs| parts(&rows, attrs, None, 0)).collect();
    let (publication, files) = published(tables);
    let (shape, cells) = read(&publication, &files, 3);
    let control = Control::default();
    control.cancel();
    assert!(divergence(&shape, &cells, &table(&rows), &control).is_err());
    assert!(Fitted::new(&shape.published, &[0, 1, 2], &cells, &control).is_err());
}
