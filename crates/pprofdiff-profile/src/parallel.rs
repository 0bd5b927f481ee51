//! Parallel execution on the caller's rayon pool. This is the engine's only use of threads inside one diff.
//!
//! A library that starts its own threads surprises its callers, and hangs after `fork`, because rayon's global pool has
//! no threads in the child process. Work is therefore split only if the caller already runs in a pool:
//! `pool.install(|| Diff::load(..))`. Otherwise, the same code runs on the calling thread. The results are the same in
//! both cases.
//!
//! Jobs belong to the [`Cancellation`](crate::Cancellation) that is current where they start.

use std::cmp::Ordering;

use crate::cancellation::{current, do_job};

#[cfg(any(test, feature = "schedule"))]
pub mod schedule;

#[cfg(not(any(test, feature = "schedule")))]
mod schedule {
    //! An empty replacement for builds that do not record schedules.

    pub(super) enum Fork {}

    impl Fork {
        pub(super) fn begin() -> Option<Fork> {
            None
        }

        pub(super) fn job<R>(&mut self, _: impl FnOnce() -> R) -> R {
            match *self {}
        }

        pub(super) fn end(self) {
            match self {}
        }
    }

    pub(super) fn threads() -> Option<usize> {
        None
    }
}

use schedule::Fork;

/// Runs both closures, in parallel if the caller is in a rayon pool.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if let Some(mut fork) = Fork::begin() {
        let results = (fork.job(a), fork.job(b));
        fork.end();
        return results;
    }
    if rayon::current_thread_index().is_none() {
        return (a(), b());
    }
    // `a` runs on this thread, which already has the current work. `b` may run on another thread.
    let work = current();
    rayon::join(a, || do_job(work.as_ref(), b))
}

/// Maps a slice in order, in parallel if the caller is in a rayon pool.
pub fn map<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    use rayon::prelude::*;
    let work = current();
    let f = |item| do_job(work.as_ref(), || f(item));
    if let Some(mut fork) = Fork::begin() {
        let results = items.iter().map(|item| fork.job(|| f(item))).collect();
        fork.end();
        return results;
    }
    if items.len() > 1 && rayon::current_thread_index().is_some() {
        items.par_iter().map(f).collect()
    } else {
        items.iter().map(f).collect()
    }
}

/// Sorts by a total order, in parallel if the caller is in a rayon pool and the slice is large enough.
pub fn sort_unstable_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    use rayon::prelude::*;
    if items.len() >= 1 << 13 && rayon::current_thread_index().is_some() {
        items.par_sort_unstable_by(compare);
    } else {
        items.sort_unstable_by(compare);
    }
}

/// Calls `f` with each item, in parallel if the caller is in a rayon pool.
pub fn each<T: Send>(items: Vec<T>, f: impl Fn(T) + Sync + Send) {
    use rayon::prelude::*;
    let work = current();
    let f = |item| do_job(work.as_ref(), || f(item));
    if let Some(mut fork) = Fork::begin() {
        items.into_iter().for_each(|item| fork.job(|| f(item)));
        return fork.end();
    }
    if items.len() > 1 && rayon::current_thread_index().is_some() {
        items.into_par_iter().for_each(f);
    } else {
        items.into_iter().for_each(f);
    }
}

/// Returns the number of threads in the caller's pool, or 1 without a pool.
pub fn threads() -> usize {
    schedule::threads().unwrap_or_else(|| rayon::current_thread_index().map_or(1, |_| rayon::current_num_threads()))
}

/// Returns the best number of parts for `n` pieces of work: one part per thread of the caller's pool, each with at
/// least `least` pieces.
pub fn parts(n: usize, least: usize) -> usize {
    (n / least).clamp(1, threads())
}
