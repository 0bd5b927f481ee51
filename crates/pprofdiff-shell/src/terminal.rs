//! Features for interactive use: progress bars, the current phase of slow work, Ctrl-C, and opening a browser. Without
//! the feature `terminal`, nothing is shown, Ctrl-C ends the process, and no browser opens.
//!
//! Ctrl-C stops the work, which removes partial output files. Operations that can't stop, such as a read from a pipe,
//! get half a second. `batch` and `bench` react differently, see [`AtInterrupt`]. `serve` and `mcp` install no
//! handler, so they end at once. Phases are shown after half a second, and are cleared before the result is written.

use std::path::Path;

use pprofdiff::Cancellation;

use crate::Result;
#[cfg(feature = "terminal")]
use crate::is_watched;

/// A progress bar. It is shown only if a person watches standard error.
pub struct Progress {
    #[cfg(feature = "terminal")]
    bar: indicatif::ProgressBar,
}

impl Progress {
    /// Creates a bar for `count` items, or a spinner if the number is not known.
    #[cfg(feature = "terminal")]
    pub fn new(count: Option<u64>, noun: &str) -> Progress {
        use indicatif::{ProgressBar, ProgressStyle};
        use std::io::stderr;

        if !is_watched(&stderr()) {
            return Progress { bar: ProgressBar::hidden() };
        }
        let (bar, template) = match count {
            Some(count) => {
                (ProgressBar::new(count), format!("{{bar:40}} {{pos}}/{{len}} {noun}, {{per_sec}}, {{eta}} left"))
            }
            None => (ProgressBar::no_length(), format!("{{spinner}} {{pos}} {noun}, {{per_sec}}")),
        };
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        phases::cover(true);
        Progress { bar: bar.with_style(style) }
    }

    /// Counts one more item.
    #[cfg(feature = "terminal")]
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Hides the bar while `write` writes to the terminal.
    #[cfg(feature = "terminal")]
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Removes the bar.
    #[cfg(feature = "terminal")]
    pub fn finish(&self) {
        if !self.bar.is_hidden() && !self.bar.is_finished() {
            self.bar.finish_and_clear();
            phases::cover(false);
        }
    }
}

#[cfg(feature = "terminal")]
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(not(feature = "terminal"))]
impl Progress {
    /// Shows nothing.
    pub fn new(_: Option<u64>, _: &str) -> Progress {
        Progress {}
    }

    /// Shows nothing.
    pub fn advance(&self) {}

    /// Calls `write`.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        write()
    }

    /// Shows nothing.
    pub fn finish(&self) {}
}

/// The line below all other output that shows the current phase.
#[cfg(feature = "terminal")]
mod phases {
    use std::io::stderr;
    use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::thread::{Builder, JoinHandle};
    use std::time::Duration;

    use indicatif::{ProgressBar, ProgressStyle};
    use pprofdiff::Cancellation;

    use crate::is_watched;

    /// The delay before a phase is shown, so that fast commands show nothing.
    const PATIENCE: Duration = Duration::from_millis(500);
    const TICK: Duration = Duration::from_millis(100);

    struct PhaseLine {
        bar: Option<ProgressBar>,
        /// True while a progress bar or the result occupies the line.
        is_covered: bool,
    }

    static LINE: Mutex<PhaseLine> = Mutex::new(PhaseLine { bar: None, is_covered: true });

    fn line() -> MutexGuard<'static, PhaseLine> {
        LINE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl PhaseLine {
        fn clear(&mut self) {
            if let Some(bar) = self.bar.take() {
                bar.finish_and_clear();
            }
        }

        fn draw(&mut self, phase: Option<&'static str>) {
            let Some(phase) = phase.filter(|_| !self.is_covered) else { return };
            let bar = self.bar.get_or_insert_with(|| {
                let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
                ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
            });
            bar.set_message(phase);
            bar.tick();
        }
    }

    /// Hides the line to make room for a progress bar or the result, or shows it again.
    pub fn cover(is_covered: bool) {
        let mut line = line();
        line.is_covered = is_covered;
        line.clear();
    }

    /// Hides the line while `write` writes to the terminal.
    pub fn suspend<T>(write: impl FnOnce() -> T) -> T {
        match &line().bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Shows the phases of work until dropped, if a person watches standard error.
    pub struct Phases(Option<(Sender<()>, JoinHandle<()>)>);

    impl Phases {
        /// Starts to show the phases of `work`.
        pub fn show(work: &Cancellation) -> Phases {
            if !is_watched(&stderr()) {
                return Phases(None);
            }
            cover(false);
            let (work, (sender, receiver)) = (work.clone(), channel());
            let watch = move || {
                let mut wait = PATIENCE;
                while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(wait) {
                    line().draw(work.phase());
                    wait = TICK;
                }
            };
            Phases(Builder::new().name("pprofdiff-phases".to_owned()).spawn(watch).ok().map(|thread| (sender, thread)))
        }
    }

    impl Drop for Phases {
        fn drop(&mut self) {
            if let Some((sender, thread)) = self.0.take() {
                drop(sender);
                let _ = thread.join();
            }
            cover(true);
        }
    }
}

#[cfg(not(feature = "terminal"))]
mod phases {
    use pprofdiff::Cancellation;

    /// Shows nothing.
    pub struct Phases;

    impl Phases {
        /// Shows nothing.
        pub fn show(_: &Cancellation) -> Phases {
            Phases
        }
    }

    /// Shows nothing.
    pub fn cover(_: bool) {}

    /// Calls `write`.
    pub fn suspend<T>(write: impl FnOnce() -> T) -> T {
        write()
    }
}

pub use phases::{Phases, cover as cover_phases, suspend};

/// The effect of Ctrl-C on a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtInterrupt {
    /// Stops the work and exits after a short wait, even if an operation such as a read from a pipe can't stop.
    Exit,
    /// Stops the work, and the command writes the finished part, however long that takes. A second Ctrl-C exits at
    /// once.
    Finish,
    /// Stops the work, and the command cleans up. A second Ctrl-C does not interrupt the cleanup.
    CleanUp,
}

/// Treats `kill` and the end of a session like Ctrl-C, for a command that has to clean up. It keeps ignoring the end of
/// the session if the parent set that up, as `nohup` does. It handles the signals instead of blocking them, because
/// children inherit a blocked signal and `kill` would not stop them. It also unblocks all signals, and ignores SIGXFSZ
/// with a handler, which children don't inherit: exceeding a file size limit stays a write error here, and has its
/// usual effect on the benchmark. Threads inherit blocked signals too, so this must run before threads start.
pub fn interrupt_at_kill() {
    #[cfg(all(unix, feature = "terminal"))]
    {
        use signal_hook::consts::{SIGHUP, SIGTERM, SIGXFSZ};

        let hangup = (!is_hangup_ignored()).then_some(SIGHUP);
        let signals = signal_hook::iterator::Signals::new([SIGTERM, SIGXFSZ].into_iter().chain(hangup));
        // The parent of this process may have blocked signals.
        let _ = nix::sys::signal::SigSet::all().thread_unblock();
        if let Ok(mut signals) = signals {
            let wait = move || signals.forever().filter(|&signal| signal != SIGXFSZ).for_each(|_| interrupt());
            let _ = std::thread::Builder::new().name("pprofdiff-kill".to_owned()).spawn(wait);
        }
    }
}

/// Returns true if this process ignores SIGHUP. Only Linux reports that without unsafe code; elsewhere, the answer is
/// false.
#[cfg(all(unix, feature = "terminal"))]
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal_hook::consts::SIGHUP - 1)) != 0
}

/// The current work and its reaction to Ctrl-C. A signal handler can be set only once, so it reads them here.
#[cfg(feature = "terminal")]
static CURRENT: std::sync::Mutex<Option<(Cancellation, AtInterrupt)>> = std::sync::Mutex::new(None);

#[cfg(feature = "terminal")]
fn current() -> std::sync::MutexGuard<'static, Option<(Cancellation, AtInterrupt)>> {
    CURRENT.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Reacts to Ctrl-C.
#[cfg(feature = "terminal")]
fn interrupt() {
    /// The time for work to end. Most work checks for cancellation much more often than this.
    const GRACE: std::time::Duration = std::time::Duration::from_millis(500);

    let work = current().clone();
    if work.as_ref().is_some_and(|(_, at_interrupt)| *at_interrupt == AtInterrupt::CleanUp) {
        work.iter().for_each(|(work, _)| work.stop());
        return;
    }
    let is_first = work.as_ref().is_some_and(|(work, _)| !work.is_stopped());
    if let Some((work, at_interrupt)) = work.filter(|_| is_first) {
        work.stop();
        if at_interrupt == AtInterrupt::Finish {
            return;
        }
        std::thread::sleep(GRACE);
    }
    pprofdiff::output::remove_unfinished();
    std::process::exit(130);
}

/// Sets the reaction to Ctrl-C: stops `work`, as `at_interrupt` says. A later call replaces the work and the reaction.
/// Leaves Ctrl-C alone if the parent made this process ignore it, as a shell script does for `command &`, or if the
/// host program has its own handler.
pub fn stop_at_interrupt(work: &Cancellation, at_interrupt: AtInterrupt) {
    #[cfg(feature = "terminal")]
    {
        *current() = Some((work.clone(), at_interrupt));
        let _ = ctrlc::try_set_handler(interrupt);
    }
    #[cfg(not(feature = "terminal"))]
    let _ = (work, at_interrupt);
}

/// Opens a local page in the browser. The path becomes an argument of a process, so it must not be secret.
pub fn open_page(path: &Path) -> Result<()> {
    #[cfg(feature = "terminal")]
    let opened = open::that(path).map_err(|e| e.to_string());
    #[cfg(not(feature = "terminal"))]
    let opened = Err(format!("this build can't open {}: feature \"terminal\" is off", path.display()));
    opened.map_err(|e: String| {
        crate::Failure::Message(format!("can't start a browser: {e}; open the address above yourself, without --open"))
    })
}

/// Opens a written file in the browser.
#[cfg(feature = "terminal")]
pub fn open(path: &Path) -> Result<()> {
    open::that(path).map_err(|e| {
        let path = path.display();
        crate::Failure::Message(format!("{path} is written, but no browser opened it: {e}"))
    })
}

/// Reports that no browser can be started.
#[cfg(not(feature = "terminal"))]
pub fn open(path: &Path) -> Result<()> {
    let path = path.display();
    let message = format!("{path} is written, but this build can't open it (feature \"terminal\" is off)");
    Err(crate::Failure::Message(message))
}

/// Returns the number of characters per line of the terminal at standard output. `None` if it is no terminal.
pub(crate) fn width() -> Option<usize> {
    #[cfg(feature = "terminal")]
    return terminal_size::terminal_size_of(std::io::stdout())
        .map(|(width, _)| usize::from(width.0))
        .filter(|&w| w > 0);
    #[cfg(not(feature = "terminal"))]
    None
}
