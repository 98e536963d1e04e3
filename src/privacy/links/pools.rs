//! Pools: the sets of rows in which buckets are made where attributes moved to the protected part.

use super::eligibility::StrataTests;
use super::strata::Strata;
use crate::control::Cancelled;
use crate::microdata::AttrSet;

/// Splits each stratum by the moved attributes as far as the demands hold.
///
/// Inside a stratum, the strata of `moved` that satisfy the demands by themselves are sets of their own. All other rows
/// form one pool. While the pool breaks a demand, the smallest remaining set joins it; the whole stratum ends this.
/// A stratum as a whole may break a demand already. It is not split; the second result has the numbers of such sets, rising.
///
/// # Errors
/// [`Cancelled`] when the caller cancels.
pub(super) fn pools(
    strata: &Strata,
    moved: AttrSet,
    ineligible: &[u32],
    tests: &StrataTests<'_>,
) -> Result<(Strata, Vec<u32>), Cancelled> {
    if moved.is_empty() {
        return Ok((strata.clone(), ineligible.to_vec()));
    }
    let fine = Strata::new(tests.table(), moved);
    let mut of_row = vec![0; strata.of_row().len()];
    let (mut sets, mut closed) = (0, Vec::new());
    for (stratum, rows) in (0..).zip(strata.split().iter()) {
        if ineligible.binary_search(&stratum).is_ok() {
            rows.iter().for_each(|&row| of_row[row as usize] = sets);
            closed.push(sets);
            sets += 1;
            continue;
        }
        for set in sets_of(rows, &fine, tests)? {
            set.iter().for_each(|&row| of_row[row as usize] = sets);
            sets += 1;
        }
    }
    Ok((Strata::from_ranks(of_row, sets as usize), closed))
}

/// The sets of rows inside one stratum, the pool last.
fn sets_of(rows: &[u32], fine: &Strata, tests: &StrataTests<'_>) -> Result<Vec<Vec<u32>>, Cancelled> {
    let mut counter = tests.counter();
    let references = tests.references(rows, &mut counter);
    let mut own: Vec<Vec<u32>> = Vec::new();
    let mut pool: Vec<u32> = Vec::new();
    for part in parts(rows, fine) {
        if tests.hold(&part, &references, &mut counter) { own.push(part) } else { pool.extend(part) }
    }
    let mut own = own.into_iter();
    while !pool.is_empty() && !tests.hold(&pool, &references, &mut counter) {
        let Some(smallest) = own.next() else { break };
        pool.extend(smallest);
    }
    let mut sets: Vec<Vec<u32>> = own.collect();
    if !pool.is_empty() {
        pool.sort_unstable();
        sets.push(pool);
    }
    Ok(sets)
}

/// The rows of one stratum by the strata of the moved attributes: by size, then by value.
fn parts(rows: &[u32], fine: &Strata) -> Vec<Vec<u32>> {
    let mut keyed: Vec<(u32, u32)> = rows.iter().map(|&row| (fine.of_row()[row as usize], row)).collect();
    keyed.sort_unstable();
    let mut parts: Vec<Vec<u32>> =
        keyed.chunk_by(|a, b| a.0 == b.0).map(|part| part.iter().map(|&(_, row)| row).collect()).collect();
    // stable, so that equal sizes stay in the order of values
    parts.sort_by_key(Vec::len);
    parts
}
