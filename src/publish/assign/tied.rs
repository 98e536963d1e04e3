//! Several correlated sensitive attributes in the same buckets, each in a part of its own.
//!
//! Buckets take pairwise distinct values of one attribute. Among the rows with such a value, one is preferred whose other values
//! are new to the bucket. Buckets that break a guarantee are merged with others until all keep it: a guarantee that holds in two
//! buckets holds in their union, and it holds in the whole table.

use std::cmp::Ordering;

use super::largest_l::largest_l_by;
use super::{BucketAssignment, SensitiveCodes};
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Codes, Table};
use crate::privacy::{self, OverallCounts};
use crate::publication::Guarantee;
use crate::random::RandomStream;

/// Largest number of rows examined for new values, and of buckets examined for a merge.
const CANDIDATES_PER_ROW: usize = 32;

/// A sensitive attribute with its guarantees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttributeGuarantees<'a> {
    /// The attribute.
    pub attr: Attr,
    /// What every bucket keeps of it.
    pub guarantees: &'a [Guarantee],
}

/// Counts of the values of an attribute in a bucket, values rising.
type BucketCounts = Vec<(u32, u64)>;

/// Assigns rows to buckets that keep the guarantees of each of the `sensitive` attributes.
///
/// The draw depends on `stream` and the sensitive values alone: either of two rows of a bucket may have the values of the other.
///
/// `table` holds the rows, all of `whole` or those of a stratum. Distances compare buckets with `whole`.
///
/// The caller has checked eligibility: the rows together keep the guarantees of every attribute.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn assign_tied(
    table: &Table,
    whole: &Table,
    sensitive: &[AttributeGuarantees<'_>],
    stream: &mut RandomStream,
    control: &Control,
) -> Result<BucketAssignment, Cancelled> {
    let asked: Vec<AttributeRequirement<'_>> =
        sensitive.iter().map(|asked| AttributeRequirement::new(table, whole, *asked)).collect();
    // the attribute whose most frequent value is rarest allows the most buckets
    let rarest = |&at: &usize| asked[at].largest;
    let Some(first) = (0..asked.len()).min_by_key(rarest).filter(|_| table.rows() > 0) else {
        return Ok(BucketAssignment { bucket_of: Vec::new(), buckets: 0 });
    };
    let fewest = asked
        .iter()
        .flat_map(|asked| asked.guarantees)
        .map(|&guarantee| privacy::distinct_rows(guarantee).unwrap_or_else(|| privacy::fewest_rows(guarantee)));
    let most = table.rows() as u64 / asked[first].largest.max(1);
    let l = fewest.max().unwrap_or(1).clamp(1, most.max(1));

    let others: Vec<usize> = (0..asked.len()).filter(|&at| at != first).collect();
    // the bucket, from 1, that was last given each value
    let mut holder: Vec<Vec<u32>> = others.iter().map(|&at| vec![0; asked[at].population.counts().len()]).collect();
    let of_others: Vec<&Codes> = others.iter().map(|&at| asked[at].codes).collect();
    let choose = |bucket: u32, list: &[u32]| {
        let codes = |row: u32| of_others.iter().map(move |codes| codes.get(row as usize) as usize);
        let is_new = |row: u32| codes(row).zip(&holder).all(|(code, holder)| holder[code] != bucket + 1);
        let last = list.len() - 1;
        let place = (0..list.len().min(CANDIDATES_PER_ROW)).map(|back| last - back).find(|&place| is_new(list[place]));
        let place = place.unwrap_or(last);
        for (code, holder) in codes(list[place]).zip(&mut holder) {
            holder[code] = bucket + 1;
        }
        place
    };
    let values = SensitiveCodes::from(table.column(sensitive[first].attr));
    let assignment = largest_l_by(values, l, stream, control, choose)?;
    BucketMerger::new(&asked, &assignment, stream, control).merge(assignment)
}

/// Guarantees of an attribute, with its codes.
struct AttributeRequirement<'a> {
    codes: &'a Codes,
    guarantees: &'a [Guarantee],
    /// What buckets are compared with.
    population: OverallCounts,
    /// The number of rows with the most frequent value.
    largest: u64,
}

impl<'a> AttributeRequirement<'a> {
    fn new(table: &'a Table, whole: &Table, AttributeGuarantees { attr, guarantees }: AttributeGuarantees<'a>) -> Self {
        let column = table.column(attr);
        let counts = column.counts();
        let largest = counts.iter().copied().max().unwrap_or_default();
        let compared = match guarantees.iter().any(|guarantee| guarantee.compares()) {
            true => whole.column(attr).counts(),
            false => counts,
        };
        let population = OverallCounts::new(compared).on(table.annotations(attr).clone());
        Self { codes: &column.codes, guarantees, population, largest }
    }

    fn counts(&self, rows: &[u32]) -> BucketCounts {
        let mut codes: Vec<u32> = rows.iter().map(|&row| self.codes.get(row as usize)).collect();
        codes.sort_unstable();
        codes.chunk_by(|a, b| a == b).map(|alike| (alike[0], alike.len() as u64)).collect()
    }

    /// Distance of a bucket from what it is compared with: the sum of differences of shares, scaled by both sizes.
    fn gap(&self, bucket: &[(u32, u64)], size: u64) -> u128 {
        let (rows, whole) = (u128::from(self.population.rows()), self.population.counts());
        let of = |code: u32| u128::from(whole[code as usize]) * u128::from(size);
        let present: u128 = bucket.iter().map(|&(code, count)| (u128::from(count) * rows).abs_diff(of(code))).sum();
        // a value that is absent lacks its whole share
        present + rows * u128::from(size) - bucket.iter().map(|&(code, _)| of(code)).sum::<u128>()
    }

    fn holds(&self, bucket: &[(u32, u64)]) -> bool {
        self.guarantees.iter().all(|&guarantee| privacy::holds(guarantee, bucket, &self.population))
    }
}

/// Merges buckets until all keep the guarantees.
struct BucketMerger<'a> {
    asked: &'a [AttributeRequirement<'a>],
    control: &'a Control,
    /// Rows of each bucket; none of a bucket that another one took.
    rows: Vec<Vec<u32>>,
    /// Buckets that no other one took, in random order.
    left: Vec<usize>,
    /// Place in `left` where the search for partners goes on.
    next: usize,
}

impl<'a> BucketMerger<'a> {
    fn new(
        asked: &'a [AttributeRequirement<'a>],
        assignment: &BucketAssignment,
        stream: &mut RandomStream,
        control: &'a Control,
    ) -> Self {
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); assignment.buckets as usize];
        for (&bucket, row) in assignment.bucket_of.iter().zip(0..) {
            rows[bucket as usize].push(row);
        }
        let mut left: Vec<usize> = (0..rows.len()).collect();
        stream.shuffle(&mut left);
        Self { asked, control, rows, left, next: 0 }
    }

    fn merge(mut self, mut assignment: BucketAssignment) -> Result<BucketAssignment, Cancelled> {
        for bucket in self.failing()? {
            if !self.rows[bucket].is_empty() {
                self.enlarge(bucket)?;
            }
        }
        for (&bucket, number) in self.left.iter().zip(0..) {
            self.rows[bucket].iter().for_each(|&row| assignment.bucket_of[row as usize] = number);
        }
        assignment.buckets = self.left.len() as u32;
        Ok(assignment)
    }

    /// Buckets that break a guarantee.
    fn failing(&self) -> Result<Vec<usize>, Cancelled> {
        let mut failing = Vec::new();
        for (at, rows) in self.rows.iter().enumerate() {
            if at.is_multiple_of(Control::STRIDE >> 6) {
                self.control.check()?;
            }
            if !self.keep(&self.counts(rows)) {
                failing.push(at);
            }
        }
        Ok(failing)
    }

    /// Merges other buckets into this one until it keeps the guarantees.
    ///
    /// It takes one bucket in each of the first rounds, then twice as many as in the round before.
    fn enlarge(&mut self, bucket: usize) -> Result<(), Cancelled> {
        let mut counts = self.counts(&self.rows[bucket]);
        let (mut taken_one_by_one, mut joining) = (0, 1);
        while !self.keep(&counts) {
            self.control.check()?;
            let mut places = self.places_of_others(bucket, CANDIDATES_PER_ROW.max(joining * 2));
            if places.is_empty() {
                break;
            }
            if taken_one_by_one < CANDIDATES_PER_ROW {
                taken_one_by_one += 1;
                places.truncate(CANDIDATES_PER_ROW);
                places = self.best_partner(&counts, &places).into_iter().collect();
            } else {
                joining *= 2;
                places.truncate(joining);
            }
            self.take(bucket, places, &mut counts);
        }
        Ok(())
    }

    /// At most `number` places in `left`, from the next one, without the place of `bucket`.
    fn places_of_others(&self, bucket: usize, number: usize) -> Vec<usize> {
        let places = (0..self.left.len()).map(|step| (self.next + step) % self.left.len());
        places.filter(|&place| self.left[place] != bucket).take(number).collect()
    }

    /// The first place whose bucket suffices together with `counts`, or else the one nearest to the whole table with it.
    fn best_partner(&self, counts: &[BucketCounts], places: &[usize]) -> Option<usize> {
        let with = |&place: &usize| (sums(counts, &self.counts(&self.rows[self.left[place]])), place);
        let together: Vec<(Vec<BucketCounts>, usize)> = places.iter().map(with).collect();
        let enough = together.iter().find(|(counts, _)| self.keep(counts));
        let nearest = || together.iter().min_by(|(a, _), (b, _)| self.nearer(a, b));
        enough.or_else(nearest).map(|(_, place)| *place)
    }

    /// Merges the buckets at some places into `bucket`, whose counts these are.
    fn take(&mut self, bucket: usize, mut places: Vec<usize>, counts: &mut Vec<BucketCounts>) {
        for &place in &places {
            let more = std::mem::take(&mut self.rows[self.left[place]]);
            *counts = sums(counts, &self.counts(&more));
            self.rows[bucket].extend(more);
        }
        places.sort_unstable_by_key(|&place| std::cmp::Reverse(place));
        self.next = places[0];
        for place in places {
            self.left.swap_remove(place);
        }
        self.next %= self.left.len().max(1);
    }

    fn counts(&self, rows: &[u32]) -> Vec<BucketCounts> {
        self.asked.iter().map(|asked| asked.counts(rows)).collect()
    }

    /// Compares the distances of two buckets from the whole table, over all attributes.
    fn nearer(&self, one: &[BucketCounts], other: &[BucketCounts]) -> Ordering {
        let distance = |counts: &[BucketCounts]| {
            let size: u64 = counts.iter().take(1).flatten().map(|(_, count)| count).sum();
            let gaps: u128 = self.asked.iter().zip(counts).map(|(asked, counts)| asked.gap(counts, size)).sum();
            (gaps, u128::from(size))
        };
        let ((gaps, size), (others, of)) = (distance(one), distance(other));
        (gaps * of).cmp(&(others * size))
    }

    fn keep(&self, counts: &[BucketCounts]) -> bool {
        self.asked.iter().zip(counts).all(|(asked, counts)| asked.holds(counts))
    }
}

/// Counts of the union of two buckets, by attribute.
fn sums(one: &[BucketCounts], other: &[BucketCounts]) -> Vec<BucketCounts> {
    let sum = |(one, other): (&BucketCounts, &BucketCounts)| {
        let mut all: BucketCounts = one.iter().chain(other).copied().collect();
        all.sort_unstable();
        all.chunk_by(|a, b| a.0 == b.0).map(|alike| (alike[0].0, alike.iter().map(|(_, count)| count).sum())).collect()
    };
    one.iter().zip(other).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::microdata::{Arena, AttributeType, Column, ColumnAnnotations, Domain};
    use crate::publication::{Ratio, ValueDistance};
    use crate::random::{RandomStreams, ReleaseKey};

    fn table(values: usize, rows: &[Vec<u32>]) -> Table {
        let column = |at: usize| {
            let mut arena = Arena::default();
            (0..values).for_each(|value| arena.push(format!("{value:03}").as_bytes()));
            let codes: Vec<u32> = rows.iter().map(|row| row[at]).collect();
            let domain = Arc::new(Domain::from_sorted(AttributeType::Text, false, arena));
            Column { domain, codes: Codes::collect(values, codes.into_iter()) }
        };
        let attributes = rows.first().map_or(0, Vec::len);
        Table::new((0..attributes).map(|at| format!("a{at}")).collect(), (0..attributes).map(column).collect())
    }

    fn asked(attr: u8, guarantees: &[Guarantee]) -> AttributeGuarantees<'_> {
        AttributeGuarantees { attr: Attr(attr), guarantees }
    }

    /// Per bucket and attribute, how often each value occurs.
    fn assigned(table: &Table, asked: &[AttributeGuarantees<'_>], key: u8) -> Vec<Vec<Vec<u64>>> {
        let mut stream = RandomStreams::Keyed(ReleaseKey::from_bytes([key; 32])).stream("test");
        let assignment = assign_tied(table, table, asked, &mut stream, &Control::default()).unwrap();
        let values = |attr: Attr| table.column(attr).domain.len();
        let empty: Vec<Vec<u64>> = asked.iter().map(|asked| vec![0; values(asked.attr)]).collect();
        let mut buckets = vec![empty; assignment.buckets as usize];
        for (row, &bucket) in assignment.bucket_of.iter().enumerate() {
            for (at, AttributeGuarantees { attr, .. }) in asked.iter().enumerate() {
                buckets[bucket as usize][at][table.column(*attr).codes.get(row) as usize] += 1;
            }
        }
        assert!(buckets.iter().all(|bucket| bucket[0].iter().sum::<u64>() > 0), "no bucket is empty");
        buckets
    }

    #[test]
    fn correlated_attributes_are_parted_in_small_buckets() {
        // ten illnesses, each with two drugs; the illness predicts the drug, with few exceptions
        let rows: Vec<Vec<u32>> = (0..600).map(|i| vec![i % 10, if i % 17 == 0 { i % 7 } else { i % 5 }]).collect();
        let table = table(10, &rows);
        let l = [Guarantee::LDiversity { l: 3 }];
        let buckets = assigned(&table, &[asked(0, &l), asked(1, &l)], 1);
        assert!(buckets.len() > 140, "{} buckets of 600 rows", buckets.len());
        for bucket in &buckets {
            let size: u64 = bucket[0].iter().sum();
            assert!(bucket.iter().flatten().all(|count| count * 3 <= size), "{bucket:?}");
        }
    }

    #[test]
    fn distances_and_values_that_are_ruled_out_are_reckoned_with() {
        let rows: Vec<Vec<u32>> = (0..240).map(|i| vec![i % 8, if i % 3 == 0 { 0 } else { i % 8 }]).collect();
        let close = [Guarantee::TCloseness {
            t: Ratio::new(3, 10).unwrap(),
            distance: ValueDistance::Equal,
            reference: Default::default(),
        }];
        let diverse = [Guarantee::LDiversity { l: 2 }];
        let table = table(8, &rows).on(Attr(1), ColumnAnnotations::without(vec![0]));
        let buckets = assigned(&table, &[asked(0, &close), asked(1, &diverse)], 1);
        assert!(buckets.len() > 4, "{}", buckets.len());
        for bucket in &buckets {
            let size: u64 = bucket[0].iter().sum();
            let moved: u64 = bucket[0].iter().map(|&count| (count * 8).abs_diff(size)).sum();
            assert!(moved * 10 <= 2 * 3 * size * 8, "{bucket:?}");
            let left = size - bucket[1][0];
            assert!(left > 0 && bucket[1][0] * 2 <= size && bucket[1][1..].iter().all(|count| count * 2 <= left));
        }
    }

    proptest! {
        /// Whatever is eligible is assigned, every row of it, and by the words of the definition.
        #[test]
        fn every_bucket_keeps_what_was_asked_of_every_attribute(
            rows in prop::collection::vec((0u32..6, 0u32..6, 0u32..6, any::<bool>()), 4..80),
            ls in prop::collection::vec(2u64..4, 3), attributes in 2usize..4, key: u8,
        ) {
            // mostly the first predicts the second
            let rows: Vec<Vec<u32>> = rows.into_iter()
                .map(|(a, b, c, determined)| vec![a, if determined { a / 2 } else { b }, c][..attributes].to_vec())
                .collect();
            let table = table(6, &rows);
            let guarantees: Vec<[Guarantee; 1]> = ls.iter().map(|&l| [Guarantee::LDiversity { l }]).collect();
            let asked: Vec<AttributeGuarantees<'_>> =
                (0..attributes).map(|at| asked(at as u8, &guarantees[at])).collect();
            let whole = |at: usize| table.column(Attr(at as u8)).counts().into_iter().max().unwrap_or(0);
            prop_assume!((0..attributes).all(|at| whole(at) * ls[at] <= rows.len() as u64));
            let buckets = assigned(&table, &asked, key);
            prop_assert_eq!(buckets.iter().flat_map(|bucket| &bucket[0]).sum::<u64>(), rows.len() as u64);
            for bucket in &buckets {
                for (counts, l) in bucket.iter().zip(&ls) {
                    let size: u64 = counts.iter().sum();
                    prop_assert!(counts.iter().all(|count| count * l <= size), "{:?}", bucket);
                }
            }
        }
    }
}
