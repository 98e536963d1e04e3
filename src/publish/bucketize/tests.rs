//! The vectors of the reference implementation, and random instances against the definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::sizes::one_is_valid;
use super::*;
use crate::control::Control;
use crate::microdata::{Arena, Attr, AttributeType, Codes, Column, ColumnAnnotations, Domain, ExactFraction, Table};
use crate::publication::{Guarantee, Ratio, SizeCount, Thresholds};
use crate::publish::assign::{BucketAssignment, SensitiveCodes};
use crate::random::{RandomStreams, ReleaseKey};

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn share(text: &str) -> ValueThreshold {
    text.parse::<Ratio>().unwrap().into()
}

fn classes(list: &Value) -> Vec<SizeCount> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|class| SizeCount::new(class[0].as_u64().unwrap(), class[1].as_u64().unwrap()))
        .collect()
}

/// The rest of a way to fill buckets: every bucket's counts, by round robin over the codes in their order.
fn dealt(filled: &[FilledBuckets]) -> Vec<Vec<u64>> {
    let mut all = Vec::new();
    for FilledBuckets { class: SizeCount { buckets, .. }, counts } in filled {
        let mut of = vec![vec![0; counts.len()]; *buckets as usize];
        let mut turn = 0;
        for (code, &count) in counts.iter().enumerate() {
            for _ in 0..count {
                of[turn][code] += 1;
                turn = (turn + 1) % *buckets as usize;
            }
        }
        all.extend(of);
    }
    all
}

/// Every bucket keeps every threshold, and all rows are somewhere.
fn assert_kept(filled: &[FilledBuckets], counts: &[u64], shares: &[ValueThreshold]) {
    for bucket in dealt(filled) {
        let size: u64 = bucket.iter().sum();
        assert!(filled.iter().any(|filled| filled.class.size == size));
        assert!(bucket.iter().zip(shares).all(|(count, share)| *count <= share.most(size)), "{bucket:?}");
    }
    for (code, &count) in counts.iter().enumerate() {
        assert_eq!(filled.iter().map(|filled| filled.counts[code]).sum::<u64>(), count);
    }
}

#[test]
fn settings_are_those_of_the_reference() {
    let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/bucketing.json")).unwrap();
    let control = Control::default();
    let (mut feasible, mut divided, mut least) = (0, 0, 0);
    for (number, case) in vectors.as_array().unwrap().iter().enumerate() {
        let counts = numbers(&case["o"]);
        let shares: Vec<ValueThreshold> =
            case["fprime"].as_array().unwrap().iter().map(|text| share(text.as_str().unwrap())).collect();
        let kinds = kinds(&counts, &shares);
        let (m, most) = (case["min_size"].as_u64().unwrap(), case["max_size"].as_u64().unwrap());

        let gamma = &case["gamma"];
        let pairs = SizePairs::new(share::rows(&kinds), gamma["S1"].as_u64().unwrap(), gamma["S2"].as_u64().unwrap());
        let numbers_at = |two: TwoSizes| SizeCount::new(two.first.buckets, two.second.buckets);
        let listed: Vec<SizeCount> =
            pairs.into_iter().flat_map(|p| (0..=p.last()).map(move |at| numbers_at(p.at(at)))).collect();
        assert_eq!(listed, classes(&gamma["pairs"]), "case {number}");
        let valid = pairs.and_then(|pairs| pairs.valid(&kinds, pairs.last()));
        let expected =
            gamma["valid"].as_array().map(|v| (v[0].as_i64().unwrap().into(), v[1].as_i64().unwrap().into()));
        assert_eq!(valid, expected, "case {number}");

        let found = [Pruning::Full, Pruning::Loss, Pruning::None]
            .map(|pruning| two_sizes(&kinds, m, most, pruning, &control).unwrap());
        assert_eq!((found[0], found[0]), (found[1], found[2]), "case {number}: pruning changes nothing");
        assert_eq!(found[0].is_some(), case["feasible"] == true, "case {number}");
        let Some(two) = found[0] else { continue };
        feasible += 1;
        assert_eq!(two.setting(), classes(&case["two_size"]["setting"]), "case {number}");
        assert_eq!(Some(loss(&two.setting())), case["two_size"]["loss"].as_u64(), "case {number}");
        if case["partition"].is_object() {
            divided += 1;
            let (smaller, larger) = multi::divide(&counts, &shares, two, &MoveOrder::Index.indices(&counts));
            assert_eq!(smaller, numbers(&case["partition"]["t1"]), "case {number}");
            assert_eq!(larger, numbers(&case["partition"]["t2"]), "case {number}");
        }
        let search =
            |order| MultiSizeSearch { shares: &shares, m, most, order, control: &control }.search(counts.clone());
        let multi = search(MoveOrder::Index).unwrap().unwrap();
        let reference = case["multi_size_index_order"]["setting"].as_array().unwrap();
        let reference: Vec<FilledBuckets> = reference
            .iter()
            .map(|of| FilledBuckets {
                class: SizeCount::new(of[0].as_u64().unwrap(), of[1].as_u64().unwrap()),
                counts: numbers(&of[2]),
            })
            .collect();
        assert_eq!(multi, reference, "case {number}");
        let optimal = case["optimal_loss"].as_u64().unwrap();
        let falling = MultiSizeSearch { shares: &shares, m, most, order: MoveOrder::Falling, control: &control };
        let (best, bound) = falling.best(&counts).unwrap();
        let best = best.unwrap();
        assert!(bound.unwrap() <= optimal, "case {number}: {bound:?} is no bound on {optimal}");
        assert!(
            FilledBuckets::loss(&best) <= FilledBuckets::loss(&falling.search(counts.clone()).unwrap().unwrap()),
            "case {number}"
        );
        least += u32::from(FilledBuckets::loss(&best) == optimal);
        for filled in [multi::fill_two(&counts, &shares, two), best, multi] {
            assert_kept(&filled, &counts, &shares);
            assert!(FilledBuckets::loss(&filled) >= optimal, "case {number}");
        }
        let proposal = optimal::propose(&kinds, m, most, None, &control).unwrap();
        assert!(proposal.lower_bound.unwrap() <= optimal, "case {number}: {proposal:?}");
        let setting = proposal.setting.unwrap();
        assert_eq!(loss(&setting), optimal, "case {number}: {setting:?}");
        assert_kept(&fill(&counts, &shares, &setting, &control).unwrap().unwrap(), &counts, &shares);
    }
    assert!(feasible > 100 && divided > 40, "{feasible} {divided}");
    // by halves alone it is seven of ten to nine of ten
    assert!(10 * least > 9 * feasible, "{least} of {feasible} lose least");
}

/// Example 4.20, restored: the numbers that the text keeps.
#[test]
fn fifty_records_come_in_eight_buckets() {
    let counts = [7, 7, 7, 7, 7, 7, 3, 3, 2];
    let shares: Vec<ValueThreshold> = ["1/6"; 6].iter().chain(&["1/3", "1/3", "1/7"]).map(|text| share(text)).collect();
    let two = TwoSizes { first: SizeCount::new(6, 6), second: SizeCount::new(7, 2) };
    assert!(two_are_valid(&kinds(&counts, &shares), two.first, two.second));
    let (smaller, larger) = multi::divide(&counts, &shares, two, &MoveOrder::Index.indices(&counts));
    assert_eq!(smaller, [5, 5, 5, 5, 5, 5, 3, 3, 0]);
    assert_eq!(larger, [2, 2, 2, 2, 2, 2, 0, 0, 2]);
    assert_kept(&multi::fill_two(&counts, &shares, two), &counts, &shares);
}

/// Example 5.32, restored: three sizes need a flow.
#[test]
fn conditions_for_two_sizes_do_not_carry_over_to_three() {
    let mut counts = vec![5; 10];
    counts.push(60);
    let shares: Vec<ValueThreshold> = ["1/6"; 10].iter().chain(&["1"]).map(|text| share(text)).collect();
    let control = Control::default();
    assert_eq!(
        fill(&counts, &shares, &[SizeCount::new(4, 10), SizeCount::new(5, 8), SizeCount::new(30, 1)], &control)
            .unwrap(),
        None
    );
    assert!(fill(&counts, &shares, &[SizeCount::new(11, 10)], &control).unwrap().is_some());
}

#[test]
fn a_threshold_is_kept_to_the_last_row() {
    // 1/3 of 3 rows is one row
    let counts = [2, 2, 2];
    let two = |text: &str| {
        let kinds = kinds(&counts, &[share(text); 3]);
        two_sizes(&kinds, 1, 3, Pruning::Full, &Control::default()).unwrap()
    };
    assert_eq!(two("1/3").unwrap().setting(), [SizeCount::new(3, 2)]);
    assert_eq!(two("0.333333333"), None);
}

/// Whether buckets of these sizes can be filled: every way to fill the first, and the rest of the others.
fn by_trying(left: &[u64], shares: &[ValueThreshold], sizes: &[u64]) -> bool {
    let Some((&size, rest)) = sizes.split_first() else { return left.iter().all(|count| *count == 0) };
    fn into(
        left: &[u64],
        shares: &[ValueThreshold],
        size: u64,
        room: u64,
        at: usize,
        taken: &mut Vec<u64>,
        rest: &[u64],
    ) -> bool {
        if at == left.len() {
            let after: Vec<u64> = left.iter().zip(taken.iter()).map(|(all, took)| all - took).collect();
            return room == 0 && by_trying(&after, shares, rest);
        }
        (0..=left[at].min(shares[at].most(size)).min(room)).any(|take| {
            taken.push(take);
            let found = into(left, shares, size, room - take, at + 1, taken, rest);
            taken.pop();
            found
        })
    }
    into(left, shares, size, size, 0, &mut Vec::new(), rest)
}

fn instance() -> impl Strategy<Value = (Vec<u64>, Vec<ValueThreshold>)> {
    let value = (1u64..5, 1u64..6, 1u64..8);
    prop::collection::vec(value, 1..5).prop_map(|values| {
        let counts = values.iter().map(|(count, ..)| *count).collect();
        let part = |&(_, a, b): &(u64, u64, u64)| ValueThreshold::from(Ratio::new(a.min(b), b).unwrap());
        (counts, values.iter().map(part).collect())
    })
}

proptest! {
    #[test]
    fn a_setting_is_filled_where_it_can_be((counts, shares) in instance(), sizes in prop::collection::vec(1u64..5, 3)) {
        let rows: u64 = counts.iter().sum();
        let mut left = rows;
        let mut listed: BTreeMap<u64, u64> = BTreeMap::new();
        for size in sizes.iter().cycle().take(60) {
            if left >= *size {
                *listed.entry(*size).or_default() += 1;
                left -= size;
            }
        }
        prop_assume!(left == 0);
        let setting: Vec<SizeCount> = listed.into_iter().map(|(size, buckets)| SizeCount { size, buckets }).collect();
        let each: Vec<u64> = setting.iter().flat_map(|class| vec![class.size; class.buckets as usize]).collect();
        let tried = by_trying(&counts, &shares, &each);
        let filled = fill(&counts, &shares, &setting, &Control::default()).unwrap();
        prop_assert_eq!(filled.is_some(), tried);
        if let Some(filled) = filled {
            assert_kept(&filled, &counts, &shares);
        }
        let kinds = kinds(&counts, &shares);
        match setting[..] {
            [only] => prop_assert_eq!(one_is_valid(&kinds, only), tried),
            [first, second] => prop_assert_eq!(two_are_valid(&kinds, first, second), tried),
            _ => {}
        }
    }

    #[test]
    fn rows_are_dealt_as_it_was_decided((counts, shares) in instance(), key: u8) {
        let control = Control::default();
        let Some(filled) = (MultiSizeSearch { shares: &shares, m: 1, most: 12, order: MoveOrder::Falling, control: &control })
            .search(counts.clone()).unwrap() else { return Ok(()) };
        let rows: Vec<u32> = (0..).zip(&counts).flat_map(|(code, &count)| vec![code; count as usize]).collect();
        let codes = Codes::collect(counts.len(), rows.clone().into_iter());
        let mut stream = RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32])).stream("test");
        let placed = place(&codes, counts.len(), &filled, &mut stream, &control).unwrap();
        let mut buckets = vec![vec![0_u64; counts.len()]; placed.buckets as usize];
        for (&bucket, &code) in placed.bucket_of.iter().zip(&rows) {
            buckets[bucket as usize][code as usize] += 1;
        }
        let mut sizes: Vec<u64> = Vec::new();
        for bucket in &buckets {
            let size = bucket.iter().sum();
            sizes.push(size);
            prop_assert!(bucket.iter().zip(&shares).all(|(count, share)| *count <= share.most(size)));
        }
        sizes.sort_unstable();
        let mut decided: Vec<u64> =
            filled.iter().flat_map(|filled| vec![filled.class.size; filled.class.buckets as usize]).collect();
        decided.sort_unstable();
        prop_assert_eq!(sizes, decided);
    }
}

/// Two attributes and a sensitive one: everybody with the first value of the first attribute lacks the last sensitive value.
#[test]
fn counterfeits_are_values_that_nothing_speaks_against() {
    let column = |values: usize, codes: Vec<u32>| {
        let mut arena = Arena::default();
        (0..values).for_each(|value| arena.push(format!("v{value}").as_bytes()));
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        Column { domain, codes: Codes::collect(values, codes.into_iter()) }
    };
    let rows = 400_u32;
    let first: Vec<u32> = (0..rows).map(|row| row % 2).collect();
    let sensitive: Vec<u32> =
        (0..rows).map(|row| if row % 2 == 0 { row / 2 % 4 } else { [0, 1, 2, 3, 4][(row / 2 % 5) as usize] }).collect();
    let table = Table::new(vec!["a".into(), "s".into()], vec![column(2, first.clone()), column(5, sensitive.clone())]);
    // buckets of two rows with the same first value
    let bucket_of: Vec<u32> = (0..rows).map(|row| row / 4 * 2 + row % 2).collect();
    let draw = |number: u32, key: u8| {
        let mut stream = RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32])).stream("test");
        let control = Control::default();
        let mut draw = counterfeits::CounterfeitDraw::new(&table, Attr(1), &mut stream, &control).unwrap();
        draw.draw(&BucketAssignment { bucket_of: bucket_of.clone(), buckets: rows / 2 }, number).unwrap()
    };
    let drawn = draw(2, 1);
    assert_eq!((drawn.values.len() as u32, drawn.seen_through), (rows, 0));
    for bucket in 0..rows / 2 {
        let real: Vec<u32> =
            (0..rows as usize).filter(|&row| bucket_of[row] == bucket).map(|row| sensitive[row]).collect();
        let fakes: Vec<u32> = drawn.values.iter().filter(|of| of.bucket == bucket).map(|of| of.code).collect();
        assert!(fakes.len() == 2 && fakes[0] != fakes[1] && fakes.iter().all(|code| !real.contains(code)));
        assert!(bucket % 2 == 1 || !fakes.contains(&4), "nobody with that value has it");
    }
    // three are not there without the unlikely one
    assert_eq!(draw(3, 1).seen_through, u64::from(rows / 4));
    // by the key alone
    assert_eq!(draw(1, 5), draw(1, 5));
    assert_ne!(draw(1, 5), draw(1, 6));
}

/// How often the occupations of Adult occur.
const OCCUPATIONS: [u64; 14] = [6020, 6008, 5984, 5540, 5408, 4808, 2970, 2316, 2046, 1480, 1420, 976, 232, 14];

/// Thresholds of `theta` times a value's share, and 0.02.
fn by_frequency(theta: &str, counts: &[u64]) -> Vec<ValueThreshold> {
    let mut arena = Arena::default();
    (0..counts.len()).for_each(|value| arena.push(format!("v{value:02}").as_bytes()));
    let domain = Domain::from_sorted(AttributeType::Text, false, arena);
    let ratio = |text: &str| text.parse::<Ratio>().unwrap();
    let linear = Thresholds::Linear { theta: ratio(theta), c: ratio("0.02"), overrides: BTreeMap::new() };
    share::shares(&linear, &domain, counts).unwrap()
}

/// What two and many sizes lose, and what is proved of any: two may lose three times as much, and no two lose less.
#[test]
fn occupations_lose_little_more_than_any_buckets_must() {
    let control = Control::default();
    for (theta, two, many, least) in [
        ("2", 1_033_209, 524_338, 523_326),
        ("4", 572_951, 229_003, 229_003),
        ("8", 292_920, 97_741, 97_739),
        ("16", 132_171, 40_361, 40_361),
        ("32", 44_649, 18_994, 18_994),
    ] {
        let shares = by_frequency(theta, &OCCUPATIONS);
        let kinds = kinds(&OCCUPATIONS, &shares);
        let m = kinds.iter().map(|kind| kind.share.smallest_bucket()).min().unwrap();
        let multi = MultiSizeSearch { shares: &shares, m, most: 50, order: MoveOrder::Falling, control: &control };
        let (best, bound) = multi.best(&OCCUPATIONS).unwrap();
        let best = best.unwrap();
        assert_kept(&best, &OCCUPATIONS, &shares);
        let found = two_sizes(&kinds, m, 50, Pruning::Full, &control).unwrap().unwrap().setting();
        assert_eq!((loss(&found), bound.unwrap()), (two, least), "theta {theta}");
        assert!(FilledBuckets::loss(&best) <= many, "theta {theta}: {}", FilledBuckets::loss(&best));
        assert!(100 * many <= 105 * least);
        assert_eq!(cheaper_two(&OCCUPATIONS, &shares, two), None, "theta {theta}");
        assert_eq!(cheaper_two(&OCCUPATIONS, &shares, two + 1).map(|setting| loss(&setting)), Some(two));
    }
}

/// Buckets of two sizes up to 50 that lose less, by trying all numbers of buckets: those of each size, and of both, have values enough
/// (Hall).
fn cheaper_two(counts: &[u64], shares: &[ValueThreshold], than: u64) -> Option<[SizeCount; 2]> {
    let rows: u64 = counts.iter().sum();
    let enough = |classes: &[SizeCount]| {
        let room =
            |share: &ValueThreshold| classes.iter().map(|class| share.most(class.size) * class.buckets).sum::<u64>();
        let held: u64 = counts.iter().zip(shares).map(|(count, share)| room(share).min(*count)).sum();
        held >= classes.iter().map(|class| class.rows()).sum::<u64>()
    };
    for larger in 2..=50 {
        for buckets in 0..=rows / larger {
            for smaller in (1..larger).filter(|smaller| (rows - larger * buckets).is_multiple_of(*smaller)) {
                let fewer = (rows - larger * buckets) / smaller;
                let both = [SizeCount::new(smaller, fewer), SizeCount::new(larger, buckets)];
                if loss(&both) < than && enough(&both) && enough(&both[..1]) && enough(&both[1..]) {
                    return Some(both);
                }
            }
        }
    }
    None
}

#[test]
fn optimal_buckets_are_found_from_known_ones() {
    let control = Control::default();
    let shares = by_frequency("2", &OCCUPATIONS);
    let kinds = kinds(&OCCUPATIONS, &shares);
    let multi = MultiSizeSearch { shares: &shares, m: 4, most: 50, order: MoveOrder::Falling, control: &control };
    let known: Vec<SizeCount> =
        multi.best(&OCCUPATIONS).unwrap().0.unwrap().iter().map(|filled| filled.class).collect();
    let proposal = optimal::propose(&kinds, 4, 50, Some(&known), &control).unwrap();
    let setting = proposal.setting.unwrap();
    assert_kept(&fill(&OCCUPATIONS, &shares, &setting, &control).unwrap().unwrap(), &OCCUPATIONS, &shares);
    assert!(loss(&setting) <= 523_335 && proposal.lower_bound.unwrap() <= loss(&setting), "{}", loss(&setting));
}

#[test]
fn cancelled_search_stops() {
    let shares = by_frequency("2", &OCCUPATIONS);
    let kinds = kinds(&OCCUPATIONS, &shares);
    let control = Control::default();
    control.cancel();
    let multi = MultiSizeSearch { shares: &shares, m: 1, most: 50, order: MoveOrder::Falling, control: &control };
    assert!(multi.best(&OCCUPATIONS).is_err());
    assert!(columns::relax(&kinds, 1, 50, &control).is_err());
    assert!(optimal::propose(&kinds, 1, 50, None, &control).is_err());
}

/// Fifteen thousand values with as many thresholds, none of which fits into 200 rows: pairs of sizes up to 800 are too many to search.
#[test]
fn sizes_that_are_too_much_work_are_left_out() {
    let draw = |values: u32| {
        let mut arena = Arena::default();
        (0..values).for_each(|value| arena.push(format!("{value:05}").as_bytes()));
        let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
        let column = Column { domain, codes: Codes::collect(values as usize, 0..values) };
        let limits = (0..values)
            .map(|value| ExactFraction { numerator: u128::from(4_000_000 + value), denominator: 1_000_000_000 })
            .collect();
        let name = Thresholds::Uniform { l: 250 }.name();
        let values = SensitiveCodes::from(&column).on(&ColumnAnnotations::default().limited(*name.bytes(), limits));
        let threshold = "1/250".parse().unwrap();
        let declared_value = Guarantee::Thresholds { digest: name, least: threshold, most: threshold };
        let mut stream = RandomStreams::Keyed(ReleaseKey::from_bytes([1; 32])).stream("test");
        capped(&values, &[declared_value], &mut stream, &Control::default()).unwrap().map(|assigned| assigned.buckets)
    };
    assert_eq!(draw(15_000), None);
    assert_eq!(draw(500), Some(2));
}
