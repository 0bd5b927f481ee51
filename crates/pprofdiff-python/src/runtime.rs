//! Where engine calls run: on a pool of this process (a few on a thread of their own), with the GIL released, while the
//! caller keeps an eye on signals.
//!
//! rayon's global pool would hang after `fork`: the child has the pool, but none of its threads. So
//! the pool is ours, remembered with the process that made it. A child forgets the one it inherited
//! (there is nothing in it that could be stopped) and makes its own when it first needs one.
//!
//! What goes there holds no Python object. So the GIL is never wanted there, and a fork never
//! catches a thread of ours inside the interpreter.
//!
//! An interrupted call returns at once; its work stops on a pool that nobody uses any more, and whose threads end with
//! it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pprofdiff::Work;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error;

/// How often a waiting call looks for signals: too short for a person to notice.
pub const TICK: Duration = Duration::from_millis(50);

/// The process, and its pool. Locked only by threads that are attached to the interpreter, so
/// `os.fork` (which is called by such a thread) never copies it locked.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The pool of this process: as many threads as cores, or as `RAYON_NUM_THREADS` says.
pub fn pool(_attached: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let mut slot = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = &*slot
        && *owner == process
    {
        return Ok(pool.clone());
    }
    std::mem::forget(slot.take());
    let pool = ThreadPoolBuilder::new().thread_name(|i| format!("pprofdiff-{i}")).build().map_err(no_threads)?;
    let pool = Arc::new(pool);
    *slot = Some((process, pool.clone()));
    Ok(pool)
}

pub fn no_threads(e: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("pprofdiff can't start its threads: {e}"))
}

/// Looks for signals. After Ctrl-C the pool is left to the work that was stopped, which ends there unheard: the next call
/// gets a new one, and does not wait behind what may be waiting for a pipe.
pub fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals().inspect_err(|_| {
        let pool = POOL.lock().unwrap_or_else(PoisonError::into_inner).take();
        match pool {
            // Its threads end with what is on it.
            Some((owner, pool)) if owner == std::process::id() => drop(pool),
            inherited => std::mem::forget(inherited),
        }
    })
}

/// Runs `work` on the pool, until it is done or Ctrl-C is pressed.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> pprofdiff::Result<T> + Send + 'static,
) -> PyResult<T> {
    let pool = pool(py)?;
    wait(py, work, |job| {
        pool.spawn(job);
        Ok(())
    })
}

/// [`run`] on a thread that ends with the work, since what a worker process sends home should leave no pool there.
/// Costs some tens of microseconds.
pub fn run_apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> pprofdiff::Result<T> + Send + 'static,
) -> PyResult<T> {
    wait(py, work, |job| Builder::new().name("pprofdiff".to_owned()).spawn(job).map(drop).map_err(no_threads))
}

type Job = Box<dyn FnOnce() + Send>;

/// Stops work that its caller does not wait for any more, for whatever reason; what is done can't be stopped.
struct StopWhenLeft(Work);

impl Drop for StopWhenLeft {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> pprofdiff::Result<T> + Send + 'static,
    start: impl FnOnce(Job) -> PyResult<()>,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    let stopping = StopWhenLeft(Work::new());
    let handle = stopping.0.clone();
    start(Box::new(move || {
        let run = || handle.run(work).and_then(|result| result);
        // Nobody listens any more if the caller was interrupted.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(run)));
    }))?;
    loop {
        let (received, back) = py.detach(move || (receiver.recv_timeout(TICK), receiver));
        receiver = back;
        match received {
            Ok(Ok(result)) => return result.map_err(|e| error::from_engine(py, &e)),
            Ok(Err(panic)) => return Err(bug(&*panic)),
            Err(RecvTimeoutError::Timeout) => check_signals(py)?,
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("pprofdiff lost a thread")),
        }
    }
}

/// How many small Python objects are made between two looks at signals: some ten milliseconds' worth. More than the five
/// (`sys.getswitchinterval`) after which a waiting thread asks for the GIL: who gives it up sooner wakes that thread before
/// it has asked, takes the GIL back, and starves it.
pub const OBJECTS_PER_YIELD: usize = 1 << 17;

/// For loops that make Python objects, or read them: lets other threads of the interpreter run and looks for signals, once
/// `made` has come to [`OBJECTS_PER_YIELD`].
pub fn yield_gil(py: Python<'_>, made: &mut usize) -> PyResult<()> {
    if *made >= OBJECTS_PER_YIELD {
        *made = 0;
        py.detach(|| ());
        check_signals(py)?;
    }
    Ok(())
}

/// A panic of the engine as an exception. There should be none; the traceback is for the report.
pub fn bug(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    PyRuntimeError::new_err(format!("a bug in pprofdiff: {}", text.unwrap_or("a panic without words")))
}
