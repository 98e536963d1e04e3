//! Errors of dependencies with one determinant.
//!
//! # Citations
//! [Kivinen and Mannila 1995], g3

use super::rows::{CodeNumbers, GroupedRows, RowVisits};
use super::search::SearchedColumn;
use crate::control::{Cancelled, Control};
use crate::with_codes;

/// The g3 error of a dependency: the fewest rows without which it is exact; `None` above what `dependent` allows.
///
/// `rows` are those of the determinant. These are the rows other than the most frequent value of each group.
pub(super) fn errors_by_group(
    rows: &GroupedRows,
    dependent: &SearchedColumn<'_>,
    numbers: &mut CodeNumbers,
    visits: &RowVisits<'_>,
) -> Result<Option<usize>, Cancelled> {
    let (mut errors, mut pending) = (0, 0);
    let values = dependent.column.domain.len();
    with_codes!(&dependent.column.codes, codes => {
        for group in rows.groups(rows.rows()) {
            // one row has the most frequent value of its group
            if group.len() == 1 {
                pending += 1;
                visits.add_many(&mut pending)?;
                continue;
            }
            let (mut seen, mut top) = (0, 0);
            numbers.forget(values);
            for some in group.chunks(Control::STRIDE) {
                for &row in some {
                    top = top.max(numbers.increment(codes[row as usize] as usize));
                }
                seen += some.len();
                pending += some.len();
                visits.add_many(&mut pending)?;
                // a part of a group has no more errors than the group
                if errors + seen - top as usize > dependent.most_errors {
                    visits.add(pending)?;
                    return Ok(None);
                }
            }
            errors += seen - top as usize;
        }
    });
    visits.add(pending)?;
    Ok(Some(errors))
}

/// The same, where nearly all rows have one value: the groups of the other rows decide.
pub(super) fn errors_of_rare_values(
    determinant: &SearchedColumn<'_>,
    dependent: &SearchedColumn<'_>,
    rare: &[u32],
) -> Option<usize> {
    let (from, to) = (&determinant.column.codes, &dependent.column.codes);
    let both = |&row: &u32| (from.get(row as usize), to.get(row as usize));
    let mut cells: Vec<(u32, u32)> = rare.iter().map(both).collect();
    cells.sort_unstable();
    let mut errors = 0;
    for group in cells.chunk_by(|one, other| one.0 == other.0) {
        let top = group.chunk_by(|one, other| one == other).map(<[_]>::len).max().unwrap_or(0);
        // either the most frequent value of the column is kept, or the most frequent rare one
        errors += group.len().min(determinant.of_codes[group[0].0 as usize] as usize - top);
        if errors > dependent.most_errors {
            return None;
        }
    }
    Some(errors)
}
