//! The binary. All code is in the library, which the console script of the Python package shares.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    outlive_file_limits();
    ExitCode::from(pprofdiff_cli::run(std::env::args_os()))
}

/// Turns exceeding a file size limit (`ulimit -f`) into a write error, which removes the partial file. By default the
/// signal would end the process. Python ignores the signal too. Threads that start later inherit the blocked signal.
#[cfg(unix)]
fn outlive_file_limits() {
    use nix::sys::signal::{SigSet, Signal};

    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
}
