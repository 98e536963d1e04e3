//! The memory that the jobs and plans of a process may take together. Requests are served in order, so that a large job is
//! not overtaken by later small ones.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Kind, Problem};

/// Bytes of one permit of the semaphore.
const PERMIT_BYTES: u64 = 1 << 20;

/// A bound on memory, or none. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryBudget(Option<BudgetState>);

#[derive(Clone, Debug)]
struct BudgetState {
    bytes: u64,
    free: Arc<Semaphore>,
}

/// Memory that is taken until this is dropped.
#[derive(Debug)]
pub struct MemoryPermit(#[expect(dead_code, reason = "held until it is dropped")] Option<OwnedSemaphorePermit>);

impl MemoryPermit {
    /// No memory.
    #[must_use]
    pub const fn nothing() -> Self {
        Self(None)
    }
}

impl MemoryBudget {
    /// A budget of `bytes` bytes; `None` for no bound.
    #[must_use]
    pub fn new(bytes: Option<u64>) -> Self {
        let bound = |bytes: u64| BudgetState { bytes, free: Arc::new(Semaphore::new(units(bytes, bytes) as usize)) };
        Self(bytes.map(bound))
    }

    /// Refuses what does not fit even when nothing else runs.
    ///
    /// # Errors
    /// `work-limit`
    pub fn check(&self, need: u64) -> Result<(), Problem> {
        match &self.0 {
            Some(BudgetState { bytes, .. }) if need > *bytes => {
                let detail = "the job is estimated to need more bytes of memory than jobs may take; drop attributes, above all \
                              those of many values, or let the operator raise the budget";
                Err(Problem::new(Kind::WorkLimit, detail).with("limit", *bytes).with("found", need))
            }
            _ => Ok(()),
        }
    }

    /// Takes memory, once all who asked before have theirs and it is free.
    ///
    /// # Errors
    /// As [`MemoryBudget::check`].
    pub async fn acquire(&self, need: u64) -> Result<MemoryPermit, Problem> {
        self.check(need)?;
        let Some(BudgetState { bytes, free }) = &self.0 else { return Ok(MemoryPermit(None)) };
        // never closed
        Ok(MemoryPermit(Arc::clone(free).acquire_many_owned(units(need, *bytes)).await.ok()))
    }

    /// Takes memory that is free at once.
    ///
    /// # Errors
    /// As [`MemoryBudget::check`], or `too-many-requests`.
    pub fn try_acquire(&self, need: u64) -> Result<MemoryPermit, Problem> {
        self.check(need)?;
        let Some(BudgetState { bytes, free }) = &self.0 else { return Ok(MemoryPermit(None)) };
        match Arc::clone(free).try_acquire_many_owned(units(need, *bytes)) {
            Ok(taken) => Ok(MemoryPermit(Some(taken))),
            Err(_none_free) => {
                let detail = "the memory for jobs and plans is taken by those that run";
                let problem = Problem::new(Kind::TooManyRequests, detail).with("limit", *bytes).with("found", need);
                Err(problem.retry_after(10))
            }
        }
    }
}

/// Permits for `need` bytes, at most those of the whole budget.
fn units(need: u64, of: u64) -> u32 {
    let most = u32::try_from(of / PERMIT_BYTES).unwrap_or(u32::MAX).max(1);
    u32::try_from(need.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).min(most)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;

    const MIB: u64 = 1 << 20;

    async fn is_pending<F: Future>(future: &mut Pin<Box<F>>) -> bool {
        std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await
    }

    #[tokio::test]
    async fn what_never_fits_is_refused_with_both_numbers() {
        let budget = MemoryBudget::new(Some(10 * MIB));
        let problem = budget.acquire(10 * MIB + 1).await.unwrap_err();
        assert_eq!(problem.kind, Kind::WorkLimit);
        assert_eq!(
            (&problem.members["limit"], &problem.members["found"]),
            (&(10 * MIB).into(), &(10 * MIB + 1).into())
        );
        assert!(budget.check(10 * MIB).is_ok());
        assert!(MemoryBudget::new(Some(0)).check(1).is_err());
        assert!(MemoryBudget::default().check(u64::MAX).is_ok());
    }

    #[tokio::test]
    async fn memory_is_given_out_in_the_order_of_asking() {
        let budget = MemoryBudget::new(Some(10 * MIB));
        let first = budget.acquire(6 * MIB).await.unwrap();
        let mut large = Box::pin(budget.acquire(10 * MIB));
        assert!(is_pending(&mut large).await);
        // there is room for a small one, but a large one waits
        let mut small = Box::pin(budget.acquire(MIB));
        assert!(is_pending(&mut small).await);
        assert_eq!(budget.try_acquire(5 * MIB).unwrap_err().kind, Kind::TooManyRequests);
        drop(first);
        let large = large.await.unwrap();
        assert!(is_pending(&mut small).await);
        drop(large);
        small.await.unwrap();
        drop(budget.try_acquire(10 * MIB).unwrap());
    }

    #[tokio::test]
    async fn budget_of_a_fraction_of_permits_can_be_taken_whole() {
        for bytes in [1, MIB - 1, 3 * MIB + 5, u64::from(u32::MAX) * MIB * 2] {
            let budget = MemoryBudget::new(Some(bytes));
            let all = budget.acquire(bytes).await.unwrap();
            assert!(budget.try_acquire(1).is_err());
            drop(all);
        }
    }
}
