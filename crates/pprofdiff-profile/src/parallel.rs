//! The engine's only use of threads inside one diff: on the caller's rayon pool, or not at all.
//!
//! A library that starts threads on its own surprises its callers (and hangs them after
//! `fork`, where rayon's global pool has no threads left). So work is split only when the caller
//! already runs inside a pool: `pool.install(|| Diff::load(..))`. Elsewhere the same code runs on
//! the calling thread. No result depends on which of the two it was.
//!
//! Jobs are part of the [`Work`](crate::Work) that starts them.

use std::cmp::Ordering;

use crate::work::{current, do_job};

#[cfg(any(test, feature = "schedule"))]
pub mod schedule;

#[cfg(not(any(test, feature = "schedule")))]
mod schedule {
    //! Nothing is recorded in a build that is not for it.

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

/// Runs both closures, at the same time if the caller is in a rayon pool.
pub fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    if let Some(mut fork) = Fork::begin() {
        let done = (fork.job(a), fork.job(b));
        fork.end();
        return done;
    }
    if rayon::current_thread_index().is_none() {
        return (a(), b());
    }
    // The first runs here, the second perhaps on another thread.
    let work = current();
    rayon::join(a, || do_job(work.as_ref(), b))
}

/// Maps a slice in order, over the caller's rayon pool if there is one.
pub fn map<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    use rayon::prelude::*;
    let work = current();
    let f = |item| do_job(work.as_ref(), || f(item));
    if let Some(mut fork) = Fork::begin() {
        let done = items.iter().map(|item| fork.job(|| f(item))).collect();
        fork.end();
        return done;
    }
    if items.len() > 1 && rayon::current_thread_index().is_some() {
        items.par_iter().map(f).collect()
    } else {
        items.iter().map(f).collect()
    }
}

/// Sorts by a total order, over the caller's rayon pool if there is one and enough to sort.
pub fn sort_unstable_by<T: Send>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering + Sync) {
    use rayon::prelude::*;
    if items.len() >= 1 << 13 && rayon::current_thread_index().is_some() {
        items.par_sort_unstable_by(compare);
    } else {
        items.sort_unstable_by(compare);
    }
}

/// Does something with each item, over the caller's rayon pool if there is one.
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

/// Number of threads of the caller's pool; one if there is none.
pub fn threads() -> usize {
    schedule::threads().unwrap_or_else(|| rayon::current_thread_index().map_or(1, |_| rayon::current_num_threads()))
}

/// How many parts a work of `n` pieces is best split into: one for each thread of the caller's pool, none of fewer than
/// `least` pieces.
pub fn parts(n: usize, least: usize) -> usize {
    (n / least).clamp(1, threads())
}
