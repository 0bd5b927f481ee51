//! Cancellation and progress of long calls.
//!
//! [`Cancellation::run`] makes a [`Cancellation`] handle current for its thread, and for every job that `parallel.rs`
//! starts for it. The engine's loops call [`checkpoint`] at regular intervals. After [`Cancellation::stop`], the next
//! checkpoint unwinds to [`Cancellation::run`], which returns an error of the kind [`ErrorKind::Interrupted`].
//!
//! Cancellation unwinds the stack, as rust-analyzer does for its queries, instead of returning an error through every
//! function. Views cannot fail on their input, so they return no `Result`. Some callers also handle errors themselves
//! (a series omits a build that fails to load), and they must not handle a cancellation. The unwinding is not a panic:
//! it runs no panic hook and prints nothing. Where panics abort (`panic = "abort"`, as in the browser), cancellation
//! does not work.
//!
//! Data that outlives an interrupted call must be consistent at each checkpoint. Files are therefore renamed once they
//! are complete, and caches store complete answers only.
//!
//! Library calls cannot be divided by checkpoints, but each is bounded: one gzip member, the layout of one picture, one
//! sort.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};

/// The units of work (records, rows, steps of a search) between two checkpoints. They take about ten milliseconds at
/// most.
const UNITS_PER_POLL: u32 = 1 << 14;
/// The number of bytes that are read or written between two checkpoints.
const BYTES_PER_POLL: usize = 256 << 10;

/// A handle for a call that is running or about to run. Clones refer to the same call.
#[derive(Debug, Clone)]
pub struct Cancellation(Arc<CancellationState>);

#[derive(Debug)]
struct CancellationState {
    is_stopped: AtomicBool,
    polls: AtomicU64,
    /// The number of checkpoints after which the work stops by itself. Only tests set it.
    last_checkpoint: AtomicU64,
    phase: Mutex<Option<&'static str>>,
    /// The work during which this work was created. It stops together with that work.
    outer: Option<Cancellation>,
}

thread_local! {
    static CURRENT: RefCell<Option<Cancellation>> = const { RefCell::new(None) };
}

/// The unwinding payload, sent from a checkpoint to the handle whose work was stopped.
struct Stopped(Cancellation);

impl Default for Cancellation {
    fn default() -> Cancellation {
        Cancellation::new()
    }
}

impl Cancellation {
    /// Creates a handle for work that has not begun. If it is created while other work runs, it stops together with
    /// that work.
    pub fn new() -> Cancellation {
        Cancellation(Arc::new(CancellationState {
            is_stopped: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            last_checkpoint: AtomicU64::new(u64::MAX),
            phase: Mutex::new(None),
            outer: current(),
        }))
    }

    /// Stops the work at the next checkpoint of each of its threads. Stopped work cannot be restarted.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Relaxed);
    }

    /// Returns true if this work was stopped, or if the work around it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Relaxed) || self.0.outer.as_ref().is_some_and(Cancellation::is_stopped)
    }

    /// Returns the current phase in a word or two, such as `explaining`; `None` before the first phase.
    pub fn phase(&self) -> Option<&'static str> {
        *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on this thread, and its jobs on the rayon pool of this thread.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Interrupted`] if the work was stopped before it finished.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        // Unwinding is safe here: incomplete results are dropped, and shared data is consistent at each checkpoint (see
        // the module comment).
        let result = catch_unwind(AssertUnwindSafe(|| enter(Some(self), work)));
        result.or_else(|payload| match payload.downcast::<Stopped>() {
            Ok(stopped) if Arc::ptr_eq(&stopped.0.0, &self.0) => Err(interrupted()),
            Ok(other) => resume_unwind(other),
            Err(panic) => resume_unwind(panic),
        })
    }

    /// Returns the number of checkpoints so far.
    #[doc(hidden)]
    pub fn polls(&self) -> u64 {
        self.0.polls.load(Relaxed)
    }

    /// Stops the work at the given checkpoint, counted from 0. Tests use it to stop work without a clock.
    #[doc(hidden)]
    pub fn stop_at_checkpoint(&self, checkpoint: u64) {
        self.0.last_checkpoint.store(checkpoint, Relaxed);
    }

    fn checkpoint(&self) {
        if self.0.polls.fetch_add(1, Relaxed) >= self.0.last_checkpoint.load(Relaxed) {
            self.stop();
        }
        self.end_if_stopped();
    }

    fn end_if_stopped(&self) {
        // A second unwinding during an unwinding would abort the process.
        if cfg!(panic = "unwind") && self.is_stopped() && !std::thread::panicking() {
            resume_unwind(Box::new(Stopped(self.clone())));
        }
    }
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "interrupted")
}

/// Returns this thread's current work.
pub(crate) fn current() -> Option<Cancellation> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Runs `run` with `work` as the current work, then restores the previous one. A rayon thread that waits in `join` may
/// execute a job of other work.
fn enter<T>(work: Option<&Cancellation>, run: impl FnOnce() -> T) -> T {
    struct Restore(Option<Cancellation>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    let is_same = CURRENT.with(|current| match (&*current.borrow(), work) {
        (Some(current), Some(work)) => Arc::ptr_eq(&current.0, &work.0),
        (None, None) => true,
        _ => false,
    });
    if is_same {
        return run();
    }
    let _restore = Restore(CURRENT.with(|current| current.replace(work.cloned())));
    run()
}

/// Stops the thread's work at this point if it was cancelled. A checkpoint costs some nanoseconds. Call it between
/// chunks of work, and never while data that outlives the work is inconsistent.
pub fn checkpoint() {
    let _ = CURRENT.try_with(|current| current.borrow().as_ref().map(Cancellation::checkpoint));
}

/// Runs a job of the given work. If the work was stopped, jobs that have not begun end at once.
pub(crate) fn do_job<T>(work: Option<&Cancellation>, job: impl FnOnce() -> T) -> T {
    enter(work, || {
        if let Some(work) = work {
            work.end_if_stopped();
        }
        job()
    })
}

/// Sets the current phase of the thread's work, in a word or two for the user.
pub fn begin_phase(name: &'static str) {
    if let Some(work) = current() {
        *work.0.phase.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
        work.checkpoint();
    }
}

/// Calls [`checkpoint`] outside of an inner loop's code. The function has no parameters, so the loop's counter can stay
/// in a register.
#[cold]
#[inline(never)]
fn poll_aside() {
    checkpoint();
}

/// A counter for the units of work in a loop with checkpoints at regular intervals.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checkpointer(u32);

impl Checkpointer {
    /// Counts the units that the loop is about to process: one for a record or a row.
    #[inline(always)]
    pub fn step(&mut self, units: usize) {
        self.0 = self.0.saturating_add(units as u32);
        if self.0 >= UNITS_PER_POLL {
            self.0 = 0;
            poll_aside();
        }
    }
}

/// A counter for loops over the bytes of a buffer with checkpoints at regular intervals. It counts bytes, because long
/// records take more work.
#[derive(Debug, Clone, Copy)]
pub struct ByteCheckpointer(usize);

impl Default for ByteCheckpointer {
    fn default() -> ByteCheckpointer {
        ByteCheckpointer(usize::MAX)
    }
}

impl ByteCheckpointer {
    /// Receives the number of bytes that remain, which must not grow from call to call.
    #[inline(always)]
    pub fn left(&mut self, bytes: usize) {
        if bytes < self.0 {
            self.0 = bytes.saturating_sub(BYTES_PER_POLL);
            poll_aside();
        }
    }
}

/// A reader with a checkpoint before each read.
#[derive(Debug)]
pub struct CheckpointedRead<R>(pub R);

impl<R: Read> Read for CheckpointedRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        checkpoint();
        self.0.read(buffer)
    }
}

/// A writer with checkpoints at regular intervals.
#[derive(Debug)]
pub struct CheckpointedWrite<W>(W, usize);

impl<W> CheckpointedWrite<W> {
    /// Wraps another writer.
    pub fn new(inner: W) -> CheckpointedWrite<W> {
        CheckpointedWrite(inner, 0)
    }
}

impl<W: Write> Write for CheckpointedWrite<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 += bytes.len();
        if self.1 >= BYTES_PER_POLL {
            self.1 = 0;
            checkpoint();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Yields the same items, and has checkpoints at regular intervals.
pub fn checkpointed<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    let mut pace = Checkpointer::default();
    items.into_iter().inspect(move |_| pace.step(1))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::parallel;

    fn is_interrupted<T>(result: Result<T>) -> bool {
        result.is_err_and(|e| e.kind() == ErrorKind::Interrupted)
    }

    #[test]
    fn stopped_work_ends_at_the_next_poll() {
        let work = Cancellation::new();
        assert!(work.run(|| (checkpoint(), 3)).is_ok_and(|done| done == ((), 3)));
        work.stop_at_checkpoint(5);
        let rounds = Cell::new(0);
        assert!(is_interrupted(work.run(|| {
            loop {
                checkpoint();
                rounds.set(rounds.get() + 1);
            }
        })));
        assert_eq!((rounds.get(), work.polls(), work.is_stopped()), (4, 6, true));
        assert!(is_interrupted(work.run(checkpoint)));
        // Outside of any work, a checkpoint does nothing.
        checkpoint();
    }

    #[test]
    fn jobs_belong_to_the_work_that_started_them() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build();
        let Ok(pool) = pool else { return };
        let (stopped, other) = (Cancellation::new(), Cancellation::new());
        stopped.stop();
        let jobs: Vec<u32> = (0..1000).collect();
        let poll_in_jobs = |work: &Cancellation| {
            work.run(|| {
                let both = || parallel::map(&jobs, |_| (0..50).for_each(|_| checkpoint()));
                parallel::join(both, both)
            })
        };
        // A thread that waits for a job of one work may execute jobs of another work.
        let results = pool.install(|| parallel::map(&[&stopped, &other, &stopped, &other], |work| poll_in_jobs(work)));
        let results: Vec<bool> = results.into_iter().map(is_interrupted).collect();
        assert_eq!(results, [true, false, true, false]);
        assert!(other.polls() >= 200_000 && stopped.polls() < 100, "{} {}", other.polls(), stopped.polls());
    }

    #[test]
    fn inner_work_stops_with_outer_work_but_not_the_reverse() {
        let outer = Cancellation::new();
        let ended = outer.run(|| {
            let inner = Cancellation::new();
            inner.stop();
            assert!(is_interrupted(inner.run(checkpoint)));
            checkpoint();
            let inner = Cancellation::new();
            outer.stop();
            inner.run(checkpoint)
        });
        assert!(ended.is_ok_and(is_interrupted));
    }

    #[test]
    fn panics_are_not_converted_to_interruptions() {
        let work = Cancellation::new();
        work.stop();
        let panic = catch_unwind(AssertUnwindSafe(|| work.run(|| resume_unwind(Box::new(7)))));
        assert!(panic.is_err_and(|payload| payload.downcast::<i32>().is_ok_and(|n| *n == 7)));
    }
}
