//! Placement of rows in buckets, once the values of each size are decided.

use super::filled::FilledBuckets;
use crate::control::{Cancelled, Control};
use crate::microdata::Codes;
use crate::publication::SizeCount;
use crate::publish::assign::BucketAssignment;
use crate::random::RandomStream;

/// Deals the rows. The size of each row of a value is drawn; within a size, rows go round robin, values in a drawn order.
///
/// # Errors
/// [`Cancelled`] on cancellation.
pub fn place(
    codes: &Codes,
    values: usize,
    filled: &[FilledBuckets],
    stream: &mut RandomStream,
    control: &Control,
) -> Result<BucketAssignment, Cancelled> {
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); values];
    for (row, code) in (0..).zip(codes.iter()) {
        if (row as usize).is_multiple_of(Control::STRIDE) {
            control.check()?;
        }
        rows_of[code as usize].push(row);
    }
    for rows in &mut rows_of {
        control.check()?;
        stream.shuffle(rows);
    }
    let mut bucket_of = vec![0; codes.len()];
    let (mut before, mut done) = (0_u64, 0);
    let mut order: Vec<usize> = (0..values).collect();
    for FilledBuckets { class: SizeCount { buckets, .. }, counts } in filled {
        stream.shuffle(&mut order);
        let mut turn = 0;
        for &value in &order {
            let rest = rows_of[value].len() - counts[value] as usize;
            for row in rows_of[value].drain(rest..) {
                bucket_of[row as usize] = (before + turn) as u32;
                turn = (turn + 1) % buckets;
                done += 1;
                if done % Control::STRIDE == 0 {
                    control.advance(Control::STRIDE as u64)?;
                }
            }
        }
        before += buckets;
    }
    Ok(BucketAssignment { bucket_of, buckets: before as u32 })
}
