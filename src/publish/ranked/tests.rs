use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::*;
use crate::control::Control;
use crate::microdata::formats::IngestLimits;
use crate::microdata::formats::csv::{CsvOptions, CsvReader, read_table};
use crate::microdata::{Attr, Table};
use crate::publication::{Guarantee, SizeCount};
use crate::publish::bucketize::FilledBuckets;
use crate::publish::input::AttributeBuckets;
use crate::random::ReleaseKey;

/// A cell in canonical order: missing first, numbers by value, texts by bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum OrderedCell {
    Missing,
    Number(i64),
    Text(String),
}

impl From<&Value> for OrderedCell {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Missing,
            Value::Number(number) => Self::Number(number.as_i64().unwrap()),
            other => Self::Text(other.as_str().unwrap().to_owned()),
        }
    }
}

impl OrderedCell {
    fn encoded(&self) -> String {
        match self {
            Self::Missing => encoded_cell(None),
            Self::Number(number) => encoded_cell(Some(&number.to_string())),
            Self::Text(text) => encoded_cell(Some(text)),
        }
    }
}

type TableRow = Vec<OrderedCell>;

/// Rows of two numbers as a table.
fn table(rows: &[TableRow]) -> Table {
    let text = |cell: &OrderedCell| match cell {
        OrderedCell::Number(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let lines = rows.iter().map(|row| format!("{},{}\n", text(&row[0]), text(&row[1])));
    let (csv, limits) = ("q,s\n".to_owned() + &lines.collect::<String>(), IngestLimits::default());
    let mut reader = CsvReader::open(csv.as_bytes(), CsvOptions::default(), &limits).unwrap();
    read_table(&mut reader, None, &limits).unwrap()
}

/// The bucket of each row: by the number of the row among equal ones, its keyed number, and its rank among the rows of its value.
fn assigned(rows: &[TableRow], sensitive: usize, key: &UseKey, plan: &RankedPlan) -> Vec<u64> {
    let values: BTreeSet<&OrderedCell> = rows.iter().map(|row| &row[sensitive]).collect();
    let codes: BTreeMap<&OrderedCell, u32> = values.into_iter().zip(0..).collect();
    let mut copies: BTreeMap<&TableRow, u64> = BTreeMap::new();
    let mut ranked: BTreeMap<u32, Vec<(u64, &TableRow, u64, usize)>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        let copy = copies.entry(row).or_default();
        *copy += 1;
        let cells: String = row.iter().map(OrderedCell::encoded).collect();
        let text = format!("{}{cells}{}", key.digits(), encoded_cell(Some(&copy.to_string())));
        let first: [u8; 8] = Sha256::digest(text)[..8].try_into().unwrap();
        ranked.entry(codes[&row[sensitive]]).or_default().push((u64::from_be_bytes(first) >> 4, row, *copy, place));
    }
    let mut buckets = vec![0; rows.len()];
    for (value, mut ranked) in ranked {
        ranked.sort();
        for (rank, (.., place)) in (0..).zip(ranked) {
            let goes = |segment: &&Segment| segment.value == value && (segment.first..segment.end).contains(&rank);
            let segment = plan.segments.iter().find(goes).unwrap();
            buckets[place] = segment.base + (segment.position + rank - segment.first) % segment.buckets;
        }
    }
    buckets
}

#[derive(Deserialize)]
struct RankedVector {
    name: String,
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
    sensitive: String,
    l: Option<u64>,
    release_key: String,
    segments: Vec<VectorSegment>,
    label_map: (u64, u64),
    qi: Vec<Vec<Value>>,
    sa: Vec<(u64, Value)>,
}

#[derive(Deserialize)]
struct VectorSegment {
    v: String,
    lo: u64,
    hi: u64,
    pos: u64,
    base: u64,
    nb: u64,
}

fn key(digits: &str) -> ReleaseKey {
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    ReleaseKey::from_bytes(std::array::from_fn(byte))
}

impl RankedVector {
    fn plan(&self, rows: &[TableRow], sensitive: usize) -> RankedPlan {
        let mut counts: BTreeMap<&OrderedCell, u64> = BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(&row[sensitive]).or_default() += 1);
        let codes: BTreeMap<String, u32> = counts.keys().map(|cell| cell.encoded()).zip(0..).collect();
        let segment = |of: &VectorSegment| {
            let value = codes[&of.v];
            Segment { value, first: of.lo, end: of.hi, position: of.pos, base: of.base, buckets: of.nb }
        };
        let (factor, shift) = self.label_map;
        let segments: Vec<Segment> = self.segments.iter().map(segment).collect();
        let buckets = segments.iter().map(|segment| segment.base + segment.buckets).max().unwrap();
        let expected = RankedPlan { segments, labels: LabelMap { factor, shift, buckets } };
        let counts: Vec<u64> = counts.into_values().collect();
        let Some(l) = self.l else {
            let plan = place_filled(&classes(&expected.segments, counts.len()), &key(&self.release_key), "t1");
            assert_eq!(plan, expected, "{}", self.name);
            return plan;
        };
        let plan = plan_buckets(&counts, &[Guarantee::LDiversity { l }], &key(&self.release_key), "t1").unwrap();
        assert_eq!(plan, expected, "{}", self.name);
        plan
    }
}

/// The classes of the buckets of a plan, with the rows of each value in them.
fn classes(segments: &[Segment], values: usize) -> Vec<FilledBuckets> {
    let filled = |class: &[Segment]| {
        let mut counts = vec![0; values];
        class.iter().for_each(|segment| counts[segment.value as usize] += segment.end - segment.first);
        let size = counts.iter().sum::<u64>() / class[0].buckets;
        FilledBuckets { class: SizeCount { size, buckets: class[0].buckets }, counts }
    };
    segments.chunk_by(|one, other| one.base == other.base).map(filled).collect()
}

#[test]
fn parts_are_those_of_the_vectors() {
    let vectors: Vec<RankedVector> = serde_json::from_str(include_str!("../../../tests/vectors/ranked.json")).unwrap();
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let cells = |row: &Vec<Value>| row.iter().map(OrderedCell::from).collect::<TableRow>();
        let rows: Vec<TableRow> = vector.rows.iter().map(cells).collect();
        let sensitive = vector.names.iter().position(|name| *name == vector.sensitive).unwrap();
        let plan = vector.plan(&rows, sensitive);
        let use_key = UseKey::of_ranks(&key(&vector.release_key), "t1");
        let labels: Vec<u64> =
            assigned(&rows, sensitive, &use_key, &plan).iter().map(|&b| plan.labels.label(b)).collect();
        let known = |row: &TableRow| {
            row.iter()
                .enumerate()
                .filter(|(at, _)| *at != sensitive)
                .map(|(_, cell)| cell.clone())
                .collect::<TableRow>()
        };
        let mut qi: Vec<(u64, TableRow)> = labels.iter().zip(&rows).map(|(&l, row)| (l, known(row))).collect();
        let mut sa: Vec<(u64, OrderedCell)> =
            labels.iter().zip(&rows).map(|(&l, row)| (l, row[sensitive].clone())).collect();
        qi.sort();
        sa.sort();
        let expected: Vec<(u64, TableRow)> =
            vector.qi.iter().map(|row| (row[0].as_u64().unwrap(), cells(&row[1..].to_vec()))).collect();
        assert_eq!(qi, expected, "{}", vector.name);
        let expected: Vec<(u64, OrderedCell)> = vector.sa.iter().map(|(l, v)| (*l, OrderedCell::from(v))).collect();
        assert_eq!(sa, expected, "{}", vector.name);
    }
}

/// The contents of all buckets, one by one.
fn literal(segments: &[Segment]) -> BTreeMap<BucketContent, u64> {
    let mut buckets: BTreeMap<u64, BTreeMap<u32, u64>> = BTreeMap::new();
    for segment in segments {
        for at in 0..segment.end - segment.first {
            let bucket = segment.base + (segment.position + at) % segment.buckets;
            *buckets.entry(bucket).or_default().entry(segment.value).or_default() += 1;
        }
    }
    let mut found = BTreeMap::new();
    buckets.into_values().for_each(|content| *found.entry(content.into_iter().collect()).or_default() += 1);
    found
}

proptest! {
    #[test]
    fn contents_are_those_of_literal_buckets(counts in prop::collection::vec(1u64..30, 1..8), buckets in 1u64..20) {
        let rows: u64 = counts.iter().sum();
        prop_assume!(buckets <= rows);
        let dealt: Vec<(u32, u64)> = (0..).zip(counts.iter().copied()).collect();
        let segments = deal(&dealt, buckets);
        let found = contents(&segments);
        prop_assert!(found.len() <= 2 * counts.len() + 1);
        prop_assert_eq!(found, literal(&segments));
    }

    #[test]
    fn buckets_of_planned_sizes_hold_what_was_planned(
        sizes in prop::collection::vec((1u64..7, 0u64..6), 1..4), spread in prop::collection::vec(0usize..5, 150),
    ) {
        prop_assume!(sizes.iter().any(|(_, buckets)| *buckets > 0));
        // each class has a value for each of its rows, drawn from five
        let mut spread = spread.into_iter();
        let fill = |&(size, buckets): &(u64, u64)| {
            let mut counts = vec![0; 5];
            spread.by_ref().take((size * buckets) as usize).for_each(|value| counts[value] += 1);
            FilledBuckets { class: SizeCount { size, buckets }, counts }
        };
        let filled: Vec<FilledBuckets> = sizes.iter().map(fill).collect();
        let plan = place_filled(&filled, &ReleaseKey::from_bytes([7; 32]), "t1");
        let found = contents(&plan.segments);
        prop_assert_eq!(&found, &literal(&plan.segments));
        prop_assert_eq!(plan.buckets(), sizes.iter().map(|(_, buckets)| buckets).sum::<u64>());
        let mut of_size: BTreeMap<u64, u64> = BTreeMap::new();
        found.iter().for_each(|(content, number)| *of_size.entry(content.iter().map(|of| of.1).sum()).or_default() += number);
        let mut planned: BTreeMap<u64, u64> = BTreeMap::new();
        sizes.iter().filter(|(_, buckets)| *buckets > 0).for_each(|(size, buckets)| *planned.entry(*size).or_default() += buckets);
        prop_assert_eq!(of_size, planned);
        // the ranks of a value go to one bucket each
        for value in 0..5 {
            let rows: u64 = filled.iter().filter(|of| of.class.buckets > 0).map(|of| of.counts[value]).sum();
            let mut ranges: Vec<(u64, u64)> =
                plan.segments.iter().filter(|of| of.value as usize == value).map(|of| (of.first, of.end)).collect();
            ranges.sort_unstable();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
            prop_assert_eq!(ranges.last().map_or(0, |range| range.1), rows);
        }
    }

    #[test]
    fn eligible_values_get_as_many_diverse_buckets_as_fit(counts in prop::collection::vec(0u64..30, 1..9), l in 2u64..6) {
        let rows: u64 = counts.iter().sum();
        let eligible = rows > 0 && counts.iter().all(|count| count * l <= rows);
        let plan = plan_buckets(&counts, &[Guarantee::LDiversity { l }], &ReleaseKey::from_bytes([7; 32]), "t1");
        prop_assert_eq!(plan.is_ok(), eligible);
        if let Ok(plan) = plan {
            prop_assert_eq!(plan.buckets(), rows / l);
            for content in literal(&plan.segments).keys() {
                // a value at most once, so that at least l values are equally likely
                prop_assert!(content.len() as u64 >= l && content.iter().all(|(_, count)| *count == 1));
            }
        }
    }

    /// What tables are chosen by are the buckets that the engine then makes.
    #[test]
    fn rows_at_hand_get_the_buckets_of_the_engine(
        rows in prop::collection::vec((0i64..3, 0i64..4), 4..40), least in 1u64..3, byte: u8,
    ) {
        let mut rows: Vec<TableRow> =
            rows.iter().map(|&(q, s)| vec![OrderedCell::Number(q), OrderedCell::Number(s)]).collect();
        rows.sort();
        let mut counts: BTreeMap<&OrderedCell, u64> = BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(&row[1]).or_default() += 1);
        let (counts, key): (Vec<u64>, _) = (counts.into_values().collect(), ReleaseKey::from_bytes([byte; 32]));
        let guarantees = [Guarantee::DistinctLDiversity { l: least }];
        prop_assume!(counts.len() as u64 >= least);
        let plan = plan_buckets(&counts, &guarantees, &key, "s").unwrap();
        let expected = assigned(&rows, 1, &UseKey::of_attribute(&key, "s"), &plan);
        let table = table(&rows);
        let encoded = |attribute: Attr| {
            let cell = |value: Option<&[u8]>| encoded_cell(value.map(|value| std::str::from_utf8(value).unwrap()));
            RankingColumn { attribute, cells: table.domain(attribute).iter().map(cell).collect() }
        };
        let columns: Vec<RankingColumn> = table.attributes().iter().map(encoded).collect();
        let ranked = RankedRows::new(&table, &columns, &key);
        let found = ranked.of_attribute(Attr(1), &guarantees, &Control::default()).unwrap();
        prop_assert_eq!(u64::from(found.buckets), plan.buckets());
        prop_assert_eq!(found.bucket_of.into_iter().map(u64::from).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn labels_are_each_number_once(buckets in 1u64..200, byte: u8) {
        let map = LabelMap::draw(&ReleaseKey::from_bytes([byte; 32]), "t1", buckets);
        let labels: BTreeSet<u64> = (0..buckets).map(|bucket| map.label(bucket)).collect();
        prop_assert_eq!(labels.into_iter().collect::<Vec<_>>(), (1..=buckets).collect::<Vec<_>>());
    }

    #[test]
    fn encodings_of_other_rows_do_not_begin_alike(
        one in prop::collection::vec(prop::option::of("[-0-9:a]{0,4}"), 3),
        other in prop::collection::vec(prop::option::of("[-0-9:a]{0,4}"), 3),
    ) {
        let encoded = |row: &[Option<String>]| row.iter().map(|cell| encoded_cell(cell.as_deref())).collect::<String>();
        prop_assert_eq!(encoded(&one).starts_with(&encoded(&other)), one == other);
    }

    #[test]
    fn the_order_of_rows_changes_no_bucket(
        rows in prop::collection::vec((0i64..3, 0i64..3), 2..30), shift in 0usize..30, byte: u8,
    ) {
        let cells = |&(q, s): &(i64, i64)| vec![OrderedCell::Number(q), OrderedCell::Number(s)];
        let rows: Vec<TableRow> = rows.iter().map(cells).collect();
        let mut turned = rows.clone();
        turned.rotate_left(shift % rows.len());
        let mut counts: BTreeMap<&OrderedCell, u64> = BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(&row[1]).or_default() += 1);
        let counts: Vec<u64> = counts.into_values().collect();
        let key = ReleaseKey::from_bytes([byte; 32]);
        let plan = plan_buckets(&counts, &[Guarantee::DistinctLDiversity { l: 1 }], &key, "t1").unwrap();
        let picture = |rows: &[TableRow]| {
            let buckets = assigned(rows, 1, &UseKey::of_ranks(&key, "t1"), &plan);
            let mut picture: Vec<(u64, TableRow)> = buckets.into_iter().zip(rows.to_vec()).collect();
            picture.sort();
            picture
        };
        prop_assert_eq!(picture(&rows), picture(&turned));
    }
}
