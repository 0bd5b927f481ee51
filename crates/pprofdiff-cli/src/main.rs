//! The `pprofdiff` binary: prepares signals and calls `pprofdiff_cli::run`. The console script of the Python package
//! runs the same library.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    outlive_file_limits();
    ExitCode::from(pprofdiff_cli::run(std::env::args_os()))
}

/// Blocks SIGXFSZ, so that exceeding a file size limit (`ulimit -f`) is a write error, after which the partial file is
/// removed. By default the signal would end the process. The Python package needs no such function, because Python
/// ignores SIGXFSZ. Threads that start later inherit the blocked signal.
#[cfg(unix)]
fn outlive_file_limits() {
    use nix::sys::signal::{SigSet, Signal};

    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
}
