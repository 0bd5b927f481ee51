//! What the command does for somebody who watches it: progress, Ctrl-C that lets a batch write what is done, a browser.
//! Without the feature `terminal` nothing is shown, Ctrl-C ends the process, and no browser opens.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::Result;

/// How far a job is: a bar on a terminal that nothing else is written to, elsewhere nothing.
pub struct Progress {
    #[cfg(feature = "terminal")]
    bar: indicatif::ProgressBar,
}

impl Progress {
    /// Of so many things, if that is known.
    #[cfg(feature = "terminal")]
    pub fn new(count: Option<u64>, what: &str) -> Progress {
        use indicatif::{ProgressBar, ProgressStyle};
        use std::io::{IsTerminal, stderr};

        if !stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden() };
        }
        let (bar, template) = match count {
            Some(count) => {
                (ProgressBar::new(count), format!("{{bar:40}} {{pos}}/{{len}} {what}, {{per_sec}}, {{eta}} left"))
            }
            None => (ProgressBar::no_length(), format!("{{spinner}} {{pos}} {what}, {{per_sec}}")),
        };
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress { bar: bar.with_style(style) }
    }

    /// One more is done.
    #[cfg(feature = "terminal")]
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Writes something to the terminal, with the bar out of its way.
    #[cfg(feature = "terminal")]
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Takes the bar away.
    #[cfg(feature = "terminal")]
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(not(feature = "terminal"))]
impl Progress {
    pub fn new(_: Option<u64>, _: &str) -> Progress {
        Progress {}
    }

    pub fn advance(&self) {}

    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        write()
    }

    pub fn finish(&self) {}
}

/// Tells of Ctrl-C, after which a job that may have run for hours still writes what is done; a second one ends it at
/// once. Where Ctrl-C is ignored (nohup) or somebody else's, it stays so.
pub fn interrupts() -> Arc<AtomicBool> {
    let interrupted = Arc::new(AtomicBool::new(false));
    #[cfg(feature = "terminal")]
    {
        use std::sync::atomic::Ordering;

        let flag = interrupted.clone();
        let _ = ctrlc::try_set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
    }
    interrupted
}

/// Opens an address in the browser.
#[cfg(feature = "serve")]
pub fn open_address(address: &str) -> Result<()> {
    #[cfg(feature = "terminal")]
    let opened = open::that(address).map_err(|e| e.to_string());
    #[cfg(not(feature = "terminal"))]
    let opened = Err("this build has no feature \"terminal\"".to_owned());
    opened.map_err(|e: String| crate::Failure::Message(format!("no browser would open {address}: {e}")))
}

/// Opens a file that was written, in the browser.
#[cfg(feature = "terminal")]
pub fn open(path: &Path) -> Result<()> {
    open::that(path).map_err(|e| {
        let path = path.display();
        crate::Failure::Message(format!("{path} is written, but no browser would open it: {e}"))
    })
}

#[cfg(not(feature = "terminal"))]
pub fn open(path: &Path) -> Result<()> {
    let path = path.display();
    let message = format!("{path} is written; --open is not in this build (it has no feature \"terminal\")");
    Err(crate::Failure::Message(message))
}
