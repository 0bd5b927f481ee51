//! Compares pprof profiles: reports the changes between two profiles, with both sides of every number.
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
//! A [`Diff`] holds the profiles of two sides. A [`Selection`] is the part that remains after filters. A [`Measure`] is
//! one sample type of a selection, and produces tables, graphs and listings. The root exports the types that most
//! callers need, and modules contain the rest:
//!
//! - views of a measure: [`top`] (the table of frames), [`edges`] (callers and callees), [`stacks`], [`labels`],
//!   [`graph`] and [`flame`];
//! - views of a diff: `list` (source lines with their costs);
//! - `check`: tests whether a change is within limits, for CI;
//! - [`mod@explain`]: finds the causes of a change;
//! - [`series`]: compares many builds, frame by frame;
//! - [`mod@batch`]: compares many pairs of profiles on a pool;
//! - [`fleet`]: finds the changes that many pairs share;
//! - [`input`]: where profiles come from, and sets of files;
//! - functions of `pprofdiff-formats`, which load a profile: [`open`], [`from_bytes`] and [`from_reader`];
//! - modules of `pprofdiff-profile`, which decodes and writes profiles: `output`, [`builder`], [`samples`],
//!   [`columns`], `proto`, [`mod@delta`], [`units`] and [`text`].
//!
//! The crate `pprofdiff-report` contains reports and their formats. This crate starts no thread. It uses a rayon pool
//! if the caller runs it inside one (`pool.install(|| ...)`), and otherwise works on the calling thread.

pub mod batch;
#[cfg(feature = "check")]
pub mod check;
pub mod commits;
mod diff;
pub mod explain;
pub mod fleet;
pub mod input;
pub mod loading;
pub mod options;
#[cfg(feature = "check")]
pub mod recording;
mod runs;
mod runtimes;
pub mod sampling;
mod select;
pub mod series;
#[cfg(feature = "files")]
mod sources;
mod statistics;

pub use batch::batch;
pub use diff::list;
pub use diff::{
    Diff, Filters, Frames, Granularity, Matching, Measure, Normalize, Pair, Query, Selection, Side, Sort, Status,
    Summary, Top, TopRow,
};
pub use diff::{edges, filter, flame, graph, labels, stacks, top};
pub use input::Source;
pub use pprofdiff_formats::{LoadOptions, from_bytes, from_reader, open};
#[cfg(feature = "files")]
pub use pprofdiff_profile::output;
#[cfg(feature = "proto")]
pub use pprofdiff_profile::proto;
pub use pprofdiff_profile::{
    Cancellation, Compression, Demangle, Error, ErrorKind, Profile, Result, TimeSplit, TimeWindow, WriteOptions, delta,
    merge, merge_weighted,
};
pub use pprofdiff_profile::{builder, columns, samples, text, units};
#[cfg(feature = "binary")]
pub use pprofdiff_symbols as binary;
pub use runtimes::are_system;
pub use statistics::sequential;

#[doc(hidden)]
pub use pprofdiff_formats::FoldedHeader;
#[doc(hidden)]
pub use pprofdiff_profile::{advice, cancellation, interner, parallel, random};
