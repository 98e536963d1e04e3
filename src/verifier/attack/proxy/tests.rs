use super::distributions::RowDistributions;
use super::infer::{ProxyFinding, infer_by_proxy};
use crate::control::Control;
use crate::microdata::ColumnBuilder;
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::{CsvOptions, CsvReader};
use crate::microdata::{Attr, AttrSet};
use crate::publication::{Guarantee, Protected, RowMeaning, SubmittedRule};
use crate::verifier::attack::error::AttackError;
use crate::verifier::external::submission::Submission;
use crate::verifier::external::table::{ExternalPart, ExternalTable};

/// A part of the attributes a, b, s and p, from its CSV.
fn part(csv: &str) -> ExternalPart {
    let limits = IngestLimits::default();
    let mut reader = CsvReader::open(csv.as_bytes(), CsvOptions::default(), &limits).unwrap();
    let names = reader.names().to_vec();
    let mut builders: Vec<ColumnBuilder> = names.iter().map(|_| ColumnBuilder::new(&limits)).collect();
    while let Some(chunk) = reader.next_chunk().unwrap() {
        builders.iter_mut().zip(&chunk.columns).for_each(|(builder, column)| builder.push(column).unwrap());
    }
    let kinds = reader.kinds().to_vec();
    let (mut bucket, mut columns) = (None, Vec::new());
    for (name, (builder, kind)) in names.iter().zip(builders.into_iter().zip(kinds)) {
        let column = builder.finish(kind);
        match "absp".find(name.as_str()) {
            Some(at) => columns.push((Attr(at as u8), column)),
            None => bucket = Some(column),
        }
    }
    let rows = csv.lines().count() - 1;
    ExternalPart {
        name: "p".into(),
        meaning: RowMeaning::Tuples,
        rows,
        bucket,
        columns,
        cells: std::collections::BTreeMap::new(),
    }
}

fn table(parts: &[&str]) -> ExternalTable {
    ExternalTable { name: "t".into(), parts: parts.iter().map(|csv| part(csv)).collect() }
}

fn set(attrs: &[u8]) -> AttrSet {
    attrs.iter().map(|&attr| Attr(attr)).collect()
}

#[test]
fn row_distribution_bucketed_parts_matches_bucket_counts() {
    let original = part("a,b,s,p\n1,x,u,0\n1,y,v,0\n2,x,w,0\n2,y,u,0\n");
    // value 1 of a occurs twice in the first bucket of three and once in the second of two
    let tied = table(&["bucket,a\n7,1\n7,1\n7,2\n8,1\n8,2\n", "bucket,s\n7,u\n7,v\n7,v\n8,u\n8,w\n"]);
    let of = |table: &ExternalTable, known: &[u8], row: usize| {
        let found = RowDistributions::new(table, Attr(2), set(known), &original, &Control::default()).unwrap();
        found.of_row(row).iter().map(|&(code, share)| (code, (share * 30.0).round() as u32)).collect::<Vec<_>>()
    };
    // u: 2/3 * 1/3 + 1/3 * 1/2; v: 2/3 * 2/3; w: 1/3 * 1/2
    assert_eq!(of(&tied, &[0], 0), [(0, 12), (1, 13), (2, 5)]);
    // without a known attribute all rows are possible
    assert_eq!(of(&tied, &[1], 0), [(0, 12), (1, 12), (2, 6)]);
    let plain = table(&["a,s\n1,u\n1,v\n2,w\n"]);
    assert_eq!((of(&plain, &[0, 1], 1), of(&plain, &[0], 3)), (vec![(0, 15), (1, 15)], vec![(2, 30)]));
    // three parts, and a known attribute in the part of the sensitive one
    let three = table(&[
        "bucket,a\n1,1\n1,2\n2,1\n2,1\n",
        "bucket,b,s\n1,x,u\n1,y,v\n2,x,v\n2,x,w\n",
        "bucket,p\n1,0\n1,0\n2,0\n2,0\n",
    ]);
    // value 1 of a: one row of the first bucket, two of the second; value x of b: one and two rows
    assert_eq!(of(&three, &[0, 1], 0), [(0, 6), (1, 12), (2, 12)]);
    assert!(of(&table(&["a,s\n3,u\n"]), &[0], 0).is_empty());
}

/// Findings on rows with distinct a in buckets of two; p determines s, or is independent of it.
fn attacked(predicts: bool, l: u64) -> Vec<ProxyFinding> {
    let mut original = "a,b,s,p\n".to_owned();
    let (mut qi, mut sa, mut others) = ("bucket,a\n".to_owned(), "bucket,s\n".to_owned(), "bucket,p\n".to_owned());
    let mut second = "bucket,a\n".to_owned();
    for at in 0..400_u32 {
        let s = at % 8;
        let p = if predicts { s } else { (at / 8) % 8 };
        original += &format!("{at},x,s{s},p{p}\n");
        qi += &format!("{},{at}\n", at / 2);
        sa += &format!("{},s{s}\n", at / 2);
        // the other table groups other rows
        let bucket = if predicts { at / 8 * 4 + at % 4 } else { at % 200 };
        second += &format!("{bucket},{at}\n");
        others += &format!("{bucket},p{p}\n");
    }
    let tables = [table(&[&qi, &sa]), table(&[&second, &others])];
    let names: Vec<String> = ["a", "b", "s", "p"].map(str::to_owned).to_vec();
    let rule = SubmittedRule {
        pointer: "/rules/0".to_owned(),
        known: set(&[0, 1]),
        protects: Protected::Attribute(Attr(2)),
        guarantee: Guarantee::LDiversity { l },
    };
    let original = part(&original);
    let submission = Submission {
        tables: &tables,
        names: &names,
        rules: std::slice::from_ref(&rule),
        dependencies: &[],
        original: Some(&original),
        taxonomies: &[],
        thresholds: &[],
        exact: AttrSet::EMPTY,
    };
    let hash = |row: usize| (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    infer_by_proxy(&submission, &hash, &Control::default()).unwrap()
}

#[test]
fn proxy_that_predicts_the_sensitive_attribute_is_a_breach() {
    let found = attacked(true, 2);
    assert_eq!(found.len(), 1);
    let ProxyFinding { rule, attribute, table, sum, targets, breach } = found[0];
    assert_eq!((rule, attribute, table, breach), (0, Attr(3), 1, true));
    // the bucket of the other table has one of two candidates
    assert!(sum > 0.95 * targets as f64 && (150..250).contains(&targets), "{sum} of {targets}");
    let found = attacked(false, 2);
    assert!(!found[0].breach && (found[0].sum / targets as f64 - 0.5).abs() < 0.1, "{found:?}");
}

#[test]
fn proxy_attack_without_original_is_not_exact() {
    let submission = Submission {
        tables: &[],
        names: &[],
        rules: &[],
        dependencies: &[],
        original: None,
        taxonomies: &[],
        thresholds: &[],
        exact: AttrSet::EMPTY,
    };
    assert!(matches!(infer_by_proxy(&submission, &|_| 0, &Control::default()), Err(AttackError::NotExact)));
}
