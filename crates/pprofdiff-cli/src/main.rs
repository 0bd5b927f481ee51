//! The binary: everything is in the library, which the Python package's console script shares.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    outlive_file_limits();
    ExitCode::from(pprofdiff_cli::run(std::env::args_os()))
}

/// Beyond a limit on the size of files (`ulimit -f`) writing is then an error, after which no part of a file is left
/// behind; the signal would end the process there. Python ignores it, too. All threads that are started later block it.
#[cfg(unix)]
fn outlive_file_limits() {
    use nix::sys::signal::{SigSet, Signal};

    let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
}
