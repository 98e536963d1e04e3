//! Columns that share attributes, against the definitions: all combinations of rows, and all worlds of a bucket.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::halves::HalfPredicate;
use super::*;
use crate::microdata::Attr;
use crate::publish::partition::{MedianSplit, SplitPredicate, SplitSpace};
use crate::publish::slicing::ColumnChoice;
use crate::publish::slicing::is_cover;
use crate::publish::slicing::tests::{Excluded, Known, members, naive, patients, ratio, sets, slice, slicing, table};

fn diversities(l: Ratio) -> [SlicingDiversity; 3] {
    let alpha = Ratio::new(l.denominator(), l.numerator()).unwrap();
    [
        SlicingDiversity::Bucket(vec![Guarantee::AlphaK { alpha, k: 1 }]),
        SlicingDiversity::Mixture(l),
        SlicingDiversity::MixtureWeighted(l),
    ]
}

/// In columns {age, sex, disease} and {zip, disease} the first row has dyspepsia for certain.
#[test]
fn the_table_of_the_paper_cannot_be_covered() {
    let table = patients();
    for l in [ratio(1_000_001, 1_000_000), ratio(2, 1)] {
        for diversity in diversities(l) {
            let refused =
                slice(&slicing(&table, &[vec![0, 1, 3], vec![2, 3]], 3, diversity, MedianSplit::Relaxed), &table);
            let Err(SlicingError::NotDiverseTogether { known, most, of }) = refused else { panic!("sliced") };
            assert_eq!((most, of, known.contains(Attr(3))), (1, 1, false));
        }
    }
    // sex and nothing else beside the disease, once with the age and once without: no column reveals more than sex
    for diversity in diversities(ratio(4, 3)) {
        let columns = [vec![0, 1], vec![1, 3], vec![2]];
        let sliced =
            slice(&slicing(&table, &columns, 3, diversity.clone(), MedianSplit::Relaxed), &table).ok().unwrap();
        assert_eq!(sliced.columns.last(), Some(&sets(&[vec![1, 3]])[0]));
        let more = slicing(&table, &columns, 3, diversities(ratio(2, 1))[0].clone(), MedianSplit::Relaxed);
        let revealed = slice(&more, &table).err();
        assert_eq!(revealed, Some(SlicingError::NotDiverseTogether { known: AttrSet::one(Attr(1)), most: 3, of: 4 }));
    }
}

/// As in the bucket of which `alone` speaks: three values have as many combinations, and the persons with both attributes mostly the rare
/// one.
#[test]
fn combinations_that_are_equally_likely_do_not_make_persons_so() {
    let mut rows = vec![vec![0, 0, 0]; 5];
    rows.push(vec![1, 1, 0]);
    for value in [1, 2] {
        rows.extend(std::iter::repeat_n(vec![0, 1, value], 5));
        rows.extend(std::iter::repeat_n(vec![1, 0, value], 5));
        rows.extend(std::iter::repeat_n(vec![1, 1, value], 30));
    }
    let table = table(&rows);
    let columns = [vec![0, 2], vec![1, 2]];
    let whole = |diversity| {
        let slicing = slicing(&table, &columns, 2, diversity, MedianSplit::Relaxed);
        slicing.check_whole(&table, &sets(&columns), &Excluded(Vec::new()), &Control::default())
    };
    let revealed = Err(SlicingError::NotDiverseTogether { known: AttrSet::first(2), most: 10, of: 13 });
    let [alone, mixture, weighted] = diversities(ratio(2, 1));
    assert_eq!((whole(alone), whole(weighted), whole(mixture)), (revealed, revealed, Ok(())));
}

#[test]
fn what_cannot_be_said_of_columns_is_refused() {
    let table = table(&[vec![0, 0, 0], vec![0, 0, 1], vec![1, 1, 0], vec![1, 1, 1]]);
    let refused = |columns: &[Vec<u8>], diversity: SlicingDiversity| {
        slice(&slicing(&table, columns, 2, diversity, MedianSplit::Relaxed), &table).err()
    };
    let [alone, mixture, weighted] = diversities(ratio(2, 1));
    let circle = [vec![0, 1], vec![0, 2], vec![1, 2]];
    assert_eq!(refused(&circle, alone.clone()), Some(SlicingError::Columns(ColumnsError::Circle)));
    assert_eq!(refused(&circle, weighted), Some(SlicingError::Columns(ColumnsError::Circle)));
    assert_eq!(refused(&circle, mixture), None);
    let shared = [vec![0, 1], vec![1, 2]];
    assert_eq!(refused(&shared, alone.clone()), None);
    let distinct = SlicingDiversity::Bucket(vec![Guarantee::DistinctLDiversity { l: 2 }]);
    assert_eq!(refused(&shared, distinct), Some(SlicingError::NotOfShares));
    let mut boxed = slicing(&table, &shared, 2, alone, MedianSplit::Relaxed);
    boxed.column_k = Some(2);
    assert_eq!(slice(&boxed, &table).err(), Some(SlicingError::Columns(ColumnsError::Generalized)));
}

#[test]
fn too_many_combinations_are_refused() {
    let rows: Vec<Vec<u32>> = (0..600_u32).map(|row| vec![row / 2, row.div_ceil(2) % 300, row % 2]).collect();
    let table = table(&rows);
    let [alone, mixture, _] = diversities(ratio(2, 1));
    let check = |columns: &[Vec<u8>], diversity| {
        let slicing = slicing(&table, columns, 2, diversity, MedianSplit::Relaxed);
        let (columns, control) = (sets(columns), Control::default());
        let cover = Cover { table: &table, columns: &columns, max_combinations: 20_000, control: &control };
        slicing.begin_cover(cover, &Excluded(Vec::new())).map(|_| ())
    };
    let columns = [vec![0, 2], vec![1, 2]];
    assert_eq!(check(&columns, alone), Err(SlicingError::TooDense));
    // whose join needs no more than the counts of what is shared
    assert_eq!(check(&columns, mixture.clone()), Ok(()));
    let cancelled = Control::default();
    cancelled.cancel();
    let slicing = slicing(&table, &columns, 2, mixture, MedianSplit::Relaxed);
    let stopped = slicing.check_whole(&table, &sets(&columns), &Excluded(Vec::new()), &cancelled);
    assert!(matches!(stopped, Err(SlicingError::Cancelled(_))));
}

#[test]
fn rows_keep_their_names() {
    struct Inferred(Vec<Vec<u32>>);
    impl HalfPredicate for Inferred {
        fn allows(&mut self, _: u32, left: &[u32], right: &[u32]) -> bool {
            self.0.extend([left.to_vec(), right.to_vec()]);
            true
        }
    }
    let mut revealed = Inferred(Vec::new());
    let mut renamed = RenumberedPredicate::wrap(&mut revealed, None);
    renamed.allows(0, &[0], &[1, 2]);
    renamed.reorder(&[2, 0, 1]);
    renamed.allows(0, &[0], &[1, 2]);
    renamed.reorder(&[1, 2, 0]);
    renamed.allows(0, &[0], &[1, 2]);
    assert_eq!(revealed.0, [vec![0], vec![1, 2], vec![2], vec![0, 1], vec![0], vec![1, 2]]);
}

/// Codes of each row.
type Rows = Vec<Vec<u32>>;

/// The codes of a person.
type Person = BTreeMap<u8, u32>;

/// What is known of a person, and how often each sensitive value goes with it.
type Seen = BTreeMap<Vec<u32>, BTreeMap<u32, u128>>;

/// A table, and how it is sliced.
struct Definition<'a> {
    rows: &'a Rows,
    columns: &'a [Vec<u8>],
    sensitive: u8,
    excluded_codes: &'a [u32],
    l: Ratio,
}

impl Definition<'_> {
    fn is_sensitive(&self, column: &[u8]) -> bool {
        column.contains(&self.sensitive)
    }

    /// Every choice of columns: those without the sensitive attribute where they count, and some of the others.
    fn choices(&self, with_others: bool) -> Vec<Vec<Vec<u8>>> {
        let (with, without): (Vec<_>, Vec<_>) =
            self.columns.iter().cloned().partition(|column| self.is_sensitive(column));
        let some = (1_u32..1 << with.len()).map(|chosen| {
            let chosen =
                with.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, column)| column.clone());
            let others = without.iter().filter(|_| with_others).cloned();
            others.chain(chosen).collect()
        });
        some.collect()
    }

    /// What a row of each column says together, where they agree.
    fn agreed(&self, picked: &[u32], columns: &[Vec<u8>]) -> Option<BTreeMap<u8, u32>> {
        let mut known: BTreeMap<u8, u32> = BTreeMap::new();
        for (&row, column) in picked.iter().zip(columns) {
            for &attr in column {
                let code = self.rows[row as usize][usize::from(attr)];
                if *known.entry(attr).or_insert(code) != code {
                    return None;
                }
            }
        }
        Some(known)
    }

    fn note(&self, seen: &mut Seen, mut known: BTreeMap<u8, u32>, multiplicity: u128) {
        let Some(value) = known.remove(&self.sensitive) else { return };
        let of: Vec<u32> = known.into_values().collect();
        *seen.entry(of).or_default().entry(value).or_default() += multiplicity;
    }

    /// All combinations of a row per column, and how many there are.
    fn combined(&self, bucket: &[u32], columns: &[Vec<u8>]) -> (Seen, u128) {
        let (mut seen, mut all) = (Seen::new(), 0);
        let mut picked: Vec<Vec<u32>> = vec![Vec::new()];
        for _ in columns {
            picked = picked
                .into_iter()
                .flat_map(|before| bucket.iter().map(move |&row| [&before[..], &[row]].concat()))
                .filter(|picked| self.agreed(picked, columns).is_some())
                .collect();
        }
        for picked in picked {
            if let Some(known) = self.agreed(&picked, columns) {
                all += 1;
                self.note(&mut seen, known, 1);
            }
        }
        (seen, all)
    }

    /// All worlds, in each of which every row of a column is of one person, and how many there are.
    fn worlds(&self, bucket: &[u32], columns: &[Vec<u8>]) -> (Seen, u128) {
        let (mut seen, mut all) = (Seen::new(), 0);
        let mut left: Vec<Vec<u32>> = columns.iter().map(|_| bucket.to_vec()).collect();
        self.person(&mut left, &mut Vec::new(), &mut Vec::new(), columns, &mut |people| {
            all += 1;
            people.iter().for_each(|person| self.note(&mut seen, person.clone(), 1));
        });
        (seen, all)
    }

    fn person(
        &self,
        left: &mut Vec<Vec<u32>>,
        picked: &mut Vec<u32>,
        people: &mut Vec<Person>,
        columns: &[Vec<u8>],
        visit: &mut dyn FnMut(&[Person]),
    ) {
        if left[0].is_empty() && picked.is_empty() {
            return visit(people);
        }
        let at = picked.len();
        if at == columns.len() {
            people.push(self.agreed(picked, columns).unwrap());
            self.person(left, &mut Vec::new(), people, columns, visit);
            people.pop();
            return;
        }
        for place in 0..left[at].len() {
            let row = left[at].remove(place);
            picked.push(row);
            if self.agreed(picked, columns).is_some() {
                self.person(left, picked, people, columns, visit);
            }
            picked.pop();
            left[at].insert(place, row);
            if at == 0 {
                // people are named by their rows of the first column
                break;
            }
        }
    }

    fn bounded(&self, weights: &BTreeMap<u32, u128>) -> bool {
        let all: u128 = weights.values().sum();
        let left: u128 =
            weights.iter().filter(|(value, _)| !self.excluded_codes.contains(value)).map(|(_, weight)| weight).sum();
        let (l, of) = (u128::from(self.l.numerator()), u128::from(self.l.denominator()));
        let among = |value: &u32| if self.excluded_codes.contains(value) { all } else { left };
        left > 0 && weights.iter().all(|(value, weight)| weight * l <= among(value) * of)
    }

    /// Every bucket by itself.
    fn alone(&self, buckets: &[Vec<u32>]) -> bool {
        self.choices(false).iter().all(|columns| {
            buckets.iter().all(|bucket| {
                let seen = [self.combined(bucket, columns).0, self.worlds(bucket, columns).0];
                seen.iter().flat_map(BTreeMap::values).all(|weights| self.bounded(weights))
            })
        })
    }

    /// All buckets together, for each row of the table.
    fn mixed(&self, buckets: &[Vec<u32>], by_worlds: bool) -> bool {
        self.choices(true).iter().all(|columns| {
            let look = |bucket: &Vec<u32>| match by_worlds {
                true => self.worlds(bucket, columns),
                false => self.combined(bucket, columns),
            };
            let seen: Vec<(Seen, u128)> = buckets.iter().map(look).collect();
            let common: u128 = seen.iter().map(|(_, all)| all).product();
            self.rows.iter().all(|row| {
                let mut attrs: Vec<u8> = columns.concat();
                attrs.sort_unstable();
                attrs.dedup();
                let known: Vec<u32> =
                    attrs.iter().filter(|attr| **attr != self.sensitive).map(|&attr| row[usize::from(attr)]).collect();
                let mut weights: BTreeMap<u32, u128> = BTreeMap::new();
                for (seen, all) in &seen {
                    for (value, multiplicity) in seen.get(&known).into_iter().flatten() {
                        *weights.entry(*value).or_default() += multiplicity * (common / all);
                    }
                }
                self.bounded(&weights)
            })
        })
    }
}

/// Covers of four attributes, the last one sensitive, and whether every choice of their columns forms a tree.
const COVERS: [(&[&[u8]], bool); 7] = [
    (&[&[0, 3], &[1, 2, 3]], true),
    (&[&[0, 1], &[1, 2, 3]], true),
    (&[&[0, 1, 3], &[1, 2, 3]], true),
    (&[&[0, 3], &[1, 3], &[2, 3]], true),
    (&[&[0, 2], &[0, 1], &[1, 3]], true),
    (&[&[0, 2], &[0, 1, 3], &[1, 2]], false),
    (&[&[0, 1], &[1, 2], &[0, 3], &[2, 3]], false),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    /// The buckets are those of the algorithm with the definition in place of the check.
    #[test]
    fn the_check_of_columns_that_share_attributes_is_the_definition(
        rows in prop::collection::vec(prop::collection::vec(0u32..60, 4), 2..7),
        cover in 0..COVERS.len(), l in (2u64..7, 2u64..5), strict: bool, form in 0usize..3, least in 1usize..3,
        excluded_codes in prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(0u32..3, 1..2)],
    ) {
        let (columns, is_tree) = COVERS[cover];
        let columns: Vec<Vec<u8>> = columns.iter().map(|column| column.to_vec()).collect();
        let rows: Vec<Vec<u32>> = rows
            .into_iter()
            .map(|row| row.iter().zip([2, 2, 1, 3]).map(|(cell, bound)| cell % bound).collect())
            .collect();
        let table = table(&rows);
        let l = ratio(l.0.max(l.1), l.1);
        let split = if strict { MedianSplit::Strict } else { MedianSplit::Relaxed };
        let mut slicing = slicing(&table, &columns, 3, diversities(l)[form].clone(), split);
        slicing.min_bucket = Some(least);
        let declared_value = Excluded(excluded_codes.clone());
        let codes: Rows =
            (0..rows.len()).map(|row| (0..4).map(|at| table.column(Attr(at)).codes.get(row)).collect()).collect();
        let definition = Definition { rows: &codes, columns: &columns, sensitive: 3, excluded_codes: &excluded_codes, l };
        let sensitive = columns.iter().filter(|column| column.contains(&3)).count();
        let holds = |buckets: &[Vec<u32>]| match form {
            0 => definition.alone(buckets),
            1 => definition.mixed(buckets, false),
            _ => definition.mixed(buckets, false) && definition.mixed(buckets, true),
        };
        let sliced = slicing.slice(&table, &declared_value, &Control::default());
        if !is_tree && (form == 2 || (form == 0 && sensitive > 1)) {
            prop_assert_eq!(sliced.err(), Some(SlicingError::Columns(ColumnsError::Circle)));
            return Ok(());
        }
        let known = Known { others: Vec::new(), companions: vec![0; rows.len()], sensitive: Vec::new() };
        let space = SplitSpace::new(&table, AttrSet::first(3), &declared_value);
        let expected = naive(&known, &space, split, usize::MAX, least, holds);
        match sliced {
            Ok(sliced) => prop_assert_eq!(Some(members(&sliced.buckets)), expected),
            Err(error) => {
                prop_assert!(matches!(error, SlicingError::NotDiverseTogether { .. }), "{error}");
                prop_assert!(expected.is_none());
            }
        }
    }
}

/// The number of combinations is that of all choices of a row per column that agree.
#[test]
fn joins_are_counted() {
    let rows: Rows = (0..7_u32).map(|row| vec![row % 2, row / 2 % 2, row % 3, row / 3 % 2]).collect();
    let table = table(&rows);
    let bucket: Vec<u32> = (0..7).collect();
    for (columns, _) in COVERS {
        let columns: Vec<Vec<u8>> = columns.iter().map(|column| column.to_vec()).collect();
        let definition =
            Definition { rows: &rows, columns: &columns, sensitive: 3, excluded_codes: &[], l: Ratio::ONE };
        let control = Control::default();
        let mut margins = BucketMargins::new(&table, Attr(3), MAX_COMBINATIONS);
        let numbers: Vec<usize> = sets(&columns).into_iter().map(|set| margins.add(set, &control).unwrap()).collect();
        let join = join::NaturalJoin::new(&mut margins, &numbers, &control).unwrap();
        let counts = margins.count(&bucket);
        let sizes = join.sizes(&margins, |margin| &counts[margin], 7).unwrap();
        assert_eq!(sizes.iter().product::<u128>(), definition.combined(&bucket, &columns).1, "{columns:?}");
    }
    let apart = ColumnChoice::Explicit(sets(&[vec![0, 1], vec![2], vec![3]]));
    let ColumnChoice::Explicit(apart) = apart else { return };
    assert!(!is_cover(&apart));
}
