//! The poster's table, the vectors, and small tables against all worlds.

mod literal;

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::cover::{SlotValues, covered};
use super::mask::ValueMask;
use super::*;
use crate::control::Control;
use crate::microdata::{Arena, Attr, AttrSet, AttributeType, Codes, Column, Domain};
use crate::problem::Kind;
use crate::publication::BreachKind;
use crate::publication::{Guarantee, Protected, SubmittedRule};
use crate::publish::assign::largest_l;
use crate::random::{RandomStream, RandomStreams, ReleaseKey};
use crate::spec::{BreachPolicy, DecomposeSpec};

fn stream(key: u8) -> RandomStream {
    RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32])).stream("test")
}

fn counts(codes: &[u32]) -> Vec<u64> {
    let mut counts = vec![0; codes.iter().max().map_or(0, |&most| most as usize + 1)];
    codes.iter().for_each(|&code| counts[code as usize] += 1);
    counts
}

/// Groups by largest-l on the primary attribute.
fn grouped(sensitive: &SensitiveCodesByRow, l: u64, key: u8) -> RowsByGroup {
    let values = counts(&sensitive.primary).len();
    let mut arena = Arena::default();
    (0..values).for_each(|value| arena.push(format!("{value:03}").as_bytes()));
    let domain = std::sync::Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
    let column = Column { domain, codes: Codes::collect(values, sensitive.primary.iter().copied()) };
    let assigned = largest_l(&column, l, &mut stream(key), &Control::default()).unwrap();
    groups_of(&assigned.bucket_of, assigned.buckets)
}

/// Occupations nurse 0, police 1, cook 2, actor 3, clerk 4, and salaries.
fn poster() -> (SensitiveCodesByRow, RowsByGroup) {
    let sensitive =
        SensitiveCodesByRow { primary: vec![0, 0, 1, 2, 3, 3, 4, 4], others: vec![vec![1, 4, 8, 9, 2, 7, 8, 2]] };
    (sensitive, vec![vec![0, 4, 6, 2], vec![1, 5, 3, 7]])
}

fn set(values: &[u32]) -> CodeSet {
    values.iter().copied().collect()
}

#[test]
fn the_posters_table_is_as_its_restoration_says() {
    let (sensitive, groups) = poster();
    let control = Control::default();
    assert_eq!(optimal_l(&counts(&sensitive.primary)), 4);
    assert_eq!(optimal_l(&counts(&sensitive.others[0])), 4);
    let sets = sets_of(&sensitive, &groups);
    assert_eq!(sets, [[set(&[1, 2, 8])], [set(&[2, 4, 7, 9])]]);
    // the poster's noise is linked, and excluded by all worlds; 9 is not even linked; 7 survives
    let with = |noise: u32| {
        let mut sets = sets.clone();
        sets[0][0].insert(noise);
        let candidates = PossibleTuples::new(&sensitive, &groups, &sets, &control).unwrap();
        (unlinked(&sensitive, &groups, &sets), excludable(&candidates, &sets))
    };
    assert_eq!(with(4), (vec![], vec![(0, 0, 4)]));
    assert_eq!(with(9), (vec![(0, 0, 9)], vec![(0, 0, 9)]));
    assert_eq!(with(7), (vec![], vec![]));
    let noisy = swap_noise(&sensitive, groups.clone(), &[4], &mut stream(1), &control).unwrap();
    assert_eq!(noisy.noise, [NoiseValue { group: 0, attribute: 0, value: 7 }]);
    assert_eq!(noisy.sets, [[set(&[1, 2, 7, 8])], [set(&[2, 4, 7, 9])]]);
    // with the sensitive table, the sets reveal that two of four have 8
    let candidates = PossibleTuples::new(&sensitive, &groups, &noisy.sets, &control).unwrap();
    let found = breaches(&candidates, &[4], 2);
    let kinds = |kind: BreachKind| found.iter().filter(move |breach| breach.kind == kind);
    assert!(kinds(BreachKind::Forced).all(|breach| breach.group == 0) && kinds(BreachKind::Forced).count() == 1);
    // police and cook have one row each; nurses of the second group earn 4 in every world
    assert!(kinds(BreachKind::Chain).any(|breach| (breach.group, breach.primary) == (0, Some(1))));
    assert!(kinds(BreachKind::Chain).any(|breach| (breach.group, breach.primary) == (1, Some(2))));
    assert!(kinds(BreachKind::Chain).any(|breach| (breach.group, breach.primary) == (1, Some(0))));
    assert!(kinds(BreachKind::Chain).all(|breach| breach.primary != Some(3)), "actors earn 2 or 7: {found:?}");
    assert_eq!(kinds(BreachKind::Exclusion).count(), 0);
    // exchanging rows of equal occupation, no value repeats, and no noise is needed
    let swapped = fresh_swap(&sensitive, groups.clone(), &control).unwrap();
    assert_eq!(repeat_free(&sensitive, &groups), [1]);
    assert_eq!(repeat_free(&sensitive, &swapped), [2]);
    let primaries = |groups: &RowsByGroup| -> Vec<BTreeSet<u32>> {
        groups.iter().map(|group| group.iter().map(|&row| sensitive.primary[row as usize]).collect()).collect()
    };
    assert_eq!(primaries(&swapped), primaries(&groups));
    assert!(swap_noise(&sensitive, swapped, &[4], &mut stream(1), &control).unwrap().noise.is_empty());
}

#[test]
fn what_the_vectors_exclude_is_excluded() {
    let vectors: Value = serde_json::from_str(include_str!("../../../../tests/vectors/gnf.json")).unwrap();
    let cases = vectors["e2"].as_array().unwrap();
    assert_eq!(cases.len(), 30);
    let number = |value: &Value| value.as_u64().unwrap() as u32;
    let mut some = 0;
    for (at, case) in cases.iter().enumerate() {
        let rows = case["rows"].as_array().unwrap();
        let sensitive = SensitiveCodesByRow {
            primary: rows.iter().map(|row| u32::from(row["p"].as_str().unwrap().as_bytes()[0])).collect(),
            others: vec![rows.iter().map(|row| number(&row["x"])).collect()],
        };
        let list = |value: &Value| value.as_array().unwrap().iter().map(number).collect::<Vec<u32>>();
        let groups: RowsByGroup = case["groups"].as_array().unwrap().iter().map(list).collect();
        let sets: PublishedSets =
            case["pub"].as_array().unwrap().iter().map(|of| vec![list(of).into_iter().collect()]).collect();
        let declared = |name: &str| {
            let mut declared: Vec<(usize, usize, u32)> = case[name]
                .as_array()
                .unwrap()
                .iter()
                .map(|pair| (number(&pair[0]) as usize, 0, number(&pair[1])))
                .collect();
            declared.sort_unstable();
            declared
        };
        let candidates = PossibleTuples::new(&sensitive, &groups, &sets, &Control::default()).unwrap();
        assert_eq!(excludable(&candidates, &sets), declared("excludable"), "case {at}");
        assert_eq!(unlinked(&sensitive, &groups, &sets), declared("e1"), "case {at}");
        some += declared("excludable").len();
    }
    assert!(some > 5, "{some}");
}

/// Enumerates all assignments of rows to places; `seen` gets each of them.
fn worlds(
    sensitive: &SensitiveCodesByRow,
    places: &[(usize, u32)],
    sets: &PublishedSets,
    assignment: &mut Vec<u32>,
    seen: &mut dyn FnMut(&[u32]),
) {
    let Some(&(group, truth)) = places.get(assignment.len()) else { return seen(assignment) };
    for row in 0..sensitive.rows() as u32 {
        let fits = sensitive.primary[row as usize] == sensitive.primary[truth as usize]
            && sensitive
                .others
                .iter()
                .zip(&sets[group])
                .all(|(codes, set)| set.position(codes[row as usize]).is_some());
        if fits && !assignment.contains(&row) {
            assignment.push(row);
            worlds(sensitive, places, sets, assignment, seen);
            assignment.pop();
        }
    }
}

/// Police earn 8 and 1, the nurse of the one group 1, the cook of the other 8; both groups list 1 and 8.
#[test]
fn values_without_noise_reveal_the_last_row() {
    let control = Control::default();
    let sensitive = SensitiveCodesByRow { primary: vec![0, 1, 0, 2], others: vec![vec![8, 1, 1, 8]] };
    let groups: RowsByGroup = vec![vec![0, 1], vec![2, 3]];
    let sets = sets_of(&sensitive, &groups);
    let chains = |candidates: &PossibleTuples<'_>| -> Vec<(usize, Option<u32>)> {
        let found = breaches(candidates, &[2], 2).into_iter();
        found
            .filter(|inferred_value| inferred_value.kind == BreachKind::Chain)
            .map(|inferred_value| (inferred_value.group, inferred_value.primary))
            .collect()
    };
    let all = || PossibleTuples::new(&sensitive, &groups, &sets, &control).unwrap();
    assert_eq!(chains(&all()), [(0, Some(1)), (1, Some(2))]);
    // somebody earns 8, and the nurse does not
    let inferred_value = all().covering(&[true], &control).unwrap();
    assert_eq!(chains(&inferred_value), [(0, Some(0)), (0, Some(1)), (1, Some(0)), (1, Some(2))]);
    // 8 may be noise
    assert_eq!(chains(&all().covering(&[false], &control).unwrap()), chains(&all()));
    // without the joint rows of police its salary is still what the nurse cannot earn
    let without = |left_out: &[u32]| {
        let candidates = all().without(&left_out.iter().copied().collect());
        chains(&candidates.covering(&[true], &control).unwrap())
    };
    assert_eq!(without(&[0]), [(0, Some(0)), (0, Some(1)), (1, Some(0)), (1, Some(2))]);
    assert_eq!(without(&[1, 2]), []);
}

fn sensitive(rows: &[(u32, u32, u32)]) -> SensitiveCodesByRow {
    SensitiveCodesByRow {
        primary: rows.iter().map(|row| row.0).collect(),
        others: vec![rows.iter().map(|row| row.1).collect(), rows.iter().map(|row| row.2).collect()],
    }
}

proptest! {
    #[test]
    fn possible_values_are_those_of_some_assignment(
        rows in prop::collection::vec((0_u32..3, 0_u32..3, 0_u32..2), 7),
        cut in 1_usize..7,
        more in prop::collection::vec((0_usize..2, 0_usize..2, 0_u32..3), 0..5),
    ) {
        let sensitive = sensitive(&rows);
        let groups: RowsByGroup = vec![(0..cut as u32).collect(), (cut as u32..7).collect()];
        let mut sets = sets_of(&sensitive, &groups);
        for (group, attribute, value) in more {
            sets[group][attribute].insert(value);
        }
        let places: Vec<(usize, u32)> =
            groups.iter().enumerate().flat_map(|(group, rows)| rows.iter().map(move |&row| (group, row))).collect();
        // per group and attribute the values; per place the values of each attribute
        let mut possible = vec![vec![BTreeSet::new(); 2]; 2];
        let mut at_place = vec![vec![BTreeSet::new(); 2]; 7];
        worlds(&sensitive, &places, &sets, &mut Vec::new(), &mut |assignment| {
            for (at, (&(group, _), &row)) in places.iter().zip(assignment).enumerate() {
                for attribute in 0..2 {
                    let value = sensitive.others[attribute][row as usize];
                    possible[group][attribute].insert(value);
                    at_place[at][attribute].insert(value);
                }
            }
        });
        let candidates = PossibleTuples::new(&sensitive, &groups, &sets, &Control::default()).unwrap();
        for (group, of_group) in possible.iter().enumerate() {
            for (attribute, values) in of_group.iter().enumerate() {
                prop_assert_eq!(&candidates.in_group(group, attribute), values);
            }
        }
        let found: BTreeSet<InferredBreach> = breaches(&candidates, &[2, 2], 2).into_iter().collect();
        for group in 0..2 {
            for attribute in 0..2 {
                let of_group: Vec<(u32, &BTreeSet<u32>)> = places
                    .iter()
                    .zip(&at_place)
                    .filter(|((of, _), _)| *of == group)
                    .map(|((_, truth), values)| (sensitive.primary[*truth as usize], &values[attribute]))
                    .collect();
                let breach = |kind, primary| found.contains(&InferredBreach { kind, group, attribute, primary });
                for &(primary, values) in &of_group {
                    prop_assert_eq!(breach(BreachKind::Chain, Some(primary)), values.len() < 2);
                    let left: BTreeSet<u32> =
                        of_group.iter().filter(|(other, _)| *other != primary).flat_map(|(_, values)| values.iter().copied()).collect();
                    prop_assert_eq!(breach(BreachKind::Exclusion, Some(primary)), left.len() < 2);
                }
                let forced = |value: u32| of_group.iter().filter(|(_, values)| values.len() == 1 && values.contains(&value)).count();
                let any = (0..3).any(|value| forced(value) * 2 > of_group.len());
                prop_assert_eq!(breach(BreachKind::Forced, None), any);
            }
        }
    }

    #[test]
    fn values_of_some_assignment_are_not_excluded(
        rows in prop::collection::vec((0_u32..3, 0_u32..3, 0_u32..2), 7),
        cut in 1_usize..7,
    ) {
        let sensitive = sensitive(&rows);
        let groups: RowsByGroup = vec![(0..cut as u32).collect(), (cut as u32..7).collect()];
        let sets = sets_of(&sensitive, &groups);
        let places: Vec<(usize, u32)> =
            groups.iter().enumerate().flat_map(|(group, rows)| rows.iter().map(move |&row| (group, row))).collect();
        let mut at_place = vec![vec![BTreeSet::new(); 2]; 7];
        let mut alike = vec![vec![0; 2]; 2];
        worlds(&sensitive, &places, &sets, &mut Vec::new(), &mut |assignment| {
            let of = |group: usize, attribute: usize| -> Vec<u32> {
                let here = places.iter().zip(assignment).filter(|((of, _), _)| *of == group);
                here.map(|(_, &row)| sensitive.others[attribute][row as usize]).collect()
            };
            let each = || (0..2).flat_map(|group| (0..2).map(move |attribute| (group, attribute)));
            if each().any(|(group, attribute)| set(&of(group, attribute)) != sets[group][attribute]) {
                return;
            }
            for (group, attribute) in each() {
                let values = of(group, attribute);
                let most = values.iter().map(|value| values.iter().filter(|other| *other == value).count()).max().unwrap_or(0);
                alike[group][attribute] = most.max(alike[group][attribute]);
            }
            for (of, &row) in at_place.iter_mut().zip(assignment) {
                (0..2).for_each(|attribute| { of[attribute].insert(sensitive.others[attribute][row as usize]); });
            }
        });
        let all = PossibleTuples::new(&sensitive, &groups, &sets, &Control::default()).unwrap();
        let inferred_value = all.covering(&[true; 2], &Control::default()).unwrap();
        for (group, of) in alike.iter().enumerate() {
            for (attribute, most) in of.iter().enumerate() {
                prop_assert!(*most <= inferred_value.most_alike(group, attribute));
            }
        }
        for fewest in 2..4 {
            let found = breaches(&inferred_value, &[2, 2], fewest);
            for chain in found.iter().filter(|inferred_value| inferred_value.kind == BreachKind::Chain) {
                let here = |(at, truth): &(usize, u32)| {
                    *at == chain.group && Some(sensitive.primary[*truth as usize]) == chain.primary
                };
                let place = places.iter().position(here).unwrap();
                prop_assert!(at_place[place][chain.attribute].len() < fewest, "{chain:?}");
            }
        }
    }

    #[test]
    fn noise_survives_and_groups_keep_their_bound(
        rows in prop::collection::vec((0_u32..6, 0_u32..5, 0_u32..4), 24),
        key in any::<u8>(),
    ) {
        let sensitive = sensitive(&rows);
        let l = optimal_l(&counts(&sensitive.primary));
        prop_assume!(l >= 2);
        let wanted: Vec<u64> = sensitive.others.iter().map(|codes| optimal_l(&counts(codes)).min(3)).collect();
        let control = Control::default();
        let groups = grouped(&sensitive, l, key);
        match swap_noise(&sensitive, groups.clone(), &wanted, &mut stream(key), &control) {
            Ok(noisy) => {
                let mut rows: Vec<u32> = noisy.groups.iter().flatten().copied().collect();
                rows.sort_unstable();
                prop_assert_eq!(rows, (0..24).collect::<Vec<u32>>());
                prop_assert_eq!(noisy.groups.len() + noisy.merged, groups.len());
                for (group, sets) in noisy.groups.iter().zip(&noisy.sets) {
                    prop_assert!(sets.iter().zip(&wanted).all(|(set, &wanted)| set.len() as u64 >= wanted));
                    let primaries: Vec<u32> = group.iter().map(|&row| sensitive.primary[row as usize]).collect();
                    let most = counts(&primaries).into_iter().max().unwrap_or(0);
                    prop_assert!(most * l <= group.len() as u64);
                }
                let candidates = PossibleTuples::new(&sensitive, &noisy.groups, &noisy.sets, &control).unwrap();
                prop_assert_eq!(excludable(&candidates, &noisy.sets), vec![]);
                // true values stay
                for (sets, truth) in noisy.sets.iter().zip(sets_of(&sensitive, &noisy.groups)) {
                    prop_assert!(sets.iter().zip(&truth).all(|(set, truth)| truth.as_slice().iter().all(|&code| set.position(code).is_some())));
                }
            }
            // one group of all rows has every value
            Err(error) => prop_assert!(false, "{error:?}"),
        }
    }

    #[test]
    fn choices_are_those_of_the_specification(
        rows in prop::collection::vec((0_u32..5, 0_u32..12, prop::sample::select(vec![0, 1, 2, 3, 2000, 3000])), 1..200),
        skewed in any::<bool>(),
        wanted in (1_u64..10, 1_u64..6),
        key in any::<u8>(),
    ) {
        // or each primary value goes with a few values of its own
        let own = |&(primary, first, second): &(u32, u32, u32)| (primary, if skewed { 3 * primary + first % 3 } else { first }, second);
        let sensitive = sensitive(&rows.iter().map(own).collect::<Vec<_>>());
        let l = optimal_l(&counts(&sensitive.primary));
        prop_assume!(l >= 2);
        let control = Control::default();
        let groups = grouped(&sensitive, l, key);
        let picked = fresh_pick(&sensitive, &groups, &mut stream(key), &control).unwrap();
        prop_assert_eq!(&picked, &literal::fresh_pick(&sensitive, &groups, &mut stream(key), &control).unwrap());
        let swapped = fresh_swap(&sensitive, groups.clone(), &control).unwrap();
        prop_assert_eq!(&swapped, &literal::fresh_swap(&sensitive, groups, &control).unwrap());
        let wanted = [wanted.0, wanted.1];
        let noisy = swap_noise(&sensitive, picked.clone(), &wanted, &mut stream(key), &control);
        match (noisy, literal::swap_noise(&sensitive, picked, &wanted, &mut stream(key), &control)) {
            (Ok(noisy), Ok(literally)) => {
                prop_assert_eq!(noisy.groups, literally.groups);
                let sets = noisy.sets.iter().map(|of| of.iter().map(|set| set.as_slice().iter().copied().collect()).collect());
                prop_assert_eq!(sets.collect::<Vec<Vec<BTreeSet<u32>>>>(), literally.sets);
                let values = |noise: &[NoiseValue]| noise.iter().map(|of| (of.attribute, of.value)).collect::<Vec<_>>();
                prop_assert_eq!(values(&noisy.noise), values(&literally.noise));
                prop_assert_eq!(noisy.merged, literally.merged);
            }
            (noisy, literally) => prop_assert_eq!(noisy.err(), literally.err()),
        }
    }

    #[test]
    fn covered_values_are_those_of_some_placement(
        counts in prop::collection::vec(1_usize..3, 1..5),
        fits in prop::collection::vec(prop::collection::vec(any::<bool>(), 4), 0..5),
    ) {
        let masks: Vec<ValueMask> = (0..counts.len())
            .map(|place| {
                let mut mask = ValueMask::none(fits.len());
                (0..fits.len()).filter(|&value| fits[value][place]).for_each(|value| mask.add(value));
                mask
            })
            .collect();
        // every choice of a place for each value
        let mut found: Option<Vec<Vec<bool>>> = None;
        let mut choice = vec![0; fits.len()];
        'choices: loop {
            let at = |place: usize| choice.iter().filter(|of| **of == place).count();
            let fit = choice.iter().zip(&fits).all(|(&place, fits)| fits[place]);
            if fit && (0..counts.len()).all(|place| at(place) <= counts[place]) {
                let found = found.get_or_insert_with(|| vec![vec![false; fits.len()]; counts.len()]);
                choice.iter().enumerate().for_each(|(value, &place)| found[place][value] = true);
                // a place with a free slot may have any other value, which leaves its own
                for place in (0..counts.len()).filter(|&place| at(place) < counts[place]) {
                    (0..fits.len()).filter(|&value| fits[value][place]).for_each(|value| found[place][value] = true);
                }
            }
            for at in 0.. {
                let Some(place) = choice.get_mut(at) else { break 'choices };
                *place = (*place + 1) % counts.len();
                if *place > 0 {
                    break;
                }
            }
        }
        let places: Vec<SlotValues<'_>> =
            counts.iter().zip(&masks).map(|(&count, values)| SlotValues { count, values }).collect();
        let left = covered(fits.len(), &places);
        let left = left.map(|left| left.iter().map(|mask| (0..fits.len()).map(|value| mask.has(value)).collect()).collect());
        prop_assert_eq!(left, found);
    }

    #[test]
    fn fresh_groups_have_the_same_primary_values_and_fewer_repeats(
        rows in prop::collection::vec((0_u32..6, 0_u32..8, 0_u32..6), 60),
        key in any::<u8>(),
    ) {
        let sensitive = sensitive(&rows);
        let l = optimal_l(&counts(&sensitive.primary));
        prop_assume!(l >= 2);
        let control = Control::default();
        let groups = grouped(&sensitive, l, key);
        let picked = fresh_pick(&sensitive, &groups, &mut stream(key), &control).unwrap();
        let swapped = fresh_swap(&sensitive, picked.clone(), &control).unwrap();
        let all = |groups: &RowsByGroup| groups.iter().map(|group| repeats(&sensitive, group)).sum::<usize>();
        prop_assert!(all(&swapped) <= all(&picked));
        for other in [&picked, &swapped] {
            let mut rows: Vec<u32> = other.iter().flatten().copied().collect();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..60).collect::<Vec<u32>>());
            for (before, after) in groups.iter().zip(other) {
                let primaries = |group: &[u32]| {
                    let mut values: Vec<u32> = group.iter().map(|&row| sensitive.primary[row as usize]).collect();
                    values.sort_unstable();
                    values
                };
                prop_assert_eq!(primaries(before), primaries(after));
            }
        }
    }
}

#[test]
fn fewer_values_repeat_in_fresh_groups() {
    let control = Control::default();
    let (mut plain, mut fresh) = (0, 0);
    for key in 0..30_u8 {
        let mut draw = stream(key);
        let rows: Vec<(u32, u32, u32)> = (0..60).map(|_| (draw.below(6), draw.below(8), draw.below(6))).collect();
        let sensitive = sensitive(&rows);
        let groups = grouped(&sensitive, optimal_l(&counts(&sensitive.primary)).max(1), key);
        let all = |groups: &RowsByGroup| groups.iter().map(|group| repeats(&sensitive, group)).sum::<usize>();
        plain += all(&groups);
        let picked = fresh_pick(&sensitive, &groups, &mut draw, &control).unwrap();
        fresh += all(&fresh_swap(&sensitive, picked, &control).unwrap());
    }
    // the reference has 712 and 42 on such tables
    assert!(fresh * 8 < plain, "{fresh} of {plain}");
}

#[test]
fn more_values_than_there_are_cannot_be_published() {
    let (sensitive, groups) = poster();
    let none = swap_noise(&sensitive, groups, &[7], &mut stream(1), &Control::default());
    assert_eq!(none.unwrap_err(), NoiseError::TooFew { attribute: 0 });
    let rule = |attr: u8| SubmittedRule {
        pointer: format!("/method/sensitive/{attr}"),
        known: AttrSet::EMPTY,
        protects: Protected::Attribute(Attr(attr)),
        guarantee: Guarantee::LDiversity { l: 7 },
    };
    let (rules, breaches) = (vec![rule(0), rule(1)], BreachPolicy::Refuse);
    let spec = DecomposeSpec { rules, primary: Attr(0), suppress_chain: false, breaches };
    let fault = super::method::too_few(&spec, Attr(1), 7);
    assert_eq!((fault.pointer.as_str(), fault.kind), ("/method/sensitive/1", Kind::NoNoise));
    assert_eq!(tightest(&[vec![1, 1, 1], vec![3], vec![2, 1]]), Some(1));
    assert_eq!(optimal_l(&[]), 0);
}
