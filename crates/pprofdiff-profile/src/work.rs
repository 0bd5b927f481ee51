//! A handle on work that is under way: stops it, and says what it is doing.
//!
//! The handle is the thread's while [`Work::run`] runs, and that of every job that `parallel.rs` starts for it. The engine's
//! loops [`poll`] between chunks of counted work. Once the handle is stopped, the next poll unwinds to [`Work::run`], which
//! returns an error of the kind [`ErrorKind::Interrupted`]. Unwinding, as rust-analyzer cancels its queries, and not an error
//! that each function hands on: views can't fail on their input and return no `Result`, and callers that turn errors into
//! something else (a build of a series that is left out) must not turn this one. It is no panic: no hook runs, nothing is
//! printed, and where panics abort (`panic = "abort"`, as in the browser) nothing is ever stopped.
//!
//! What outlives an interrupted call must be whole at each poll: files are renamed when they are written, caches get whole
//! answers.
//!
//! What can't be cut into chunks is a library's, and bounded: a member of gzip, a picture's layout, a sort.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};

/// Units of work (records, rows, steps of a search) from one poll to the next: some ten milliseconds' worth at most.
const UNITS_PER_POLL: u32 = 1 << 14;
/// The same for bytes that are read.
const BYTES_PER_POLL: usize = 256 << 10;

/// Work that is under way, or is to begin; clones are the same work.
#[derive(Debug, Clone)]
pub struct Work(Arc<State>);

#[derive(Debug)]
struct State {
    is_stopped: AtomicBool,
    polls: AtomicU64,
    /// The poll at which it stops by itself.
    last_poll: AtomicU64,
    phase: Mutex<Option<&'static str>>,
    /// Within which it began: it stops with it.
    outer: Option<Work>,
}

thread_local! {
    static CURRENT: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// What unwinds, from a poll to the handle whose work was stopped.
struct Stopped(Work);

impl Default for Work {
    fn default() -> Work {
        Work::new()
    }
}

impl Work {
    /// A handle on work that is still to begin. Begun within other work, it stops with that.
    pub fn new() -> Work {
        Work(Arc::new(State {
            is_stopped: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            last_poll: AtomicU64::new(u64::MAX),
            phase: Mutex::new(None),
            outer: current(),
        }))
    }

    /// Ends the work at the next poll of each of its threads. It can't be begun again.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Relaxed);
    }

    /// True once it was stopped, or what it is part of.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Relaxed) || self.0.outer.as_ref().is_some_and(Work::is_stopped)
    }

    /// What it is doing, in one word such as `explaining`; `None` before the first phase.
    pub fn phase(&self) -> Option<&'static str> {
        *self.0.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work on this thread, and on the rayon pool that it belongs to.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if it was stopped before it was done.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        // What is half made is dropped, or whole at each poll; see the module.
        let result = catch_unwind(AssertUnwindSafe(|| enter(Some(self), work)));
        result.or_else(|payload| match payload.downcast::<Stopped>() {
            Ok(stopped) if Arc::ptr_eq(&stopped.0.0, &self.0) => Err(interrupted()),
            Ok(other) => resume_unwind(other),
            Err(panic) => resume_unwind(panic),
        })
    }

    /// How often its loops have asked whether to go on.
    #[doc(hidden)]
    pub fn polls(&self) -> u64 {
        self.0.polls.load(Relaxed)
    }

    /// Stops it at a poll, counted from 0: for tests, which stop work without a clock.
    #[doc(hidden)]
    pub fn stop_at_poll(&self, poll: u64) {
        self.0.last_poll.store(poll, Relaxed);
    }

    fn poll(&self) {
        if self.0.polls.fetch_add(1, Relaxed) >= self.0.last_poll.load(Relaxed) {
            self.stop();
        }
        self.end_if_stopped();
    }

    fn end_if_stopped(&self) {
        // A thread that unwinds already would abort.
        if cfg!(panic = "unwind") && self.is_stopped() && !std::thread::panicking() {
            resume_unwind(Box::new(Stopped(self.clone())));
        }
    }
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Interrupted, "interrupted")
}

/// The work that this thread is part of.
pub(crate) fn current() -> Option<Work> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Runs something as part of a work, and then what this thread did before: one that waits for another thread helps out with
/// jobs of other work.
fn enter<T>(work: Option<&Work>, run: impl FnOnce() -> T) -> T {
    struct Back(Option<Work>);
    impl Drop for Back {
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
    let _back = Back(CURRENT.with(|current| current.replace(work.cloned())));
    run()
}

/// Ends the thread's work here if it was stopped. Costs some nanoseconds: call it between chunks of work, and not while
/// something that outlives the work is half changed.
pub fn poll() {
    let _ = CURRENT.try_with(|current| current.borrow().as_ref().map(Work::poll));
}

/// Does a job of a work, unless that was stopped: jobs that other threads have not begun then end before they do anything.
pub(crate) fn do_job<T>(work: Option<&Work>, job: impl FnOnce() -> T) -> T {
    enter(work, || {
        if let Some(work) = work {
            work.end_if_stopped();
        }
        job()
    })
}

/// Says what the thread's work is doing from here on, in one word for people.
pub fn begin_phase(name: &'static str) {
    if let Some(work) = current() {
        *work.0.phase.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
        work.poll();
    }
}

/// [`poll`] out of the way of an inner loop; it takes no reference, so that the loop's counter may stay in a register.
#[cold]
#[inline(never)]
fn poll_aside() {
    poll();
}

/// Counts the work of a loop, and polls from time to time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace(u32);

impl Pace {
    /// So much more will be done: one for a record or a row.
    #[inline(always)]
    pub fn step(&mut self, units: usize) {
        self.0 = self.0.saturating_add(units as u32);
        if self.0 >= UNITS_PER_POLL {
            self.0 = 0;
            poll_aside();
        }
    }
}

/// Polls as bytes are read: by bytes, since long records are more work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BytePace(usize);

impl Default for BytePace {
    fn default() -> BytePace {
        BytePace(usize::MAX)
    }
}

impl BytePace {
    /// So many bytes are left, no more than before.
    #[inline(always)]
    pub fn left(&mut self, bytes: usize) {
        if bytes < self.0 {
            self.0 = bytes.saturating_sub(BYTES_PER_POLL);
            poll_aside();
        }
    }
}

/// Reads, and polls before it does.
pub(crate) struct PolledRead<R>(pub R);

impl<R: Read> Read for PolledRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll();
        self.0.read(buffer)
    }
}

/// Writes, and polls from time to time.
pub struct PolledWrite<W>(W, usize);

impl<W> PolledWrite<W> {
    /// Around another writer.
    pub fn new(inner: W) -> PolledWrite<W> {
        PolledWrite(inner, 0)
    }
}

impl<W: Write> Write for PolledWrite<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 += bytes.len();
        if self.1 >= BYTES_PER_POLL {
            self.1 = 0;
            poll();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The same items; polls from time to time.
pub fn paced<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    let mut pace = Pace::default();
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
        let work = Work::new();
        assert!(work.run(|| (poll(), 3)).is_ok_and(|done| done == ((), 3)));
        work.stop_at_poll(5);
        let rounds = Cell::new(0);
        assert!(is_interrupted(work.run(|| {
            loop {
                poll();
                rounds.set(rounds.get() + 1);
            }
        })));
        assert_eq!((rounds.get(), work.polls(), work.is_stopped()), (4, 6, true));
        assert!(is_interrupted(work.run(poll)));
        // Outside nothing is stopped.
        poll();
    }

    #[test]
    fn jobs_are_part_of_the_work_that_started_them() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build();
        let Ok(pool) = pool else { return };
        let (stopped, other) = (Work::new(), Work::new());
        stopped.stop();
        let jobs: Vec<u32> = (0..1000).collect();
        let busy = |work: &Work| {
            work.run(|| {
                let both = || parallel::map(&jobs, |_| (0..50).for_each(|_| poll()));
                parallel::join(both, both)
            })
        };
        // Threads that wait for jobs of one take jobs of the other meanwhile.
        let results = pool.install(|| parallel::map(&[&stopped, &other, &stopped, &other], |work| busy(work)));
        let results: Vec<bool> = results.into_iter().map(is_interrupted).collect();
        assert_eq!(results, [true, false, true, false]);
        assert!(other.polls() >= 200_000 && stopped.polls() < 100, "{} {}", other.polls(), stopped.polls());
    }

    #[test]
    fn inner_work_stops_with_the_outer_one_and_not_the_other_way_round() {
        let outer = Work::new();
        let ended = outer.run(|| {
            let inner = Work::new();
            inner.stop();
            assert!(is_interrupted(inner.run(poll)));
            poll();
            let inner = Work::new();
            outer.stop();
            inner.run(poll)
        });
        assert!(ended.is_ok_and(is_interrupted));
    }

    #[test]
    fn panics_stay_panics() {
        let work = Work::new();
        work.stop();
        let panic = catch_unwind(AssertUnwindSafe(|| work.run(|| resume_unwind(Box::new(7)))));
        assert!(panic.is_err_and(|payload| payload.downcast::<i32>().is_ok_and(|n| *n == 7)));
    }
}
