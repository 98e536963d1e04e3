//! Exact dependencies with two determinants.

use super::logarithm::FactorialLogarithms;
use super::rows::{CodeNumbers, GroupedRows, RowVisits};
use super::search::SearchedColumn;
use super::significance::{CountFrequency, Savings};
use crate::control::{Cancelled, Control};
use crate::microdata::{Codes, Column};
use crate::with_codes;

/// Maximal number of rows that are compared to find a counterexample with a rare value.
const MAX_COMPARED_ROWS: usize = 1 << 14;

/// Maximal number of rows that are compared with one row of a rare value.
const MAX_COMPARED_WITH_ONE: usize = 1 << 8;

/// A row that is not the first one of its group.
struct LaterRow {
    row: u32,
    /// The first row of the group.
    first: u32,
}

/// Rows in groups of equal values of two columns, one of them [`GroupedRows`].
pub(super) struct PairGroups {
    /// The number of groups.
    pub(super) groups: usize,
    /// The number of groups of the grouped column alone.
    pub(super) groups_of_one: usize,
    later: Vec<LaterRow>,
}

impl PairGroups {
    /// Groups the first `rows` rows of `one` by `other` as well.
    pub(super) fn new(
        one: &GroupedRows,
        other: &Column,
        rows: usize,
        numbers: &mut CodeNumbers,
        visits: &RowVisits<'_>,
    ) -> Result<Self, Cancelled> {
        let mut pair = Self { groups: 0, groups_of_one: 0, later: Vec::with_capacity(rows) };
        let mut pending = 0;
        with_codes!(&other.codes, codes => {
            for group in one.groups(rows) {
                pair.groups_of_one += 1;
                // it has no later row
                if group.len() == 1 {
                    pair.groups += 1;
                    pending += 1;
                    visits.add_many(&mut pending)?;
                    continue;
                }
                numbers.forget(other.domain.len());
                for some in group.chunks(Control::STRIDE) {
                    for &row in some {
                        let code = codes[row as usize] as usize;
                        if let Some(first) = numbers.get(code) {
                            pair.later.push(LaterRow { row, first });
                        } else {
                            numbers.set(code, row);
                            pair.groups += 1;
                        }
                    }
                    pending += some.len();
                    visits.add_many(&mut pending)?;
                }
            }
        });
        visits.add(pending)?;
        Ok(pair)
    }

    /// Whether the rows of each group have one code; stops at the first counterexample.
    pub(super) fn determine(&self, codes: &Codes, visits: &RowVisits<'_>) -> Result<bool, Cancelled> {
        with_codes!(codes, codes => {
            for some in self.later.chunks(Control::STRIDE) {
                let differs = |later: &LaterRow| codes[later.row as usize] != codes[later.first as usize];
                if let Some(at) = some.iter().position(differs) {
                    visits.add(at + 1)?;
                    return Ok(false);
                }
                visits.add(some.len())?;
            }
        });
        Ok(true)
    }
}

/// Whether a few rows with rare values of `dependent` show that a pair does not determine it.
///
/// The first rows of a pair have few rare values, so that they often show no counterexample.
pub(super) fn is_refuted_by_rare_values(
    one: &GroupedRows,
    codes: &Codes,
    other: &Codes,
    dependent: &SearchedColumn<'_>,
    visits: &RowVisits<'_>,
) -> Result<bool, Cancelled> {
    let Some(rare) = &dependent.rare_rows else { return Ok(false) };
    let values = &dependent.column.codes;
    let step = (rare.len() / (MAX_COMPARED_ROWS / MAX_COMPARED_WITH_ONE)).max(1);
    let mut compared = 0;
    let mut is_refuted = false;
    for &row in rare.iter().step_by(step) {
        let (key, value) = (other.get(row as usize), values.get(row as usize));
        let differs = |&with: &u32| {
            compared += 1;
            other.get(with as usize) == key && values.get(with as usize) != value
        };
        is_refuted = one.of_code(codes.get(row as usize)).iter().take(MAX_COMPARED_WITH_ONE).any(differs);
        if is_refuted || compared >= MAX_COMPARED_ROWS {
            break;
        }
    }
    visits.add(compared)?;
    Ok(is_refuted)
}

/// The bits that an exact dependency on a pair saves inside the groups of one of its members, in units of 2^-20 bit.
///
/// A pair must say more than each of its members.
pub(super) fn saved_inside(
    member: &GroupedRows,
    other: &Column,
    dependent: &Column,
    factorials: &FactorialLogarithms,
    visits: &RowVisits<'_>,
) -> Result<i64, Cancelled> {
    let (mut numbers, mut saved, mut pending) = (CodeNumbers::default(), 0, 0);
    let mut occurring: Vec<u32> = Vec::new();
    for group in member.groups(factorials.most()) {
        let mut groups = 0;
        numbers.forget(other.domain.len());
        for &row in group {
            groups += usize::from(numbers.increment(other.codes.get(row as usize) as usize) == 1);
        }
        numbers.forget(dependent.domain.len());
        occurring.clear();
        for &row in group {
            let code = dependent.codes.get(row as usize);
            if numbers.increment(code as usize) == 1 {
                occurring.push(code);
            }
        }
        if occurring.len() > 1 {
            let count = |&code: &u32| numbers.get(code as usize).map(u64::from);
            let counts = CountFrequency::collect(occurring.iter().filter_map(count));
            saved += Savings::new(factorials, &counts).saved(groups, 0).max(0);
        }
        pending += 2 * group.len();
        visits.add_many(&mut pending)?;
    }
    visits.add(pending)?;
    Ok(saved)
}
