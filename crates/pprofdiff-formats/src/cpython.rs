//! Recordings of CPython's `profiling.sampling` (Python 3.15): its binary form (`--binary`), and its JSON lines
//! (`--jsonl`), without stacks. Its folded stacks (`--collapsed`) are a dialect of folded stacks (`dialects.rs`).
//!
//! A frame becomes a function with its file, and the line and column that were being executed. Frames such as `<GC>`
//! have the file `~` and no line; like in CPython's own output, they are names without a file. Frames of
//! `_sync_coordinator.py`, which starts the program for the profiler, are left out, and samples without any other frame
//! are not counted. Both rules are CPython's (`filter_internal_frames` in `profiling/sampling/collector.py`), so the
//! numbers equal those of `python -m profiling.sampling replay --collapsed`.
//!
//! The sample types are
//!
//! - `samples/count`;
//! - the mode of the recording in nanoseconds: `wall`, `cpu`, `gil` or `exception`. A sample counts the sampling
//!   interval, as in CPython's own tables. The profiler samples threads in one of these states only, and a recording does
//!   not tell how long a thread was in the state between two samples. Recordings without a mode lack this type.

mod binary;
mod jsonl;

pub(crate) use binary::BINARY;
pub(crate) use jsonl::JSONL;

use crate::kit::tree::{StackBudget, ValueTree, too_large};
use pprofdiff_profile::builder::{LocationId, ProfileBuilder};
use pprofdiff_profile::samples::Label;
use pprofdiff_profile::{Error, Result};
use std::hash::Hash;

/// The modes in which the profiler samples, in the order of their numbers (`PROFILING_MODE_*`).
const MODES: [&str; 5] = ["wall", "cpu", "gil", "wall", "exception"];

/// Adds the location of a frame, or returns `None` for a frame of the profiler itself. Lines count from 1 and columns
/// from 0; negative numbers mean unknown.
fn location(
    builder: &mut ProfileBuilder,
    name: &[u8],
    file: &[u8],
    line: i64,
    column: i64,
) -> Result<Option<LocationId>> {
    if file.ends_with(b"_sync_coordinator.py") {
        return Ok(None);
    }
    let line = line.max(0);
    let file = if file == b"~" && line == 0 { b"" } else { file };
    let function = builder.function(name, file, 0);
    let line = builder.line(function, line).with_column(column.saturating_add(1).max(0));
    builder.location(None, 0, &[line]).map(Some)
}

/// Adds the sample types, and a sample for each stack of the tree. `interval` is the time between two samples in
/// nanoseconds, and `size` the size of the input.
fn write<R: Copy + Eq + Hash>(
    tree: &ValueTree<R>,
    mode: Option<&str>,
    interval: i64,
    size: usize,
    builder: &mut ProfileBuilder,
    mut add_labels: impl FnMut(R, &mut Vec<Label>),
) -> Result<()> {
    builder.sample_type("samples", "count");
    if let Some(mode) = mode {
        builder.sample_type(mode, "nanoseconds");
        builder.period(mode, "nanoseconds", interval);
        let default = builder.string(mode);
        builder.header().default_sample_type = default;
    }
    let n_types = 1 + usize::from(mode.is_some());
    let mut labels = Vec::new();
    tree.each_stack(n_types, &mut StackBudget::for_input(size), |root, leaf_first, count| {
        labels.clear();
        add_labels(root, &mut labels);
        let values = [count, count.checked_mul(interval).ok_or_else(too_large)?];
        builder.sample(leaf_first, &values[..n_types], &labels)
    })
}

/// Converts microseconds to nanoseconds.
fn nanos(micros: u64) -> Result<i64> {
    let nanos = i64::try_from(micros).ok().and_then(|micros| micros.checked_mul(1000));
    nanos.ok_or_else(|| Error::malformed(format!("a time of {micros} microseconds is too long")))
}
