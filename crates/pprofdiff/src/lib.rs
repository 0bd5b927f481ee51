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
//! - [`mod@batch`]: compares many pairs of profiles on a pool;
//! - profiles: [`builder`], [`columns`], [`samples`], `proto`, [`mod@delta`] and [`units`].
//!
//! Crates above this one: `pprofdiff-explain` finds the causes of a change and follows moved code, `pprofdiff-series`
//! compares many builds and many pairs, `pprofdiff-commits` ranks the commits that reach a cause, and `pprofdiff-report`
//! writes reports. This crate starts no thread. It uses a rayon pool
//! if the caller runs it inside one (`pool.install(|| ...)`), and otherwise works on the calling thread.

#![warn(missing_debug_implementations)]

pub mod batch;
#[cfg(feature = "check")]
pub mod check;
#[cfg(feature = "check")]
mod config;
mod diff;
mod events;
mod frame_classes;
pub mod input;
#[doc(hidden)]
pub mod loading;
#[doc(hidden)]
pub mod options;
#[cfg(feature = "check")]
#[doc(hidden)]
pub mod recording;
mod runs;
mod runtimes;
pub mod sampling;
mod select;
#[cfg(feature = "sources")]
mod sources;
#[doc(hidden)]
pub mod statistics;
mod target;

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
#[doc(hidden)]
pub use pprofdiff_profile::output;
#[cfg(feature = "proto")]
pub use pprofdiff_profile::proto;
pub use pprofdiff_profile::{
    Cancellation, Compression, Demangle, Error, ErrorKind, Profile, Result, TimeSplit, TimeWindow, WriteOptions, delta,
    merge, merge_bytes, merge_weighted,
};
pub use pprofdiff_profile::{builder, columns, samples, units};
#[cfg(feature = "binary")]
pub use pprofdiff_symbols as binary;
pub use runtimes::are_system;

#[doc(hidden)]
pub use pprofdiff_formats::FoldedHeader;
#[doc(hidden)]
pub use pprofdiff_profile::{advice, cancellation, interner, parallel, random, text, time};
#[doc(hidden)]
pub use statistics::sequential;

/// Items for the crates of pprofdiff that are above this one. They are not part of the API and may change at any time.
#[doc(hidden)]
pub mod shared {
    // pprofdiff-explain: stacks as rows of numbers.
    pub use crate::diff::call_lines::{
        BelowSite, CallSite, FileLine, FilesOfLines, LineCosts, MAX_SITES, SitesOfType, SourceLocation, call_lines,
    };
    pub use crate::diff::calls::{CallSums, CalledFunction, EntryCalls};
    pub use crate::diff::edges::Calls;
    pub use crate::diff::labels::KnownTexts;
    pub use crate::diff::order::StackOrder;
    pub use crate::diff::stacks::Keys;
    pub use crate::diff::texts::TextInterner;
    pub use crate::diff::{Innermost, Moves, SampleLocations, SampleVisitor, State, Walk};
    // pprofdiff-explain: the events behind samples, and the classes of frames, as checks and tables of runs use them.
    #[cfg(feature = "check")]
    pub use crate::config::parse_config;
    pub use crate::events::{Columns, SampleSums, SampledRun, ValueKind, known_deviation, known_variance, runs};
    pub use crate::frame_classes::FrameClasses;
    pub use crate::runtimes::{Asked, Class, Runtime, UserRules, classify};
    pub use crate::sampling::{counts_every_call, counts_every_event};
    pub use crate::target::{ALLOCATED, ExplainTarget, is_delay, is_level, is_level_among};
    // pprofdiff-series: columns of builds, and the noise between them.
    pub use crate::diff::top::SIGNIFICANT;
    pub use crate::diff::{FrameInterner, Scale};
    pub use crate::events::sampling;
    pub use crate::frame_classes::by_chance;
    pub use crate::loading::has_binaries;
    // Both.
    pub use crate::statistics;
    // The crates above.
    pub use pprofdiff_profile::shared::with_default_type;
    pub use pprofdiff_profile::short_lists;
}
