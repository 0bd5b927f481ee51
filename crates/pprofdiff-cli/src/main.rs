//! The binary: everything is in the library, which the Python package's console script shares.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(pprofdiff_cli::run(std::env::args_os()))
}
