//! Runs engine calls on a thread pool of this process, or on a separate thread, with the GIL released. The calling
//! thread checks for signals meanwhile.
//!
//! rayon's global pool would hang after `fork`, because the child inherits the pool but none of its threads. This
//! module therefore has its own pool, and records the process that created it. A child process leaks the inherited
//! pool, whose threads do not exist in the child, and creates its own pool on first use.
//!
//! Work on the pool holds no Python objects. It therefore never needs the GIL, and a fork never happens while one of
//! its threads is inside the interpreter.
//!
//! An interrupted call returns at once, while its work is still stopping in the background. The interrupt also abandons
//! the pool: later calls use a new pool, and the threads of the old pool end after its last work.
//!
//! Pyodide has no threads. There, the calling thread is the pool's only thread and does all work.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use pprofdiff::Cancellation;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error;

/// The interval between two checks for signals in a waiting call. It is too short for a person to notice.
pub const TICK: Duration = Duration::from_millis(50);

/// True if the system has threads.
const THREADS: bool = cfg!(not(target_os = "emscripten"));

/// The pool with the id of its process. Only threads that are attached to the interpreter lock it. `os.fork` is called
/// by such a thread, so the lock is never held during a fork.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Returns the pool of this process. It has one thread per core, or the number in `RAYON_NUM_THREADS`.
pub fn pool(_attached: Python<'_>) -> PyResult<Arc<ThreadPool>> {
    let mut slot = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = &*slot
        && *owner == process
    {
        return Ok(pool.clone());
    }
    std::mem::forget(slot.take());
    let threads = ThreadPoolBuilder::new().thread_name(|i| format!("pprofdiff-{i}"));
    let threads = if THREADS { threads } else { threads.num_threads(1).use_current_thread() };
    let pool = Arc::new(threads.build().map_err(no_threads)?);
    *slot = Some((process, pool.clone()));
    Ok(pool)
}

pub fn no_threads(e: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("pprofdiff can't start its threads: {e}"))
}

/// Checks for signals. After Ctrl-C, the pool is abandoned to the stopped work. The next call creates a new pool, so it
/// does not wait behind work that may be blocked on a pipe.
pub fn check_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals().inspect_err(|_| {
        let pool = POOL.lock().unwrap_or_else(PoisonError::into_inner).take();
        match pool {
            // Dropping a pool does not wait. Its threads end after the work on the pool.
            Some((owner, pool)) if owner == std::process::id() => drop(pool),
            inherited => std::mem::forget(inherited),
        }
    })
}

/// Runs `work` on the pool until it is done or the user presses Ctrl-C.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> pprofdiff::Result<T> + Send + 'static,
) -> PyResult<T> {
    let pool = pool(py)?;
    wait(py, work, |job| {
        if THREADS {
            pool.spawn(job)
        } else {
            job()
        }
        Ok(())
    })
}

/// Like [`run`], on a temporary thread. Pickling uses it, so that a worker process needs no pool to send its results.
/// Costs some tens of microseconds.
pub fn run_apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> pprofdiff::Result<T> + Send + 'static,
) -> PyResult<T> {
    wait(py, work, |job| {
        if !THREADS {
            job();
            return Ok(());
        }
        Builder::new().name("pprofdiff".to_owned()).spawn(job).map(drop).map_err(no_threads)
    })
}

type PoolJob = Box<dyn FnOnce() + Send>;

/// Stops work when the caller no longer waits for it. Stopping finished work has no effect.
struct StopWhenLeft(Cancellation);

impl Drop for StopWhenLeft {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> pprofdiff::Result<T> + Send + 'static,
    start: impl FnOnce(PoolJob) -> PyResult<()>,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    let stopping = StopWhenLeft(Cancellation::new());
    let handle = stopping.0.clone();
    start(Box::new(move || {
        let run = || handle.run(work).and_then(|result| result);
        // The receiver is gone if the caller was interrupted.
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

/// The number of small Python objects to create between two checks for signals, which takes about ten milliseconds.
/// This is longer than the five milliseconds (`sys.getswitchinterval`) after which a waiting thread requests the GIL.
/// If the GIL were released earlier, the waiting thread would wake up before its request, lose the GIL again, and
/// starve.
pub const OBJECTS_PER_YIELD: usize = 1 << 17;

/// Lets other threads run and checks for signals once `made` reaches [`OBJECTS_PER_YIELD`]. Loops that create or read
/// Python objects call it.
pub fn yield_gil(py: Python<'_>, made: &mut usize) -> PyResult<()> {
    if *made >= OBJECTS_PER_YIELD {
        *made = 0;
        py.detach(|| ());
        check_signals(py)?;
    }
    Ok(())
}

/// Converts a panic of the engine to an exception, which asks the user to report it.
pub fn bug(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    PyRuntimeError::new_err(format!("a bug in pprofdiff: {}", text.unwrap_or("a panic without a message")))
}
