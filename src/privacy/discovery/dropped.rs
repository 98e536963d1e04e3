//! Dependencies on columns that a release does not publish.

use std::ptr;

use super::logarithm::{BIT, FactorialLogarithms};
use super::rows::RowVisits;
use super::search::{SearchedColumn, errors_of};
use super::significance::Savings;
use crate::control::{Cancelled, Control};
use crate::microdata::{Attr, Column};
use crate::publication::Ratio;

/// Bits that a dependency on a dropped column must save: 20 for the search as a whole, and 22 for at most 2^22 candidates.
///
/// The number does not depend on the columns of the upload, so that everyone decides alike.
const LEAST_SAVED: i64 = 42 * BIT;

/// Number of dropped columns that are compared at once.
const COMPARED_COLUMNS: usize = 64;

/// A column that may determine a dropped one.
#[derive(Clone, Copy, Debug)]
pub struct EndColumn<'a> {
    /// Its values.
    pub column: &'a Column,
    /// Whether the release publishes it.
    pub is_published: bool,
}

/// A dropped column that at least two ends determine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TyingColumn {
    /// Its position among the dropped columns.
    pub dropped: usize,
    /// The ends that determine it, rising.
    pub by: Vec<DeterminingEnd>,
}

/// The evidence that an end determines a dropped column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeterminingEnd {
    /// The position of the end.
    pub end: usize,
    /// Number of its distinct values.
    pub groups: usize,
    /// Fewest rows without which the dependency is exact.
    pub errors: usize,
    /// Bits that the dependency saves, in units of 2^-20 bit.
    pub saved: i64,
}

/// The dropped columns that tie ends: at least two ends determine each, within the tolerance and by no accident.
///
/// One that a published end determines one to one is that end in another spelling, and ties nothing. An end may be one of
/// the dropped columns; it does not determine itself.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
///
/// # Citations
/// docs/spec/dependencies.md#dropped-columns
pub fn discover_tying_columns(
    ends: &[EndColumn<'_>],
    dropped: &[&Column],
    tolerance: Ratio,
    control: &Control,
) -> Result<Vec<TyingColumn>, Cancelled> {
    let (Some(first), false) = (ends.first(), dropped.is_empty()) else { return Ok(Vec::new()) };
    let factorials = FactorialLogarithms::new(first.column.codes.len());
    let visits = RowVisits::new(control);
    let searched = |column| SearchedColumn::new(Attr(0), column, tolerance, control);
    let determining: Vec<Option<SearchedColumn<'_>>> =
        ends.iter().map(|end| searched(end.column)).collect::<Result<_, _>>()?;
    let mut tying = Vec::new();
    for (chunk, some) in dropped.chunks(COMPARED_COLUMNS).enumerate() {
        let mut columns = Vec::new();
        for (at, column) in some.iter().enumerate() {
            if let Some(mut searched) = searched(column)? {
                searched.most_groups = Savings::new(&factorials, &searched.counts).most_groups(LEAST_SAVED);
                columns.push((chunk * COMPARED_COLUMNS + at, searched, Vec::new()));
            }
        }
        for (end, from) in determining.iter().enumerate() {
            let Some(from) = from else { continue };
            // a function has no more values than arguments
            let is_candidate = |to: &SearchedColumn<'_>| {
                from.values <= to.most_groups
                    && to.values <= from.values + to.most_errors
                    && !ptr::eq(from.column, to.column)
            };
            let candidates: Vec<usize> = (0..columns.len()).filter(|&at| is_candidate(&columns[at].1)).collect();
            let dependents: Vec<&SearchedColumn<'_>> = candidates.iter().map(|&at| &columns[at].1).collect();
            let errors = errors_of(from, &dependents, &visits)?;
            for (at, errors) in candidates.into_iter().zip(errors) {
                let (Some(errors), (_, to, by)) = (errors, &mut columns[at]) else { continue };
                let saved = Savings::new(&factorials, &to.counts).saved(from.values, errors);
                if saved >= LEAST_SAVED {
                    by.push(DeterminingEnd { end, groups: from.values, errors, saved });
                }
            }
        }
        let is_spelling =
            |values: usize, by: &DeterminingEnd| ends[by.end].is_published && by.errors == 0 && by.groups == values;
        let ties = columns.into_iter().filter(|(_, to, by): &(_, SearchedColumn<'_>, Vec<DeterminingEnd>)| {
            by.len() > 1 && !by.iter().any(|end| is_spelling(to.values, end))
        });
        tying.extend(ties.map(|(dropped, _, by)| TyingColumn { dropped, by }));
    }
    Ok(tying)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Random, column};
    use super::*;

    const TOLERANCE: Ratio = match Ratio::new(1, 100) {
        Ok(tolerance) => tolerance,
        Err(_) => panic!("a ratio"),
    };

    /// The dropped columns that tie ends, each with the ends that determine it.
    fn tying(published: &[&Column], others: &[&Column], dropped: &[&Column]) -> Vec<(usize, Vec<usize>)> {
        let ends = published.iter().map(|column| (*column, true)).chain(others.iter().map(|column| (*column, false)));
        let ends: Vec<EndColumn<'_>> = ends.map(|(column, is_published)| EndColumn { column, is_published }).collect();
        let found = discover_tying_columns(&ends, dropped, TOLERANCE, &Control::default()).unwrap();
        found.iter().map(|tying| (tying.dropped, tying.by.iter().map(|by| by.end).collect())).collect()
    }

    /// Columns of 4,000 rows: a year, 20 days and 6 jobs of it, days in another spelling, and what depends on nothing.
    fn columns(random: &mut Random) -> [Column; 5] {
        let years: Vec<u32> = (0..4_000).map(|_| random.below(6)).collect();
        let mut of_year = |values: u32| years.iter().map(|year| year * values + random.below(values)).collect();
        let (days, jobs): (Vec<u32>, Vec<u32>) = (of_year(20), of_year(6));
        let spelled: Vec<u32> = days.iter().map(|day| (day * 7 + 3) % 120).collect();
        let free: Vec<u32> = (0..4_000).map(|_| random.below(6)).collect();
        [years, days, jobs, spelled, free].map(|values| column(&values))
    }

    #[test]
    fn column_that_two_ends_determine_is_found() {
        let [year, day, job, _, free] = &columns(&mut Random(1));
        assert_eq!(tying(&[day, job, free], &[], &[free, year]), [(1, vec![0, 1])]);
        assert_eq!(tying(&[day, free], &[], &[year]), []);
        // an end that is not published counts as well
        assert_eq!(tying(&[day, free], &[job], &[year]), [(0, vec![0, 2])]);
        // no column determines itself
        assert_eq!(tying(&[day, free], &[year], &[year]), []);
    }

    #[test]
    fn other_spelling_of_a_published_column_is_left_out() {
        let [year, day, job, spelled, _] = &columns(&mut Random(2));
        assert_eq!(tying(&[day, job], &[], &[spelled]), []);
        assert_eq!(tying(&[job, day], &[spelled], &[day]), []);
        // published by no release, the other spelling is only one end more
        assert_eq!(tying(&[day, job], &[spelled], &[year]), [(0, vec![0, 1, 2])]);
    }

    #[test]
    fn exceptions_count_up_to_the_tolerance() {
        let mut random = Random(3);
        let [year, day, job, ..] = &columns(&mut random);
        let but = |exceptions: usize| {
            let values: Vec<u32> =
                year.codes.iter().enumerate().map(|(row, code)| (code + u32::from(row < exceptions)) % 6).collect();
            column(&values)
        };
        assert_eq!(tying(&[day, job], &[], &[&but(40)]), [(0, vec![0, 1])]);
        assert_eq!(tying(&[day, job], &[], &[&but(41)]), []);
    }

    #[test]
    fn column_that_differs_in_each_row_ties_nothing() {
        for rows in [2_u32, 3, 10, 100, 4_000] {
            let key: Vec<u32> = (0..rows).map(|row| (row * 7 + 1) % rows.next_power_of_two()).collect();
            // ends of as many values, and of a half, some and one less
            let end = |every: u32| key.iter().map(|at| at - u32::from(at % every == 1)).collect::<Vec<_>>();
            let ends: Vec<Column> = [1, 2, 50, u32::MAX].iter().map(|every| column(&end(*every))).collect();
            let ends: Vec<&Column> = ends.iter().collect();
            let half = Ratio::new(1, 2).unwrap();
            for published in 0..ends.len() {
                let ends = ends.iter().enumerate();
                let ends: Vec<EndColumn<'_>> =
                    ends.map(|(at, column)| EndColumn { column, is_published: at < published }).collect();
                let found = discover_tying_columns(&ends, &[&column(&key)], half, &Control::default()).unwrap();
                assert_eq!(found, [], "{rows} rows");
            }
        }
    }

    #[test]
    fn accidents_are_no_evidence() {
        let mut random = Random(4);
        // of two values in 40 rows, twenty groups say little, and of 4,000 rows much
        for (rows, found) in [(40_u32, 0), (4_000, 1)] {
            let group: Vec<u32> = (0..rows).map(|row| row % 20).collect();
            let other: Vec<u32> = (0..rows).map(|row| row % 20 / 2).collect();
            let half: Vec<u32> = group.iter().map(|group| group / 10).collect();
            let [group, other, half] = [group, other, half].map(|values| column(&values));
            assert_eq!(tying(&[&group, &other], &[], &[&half]).len(), found, "{rows} rows");
        }
        // nearly distinct columns determine anything
        for _ in 0..50 {
            let mut distinct = || column(&(0..300).map(|_| random.below(60_000)).collect::<Vec<_>>());
            let (one, other) = (distinct(), distinct());
            let dropped = column(&(0..300).map(|_| random.below(4)).collect::<Vec<_>>());
            assert_eq!(tying(&[&one, &other], &[], &[&dropped]), []);
        }
    }
}
