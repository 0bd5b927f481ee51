//! A batch of many pairs of profiles. Only this module works on more than one pair at a time.
//!
//! ```text
//! push -> at most `capacity` pairs, in progress or finished -> pop, in the order of push
//! ```
//!
//! The caller provides the pool and controls the pace. `push` accepts any number of pairs: the bound holds only if the
//! caller pushes while the batch has room, as [`batch()`] does. The number of profiles in memory is then bounded,
//! however many pairs there are. A failed pair yields an `Err` in its place and does not stop other pairs. Dropping a
//! batch cancels its pairs. Cancelling the work that created the batch cancels them too; [`batch()`] and
//! `map` then also stop waiting for a pair, while [`Batch::pop`] does not check for cancellation.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rayon::ThreadPool;

#[cfg(feature = "files")]
use crate::Error;
use crate::Result;
use crate::diff::Diff;
#[cfg(feature = "files")]
use crate::input::BatchItem;
use crate::{LoadOptions, Source};
use pprofdiff_profile::{Cancellation, cancellation};

/// The interval between two checks for cancellation, while [`batch()`] and `map` wait for a pair.
const TICK: Duration = Duration::from_millis(50);

/// The result of a pair. A panic is stored, and resumes on the thread that pops the pair.
type PairOutcome<T> = std::thread::Result<Result<T>>;

/// A queue of pairs that a pool works on, for callers that control the pace themselves. [`batch()`] is simpler for a
/// plain loop. The queue keeps the diff of each pair, or the result of the closure passed to [`Batch::push_as`]. A
/// table takes less memory than a diff, and the closure runs on the pool.
pub struct Batch<T = Diff> {
    pool: Arc<ThreadPool>,
    options: LoadOptions,
    pending: VecDeque<Receiver<PairOutcome<T>>>,
    /// The cancellation token that all pairs share.
    work: Cancellation,
}

impl<T> std::fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").finish_non_exhaustive()
    }
}

impl Batch {
    /// Submits a pair to the pool, even if the batch has no room. Never blocks.
    pub fn push(&mut self, base: Vec<Source>, new: Vec<Source>) {
        self.push_as(base, new, Ok);
    }
}

impl<T: Send + 'static> Batch<T> {
    /// Creates an empty batch.
    pub fn new(pool: Arc<ThreadPool>, options: LoadOptions) -> Batch<T> {
        Batch { pool, options, pending: VecDeque::new(), work: Cancellation::new() }
    }

    /// Returns the number of pairs that the batch should hold at once: two per thread, so that a thread need not wait
    /// until the consumer pops a finished pair.
    pub fn capacity(&self) -> usize {
        2 * self.pool.current_num_threads()
    }

    /// Returns the number of pairs that were pushed and not yet popped.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns true if no pair is left to pop.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true if the batch holds fewer pairs than its capacity.
    pub fn has_room(&self) -> bool {
        self.len() < self.capacity()
    }

    /// Submits a pair to the pool, which converts its diff with `make`. Accepts the pair even if the batch has no room.
    /// Never blocks, unless the calling thread is the only thread of the pool: then it loads the pair.
    pub fn push_as(
        &mut self,
        base: Vec<Source>,
        new: Vec<Source>,
        make: impl FnOnce(Diff) -> Result<T> + Send + 'static,
    ) {
        // The channel has one slot, so a worker never waits for the consumer.
        let (sender, receiver) = sync_channel(1);
        let (options, work) = (self.options.clone(), self.work.clone());
        let load = move || {
            let pair = || work.run(|| make(Diff::load(&base, &new, &options)?)).and_then(|result| result);
            let outcome = catch_unwind(AssertUnwindSafe(pair));
            // Sending fails if the batch was dropped in the meantime.
            let _ = sender.send(outcome);
        };
        // In Pyodide, the caller is the only thread of the pool.
        if self.pool.current_num_threads() == 1 && self.pool.current_thread_index().is_some() {
            load();
        } else {
            self.pool.spawn(load);
        }
        self.pending.push_back(receiver);
    }

    /// Waits for the oldest pair. Returns `None` at once for an empty batch, or after `timeout` if the pair is
    /// unfinished. Must not be called on one of several threads of the pool, because the pair may need that thread.
    /// Panics if the pair panicked.
    pub fn pop(&mut self, timeout: Duration) -> Option<Result<T>> {
        let outcome = match self.pending.front()?.recv_timeout(timeout) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("a pair sends its outcome"),
        };
        self.pending.pop_front();
        Some(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<T: Send + 'static> Batch<T> {
    /// Waits for the oldest pair without a timeout. Returns `None` for an empty batch. Unwinds if the caller's work is
    /// cancelled.
    fn next(&mut self) -> Option<Result<T>> {
        while !self.is_empty() {
            cancellation::checkpoint();
            if let Some(result) = self.pop(TICK) {
                return Some(result);
            }
        }
        None
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        self.work.stop();
    }
}

/// Compares many pairs (base, new) on a pool. The results are in the order of the pairs. The iterator takes at most
/// [`Batch::capacity`] pairs in advance. `next` unwinds if the caller's work is cancelled.
///
/// ```no_run
/// use std::sync::Arc;
/// use pprofdiff::{LoadOptions, Source, batch};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Arc::new(rayon::ThreadPoolBuilder::new().build()?);
/// let side = |path: String| vec![Source::Path(path.into())];
/// let pairs = (0..1000).map(|i| (side(format!("{i}.main.pb.gz")), side(format!("{i}.branch.pb.gz"))));
/// for diff in batch(pool, pairs, LoadOptions::default()) {
///     match diff {
///         Ok(diff) => println!("{:?}", diff.sample_types()),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub fn batch(
    pool: Arc<ThreadPool>,
    pairs: impl IntoIterator<Item = (Vec<Source>, Vec<Source>)>,
    options: LoadOptions,
) -> impl Iterator<Item = Result<Diff>> {
    let mut batch = Batch::new(pool, options);
    let mut pairs = pairs.into_iter().fuse();
    std::iter::from_fn(move || {
        while batch.has_room()
            && let Some((base, new)) = pairs.next()
        {
            batch.push(base, new);
        }
        batch.next()
    })
}

/// Converts the diffs of many named pairs with `make`, and returns names and results in the order of the pairs. Like
/// [`batch()`], but a table or a summary takes less memory than a diff, and `make` runs on the pool. A pair whose sides
/// are an `Err` yields that error.
#[cfg(feature = "files")]
pub fn map<T: Send + 'static>(
    pool: Arc<ThreadPool>,
    pairs: impl IntoIterator<Item = BatchItem>,
    options: LoadOptions,
    make: impl Fn(Diff) -> Result<T> + Send + Sync + 'static,
) -> impl Iterator<Item = (String, Result<T>)> {
    let mut batch = Batch::new(pool, options);
    let mut pairs = pairs.into_iter().fuse();
    let make = Arc::new(make);
    // The names of the submitted pairs, with the errors of pairs that never reached the pool.
    let mut submitted: VecDeque<(String, Option<Error>)> = VecDeque::new();
    std::iter::from_fn(move || {
        while submitted.len() < batch.capacity()
            && let Some(BatchItem { name, sides, .. }) = pairs.next()
        {
            let error = match sides {
                Ok((base, new)) => {
                    let make = make.clone();
                    batch.push_as(base, new, move |diff| make(diff));
                    None
                }
                Err(e) => Some(e),
            };
            submitted.push_back((name, error));
        }
        let (name, error) = submitted.pop_front()?;
        let result = match error {
            Some(e) => Err(e),
            None => batch.next()?,
        };
        Some((name, result))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::ErrorKind;

    fn pool() -> Arc<ThreadPool> {
        Arc::new(rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap())
    }

    fn corpus(name: &str) -> Vec<Source> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(name);
        assert!(path.exists());
        vec![Source::Path(path)]
    }

    #[test]
    fn results_are_in_the_order_of_the_pairs_and_a_bad_pair_stops_no_other_pair() {
        let pairs = (0..40).map(|i| match i % 4 {
            // Large and small pairs alternate, so that they do not finish in order.
            0 => (corpus("story-cpu.base.pb.gz"), corpus("story-cpu.new.pb.gz")),
            1 => (vec![Source::Bytes(format!("bad {i}"), vec![0xff])], corpus("go-heap.new.pb.gz")),
            2 => (corpus("go-heap.base.pb.gz"), Vec::new()),
            _ => (corpus("go-mutex.base.pb.gz"), corpus("go-mutex.new.pb.gz")),
        });
        let results: Vec<_> = batch(pool(), pairs, LoadOptions::default()).collect();
        assert_eq!(results.len(), 40);
        for (i, result) in results.into_iter().enumerate() {
            let name = |d: &Diff| d.new_side().next().unwrap().name().to_owned();
            match (i % 4, result) {
                (0, Ok(diff)) => assert!(name(&diff).ends_with("story-cpu.new.pb.gz")),
                (1, Err(e)) => assert_eq!(e.input(), Some(format!("bad {i}").as_str())),
                (2, Err(e)) => assert_eq!(e.kind(), ErrorKind::Query),
                (3, Ok(diff)) => assert!(name(&diff).ends_with("go-mutex.new.pb.gz")),
                (_, result) => panic!("{i}: {:?}", result.map(|d| name(&d))),
            }
        }
    }

    #[test]
    fn a_caller_that_is_the_only_thread_of_the_pool_loads_the_pairs_itself() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
        let mut batch: Batch<Diff> = Batch::new(Arc::new(pool), LoadOptions::default());
        batch.push(vec![Source::Path(PathBuf::from("none"))], vec![Source::Path(PathBuf::from("none"))]);
        assert!(batch.pop(TICK).is_some(), "the pair waits for a thread");
    }

    #[test]
    fn cancelling_the_callers_work_ends_the_batch() {
        let pair = || (corpus("go-mutex.base.pb.gz"), corpus("go-mutex.new.pb.gz"));
        let outer = Cancellation::new();
        let mut done = 0;
        let ended = outer.run(|| {
            for result in batch(pool(), std::iter::repeat_with(pair), LoadOptions::default()) {
                result.unwrap();
                done += 1;
                if done == 5 {
                    outer.stop();
                }
            }
        });
        assert_eq!((ended.unwrap_err().kind(), done), (ErrorKind::Interrupted, 5));
    }

    #[test]
    fn dropping_a_batch_ends_its_pairs() {
        let pool = pool();
        let mut batch: Batch<()> = Batch::new(pool.clone(), LoadOptions::default());
        for _ in 0..3 {
            let without_end = |_| -> Result<()> {
                loop {
                    cancellation::checkpoint();
                }
            };
            batch.push_as(corpus("go-mutex.base.pb.gz"), corpus("go-mutex.new.pb.gz"), without_end);
        }
        drop(batch);
        // If the three pairs did not end, they would occupy all three threads of the pool, and `install` would wait
        // forever.
        pool.install(|| ());
    }

    #[test]
    fn a_batch_takes_only_the_pairs_that_it_has_room_for() {
        let taken = std::cell::Cell::new(0);
        let pairs = std::iter::from_fn(|| {
            taken.set(taken.get() + 1);
            Some((corpus("go-mutex.base.pb.gz"), corpus("go-mutex.new.pb.gz")))
        });
        for (i, result) in batch(pool(), pairs, LoadOptions::default()).take(30).enumerate() {
            result.unwrap();
            assert!(taken.get() <= i + 6, "{} pairs taken when {i} were done", taken.get());
        }
    }
}
