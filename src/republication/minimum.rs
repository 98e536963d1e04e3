//! The least size of a cohort for which an ineligible one is an event of four standard deviations.

use super::state::PublishedSlots;

/// The least n of at least l with n (N - l c)^2 >= 16 l^2 c (N - c) for the number c of slots of each value, N slots in all.
///
/// It follows from published figures alone. `None` where no number suffices: some value takes 1/l of the slots.
#[must_use]
pub fn least_newcomers(published: &PublishedSlots, l: u64) -> Option<u64> {
    let slots: u64 = published.by_value.iter().sum();
    published.by_value.iter().try_fold(l.max(1), |least, &of_value| {
        let (l, c, all) = (u128::from(l), u128::from(of_value), u128::from(slots));
        let spare = all.checked_sub(l.checked_mul(c)?).filter(|&spare| spare > 0)?;
        let needed = l.checked_mul(l)?.checked_mul(16)?.checked_mul(c)?.checked_mul(all - c)?;
        let needed = needed.div_ceil(spare.checked_mul(spare)?);
        Some(least.max(u64::try_from(needed).ok()?))
    })
}
