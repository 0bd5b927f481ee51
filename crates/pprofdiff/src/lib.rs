//! Compares pprof profiles: what changed between two of them, with both sides of every number.
//!
//! ```no_run
//! use pprofdiff::{Diff, LoadOptions, Query, Sort};
//!
//! # fn main() -> pprofdiff::Result<()> {
//! let diff = Diff::open("main.pb.gz", "branch.pb.gz", &LoadOptions::default())?;
//! let top = diff.measure(&Query::default())?.top(Sort::Cum);
//! for row in top.rows.iter().take(10) {
//!     println!("{} -> {} ({:+})  {}", row.cum.base, row.cum.new, row.cum.delta(), top.frames.name(row.frame));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [`Diff`] is two sides, a [`Selection`] what filters leave of them, a [`Measure`] one sample type of that, from
//! which tables, graphs and listings are made. What most callers need is at the root; the rest is in modules:
//!
//! - of a measure: [`top`] (the table of frames), [`edges`] (callers and callees), [`stacks`], [`labels`], [`graph`]
//!   and [`flame`]; of a diff: `list` (source lines with their costs);
//! - `check`: whether a change is within limits, for CI; [`mod@explain`]: which causes explain it;
//! - [`series`]: many builds, frame by frame; [`mod@batch`]: many pairs of profiles on a pool; [`fleet`]: what these have in common;
//! - of `pprofdiff-profile`, which reads and writes profiles: [`input`], `output`, [`builder`], [`samples`],
//!   [`columns`], `proto`, [`mod@delta`], [`units`] and [`text`].
//!
//! Reports and their formats are in `pprofdiff-report`. The crate starts no thread: inside a rayon pool of the caller's
//! (`pool.install(|| ...)`) it uses that pool, elsewhere it works on the calling thread.

pub mod batch;
#[cfg(feature = "check")]
pub mod check;
pub mod commits;
mod diff;
pub mod explain;
pub mod fleet;
pub mod loading;
pub mod options;
#[cfg(feature = "check")]
pub mod recording;
mod runs;
mod runtimes;
pub mod sampling;
mod select;
pub mod series;
mod sources;
mod statistics;
#[cfg(feature = "store")]
pub mod store;

pub use batch::batch;
pub use diff::list;
pub use diff::{
    Diff, Filters, Frames, Granularity, Matching, Measure, Normalize, Pair, Query, Selection, Side, Sort, Status,
    Summary, Top, TopRow,
};
pub use diff::{edges, filter, flame, graph, labels, stacks, top};
#[cfg(feature = "binary")]
pub use pprofdiff_profile::binary;
#[cfg(feature = "files")]
pub use pprofdiff_profile::output;
#[cfg(feature = "proto")]
pub use pprofdiff_profile::proto;
pub use pprofdiff_profile::{
    Compression, Demangle, Error, ErrorKind, LoadOptions, Profile, Result, Source, TimeSplit, TimeWindow, Work,
    WriteOptions, delta, merge, merge_weighted,
};
pub use pprofdiff_profile::{builder, columns, input, samples, text, units};
pub use runtimes::are_system;
pub use statistics::sequential;

#[doc(hidden)]
pub use pprofdiff_profile::{advice, interner, parallel, random, shared::FoldedHeader, work};
