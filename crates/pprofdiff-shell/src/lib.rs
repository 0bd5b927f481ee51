//! The base of the command's verbs and of its optional crates: errors and exit codes, output, progress, Ctrl-C and git.
//!
//! Errors of the engine become a [`Failure`], which becomes one line on standard error and an exit code. Results go
//! through [`write_to`] to a file or to standard output. This crate knows no arguments and no verbs: the command passes
//! plain values, and once the names of its options ([`name_options`]).

mod agent;
mod console;
mod failure;
pub mod git;
pub mod operations;
mod outputs;
pub mod terminal;

pub use agent::is_agent;
pub use console::{color_wanted, is_stdin, is_watched, say, text_width, warn, write_to};
pub use failure::{Failure, Result, error_line, exit_code, name_options, typed_option};
pub use outputs::Outputs;
