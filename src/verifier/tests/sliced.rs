//! Sliced tables with a guarantee for each bucket or over all buckets together, and faults planted in them.

use super::fixture::{Cell, VerifierFixture, failed, guard, guardian, rule};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{
    CellContent, EnforcedBy, ExcludedValues, Guarantee, MethodDetails, Protected, Ratio, SlicedDiversity,
    SubmittedRule, TableName, TableProtection,
};
use crate::verifier::contract::checks::CheckName;
use crate::verifier::contract::checks::CheckName::{Buckets, Columns, Content, Gnf, Guarantee as Kept, Guards};
use crate::verifier::definition::share::ShareOfRows;

fn set(attrs: &[u8]) -> AttrSet {
    attrs.iter().map(|&a| Attr(a)).collect()
}

fn rows(rows: &[[&str; 4]]) -> Vec<Vec<Cell>> {
    rows.iter().map(|row| row.iter().map(|cell| Some((*cell).to_owned())).collect()).collect()
}

fn method(known: &[u8], sensitive: u8, guarantee: Guarantee) -> SubmittedRule {
    SubmittedRule { pointer: "/method".to_owned(), guarantee, ..rule(0, known, sensitive, 2) }
}

fn method_details(columns: &[&[u8]], diversity: SlicedDiversity) -> MethodDetails {
    MethodDetails::Slicing { columns: columns.iter().map(|column| set(column)).collect(), diversity, column_k: None }
}

fn held() -> EnforcedBy {
    EnforcedBy::Table(TableName::at(0))
}

/// The table of [Li et al. 2012, Table 1]: {age, sex} and {zip, disease}, two buckets of four rows.
fn bucket() -> VerifierFixture {
    let mut fixture = VerifierFixture::new(
        &["age", "sex", "zip", "disease"],
        rows(&[
            ["22", "M", "47906", "dyspepsia"],
            ["22", "F", "47906", "flu"],
            ["33", "F", "47905", "flu"],
            ["52", "F", "47905", "bronchitis"],
            ["54", "M", "47302", "flu"],
            ["60", "M", "47302", "dyspepsia"],
            ["60", "M", "47304", "dyspepsia"],
            ["64", "F", "47304", "gastritis"],
        ]),
    );
    let guards = vec![guard(&[0, 1, 2], Protected::Attribute(Attr(3)), 2)];
    fixture.bucketized(&[0, 1], &[("c2", &[2, 3])], guards, vec![2, 2, 2, 2, 1, 1, 1, 1]);
    fixture.publication.method_details = method_details(&[&[0, 1], &[2, 3]], SlicedDiversity::Bucket);
    fixture.hold(method(&[0, 1, 2], 3, Guarantee::LDiversity { l: 2 }), held());
    fixture
}

/// Buckets of two and of four rows with equal known values.
///
/// In the large bucket a value has three of four rows. Over both buckets its weight is 3/4 of 2, or 3 of 6 with
/// buckets weighted by size.
fn mixture(l: &str, diversity: SlicedDiversity) -> VerifierFixture {
    let mut fixture = VerifierFixture::new(
        &["a", "b", "c", "s"],
        rows(&[
            ["a", "b", "c", "0"],
            ["a", "b", "c", "1"],
            ["a", "b", "c", "2"],
            ["a", "b", "c", "2"],
            ["a", "b", "c", "2"],
            ["a", "b", "c", "3"],
        ]),
    );
    fixture.bucketized(&[0], &[("c2", &[1, 2, 3])], Vec::new(), vec![2, 2, 1, 1, 1, 1]);
    fixture.publication.tables[0].protection = TableProtection::Exclusive;
    fixture.publication.method_details = method_details(&[&[0], &[1, 2, 3]], diversity);
    let l: Ratio = l.parse().expect("a number");
    let guarantee = match l.denominator() {
        1 => Guarantee::LDiversity { l: l.numerator() },
        _ => Guarantee::AlphaK { alpha: Ratio::new(l.denominator(), l.numerator()).expect("a share"), k: 1 },
    };
    fixture.hold(method(&[0, 1, 2], 3, guarantee), held());
    fixture
}

fn shares() -> VerifierFixture {
    mixture("2", SlicedDiversity::Mixture)
}

fn swap(fixture: &mut VerifierFixture, file: &str, attrs: &[u8], of: (usize, usize), cell: usize) {
    let rows = &mut fixture.files.get_mut(file).expect("a part").rows;
    let other = rows[of.1].1[cell].clone();
    rows[of.1].1[cell] = std::mem::replace(&mut rows[of.0].1[cell], other);
    fixture.settle(file, attrs);
}

/// Moves a row of a part to the bucket of another row.
fn relabel(fixture: &mut VerifierFixture, file: &str, attrs: &[u8], row: usize, label: &str) {
    label.clone_into(&mut fixture.files.get_mut(file).expect("a part").rows[row].0);
    fixture.settle(file, attrs);
}

fn asked(fixture: &mut VerifierFixture, guarantee: Guarantee) {
    fixture.submitted[0].guarantee = guarantee;
    fixture.publication.rules[0].guarantee = guarantee;
}

type Fault = (&'static str, fn() -> VerifierFixture, fn(&mut VerifierFixture), &'static [CheckName]);

const FAULTS: &[Fault] = &[
    (
        "a column shifted by one bucket",
        bucket,
        |w| {
            for row in &mut w.files.get_mut("t1.c2.csv").expect("a part").rows {
                row.0 = if row.0 == "1" { "2" } else { "1" }.to_owned();
            }
            w.settle("t1.c2.csv", &[2, 3]);
        },
        &[Content],
    ),
    ("a row of a column in another bucket", bucket, |w| relabel(w, "t1.c2.csv", &[2, 3], 0, "2"), &[Content, Buckets]),
    // flu of 47906 next to 47905: both rows of 47905 have it
    (
        "values of a column put together otherwise",
        bucket,
        |w| swap(w, "t1.c2.csv", &[2, 3], (4, 7), 1),
        &[Content, Kept],
    ),
    (
        "a guard of more than the buckets hold",
        bucket,
        |w| match &mut w.publication.tables[0].protection {
            TableProtection::Guarding(guards) => guards[0].guarantees[0] = Guarantee::LDiversity { l: 3 },
            _ => panic!("guarding"),
        },
        &[Kept],
    ),
    (
        "a guard of which less is known",
        bucket,
        |w| match &mut w.publication.tables[0].protection {
            TableProtection::Guarding(guards) => guards[0].known = set(&[0, 1]),
            _ => panic!("guarding"),
        },
        &[Gnf, Guards],
    ),
    (
        "other columns than the parts",
        bucket,
        |w| w.publication.method_details = method_details(&[&[0, 1, 2], &[3]], SlicedDiversity::Bucket),
        &[Columns],
    ),
    (
        "the sensitive column first",
        bucket,
        |w| {
            w.publication.tables[0].parts.reverse();
            w.publication.method_details = method_details(&[&[2, 3], &[0, 1]], SlicedDiversity::Bucket);
        },
        &[Columns],
    ),
    (
        "a guarding table that speaks of a mixture",
        bucket,
        |w| w.publication.method_details = method_details(&[&[0, 1], &[2, 3]], SlicedDiversity::Mixture),
        &[Guards],
    ),
    ("a second table next to the columns", bucket, |w| w.plain(&[2, 3]), &[Columns, Gnf]),
    ("no method_details and one part", bucket, |w| w.publication.method_details = MethodDetails::None, &[]),
    (
        "columns made without excluded values",
        bucket,
        |w| w.excludable.push(ExcludedValues { attribute: Attr(3), values: vec![Some("flu".to_owned())] }),
        &[Kept],
    ),
    ("a mixture of more than it holds", shares, |w| asked(w, Guarantee::LDiversity { l: 3 }), &[Kept]),
    (
        "a mixture that is said of every bucket",
        shares,
        |w| w.publication.method_details = method_details(&[&[0], &[1, 2, 3]], SlicedDiversity::Bucket),
        &[Guards, Gnf],
    ),
    (
        "a mixture that is said to guard",
        shares,
        |w| {
            let guard = guard(&[0, 1, 2], Protected::Attribute(Attr(3)), 2);
            w.publication.tables[0].protection = TableProtection::Guarding(vec![guard]);
        },
        &[Kept, Guards],
    ),
    ("a mixture next to another table", shares, |w| w.plain(&[0]), &[Columns, Guards, Gnf]),
    ("a mixture of other buckets", shares, |w| relabel(w, "t1.c2.csv", &[1, 2, 3], 0, "2"), &[Content, Buckets]),
    (
        "a mixture as a guardian",
        shares,
        |w| w.publication.rules[0].enforced_by = guardian("t1", &[0, 1, 2]),
        &[Gnf, Guards],
    ),
    (
        "a mixture that is asked for more than it claims",
        shares,
        |w| w.submitted[0].guarantee = Guarantee::LDiversity { l: 3 },
        &[Gnf],
    ),
    (
        "a mixture in which a value can be ruled out",
        || mixture("5/2", SlicedDiversity::Mixture),
        |w| w.excludable.push(ExcludedValues { attribute: Attr(3), values: vec![Some("0".to_owned())] }),
        &[Kept],
    ),
];

#[test]
fn verify_faults_in_columns_fails() {
    for fixture in [bucket, shares] {
        for (original, witness) in [(true, true), (true, false), (false, false)] {
            let report = fixture().verify_with(original, witness);
            assert!(report.verified(), "{original} {witness}: {:?}", report.checks);
        }
    }
    assert!(FAULTS.iter().filter(|(.., checks)| !checks.is_empty()).count() >= 8);
    for (name, fixture, plant, checks) in FAULTS {
        let mut fixture = fixture();
        plant(&mut fixture);
        let failed = failed(&fixture.verify());
        assert_eq!(failed.is_empty(), checks.is_empty(), "{name}: {failed:?}");
        for check in *checks {
            assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
        }
    }
}

/// The same table, with a box of the first and of the last four rows in each column.
fn boxed() -> VerifierFixture {
    let mut fixture = bucket();
    fixture.publication.method_details = MethodDetails::Slicing {
        columns: vec![set(&[0, 1]), set(&[2, 3])],
        diversity: SlicedDiversity::Bucket,
        column_k: Some(4),
    };
    let boxes = vec![0, 0, 0, 0, 7, 7, 7, 7];
    fixture.boxes = Some(vec![boxes.clone(), boxes]);
    for part in &mut fixture.publication.tables[0].parts {
        let shared = part.columns.iter_mut().filter(|column| column.attribute != Attr(3));
        shared.for_each(|column| column.cells = CellContent::Interval);
    }
    for (file, at, texts) in [
        ("t1.qi.csv", 0, ["54..64", "22..52"]),
        ("t1.qi.csv", 1, ["F..M", "F..M"]),
        ("t1.c2.csv", 0, ["47302..47304", "47905..47906"]),
    ] {
        boxes_of(&mut fixture, file, at, &texts);
    }
    fixture
}

/// Gives the rows of each bucket one text in a column.
fn boxes_of(fixture: &mut VerifierFixture, file: &str, at: usize, texts: &[&str; 2]) {
    let rows = &mut fixture.files.get_mut(file).expect("a part").rows;
    for (label, cells) in rows.iter_mut() {
        cells[at] = Some(texts[usize::from(label == "2")].to_owned());
    }
    rows.sort();
}

fn cells_of(fixture: &mut VerifierFixture, part: usize, column: usize, cells: CellContent) {
    fixture.publication.tables[0].parts[part].columns[column].cells = cells;
}

type FaultOfBoxes = (&'static str, fn(&mut VerifierFixture), CheckName);

const FAULTS_OF_BOXES: &[FaultOfBoxes] = &[
    ("a box that is too wide", |w| boxes_of(w, "t1.qi.csv", 0, &["54..64", "22..64"]), Content),
    ("a box that is too narrow", |w| boxes_of(w, "t1.qi.csv", 0, &["54..64", "22..33"]), Content),
    ("ends that are no values", |w| boxes_of(w, "t1.qi.csv", 0, &["54..64", "20..52"]), Content),
    ("a raw cell", |w| boxes_of(w, "t1.c2.csv", 0, &["47302", "47905..47906"]), Content),
    ("boxes of each other", |w| boxes_of(w, "t1.qi.csv", 0, &["22..52", "54..64"]), Content),
    (
        "fewer rows in a box than is said",
        |w| match &mut w.publication.method_details {
            MethodDetails::Slicing { column_k, .. } => *column_k = Some(5),
            _ => panic!("sliced"),
        },
        Kept,
    ),
    (
        "nothing said of boxes",
        |w| match &mut w.publication.method_details {
            MethodDetails::Slicing { column_k, .. } => *column_k = None,
            _ => panic!("sliced"),
        },
        Guards,
    ),
    (
        "a mixture of boxes",
        |w| match &mut w.publication.method_details {
            MethodDetails::Slicing { diversity, .. } => *diversity = SlicedDiversity::Mixture,
            _ => panic!("sliced"),
        },
        Guards,
    ),
    ("boxes that are said to be sets", |w| cells_of(w, 0, 1, CellContent::Set), Guards),
    ("exact values next to boxes", |w| cells_of(w, 0, 1, CellContent::Exact), Guards),
    ("boxes of what is protected", |w| cells_of(w, 1, 1, CellContent::Interval), Guards),
    ("an exclusive table of boxes", |w| w.publication.tables[0].protection = TableProtection::Exclusive, Guards),
    ("an assignment without boxes", |w| w.boxes = None, Content),
    ("boxes of fewer rows", |w| w.boxes.as_mut().expect("boxes")[0].truncate(7), Content),
    ("another row in a box", |w| w.boxes.as_mut().expect("boxes")[1].swap(0, 7), Content),
    (
        "a row of a column in another bucket",
        |w| {
            let rows = &mut w.files.get_mut("t1.c2.csv").expect("a part").rows;
            "2".clone_into(&mut rows[0].0);
            rows.sort();
        },
        Content,
    ),
    (
        "a value that its box has too often",
        |w| {
            w.original[1][3] = Some("bronchitis".to_owned());
            w.original[2][3] = Some("bronchitis".to_owned());
            let rows = &mut w.files.get_mut("t1.c2.csv").expect("a part").rows;
            rows.iter_mut().filter(|(label, _)| label == "2").for_each(|(_, cells)| {
                if cells[1].as_deref() == Some("flu") {
                    cells[1] = Some("bronchitis".to_owned());
                }
            });
            rows.sort();
        },
        Kept,
    ),
];

#[test]
fn verify_faults_in_boxes_fails() {
    for (original, witness) in [(true, true), (true, false), (false, false)] {
        let report = boxed().verify_with(original, witness);
        assert!(report.verified(), "{original} {witness}: {:?}", report.checks);
        assert_eq!(report.tables[0].posteriors[&Attr(3)].worst, ShareOfRows::new(2, 4));
    }
    for (name, plant, check) in FAULTS_OF_BOXES {
        let mut fixture = boxed();
        plant(&mut fixture);
        let failed = failed(&fixture.verify());
        assert!(failed.contains(check), "{name}: {check:?} not among {failed:?}");
    }
    // without a witness: values that no box has
    let mut narrow = boxed();
    boxes_of(&mut narrow, "t1.qi.csv", 0, &["54..64", "22..33"]);
    assert!(failed(&narrow.verify_with(true, false)).contains(&Content));
    // exact columns that are claimed to be generalized
    let mut exact = bucket();
    exact.publication.method_details = MethodDetails::Slicing {
        columns: vec![set(&[0, 1]), set(&[2, 3])],
        diversity: SlicedDiversity::Bucket,
        column_k: Some(2),
    };
    assert!(failed(&exact.verify()).contains(&Columns));
}

/// At the bound, integers decide: one value has 3/8 of the weights, or half of them when sizes count.
#[test]
fn mixture_exactly_at_its_bound_passes() {
    use SlicedDiversity::{Mixture, MixtureWeighted};
    for (l, diversity, kept) in [
        ("2", Mixture, true),
        ("8/3", Mixture, true),
        ("2.6667", Mixture, false),
        ("3", Mixture, false),
        ("2", MixtureWeighted, true),
        ("2.0001", MixtureWeighted, false),
        ("8/3", MixtureWeighted, false),
    ] {
        let report = mixture(l, diversity).verify();
        // half of the rows of the column have the value
        let failed: Vec<CheckName> = failed(&report).into_iter().filter(|check| *check != Gnf).collect();
        assert_eq!(failed.is_empty(), kept, "{l} {diversity:?}: {:?}", report.checks);
    }
}

/// Claims about the rows of the original are not checked without it; figures of buckets are.
#[test]
fn guarantee_mixture_without_original_is_omitted() {
    let checks = |fixture: VerifierFixture, original| {
        let report = fixture.verify_with(original, original);
        report.checks.iter().map(|check| check.check).collect::<Vec<_>>()
    };
    assert!(checks(shares(), true).contains(&Kept) && !checks(shares(), false).contains(&Kept));
    assert!(checks(bucket(), false).contains(&Kept));
    let report = shares().verify_with(false, false);
    let posteriors = report.tables[0].posteriors[&Attr(3)];
    assert_eq!((posteriors.worst, posteriors.smallest_bucket), (ShareOfRows::new(3, 4), 2));
}
