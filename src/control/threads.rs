//! Threads of one computation.

/// The most threads of a computation.
const MAX_THREADS: usize = 16;

/// Rows whose treatment takes about as long as to hand it to another thread and to wait for it.
const ROWS_OF_A_TASK: usize = 1 << 13;

/// The fewest items that another thread should take, where each has this number of rows.
#[must_use]
pub fn fewest_at_once(rows: usize) -> usize {
    ROWS_OF_A_TASK.div_ceil(rows.max(1))
}

/// Runs a computation whose parallel parts have threads of their own. Those of a shared pool end all parts of a large computation
/// before they begin with a small one.
///
/// Where the system gives no more threads, the computation uses the shared ones.
pub fn with_own_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let threads = rayon::current_num_threads().min(MAX_THREADS);
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        Err(_no_threads) => work(),
    }
}

/// Runs `work` while all shared threads are busy, and waits for its result at most a minute.
#[cfg(test)]
pub(crate) fn while_shared_threads_are_busy<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    use std::sync::mpsc::{channel, sync_channel};
    use std::time::Duration;

    let (begun, begins) = channel();
    let (end, ends) = channel::<()>();
    let ends = std::sync::Arc::new(std::sync::Mutex::new(ends));
    for _ in 0..rayon::current_num_threads() {
        let (begun, ends) = (begun.clone(), ends.clone());
        rayon::spawn(move || {
            begun.send(()).unwrap();
            // ends with the sender
            let _ = ends.lock().map(|ends| ends.recv());
        });
    }
    begins.iter().take(rayon::current_num_threads()).for_each(drop);
    let (done, result) = sync_channel(1);
    std::thread::spawn(move || done.send(work()));
    let found = result.recv_timeout(Duration::from_secs(60)).ok();
    drop(end);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_shared_threads_keep_no_computation_waiting() {
        let parallel = || rayon::join(|| 1, || 2);
        assert_eq!(while_shared_threads_are_busy(move || with_own_threads(parallel)), Some((1, 2)));
    }
}
