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
//! - modules of `pprofdiff-profile`, which reads and writes profiles: [`input`], `output`, [`builder`], [`samples`],
//!   [`columns`], `proto`, [`mod@delta`], [`units`] and [`text`].
//!
//! The crate `pprofdiff-report` contains reports and their formats. This crate starts no thread. It uses a rayon pool
//! if the caller runs it inside one (`pool.install(|| ...)`), and otherwise works on the calling thread.

pub mod batch;
#[cfg(feature = "check")]
pub mod check;
pub mod commits;
#[cfg(feature = "check")]
mod config;
mod diff;
mod events;
pub mod explain;
pub mod fleet;
mod frame_classes;
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
mod target;

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
    Cancellation, Compression, Demangle, Error, ErrorKind, LoadOptions, Profile, Result, Source, TimeSplit, TimeWindow,
    WriteOptions, delta, merge, merge_weighted,
};
pub use pprofdiff_profile::{builder, columns, input, samples, text, units};
pub use runtimes::are_system;
pub use statistics::sequential;

#[doc(hidden)]
pub use pprofdiff_profile::{advice, cancellation, interner, parallel, random, shared::FoldedHeader};
