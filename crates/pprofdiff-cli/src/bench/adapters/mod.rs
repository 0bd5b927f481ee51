//! What is added to a command so that it writes a profile, and what its output says: a table, with a file a kind of command.

mod any;
mod go_test;
mod node;
mod perf;
mod py_spy;

use std::path::{Path, PathBuf};

use crate::{Failure, Result};

/// A run that is to be made.
pub struct Plan<'a> {
    pub command: &'a [String],
    /// Where its profiles go.
    pub dir: &'a Path,
    /// A place of the side's that its runs share.
    pub binary: &'a Path,
    /// The operations that it is to do, if they are fixed.
    pub operations: Option<u64>,
}

/// What a run left.
pub struct Taken {
    /// Its profiles; the first one is compared.
    pub profiles: Vec<PathBuf>,
    /// The operations that it did, if it says so.
    pub operations: Option<f64>,
}

/// A kind of command.
pub struct Adapter {
    pub name: &'static str,
    /// True of such a command.
    pub is_of: fn(&[String]) -> bool,
    /// The command that writes profiles.
    pub command: fn(&Plan<'_>) -> Vec<String>,
    /// What the run left, of what it wrote.
    pub taken: fn(&Plan<'_>, &str) -> Result<Taken>,
    /// The operations that all runs are to do, by what a first run wrote.
    pub fixed: fn(&[String], &str) -> Option<u64>,
}

/// All kinds; the last one is any command's.
const ADAPTERS: [&Adapter; 5] = [&go_test::ADAPTER, &node::ADAPTER, &py_spy::ADAPTER, &perf::ADAPTER, &any::ADAPTER];

pub fn find(command: &[String]) -> &'static Adapter {
    ADAPTERS.into_iter().find(|adapter| (adapter.is_of)(command)).unwrap_or(&any::ADAPTER)
}

/// The name of a program without its folders.
fn program(command: &[String]) -> &str {
    let program = command.first().map_or("", String::as_str);
    program.rsplit(['/', '\\']).next().unwrap_or(program).trim_end_matches(".exe")
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

/// Nothing fixes how much is done.
fn unfixed(_: &[String], _: &str) -> Option<u64> {
    None
}

/// The one profile that a run must have written.
fn written(file: PathBuf, command: &[String]) -> Result<Taken> {
    let is_there = std::fs::metadata(&file).is_ok_and(|about| about.len() > 0);
    if is_there {
        return Ok(Taken { profiles: vec![file], operations: None });
    }
    let program = program(command);
    Err(Failure::Message(format!("{program} wrote no profile to {}", file.display())))
}
